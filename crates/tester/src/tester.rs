//! Opening a tester and running trials on it.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::config::Config;
use crate::error::{Result, TesterError};
use crate::frame::Templates;
use crate::outcome::{Clock, Cpu, Outcome, OverTime};
use crate::parts::{self, Grid};
use crate::plan::{Plan, TICKS_PER_NS};
use crate::port::{Control, Expected, ReceiveReport, Received, Sending};
use crate::ports::{Port, Ports};
use crate::request::Request;
use crate::sending::{self, SentBy, Threads};
use crate::summary::summarise;
use crate::sys::thread::AwayFrom;
use crate::sys::{capabilities, clock, lock};

/// How often waiting threads look at senders and receivers.
const LOOK: Duration = Duration::from_millis(10);
/// How often progress is reported.
const REPORT: Duration = Duration::from_millis(50);
/// How long before the first frame the set-up ends.
const LEAD_NS: u64 = 30_000_000;
/// Least time for which the counters must not change, even if the request sets no wait.
const LEAST_SETTLED: Duration = Duration::from_millis(20);
/// Counters that still change after the wait and this time are read as they are.
const MOST_SETTLING: Duration = Duration::from_secs(2);

/// How long to wait for another trial on the same core.
const PATIENCE: Duration = Duration::from_secs(120);
/// Frames that the receiving ring of a veth port holds (`VETH_RING_SIZE` of Linux).
const RING_FRAMES: u64 = 256;

/// Ports of this machine that send and receive test frames.
pub struct Tester {
    config: Config,
    ports: Ports,
}

impl Tester {
    /// Opens the ports of a configuration in JSON: loads programs, opens sockets, attaches receivers.
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
        Ok(Self { ports: Ports::open(&config)?, config })
    }

    /// Facts: back ends and the reasons for them, drivers, modes, time stamps, kernel.
    #[must_use]
    pub fn facts(&self) -> Value {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        json!({
            "ports": self.ports.facts(),
            "no_ebpf": self.ports.no_ebpf,
            "kernel": kernel.trim(),
            "send_cpu": self.config.send_cpu,
            "priority": self.config.priority,
            "real_time": capabilities::may_prioritise(),
            "latency": "from the time stamp written just before the frame is handed to the interface until the \
                        receiver sees it",
        })
    }

    /// Configured core of the sending thread.
    #[must_use]
    pub fn send_cpu(&self) -> Option<usize> {
        self.config.send_cpu
    }

    /// Runs one trial. `progress` is called about every 50 ms with the finished share; `Break` in it stops the trial.
    ///
    /// # Errors
    ///
    /// The request is wrong, or the kernel refuses.
    pub fn trial(&mut self, request: &str, progress: &dyn Fn(f64) -> ControlFlow<()>) -> Result<Outcome> {
        let request = Request::parse(request, self.ports.ports.len())?;
        let mut templates = Vec::new();
        let mut plans = Vec::new();
        for (index, stream) in request.streams.iter().enumerate() {
            let frames = Templates::new(&stream.flows, &stream.encapsulation)?;
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
            })
            .collect();
        let live = self.choose(&sending)?;
        let control = Control::default();
        let end_ns = plans.iter().map(Plan::end).max().unwrap_or(0) / TICKS_PER_NS;
        let total_s = end_ns as f64 / 1e9 + request.wait_s;
        let began = Instant::now();
        let listen = || match progress((began.elapsed().as_secs_f64() / total_s).min(1.0)) {
            ControlFlow::Break(()) => control.stop.store(true, Ordering::Release),
            ControlFlow::Continue(()) => {}
        };
        let give_up = || {
            listen();
            control.stop.load(Ordering::Acquire)
        };
        let _away = AwayFrom::core(self.config.send_cpu);
        let alone = self.config.send_cpu.map(|cpu| lock::alone(cpu, PATIENCE, &give_up));
        self.expect(&request, &plans)?;
        let threads = Threads {
            cpu: self.config.send_cpu,
            priority: self.config.priority,
            trial: request.trial_id,
            start_ns: clock::monotonic_ns() + LEAD_NS,
            look: LOOK,
            report: REPORT,
        };
        let start = plans.iter().map(Plan::start).min().unwrap_or(0);
        let grid = Grid::new(threads.start_ns + start / TICKS_PER_NS, request.duration_s);
        for receiver in self.ports.ports.iter_mut().filter_map(|port| port.receiver.as_mut()) {
            receiver.begins(grid)?;
        }
        let before = self.ports.kernel_frames()?;
        let sent = sending::run(&mut self.ports, &sending, &live, &threads, &control, &listen)?;
        let (settled_s, received) = self.settle(request.wait_s, &control, &listen)?;
        let kernel = self.kernel_frames_since(&before, &sent, &live, &request)?;
        let mut outcome = outcome(&request, &plans, &sent, &received, settled_s, control.stop.load(Ordering::Acquire));
        if request.over_time {
            outcome.over_time = over_time(&request, grid, &plans, &sent, &received);
        }
        outcome.back_end["kernel_frames"] = kernel;
        outcome.back_end["waited_s"] = json!(alone.map_or(0.0, |alone| alone.waited.as_secs_f64()));
        Ok(outcome)
    }

    /// Whether the kernel's generator sends for each port.
    fn choose(&self, sending: &[Sending<'_>]) -> Result<Vec<bool>> {
        let mut live = vec![false; self.ports.ports.len()];
        for stream in sending {
            let here = sending.iter().filter(|other| other.port == stream.port);
            live[stream.port] =
                self.ports.sends_live(stream.port, &here.map(|sending| sending.plan).collect::<Vec<_>>())?;
        }
        Ok(live)
    }

    /// Resets the receivers to the streams of a request.
    fn expect(&mut self, request: &Request, plans: &[Plan]) -> Result<()> {
        for (index, port) in self.ports.ports.iter_mut().enumerate() {
            let streams = request.streams.iter().enumerate().filter(|(_, stream)| stream.to_port == index);
            let expected: Vec<_> = streams
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

    /// The kernel's counters at each port; an error if the port did not take the frames of the kernel's generator.
    ///
    /// A device takes at least the frames that its receiving ring holds, however slow it is.
    fn kernel_frames_since(
        &self,
        before: &[Option<(u64, u64)>],
        sent: &[SentBy],
        live: &[bool],
        request: &Request,
    ) -> Result<Value> {
        let mut counted = Vec::new();
        for (index, (now, then)) in self.ports.kernel_frames()?.iter().zip(before).enumerate() {
            let port = &self.ports.ports[index];
            let Some(((received, transmitted), then)) = now.zip(*then) else {
                counted.push(json!({"port": port.config.name, "received": null, "transmitted": null}));
                continue;
            };
            let (received, transmitted) = (received.saturating_sub(then.0), transmitted.saturating_sub(then.1));
            let reports = sent.iter().flat_map(|by| by.streams.iter().zip(&by.report.streams));
            let of_port = reports.filter(|&(&stream, _)| request.streams[stream].port == index);
            let frames: u64 = of_port.map(|(_, sent)| sent.frames).sum();
            if live[index] && frames > 100 && transmitted < (frames / 100).min(RING_FRAMES / 4) {
                return Err(TesterError::BackEnd {
                    port: port.config.name.clone(),
                    back_end: "live".to_owned(),
                    why: format!(
                        "`{}` took {transmitted} of {frames} frames. It must be up, and the other end of a veth needs \
                         NAPI: attach an XDP program there or say `ethtool -K PEER gro on`",
                        port.config.interface
                    ),
                });
            }
            counted.push(json!({"port": port.config.name, "received": received, "transmitted": transmitted}));
        }
        Ok(Value::Array(counted))
    }

    /// Waits until the counters no longer change, at least `wait_s`; returns how long after the sending they last
    /// changed.
    fn settle(&mut self, wait_s: f64, control: &Control, listen: &dyn Fn()) -> Result<(f64, Vec<ReceiveReport>)> {
        let wait = Duration::from_secs_f64(wait_s).max(LEAST_SETTLED);
        let began = Instant::now();
        let (mut changed, mut reported, mut before) = (began, began, u64::MAX);
        loop {
            let mut seen = 0;
            for receiver in self.ports.ports.iter().filter_map(|port| port.receiver.as_ref()) {
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
        let collect = |port: &mut Port| match &mut port.receiver {
            Some(receiver) => receiver.collect(),
            None => Ok(ReceiveReport::default()),
        };
        Ok((settled_s, self.ports.ports.iter_mut().map(collect).collect::<Result<_>>()?))
    }
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
        for (&index, sent) in by.streams.iter().zip(&by.report.streams) {
            let mut here = received[request.streams[index].to_port].streams.iter();
            let arrived = here.find(|arrived| usize::from(arrived.stream) == index).unwrap_or(&nothing);
            streams[index] = Some(summarise(&plans[index], sent, arrived, by.report.start_ns, request.max_lost_runs));
        }
    }
    let start_ns = sent.iter().map(|by| by.report.start_ns).min().unwrap_or(0);
    let begin_ns = start_ns + plans.iter().map(Plan::start).min().unwrap_or(0) / TICKS_PER_NS;
    let since_ns = clock::monotonic_ns().saturating_sub(begin_ns);
    let others = |of: fn(&ReceiveReport) -> u64| received.iter().map(of).sum::<u64>();
    Outcome {
        streams: streams.into_iter().flatten().collect(),
        foreign_frames: others(|report| report.foreign),
        settled_s,
        back_end: json!({
            "batch_frames": sent.iter().map(|by| by.report.batch).max(),
            "senders": sent.iter().map(SentBy::facts).collect::<Vec<_>>(),
            "refused_frames": sent.iter().map(|by| by.report.refused).sum::<u64>(),
            "stale_frames": others(|report| report.stale),
            "misrouted_frames": others(|report| report.misrouted),
            "overrun_frames": others(|report| report.overrun),
        }),
        cpu: Cpu {
            send_busy_ratio: sent.iter().map(|by| by.busy_ratio).fold(0.0, f64::max),
            send_preemptions: sent.iter().map(|by| by.preemptions).sum(),
        },
        clock: Clock { monotonic_s: begin_ns as f64 / 1e9, realtime_s: (clock::realtime_ns() - since_ns) as f64 / 1e9 },
        stopped,
        over_time: None,
    }
}

/// Frames of all streams by part; `None` where one began too late to be counted so.
fn over_time(
    request: &Request,
    grid: Grid,
    plans: &[Plan],
    sent: &[SentBy],
    received: &[ReceiveReport],
) -> Option<OverTime> {
    let add = |sums: &mut Vec<u64>, more: &[u64]| sums.iter_mut().zip(more).for_each(|(sum, term)| *sum += term);
    let none = || vec![0; parts::PARTS];
    let mut over_time = OverTime {
        part_s: request.duration_s / parts::PARTS as f64,
        sent_frames: none(),
        received_frames: none(),
        lost_frames: none(),
        received_after_frames: 0,
    };
    for by in sent {
        for (&index, sent) in by.streams.iter().zip(&by.report.streams) {
            let plan = &plans[index];
            let mut here = received[request.streams[index].to_port].streams.iter();
            let arrived = here.find(|arrived| usize::from(arrived.stream) == index)?;
            let (due, lost) = parts::sent_and_lost(grid, plan, sent.frames, &arrived.bitmap);
            let begin_ns = by.report.start_ns + plan.start() / TICKS_PER_NS;
            let (in_parts, after) = parts::received(grid, begin_ns, &arrived.parts)?;
            add(&mut over_time.sent_frames, &due);
            add(&mut over_time.lost_frames, &lost);
            add(&mut over_time.received_frames, &in_parts);
            over_time.received_after_frames += after;
        }
    }
    Some(over_time)
}
