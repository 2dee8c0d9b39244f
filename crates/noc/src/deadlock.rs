//! Detects packets that can never move again, while others may.

use crate::buffers::NOBODY;
use crate::engine::Engine;
use crate::network::NODE;
use crate::packet::NONE;

impl Engine {
    /// Whether some flits wait only for each other. Channels whose flits can move, at once or after others have moved,
    /// are marked until no more can be marked; a flit in an unmarked channel waits for ever.
    pub(crate) fn is_deadlocked(&self) -> bool {
        let tables = &self.setup.tables;
        let mut live = vec![0_u64; tables.routers];
        let mut mark = |index: usize| live[index >> tables.shift] |= 1 << (index & tables.low);
        self.flight.arrivals.iter().filter(|(end, _)| end & NODE == 0).for_each(|&(end, _)| mark(end as usize));
        self.flight.heads.iter().for_each(|&index| mark(index as usize));
        for &end in self.flight.credits.iter().filter(|&&end| end & NODE == 0) {
            let owner = self.channels.output[end as usize].owner;
            if owner != NOBODY {
                mark((end as usize & !tables.low) + usize::from(owner));
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for router in 0..tables.routers {
                for bit in 0..tables.ports * tables.vcs {
                    if live[router] >> bit & 1 == 0 && self.can_move(&live, router, bit) {
                        live[router] |= 1 << bit;
                        changed = true;
                    }
                }
            }
        }
        self.routers.work.iter().zip(&live).any(|(work, live)| work.waiting & !live != 0)
    }

    fn can_move(&self, live: &[u64], router: usize, bit: usize) -> bool {
        let tables = &self.setup.tables;
        let is_live = |index: usize| live[index >> tables.shift] >> (index & tables.low) & 1 == 1;
        let base = router << tables.shift;
        let input = &self.channels.input[base + bit];
        if input.packet == NONE {
            return false;
        }
        if input.out == NOBODY {
            return self.can_have(live, router, bit);
        }
        if input.waiting == 0 {
            // The rest of its packet is behind it; the node can send, because there is room.
            let owner = if input.up & NODE == 0 { self.channels.output[input.up as usize].owner } else { return true };
            return owner != NOBODY && is_live((input.up as usize & !tables.low) + usize::from(owner));
        }
        let output = &self.channels.output[base + usize::from(input.out)];
        output.credits > 0 || output.down & NODE != 0 || is_live(output.down as usize)
    }

    /// Whether a packet can get an output virtual channel, now or after its owner has moved on.
    fn can_have(&self, live: &[u64], router: usize, bit: usize) -> bool {
        let tables = &self.setup.tables;
        let index = (router << tables.shift) + bit;
        let packet = self.flight.slab.get(self.channels.input[index].packet);
        let arrival = tables.arrival[router * tables.ports + usize::from(tables.port_of[bit])];
        let chosen = [self.channels.port[index]];
        let ports: &[u8] = if !self.setup.routes.is_adaptive() || tables.output_queues {
            &chosen
        } else if packet.target as usize == router {
            &[packet.eject_port]
        } else {
            self.setup.routes.choices(tables, arrival, packet.target)
        };
        ports.iter().any(|&port| {
            let mut channels = self.channels.allowed[index] << (usize::from(port) * tables.vcs);
            while channels != 0 {
                let channel = channels.trailing_zeros() as usize;
                channels &= channels - 1;
                let owner = self.channels.output[(router << tables.shift) + channel].owner;
                if owner == NOBODY || live[router] >> owner & 1 == 1 {
                    return true;
                }
            }
            false
        })
    }
}
