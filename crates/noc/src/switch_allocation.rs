//! Which flits cross a router in a cycle: at most one from every input port, at most one to every output port.

use crate::buffers::NOBODY;
use crate::engine::Engine;
use crate::packet::NONE;
use crate::rotate::first_from;
use crate::scenario::Allocator;

impl Engine {
    /// Matches inputs with outputs and sends the flits that won.
    pub(crate) fn allocate_switch(&mut self, router: usize) {
        let ready = self.work[router].ready;
        let iterations = match self.allocator {
            Allocator::Islip { iterations } => iterations,
            Allocator::RoundRobin | Allocator::GreedyWeight => 1,
        };
        if ready.is_power_of_two() {
            let bit = ready.trailing_zeros();
            let port = usize::from(self.input[router << self.tables.shift | bit as usize].port);
            self.turn(router, port, bit);
            self.cross(router, bit);
            return;
        }
        let (mut rest, mut ports) = (ready, 0_u64);
        while rest != 0 {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            let port = self.input[router << self.tables.shift | bit as usize].port;
            self.requests[usize::from(port)] |= 1 << bit;
            ports |= 1 << port;
        }
        let mut asked = ports;
        if self.allocator == Allocator::GreedyWeight {
            self.heaviest_first(router, ready);
        } else {
            let mut free_inputs = u64::MAX;
            for iteration in 0..iterations {
                let matched = self.match_once(router, &mut ports, &mut free_inputs, iteration == 0);
                if !matched || ports == 0 {
                    break;
                }
            }
        }
        while asked != 0 {
            self.requests[asked.trailing_zeros() as usize] = 0;
            asked &= asked - 1;
        }
    }

    /// One round of grants and accepts. `free_inputs` has the bits of input ports that have no output yet.
    fn match_once(&mut self, router: usize, ports: &mut u64, free_inputs: &mut u64, first: bool) -> bool {
        let lanes = router * self.tables.ports;
        let vcs = self.tables.vcs as u32;
        let mut grants = [0_u64; 64];
        let mut inputs = 0_u64;
        let mut rest = *ports;
        while rest != 0 {
            let port = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let asking = self.requests[port] & *free_inputs;
            if asking == 0 {
                *ports &= !(1 << port);
                continue;
            }
            let turn = &mut self.turns[lanes + port];
            let input = self.tables.port_of[first_from(asking, turn.grant) as usize];
            if self.allocator == Allocator::RoundRobin {
                turn.grant = (u32::from(input) * vcs + vcs) as u8;
            }
            grants[usize::from(input)] |= 1 << port;
            inputs |= 1 << input;
        }
        let matched = inputs != 0;
        while inputs != 0 {
            let input = inputs.trailing_zeros();
            inputs &= inputs - 1;
            let port = first_from(grants[input as usize], self.turns[lanes + input as usize].accept);
            let lane = self.every_channel() << (input * vcs);
            let bit = first_from(self.requests[port as usize] & lane, self.turns[lanes + input as usize].channel);
            *ports &= !(1 << port);
            *free_inputs &= !lane;
            if first {
                self.turn(router, port as usize, bit);
            } else {
                self.turns[lanes + input as usize].channel = bit as u8 + 1;
            }
            self.cross(router, bit);
        }
        matched
    }

    /// Moves the priorities past a grant that was accepted.
    #[inline]
    fn turn(&mut self, router: usize, port: usize, bit: u32) {
        let lanes = router * self.tables.ports;
        let input = usize::from(self.tables.port_of[bit as usize]);
        let vcs = self.tables.vcs;
        self.turns[lanes + port].grant = (input * vcs + vcs) as u8;
        let turns = &mut self.turns[lanes + input];
        turns.accept = port as u8 + 1;
        turns.channel = bit as u8 + 1;
    }

    /// The longest queue crosses first, then the longest among those that can still cross.
    fn heaviest_first(&mut self, router: usize, mut ready: u64) {
        // Equal queues take turns from cycle to cycle.
        let start = (self.now % (self.tables.ports * self.tables.vcs) as u64) as u8;
        while ready != 0 {
            let mut best: Option<(u16, u32)> = None;
            let mut rest = ready;
            while rest != 0 {
                let bit = first_from(rest, start);
                rest &= !(1 << bit);
                let waiting = self.input[router << self.tables.shift | bit as usize].waiting;
                if best.is_none_or(|(most, _)| waiting > most) {
                    best = Some((waiting, bit));
                }
            }
            let Some((_, bit)) = best else { return };
            let input = u32::from(self.tables.port_of[bit as usize]);
            let port = usize::from(self.input[router << self.tables.shift | bit as usize].port);
            ready &= !(self.every_channel() << (input * self.tables.vcs as u32)) & !self.requests[port];
            self.turn(router, port, bit);
            self.cross(router, bit);
        }
    }

    /// The front flit of an input crosses to its output and goes on its way; a credit goes back.
    fn cross(&mut self, router: usize, bit: u32) {
        let index = router << self.tables.shift | bit as usize;
        let now = self.now;
        let input = &mut self.input[index];
        let output = &mut self.output[input.out as usize];
        output.crossed += 1;
        input.waiting -= 1;
        let head = if std::mem::take(&mut input.head) { input.packet } else { NONE };
        input.left -= 1;
        if !output.endless {
            output.credits -= 1;
        }
        let more = input.left > 0;
        if !more || input.waiting == 0 || output.credits == 0 {
            self.work[router].ready &= !(1 << bit);
        }
        self.arrivals.push(now + u64::from(output.flit_cycles), (output.down, head));
        self.credits.push(now + u64::from(input.credit_cycles), input.up);
        self.moved = true;
        if !more {
            self.release(router, bit);
        }
    }

    /// The tail has crossed: its output virtual channel is free, and the next packet comes to the front.
    fn release(&mut self, router: usize, bit: u32) {
        let index = router << self.tables.shift | bit as usize;
        let input = &mut self.input[index];
        let out = std::mem::replace(&mut input.out, NONE) as usize;
        input.packet = NONE;
        let port = router * self.tables.ports + usize::from(input.port);
        self.output[out].owner = NOBODY;
        let work = &mut self.work[router];
        work.free |= 1 << (out & ((1 << self.tables.shift) - 1));
        work.trying |= std::mem::take(&mut self.parked[port]);
        if let Some(packet) = self.behind.pop(index) {
            self.begin(index, packet, self.now + 1);
        }
    }
}
