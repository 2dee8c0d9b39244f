//! One plane, cycle by cycle.
//!
//! In a cycle, flits, credits and heads from the routing stage arrive; then nodes send; then routers allocate virtual
//! channels and their switch. A decision of a router takes effect elsewhere a cycle later at the earliest, so the order
//! of routers within a cycle does not matter. The engine visits only routers with a request and nodes with a packet to
//! send, and skips cycles without events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use routecast_sim::random::{Stream, stream};

use crate::active::ActiveSet;
use crate::buffers::{Behind, Input, NOBODY, Output, Port, inputs, outputs, ports};
use crate::network::{MOST, NODE, Tables};
use crate::node::Node;
use crate::packet::{NONE, Slab};
use crate::routes::Routes;
use crate::scenario::{Allocator, Run, Scenario};
use crate::source::Mixture;
use crate::statistics::Statistics;
use crate::wheel::Wheel;

/// A flit that arrives: the virtual channel, and the packet if it is a head.
pub type Arrival = (u32, u32);

/// Pending work of a router.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// Inputs in which a flit waits.
    pub waiting: u64,
    /// Inputs whose packet has an output virtual channel with room ahead.
    pub able: u64,
    /// Inputs whose front packet wants an output virtual channel.
    pub trying: u64,
    /// Output virtual channels without an owner.
    pub free: u64,
}

/// State of a plane.
pub struct Engine {
    pub(crate) setup: Setup,
    pub(crate) channels: Channels,
    pub(crate) routers: Routers,
    pub(crate) flight: Flight,
    pub(crate) sources: Sources,
    pub(crate) statistics: Statistics,
    pub(crate) now: u64,
}

/// The constants of a run.
pub struct Setup {
    pub(crate) tables: Tables,
    pub(crate) routes: Routes,
    pub(crate) allocator: Allocator,
    pub(crate) mixture: Mixture,
    pub(crate) run: Run,
    /// Whether a virtual channel and the switch may be granted in one cycle.
    pub(crate) same_cycle: bool,
}

/// Virtual channels at the inputs and outputs of all routers, and at the nodes.
pub struct Channels {
    pub(crate) input: Vec<Input>,
    pub(crate) output: Vec<Output>,
    pub(crate) behind: Behind,
    /// By input: virtual channels that its packet may get on its output.
    pub(crate) allowed: Vec<u64>,
    /// By input: output port of its packet.
    pub(crate) port: Vec<u8>,
    /// By output port: inputs that wait for one of its virtual channels.
    pub(crate) parked: Vec<u64>,
    /// Packet that each virtual channel of each node's end receives.
    pub(crate) sinks: Vec<u32>,
}

/// Pending work and grants of the routers.
pub struct Routers {
    pub(crate) work: Vec<Work>,
    pub(crate) ports: Vec<Port>,
    pub(crate) busy: ActiveSet,
    /// Empty between two uses: requests by output port, grants by input port.
    pub(crate) requests: [u64; MOST],
    pub(crate) grants: [u64; MOST],
}

/// Packets under way, and arrivals on wires.
pub struct Flight {
    pub(crate) slab: Slab,
    pub(crate) arrivals: Wheel<Arrival>,
    pub(crate) credits: Wheel<u32>,
    pub(crate) heads: Wheel<u32>,
    /// Flits inside routers and on wires.
    pub(crate) inside: u64,
    /// Whether anything moved in this cycle.
    pub(crate) moved: bool,
}

/// The nodes that create packets, and their next instants.
pub struct Sources {
    pub(crate) nodes: Vec<Node>,
    pub(crate) sending: ActiveSet,
    pub(crate) waking: BinaryHeap<Reverse<(u64, u32)>>,
    pub(crate) path_streams: Vec<Stream>,
}

impl Engine {
    /// An idle plane, from a checked scenario.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let tables = Tables::new(&scenario.network, &scenario.router, scenario.routing.classes());
        let routes = Routes::new(&tables, &scenario.routing);
        let (run, load) = (scenario.run, &scenario.load);
        let shortest = load.packet_flits.iter().copied().min().unwrap_or(1).max(1);
        let slots = tables.routers << tables.shift;
        let longest = tables.longest();
        let all = tables.ports * tables.vcs;
        let free = if all >= 64 { u64::MAX } else { (1 << all) - 1 };
        let mut engine = Self {
            channels: Channels {
                input: inputs(&tables),
                output: outputs(&tables, scenario.router.buffer_flits),
                behind: Behind::new(slots, scenario.router.buffer_flits.div_ceil(shortest) as usize + 1),
                allowed: vec![0; slots],
                port: vec![0; slots],
                parked: vec![0; tables.routers * tables.ports],
                sinks: vec![NONE; tables.nodes << tables.node_shift],
            },
            routers: Routers {
                work: vec![Work { free, ..Work::default() }; tables.routers],
                ports: ports(&tables),
                busy: ActiveSet::new(tables.routers),
                requests: [0; MOST],
                grants: [0; MOST],
            },
            flight: Flight {
                slab: Slab::default(),
                arrivals: Wheel::new(longest),
                credits: Wheel::new(longest),
                heads: Wheel::new(longest),
                inside: 0,
                moved: false,
            },
            sources: Sources {
                nodes: (0..tables.nodes).map(|node| Node::new(scenario, node, tables.vcs)).collect(),
                sending: ActiveSet::new(tables.nodes),
                waking: BinaryHeap::new(),
                path_streams: (0..tables.nodes)
                    .map(|node| stream(run.seed, run.replication, "noc paths", node as u64))
                    .collect(),
            },
            statistics: Statistics::new(scenario),
            now: 0,
            setup: Setup {
                same_cycle: scenario.router.vc_allocation_cycles == 0,
                allocator: scenario.router.allocator,
                mixture: Mixture::new(load),
                run,
                routes,
                tables,
            },
        };
        for node in 0..engine.setup.tables.nodes {
            engine.expect(node);
        }
        engine
    }

    /// One cycle.
    pub(crate) fn step(&mut self) {
        self.flight.moved = false;
        let now = self.now;
        let list = self.flight.credits.take(now, 0);
        for &output in &list {
            self.credit(output as usize);
        }
        self.flight.credits.give_back(now, 0, list);
        let list = self.flight.credits.take(now, 1);
        for &end in &list {
            self.node_credit((end ^ NODE) as usize);
        }
        self.flight.credits.give_back(now, 1, list);
        let list = self.flight.arrivals.take(now, 0);
        for &(input, head) in &list {
            self.arrive(input as usize, head);
        }
        self.flight.arrivals.give_back(now, 0, list);
        let list = self.flight.arrivals.take(now, 1);
        for &(end, head) in &list {
            self.eject((end ^ NODE) as usize, head);
        }
        self.flight.arrivals.give_back(now, 1, list);
        if !self.flight.heads.is_empty() {
            let list = self.flight.heads.take(now, 0);
            for &input in &list {
                self.try_from_now(input as usize);
            }
            self.flight.heads.give_back(now, 0, list);
        }
        self.send_from_nodes();
        let mut from = 0;
        while let Some((word, mut routers)) = self.routers.busy.word(from) {
            while routers != 0 {
                self.route(64 * word + routers.trailing_zeros() as usize);
                routers &= routers - 1;
            }
            from = word + 1;
        }
    }

    /// One cycle of a router.
    fn route(&mut self, router: usize) {
        let fresh = if self.routers.work[router].trying == 0 { 0 } else { self.allocate_channels(router) };
        if self.setup.same_cycle {
            self.enable(router, fresh);
        }
        let ready = self.routers.work[router].waiting & self.routers.work[router].able;
        if ready != 0 {
            self.flight.moved = true;
            self.allocate_switch(router, ready);
        }
        if !self.setup.same_cycle {
            self.enable(router, fresh);
        }
        let work = &self.routers.work[router];
        if work.waiting & work.able | work.trying == 0 {
            self.routers.busy.remove(router);
        }
    }

    /// Inputs that got a virtual channel request the switch, if there is room ahead.
    fn enable(&mut self, router: usize, mut fresh: u64) {
        let base = router << self.setup.tables.shift;
        while fresh != 0 {
            let bit = fresh.trailing_zeros() as usize;
            fresh &= fresh - 1;
            let out = usize::from(self.channels.input[base + bit].out);
            if self.channels.output[base + out].credits > 0 {
                self.routers.work[router].able |= 1 << bit;
            }
        }
    }

    /// Room ahead of an output.
    #[inline]
    fn credit(&mut self, at: usize) {
        let output = &mut self.channels.output[at];
        output.credits += 1;
        if output.credits == 1 && output.owner != NOBODY {
            let router = at >> self.setup.tables.shift;
            let bit = 1 << (output.owner & 63);
            let work = &mut self.routers.work[router];
            work.able |= bit;
            self.routers.busy.insert_if(work.waiting & bit != 0, router);
        }
    }

    /// A flit arrives at a router.
    #[inline]
    fn arrive(&mut self, index: usize, head: u32) {
        let input = &mut self.channels.input[index];
        input.waiting += 1;
        let front = input.packet;
        let router = index >> self.setup.tables.shift;
        let bit = 1 << (index & self.setup.tables.low);
        let work = &mut self.routers.work[router];
        work.waiting |= bit;
        self.routers.busy.insert_if(work.able & bit != 0, router);
        if head != NONE {
            if front == NONE {
                self.begin(index, head, self.now);
            } else {
                self.channels.behind.push(index, head);
            }
        }
    }
}
