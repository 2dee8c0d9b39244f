//! Python bindings of what measures and of routers of many machines: convert, call, convert. Everything they call is in
//! `routecast-tester`, `routecast-multistage` and `routecast-probe`, which call Linux.
//!
//! Requests come in and outcomes go out as JSON text. Trials and probes run on threads of their own without the
//! interpreter lock, while the calling thread listens for signals and reports progress.

mod multistage;
mod probe;
mod tester;
mod watch;

use pyo3::prelude::*;

/// The compiled part of routecast that measures.
#[pymodule]
fn _lab(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("TesterError", module.py().get_type::<tester::TesterError>())?;
    module.add_class::<tester::Tester>()?;
    module.add_class::<tester::XdpProgram>()?;
    module.add_class::<watch::PollWatch>()?;
    module.add_function(wrap_pyfunction!(tester::attach_xdp, module)?)?;
    module.add_function(wrap_pyfunction!(tester::back_ends, module)?)?;
    module.add_class::<multistage::FrameLoss>()?;
    module.add_class::<multistage::LoadBalancer>()?;
    module.add_class::<multistage::MemberGate>()?;
    module.add_class::<multistage::NamespaceNetlink>()?;
    module.add_function(wrap_pyfunction!(multistage::flow_row, module)?)?;
    module.add_function(wrap_pyfunction!(multistage::flow_table, module)?)?;
    module.add("ProbeError", module.py().get_type::<probe::ProbeError>())?;
    module.add_function(wrap_pyfunction!(probe::probe_host, module)?)?;
    module.add_function(wrap_pyfunction!(probe::run_function, module)?)?;
    module.add_function(wrap_pyfunction!(probe::workload_kernels, module)?)?;
    module.add_function(wrap_pyfunction!(probe::run_workload, module)?)?;
    module.add_function(wrap_pyfunction!(probe::trace_workload, module)?)
}
