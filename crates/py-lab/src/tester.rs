//! The tester and the programs of a device under test.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use routecast_tester::sys::thread::AwayFrom;
use routecast_tester::{Device, TesterError as Refusal};

use routecast_listen::listen;

pyo3::create_exception!(
    routecast.lab._lab,
    TesterError,
    pyo3::exceptions::PyException,
    "A tester that cannot be opened or a trial that cannot be run. Arguments: kind, message."
);

pub(crate) fn convert(error: &Refusal) -> PyErr {
    TesterError::new_err((error.kind(), error.to_string()))
}

fn broken() -> PyErr {
    TesterError::new_err(("panic", "the tester broke an invariant"))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // After a panic the tester is closed or still consistent: every trial resets the state that it uses.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ports of this machine that send and receive test frames.
#[pyclass(module = "routecast.lab._lab", frozen)]
pub struct Tester {
    inner: Mutex<Option<routecast_tester::Tester>>,
}

#[pymethods]
impl Tester {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let opened = py.detach(|| routecast_tester::Tester::open(config));
        opened.map(|tester| Self { inner: Mutex::new(Some(tester)) }).map_err(|error| convert(&error))
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
    #[pyo3(signature = (request, progress=None))]
    fn trial(&self, py: Python<'_>, request: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
        let cpu = py.detach(|| locked(&self.inner).as_ref().and_then(routecast_tester::Tester::send_cpu));
        let _away = AwayFrom::core(cpu);
        let result = listen(py, progress.as_ref(), |report| match locked(&self.inner).as_mut() {
            Some(tester) => tester.trial(request, report),
            None => Err(Refusal::Closed),
        })?;
        let outcome = result.ok_or_else(broken)?.map_err(|error| convert(&error))?;
        serde_json::to_string(&outcome).map_err(|error| TesterError::new_err(("outcome", error.to_string())))
    }

    fn facts(&self, py: Python<'_>) -> PyResult<String> {
        let facts = py.detach(|| locked(&self.inner).as_ref().map(|tester| tester.facts().to_string()));
        facts.ok_or_else(|| convert(&Refusal::Closed))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(locked(&self.inner).take()));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (_kind, _error, _trace, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<Bound<'_, PyAny>>,
        _error: Option<Bound<'_, PyAny>>,
        _trace: Option<Bound<'_, PyAny>>,
    ) {
        self.close(py);
    }
}

/// An eBPF program on the ingress of a device under test.
#[pyclass(module = "routecast.lab._lab", frozen)]
pub struct XdpProgram {
    inner: Mutex<Option<Device>>,
}

impl XdpProgram {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Device) -> routecast_tester::Result<T> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| match locked(&self.inner).as_mut() {
            Some(device) => work(device),
            None => Err(Refusal::Closed),
        });
        done.map_err(|error| convert(&error))
    }
}

#[pymethods]
impl XdpProgram {
    fn set(&self, py: Python<'_>, settings: &str) -> PyResult<()> {
        self.with(py, |device| device.set(settings))
    }

    fn counters(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |device| device.counters()).map(|counters| counters.to_string())
    }

    fn facts(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |device| Ok(device.facts())).map(|facts| facts.to_string())
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(locked(&self.inner).take()));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (_kind, _error, _trace, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<Bound<'_, PyAny>>,
        _error: Option<Bound<'_, PyAny>>,
        _trace: Option<Bound<'_, PyAny>>,
    ) {
        self.close(py);
    }
}

/// Back ends that send and receive, and why those that this process cannot use here are not to be had, as JSON.
#[pyfunction]
pub fn back_ends(py: Python<'_>) -> PyResult<String> {
    let back_ends = py.detach(routecast_tester::back_ends);
    serde_json::to_string(&back_ends).map_err(|error| TesterError::new_err(("outcome", error.to_string())))
}

/// Attaches an eBPF program to an interface of a device under test.
#[pyfunction]
pub fn attach_xdp(py: Python<'_>, config: &str) -> PyResult<XdpProgram> {
    let attached = py.detach(|| Device::attach(config));
    attached.map(|device| XdpProgram { inner: Mutex::new(Some(device)) }).map_err(|error| convert(&error))
}
