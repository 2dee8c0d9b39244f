//! The ports of a tester: which back ends each interface offers and which one sends a trial.
//!
//! | `send` | a veth, a trial of frequent frames | a veth, rare frames | another driver |
//! |---|---|---|---|
//! | `auto` | live | `af_packet` | `af_xdp` where the driver has it in zero-copy, else `af_packet` |
//! | another | that one or an error | that one or an error | that one or an error |
//!
//! For receiving, `auto` is XDP. Where eBPF cannot be used, `auto` is `af_packet` in both directions, and the facts
//! give the reason.

use serde_json::{Value, json};

use crate::config::{self, Config};
use crate::error::{Result, TesterError};
use crate::live::{self, Live, Place};
use crate::plan::{Plan, TICKS_PER_NS};
use crate::port::{Receiver, Sender};
use crate::programs::{self, Loaded};
use crate::ring::{self, PacketReceiver, PacketSender, Receiving, XdpSender};
use crate::sink::Sink;
use crate::sys::interface::{self, Interface};
use crate::sys::{capabilities, netns, thread};

/// Largest gap between two frames of the kernel's generator, which keeps its core busy from frame to frame.
const LARGEST_GAP_NS: u64 = 50_000_000;

/// An open port.
pub struct Port {
    /// Its configuration.
    pub config: config::Port,
    /// The kernel's facts about its interface.
    pub interface: Interface,
    /// How it receives.
    pub receiver: Option<Box<dyn Receiver>>,
    /// The ring that sends what the kernel's generator does not.
    pub ring: Option<Box<dyn Sender>>,
    /// Whether the kernel's generator may send here.
    pub live: bool,
    /// Reasons against faster back ends.
    why: Vec<String>,
    /// Reason against the back ends of eBPF, where they would be chosen.
    no_ebpf: Option<String>,
}

/// A way to send or to receive.
#[derive(Debug, Clone, serde::Serialize)]
pub struct BackEnd {
    /// Its name in configurations.
    pub name: &'static str,
    /// `"send"` or `"receive"`.
    pub task: &'static str,
    /// Why this process cannot use it on this machine, whatever the interface; `None` where it can.
    pub why_not: Option<String>,
}

/// Tries every back end as far as possible without an interface.
#[must_use]
pub fn back_ends() -> Vec<BackEnd> {
    let missing = capabilities::missing(false);
    let lacking = if missing.is_empty() { None } else { Some(TesterError::Rights { missing }.to_string()) };
    let no_ebpf = lacking.clone().or_else(programs::obstacle);
    let entry = |name, task, known: &Option<String>, tried: fn() -> Result<()>| {
        let why_not = known.clone().or_else(|| tried().err().map(|error| error.to_string()));
        BackEnd { name, task, why_not }
    };
    vec![
        entry("live", "send", &no_ebpf, || Loaded::new("generate", |_| {}).map(drop)),
        entry("af_xdp", "send", &lacking, ring::try_xdp),
        entry("af_packet", "send", &lacking, ring::try_packet),
        entry("xdp", "receive", &no_ebpf, || Loaded::new("receive", |_| {}).map(drop)),
        entry("af_packet", "receive", &lacking, ring::try_packet),
    ]
}

/// All ports and the generator that they share.
#[expect(clippy::struct_field_names, reason = "the ports of the ports")]
pub struct Ports {
    /// In the order of the configuration.
    pub ports: Vec<Port>,
    /// The generator in the kernel, where a port uses it.
    pub live: Option<Live>,
    /// Reasons why eBPF does not send or does not receive, where the tester chooses the back ends.
    pub no_ebpf: Option<String>,
}

impl Ports {
    /// Opens every port.
    ///
    /// # Errors
    ///
    /// A requested interface or back end does not exist, or the kernel refuses.
    pub fn open(config: &Config) -> Result<Self> {
        let is_auto = |port: &config::Port| port.send == config::Send::Auto || port.receive == config::Receive::Auto;
        let no_ebpf = if config.ports.iter().any(is_auto) { programs::obstacle() } else { None };
        let no_ebpf = no_ebpf.map(|why| format!("eBPF cannot be used here: {why}"));
        let open = |port| Port::open(port, config, no_ebpf.as_deref());
        let mut ports = config.ports.iter().map(open).collect::<Result<Vec<_>>>()?;
        let place = |(index, port): (usize, &Port)| Place {
            port: index,
            index: port.interface.index,
            mtu: port.interface.mtu,
            netns: port.config.netns.clone(),
        };
        let places: Vec<_> = ports.iter().enumerate().filter(|(_, port)| port.live).map(place).collect();
        let live = match if places.is_empty() { None } else { Some(Live::new(places)) } {
            // If the tester chose it, there is a ring beside it.
            Some(Err(error)) if ports.iter().all(|port| !port.live || port.ring.is_some()) => {
                for port in ports.iter_mut().filter(|port| port.live) {
                    port.live = false;
                    port.no_ebpf = Some(format!("live frames cannot be sent: {error}"));
                }
                None
            }
            tried => tried.transpose()?,
        };
        let no_ebpf = no_ebpf.or_else(|| ports.iter().find_map(|port| port.no_ebpf.clone()));
        Ok(Self { ports, live, no_ebpf })
    }

    /// Back ends, drivers and modes of every port.
    #[must_use]
    pub fn facts(&self) -> Value {
        let facts = |port: &Port| {
            let live = self.live.as_ref().filter(|_| port.live).map(Sender::facts);
            let ring = port.ring.as_ref().map(|ring| ring.facts());
            json!({
                "name": port.config.name,
                "netns": port.config.netns,
                "interface": port.interface,
                "send": live.into_iter().chain(ring).collect::<Vec<_>>(),
                "receive": port.receiver.as_ref().map(|receiver| receiver.facts()),
                "why": port.why.iter().chain(&port.no_ebpf).collect::<Vec<_>>(),
            })
        };
        self.ports.iter().map(facts).collect()
    }

    /// Frames that each interface has received and sent, as the kernel counts them.
    ///
    /// # Errors
    ///
    /// A namespace has gone.
    pub fn kernel_frames(&self) -> Result<Vec<Option<(u64, u64)>>> {
        let read = |port: &Port| {
            let name = &port.interface.name;
            netns::inside(port.config.netns.as_deref(), || Ok(interface::frames(name)))
        };
        self.ports.iter().map(read).collect()
    }

    /// Whether the kernel's generator sends these plans of a port.
    ///
    /// # Errors
    ///
    /// The port sends by it only, and the frames are too rare; or the port does not send.
    pub fn sends_live(&self, port: usize, plans: &[&Plan]) -> Result<bool> {
        let port = &self.ports[port];
        if !port.live && port.ring.is_none() {
            let allowed = format!("a port that sends; `{}` is opened with send = none", port.config.name);
            return Err(TesterError::value("port", &port.config.name, allowed));
        }
        let least_pps = self.live.as_ref().map_or(f64::INFINITY, |live| live.range_pps().0);
        let busiest = plans.iter().map(|plan| rate_and_gap(plan)).max_by(|a, b| a.0.total_cmp(&b.0));
        let frequent = busiest.is_some_and(|(pps, gap_ns)| pps >= least_pps && gap_ns <= LARGEST_GAP_NS);
        if port.live && !frequent && port.ring.is_none() {
            return Err(TesterError::BackEnd {
                port: port.config.name.clone(),
                back_end: "live".to_owned(),
                why: "frames so far apart would hold its core in the kernel; use send = auto or af_packet".to_owned(),
            });
        }
        // A generator without a ring beside it reports too long frames itself.
        let short = plans.iter().all(|plan| live::longest_octets(plan) <= live::LONGEST_OCTETS);
        Ok(port.live && frequent && (short || port.ring.is_none()))
    }
}

/// Frames per second of a plan, and the largest distance of two, ns.
fn rate_and_gap(plan: &Plan) -> (f64, u64) {
    let largest = plan.slots().iter().map(|slot| slot.gap).max().unwrap_or(0) / TICKS_PER_NS;
    let span_s = (plan.end() - plan.start()).max(1) as f64 / TICKS_PER_NS as f64 / 1e9;
    (plan.frames() as f64 / span_s, largest)
}

impl Port {
    fn open(port: &config::Port, config: &Config, no_ebpf: Option<&str>) -> Result<Self> {
        let netns = port.netns.as_deref();
        let interface = netns::inside(netns, || Interface::find(&port.interface, netns))?;
        let mut opened = Self {
            config: port.clone(),
            interface,
            receiver: None,
            ring: None,
            live: false,
            why: Vec::new(),
            no_ebpf: no_ebpf.map(str::to_owned),
        };
        opened.receiver = opened.open_receiver(config)?;
        opened.open_senders(no_ebpf.is_none())?;
        Ok(opened)
    }

    fn open_receiver(&mut self, config: &Config) -> Result<Option<Box<dyn Receiver>>> {
        let (interface, netns) = (self.interface.clone(), self.config.netns.clone());
        let is_beside = config.receive_cpu.is_some() && config.receive_cpu == config.send_cpu;
        let priority = if is_beside { thread::above(config.priority) } else { config.priority };
        let how = Receiving { cpu: config.receive_cpu, priority, timestamps: config.timestamps };
        let ring = |interface: &Interface| -> Result<Option<Box<dyn Receiver>>> {
            let opened = netns::inside(netns.as_deref(), || PacketReceiver::open(interface, how))?;
            Ok(Some(Box::new(opened)))
        };
        match self.config.receive {
            config::Receive::None => Ok(None),
            config::Receive::AfPacket => ring(&interface),
            // Only a ring reads time stamps of the interface's own clock.
            config::Receive::Auto if config.timestamps == config::Timestamps::Hardware => {
                self.why.push("af_packet receives, because hardware time stamps were asked for".to_owned());
                ring(&interface)
            }
            config::Receive::Xdp => Ok(Some(Box::new(Sink::open(interface, netns.clone())?))),
            config::Receive::Auto if self.no_ebpf.is_some() => ring(&interface),
            config::Receive::Auto => match Sink::open(interface.clone(), netns.clone()) {
                Ok(sink) => Ok(Some(Box::new(sink))),
                Err(error @ TesterError::Occupied { .. }) => Err(error),
                Err(error) => {
                    self.no_ebpf = Some(format!("XDP cannot receive: {error}"));
                    ring(&interface)
                }
            },
        }
    }

    fn open_senders(&mut self, ebpf: bool) -> Result<()> {
        let (interface, netns) = (self.interface.clone(), self.config.netns.clone());
        let packet = || -> Result<Option<Box<dyn Sender>>> {
            let opened = netns::inside(netns.as_deref(), || PacketSender::open(&interface))?;
            Ok(Some(Box::new(opened)))
        };
        let xdp = || -> Result<Option<Box<dyn Sender>>> {
            let opened = netns::inside(netns.as_deref(), || XdpSender::open(&interface))?;
            Ok(Some(Box::new(opened)))
        };
        match self.config.send {
            config::Send::None => {}
            config::Send::Live => self.live = true,
            config::Send::AfXdp => self.ring = xdp()?,
            config::Send::AfPacket => self.ring = packet()?,
            config::Send::Auto if interface.driver == "veth" => {
                self.live = ebpf;
                self.ring = packet()?;
                if ebpf {
                    self.why.push("live frames are the fastest on veth; af_packet sends what is rare".to_owned());
                }
            }
            config::Send::Auto => match xdp() {
                Ok(sender) if sender.as_ref().is_some_and(|sender| sender.facts()["mode"] == "zero-copy") => {
                    self.ring = sender;
                    self.why.push("af_xdp in zero-copy mode".to_owned());
                }
                Ok(_) => {
                    self.ring = packet()?;
                    self.why.push("af_packet sends, because the driver has no zero-copy AF_XDP".to_owned());
                }
                Err(error) => {
                    self.ring = packet()?;
                    self.why.push(format!("af_packet sends, because AF_XDP cannot: {error}"));
                }
            },
        }
        Ok(())
    }
}
