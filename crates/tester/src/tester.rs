//! Opening a tester and running trials on it.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::config::{self, Config};
use crate::error::{Result, TesterError};
use crate::frame::Templates;
use crate::live::{self, Live, Place};
use crate::outcome::{Clock, Cpu, Outcome};
use crate::plan::{Plan, TICKS_PER_NS};
use crate::port::{Control, Expected, ReceiveReport, Received, Receiver, SendReport, Sender, Sending};
use crate::request::Request;
use crate::sink::Sink;
use crate::summary::summarise;
use crate::sys::interface::Interface;
use crate::sys::thread::{self, Scheduling};
use crate::sys::{capabilities, clock, netns};

/// How often the waiting thread looks at senders and receivers.
const LOOK: Duration = Duration::from_millis(5);
/// How often it reports progress.
const REPORT: Duration = Duration::from_millis(50);
/// How long before the first frame everything is ready.
const LEAD_NS: u64 = 30_000_000;
/// The counters must stand still at least as long, even if no wait was asked for.
const LEAST_SETTLED: Duration = Duration::from_millis(20);
/// Counters that have not settled after the wait and this are read as they are.
const MOST_SETTLING: Duration = Duration::from_secs(2);

/// A port as it was opened.
struct Port {
    config: config::Port,
    interface: Interface,
    receiver: Option<Box<dyn Receiver>>,
}

/// Ports of this machine that send and receive test frames.
pub struct Tester {
    config: Config,
    ports: Vec<Port>,
    live: Option<Live>,
}

/// What one sending thread did.
struct SentBy {
    report: SendReport,
    /// Indices of its streams.
    streams: Vec<usize>,
    scheduling: Scheduling,
    pinned: Option<usize>,
    busy_ratio: f64,
    preemptions: u64,
}

impl Tester {
    /// Opens the ports of a configuration in JSON: loads programs and attaches receivers.
    ///
    /// # Errors
    ///
    /// The text is wrong, a right, an interface or a program is missing, or the kernel refuses.
    pub fn open(text: &str) -> Result<Self> {
        let config: Config = serde_json::from_str(text)
            .map_err(|error| TesterError::Text { place: "config", message: error.to_string() })?;
        if config.ports.is_empty() {
            return Err(TesterError::value("ports", "none", "at least one port"));
        }
        let missing = capabilities::missing(config.ports.iter().any(|port| port.netns.is_some()));
        if !missing.is_empty() {
            return Err(TesterError::Rights { missing });
        }
        let mut ports = Vec::new();
        for port in &config.ports {
            let interface = netns::inside(port.netns.as_deref(), || {
                Interface::find(&port.interface, port.netns.as_deref())
            })?;
            let receiver: Option<Box<dyn Receiver>> = match port.receive {
                config::Receive::Auto | config::Receive::Xdp => {
                    Some(Box::new(Sink::open(interface.clone(), port.netns.clone())?))
                }
                config::Receive::AfPacket => return Err(not_built(&port.name, "af_packet (receive)")),
                config::Receive::None => None,
            };
            ports.push(Port { config: port.clone(), interface, receiver });
        }
        let is_live = |port: &&Port| matches!(port.config.send, config::Send::Auto | config::Send::Live);
        let place = |(index, port): (usize, &Port)| Place {
            port: index,
            index: port.interface.index,
            netns: port.config.netns.clone(),
        };
        let places: Vec<_> =
            ports.iter().enumerate().filter(|(_, port)| is_live(port)).map(place).collect();
        for port in &ports {
            match port.config.send {
                config::Send::AfXdp => return Err(not_built(&port.config.name, "af_xdp")),
                config::Send::AfPacket => return Err(not_built(&port.config.name, "af_packet (send)")),
                config::Send::Auto | config::Send::Live | config::Send::None => {}
            }
        }
        let live = if places.is_empty() { None } else { Some(Live::new(places)?) };
        Ok(Self { config, ports, live })
    }

    /// Back ends, drivers and modes.
    #[must_use]
    pub fn facts(&self) -> Value {
        let port = |port: &Port| {
            json!({
                "name": port.config.name,
                "interface": port.interface,
                "netns": port.config.netns,
                "receive": port.receiver.as_ref().map(|receiver| receiver.facts()),
                "send": match port.config.send {
                    config::Send::Auto | config::Send::Live => self.live.as_ref().map(Sender::facts),
                    _ => None,
                },
            })
        };
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        json!({"ports": self.ports.iter().map(port).collect::<Vec<_>>(), "kernel": kernel.trim()})
    }

    /// Runs one trial. `progress` is called about every 50 ms with the finished share; `Break` in it stops the trial.
    ///
    /// # Errors
    ///
    /// The request is wrong, or the kernel refuses.
    ///
    /// # Panics
    ///
    /// Panics where a sending thread does.
    pub fn trial(&mut self, request: &str, progress: &dyn Fn(f64) -> ControlFlow<()>) -> Result<Outcome> {
        let request = Request::parse(request, self.ports.len())?;
        let mut templates = Vec::new();
        let mut plans = Vec::new();
        for (index, stream) in request.streams.iter().enumerate() {
            let frames = Templates::new(&stream.flows)?;
            plans.push(Plan::new(&request, index, &frames)?);
            templates.push(frames);
        }
        let sending: Vec<Sending<'_>> = (0..plans.len())
            .map(|index| Sending {
                stream: index as u8,
                port: request.streams[index].port,
                plan: &plans[index],
                templates: &templates[index],
                warmup_frames: plans[index].warmup_frames(),
                frames: plans[index].frames(),
            })
            .collect();
        self.expect(&request, &plans)?;

        let control = Control::default();
        let end_ns = plans.iter().map(Plan::end).max().unwrap_or(0) / TICKS_PER_NS;
        let whole_s = end_ns as f64 / 1e9 + request.wait_s;
        let began = Instant::now();
        let listen = || match progress((began.elapsed().as_secs_f64() / whole_s).min(1.0)) {
            ControlFlow::Break(()) => control.stop.store(true, Ordering::Release),
            ControlFlow::Continue(()) => {}
        };
        let start_ns = clock::monotonic_ns() + LEAD_NS;
        let sent = self.send(&request, &sending, start_ns, &control, &listen)?;
        let (settled_s, received) = self.settle(request.wait_s, &control, &listen)?;
        Ok(outcome(&request, &plans, &sent, &received, settled_s, control.stop.load(Ordering::Acquire)))
    }

    fn expect(&mut self, request: &Request, plans: &[Plan]) -> Result<()> {
        for (index, port) in self.ports.iter_mut().enumerate() {
            let here = |(_, stream): &(usize, &crate::request::Stream)| stream.to_port == index;
            let expected: Vec<_> = request
                .streams
                .iter()
                .enumerate()
                .filter(here)
                .map(|(number, stream)| Expected {
                    stream: number as u8,
                    frames: plans[number].frames(),
                    flows: stream.flows.len() as u32,
                })
                .collect();
            match &mut port.receiver {
                Some(receiver) => receiver.reset(request.trial_id, &expected)?,
                None if expected.is_empty() => {}
                None => {
                    let allowed = format!("a port that receives; `{}` is opened with receive = none", port.config.name);
                    return Err(TesterError::value("to_port", index, allowed));
                }
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        request: &Request,
        sending: &[Sending<'_>],
        start_ns: u64,
        control: &Control,
        listen: &dyn Fn(),
    ) -> Result<Vec<SentBy>> {
        for stream in sending {
            let port = &self.ports[stream.port];
            if port.config.send == config::Send::None {
                let allowed = format!("a port that sends; `{}` is opened with send = none", port.config.name);
                return Err(TesterError::value("port", stream.port, allowed));
            }
            let rate_pps = request.streams[usize::from(stream.stream)].rate_pps;
            if rate_pps < live::LEAST_PPS {
                return Err(TesterError::BackEnd {
                    port: port.config.name.clone(),
                    back_end: "live".to_owned(),
                    why: format!("{rate_pps} frames/s is below its {} frames/s", live::LEAST_PPS),
                });
            }
        }
        let (cpu, priority) = (self.config.send_cpu, self.config.priority);
        let live = self.live.as_mut().expect("every port that sends is one of it");
        let streams = sending.iter().map(|stream| usize::from(stream.stream)).collect();
        std::thread::scope(|threads| {
            let thread = threads.spawn(move || -> Result<SentBy> {
                let pinned = cpu.filter(|&cpu| thread::pin(cpu));
                let scheduling = thread::prioritise(priority);
                let (wall, busy, taken) = (clock::monotonic_ns(), clock::thread_cpu_ns(), thread::preemptions());
                let report = live.send(sending, request.trial_id, start_ns, control)?;
                let wall = clock::monotonic_ns() - wall;
                Ok(SentBy {
                    report,
                    streams,
                    scheduling,
                    pinned,
                    busy_ratio: (clock::thread_cpu_ns() - busy) as f64 / wall.max(1) as f64,
                    preemptions: thread::preemptions() - taken,
                })
            });
            let mut reported = Instant::now();
            while !thread.is_finished() {
                std::thread::sleep(LOOK);
                control.look();
                if reported.elapsed() >= REPORT {
                    reported = Instant::now();
                    listen();
                }
            }
            let sent = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(vec![sent])
        })
    }

    /// Waits until the counters stand still, at least `wait_s`; how long after the sending they last changed.
    fn settle(&mut self, wait_s: f64, control: &Control, listen: &dyn Fn()) -> Result<(f64, Vec<ReceiveReport>)> {
        let wait = Duration::from_secs_f64(wait_s).max(LEAST_SETTLED);
        let began = Instant::now();
        let (mut changed, mut reported, mut before) = (began, began, u64::MAX);
        loop {
            let mut seen = 0;
            for receiver in self.ports.iter().filter_map(|port| port.receiver.as_ref()) {
                seen += receiver.seen()?;
            }
            if seen != before {
                (before, changed) = (seen, Instant::now());
            }
            let still = changed.elapsed() >= LEAST_SETTLED && began.elapsed() >= wait;
            if still || began.elapsed() >= wait + MOST_SETTLING || control.stop.load(Ordering::Acquire) {
                break;
            }
            std::thread::sleep(LOOK);
            if reported.elapsed() >= REPORT {
                reported = Instant::now();
                listen();
            }
        }
        let settled_s = changed.duration_since(began).as_secs_f64();
        let collect = |port: &mut Port| port.receiver.as_mut().map_or(Ok(ReceiveReport::default()), |one| one.collect());
        Ok((settled_s, self.ports.iter_mut().map(collect).collect::<Result<_>>()?))
    }
}

fn not_built(port: &str, back_end: &str) -> TesterError {
    let why = "this version does not have it".to_owned();
    TesterError::BackEnd { port: port.to_owned(), back_end: back_end.to_owned(), why }
}

fn outcome(
    request: &Request,
    plans: &[Plan],
    sent: &[SentBy],
    received: &[ReceiveReport],
    settled_s: f64,
    stopped: bool,
) -> Outcome {
    let nothing = Received::default();
    let mut streams = vec![None; plans.len()];
    for by in sent {
        for (&index, one) in by.streams.iter().zip(&by.report.streams) {
            let here = received[request.streams[index].to_port].streams.iter();
            let arrived = here.clone().find(|arrived| usize::from(arrived.stream) == index).unwrap_or(&nothing);
            streams[index] =
                Some(summarise(&plans[index], one, arrived, by.report.start_ns, request.max_lost_runs));
        }
    }
    let first = &sent[0];
    let begin_ns = first.report.start_ns + plans[0].start() / TICKS_PER_NS;
    let since_ns = clock::monotonic_ns() - begin_ns.min(clock::monotonic_ns());
    Outcome {
        streams: streams.into_iter().flatten().collect(),
        foreign_frames: received.iter().map(|report| report.foreign).sum(),
        settled_s,
        back_end: json!({
            "batch_frames": first.report.batch,
            "scheduling": first.scheduling,
            "send_cpu": first.pinned,
            "refused_frames": first.report.refused,
            "stale_frames": received.iter().map(|report| report.stale).sum::<u64>(),
            "misrouted_frames": received.iter().map(|report| report.misrouted).sum::<u64>(),
        }),
        cpu: Cpu { send_busy_ratio: first.busy_ratio, send_preemptions: first.preemptions },
        clock: Clock {
            monotonic_s: begin_ns as f64 / 1e9,
            realtime_s: (clock::realtime_ns() - since_ns) as f64 / 1e9,
        },
        stopped,
    }
}
