//! The results of one simulation.

use serde::Serialize;

/// A distribution of latencies, in cycles of the plane.
#[derive(Debug, Clone, Serialize)]
pub struct Latency {
    /// Number of packets or flits.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

/// The results of one simulation. "Measured" packets are those that are created in the measurement phase.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Of measured packets: from their creation in the source queue until the tail is ejected.
    pub packet_latency: Latency,
    /// Of measured packets: from the time when the head leaves the source queue until the tail is ejected.
    pub network_latency: Latency,
    /// Of each flit of measured packets: from the time when it leaves the source queue until it is ejected.
    pub flit_latency: Latency,
    /// Mean number of routers on the paths of measured packets.
    pub mean_routers: f64,
    /// Mean packet latency of each batch of measured packets, by creation time, without empty batches.
    pub batch_latency: Vec<f64>,
    /// Flits created in the measurement phase, by node.
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
    /// Flits created in the whole run: created = ejected + inside (S12).
    pub created_flits: u64,
    /// Flits ejected in the whole run.
    pub ejected_flits: u64,
    /// Flits in the network and in source queues at the end of the run.
    pub inside_flits: u64,
    /// Flits through routers in the whole run.
    pub flit_hops: u64,
    /// Cycles simulated, all phases.
    pub cycles: u64,
    /// Whether the run ended in a deadlock: flits are inside, and none has moved for too long.
    pub deadlocked: bool,
}
