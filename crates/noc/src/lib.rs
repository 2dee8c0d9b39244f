//! Flit-level simulator of networks on chip: one plane of input-queued wormhole routers with virtual channels and
//! credits, cycle by cycle, at a cost that grows with the traffic and not with the size of the mesh.
//!
//! [`simulate()`] runs a [`Scenario`]. A head flit spends the cycles of routing, of the allocation of a virtual channel,
//! of the allocation of the switch and of the crossbar in every router, and the cycles of the link after it; the other
//! flits follow one in each cycle. With one cycle for each stage and link, a packet of `L` flits over `h` routers takes
//! `4 h + L + 1` cycles in an empty network.
//!
//! [`greedy()`] finds the paths of a routing that looks at the loads of links, flow after flow.

// So that the tests here and those in `tests` build their networks with the same lines.
#[cfg(test)]
extern crate self as routecast_noc;

mod active;
mod buffers;
mod channel_allocation;
mod check;
mod deadlock;
mod engine;
mod error;
mod finish;
mod front;
mod greedy;
mod grid;
#[cfg(test)]
mod invariants;
#[cfg(test)]
#[path = "../tests/all/meshes/mod.rs"]
mod meshes;
mod network;
mod node;
pub mod outcome;
mod packet;
mod phases;
mod rotate;
mod routes;
pub mod scenario;
mod simulate;
mod source;
mod statistics;
mod switch_allocation;
mod wheel;

pub use error::NocError;
pub use greedy::{Routers, greedy};
pub use outcome::Outcome;
pub use scenario::Scenario;
pub use simulate::{simulate, simulate_all};
