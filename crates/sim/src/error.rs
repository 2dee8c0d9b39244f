//! The errors of a scenario.

/// Why a scenario cannot be simulated, with the wrong values.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimError {
    /// An index points past the end of the list that it refers to.
    #[error("{place}: index {got} is out of range: there are {len}")]
    Index {
        /// Path of the index in the scenario.
        place: String,
        /// The index.
        got: usize,
        /// How many there are.
        len: usize,
    },
    /// A number is outside its range.
    #[error("{place}: got {got}; {allowed}")]
    Number {
        /// Path of the number in the scenario.
        place: String,
        /// The number.
        got: f64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The task graph has a cycle.
    #[error("the task graph has a cycle through task unit {task}: frames would never leave; remove one of its routes")]
    Cycle {
        /// A task unit on the cycle.
        task: usize,
    },
    /// The recursion was asked for, but the model needs events.
    #[error("task unit {task} cannot be simulated by recursion ({why}); use the path \"events\" or \"auto\"")]
    NotRecursive {
        /// The first task unit that needs events.
        task: usize,
        /// Why it does.
        why: &'static str,
    },
    /// Lanes were asked for, but the model is not of their kind.
    #[error("it cannot be simulated in lanes ({why}); use the path \"auto\" and no device")]
    NotInLanes {
        /// Why not.
        why: String,
    },
    /// The trial ended before its transient did.
    #[error("a trial of {} is too short to pass the transient ({why}); simulate at least {}", span(*duration_s), span(*needed_s))]
    Transient {
        /// What was simulated.
        duration_s: f64,
        /// What should be enough.
        needed_s: f64,
        /// What was seen.
        why: String,
    },
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl SimError {
    /// The kind of the error in one word, for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Index { .. } | Self::Number { .. } => "scenario",
            Self::Cycle { .. } => "cycle",
            Self::NotRecursive { .. } | Self::NotInLanes { .. } => "path",
            Self::Transient { .. } => "transient",
            Self::Interrupted => "interrupted",
        }
    }

    /// What was simulated and what should be enough, seconds; 0 where the trial's length is not what is wrong.
    #[must_use]
    pub fn spans_s(&self) -> (f64, f64) {
        match *self {
            Self::Transient { duration_s, needed_s, .. } => (duration_s, needed_s),
            Self::Index { .. }
            | Self::Number { .. }
            | Self::Cycle { .. }
            | Self::NotRecursive { .. }
            | Self::NotInLanes { .. }
            | Self::Interrupted => (0.0, 0.0),
        }
    }
}

/// A span in a readable unit.
fn span(seconds: f64) -> String {
    let (scale, unit) = match seconds {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        s if s >= 1e-6 => (1e6, "us"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", (seconds * scale * 100.0).round() / 100.0)
}
