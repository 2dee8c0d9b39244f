//! Nodes: they send one flit in a cycle while their router has room, and take every flit that arrives.

use std::cmp::Reverse;

use crate::engine::Engine;
use crate::packet::{NONE, Packet};
use crate::rotate::first_from;
use crate::routes::ANY_CLASS;
use crate::scenario::Scenario;
use crate::source::{NewPacket, Source};

/// One node.
#[derive(Debug)]
pub struct Node {
    pub(crate) source: Option<Source>,
    /// Its oldest packet whose head has not left.
    pub(crate) next: Option<NewPacket>,
    /// Packet whose flits are leaving, and how many of them wait.
    pub(crate) packet: u32,
    pub(crate) left: u16,
    /// What the next packet drew for its way.
    way: Option<u32>,
    /// Virtual channel of that packet, or of the last one.
    channel: u8,
    /// Room in each virtual channel of its router.
    pub(crate) credits: Vec<u16>,
    /// Virtual channels with room.
    open: u64,
}

impl Node {
    /// A node at rest.
    #[must_use]
    pub fn new(scenario: &Scenario, node: usize, vcs: usize) -> Self {
        Self {
            source: Source::new(&scenario.load, node, scenario.run.seed, scenario.run.replication),
            next: None,
            packet: NONE,
            left: 0,
            way: None,
            channel: vcs as u8 - 1,
            credits: vec![scenario.router.buffer_flits as u16; vcs],
            open: if vcs >= 64 { u64::MAX } else { (1 << vcs) - 1 },
        }
    }

    fn spend(&mut self) {
        let credits = &mut self.credits[usize::from(self.channel)];
        *credits -= 1;
        if *credits == 0 {
            self.open &= !(1 << self.channel);
        }
    }
}

impl Engine {
    /// Draws the next packet of a node, and wakes the node when the packet is due.
    pub(crate) fn expect(&mut self, node: usize) {
        let Some(source) = &mut self.sources.nodes[node].source else { return };
        let next = source.next(&self.setup.mixture);
        self.sources.nodes[node].next = Some(next);
        self.statistics.count_created(node, &next);
        if next.cycle > self.now + 1 {
            self.sources.sending.remove(node);
            self.sources.waking.push(Reverse((next.cycle, node as u32)));
        } else {
            self.sources.sending.insert(node);
        }
    }

    /// Sends a flit from every node with a packet, if there is room.
    pub(crate) fn send_from_nodes(&mut self) {
        while let Some(&Reverse((cycle, node))) = self.sources.waking.peek() {
            if cycle > self.now {
                break;
            }
            self.sources.waking.pop();
            self.sources.sending.insert(node as usize);
        }
        let mut from = 0;
        while let Some((word, mut nodes)) = self.sources.sending.word(from) {
            while nodes != 0 {
                self.send(64 * word + nodes.trailing_zeros() as usize);
                nodes &= nodes - 1;
            }
            from = word + 1;
        }
    }

    fn send(&mut self, node: usize) {
        let this = &self.sources.nodes[node];
        let head = if this.left == 0 {
            match this.next {
                Some(next) if next.cycle <= self.now => {
                    if !self.open(node, next) {
                        // A credit wakes it.
                        self.sources.sending.remove(node);
                        return;
                    }
                    self.sources.nodes[node].packet
                }
                Some(_) => return,
                None => {
                    self.sources.sending.remove(node);
                    return;
                }
            }
        } else if this.open >> this.channel & 1 == 0 {
            self.sources.sending.remove(node);
            return;
        } else {
            NONE
        };
        let this = &mut self.sources.nodes[node];
        this.spend();
        this.left -= 1;
        let (packet, left, channel) = (this.packet, this.left, u32::from(this.channel));
        self.flight.slab.enter(packet, self.now);
        let into = self.setup.tables.node_input[node] + channel;
        self.flight.arrivals.push(self.now + u64::from(self.setup.tables.enter_cycles), 0, (into, head));
        self.flight.inside += 1;
        self.flight.moved = true;
        if left == 0 {
            self.expect(node);
        }
    }

    /// Starts sending a packet, if a virtual channel has room for its head.
    fn open(&mut self, node: usize, next: NewPacket) -> bool {
        let this = &mut self.sources.nodes[node];
        let (router, target) =
            (self.setup.tables.node_router[node], self.setup.tables.node_router[next.target as usize]);
        let mut open = this.open;
        if open == 0 {
            return false;
        }
        let stream = &mut self.sources.path_streams[node];
        let way = *this.way.get_or_insert_with(|| self.setup.routes.draw(&self.setup.tables, router, target, stream));
        let packet = Packet {
            created: next.at,
            entered: self.now,
            target,
            node: next.target,
            cursor: way,
            length: next.length,
            ejected: 0,
            routers: 0,
            eject_port: self.setup.tables.node_port[next.target as usize],
            measured: self.statistics.counts(next.cycle),
        };
        let number = self.flight.slab.insert(packet);
        if self.setup.tables.output_queues {
            let input = self.setup.tables.node_input[node] as usize;
            let at = router as usize * self.setup.tables.ports;
            let bit = input & self.setup.tables.low;
            let arrival = self.setup.tables.arrival[at + usize::from(self.setup.tables.port_of[bit])];
            let port = self.port_at(router, arrival, number);
            open &= self.queues(port, ANY_CLASS);
            if open == 0 {
                self.flight.slab.remove(number);
                return false;
            }
        }
        let this = &mut self.sources.nodes[node];
        this.channel = first_from(open, this.channel + 1) as u8;
        this.packet = number;
        this.left = next.length;
        this.next = None;
        this.way = None;
        self.statistics.sent(next.cycle);
        true
    }

    /// Adds a credit to a virtual channel of a node.
    #[inline]
    pub(crate) fn node_credit(&mut self, end: usize) {
        let (node, channel) = (end >> self.setup.tables.node_shift, end & ((1 << self.setup.tables.node_shift) - 1));
        let this = &mut self.sources.nodes[node];
        this.credits[channel] += 1;
        this.open |= 1 << channel;
        let waits = if this.left > 0 {
            usize::from(this.channel) == channel
        } else {
            this.next.is_some_and(|next| next.cycle <= self.now)
        };
        if waits {
            self.sources.sending.insert(node);
        }
    }

    /// A node takes a flit.
    #[inline]
    pub(crate) fn eject(&mut self, end: usize, head: u32) {
        if head != NONE {
            debug_assert_eq!(self.channels.sinks[end], NONE, "a channel holds one packet after another");
            self.channels.sinks[end] = head;
        }
        let packet = self.channels.sinks[end];
        let record = self.flight.slab.get_mut(packet);
        let flit = record.ejected;
        record.ejected += 1;
        let record = self.flight.slab.get(packet);
        let age = self.flight.slab.flit_age(packet, flit, self.now);
        let node = record.node as usize;
        self.flight.inside -= 1;
        self.flight.moved = true;
        self.statistics.flit(node, record.measured, age);
        let tail = record.ejected == record.length;
        if tail {
            self.statistics.packet(record, self.now);
        }
        let router = self.setup.tables.node_router[node] as usize;
        let port = usize::from(self.setup.tables.node_port[node]);
        if !self.setup.tables.endless[router * self.setup.tables.ports + port] {
            let channel = end & ((1 << self.setup.tables.node_shift) - 1);
            let output = (router << self.setup.tables.shift) + port * self.setup.tables.vcs + channel;
            self.flight.credits.push(self.now + u64::from(self.setup.tables.sink_credit_cycles), 0, output as u32);
        }
        if tail {
            self.flight.slab.remove(packet);
            self.channels.sinks[end] = NONE;
        }
    }
}
