//! Python bindings: convert, call, convert. Everything they call is in `routecast-sim`.
//!
//! Scenarios come in and outcomes go out as JSON text, one schema for both sides. The simulation runs on threads of
//! its own without the interpreter lock, while the calling thread listens for signals and reports progress.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;
use routecast_sim::replicate::Plan;
use routecast_sim::{Scenario, SimError};

pyo3::create_exception!(
    routecast._core,
    SimulationError,
    pyo3::exceptions::PyException,
    "A scenario that cannot be simulated. Arguments: kind, message, duration_s, needed_s."
);

/// How often the calling thread looks for signals and reports progress.
const LISTEN: Duration = Duration::from_millis(50);

fn convert(error: &SimError) -> PyErr {
    let message = error.to_string();
    let (kind, duration_s, needed_s) = match *error {
        SimError::Transient { duration_s, needed_s, .. } => ("transient", duration_s, needed_s),
        SimError::Cycle { .. } => ("cycle", 0.0, 0.0),
        SimError::NotRecursive { .. } => ("path", 0.0, 0.0),
        SimError::Index { .. } | SimError::Number { .. } => ("scenario", 0.0, 0.0),
        SimError::Interrupted => ("interrupted", 0.0, 0.0),
    };
    SimulationError::new_err((kind, message, duration_s, needed_s))
}

/// Simulates a scenario.
///
/// `scenario` is JSON (see `crates/sim/src/scenario.rs`), the result is the JSON of an outcome. `progress` is called
/// about every 50 ms with the finished share, 0..1; an exception in it, or a signal, stops the run.
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
#[pyo3(signature = (scenario, *, replications=1, target_relative_half_width=None, most=64, progress=None))]
fn simulate(
    py: Python<'_>,
    scenario: &str,
    replications: usize,
    target_relative_half_width: Option<f64>,
    most: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let scenario: Scenario = serde_json::from_str(scenario)
        .map_err(|error| SimulationError::new_err(("scenario", error.to_string(), 0.0, 0.0)))?;
    let plan = Plan { replications, target_relative_half_width, most };
    let stop = AtomicBool::new(false);
    let share = AtomicU64::new(0);
    let outcome = std::thread::scope(|threads| {
        let (send, receive) = channel();
        // Only this thread receives; the lock is there because `detach` may run its closure anywhere.
        let receive = Mutex::new(receive);
        let listen = || receive.lock().expect("only one thread listens").recv_timeout(LISTEN);
        let (stop, share) = (&stop, &share);
        threads.spawn(move || {
            let report = |part: f64| {
                share.store(part.to_bits(), Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            // The receiver is gone only if the caller has given up.
            let _ = send.send(routecast_sim::replicate(&scenario, plan, &report));
        });
        loop {
            match py.detach(listen) {
                Ok(result) => return result.map_err(|error| convert(&error)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(SimulationError::new_err(("panic", "the simulation broke an invariant", 0.0, 0.0)));
                }
            }
            let heard = py.check_signals().and_then(|()| match &progress {
                Some(callback) => callback.call1(py, (f64::from_bits(share.load(Ordering::Relaxed)),)).map(drop),
                None => Ok(()),
            });
            if let Err(error) = heard {
                stop.store(true, Ordering::Relaxed);
                // Wait without the lock: a worker must not outlive this call.
                while let Err(RecvTimeoutError::Timeout) = py.detach(listen) {}
                return Err(error);
            }
        }
    })?;
    serde_json::to_string(&outcome).map_err(|error| SimulationError::new_err(("outcome", error.to_string(), 0.0, 0.0)))
}

/// Reads times in seconds out of an HDR histogram (base64 of the compressed V2 form, nanoseconds), one per probability.
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
fn hdr_quantiles_s(hdr_base64: &str, probabilities: Vec<f64>) -> PyResult<Vec<f64>> {
    routecast_sim::histogram::quantiles_s(hdr_base64, &probabilities)
        .ok_or_else(|| pyo3::exceptions::PyValueError::new_err("not an HDR histogram with a value in it"))
}

/// Adds HDR histograms (base64 of the compressed V2 form); no text gives an empty one.
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
fn hdr_merged(hdr_base64: Vec<String>) -> PyResult<String> {
    routecast_sim::histogram::merged(hdr_base64.iter().map(String::as_str))
        .ok_or_else(|| pyo3::exceptions::PyValueError::new_err("not an HDR histogram"))
}

/// The compiled core of routecast.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("SimulationError", module.py().get_type::<SimulationError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(hdr_merged, module)?)?;
    module.add_function(wrap_pyfunction!(hdr_quantiles_s, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)
}
