//! Python bindings of the flit-level simulator of networks on chip, and of the routing that looks at loads.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use routecast_listen::listen;
use routecast_noc::{NocError as Refusal, Routers, Scenario, greedy, simulate_all};

pyo3::create_exception!(
    routecast.noc._noc,
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
fn noc_simulate(py: Python<'_>, scenarios: Vec<String>, progress: Option<Py<PyAny>>) -> PyResult<Vec<String>> {
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

/// Routes flow after flow over the shortest path that is least loaded so far.
///
/// `demand` are doubles, source by source; the result are the links of all paths as 32-bit numbers, source by source and
/// target by target (`crates/noc/src/greedy.rs`). A signal stops it.
#[pyfunction]
#[pyo3(signature = (columns, rows, rings, demand))]
fn noc_greedy<'py>(
    py: Python<'py>,
    columns: usize,
    rows: usize,
    rings: bool,
    demand: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = columns.checked_mul(rows).and_then(|count| count.checked_pow(2)?.checked_mul(size_of::<f64>()));
    if demand.is_empty() || bytes != Some(demand.len()) {
        return Err(PyValueError::new_err(format!("{} bytes of demand for {columns} x {rows} routers", demand.len())));
    }
    let double = |eight: &[u8]| f64::from_ne_bytes(eight.try_into().expect("eight bytes"));
    let read: Vec<f64> = demand.chunks_exact(8).map(double).collect();
    let links = listen(py, None, |report| greedy(Routers { columns, rows, rings }, &read, report))?
        .ok_or_else(|| NocError::new_err(("panic", "the routing broke an invariant")))?;
    PyBytes::new_with(py, links.len() * 4, |bytes| {
        for (four, link) in bytes.chunks_exact_mut(4).zip(links) {
            four.copy_from_slice(&link.to_ne_bytes());
        }
        Ok(())
    })
}

/// The compiled part of routecast for networks on chip.
#[pymodule]
fn _noc(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NocError", module.py().get_type::<NocError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(noc_greedy, module)?)?;
    module.add_function(wrap_pyfunction!(noc_simulate, module)?)
}
