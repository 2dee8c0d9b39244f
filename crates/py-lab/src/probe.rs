//! The probe of this host and the network functions that run for real.

use pyo3::prelude::*;
use routecast_probe::error::ProbeError as Refusal;
use routecast_probe::{host, run, workload};
use serde::Serialize;
use serde::de::DeserializeOwned;

use routecast_listen::listen;

pyo3::create_exception!(
    routecast.lab._lab,
    ProbeError,
    pyo3::exceptions::PyException,
    "A host that cannot be probed or a function that cannot be run. Arguments: kind, message."
);

/// A measurement that reports its progress and asks whether to go on.
type Work<Request, Outcome> = fn(&Request, &mut dyn FnMut(f64) -> bool) -> Result<Outcome, Refusal>;

fn convert(error: &Refusal) -> PyErr {
    ProbeError::new_err((error.kind(), error.to_string()))
}

fn answer<Request: DeserializeOwned + Sync, Outcome: Serialize + Send>(
    py: Python<'_>,
    request: &str,
    progress: Option<&Py<PyAny>>,
    work: Work<Request, Outcome>,
) -> PyResult<String> {
    let request: Request = serde_json::from_str(request).map_err(|error| convert(&error.into()))?;
    let result = listen(py, progress, |report| work(&request, &mut |share| report(share).is_continue()))?;
    let broken = || ProbeError::new_err(("panic", "the probe broke an invariant"));
    let outcome = result.ok_or_else(broken)?.map_err(|error| convert(&error))?;
    serde_json::to_string(&outcome).map_err(|error| ProbeError::new_err(("outcome", error.to_string())))
}

/// Measures this host; request and outcome are JSON (see `crates/probe/src/host/probe.rs`).
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
#[pyo3(signature = (request, progress=None))]
pub fn probe_host(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    answer(py, request, progress.as_ref(), host::probe)
}

/// Runs a network function on frames in memory; request and outcome are JSON (see `crates/probe/src/run`).
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
#[pyo3(signature = (request, progress=None))]
pub fn run_function(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    answer(py, request, progress.as_ref(), run::run)
}

/// The kernels of workloads, as JSON (see `crates/probe/src/workload/kernel/registry.rs`).
#[pyfunction]
pub fn workload_kernels() -> PyResult<String> {
    serde_json::to_string(&workload::KERNELS).map_err(|error| ProbeError::new_err(("outcome", error.to_string())))
}

/// Runs a kernel over packets; request and outcome are JSON (see `crates/probe/src/workload`).
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
#[pyo3(signature = (request, progress=None))]
pub fn run_workload(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let parsed: workload::WorkloadRequest = serde_json::from_str(request).map_err(|error| convert(&error.into()))?;
    if parsed.duration_s > 0.0 {
        return answer(py, request, progress.as_ref(), workload::run);
    }
    // A tracer follows the thread that it started, and a second thread's waiting would be counted too.
    let outcome = workload::run(&parsed, &mut |_| true).map_err(|error| convert(&error))?;
    serde_json::to_string(&outcome).map_err(|error| ProbeError::new_err(("outcome", error.to_string())))
}

/// Traces a program that runs a kernel; request and outcome are JSON (see `crates/probe/src/workload/trace.rs`).
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
#[pyo3(signature = (request, progress=None))]
pub fn trace_workload(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    answer(py, request, progress.as_ref(), workload::trace)
}
