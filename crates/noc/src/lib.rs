//! Flit-level simulator of networks on chip: one plane of input-queued wormhole routers with virtual channels and
//! credits, cycle by cycle, at a cost that grows with the traffic and not with the size of the mesh.

pub mod outcome;
pub mod scenario;
