//! The probe of this host and the network functions that run for real.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use routecast_probe::error::ProbeError as Refusal;
use routecast_probe::{host, recording, run, workload};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::listen::listen;

pyo3::create_exception!(
    routecast._core,
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

/// Numbers of a fixed width as bytes, in the order of this machine.
fn buffer<Number: Copy, const N: usize>(
    py: Python<'_>,
    numbers: Vec<Number>,
    bytes: impl Fn(Number) -> [u8; N],
) -> PyResult<Bound<'_, PyBytes>> {
    let filled = PyBytes::new_with(py, numbers.len() * N, |into| {
        for (place, &number) in into.chunks_exact_mut(N).zip(&numbers) {
            place.copy_from_slice(&bytes(number));
        }
        Ok(())
    });
    // Freed before the next buffer is made: a recording of millions of frames is in memory once, and a part of it twice.
    drop(numbers);
    filled
}

/// Reads times, sizes and flows of the frames of a capture (see `crates/probe/src/recording.rs`).
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
#[pyo3(signature = (path, inner=false, split_mtu=0))]
pub fn read_recording(py: Python<'_>, path: PathBuf, inner: bool, split_mtu: u32) -> PyResult<Bound<'_, PyDict>> {
    let options = recording::Options { inner, split_mtu_bytes: split_mtu };
    let result = listen(py, None, |report| recording::read(&path, options, &|| report(0.0).is_continue()))?;
    let broken = || ProbeError::new_err(("panic", format!("{}: cannot be unpacked; unpack it first", path.display())));
    let recording = result.ok_or_else(broken)?.map_err(|error| convert(&error))?;
    let answer = PyDict::new(py);
    answer.set_item("time_s", buffer(py, recording.time_s, f64::to_ne_bytes)?)?;
    answer.set_item("frame_bytes", buffer(py, recording.frame_bytes, u32::to_ne_bytes)?)?;
    answer.set_item("flow", buffer(py, recording.flow, u32::to_ne_bytes)?)?;
    let flows: Vec<_> = recording
        .flows
        .into_iter()
        .map(|flow| (PyBytes::new(py, &flow.rss_input), flow.side, flow.frames, flow.text))
        .collect();
    answer.set_item("flows", flows)?;
    answer.set_item("notes", recording.notes)?;
    let counts = PyDict::new(py);
    for (name, count) in recording.counts {
        counts.set_item(name, count)?;
    }
    answer.set_item("counts", counts)?;
    Ok(answer)
}

/// Whether a file is a capture, packed or not, by its first bytes.
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
pub fn is_capture(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    py.detach(|| recording::is_capture(&path)).map_err(|error| convert(&error))
}

/// Traces a program that runs a kernel; request and outcome are JSON (see `crates/probe/src/workload/trace.rs`).
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
#[pyo3(signature = (request, progress=None))]
pub fn trace_workload(py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    answer(py, request, progress.as_ref(), workload::trace)
}
