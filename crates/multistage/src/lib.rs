//! The data plane of a router of many machines (Li 2012, ch. 1-3): several Linux machines that forward as one router.
//!
//! ```text
//!   neighbours ── outside ─┐  load balancer  ┌─ inside ── switch ── back-end routers
//!                          └── Table, health ┘
//! ```
//!
//! [`table`] maps each flow to a back-end router, as a pure function; `plane` writes the table and the other settings
//! of the eBPF programs into their maps, and reads their counters; `netlink` sets neighbours of network namespaces and
//! reads what is configured there.

mod flow;
mod loss;
mod netlink;
mod plane;
pub mod table;

pub use flow::Flow;
pub use loss::Loss;
pub use netlink::Namespace;
pub use plane::{Gate, Mac, Plane, Role};
pub use table::{Table, Weight};
