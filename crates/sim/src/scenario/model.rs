//! The router as data: ports, task units, pools of units and their policies.

use serde::Deserialize;

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
    /// What takes its units away while they work.
    #[serde(default)]
    pub interruptions: Option<Interruptions>,
    /// States that its idle units fall asleep in, in rising `after_ps`.
    #[serde(default)]
    pub sleep: Vec<Sleep>,
}

/// A sleep state of an idle unit (S11).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sleep {
    /// Idle picoseconds after which a unit enters it.
    pub after_ps: f64,
    /// Picoseconds from a grant until the unit works.
    pub exit_ps: f64,
}

/// Interruptions of a working unit at Poisson instants; its work resumes afterwards (S5).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interruptions {
    /// How often in a second of a unit's work.
    pub rate_hz: f64,
    /// How long one takes.
    pub duration: RandomTime,
}

/// A random time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RandomTime {
    /// A mean times a random factor of mean 1.
    Mean {
        /// The mean in picoseconds.
        mean_ps: f64,
        /// Law of the factor.
        variation: Variation,
    },
    /// A table.
    Quantiles {
        /// Equally likely quantiles in rising order, the least first and the greatest last, linear between them.
        quantiles_ps: Vec<f64>,
    },
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
    /// Linux's two schedulers. A priority above 0 is a real-time one: the higher revokes the lower, equals come in
    /// order of request, and none has a time slice. What they leave is shared by priority 0 as under `Fair`.
    ///
    /// A task unit that is activated by interrupts (a softirq) borrows its unit from the thread that runs there, in that
    /// one's context: turning to it and back to the same thread is no switch.
    ///
    /// One list of waiting threads for the whole pool, from which a unit that comes free takes the next at once, stands
    /// for Linux's placement at wake-up and for its idle balancing.
    Linux {
        /// The slice of priority 0 while others of priority 0 wait, in picoseconds.
        quantum_ps: f64,
        /// A thread that wakes revokes one of priority 0 whose service per weight, that of its present grant included,
        /// is ahead of its own by more than these picoseconds (`sched_wakeup_granularity_ns`).
        wakeup_granularity_ps: f64,
    },
}

impl Policy {
    /// The longest time that a task unit may hold a unit while others wait.
    #[must_use]
    pub fn quantum_ps(self) -> Option<f64> {
        match self {
            Self::RoundRobin { quantum_ps } | Self::Linux { quantum_ps, .. } => Some(quantum_ps),
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
    /// Number of the thread that it belongs to: task units of the same thread have one grant between them. None: a
    /// thread of its own.
    #[serde(default)]
    pub thread: Option<usize>,
    /// Takes a frame only where there is room for it at the next node.
    #[serde(default)]
    pub holds_back: bool,
    /// Where frames go next.
    pub route: Route,
    /// Task units that get a copy of every frame besides, unless it goes there itself. A copy is served there and ends.
    #[serde(default)]
    pub copies: Vec<usize>,
}

/// So many units of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Index of the pool.
    pub pool: usize,
    /// How many units.
    pub units: usize,
    /// Task unit further on up to which frames carry the units; none: they are given back with the frame served.
    #[serde(default)]
    pub until: Option<usize>,
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
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
        /// From the interrupt until the task unit asks for its units, where it was asleep; it occupies none.
        #[serde(default)]
        wakeup: Option<RandomTime>,
        /// Whether a poll takes also what comes while it is under way, frame by frame, or only what it found.
        #[serde(default)]
        exhaustive: bool,
        /// Picoseconds that it goes on polling after a poll that came back short, before interrupts are enabled.
        #[serde(default)]
        linger_ps: f64,
    },
    /// A thread of an operating system: a frame that it can serve wakes it, and it works until nothing is left that it
    /// could do.
    Thread {
        /// Frames per poll, at most; then it turns to the next task unit of its thread.
        budget: usize,
        /// Picoseconds of work for being woken.
        cost_ps: f64,
        /// From the frame that wakes it until it asks for its units; it occupies none.
        #[serde(default)]
        wakeup: Option<RandomTime>,
        /// Whether a poll takes also what comes while it is under way, frame by frame, or only what it found.
        #[serde(default)]
        exhaustive: bool,
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
    /// The target whose number is that of the port that the flow leaves by: one for each port.
    ByEgress,
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
