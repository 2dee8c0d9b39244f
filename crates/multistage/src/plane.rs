//! The eBPF programs of a load balancer and of the back-end routers behind it, and their maps.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use aya::Ebpf;
use aya::maps::{Array, HashMap, Map, MapData, PerCpuArray};
use routecast_tester::programs::{self, Mode, map_error};
use routecast_tester::sys::clock::monotonic_ns;
use routecast_tester::sys::interface::Interface;
use routecast_tester::sys::mapping::Mapping;
use routecast_tester::sys::netns;
use routecast_tester::{Result, TesterError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::loss::share_of;
use crate::table::{MEMBERS, ROWS, Table, Weight, digest};

/// An address of a link.
pub type Mac = [u8; 6];

/// The structures in the maps of the eBPF programs; they mirror those of `bpf/balance.bpf.c` and `bpf/member.bpf.c`.
mod maps {
    use super::Mac;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Settings {
        pub silence_ns: u64,
        pub alone_ns: u64,
        pub unanswered: u64,
        pub probes: u64,
        pub returns: u64,
        pub hold_ns: u64,
        pub verdicts: u64,
        pub scheme: u64,
        pub probe_source: [u8; 4],
        pub probe_destination: [u8; 4],
        pub inside_index: u32,
        pub inside_mtu: u32,
        pub inside_mac: Mac,
        pub has_probe6: u8,
        pub has_other6: u8,
        pub probe_source6: [u8; 16],
        pub other_source6: [u8; 16],
        pub other_source: [u8; 4],
        pub pad: [u8; 4],
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default)]
    pub struct RoleAndLoss {
        pub role: u64,
        pub loss: u64,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug)]
    pub struct Paths {
        pub returned: [u64; super::PATHS],
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Member {
        pub mac: Mac,
        pub belongs: u8,
        pub is_silent: u8,
        pub idle_ns: u64,
        pub deadline_ns: u64,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Port {
        pub mac: Mac,
        pub local: u8,
        pub number: u8,
        pub index: u32,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Tally {
        pub frames: u64,
        pub octets: u64,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Neighbour {
        pub index: u32,
        pub mac: Mac,
        pub port: u8,
        pub pad: u8,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Health {
        pub sent: u64,
        pub returned: u64,
        pub noted: u64,
        pub noted_ns: u64,
        pub noted_others: u64,
        pub probe_ns: u64,
        pub probing: u64,
        pub dead: u64,
        pub dead_ns: u64,
        pub alive_ns: u64,
        pub answers: u64,
        pub answer_ns: u64,
        pub hold_ns: u64,
        pub deaths: u64,
        pub revivals: u64,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Limits {
        pub service_ns: u64,
        pub queue: u64,
        pub hangs: u64,
        pub loss: u64,
        pub forwards: u64,
    }
}

#[allow(unsafe_code, reason = "a promise on the layout of these structures, which only this file can check")]
mod plain {
    // SAFETY: `repr(C)` of integers and octets, padded by name.
    unsafe impl aya::Pod for super::maps::Settings {}
    // SAFETY: the same.
    unsafe impl aya::Pod for super::maps::Member {}
    // SAFETY: the same.
    unsafe impl aya::Pod for super::maps::Port {}
    // SAFETY: the same.
    unsafe impl aya::Pod for super::maps::Tally {}
    // SAFETY: the same.
    unsafe impl aya::Pod for super::maps::Neighbour {}
    // SAFETY: the same.
    unsafe impl aya::Pod for super::maps::Health {}
    // SAFETY: the same.
    unsafe impl aya::Pod for super::maps::Limits {}
    // SAFETY: the same.
    unsafe impl aya::Pod for super::maps::Paths {}
    // SAFETY: the same.
    unsafe impl aya::Pod for super::maps::RoleAndLoss {}
}

/// Names of the frames and the octets of each counter, by number.
const MEMBER_COUNTERS: [(&str, Option<&str>); 4] = [
    ("sent_frames", Some("sent_octets")),
    ("returned_frames", Some("returned_octets")),
    ("probes_sent", None),
    ("probes_returned", None),
];
const REASONS: [&str; 6] = ["no_member", "to_kernel", "unknown_neighbour", "malformed", "no_room", "rerouted"];
const PORT_COUNTERS: [(&str, Option<&str>); 2] = [("in_frames", Some("in_octets")), ("out_frames", Some("out_octets"))];
/// Slots of the array of ports, and how many an interface may try: its index gives the first one.
const PLACES: u32 = 256;
const NEXT_PLACES: u32 = 4;
/// The number of the interface to the members among the counters of answers.
const INSIDE: u32 = 64;
/// Paths of a member that own frames can tell apart.
const PATHS: usize = 64;
const ROLES: [&str; 3] = ["works", "stands_by", "hangs"];
const GATE_COUNTERS: [&str; 5] = ["to_kernel", "over_the_cap", "hung", "in_xdp", "lost"];

/// Which back-end router a frame goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// The router of its flow's row.
    FlowHash,
    /// The router of the next row.
    RoundRobin,
    /// The router of the interface on which the frame arrived.
    LocalOnly,
}

/// The role of a load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It forwards.
    Works,
    /// It drops all frames, and checks whether the active one answers.
    StandsBy,
    /// It drops everything silently: an emulated fault.
    Hangs,
}

/// The failure detector's settings; `docs/adr/0015-multistage.md` says what each does.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detector {
    /// T: how long a member is silent while others return frames, s.
    pub silence_s: f64,
    /// The same where no other member returns anything, s.
    pub alone_s: f64,
    /// N: unanswered frames before the clock is read.
    pub unanswered: u64,
    /// Unanswered probes before a verdict.
    pub probes: u64,
    /// Answered probes before a revival.
    pub returns: u64,
    /// Least time that a member stays dead, s.
    pub hold_s: f64,
    /// Largest number of verdicts in a second.
    pub verdicts_per_s: u64,
}

/// An interface to neighbours.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortConfig {
    interface: String,
    mac: Mac,
    /// Member of the scheme "local only".
    #[serde(default)]
    local: u8,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// Path of the network namespace; `None`: that of the calling thread.
    #[serde(default)]
    netns: Option<String>,
    scheme: Scheme,
    detector: Detector,
    outside: Vec<PortConfig>,
    /// The interface to the members, its MAC address, and its longest packet, octets.
    inside: String,
    inside_mac: Mac,
    inside_mtu: u32,
    /// Source and destination addresses of the load balancer's probes.
    probe: [[u8; 4]; 2],
    /// Source address of its own frames in IPv6.
    #[serde(default)]
    probe6: Option<[u8; 16]>,
    /// The sources of the other load balancer's own frames: they are taken neither from neighbours nor to them.
    #[serde(default)]
    other_probe: Option<[u8; 4]>,
    #[serde(default)]
    other_probe6: Option<[u8; 16]>,
    /// Folder in a BPF file system where programs and maps are pinned; a later process reuses what is pinned there.
    #[serde(default)]
    pins: Option<PathBuf>,
    /// Members and seed of the table in use, where pinned programs are reused.
    #[serde(default)]
    in_use: Option<(Vec<(u8, f64)>, u64)>,
}

fn wrong(error: &serde_json::Error) -> TesterError {
    TesterError::Text { place: "config", message: error.to_string() }
}

pub(crate) fn refused(error: &(dyn std::error::Error + 'static)) -> TesterError {
    map_error("reading or writing a map of the load balancer", error)
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn key_of(mac: Mac) -> u64 {
    u64::from_ne_bytes([mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], 0, 0])
}

fn mac_of(key: u64) -> Mac {
    let [first, second, third, fourth, fifth, sixth, ..] = key.to_ne_bytes();
    [first, second, third, fourth, fifth, sixth]
}

/// An IPv6 address unchanged; an IPv4 address in the last four octets.
fn octets_of(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => {
            let mut octets = [0; 16];
            octets[12..].copy_from_slice(&address.octets());
            octets
        }
    }
}

/// The source of the maps: an object that this process loaded, or files in a BPF file system.
pub(crate) enum Source {
    Loaded(Box<Ebpf>),
    Pinned(PathBuf),
}

impl Source {
    /// Loads an object and pins its maps in a folder, or opens what an earlier process pinned there. `links` are the
    /// names of the files that hold its programs: if one is missing, nothing is reused.
    pub(crate) fn new(name: &str, programs: &[&str], pins: Option<&Path>, links: &[String]) -> Result<Self> {
        let Some(folder) = pins else {
            return Ok(Self::Loaded(Box::new(programs::load(name, programs, |_| {})?)));
        };
        if links.iter().all(|link| folder.join(link).exists()) {
            return Ok(Self::Pinned(folder.to_owned()));
        }
        let failed = |what: &'static str| move |error| TesterError::System { what: what.to_owned(), error };
        if folder.exists() {
            std::fs::remove_dir_all(folder)
                .map_err(failed("removing what is left of an earlier process's eBPF programs"))?;
        }
        std::fs::create_dir(folder).map_err(failed("making the folder of eBPF programs"))?;
        let ebpf = programs::load(name, programs, |_| {})?;
        for (name, map) in ebpf.maps() {
            // The compiler's sections for constants and zeroes have a dot in their names, which a pin must not have.
            if !name.contains('.') {
                map.pin(folder.join(name)).map_err(|error| refused(&error))?;
            }
        }
        Ok(Self::Loaded(Box::new(ebpf)))
    }

    fn map(&mut self, name: &str, kind: fn(MapData) -> Map) -> Result<Map> {
        match self {
            Self::Loaded(ebpf) => Ok(ebpf.take_map(name).expect("the object and this crate are built together")),
            Self::Pinned(folder) => MapData::from_pin(folder.join(name)).map(kind).map_err(|error| refused(&error)),
        }
    }

    pub(crate) fn array<V: aya::Pod>(&mut self, name: &str) -> Result<Array<MapData, V>> {
        Array::try_from(self.map(name, Map::Array)?).map_err(|error| refused(&error))
    }

    /// An array in memory shared with the programs: writing it needs no system call per value.
    fn mapped(&mut self, name: &str, values: usize) -> Result<Mapping<u64>> {
        let Map::Array(array) = self.map(name, Map::Array)? else {
            return Err(TesterError::value("map", name, "an array"));
        };
        Mapping::new(array.fd().as_fd(), values)
    }

    fn counters<V: aya::Pod>(&mut self, name: &str) -> Result<PerCpuArray<MapData, V>> {
        PerCpuArray::try_from(self.map(name, Map::PerCpuArray)?).map_err(|error| refused(&error))
    }

    fn table<K: aya::Pod, V: aya::Pod>(&mut self, name: &str) -> Result<HashMap<MapData, K, V>> {
        HashMap::try_from(self.map(name, Map::HashMap)?).map_err(|error| refused(&error))
    }

    /// Attaches a program of a loaded object; a pinned program is already attached.
    pub(crate) fn attach(&mut self, program: &str, interface: &Interface, pin: Option<&Path>) -> Result<Option<Mode>> {
        let Self::Loaded(ebpf) = self else { return Ok(None) };
        let xdp = programs::xdp(ebpf, program)?;
        let (index, name) = (interface.index, &interface.name);
        match pin {
            Some(pin) => programs::attach_pinned(xdp, program, index, name, pin),
            None => programs::attach(xdp, program, index, name),
        }
        .map(Some)
    }

    /// The object that must live as long as its programs run.
    pub(crate) fn kept(self, pins: Option<&Path>) -> Option<Box<Ebpf>> {
        match self {
            Self::Loaded(ebpf) if pins.is_none() => Some(ebpf),
            _ => None,
        }
    }
}

/// A load balancer: its programs, attached until this is dropped (or as long as their pins are there), and their maps.
pub struct Plane {
    members: Array<MapData, maps::Member>,
    health: Array<MapData, maps::Health>,
    paths: Array<MapData, maps::Paths>,
    rows: Mapping<u64>,
    seen: Array<MapData, u64>,
    version: Array<MapData, u64>,
    heartbeat: Array<MapData, u64>,
    role: Array<MapData, maps::RoleAndLoss>,
    answers: Array<MapData, u64>,
    port_counters: PerCpuArray<MapData, maps::Tally>,
    counters: PerCpuArray<MapData, maps::Tally>,
    reasons: PerCpuArray<MapData, u64>,
    neighbours: HashMap<MapData, u64, maps::Neighbour>,
    own: HashMap<MapData, [u8; 16], u32>,
    hints: Array<MapData, u64>,
    ports: Vec<(Interface, Mac)>,
    /// The mode of the program at each interface; `None` where it was pinned.
    modes: Vec<(String, Option<Mode>)>,
    table: Table,
    ebpf: Option<Box<Ebpf>>,
}

impl Plane {
    /// Loads and attaches the programs of a configuration in JSON. Without members it drops and counts all frames.
    ///
    /// # Errors
    ///
    /// The text is wrong, an interface does not exist or has a program, or the kernel refuses.
    pub fn attach(text: &str) -> Result<Self> {
        let config: Config = serde_json::from_str(text).map_err(|error| wrong(&error))?;
        let at = config.netns.as_deref();
        let mut links = vec!["link-inside".to_owned()];
        links.extend(config.outside.iter().map(|port| format!("link-{}", port.interface)));
        let pins = config.pins.as_deref();
        let mut source = Source::new("balance", &["outside", "inside"], pins, &links)?;
        let is_pinned = matches!(source, Source::Pinned(_));
        let (inside, ports) = netns::inside(at, || {
            let inside = Interface::find(&config.inside, at)?;
            let ports: Result<Vec<_>> =
                config.outside.iter().map(|port| Ok((Interface::find(&port.interface, at)?, port.mac))).collect();
            Ok((inside, ports?))
        })?;
        let detector = config.detector;
        let settings = maps::Settings {
            silence_ns: ns(detector.silence_s),
            alone_ns: ns(detector.alone_s),
            unanswered: detector.unanswered,
            probes: detector.probes,
            returns: detector.returns,
            hold_ns: ns(detector.hold_s),
            verdicts: detector.verdicts_per_s,
            scheme: config.scheme as u64,
            probe_source: config.probe[0],
            probe_destination: config.probe[1],
            inside_index: inside.index,
            inside_mtu: config.inside_mtu,
            inside_mac: config.inside_mac,
            has_probe6: u8::from(config.probe6.is_some()),
            has_other6: u8::from(config.other_probe6.is_some()),
            probe_source6: config.probe6.unwrap_or_default(),
            other_source6: config.other_probe6.unwrap_or_default(),
            other_source: config.other_probe.unwrap_or_default(),
            pad: [0; 4],
        };
        source.array("settings")?.set(0, settings, 0).map_err(|error| refused(&error))?;
        let mut known = source.array::<maps::Port>("ports")?;
        for (number, ((interface, mac), port)) in (0..).zip(ports.iter().zip(&config.outside)) {
            let port = maps::Port { mac: *mac, local: port.local, number, index: interface.index };
            let slot = slot_of(&known, interface)?;
            known.set(slot, port, 0).map_err(|error| refused(&error))?;
        }
        let (members, seed) = config.in_use.unwrap_or_default();
        let members: Vec<_> = members.into_iter().map(|(number, weight)| Weight { number, weight }).collect();
        let mut plane = Self {
            members: source.array("members")?,
            health: source.array("health_of")?,
            paths: source.array("paths_of")?,
            rows: source.mapped("rows", 2 * ROWS)?,
            seen: source.array("seen")?,
            version: source.array("version_of")?,
            heartbeat: source.array("heartbeat")?,
            role: source.array("role_of")?,
            answers: source.array("answers")?,
            port_counters: source.counters("port_counters")?,
            counters: source.counters("counters")?,
            reasons: source.counters("reasons")?,
            neighbours: source.table("neighbours")?,
            own: source.table("own")?,
            hints: source.array("hints")?,
            modes: Vec::new(),
            table: Table::new(&members, seed),
            ports,
            ebpf: None,
        };
        if !is_pinned {
            plane.publish(&[], 0, 0)?;
        }
        let ports = &plane.ports;
        plane.modes = netns::inside(at, || {
            let pin = |link: &String| pins.map(|folder| folder.join(link));
            // The return path first, so that no forwarded frame lacks a way back.
            let mut modes = Vec::new();
            let interfaces = std::iter::once(&inside).chain(ports.iter().map(|(interface, _)| interface));
            for (interface, link) in interfaces.zip(&links) {
                let program = if modes.is_empty() { "inside" } else { "outside" };
                let mode = source.attach(program, interface, pin(link).as_deref())?;
                modes.push((interface.name.clone(), mode));
            }
            Ok(modes)
        })?;
        plane.ebpf = source.kept(pins);
        Ok(plane)
    }

    /// Writes the rows of these members into the unused half of the map, and switches to it atomically.
    ///
    /// # Errors
    ///
    /// The kernel refuses. The table in use does not change.
    pub fn publish(&mut self, members: &[Weight], seed: u64, epoch: u64) -> Result<u64> {
        let table = Table::new(members, seed);
        let before = self.version.get(&0, 0).map_err(|error| refused(&error))?;
        let half = (before & 1) ^ 1;
        for (row, &choices) in (half as usize * ROWS..).zip(&table.rows) {
            self.rows.set(row, choices);
        }
        self.version.set(0, epoch << 1 | half, 0).map_err(|error| refused(&error))?;
        self.table = table;
        Ok(self.table.digest())
    }

    /// Sets the MAC address of a member, which ends in its number. `None` removes the member and its state.
    ///
    /// # Errors
    ///
    /// The address ends in another octet, or the kernel refuses.
    pub fn set_member(&mut self, number: u8, mac: Option<Mac>) -> Result<()> {
        if usize::from(number) >= MEMBERS {
            return Err(TesterError::value("member", number, format!("0 to {}", MEMBERS - 1)));
        }
        if mac.is_some_and(|mac| mac[5] != number) {
            return Err(TesterError::value(
                format!("member {number}"),
                format!("{mac:02x?}"),
                "a MAC address that ends in its number",
            ));
        }
        let member =
            maps::Member { mac: mac.unwrap_or_default(), belongs: u8::from(mac.is_some()), ..maps::Member::default() };
        self.write_member(number, member)?;
        if mac.is_none() {
            self.health.set(u32::from(number), maps::Health::default(), 0).map_err(|error| refused(&error))?;
            let none = maps::Paths { returned: [0; PATHS] };
            self.paths.set(u32::from(number), none, 0).map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    /// Sets whether a member leaves the probes of the controlling process unanswered: it then receives no frames, like
    /// a dead one.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn set_silent(&mut self, number: u8, is_silent: bool) -> Result<()> {
        let member = self.member(number)?;
        let is_silent = u8::from(is_silent);
        if member.is_silent == is_silent {
            Ok(())
        } else {
            self.write_member(number, maps::Member { is_silent, ..member })
        }
    }

    fn member(&self, number: u8) -> Result<maps::Member> {
        self.members.get(&u32::from(number), 0).map_err(|error| refused(&error))
    }

    fn write_member(&mut self, number: u8, member: maps::Member) -> Result<()> {
        self.members.set(u32::from(number), member, 0).map_err(|error| refused(&error))
    }

    /// Makes the load balancer work, stand by or hang.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn set_role(&mut self, role: Role) -> Result<()> {
        let loss = self.role_and_loss()?.loss;
        let role = maps::RoleAndLoss { role: role as u64, loss };
        self.role.set(0, role, 0).map_err(|error| refused(&error))
    }

    /// Sets the share of all arriving frames that the load balancer drops silently, 0 to 1: an emulated fault.
    ///
    /// # Errors
    ///
    /// It is no such share, or the kernel refuses.
    pub fn set_loss(&mut self, loss_ratio: f64) -> Result<()> {
        let role = maps::RoleAndLoss { loss: share_of(loss_ratio)?, ..self.role_and_loss()? };
        self.role.set(0, role, 0).map_err(|error| refused(&error))
    }

    fn role_and_loss(&self) -> Result<maps::RoleAndLoss> {
        self.role.get(&0, 0).map_err(|error| refused(&error))
    }

    /// Answers of the active load balancer to this one: over the inside interface, then over each outside one.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn answers(&self) -> Result<Vec<u64>> {
        let ports = std::iter::once(INSIDE).chain(0..self.ports.len() as u32);
        ports.map(|port| self.answers.get(&port, 0).map_err(|error| refused(&error))).collect()
    }

    /// Lets a member keep the rows that it owned before the last [`Plane::publish`] while they have traffic: until a
    /// row has received no frame for `idle_s`, or until `deadline_s` from now.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn drain(&mut self, number: u8, idle_s: f64, deadline_s: f64) -> Result<()> {
        let now = monotonic_ns();
        for row in 0..ROWS as u32 {
            self.seen.set(row, now, 0).map_err(|error| refused(&error))?;
        }
        let member = self.member(number)?;
        self.write_member(number, maps::Member { idle_ns: ns(idle_s), deadline_ns: now + ns(deadline_s), ..member })
    }

    /// Sets the outside interface of a neighbour; `None` removes the neighbour.
    ///
    /// # Errors
    ///
    /// There is no such interface, or the kernel refuses.
    pub fn set_neighbour(&mut self, mac: Mac, interface: Option<&str>) -> Result<()> {
        let Some(name) = interface else {
            // An absent entry needs no removal.
            let _ = self.neighbours.remove(&key_of(mac));
            return Ok(());
        };
        let (number, (port, own)) = (0..)
            .zip(&self.ports)
            .find(|(_, (port, _))| port.name == name)
            .ok_or_else(|| TesterError::value("interface", name, "an outside interface of this load balancer"))?;
        let neighbour = maps::Neighbour { index: port.index, mac: *own, port: number, pad: 0 };
        self.neighbours.insert(key_of(mac), neighbour, 0).map_err(|error| refused(&error))
    }

    /// The MAC addresses of its neighbours, in order.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn neighbours(&self) -> Result<Vec<Mac>> {
        let keys: std::result::Result<Vec<u64>, _> = self.neighbours.keys().collect();
        let mut macs: Vec<Mac> = keys.map_err(|error| refused(&error))?.into_iter().map(mac_of).collect();
        macs.sort_unstable();
        Ok(macs)
    }

    /// Adds an address of the router itself: its load balancer's kernel answers for it.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn add_own(&mut self, address: IpAddr) -> Result<()> {
        let octets = octets_of(address);
        let last = u32::from_ne_bytes([octets[12], octets[13], octets[14], octets[15]]);
        let bits = (last ^ last >> 16) & 0xffff;
        let hint = self.hints.get(&(bits / 64), 0).map_err(|error| refused(&error))?;
        self.own.insert(octets, 1, 0).map_err(|error| refused(&error))?;
        self.hints.set(bits / 64, hint | 1 << (bits % 64), 0).map_err(|error| refused(&error))
    }

    /// Records that the controlling process is alive: it detects dead members itself.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn beat(&mut self) -> Result<()> {
        self.heartbeat.set(0, monotonic_ns(), 0).map_err(|error| refused(&error))
    }

    /// Own frames that came back on each of the 64 paths of each member, since it is one.
    ///
    /// Such a frame has IP protocol 253, a source of `probe` or `probe6`, and any destination to which the members have a
    /// route; the low six bits of its IPv4 identification or IPv6 flow label are the number of the path.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn paths(&self) -> Result<std::collections::BTreeMap<u8, Vec<u64>>> {
        let mut paths = std::collections::BTreeMap::new();
        for number in 0..MEMBERS as u8 {
            if self.member(number)?.belongs != 0 {
                let counts = self.paths.get(&u32::from(number), 0).map_err(|error| refused(&error))?;
                paths.insert(number, counts.returned.to_vec());
            }
        }
        Ok(paths)
    }

    /// State and counters of the programs: epoch, digest, members, ports with reasons for drops.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn status(&self) -> Result<Value> {
        let version = self.version.get(&0, 0).map_err(|error| refused(&error))?;
        let now = monotonic_ns();
        let mut members = Vec::new();
        for number in 0..MEMBERS as u32 {
            let member = self.members.get(&number, 0).map_err(|error| refused(&error))?;
            if member.belongs == 0 {
                continue;
            }
            let health = self.health.get(&number, 0).map_err(|error| refused(&error))?;
            let mut entry = tallies(&self.counters, &MEMBER_COUNTERS, number)?;
            entry.insert("number".to_owned(), number.into());
            entry.insert("is_dead".to_owned(), (health.dead != 0 || member.is_silent != 0).into());
            entry.insert("is_draining".to_owned(), (member.deadline_ns > now).into());
            entry.insert("unanswered".to_owned(), health.sent.into());
            entry.insert("deaths".to_owned(), health.deaths.into());
            entry.insert("revivals".to_owned(), health.revivals.into());
            let silent_ns = health.dead_ns.saturating_sub(health.noted_ns);
            entry.insert("silent_s".to_owned(), json!(silent_ns as f64 * 1e-9));
            entry.insert("dead_ns".to_owned(), health.dead_ns.into());
            entry.insert("alive_ns".to_owned(), health.alive_ns.into());
            members.push(Value::Object(entry));
        }
        let mut ports = serde_json::Map::new();
        for (number, (interface, _)) in (0..).zip(&self.ports) {
            let mut frames = tallies(&self.port_counters, &PORT_COUNTERS, number)?;
            frames.insert("reasons".to_owned(), self.reasons_at(number)?);
            ports.insert(interface.name.clone(), Value::Object(frames));
        }
        let role = self.role_and_loss()?.role;
        let modes: serde_json::Map<_, _> = self.modes.iter().map(|(name, mode)| (name.clone(), json!(mode))).collect();
        Ok(json!({
            "epoch": version >> 1,
            "digest": format!("{:016x}", self.table.digest()),
            "members": members,
            "inside_reasons": self.reasons_at(INSIDE)?,
            "ports": ports,
            "role": ROLES.get(role as usize),
            "modes": modes,
        }))
    }

    fn reasons_at(&self, port: u32) -> Result<Value> {
        let mut reasons = serde_json::Map::new();
        for (reason, name) in (0..).zip(REASONS) {
            let per_core =
                self.reasons.get(&(port * REASONS.len() as u32 + reason), 0).map_err(|error| refused(&error))?;
            reasons.insert(name.to_owned(), per_core.iter().sum::<u64>().into());
        }
        Ok(Value::Object(reasons))
    }

    /// Reads the rows in use from the kernel: their digest, and the expected one.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn audit(&self) -> Result<Value> {
        let version = self.version.get(&0, 0).map_err(|error| refused(&error))?;
        let from = (version & 1) as usize * ROWS;
        let rows: Vec<u64> = (from..from + ROWS).map(|row| self.rows.get(row)).collect();
        // A MAC address takes 48 bits; the number of its interface stands above.
        let each = self.neighbours.iter().filter_map(std::result::Result::ok);
        let mut neighbours: Vec<u64> = each.map(|(key, neighbour)| key | u64::from(neighbour.port) << 48).collect();
        neighbours.sort_unstable();
        Ok(json!({
            "epoch": version >> 1,
            "rows": format!("{:016x}", digest(&rows)),
            "expected": format!("{:016x}", self.table.digest()),
            "neighbours": format!("{:016x}", digest(&neighbours)),
        }))
    }

    /// The members of a row in order of preference.
    #[must_use]
    pub fn choices(&self, row: usize) -> Vec<u8> {
        let choices = self.table.rows[row % ROWS].to_le_bytes();
        choices.into_iter().filter(|&number| number != crate::table::NOBODY).collect()
    }
}

/// The slot of a port: the one that it has already, or a free one.
fn slot_of(ports: &Array<MapData, maps::Port>, interface: &Interface) -> Result<u32> {
    for step in 0..NEXT_PLACES {
        let slot = (interface.index + step) % PLACES;
        let occupant = ports.get(&slot, 0).map_err(|error| refused(&error))?.index;
        if occupant == 0 || occupant == interface.index {
            return Ok(slot);
        }
    }
    let why =
        format!("another index: {NEXT_PLACES} other interfaces have the same place as number {}", interface.index);
    Err(TesterError::value("interface", &interface.name, why))
}

/// The counters of one member or port, summed over all cores.
fn tallies(
    counters: &PerCpuArray<MapData, maps::Tally>,
    names: &[(&str, Option<&str>)],
    of: u32,
) -> Result<serde_json::Map<String, Value>> {
    let mut totals = serde_json::Map::new();
    for (what, (frames, octets)) in (0..).zip(names) {
        let counter = of * names.len() as u32 + what;
        let per_core = counters.get(&counter, 0).map_err(|error| refused(&error))?;
        totals.insert((*frames).to_owned(), per_core.iter().map(|count| count.frames).sum::<u64>().into());
        if let Some(octets) = octets {
            totals.insert((*octets).to_owned(), per_core.iter().map(|count| count.octets).sum::<u64>().into());
        }
    }
    Ok(totals)
}

/// The program in front of a back-end router: a rate limit, which emulates a slower machine, and a silent hang.
pub struct Gate {
    limits: Array<MapData, maps::Limits>,
    counters: Array<MapData, u64>,
    _ebpf: Option<Box<Ebpf>>,
}

impl Gate {
    /// Attaches the program to an interface in a network namespace; `pins` is a folder in a BPF file system where it stays.
    ///
    /// # Errors
    ///
    /// The interface does not exist or has a program, or the kernel refuses.
    pub fn attach(interface: &str, at: Option<&str>, pins: Option<&Path>) -> Result<Self> {
        let link = "link".to_owned();
        let mut source = Source::new("member", &["member"], pins, std::slice::from_ref(&link))?;
        let (limits, counters) = (source.array("limits")?, source.array("counters")?);
        netns::inside(at, || {
            let interface = Interface::find(interface, at)?;
            source.attach("member", &interface, pins.map(|folder| folder.join(&link)).as_deref())
        })?;
        Ok(Self { limits, counters, _ebpf: source.kept(pins) })
    }

    /// Sets the rate limit, frames/s (0: none), the queue, frames, whether everything or which share of the arriving frames
    /// is dropped silently, and whether frames are forwarded in XDP.
    ///
    /// # Errors
    ///
    /// The loss is not from 0 to 1, or the kernel refuses.
    pub fn set(&mut self, cap_pps: f64, queue_frames: u64, hangs: bool, forwards: bool, loss_ratio: f64) -> Result<()> {
        let service_ns = if cap_pps > 0.0 { ns(1.0 / cap_pps) } else { 0 };
        let limits = maps::Limits {
            service_ns,
            queue: queue_frames,
            hangs: u64::from(hangs),
            loss: share_of(loss_ratio)?,
            forwards: u64::from(forwards),
        };
        self.limits.set(0, limits, 0).map_err(|error| refused(&error))
    }

    /// Its counters, by name.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn counters(&self) -> Result<Value> {
        let mut counters = serde_json::Map::new();
        for (what, name) in (0..).zip(GATE_COUNTERS) {
            let count = self.counters.get(&what, 0).map_err(|error| refused(&error))?;
            counters.insert(name.to_owned(), count.into());
        }
        Ok(Value::Object(counters))
    }
}
