//! Allocation of output virtual channels to packets.

use crate::engine::Engine;
use crate::packet::NONE;
use crate::rotate::first_from;
use crate::scenario::Allocator;

impl Engine {
    /// Allocates output virtual channels to the packets at the front of a router's inputs; returns the inputs that got
    /// one.
    pub(crate) fn allocate_channels(&mut self, router: usize) -> u64 {
        let mut trying = self.routers.work[router].trying;
        let mut ports = 0_u64;
        while trying != 0 {
            let bit = trying.trailing_zeros();
            trying &= trying - 1;
            let port = self.request(router, bit);
            if let Some(port) = port {
                self.routers.requests[port] |= 1 << bit;
                ports |= 1 << port;
            }
        }
        let mut fresh = 0;
        while ports != 0 {
            let port = ports.trailing_zeros() as usize;
            ports &= ports - 1;
            let requests = std::mem::take(&mut self.routers.requests[port]);
            fresh |= match self.setup.allocator {
                Allocator::GreedyWeight => self.longest_first(router, port, requests),
                Allocator::Islip { iterations } => self.channels_first(router, port, requests, iterations),
                Allocator::RoundRobin => self.packets_first(router, port, requests),
            };
        }
        fresh
    }

    /// The output that an input's packet requests, or `None` if it has no free virtual channel. Such a packet takes no
    /// part in the allocation until a virtual channel of its output is released.
    fn request(&mut self, router: usize, bit: u32) -> Option<usize> {
        let index = router << self.setup.tables.shift | bit as usize;
        let free = self.routers.work[router].free;
        let adaptive = !self.setup.tables.output_queues && self.setup.routes.is_adaptive();
        if adaptive {
            let record = self.flight.slab.get(self.channels.input[index].packet);
            let port = if record.target as usize == router {
                record.eject_port
            } else {
                let arrival = self.setup.tables.arrival
                    [router * self.setup.tables.ports + usize::from(self.setup.tables.port_of[bit as usize])];
                self.freest(router, arrival, record.target, free)
            };
            self.channels.port[index] = port;
        }
        let port = usize::from(self.channels.port[index]);
        if free >> (port * self.setup.tables.vcs) & self.channels.allowed[index] != 0 {
            return Some(port);
        }
        if !adaptive {
            self.routers.work[router].trying &= !(1 << bit);
            self.channels.parked[router * self.setup.tables.ports + port] |= 1 << bit;
        }
        None
    }

    /// Every packet requests one virtual channel, every channel accepts one packet.
    fn packets_first(&mut self, router: usize, port: usize, mut requests: u64) -> u64 {
        let first = port * self.setup.tables.vcs;
        let base = router << self.setup.tables.shift;
        let free = self.routers.work[router].free >> first;
        let (mut requested, mut fresh) = (0_u64, 0);
        while requests != 0 {
            let bit = requests.trailing_zeros() as usize;
            requests &= requests - 1;
            let chosen =
                first_from((free & self.channels.allowed[base + bit]) << first, self.channels.input[base + bit].accept);
            self.routers.grants[chosen as usize & 63] |= 1 << bit;
            requested |= 1 << chosen;
        }
        while requested != 0 {
            let chosen = requested.trailing_zeros() as usize & 63;
            requested &= requested - 1;
            let asking = std::mem::take(&mut self.routers.grants[chosen]);
            let bit = first_from(asking, self.channels.output[base + chosen].grant);
            self.take(router, bit, chosen as u32, true);
            fresh |= 1 << bit;
        }
        fresh
    }

    /// Rounds in which every free virtual channel offers itself to one packet and every packet takes one (iSLIP).
    fn channels_first(&mut self, router: usize, port: usize, mut requests: u64, iterations: u32) -> u64 {
        let first = port * self.setup.tables.vcs;
        let base = router << self.setup.tables.shift;
        let mut fresh = 0;
        for iteration in 0..iterations {
            let mut free = self.routers.work[router].free >> first & self.setup.tables.every;
            if requests.is_power_of_two() {
                // One packet: every free channel offers itself.
                let bit = requests.trailing_zeros();
                let offers = free & self.channels.allowed[base + bit as usize];
                if offers != 0 {
                    let chosen = first_from(offers << first, self.channels.input[base + bit as usize].accept);
                    self.take(router, bit, chosen, iteration == 0);
                    fresh |= requests;
                }
                return fresh;
            }
            let mut offered = 0_u64;
            while free != 0 {
                let vc = free.trailing_zeros();
                free &= free - 1;
                let asking = self.asking(base, requests, vc);
                if asking != 0 {
                    let bit = first_from(asking, self.channels.output[base + first + vc as usize].grant);
                    self.routers.grants[bit as usize & 63] |= 1 << vc;
                    offered |= 1 << bit;
                }
            }
            if offered == 0 {
                return fresh;
            }
            fresh |= offered;
            requests &= !offered;
            while offered != 0 {
                let bit = offered.trailing_zeros();
                offered &= offered - 1;
                let offers = std::mem::take(&mut self.routers.grants[bit as usize & 63]);
                let chosen = first_from(offers << first, self.channels.input[base + bit as usize].accept);
                self.take(router, bit, chosen, iteration == 0);
            }
            if requests == 0 {
                return fresh;
            }
        }
        fresh
    }

    /// Inputs that may have a virtual channel.
    fn asking(&self, base: usize, mut requests: u64, vc: u32) -> u64 {
        let mut asking = 0;
        while requests != 0 {
            let bit = requests.trailing_zeros();
            requests &= requests - 1;
            asking |= (self.channels.allowed[base + bit as usize] >> vc & 1) << bit;
        }
        asking
    }

    /// Gives a virtual channel to a packet; with `turn` the priorities move past both.
    fn take(&mut self, router: usize, bit: u32, chosen: u32, turn: bool) {
        let base = router << self.setup.tables.shift;
        if turn {
            self.channels.input[base + bit as usize].accept = chosen as u8 + 1;
            self.channels.output[base + chosen as usize].grant = bit as u8 + 1;
        }
        self.own(router, bit, chosen);
    }

    /// The longest queue chooses first.
    fn longest_first(&mut self, router: usize, port: usize, mut requests: u64) -> u64 {
        let first = port * self.setup.tables.vcs;
        let base = router << self.setup.tables.shift;
        let mut fresh = 0;
        while requests != 0 {
            let bit = self.longest(router, port, requests);
            requests &= !(1 << bit);
            let free = self.routers.work[router].free >> first & self.channels.allowed[base + bit as usize];
            if free != 0 {
                let chosen = first_from(free << first, self.channels.input[base + bit as usize].accept);
                self.take(router, bit, chosen, true);
                fresh |= 1 << bit;
            }
        }
        fresh
    }

    /// The input with the longest queue among some; the output's priority breaks ties.
    pub(crate) fn longest(&mut self, router: usize, port: usize, requests: u64) -> u32 {
        let base = router << self.setup.tables.shift;
        let (mut rest, mut most, mut equals) = (requests, 0, 0_u64);
        while rest != 0 {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            let waiting = self.channels.input[base + bit as usize].waiting;
            if waiting > most {
                (most, equals) = (waiting, 0);
            }
            if waiting == most {
                equals |= 1 << bit;
            }
        }
        first_from(equals, self.routers.ports[router * self.setup.tables.ports + port].grant)
    }

    /// Marks an output virtual channel as owned by an input's packet, until the tail has crossed.
    fn own(&mut self, router: usize, bit: u32, chosen: u32) {
        let base = router << self.setup.tables.shift;
        self.channels.input[base + bit as usize].out = chosen as u8;
        self.channels.output[base + chosen as usize].owner = bit as u8;
        let work = &mut self.routers.work[router];
        work.free &= !(1 << chosen);
        work.trying &= !(1 << bit);
        self.flight.moved = true;
        debug_assert_ne!(self.channels.input[base + bit as usize].packet, NONE);
    }
}
