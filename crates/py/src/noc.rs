//! The flit-level simulator of networks on chip.

use pyo3::prelude::*;
use routecast_noc::{NocError as Refusal, Scenario, simulate_all};

use crate::listen::listen;

pyo3::create_exception!(
    routecast._core,
    NocError,
    pyo3::exceptions::PyException,
    "A network on chip that cannot be simulated. Arguments: kind, message."
);

fn convert(position: usize, error: &Refusal) -> PyErr {
    NocError::new_err((error.kind(), format!("scenario {position}: {error}")))
}

/// Simulates scenarios in parallel.
///
/// `scenarios` are JSON (see `crates/noc/src/scenario.rs`), the results are the JSON of outcomes in the same order.
/// `progress` is called about every 50 ms with the finished share, 0..1; an exception in it, or a signal, stops the run.
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
#[pyo3(signature = (scenarios, *, progress=None))]
pub fn noc_simulate(py: Python<'_>, scenarios: Vec<String>, progress: Option<Py<PyAny>>) -> PyResult<Vec<String>> {
    let mut read = Vec::<Scenario>::with_capacity(scenarios.len());
    for (position, text) in scenarios.iter().enumerate() {
        let scenario = serde_json::from_str(text)
            .map_err(|error| NocError::new_err(("scenario", format!("scenario {position}: {error}"))))?;
        read.push(scenario);
    }
    let result = listen(py, progress.as_ref(), |report| simulate_all(&read, report))?;
    let broken = || NocError::new_err(("panic", "the simulation broke an invariant"));
    let outcomes = result.ok_or_else(broken)?.map_err(|(position, error)| convert(position, &error))?;
    outcomes
        .iter()
        .map(|outcome| {
            serde_json::to_string(outcome).map_err(|error| NocError::new_err(("outcome", error.to_string())))
        })
        .collect()
}
