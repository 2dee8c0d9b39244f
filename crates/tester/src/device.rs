//! Programs at the ingress of a device under test: they pass, slow down or forward frames, or inject faults.

use aya::maps::{Array, Map, MapData, PerCpuArray};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Result, TesterError};
use crate::programs::{Loaded, Mode, map_error};
use crate::sys::interface::Interface;
use crate::sys::netns;

/// The program and its interface; the settings are further keys of the same object.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// The program.
    program: Program,
    /// The interface whose received frames it sees.
    interface: String,
    /// Path of its network namespace; `None`: that of the calling thread.
    #[serde(default)]
    netns: Option<String>,
}

/// The programs, each a file of `bpf/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// Hands every frame to the network stack.
    Pass,
    /// Does fixed work for every frame and hands it on.
    Slow,
    /// Routes by the kernel's FIB.
    Forward,
    /// Injects the faults of its settings.
    Fault,
}

/// The settings of a program; mirrors `struct settings` of `bpf/test_frame.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Rounds of fixed work per frame (slow, forward).
    pub iterations: u64,
    /// Time spun per test frame, ns (fault).
    pub delay_ns: u64,
    /// Every n-th test frame is dropped, 0: none (fault).
    pub drop_every: u64,
    /// Every n-th test frame is changed, 0: none (fault).
    pub corrupt_every: u64,
    /// All test frames are dropped if not 0 (fault).
    #[serde(deserialize_with = "flag")]
    pub swallow: u64,
    /// Test frames return to the sender if not 0 (fault).
    #[serde(deserialize_with = "flag")]
    pub reflect: u64,
}

fn flag<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<u64, D::Error> {
    bool::deserialize(from).map(u64::from)
}

#[allow(unsafe_code, reason = "a promise on the layout of these structures, which only this file can check")]
mod plain {
    // SAFETY: `repr(C)` of integers without padding.
    unsafe impl aya::Pod for super::Settings {}
}

/// Most rounds of work per frame: what `bpf_loop` allows.
const MOST_ITERATIONS: u64 = 1 << 23;
/// Longest time spun per frame, ns.
const MOST_DELAY_NS: u64 = 100_000_000;

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Slow => "slow",
            Self::Forward => "forward",
            Self::Fault => "fault",
        }
    }

    /// Names of its settings.
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Pass => &[],
            Self::Slow | Self::Forward => &["iterations"],
            Self::Fault => &["delay_ns", "drop_every", "corrupt_every", "swallow", "reflect"],
        }
    }

    /// Names of its counters, in the order of its enumeration.
    fn counters(self) -> &'static [&'static str] {
        match self {
            Self::Pass | Self::Slow => &[],
            Self::Forward => {
                &["forwarded", "no_route", "no_neighbour", "too_big", "ttl_expired", "refused", "passed_other"]
            }
            Self::Fault => &["test_frames", "dropped", "corrupted", "delayed", "reflected"],
        }
    }
}

enum Counters {
    None,
    Shared(Array<MapData, u64>),
    PerCore(PerCpuArray<MapData, u64>),
}

/// An attached program; it is detached when this is dropped or its process ends.
pub struct Device {
    program: Program,
    interface: Interface,
    mode: Mode,
    settings: Option<Array<MapData, Settings>>,
    counters: Counters,
    _loaded: Loaded,
}

fn refused(error: &(dyn std::error::Error + 'static)) -> TesterError {
    map_error("reading or writing a map of a program", error)
}

impl Settings {
    /// Reads the settings of a program from the remaining keys of a configuration.
    fn read(program: Program, from: Object) -> Result<Self> {
        let known = program.settings();
        if let Some(name) = from.keys().find(|name| !known.contains(&name.as_str())) {
            let allowed = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(TesterError::value("setting", name, format!("settings of `{}`: {allowed}", program.name())));
        }
        let settings: Self = serde_json::from_value(Value::Object(from)).map_err(|error| wrong(&error))?;
        settings.check()
    }

    fn check(self) -> Result<Self> {
        if self.iterations > MOST_ITERATIONS {
            return Err(TesterError::value("iterations", self.iterations, format!("0 to {MOST_ITERATIONS}")));
        }
        if self.delay_ns > MOST_DELAY_NS {
            return Err(TesterError::value("delay_ns", self.delay_ns, format!("0 to {MOST_DELAY_NS} ns")));
        }
        Ok(self)
    }
}

type Object = serde_json::Map<String, Value>;

fn wrong(error: &serde_json::Error) -> TesterError {
    TesterError::Text { place: "config", message: error.to_string() }
}

impl Device {
    /// Attaches the program of a configuration in JSON.
    ///
    /// # Errors
    ///
    /// The text is wrong, the interface does not exist or has a program, or the kernel refuses.
    pub fn attach(text: &str) -> Result<Self> {
        let mut config: Object = serde_json::from_str(text).map_err(|error| wrong(&error))?;
        let attachment =
            ["program", "interface", "netns"].iter().filter_map(|&name| config.remove_entry(name)).collect();
        let settings = config;
        let config: Config = serde_json::from_value(Value::Object(attachment)).map_err(|error| wrong(&error))?;
        let settings = Settings::read(config.program, settings)?;
        let netns = config.netns.as_deref();
        let mut loaded = Loaded::new(config.program.name(), |_| {})?;
        let settings = if config.program == Program::Pass {
            None
        } else {
            let mut map = Array::try_from(loaded.take_map("settings")).map_err(|error| refused(&error))?;
            map.set(0, settings, 0).map_err(|error| refused(&error))?;
            Some(map)
        };
        let counters = if config.program.counters().is_empty() {
            Counters::None
        } else {
            match loaded.take_map("counters") {
                map @ Map::Array(_) => Counters::Shared(Array::try_from(map).map_err(|error| refused(&error))?),
                map => Counters::PerCore(PerCpuArray::try_from(map).map_err(|error| refused(&error))?),
            }
        };
        let (interface, mode) = netns::inside(netns, || {
            let interface = Interface::find(&config.interface, netns)?;
            let mode = loaded.attach(interface.index, &interface.name)?;
            Ok((interface, mode))
        })?;
        Ok(Self { program: config.program, interface, mode, settings, counters, _loaded: loaded })
    }

    /// Replaces the settings of the program, from the next frame on; settings that are not named become 0.
    ///
    /// # Errors
    ///
    /// The text is wrong, or the program has no settings.
    pub fn set(&mut self, text: &str) -> Result<()> {
        let settings = serde_json::from_str(text).map_err(|error| wrong(&error))?;
        let settings = Settings::read(self.program, settings)?;
        let Some(map) = &mut self.settings else {
            return Err(TesterError::value("program", "pass", "a program with settings: slow, forward or fault"));
        };
        map.set(0, settings, 0).map_err(|error| refused(&error))
    }

    /// Counters since the program was attached, by name.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn counters(&self) -> Result<Value> {
        let mut counters = serde_json::Map::new();
        for (index, &name) in (0..).zip(self.program.counters()) {
            let value = match &self.counters {
                Counters::None => 0,
                Counters::Shared(map) => map.get(&index, 0).map_err(|error| refused(&error))?,
                Counters::PerCore(map) => map.get(&index, 0).map_err(|error| refused(&error))?.iter().sum(),
            };
            counters.insert(name.to_owned(), json!(value));
        }
        Ok(Value::Object(counters))
    }

    /// The program, its interface and how it runs there.
    #[must_use]
    pub fn facts(&self) -> Value {
        json!({"program": self.program.name(), "interface": self.interface, "mode": self.mode})
    }
}
