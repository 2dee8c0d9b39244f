//! Captures as a load.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use routecast_captures::Options;
use routecast_captures::error::CaptureError as Refusal;

use routecast_listen::listen;

pyo3::create_exception!(
    routecast._core,
    CaptureError,
    pyo3::exceptions::PyException,
    "A capture that cannot be read. Arguments: kind, message."
);

fn convert(error: &Refusal) -> PyErr {
    CaptureError::new_err((error.kind(), error.to_string()))
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

/// Reads times, sizes and flows of the frames of a capture (see `crates/captures/src/lib.rs`).
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
#[pyfunction]
#[pyo3(signature = (path, inner=false, split_mtu=0))]
pub fn read_recording(py: Python<'_>, path: PathBuf, inner: bool, split_mtu: u32) -> PyResult<Bound<'_, PyDict>> {
    let options = Options { inner, split_mtu_bytes: split_mtu };
    let result = listen(py, None, |report| routecast_captures::read(&path, options, &|| report(0.0).is_continue()))?;
    let broken =
        || CaptureError::new_err(("panic", format!("{}: cannot be unpacked; unpack it first", path.display())));
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
    py.detach(|| routecast_captures::is_capture(&path)).map_err(|error| convert(&error))
}
