//! Python bindings: convert, call, convert. Everything they call is in `routecast-sim` and `routecast-captures`.
//!
//! Scenarios come in and outcomes go out as JSON text, one schema for both sides. Simulations run on threads of their
//! own without the interpreter lock, while the calling thread listens for signals and reports progress.

mod captures;
mod device;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use routecast_listen::listen;
use routecast_sim::recorded::Polls;
use routecast_sim::replicate::Plan;
use routecast_sim::{Scenario, SimError};

pyo3::create_exception!(
    routecast._core,
    SimulationError,
    pyo3::exceptions::PyException,
    "A scenario that cannot be simulated. Arguments: kind, message, duration_s, needed_s."
);

fn convert(error: &SimError) -> PyErr {
    let (duration_s, needed_s) = error.spans_s();
    SimulationError::new_err((error.kind(), error.to_string(), duration_s, needed_s))
}

/// Simulates a scenario.
///
/// `scenario` is JSON (see `crates/sim/src/scenario.rs`), the result is the JSON of an outcome. `progress` is called
/// about every 50 ms with the finished share, 0..1; an exception in it, or a signal, stops the run. With a `device` the
/// trial runs in lanes there (see [`device::PyDevice`]).
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
#[pyo3(signature = (scenario, *, replications=1, target_relative_half_width=None, most=64, progress=None, device=None))]
fn simulate(
    py: Python<'_>,
    scenario: &str,
    replications: usize,
    target_relative_half_width: Option<f64>,
    most: usize,
    progress: Option<Py<PyAny>>,
    device: Option<Py<PyAny>>,
) -> PyResult<String> {
    let device = device.map(|object| device::PyDevice::new(py, object)).transpose()?;
    let scenario: Scenario = serde_json::from_str(scenario)
        .map_err(|error| SimulationError::new_err(("scenario", error.to_string(), 0.0, 0.0)))?;
    let plan = Plan { replications, target_relative_half_width, most };
    let result = listen(py, progress.as_ref(), |report| match &device {
        None => routecast_sim::replicate(&scenario, plan, report),
        Some(device) => routecast_sim::replicate_on(device, &scenario, plan, report),
    })?;
    let broken = || SimulationError::new_err(("panic", "the simulation broke an invariant", 0.0, 0.0));
    let outcome = result.ok_or_else(broken)?.map_err(|error| convert(&error))?;
    serde_json::to_string(&outcome).map_err(|error| SimulationError::new_err(("outcome", error.to_string(), 0.0, 0.0)))
}

/// Reads times in seconds out of an HDR histogram (base64 of the compressed V2 form, nanoseconds), one per probability.
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
fn hdr_quantiles_s(hdr_base64: &str, probabilities: Vec<f64>) -> PyResult<Vec<f64>> {
    routecast_sim::histogram::quantiles_s(hdr_base64, &probabilities)
        .ok_or_else(|| pyo3::exceptions::PyValueError::new_err("not an HDR histogram with a value in it"))
}

/// Classes of an HDR histogram (base64 of the compressed V2 form) that hold something: least, greatest value, count.
#[pyfunction]
fn hdr_classes(hdr_base64: &str) -> PyResult<Vec<(u64, u64, u64)>> {
    routecast_sim::histogram::classes(hdr_base64)
        .ok_or_else(|| pyo3::exceptions::PyValueError::new_err("not an HDR histogram"))
}

/// Adds HDR histograms (base64 of the compressed V2 form); no text gives an empty one.
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
fn hdr_merged(hdr_base64: Vec<String>) -> PyResult<String> {
    routecast_sim::histogram::merged(hdr_base64.iter().map(String::as_str))
        .ok_or_else(|| pyo3::exceptions::PyValueError::new_err("not an HDR histogram"))
}

/// Ends and starts of service of recorded frames at a server with interrupts, time at work and interrupts.
///
/// `polls`: budget, costs of an interrupt and of a batch, moderation, wake-up and lingering, picoseconds.
#[expect(clippy::too_many_arguments, reason = "what a server is, for Python")]
#[pyfunction]
#[pyo3(signature = (at_ps, work_ps, room, until_ps, polls, *, exhaustive, sleep_ps))]
fn polled_starts<'py>(
    py: Python<'py>,
    at_ps: &[u8],
    work_ps: &[u8],
    room: usize,
    until_ps: u64,
    polls: (usize, u64, u64, u64, u64, u64),
    exhaustive: bool,
    sleep_ps: Vec<(u64, u64)>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, u64, u64)> {
    let (budget, interrupt_ps, batch_ps, moderation_ps, wakeup_ps, linger_ps) = polls;
    if at_ps.len() != work_ps.len() || !at_ps.len().is_multiple_of(8) || budget == 0 || room == 0 {
        let wrong =
            format!("{} and {} bytes of 64-bit numbers, budget {budget}, room {room}", at_ps.len(), work_ps.len());
        return Err(pyo3::exceptions::PyValueError::new_err(wrong));
    }
    let polls = Polls { budget, exhaustive, interrupt_ps, moderation_ps, wakeup_ps, batch_ps, linger_ps, sleep_ps };
    let (at, work) = (numbers(at_ps), numbers(work_ps));
    let polled = py.detach(|| routecast_sim::recorded::polled(&at, &work, &polls, room, until_ps));
    Ok((packed(py, &polled.starts)?, packed(py, &polled.ends)?, polled.busy_ps, polled.interrupts))
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|eight| u64::from_ne_bytes(eight.try_into().expect("eight bytes"))).collect()
}

fn packed<'py>(py: Python<'py>, numbers: &[u64]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, numbers.len() * 8, |bytes| {
        for (eight, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            eight.copy_from_slice(&number.to_ne_bytes());
        }
        Ok(())
    })
}

/// Starts of service of recorded frames at one queue, picoseconds; 2^64 - 1 where a frame finds no room.
#[pyfunction]
fn queue_starts<'py>(
    py: Python<'py>,
    at_ps: &[u8],
    work_ps: &[u8],
    servers: usize,
    room: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    if at_ps.len() != work_ps.len() || !at_ps.len().is_multiple_of(8) || servers == 0 {
        let lengths = format!("{} and {} bytes of 64-bit numbers, {servers} servers", at_ps.len(), work_ps.len());
        return Err(pyo3::exceptions::PyValueError::new_err(lengths));
    }
    let (at, work) = (numbers(at_ps), numbers(work_ps));
    let starts = py.detach(|| routecast_sim::recorded::starts(&at, &work, servers, room));
    packed(py, &starts)
}

/// The compiled core of routecast.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CaptureError", module.py().get_type::<captures::CaptureError>())?;
    module.add("SimulationError", module.py().get_type::<SimulationError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(hdr_classes, module)?)?;
    module.add_function(wrap_pyfunction!(hdr_merged, module)?)?;
    module.add_function(wrap_pyfunction!(hdr_quantiles_s, module)?)?;
    module.add_function(wrap_pyfunction!(polled_starts, module)?)?;
    module.add_function(wrap_pyfunction!(queue_starts, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(captures::is_capture, module)?)?;
    module.add_function(wrap_pyfunction!(captures::read_recording, module)?)?;
    Ok(())
}
