//! WFQ: weighted fair queueing, self-clocked (Golestani 1994).
//!
//! Each packet gets a virtual time at which it would be finished if its flow had its share alone; the packet with the
//! least leaves next, and the virtual time of the one that leaves is the clock. One packet leaves for each that comes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Kernel, Packet};

/// Weights of the flows, in turn.
const WEIGHTS: [u64; 4] = [1, 2, 4, 8];
/// Packets that wait on average for each flow.
const BACKLOG: usize = 4;
/// Virtual time of a byte of a flow of weight 1: all weights divide it.
const TICKS: u64 = 8;

/// A scheduler of packets by their virtual times.
#[derive(Debug)]
pub struct Wfq {
    finished: Vec<u64>,
    clock: u64,
    came: u64,
    waiting: BinaryHeap<Reverse<(u64, u64, u32, u32)>>,
}

impl Wfq {
    /// A scheduler for some number of flows.
    pub fn new(flows: u64) -> Self {
        let flows = flows as usize;
        Self {
            finished: vec![0; flows],
            clock: 0,
            came: 0,
            waiting: BinaryHeap::with_capacity((BACKLOG + 1) * flows + 1),
        }
    }

    /// Enqueues a packet.
    pub fn enqueue(&mut self, flow: u32, packet: u32, bytes: u32) {
        let last = &mut self.finished[flow as usize];
        let weight = WEIGHTS[flow as usize % WEIGHTS.len()];
        *last = (*last).max(self.clock) + u64::from(bytes) * TICKS / weight;
        // Packets of one virtual time leave as they came.
        self.came += 1;
        self.waiting.push(Reverse((*last, self.came, flow, packet)));
    }

    /// The packet that leaves next: its flow and its number.
    pub fn dequeue(&mut self) -> Option<(u32, u32)> {
        let Reverse((finished, _, flow, packet)) = self.waiting.pop()?;
        self.clock = finished;
        Some((flow, packet))
    }
}

impl Kernel for Wfq {
    /// The packet that leaves; none while the queue fills at the beginning.
    fn process(&mut self, packet: &mut Packet<'_>) -> u64 {
        let flow = (u128::from(packet.flow_hash()) * self.finished.len() as u128) >> 64;
        self.enqueue(flow as u32, packet.number as u32, u32::from(packet.ip_half(2)) + 18);
        if self.waiting.len() <= BACKLOG * self.finished.len() {
            return u64::MAX;
        }
        self.dequeue().map_or(u64::MAX, |(_, packet)| u64::from(packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_always_wait_share_by_their_weights_to_within_the_bound() {
        // Golestani 1994, theorem 1: in any interval the services of two backlogged flows, each over its weight,
        // differ by at most the sum of their largest packets over their weights.
        let sizes = [1518u32, 64, 594, 1518];
        let mut wfq = Wfq::new(4);
        (0..4).for_each(|flow| (0..50).for_each(|packet| wfq.enqueue(flow, packet, sizes[flow as usize])));
        let mut sent = [0u64; 4];
        for _ in 0..20_000 {
            let (flow, packet) = wfq.dequeue().unwrap();
            wfq.enqueue(flow, packet + 50, sizes[flow as usize]);
            sent[flow as usize] += u64::from(sizes[flow as usize]);
            for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
                let service = |flow: usize, bytes: u64| bytes as f64 / WEIGHTS[flow] as f64;
                let apart = (service(a, sent[a]) - service(b, sent[b])).abs();
                let bound = service(a, u64::from(sizes[a])) + service(b, u64::from(sizes[b]));
                assert!(apart <= bound, "{a} and {b}: {apart} of {bound}");
            }
        }
    }

    #[test]
    fn packets_of_a_flow_leave_in_their_order() {
        let mut wfq = Wfq::new(3);
        (0..300).for_each(|packet| wfq.enqueue(packet % 3, packet, 64 + packet * 37 % 1400));
        let mut last = [None; 3];
        while let Some((flow, packet)) = wfq.dequeue() {
            assert!(last[flow as usize].replace(packet) < Some(packet));
        }
        assert_eq!(last, [Some(297), Some(298), Some(299)]);
    }
}
