//! Switch allocation: at most one flit from every input port, and one to every output port, crosses in a cycle.

use crate::buffers::NOBODY;
use crate::engine::Engine;
use crate::packet::NONE;
use crate::rotate::first_from;
use crate::scenario::Allocator;

impl Engine {
    /// Matches the inputs that are ready with outputs and sends the flits that won.
    pub(crate) fn allocate_switch(&mut self, router: usize, ready: u64) {
        let base = router << self.setup.tables.shift;
        if ready.is_power_of_two() {
            let bit = ready.trailing_zeros();
            let port = usize::from(self.channels.port[base + bit as usize]);
            self.turn(router, port, bit);
            self.cross(router, port, bit);
            return;
        }
        let (mut rest, mut ports, mut inputs, mut clash) = (ready, 0_u64, 0_u64, 0_u64);
        while rest != 0 {
            let bit = rest.trailing_zeros() as usize & 63;
            rest &= rest - 1;
            let port = usize::from(self.channels.port[base + bit]);
            let (output, input) = (1 << (port & 63), 1 << (self.setup.tables.port_of[bit] & 63));
            clash |= ports & output | inputs & input;
            ports |= output;
            inputs |= input;
            self.routers.requests[port & 63] |= 1 << bit;
        }
        if clash == 0 {
            let mut rest = ready;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                let port = usize::from(self.channels.port[base + bit as usize]);
                self.turn(router, port, bit);
                self.cross(router, port, bit);
                self.routers.requests[port & 63] = 0;
            }
            return;
        }
        match self.setup.allocator {
            Allocator::GreedyWeight => self.heaviest_first(router, ready),
            Allocator::RoundRobin => self.inputs_first(router, ready),
            Allocator::Islip { iterations } => self.outputs_first(router, ports, iterations),
        }
        while ports != 0 {
            self.routers.requests[ports.trailing_zeros() as usize & 63] = 0;
            ports &= ports - 1;
        }
    }

    /// Every input requests for one of its flits, every output grants one input.
    fn inputs_first(&mut self, router: usize, mut ready: u64) {
        let (base, lanes) = (router << self.setup.tables.shift, router * self.setup.tables.ports);
        let mut ports = 0_u64;
        while ready != 0 {
            let input = u32::from(self.setup.tables.port_of[ready.trailing_zeros() as usize & 63]);
            let lane = self.setup.tables.every << (input * self.setup.tables.vcs as u32);
            let bit = first_from(ready & lane, self.routers.ports[lanes + input as usize].channel);
            ready &= !lane;
            let port = self.channels.port[base + bit as usize] & 63;
            self.routers.grants[usize::from(port)] |= 1 << bit;
            ports |= 1 << port;
        }
        while ports != 0 {
            let port = ports.trailing_zeros() as usize & 63;
            ports &= ports - 1;
            let bit =
                first_from(std::mem::take(&mut self.routers.grants[port]), self.routers.ports[lanes + port].grant);
            self.turn(router, port, bit);
            self.cross(router, port, bit);
        }
    }

    /// Rounds in which every output grants one input and every input accepts one output (iSLIP).
    fn outputs_first(&mut self, router: usize, mut ports: u64, iterations: u32) {
        let lanes = router * self.setup.tables.ports;
        let vcs = self.setup.tables.vcs as u32;
        let mut free_inputs = u64::MAX;
        for iteration in 0..iterations {
            let (mut inputs, mut rest) = (0_u64, ports);
            while rest != 0 {
                let port = rest.trailing_zeros();
                rest &= rest - 1;
                let asking = self.routers.requests[port as usize & 63] & free_inputs;
                if asking == 0 {
                    ports &= !(1 << port);
                    continue;
                }
                let turn = self.routers.ports[lanes + port as usize].grant;
                let input = self.setup.tables.port_of[first_from(asking, turn) as usize & 63];
                self.routers.grants[usize::from(input & 63)] |= 1 << port;
                inputs |= 1 << input;
            }
            if inputs == 0 {
                return;
            }
            while inputs != 0 {
                let input = inputs.trailing_zeros();
                inputs &= inputs - 1;
                let granted = std::mem::take(&mut self.routers.grants[input as usize & 63]);
                let turns = &mut self.routers.ports[lanes + input as usize];
                let port = first_from(granted, turns.accept);
                let lane = self.setup.tables.every << (input * vcs);
                let bit = first_from(self.routers.requests[port as usize & 63] & lane, turns.channel);
                turns.channel = bit as u8 + 1;
                ports &= !(1 << port);
                free_inputs &= !lane;
                if iteration == 0 {
                    self.turn(router, port as usize, bit);
                }
                self.cross(router, port as usize, bit);
            }
        }
    }

    /// Moves the priorities past a grant that was accepted.
    #[inline]
    fn turn(&mut self, router: usize, port: usize, bit: u32) {
        let lanes = router * self.setup.tables.ports;
        let input = usize::from(self.setup.tables.port_of[bit as usize & 63]);
        self.routers.ports[lanes + port].grant = ((input + 1) * self.setup.tables.vcs) as u8;
        let turns = &mut self.routers.ports[lanes + input];
        turns.accept = port as u8 + 1;
        turns.channel = bit as u8 + 1;
    }

    /// Grants the longest queue first, then the longest among those that can still cross.
    fn heaviest_first(&mut self, router: usize, mut ready: u64) {
        let base = router << self.setup.tables.shift;
        // Equal queues take turns from cycle to cycle.
        let start = (self.now % (self.setup.tables.ports * self.setup.tables.vcs) as u64) as u8;
        while ready != 0 {
            let (mut rest, mut most, mut longest) = (ready, 0, 0);
            while rest != 0 {
                let bit = first_from(rest, start);
                rest &= !(1 << bit);
                let waiting = self.channels.input[base + bit as usize].waiting;
                if waiting > most {
                    (most, longest) = (waiting, bit);
                }
            }
            let input = u32::from(self.setup.tables.port_of[longest as usize & 63]);
            let port = usize::from(self.channels.port[base + longest as usize]);
            ready &= !(self.setup.tables.every << (input * self.setup.tables.vcs as u32))
                & !self.routers.requests[port & 63];
            self.turn(router, port, longest);
            self.cross(router, port, longest);
        }
    }

    /// Moves the front flit of an input to its output and onto the wire, and returns a credit.
    #[inline]
    fn cross(&mut self, router: usize, port: usize, bit: u32) {
        let (base, lanes) = (router << self.setup.tables.shift, router * self.setup.tables.ports);
        let from = usize::from(self.setup.tables.port_of[bit as usize & 63]);
        let back = self.now + u64::from(self.routers.ports[lanes + from].credit_cycles);
        let lane = &mut self.routers.ports[lanes + port];
        lane.crossed += 1;
        let there = self.now + u64::from(lane.flit_cycles);
        let spent = u16::from(!lane.endless);
        let input = &mut self.channels.input[base + bit as usize];
        let output = &mut self.channels.output[base + usize::from(input.out)];
        output.credits -= spent;
        input.waiting -= 1;
        input.left -= 1;
        let head = if std::mem::take(&mut input.head) { input.packet } else { NONE };
        self.flight.arrivals.push(there, output.down >> 31, (output.down, head));
        self.flight.credits.push(back, input.up >> 31, input.up);
        let work = &mut self.routers.work[router];
        work.waiting &= !(u64::from(input.waiting == 0) << bit);
        work.able &= !(u64::from(output.credits == 0) << bit);
        if input.left == 0 {
            self.release(router, port, bit);
        }
    }

    /// After a tail has crossed: releases its output virtual channel, and brings the next packet to the front.
    fn release(&mut self, router: usize, port: usize, bit: u32) {
        let base = router << self.setup.tables.shift;
        let index = base + bit as usize;
        let input = &mut self.channels.input[index];
        let out = std::mem::replace(&mut input.out, NOBODY);
        input.packet = NONE;
        self.channels.output[base + usize::from(out)].owner = NOBODY;
        let work = &mut self.routers.work[router];
        work.able &= !(1 << bit);
        work.free |= 1 << out;
        work.trying |= std::mem::take(&mut self.channels.parked[router * self.setup.tables.ports + port]);
        if let Some(packet) = self.channels.behind.pop(index) {
            self.begin(index, packet, self.now + 1);
        }
    }
}
