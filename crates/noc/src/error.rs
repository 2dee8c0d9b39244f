//! Why a scenario cannot be simulated.

/// A scenario that cannot be simulated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NocError {
    /// An index points nowhere.
    #[error("{name} is {value}, but there are only {count}")]
    Index {
        /// Which one.
        name: String,
        /// What it says.
        value: usize,
        /// How many there are.
        count: usize,
    },
    /// A number is outside of its range.
    #[error("{name} is {value}, must be {allowed}")]
    Number {
        /// Which one.
        name: String,
        /// What it says.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// A list has another length than what it describes.
    #[error("{name} has {count} entries, must have {expected}")]
    Length {
        /// Which one.
        name: String,
        /// Its length.
        count: usize,
        /// The right length.
        expected: usize,
    },
    /// A packet would have no way.
    #[error("{name}: {reason}")]
    Route {
        /// Which entry.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// The caller stopped the run.
    #[error("interrupted")]
    Interrupted,
}

impl NocError {
    /// A word for the kind, for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Index { .. } => "index",
            Self::Number { .. } => "number",
            Self::Length { .. } => "length",
            Self::Route { .. } => "route",
            Self::Interrupted => "interrupted",
        }
    }
}
