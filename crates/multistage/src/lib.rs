//! The data plane of a router of many machines (Li 2012, ch. 1-3): several Linux machines that forward as one router.
//!
//! ```text
//!   neighbours ── outside ─┐  load balancer  ┌─ inside ── switch ── back-end routers
//!                          └── Table, health ┘
//! ```
//!
//! [`table`] says which back-end router takes which flow, as a pure function; `plane` writes it, with what else the eBPF
//! programs need, into their maps and reads what they counted.

mod flow;
mod plane;
pub mod table;

pub use flow::Flow;
pub use plane::{Gate, Plane, Role};
pub use table::{Table, Weight};
