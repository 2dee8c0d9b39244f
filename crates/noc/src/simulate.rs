//! Simulates one scenario, or many in parallel.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::check::check;
use crate::engine::Engine;
use crate::error::NocError;
use crate::outcome::Outcome;
use crate::scenario::Scenario;

/// Steps of a scenario's progress.
const STEPS: f64 = 1e6;

/// Simulates a scenario. `report` receives the finished share, 0..1, from time to time; `Break` ends the run.
///
/// # Errors
///
/// The scenario cannot be simulated, or `report` stopped the run.
pub fn simulate(scenario: &Scenario, report: &dyn Fn(f64) -> ControlFlow<()>) -> Result<Outcome, NocError> {
    check(scenario)?;
    let mut engine = Engine::new(scenario);
    match engine.run(report) {
        ControlFlow::Continue(()) => Ok(engine.outcome()),
        ControlFlow::Break(()) => Err(NocError::Interrupted),
    }
}

/// Simulates many scenarios in parallel; the outcomes are in their order and do not depend on the number of cores.
///
/// # Errors
///
/// The position of the first scenario that cannot be simulated, and why.
pub fn simulate_all(
    scenarios: &[Scenario],
    report: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
) -> Result<Vec<Outcome>, (usize, NocError)> {
    for (position, scenario) in scenarios.iter().enumerate() {
        check(scenario).map_err(|error| (position, error))?;
    }
    let done = AtomicU64::new(0);
    let all = scenarios.len() as f64 * STEPS;
    scenarios
        .par_iter()
        .enumerate()
        .map(|(position, scenario)| {
            let own_steps = AtomicU64::new(0);
            let advance = |share: f64| {
                let step = (share * STEPS) as u64;
                let before = own_steps.swap(step, Ordering::Relaxed);
                let sum = done.fetch_add(step.saturating_sub(before), Ordering::Relaxed);
                report(sum as f64 / all)
            };
            let outcome = simulate(scenario, &advance).map_err(|error| (position, error));
            match advance(1.0) {
                ControlFlow::Continue(()) => outcome,
                ControlFlow::Break(()) => Err((position, NocError::Interrupted)),
            }
        })
        .collect()
}
