//! How many activities the events have at once: each has a slot of the calendar, which numbers them with 16 bits.

use crate::error::SimError;
use crate::graph::Graph;
use crate::planes::Plane;
use crate::scenario::Scenario;

/// Most lanes of a task unit. Beyond so many frames of one task unit, the FIFO order among task units is that of their
/// oldest 4,096 frames each.
const MOST_LANES: usize = 4096;

const MOST_ACTIVITIES: usize = 60_000;

/// Lanes of a task unit: as many as it may have grants; where every frame asks for itself, as many as can be inside.
#[must_use]
pub fn lanes_of(scenario: &Scenario, task: usize, most_frames: usize) -> usize {
    let unit = &scenario.model.tasks[task];
    let lanes = unit.parallel.unwrap_or_else(|| {
        let units: usize = unit.needs.iter().map(|need| scenario.model.pools[need.pool].speed.len()).sum();
        (unit.queue + units).min(MOST_LANES)
    });
    lanes.min(most_frames)
}

/// Checks that the calendar has numbers for all activities.
pub(crate) fn check(scenario: &Scenario, graph: &Graph) -> Result<(), SimError> {
    let tasks = scenario.model.tasks.len();
    let managed = |&task: &usize| {
        graph.planes[task] == Plane::Events && graph.grouped[task].is_none() && graph.doors[task].is_none()
    };
    let lanes: usize = (0..tasks).filter(managed).map(|task| lanes_of(scenario, task, graph.most_frames[task])).sum();
    // A timer each, and what the ports and the changes take.
    if lanes + graph.groups.len() + 2 * graph.planes.len() > MOST_ACTIVITIES {
        return Err(SimError::Number {
            place: "tasks.parallel".into(),
            got: lanes as f64,
            allowed: "at most 60,000 grants over all task units together",
        });
    }
    Ok(())
}
