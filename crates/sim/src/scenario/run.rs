//! The run as data: how long, what is kept of it, what happens meanwhile.

use serde::Deserialize;

use super::model::Route;

/// A state that a trial in lanes goes on from.
#[cfg(feature = "lanes")]
pub type KeptState = routecast_lanes::kept::State;
/// There is none without lanes.
#[cfg(not(feature = "lanes"))]
pub type KeptState = ();

/// How to run a scenario.
#[expect(clippy::struct_excessive_bools, reason = "each says whether one more thing is kept or asked for")]
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
    /// Keep the way of each frame too, its fate and the messages: all from this instant on, picoseconds.
    #[serde(default)]
    pub record_from_ps: Option<u64>,
    /// Count the frames of each flow.
    #[serde(default)]
    pub per_flow: bool,
    /// Keep at most so many resource messages (small runs).
    #[serde(default)]
    pub message_limit: usize,
    /// Refuse a result whose transient did not end.
    #[serde(default)]
    pub need_steady_state: bool,
    /// All of the trial counts, and none of it is a transient: a recorded trace, which is what it is.
    #[serde(default)]
    pub whole: bool,
    /// In lanes: the trial goes on from this state, with which a former one ended; changes of the load come at their
    /// instants since the first one began.
    #[serde(default)]
    pub begin: Option<KeptState>,
    /// In lanes: keep the state at the end.
    #[serde(default)]
    pub keep_end: bool,
    /// Keep the rates of each part of the trial.
    #[serde(default)]
    pub over_time: bool,
    /// What happens to the router meanwhile. Then all of the trial counts, and no steady state is asked for.
    #[serde(default)]
    pub events: Vec<Event>,
}

/// Something that happens to the router during the trial.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// A task unit is down: it loses what it holds and what comes, and uses nothing.
    Outage {
        /// The task unit.
        task: usize,
        /// Picoseconds since the start.
        from_ps: f64,
        /// Up again from then on; none: not within this trial.
        until_ps: Option<f64>,
    },
    /// Frames that a task unit has served go elsewhere from then on.
    Reroute {
        /// The task unit.
        task: usize,
        /// Picoseconds since the start.
        at_ps: f64,
        /// Where frames go.
        route: Route,
        /// Task units that get copies.
        #[serde(default)]
        copies: Vec<usize>,
    },
}

impl Event {
    /// The task unit that it happens to.
    #[must_use]
    pub fn task(&self) -> usize {
        match self {
            Self::Outage { task, .. } | Self::Reroute { task, .. } => *task,
        }
    }

    /// Whether a route changes.
    #[must_use]
    pub fn is_reroute(&self) -> bool {
        matches!(self, Self::Reroute { .. })
    }

    /// Task units that get copies from then on.
    #[must_use]
    pub fn copies(&self) -> &[usize] {
        match self {
            Self::Reroute { copies, .. } => copies,
            Self::Outage { .. } => &[],
        }
    }
}

/// The execution paths. Recursion and events give the same trace where both can run; lanes draw by a rule of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// Recursion where the model allows it, events for the rest; lanes for long trials that need events, where they can run
    /// them.
    #[default]
    Auto,
    /// Recursion for everything, or an error.
    Recursion,
    /// Events for everything.
    Events,
    /// Many stretches of the trial at once, one lane of a vector each, or an error.
    Lanes,
}
