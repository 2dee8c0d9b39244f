//! Tables of what is joined to what, in the order that the engine reads them.
//!
//! A virtual channel at an input or output has a number that carries its router: `router << shift | bit`, where `bit`
//! is `port * vcs + vc`. The 64 bits of a word are all the virtual channels that one side of a router can have.

use crate::scenario::{Network, Queueing, Router};

/// Marks a number that belongs to a node instead of a router: `NODE | node << node_shift | vc`.
pub const NODE: u32 = 1 << 31;

/// Most virtual channels on one side of a router.
pub const MOST: usize = 64;

/// Who is joined to whom.
#[derive(Debug)]
pub struct Tables {
    /// Routers.
    pub routers: usize,
    /// Nodes.
    pub nodes: usize,
    /// Virtual channels of every channel.
    pub vcs: usize,
    /// Bits of a number below the router's.
    pub shift: u32,
    /// The bits themselves: `index & low` is a bit's place in its word.
    pub low: usize,
    /// Bits of a node's number below the node.
    pub node_shift: u32,
    /// Input or output port of a bit.
    pub port_of: [u8; MOST],
    /// Most ports of one side of a router.
    pub ports: usize,
    /// All virtual channels of a channel.
    pub every: u64,
    /// Whether a virtual channel belongs to an output (virtual output queues).
    pub output_queues: bool,
    /// Virtual channels (of one channel) of each class.
    pub class: Vec<u64>,
    /// Router and output port of each link.
    pub link_port: Vec<(u32, u8)>,
    /// Router of each node.
    pub node_router: Vec<u32>,
    /// Output port of each node at its router.
    pub node_port: Vec<u8>,
    /// First virtual channel of a node's input at its router.
    pub node_input: Vec<u32>,
    /// By output: the first virtual channel at the far end, by `router * ports + port`.
    pub down: Vec<u32>,
    /// By output: router at the far end, or `NODE`.
    pub next_router: Vec<u32>,
    /// By output: number of the arrival there for adaptive routing.
    pub next_arrival: Vec<u32>,
    /// By output: cycles from the grant of the switch until the flit is at the far end.
    pub flit_cycles: Vec<u32>,
    /// By output: whether the far end always has room, so that credits need not be counted.
    pub endless: Vec<bool>,
    /// By input: virtual channel 0 of the output that feeds it, or the node.
    pub up: Vec<u32>,
    /// By input: cycles from the grant of the switch until its credit is back.
    pub credit_cycles: Vec<u32>,
    /// By input: number of the arrival for adaptive routing.
    pub arrival: Vec<u32>,
    /// Cycles from a node's turn to send until the flit is at its router.
    pub enter_cycles: u32,
    /// Cycles from a flit's arrival at a node until its credit is at the router.
    pub sink_credit_cycles: u32,
    /// Cycles of a head before the allocation of its virtual channel decides.
    pub head_cycles: u32,
}

/// Most ports of one side of a router.
#[must_use]
pub fn most_ports(network: &Network) -> usize {
    let mut outputs = vec![0_usize; network.routers];
    let mut inputs = vec![0_usize; network.routers];
    for link in &network.links {
        outputs[link.from] += 1;
        inputs[link.to] += 1;
    }
    for &router in &network.nodes {
        outputs[router] += 1;
        inputs[router] += 1;
    }
    outputs.into_iter().chain(inputs).max().unwrap_or(0)
}

/// Virtual channels of every channel.
#[must_use]
pub fn channels(network: &Network, router: &Router, classes: usize) -> usize {
    match router.queueing {
        Queueing::VirtualChannels { count } => count as usize,
        Queueing::VirtualOutputQueues => most_ports(network) * classes,
    }
}

impl Tables {
    /// Builds the tables of a scenario that was checked.
    #[must_use]
    pub fn new(network: &Network, router: &Router, classes: usize) -> Self {
        let (routers, nodes) = (network.routers, network.nodes.len());
        let ports = most_ports(network);
        let vcs = channels(network, router, classes);
        let output_queues = router.queueing == Queueing::VirtualOutputQueues;
        let shift = (ports * vcs).next_power_of_two().trailing_zeros();
        let mut port_of = [0; MOST];
        for (bit, port) in port_of.iter_mut().enumerate() {
            *port = (bit / vcs) as u8;
        }
        let ones = |count: usize| if count >= 64 { u64::MAX } else { (1 << count) - 1 };
        let class = (0..classes).map(|c| ones((c + 1) * vcs / classes) & !ones(c * vcs / classes)).collect();
        let mut tables = Self {
            routers,
            nodes,
            vcs,
            shift,
            low: (1 << shift) - 1,
            node_shift: vcs.next_power_of_two().trailing_zeros(),
            port_of,
            ports,
            every: ones(vcs),
            output_queues,
            class,
            link_port: Vec::new(),
            node_router: network.nodes.iter().map(|&router| router as u32).collect(),
            node_port: Vec::new(),
            node_input: Vec::new(),
            down: vec![0; routers * ports],
            next_router: vec![NODE; routers * ports],
            next_arrival: vec![0; routers * ports],
            flit_cycles: vec![0; routers * ports],
            endless: vec![false; routers * ports],
            up: vec![0; routers * ports],
            credit_cycles: vec![0; routers * ports],
            arrival: vec![0; routers * ports],
            enter_cycles: 1 + network.node_link_cycles,
            sink_credit_cycles: 1 + network.node_link_cycles + router.credit_cycles,
            head_cycles: router.routing_cycles + router.vc_allocation_cycles.saturating_sub(1),
        };
        tables.join(network, router);
        tables
    }

    fn join(&mut self, network: &Network, router: &Router) {
        let (mut outputs, mut inputs) = (vec![0_usize; self.routers], vec![0_usize; self.routers]);
        let through = router.switch_allocation_cycles + router.traversal_cycles;
        let first = |shift: u32, vcs: usize, router: usize, port: usize| ((router << shift) + port * vcs) as u32;
        for (number, link) in network.links.iter().enumerate() {
            let (out, into) = (outputs[link.from], inputs[link.to]);
            outputs[link.from] += 1;
            inputs[link.to] += 1;
            let (output, input) = (link.from * self.ports + out, link.to * self.ports + into);
            self.link_port.push((link.from as u32, out as u8));
            self.down[output] = first(self.shift, self.vcs, link.to, into);
            self.next_router[output] = link.to as u32;
            self.next_arrival[output] = number as u32;
            self.flit_cycles[output] = through + link.cycles;
            self.up[input] = first(self.shift, self.vcs, link.from, out);
            self.credit_cycles[input] = router.switch_allocation_cycles + link.cycles + router.credit_cycles;
            self.arrival[input] = number as u32;
        }
        let wire = network.node_link_cycles;
        let there_and_back = through + wire + self.sink_credit_cycles;
        for (node, &at) in network.nodes.iter().enumerate() {
            let (out, into) = (outputs[at], inputs[at]);
            outputs[at] += 1;
            inputs[at] += 1;
            let (output, input) = (at * self.ports + out, at * self.ports + into);
            let end = NODE | (node << self.node_shift) as u32;
            self.node_port.push(out as u8);
            self.node_input.push(first(self.shift, self.vcs, at, into));
            self.down[output] = end;
            self.flit_cycles[output] = through + wire;
            self.endless[output] = there_and_back <= router.buffer_flits;
            self.up[input] = end;
            self.credit_cycles[input] = router.switch_allocation_cycles + wire;
            self.arrival[input] = (network.links.len() + at) as u32;
        }
    }

    /// Longest delay of anything on its way.
    #[must_use]
    pub fn longest(&self) -> u64 {
        let cycles = self.flit_cycles.iter().chain(&self.credit_cycles).copied();
        u64::from(cycles.chain([self.enter_cycles, self.sink_credit_cycles, self.head_cycles + 1]).max().unwrap_or(1))
    }
}
