//! What one simulation saw.

use serde::Serialize;

/// A distribution of latencies, in cycles of the plane.
#[derive(Debug, Clone, Serialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// What one simulation saw. "Measured" packets are those made in the measurement phase.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Made in the source queue until the tail is ejected, of measured packets.
    pub packet_latency: Latency,
    /// Head leaves the source queue until the tail is ejected.
    pub network_latency: Latency,
    /// Leaves the source queue until ejected, of each flit of measured packets.
    pub flit_latency: Latency,
    /// Mean routers on the way of measured packets.
    pub mean_routers: f64,
    /// Mean packet latency of each batch of measured packets, by creation time; NaN-free: batches without packets are left out.
    pub batch_latency: Vec<f64>,
    /// Flits made in the measurement phase, by node.
    pub offered_flits: Vec<u64>,
    /// Flits ejected in the measurement phase, by receiving node.
    pub accepted_flits: Vec<u64>,
    /// Flits over each link in the measurement phase.
    pub link_flits: Vec<u64>,
    /// Flits through each router in the measurement phase.
    pub router_flits: Vec<u64>,
    /// Flits that waited in all source queues when the measurement began, and when it ended.
    pub source_flits: [u64; 2],
    /// Flits of measured packets that had not arrived at the end.
    pub undelivered_flits: u64,
    /// Whole run: flits made, ejected, and still inside (network and source queues). made = ejected + inside (S12).
    pub created_flits: u64,
    /// See `created_flits`.
    pub ejected_flits: u64,
    /// See `created_flits`.
    pub inside_flits: u64,
    /// Flits through routers in the whole run.
    pub flit_hops: u64,
    /// Cycles simulated, all phases.
    pub cycles: u64,
    /// Nothing moved for so long with flits inside that it must be a deadlock; the run was ended there.
    pub deadlocked: bool,
}
