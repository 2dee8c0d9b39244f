//! A scenario as data: the router, the load, the run. This is what the bindings hand over.
//!
//! All times are picoseconds in `f64`, all rates per second; names stay with the caller, here everything is an index.

use serde::Deserialize;

use crate::error::SimError;

/// Everything that one simulation needs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The router.
    pub model: Model,
    /// What arrives.
    pub load: Load,
    /// How to run it.
    pub run: Run,
}

/// The router: ports, task units, pools.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Interfaces.
    pub ports: Vec<Port>,
    /// Processing plane.
    pub tasks: Vec<Task>,
    /// Resource plane.
    pub pools: Vec<Pool>,
}

/// An interface: line rate on the way in, line rate and a ring on the way out.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Link rate in bit/s.
    pub link_bps: f64,
    /// Frames that can wait for transmission.
    pub tx_ring: usize,
    /// Task unit that receives its frames; none if the port only sends.
    pub entry: Option<usize>,
}

/// A pool of like units under one resource manager.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Speed of each unit relative to the costs' base; its length is the number of units.
    pub speed: Vec<f64>,
    /// How the manager grants units.
    pub policy: Policy,
    /// Picoseconds lost when a unit turns to another task unit.
    pub switch_ps: f64,
    /// Picoseconds lost when a task unit goes on at another unit.
    pub migration_ps: f64,
    /// Contention factor for 1, 2, … working units (S5); empty means none.
    pub contention: Vec<f64>,
}

/// Policies of S4.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Policy {
    /// In order of request.
    Fifo,
    /// Highest priority first, never revoked.
    Priority,
    /// Highest priority first; a higher request revokes a unit from the lowest.
    Preemptive,
    /// In turn, each for at most a quantum.
    RoundRobin {
        /// The quantum in picoseconds.
        quantum_ps: f64,
    },
    /// Least service per weight first, each for at most a slice.
    Fair {
        /// The slice in picoseconds.
        slice_ps: f64,
    },
}

impl Policy {
    /// The longest time that a task unit may hold a unit while others wait.
    #[must_use]
    pub fn quantum_ps(self) -> Option<f64> {
        match self {
            Self::RoundRobin { quantum_ps } => Some(quantum_ps),
            Self::Fair { slice_ps } => Some(slice_ps),
            Self::Fifo | Self::Priority | Self::Preemptive => None,
        }
    }
}

/// A task unit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Units that it needs, all at once; empty means a processor of its own.
    pub needs: Vec<Need>,
    /// Picoseconds per frame.
    pub per_frame_ps: f64,
    /// Picoseconds per byte of a frame.
    pub per_byte_ps: f64,
    /// Picoseconds per batch.
    pub per_batch_ps: f64,
    /// Randomness of the service time.
    pub variation: Variation,
    /// Frames that can wait.
    pub queue: usize,
    /// When it works.
    pub activation: Activation,
    /// Frames per grant, at most.
    pub batch: usize,
    /// Grants that it may ask for at once; none: every frame asks for itself.
    pub parallel: Option<usize>,
    /// Larger is more urgent.
    pub priority: i32,
    /// Share under the fair policy.
    pub weight: f64,
    /// Units of its first pool that it may use; empty means all.
    pub pin: Vec<usize>,
    /// Where frames go next.
    pub route: Route,
}

/// So many units of a pool.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Index of the pool.
    pub pool: usize,
    /// How many units.
    pub units: usize,
}

/// Distribution of the factor, of mean 1, on each service time.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Variation {
    /// Always 1.
    Deterministic,
    /// Exponential, squared coefficient of variation 1.
    Exponential,
    /// Gamma of the given squared coefficient of variation.
    Gamma {
        /// Squared coefficient of variation.
        scv: f64,
    },
    /// Two-phase hyperexponential with balanced means, `scv` >= 1.
    Hyperexponential {
        /// Squared coefficient of variation.
        scv: f64,
    },
    /// Log-normal of the given squared coefficient of variation.
    Lognormal {
        /// Squared coefficient of variation.
        scv: f64,
    },
    /// Uniform, `scv` <= 1/3.
    Uniform {
        /// Squared coefficient of variation.
        scv: f64,
    },
}

/// When a task unit works (S6).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Activation {
    /// When it has work.
    Dedicated,
    /// It holds its unit always.
    Polling,
    /// NAPI: an interrupt, then polls until one comes back short.
    Interrupt {
        /// Frames per poll, at most.
        budget: usize,
        /// Picoseconds per interrupt.
        cost_ps: f64,
        /// Least picoseconds between two interrupts.
        moderation_ps: f64,
    },
}

/// Where frames go after a task unit; an empty `to` lets them leave the router.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// How the target is chosen.
    pub kind: RouteKind,
    /// The targets.
    pub to: Vec<Target>,
    /// Relative chances for `random`.
    #[serde(default)]
    pub weights: Vec<f64>,
    /// Indirection table for `rss`; empty means `i % to.len()` for 128 entries.
    #[serde(default)]
    pub indirection: Vec<usize>,
}

/// How a route chooses among its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteKind {
    /// The first target.
    Single,
    /// By the flow's hash.
    Rss,
    /// Flow by flow in turn: flow `i` goes to target `i % to.len()`.
    PerFlow,
    /// In turn.
    RoundRobin,
    /// At random.
    Random,
    /// The port that the flow leaves by.
    Egress,
}

/// A target of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A task unit.
    Task(usize),
    /// A port.
    Port(usize),
}

/// What arrives.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// One source per port that receives.
    pub sources: Vec<Source>,
    /// All flows; sources refer to them.
    pub flows: Vec<Flow>,
    /// One period of the sequence of frame sizes in bytes, FCS included.
    pub sizes: Vec<u32>,
    /// Draw each size at random from the sequence instead of repeating it.
    pub random_sizes: bool,
}

/// A flow as the router sees it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Receive-side scaling hash.
    pub hash: u32,
    /// Port that it leaves by.
    pub egress: usize,
    /// Share of its source's frames, relative.
    pub weight: f64,
}

/// The frames of one port.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The port.
    pub port: usize,
    /// Intended frames per second.
    pub rate_pps: f64,
    /// Arrival process.
    pub process: Process,
    /// Flows of this port.
    pub flows: Vec<u32>,
}

/// Arrival processes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Process {
    /// Equal gaps, the first frame after `phase` of a gap.
    Cbr {
        /// 0..1, staggers the ports.
        phase: f64,
    },
    /// Exponential gaps.
    Poisson,
    /// Bursts at a peak rate, exponential pauses between.
    OnOff {
        /// Mean frames per burst (geometric).
        burst_frames: f64,
        /// Peak rate over mean rate, > 1.
        peak_ratio: f64,
    },
    /// Recorded arrivals, in order of time.
    Trace {
        /// Picoseconds since the start.
        time_ps: Vec<u64>,
        /// Frame sizes.
        bytes: Vec<u32>,
        /// Flow indices.
        flow: Vec<u32>,
    },
}

/// How to run a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Simulated time in picoseconds.
    pub duration_ps: u64,
    /// Seed of all streams.
    pub seed: u64,
    /// Number of this replication.
    #[serde(default)]
    pub replication: u64,
    /// Which way to compute it.
    #[serde(default)]
    pub path: Path,
    /// Keep what happened to each frame (small runs).
    #[serde(default)]
    pub record_frames: bool,
    /// Keep at most so many resource messages (small runs).
    #[serde(default)]
    pub message_limit: usize,
    /// Refuse a result whose transient did not end.
    #[serde(default)]
    pub need_steady_state: bool,
}

/// The two execution paths. They give the same trace where both can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// Recursion where the model allows it, events for the rest.
    #[default]
    Auto,
    /// Recursion for everything, or an error.
    Recursion,
    /// Events for everything.
    Events,
}

impl Scenario {
    /// Checks every index and number, so that the engine need not.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SimError> {
        let (ports, tasks, pools) = (self.model.ports.len(), self.model.tasks.len(), self.model.pools.len());
        for (i, port) in self.model.ports.iter().enumerate() {
            positive(format!("ports[{i}].link_bps"), port.link_bps)?;
            count(format!("ports[{i}].tx_ring"), port.tx_ring)?;
            if let Some(entry) = port.entry {
                index(format!("ports[{i}].entry"), entry, tasks)?;
            }
        }
        for (i, pool) in self.model.pools.iter().enumerate() {
            count(format!("pools[{i}].speed (number of units)"), pool.speed.len())?;
            for &speed in &pool.speed {
                positive(format!("pools[{i}].speed"), speed)?;
            }
            for &factor in &pool.contention {
                positive(format!("pools[{i}].contention"), factor)?;
            }
            not_negative(format!("pools[{i}].switch_ps"), pool.switch_ps)?;
            not_negative(format!("pools[{i}].migration_ps"), pool.migration_ps)?;
            if let Some(quantum) = pool.policy.quantum_ps() {
                positive(format!("pools[{i}].policy quantum"), quantum)?;
            }
        }
        for (i, task) in self.model.tasks.iter().enumerate() {
            self.check_task(i, task, ports, tasks, pools)?;
        }
        self.load.check(&self.model)?;
        if self.run.duration_ps == 0 {
            return Err(SimError::Number { place: "run.duration".into(), got: 0.0, allowed: "more than 0 s" });
        }
        Ok(())
    }

    fn check_task(&self, i: usize, task: &Task, ports: usize, tasks: usize, pools: usize) -> Result<(), SimError> {
        let place = |field: &str| format!("tasks[{i}].{field}");
        for value in [task.per_frame_ps, task.per_byte_ps, task.per_batch_ps] {
            not_negative(place("service"), value)?;
        }
        count(place("queue"), task.queue)?;
        count(place("batch"), task.batch)?;
        count(place("parallel"), task.parallel.unwrap_or(1))?;
        if task.parallel.is_none() && (task.needs.is_empty() || task.activation != Activation::Dedicated) {
            return Err(SimError::Number {
                place: place("parallel"),
                got: 0.0,
                allowed: "a number; only dedicated task units that need a pool can leave it open",
            });
        }
        positive(place("weight"), task.weight)?;
        for need in &task.needs {
            index(place("needs.pool"), need.pool, pools)?;
            count(place("needs.units"), need.units)?;
            let units = self.model.pools[need.pool].speed.len();
            if need.units > units {
                return Err(SimError::Number {
                    place: place("needs.units"),
                    got: need.units as f64,
                    allowed: "at most the units of the pool",
                });
            }
        }
        if let Some(first) = task.needs.first() {
            for &unit in &task.pin {
                index(place("pin"), unit, self.model.pools[first.pool].speed.len())?;
            }
        }
        for target in &task.route.to {
            match *target {
                Target::Task(t) => index(place("route.to"), t, tasks)?,
                Target::Port(p) => index(place("route.to"), p, ports)?,
            }
        }
        if task.route.kind == RouteKind::Random && task.route.weights.len() != task.route.to.len() {
            return Err(SimError::Number {
                place: place("route.weights"),
                got: task.route.weights.len() as f64,
                allowed: "one weight per target",
            });
        }
        let scv = match task.variation {
            Variation::Deterministic | Variation::Exponential => 1.0,
            Variation::Gamma { scv } | Variation::Lognormal { scv } => scv,
            Variation::Hyperexponential { scv } if scv >= 1.0 => scv,
            Variation::Uniform { scv } if scv <= 1.0 / 3.0 => scv,
            Variation::Hyperexponential { scv } | Variation::Uniform { scv } => {
                return Err(SimError::Number {
                    place: place("variation.scv"),
                    got: scv,
                    allowed: "hyperexponential needs scv >= 1, uniform scv <= 1/3",
                });
            }
        };
        positive(place("variation.scv"), scv)
    }
}

impl Load {
    fn check(&self, model: &Model) -> Result<(), SimError> {
        count("load.sources".into(), self.sources.len())?;
        count("load.sizes".into(), self.sizes.len())?;
        for &bytes in &self.sizes {
            positive("load.sizes".into(), f64::from(bytes))?;
        }
        for (i, flow) in self.flows.iter().enumerate() {
            index(format!("load.flows[{i}].egress"), flow.egress, model.ports.len())?;
            positive(format!("load.flows[{i}].weight"), flow.weight)?;
        }
        let mut owner = vec![None; self.flows.len()];
        for (i, source) in self.sources.iter().enumerate() {
            index(format!("load.sources[{i}].port"), source.port, model.ports.len())?;
            if model.ports[source.port].entry.is_none() {
                return Err(SimError::Number {
                    place: format!("load.sources[{i}].port"),
                    got: source.port as f64,
                    allowed: "a port with an entry task unit",
                });
            }
            positive(format!("load.sources[{i}].rate_pps"), source.rate_pps)?;
            count(format!("load.sources[{i}].flows"), source.flows.len())?;
            for &flow in &source.flows {
                index(format!("load.sources[{i}].flows"), flow as usize, self.flows.len())?;
                if owner[flow as usize].replace(i).is_some() {
                    return Err(SimError::Number {
                        place: format!("load.sources[{i}].flows"),
                        got: f64::from(flow),
                        allowed: "each flow once, at one source",
                    });
                }
            }
            match &source.process {
                Process::OnOff { burst_frames, peak_ratio } => {
                    if !(*peak_ratio > 1.0 && peak_ratio.is_finite() && *burst_frames >= 1.0) {
                        return Err(SimError::Number {
                            place: format!("load.sources[{i}].process"),
                            got: *peak_ratio,
                            allowed: "burst_frames >= 1 and peak_ratio > 1",
                        });
                    }
                }
                Process::Trace { time_ps, bytes, flow } => {
                    if time_ps.len() != bytes.len() || time_ps.len() != flow.len() || !time_ps.is_sorted() {
                        return Err(SimError::Number {
                            place: format!("load.sources[{i}].process"),
                            got: time_ps.len() as f64,
                            allowed: "as many sizes and flows as instants, in order of time",
                        });
                    }
                    for &f in flow {
                        if !source.flows.contains(&f) {
                            return Err(SimError::Number {
                                place: format!("load.sources[{i}].trace.flow"),
                                got: f64::from(f),
                                allowed: "a flow of this source",
                            });
                        }
                    }
                }
                Process::Cbr { .. } | Process::Poisson => {}
            }
        }
        Ok(())
    }
}

fn index(place: String, got: usize, len: usize) -> Result<(), SimError> {
    if got < len { Ok(()) } else { Err(SimError::Index { place, got, len }) }
}

fn count(place: String, got: usize) -> Result<(), SimError> {
    if got > 0 { Ok(()) } else { Err(SimError::Number { place, got: 0.0, allowed: "at least 1" }) }
}

fn positive(place: String, got: f64) -> Result<(), SimError> {
    if got > 0.0 && got.is_finite() {
        Ok(())
    } else {
        Err(SimError::Number { place, got, allowed: "a finite number above 0" })
    }
}

fn not_negative(place: String, got: f64) -> Result<(), SimError> {
    if got >= 0.0 && got.is_finite() {
        Ok(())
    } else {
        Err(SimError::Number { place, got, allowed: "a finite number, 0 or more" })
    }
}
