//! A scenario as data: the router, the load, the run. The bindings pass it as JSON.
//!
//! All times are picoseconds in `f64`, all rates per second; names stay with the caller, here everything is an index.

mod load;
mod model;
mod run;

use serde::Deserialize;

pub use load::{Flow, Load, Process, Source, Step};
pub use model::{
    Activation, Interruptions, Model, Need, Policy, Pool, Port, RandomTime, Route, RouteKind, Sleep, Target, Task,
    Variation,
};
pub use run::{Event, KeptState, Path, Run};

/// The input of one simulation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The router.
    pub model: Model,
    /// The load.
    pub load: Load,
    /// The run.
    pub run: Run,
}

impl Scenario {
    /// Whether any task unit sends copies at any time.
    #[must_use]
    pub fn makes_copies(&self) -> bool {
        self.model.tasks.iter().any(|task| !task.copies.is_empty())
            || self.run.events.iter().any(|event| !event.copies().is_empty())
    }
}
