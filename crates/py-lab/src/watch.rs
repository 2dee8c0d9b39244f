//! The watch on the polls of a router in service.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use routecast_tester::{TesterError as Refusal, Watch};

use crate::tester::{TesterError, convert};

/// What the polls of one interface cost; see `crates/tester/src/watch.rs`.
#[pyclass(module = "routecast.lab._lab", frozen)]
pub struct PollWatch {
    inner: Mutex<Option<Watch>>,
}

impl PollWatch {
    fn locked(&self) -> MutexGuard<'_, Option<Watch>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PollWatch {
    #[new]
    fn new(py: Python<'_>, interface_index: u32, namespace_inode: u32, threads_alone: bool) -> PyResult<Self> {
        let watch = py.detach(|| Watch::new(interface_index, namespace_inode, threads_alone));
        watch.map(|watch| Self { inner: Mutex::new(Some(watch)) }).map_err(|error| convert(&error))
    }

    fn polls(&self, py: Python<'_>) -> PyResult<String> {
        let polls = py.detach(|| self.locked().as_ref().ok_or(Refusal::Closed)?.polls());
        let polls = polls.map_err(|error| convert(&error))?;
        serde_json::to_string(&polls).map_err(|error| TesterError::new_err(("outcome", error.to_string())))
    }

    fn take_records<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let records = py.detach(|| self.locked().as_mut().map(Watch::take_records));
        records.map(|records| PyBytes::new(py, &records)).ok_or_else(|| convert(&Refusal::Closed))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.locked().take()));
    }
}
