//! One plane, cycle by cycle.
//!
//! A cycle is: what arrives (flits, credits, heads out of the routing stage); nodes send; routers allocate virtual
//! channels and then their switch. What a router decides takes effect elsewhere a cycle later at the earliest, so the
//! order of routers within a cycle means nothing. Only routers with a request and nodes with something to send are
//! looked at, and cycles in which nothing happens are skipped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use routecast_sim::random::{Stream, stream};

use crate::active::ActiveSet;
use crate::buffers::{Behind, Input, NOBODY, Output, inputs, outputs};
use crate::network::{MOST, NODE, Tables};
use crate::node::Node;
use crate::packet::{NONE, Slab};
use crate::routes::{ANY_CLASS, Routes};
use crate::scenario::{Allocator, Routing, Run, Scenario};
use crate::source::Mixture;
use crate::statistics::Statistics;
use crate::wheel::Wheel;

/// A flit that arrives: the virtual channel, and the packet if it is a head.
pub type Arrival = (u32, u32);

/// What a router has to do.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// Inputs whose front flit wants the switch and has room ahead.
    pub ready: u64,
    /// Inputs whose front packet wants an output virtual channel.
    pub trying: u64,
    /// Output virtual channels without an owner.
    pub free: u64,
}

/// Rotating priorities of a port in the switch allocator.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    /// Of an output: input bit where the search among requests begins.
    pub grant: u8,
    /// Of an input: output where the search among grants begins.
    pub accept: u8,
    /// Of an input: virtual channel bit where the search begins.
    pub channel: u8,
}

/// State of a plane.
pub struct Engine {
    pub(crate) tables: Tables,
    pub(crate) routes: Routes,
    pub(crate) allocator: Allocator,
    pub(crate) mixture: Mixture,
    pub(crate) run: Run,
    pub(crate) now: u64,
    /// Whether a virtual channel and the switch may be granted in one cycle.
    pub(crate) same_cycle: bool,
    pub(crate) input: Vec<Input>,
    pub(crate) output: Vec<Output>,
    pub(crate) behind: Behind,
    /// By input: virtual channels that its packet may get on its output.
    pub(crate) allowed: Vec<u64>,
    pub(crate) work: Vec<Work>,
    pub(crate) turns: Vec<Turns>,
    /// By output port: inputs that wait for one of its virtual channels.
    pub(crate) parked: Vec<u64>,
    pub(crate) busy: ActiveSet,
    pub(crate) slab: Slab,
    pub(crate) arrivals: Wheel<Arrival>,
    pub(crate) credits: Wheel<u32>,
    pub(crate) heads: Wheel<u32>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) sending: ActiveSet,
    pub(crate) waking: BinaryHeap<Reverse<(u64, u32)>>,
    pub(crate) path_streams: Vec<Stream>,
    /// Packet that each virtual channel of each node's end receives.
    pub(crate) sinks: Vec<u32>,
    pub(crate) statistics: Statistics,
    pub(crate) requests: [u64; MOST],
    /// Flits inside routers and on wires.
    pub(crate) inside: u64,
    /// Whether anything moved in this cycle.
    pub(crate) moved: bool,
}

/// Virtual-channel classes of a routing.
#[must_use]
pub fn classes(routing: &Routing) -> usize {
    match routing {
        Routing::Table { classes, .. } | Routing::Paths { classes, .. } | Routing::Adaptive { classes, .. } => {
            *classes as usize
        }
    }
}

impl Engine {
    /// A plane at rest, from a scenario that was checked.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let tables = Tables::new(&scenario.network, &scenario.router, classes(&scenario.routing));
        let routes = Routes::new(&tables, &scenario.routing);
        let (run, load) = (scenario.run, &scenario.load);
        let shortest = load.packet_flits.iter().copied().min().unwrap_or(1).max(1);
        let slots = tables.routers << tables.shift;
        let longest = tables.longest();
        let all = tables.ports * tables.vcs;
        let free = if all >= 64 { u64::MAX } else { (1 << all) - 1 };
        let mut engine = Self {
            input: inputs(&tables),
            output: outputs(&tables, scenario.router.buffer_flits),
            behind: Behind::new(slots, scenario.router.buffer_flits.div_ceil(shortest) as usize + 1),
            allowed: vec![0; slots],
            work: vec![Work { free, ..Work::default() }; tables.routers],
            turns: vec![Turns::default(); tables.routers * tables.ports],
            parked: vec![0; tables.routers * tables.ports],
            busy: ActiveSet::new(tables.routers),
            arrivals: Wheel::new(longest),
            credits: Wheel::new(longest),
            heads: Wheel::new(longest),
            nodes: (0..tables.nodes).map(|node| Node::new(scenario, node, tables.vcs)).collect(),
            sending: ActiveSet::new(tables.nodes),
            waking: BinaryHeap::new(),
            path_streams: (0..tables.nodes).map(|node| stream(run.seed, run.replication, "noc paths", node)).collect(),
            sinks: vec![NONE; tables.nodes * tables.vcs],
            statistics: Statistics::new(scenario),
            slab: Slab::default(),
            requests: [0; MOST],
            inside: 0,
            moved: false,
            now: 0,
            same_cycle: scenario.router.vc_allocation_cycles == 0,
            allocator: scenario.router.allocator,
            mixture: Mixture::new(load),
            run,
            routes,
            tables,
        };
        for node in 0..engine.tables.nodes {
            engine.expect(node);
        }
        engine
    }

    /// Runs all phases. `report` hears the finished share now and then and may stop the run.
    pub fn run(&mut self, report: &dyn Fn(f64) -> ControlFlow<()>) -> ControlFlow<()> {
        let measured_until = self.run.warmup_cycles + self.run.measure_cycles;
        let last = measured_until + self.run.drain_cycles;
        let mut steps = 0_u32;
        loop {
            self.statistics_at(self.now);
            if self.now >= last || self.now >= measured_until && self.all_arrived() {
                break;
            }
            self.step();
            if !self.moved && self.is_stuck() {
                self.statistics.deadlocked = true;
                break;
            }
            let stop = if self.now < measured_until { measured_until } else { last };
            self.now = self.next_cycle().min(stop);
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(2048) {
                report(self.now as f64 / last.max(1) as f64)?;
            }
        }
        self.finish();
        ControlFlow::Continue(())
    }

    /// Takes the snapshots whose cycles have come.
    fn statistics_at(&mut self, now: u64) {
        let boundaries = [self.run.warmup_cycles, self.run.warmup_cycles + self.run.measure_cycles];
        while let Some(&boundary) = boundaries.get(self.statistics.snapshots).filter(|&&boundary| boundary <= now) {
            self.snapshot(boundary);
        }
    }

    /// The next cycle in which something can happen.
    fn next_cycle(&self) -> u64 {
        let next = self.now + 1;
        let quiet = self.busy.is_empty()
            && self.sending.is_empty()
            && self.arrivals.is_empty()
            && self.credits.is_empty()
            && self.heads.is_empty();
        if !quiet {
            return next;
        }
        self.waking.peek().map_or(u64::MAX, |Reverse((cycle, _))| *cycle).max(next)
    }

    /// Nothing moves, nothing is on its way, and flits are inside: only what is not inside yet can move any more.
    fn is_stuck(&self) -> bool {
        self.inside > 0
            && self.arrivals.is_empty()
            && self.credits.is_empty()
            && self.heads.is_empty()
            && self.sending.is_empty()
    }

    fn step(&mut self) {
        self.moved = false;
        let now = self.now;
        let list = self.credits.take(now);
        for &end in &list {
            self.credit(end);
        }
        self.credits.give_back(now, list);
        let list = self.arrivals.take(now);
        for &(end, packet) in &list {
            if end & NODE == 0 {
                self.arrive(end, packet);
            } else {
                self.eject(end ^ NODE, packet);
            }
        }
        self.arrivals.give_back(now, list);
        if !self.heads.is_empty() {
            let list = self.heads.take(now);
            for &input in &list {
                self.try_from_now(input as usize);
            }
            self.heads.give_back(now, list);
        }
        self.send_from_nodes();
        let mut from = 0;
        while let Some(router) = self.busy.next(from) {
            self.route(router);
            from = router + 1;
        }
    }

    /// One cycle of a router.
    fn route(&mut self, router: usize) {
        let fresh = if self.work[router].trying == 0 { 0 } else { self.allocate_channels(router) };
        if self.same_cycle {
            self.make_ready(router, fresh);
        }
        if self.work[router].ready != 0 {
            self.allocate_switch(router);
        }
        if !self.same_cycle {
            self.make_ready(router, fresh);
        }
        let work = &self.work[router];
        if work.ready | work.trying == 0 {
            self.busy.remove(router);
        }
    }

    /// Inputs that got a virtual channel want the switch, if there is room ahead.
    fn make_ready(&mut self, router: usize, mut fresh: u64) {
        while fresh != 0 {
            let bit = fresh.trailing_zeros();
            fresh &= fresh - 1;
            let input = &self.input[router << self.tables.shift | bit as usize];
            if input.waiting > 0 && self.output[input.out as usize].credits > 0 {
                self.work[router].ready |= 1 << bit;
            }
        }
    }

    /// Room ahead of an output, or at a node's router.
    #[inline]
    fn credit(&mut self, end: u32) {
        if end & NODE != 0 {
            self.node_credit((end ^ NODE) as usize);
            return;
        }
        let output = &mut self.output[end as usize];
        output.credits += 1;
        if output.credits == 1 && output.owner != NOBODY {
            let router = (end >> self.tables.shift) as usize;
            let input = router << self.tables.shift | usize::from(output.owner);
            if self.input[input].waiting > 0 && self.input[input].out == end {
                self.work[router].ready |= 1 << output.owner;
                self.busy.insert(router);
            }
        }
    }

    /// A flit arrives at a router.
    #[inline]
    fn arrive(&mut self, at: u32, packet: u32) {
        let index = at as usize;
        let input = &mut self.input[index];
        input.waiting += 1;
        if packet == NONE {
            if input.waiting == 1 && input.out != NONE && self.output[input.out as usize].credits > 0 {
                let router = index >> self.tables.shift;
                self.work[router].ready |= 1 << (index & ((1 << self.tables.shift) - 1));
                self.busy.insert(router);
            }
        } else if input.packet == NONE {
            self.begin(index, packet, self.now);
        } else {
            self.behind.push(index, packet);
        }
    }

    /// A packet comes to the front of an input; `from` is the first cycle in which it may ask.
    pub(crate) fn begin(&mut self, index: usize, packet: u32, from: u64) {
        let router = (index >> self.tables.shift) as u32;
        let record = self.slab.get_mut(packet);
        record.routers += 1;
        let input = &mut self.input[index];
        input.packet = packet;
        input.left = record.length;
        input.head = true;
        let hop = self.routes.hop(&self.tables, router, record);
        self.routes.advance(record);
        self.allowed[index] = if self.tables.output_queues {
            // The router before has chosen the output by the queue.
            let vc = (index & ((1 << self.tables.shift) - 1)) % self.tables.vcs;
            input.port = (vc % self.tables.ports) as u8;
            let (port, class) = (usize::from(input.port), hop.map_or(ANY_CLASS, |hop| hop.class));
            self.queues_ahead(router as usize, port, class, packet)
        } else if let Some(hop) = hop {
            input.port = hop.port;
            self.channels_of(hop.class)
        } else {
            self.every_channel()
        };
        if self.tables.head_cycles == 0 {
            self.try_from_now(index);
        } else {
            self.heads.push(from + u64::from(self.tables.head_cycles), index as u32);
        }
    }

    fn try_from_now(&mut self, index: usize) {
        let router = index >> self.tables.shift;
        self.work[router].trying |= 1 << (index & ((1 << self.tables.shift) - 1));
        self.busy.insert(router);
    }

    /// All virtual channels of a channel.
    pub(crate) fn every_channel(&self) -> u64 {
        if self.tables.vcs >= 64 { u64::MAX } else { (1 << self.tables.vcs) - 1 }
    }

    /// Virtual channels of a class.
    pub(crate) fn channels_of(&self, class: u8) -> u64 {
        if class == ANY_CLASS { self.every_channel() } else { self.tables.class[usize::from(class)] }
    }

    /// Virtual output queues that a packet may get behind an output: those of the output that it takes there.
    fn queues_ahead(&self, router: usize, port: usize, class: u8, packet: u32) -> u64 {
        let output = router * self.tables.ports + port;
        let next = self.tables.next_router[output];
        if next == NODE {
            return self.every_channel();
        }
        self.queues(self.port_at(next, self.tables.next_arrival[output], packet), class)
    }

    /// Queues of an output, of one class or of all.
    pub(crate) fn queues(&self, port: u8, class: u8) -> u64 {
        let mut queues = 0;
        for (number, _) in self.tables.class.iter().enumerate() {
            if class == ANY_CLASS || usize::from(class) == number {
                queues |= 1 << (number * self.tables.ports + usize::from(port));
            }
        }
        queues
    }

    /// Output that a packet takes at a router, chosen now.
    pub(crate) fn port_at(&self, router: u32, arrival: u32, packet: u32) -> u8 {
        let record = self.slab.get(packet);
        match self.routes.hop(&self.tables, router, record) {
            Some(hop) => hop.port,
            None => self.freest(router as usize, arrival, record.target, u64::MAX),
        }
    }

    /// Among the outputs that adaptive routing allows, the one with the most room ahead; `free` are the output virtual
    /// channels that may be had at once, and an output without one comes last. Equals take turns from cycle to cycle.
    pub(crate) fn freest(&self, router: usize, arrival: u32, target: u32, free: u64) -> u8 {
        let choices = self.routes.choices(&self.tables, arrival, target);
        let turn = (self.now as usize + router) % choices.len();
        let mut best = (false, 0, choices[turn]);
        for &port in choices[turn..].iter().chain(&choices[..turn]) {
            let first = usize::from(port) * self.tables.vcs;
            let outputs = &self.output[router << self.tables.shift | first..][..self.tables.vcs];
            let room: u32 = outputs.iter().map(|output| u32::from(output.credits)).sum();
            let now = free >> first & self.every_channel() != 0;
            if (now, room) > (best.0, best.1) {
                best = (now, room, port);
            }
        }
        best.2
    }
}
