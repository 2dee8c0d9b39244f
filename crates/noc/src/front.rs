//! A packet at the front of an input: the output that it requests, and the virtual channels that it may allocate there.

use crate::engine::Engine;
use crate::network::NODE;
use crate::routes::ANY_CLASS;

impl Engine {
    /// Handles a packet that reaches the front of an input; from cycle `from` on it may request an output.
    pub(crate) fn begin(&mut self, index: usize, packet: u32, from: u64) {
        let router = (index >> self.setup.tables.shift) as u32;
        let record = self.flight.slab.get_mut(packet);
        record.routers += 1;
        let input = &mut self.channels.input[index];
        input.packet = packet;
        input.left = record.length;
        input.head = true;
        let hop = self.setup.routes.hop(&self.setup.tables, router, record);
        self.setup.routes.advance(router, record);
        self.channels.allowed[index] = if self.setup.tables.output_queues {
            // The upstream router chose the output when it chose the queue.
            let vc = (index & self.setup.tables.low) % self.setup.tables.vcs;
            let (port, class) = (vc % self.setup.tables.ports, hop.map_or(ANY_CLASS, |hop| hop.class));
            self.channels.port[index] = port as u8;
            self.queues_ahead(router as usize, port, class, packet)
        } else if let Some(hop) = hop {
            self.channels.port[index] = hop.port;
            self.channels_of(hop.class)
        } else {
            self.setup.tables.every
        };
        if self.setup.tables.head_cycles == 0 {
            self.try_from_now(index);
        } else {
            self.flight.heads.push(from + u64::from(self.setup.tables.head_cycles), 0, index as u32);
        }
    }

    pub(crate) fn try_from_now(&mut self, index: usize) {
        let router = index >> self.setup.tables.shift;
        self.routers.work[router].trying |= 1 << (index & self.setup.tables.low);
        self.routers.busy.insert(router);
    }

    /// Virtual channels of a class.
    pub(crate) fn channels_of(&self, class: u8) -> u64 {
        if class == ANY_CLASS { self.setup.tables.every } else { self.setup.tables.class[usize::from(class)] }
    }

    /// Virtual output queues of the next router that a packet may enter: the queues of its output there.
    fn queues_ahead(&self, router: usize, port: usize, class: u8, packet: u32) -> u64 {
        let output = router * self.setup.tables.ports + port;
        let next = self.setup.tables.next_router[output];
        if next == NODE {
            return self.setup.tables.every;
        }
        self.queues(self.port_at(next, self.setup.tables.next_arrival[output], packet), class)
    }

    /// Virtual output queues of an output, of one class or of all classes.
    pub(crate) fn queues(&self, port: u8, class: u8) -> u64 {
        let mut queues = 0;
        for (number, _) in self.setup.tables.class.iter().enumerate() {
            if class == ANY_CLASS || usize::from(class) == number {
                queues |= 1 << (number * self.setup.tables.ports + usize::from(port));
            }
        }
        queues
    }

    /// Output that a packet takes at a router; adaptive routing chooses it now.
    pub(crate) fn port_at(&self, router: u32, arrival: u32, packet: u32) -> u8 {
        let record = self.flight.slab.get(packet);
        match self.setup.routes.hop(&self.setup.tables, router, record) {
            Some(hop) => hop.port,
            None => self.freest(router as usize, arrival, record.target, u64::MAX),
        }
    }

    /// Among the outputs that adaptive routing allows, the one with the most credits. `free` are the output virtual
    /// channels that can be allocated at once; an output without a free channel comes last. Equal outputs take turns
    /// from cycle to cycle.
    pub(crate) fn freest(&self, router: usize, arrival: u32, target: u32, free: u64) -> u8 {
        let choices = self.setup.routes.choices(&self.setup.tables, arrival, target);
        let turn = (self.now as usize + router) % choices.len();
        let mut best = (false, 0, choices[turn]);
        for &port in choices[turn..].iter().chain(&choices[..turn]) {
            let first = usize::from(port) * self.setup.tables.vcs;
            let outputs = &self.channels.output[router << self.setup.tables.shift | first..][..self.setup.tables.vcs];
            let room: u32 = outputs.iter().map(|output| u32::from(output.credits)).sum();
            let now = free >> first & self.setup.tables.every != 0;
            if (now, room) > (best.0, best.1) {
                best = (now, room, port);
            }
        }
        best.2
    }
}
