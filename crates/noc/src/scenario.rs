//! The scenario of one simulation as data: a plane, a load and a seed. The bindings pass it as JSON.
//!
//! Names and geometry stay with the caller; here routers, links, nodes are indices. Times are cycles of the plane's
//! clock unless a name says node cycles (the clock of the processing elements).

use serde::Deserialize;

/// The input of one simulation.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Routers, links and nodes.
    pub network: Network,
    /// What is inside a router.
    pub router: Router,
    /// The routing of packets.
    pub routing: Routing,
    /// The traffic of the nodes.
    pub load: Load,
    /// Duration and seed.
    pub run: Run,
}

/// Routers, links, nodes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Number of routers.
    pub routers: usize,
    /// Unidirectional links between routers. A router's output ports are its links in this order, then its nodes.
    pub links: Vec<Link>,
    /// The router of each node.
    pub nodes: Vec<usize>,
    /// Cycles of the channel between a node and its router, each way.
    pub node_link_cycles: u32,
}

/// A unidirectional link between routers, one flit per cycle.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Router that sends.
    pub from: usize,
    /// Router that receives.
    pub to: usize,
    /// Cycles on the wire.
    pub cycles: u32,
}

/// The inside of every router.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// How arriving flits queue.
    pub queueing: Queueing,
    /// Flits that each virtual channel (or virtual output queue) of an input holds.
    pub buffer_flits: u32,
    /// How inputs are matched with outputs, in both allocators.
    pub allocator: Allocator,
    /// Cycles of route computation before the allocation of a virtual channel; 0 is look-ahead routing.
    pub routing_cycles: u32,
    /// Cycles of the allocation of a virtual channel to a head flit; 0 allocates channel and switch in one cycle.
    pub vc_allocation_cycles: u32,
    /// Cycles of switch allocation of every flit, at least 1. It is pipelined: a channel still sends a flit in each cycle.
    pub switch_allocation_cycles: u32,
    /// Cycles through the crossbar.
    pub traversal_cycles: u32,
    /// Cycles of a credit in the router before, after its way back over the wire, which takes as long as a flit's.
    pub credit_cycles: u32,
}

/// How arriving flits queue.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Queueing {
    /// One FIFO for each of so many virtual channels; 1 is the plain wormhole router.
    VirtualChannels {
        /// Virtual channels of a link.
        count: u32,
    },
    /// One queue for each output of the router (virtual output queues).
    VirtualOutputQueues,
}

/// How inputs are matched with outputs.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Allocator {
    /// Separable, inputs first: every input asks one output only; rotating priorities move on every grant.
    RoundRobin,
    /// Separable, outputs first; priorities move only past accepted grants (iSLIP).
    Islip {
        /// Rounds in a cycle.
        iterations: u32,
    },
    /// The longest queue first, greedily, until nothing more fits: a maximal matching of at least half the maximum weight.
    GreedyWeight,
}

/// The routing of packets.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Routing {
    /// One link for each pair of routers, with a virtual-channel class for each pair of link and target.
    Table {
        /// Number of virtual-channel classes.
        classes: u32,
        /// `links[router][target]`: the link to take; the entry of a router for itself is ignored.
        links: Vec<Vec<u32>>,
        /// `class[router][target]`; empty means class 0 everywhere.
        class: Vec<Vec<u8>>,
    },
    /// Every packet draws one of its flow's paths.
    Paths {
        /// Number of virtual-channel classes.
        classes: u32,
        /// All paths.
        paths: Vec<Path>,
    },
    /// Along the rows and columns of a mesh without tables: what a large mesh has no room for. Routers are numbered row
    /// by row, and neighbours are joined both ways.
    Grid {
        /// Routers in a row.
        columns: usize,
        /// What goes first.
        way: Way,
    },
    /// Every hop chooses among the links that a turn model allows the one with the most free buffers ahead.
    Adaptive {
        /// Number of virtual-channel classes.
        classes: u32,
        /// `choices[arrival][target]`: links allowed to a packet that came over link `arrival`; the packets of a router's
        /// own nodes come over `links.len() + router`.
        choices: Vec<Vec<Vec<u32>>>,
    },
}

impl Routing {
    /// Number of virtual-channel classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        match self {
            Self::Table { classes, .. } | Self::Paths { classes, .. } | Self::Adaptive { classes, .. } => {
                *classes as usize
            }
            Self::Grid { way: Way::XFirst | Way::YFirst, .. } => 1,
            Self::Grid { .. } => 2,
        }
    }
}

/// How packets go along rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Along the row first (XY).
    XFirst,
    /// Along the column first (YX).
    YFirst,
    /// Every packet draws one of the two, XY in class 0 and YX in class 1 (O1TURN).
    Either,
    /// XY to a router of the rectangle between source and target in class 0, all alike likely, and XY on to the target
    /// in class 1 (ROMM).
    OverRectangle,
    /// The same over any router at all (Valiant).
    OverAny,
}

/// One path of the flow between two routers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// First router.
    pub source: usize,
    /// Last router.
    pub target: usize,
    /// Its links in order.
    pub links: Vec<u32>,
    /// The virtual-channel class on each.
    pub layers: Vec<u8>,
    /// Part of the flow's packets, 0..1.
    pub share: f64,
}

/// The traffic of the nodes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// What each node sends, its targets in rising order.
    pub demand: Vec<Vec<Stretch>>,
    /// Lengths of packets in flits.
    pub packet_flits: Vec<u32>,
    /// How often each length, any positive numbers.
    pub weights: Vec<f64>,
    /// When packets are made.
    pub injection: Injection,
    /// Cycles of the plane in one node cycle; below 1 the plane is slowed down (1/alpha).
    pub clock_ratio: f64,
}

/// Consecutive nodes that receive the same demand from a node. Written as `[first, count, demand]`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(from = "(usize, usize, f64)")]
pub struct Stretch {
    /// The first of them. The sender itself may be among them: that crosses its router only.
    pub first: usize,
    /// How many there are.
    pub count: usize,
    /// Flits per node cycle to each.
    pub demand: f64,
}

impl From<(usize, usize, f64)> for Stretch {
    fn from((first, count, demand): (usize, usize, f64)) -> Self {
        Self { first, count, demand }
    }
}

impl Stretch {
    /// Flits per node cycle to all of them.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.count as f64 * self.demand
    }

    /// Its nodes.
    #[must_use]
    pub fn nodes(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }
}

/// When packets are made.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Injection {
    /// One trial per node and node cycle.
    Bernoulli,
    /// Bernoulli trials at a higher rate while a node is on; on and off last geometrically.
    OnOff {
        /// Mean node cycles of an on period.
        on_cycles: f64,
        /// Mean node cycles of an off period.
        off_cycles: f64,
    },
}

/// Duration and seed.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Seed of all random streams.
    pub seed: u64,
    /// Number of the replication; another one has other streams.
    pub replication: u64,
    /// Cycles before the measurement.
    pub warmup_cycles: u64,
    /// Cycles whose packets are measured.
    pub measure_cycles: u64,
    /// The longest drain, cycles, until every measured packet has arrived; sources go on.
    pub drain_cycles: u64,
    /// Parts of the measurement whose means are given (batch means).
    pub batches: u32,
}
