//! RED: random early detection (Floyd & Jacobson 1993).
//!
//! The queue gets 16 packets for every 15 that leave, so it never runs empty; its drops keep the average
//! length between the thresholds.

use std::collections::VecDeque;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Kernel, Packet};

/// Weight of the newest length in the average (Floyd & Jacobson 1993, sec. 6).
const WEIGHT: f64 = 0.002;
/// Packets below which nothing is dropped, and from which on everything (the same, sec. 5: twice and more apart).
const THRESHOLDS: (f64, f64) = (5.0, 15.0);
/// Probability of a drop just below the upper threshold; 0.1 instead of 0.02, as the authors of RFC 2309 use later.
const MOST: f64 = 0.1;
/// Of this number of arrivals one has no departure.
const EXCESS: u32 = 16;

/// A queue with early drops.
#[derive(Debug)]
pub struct Red {
    waiting: VecDeque<(u32, u32)>,
    average: f64,
    since_drop: u32,
    came: u32,
    random: Xoshiro256PlusPlus,
}

impl Red {
    /// An empty queue.
    pub fn new(seed: u64) -> Self {
        Self {
            waiting: VecDeque::with_capacity(1024),
            average: 0.0,
            since_drop: 0,
            came: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(crate::traffic::mix(seed)),
        }
    }

    /// Whether a packet that finds the queue with this average length is dropped.
    ///
    /// The probability grows with the packets since the last drop so that drops are evenly spread (sec. 7).
    fn drops(&mut self, average: f64) -> bool {
        if average < THRESHOLDS.0 {
            self.since_drop = 0;
            return false;
        }
        if average >= THRESHOLDS.1 {
            self.since_drop = 0;
            return true;
        }
        let probability = MOST * (average - THRESHOLDS.0) / (THRESHOLDS.1 - THRESHOLDS.0);
        let left = 1.0 - f64::from(self.since_drop) * probability;
        let draw = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let drop = draw * left < probability;
        self.since_drop = if drop { 0 } else { self.since_drop + 1 };
        drop
    }
}

impl Kernel for Red {
    /// Returns 1 if the packet is queued, 0 if it is dropped.
    fn process(&mut self, packet: &mut Packet<'_>) -> u64 {
        self.average += WEIGHT * (self.waiting.len() as f64 - self.average);
        let drop = self.drops(self.average);
        if !drop {
            self.waiting.push_back((packet.number as u32, u32::from(packet.ip_half(2)) + 18));
        }
        self.came += 1;
        if !self.came.is_multiple_of(EXCESS) {
            self.waiting.pop_front();
        }
        u64::from(!drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::packets::tests::of_size;
    use crate::workload::request::Content;

    #[test]
    fn drops_at_a_steady_average_are_spread_evenly() {
        // Floyd & Jacobson 1993, sec. 7, method 2: the packets from one drop to the next are uniform from 1 to 1/p.
        // Halfway between the thresholds p = 0.05, so 1 to 20, mean 10.5, standard deviation 5.77.
        let mut red = Red::new(3);
        let mut gaps = Vec::new();
        let mut gap = 0;
        while gaps.len() < 20_000 {
            gap += 1;
            if red.drops(10.0) {
                gaps.push(gap);
                gap = 0;
            }
        }
        let mean = f64::from(gaps.iter().sum::<i32>()) / gaps.len() as f64;
        assert!((mean - 10.5).abs() < 5.0 * 5.77 / (20_000.0f64).sqrt(), "{mean}");
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&20)));
    }

    #[test]
    fn below_the_thresholds_nothing_is_dropped_and_above_them_everything() {
        let mut red = Red::new(3);
        assert!((0..1000).all(|_| !red.drops(4.99)));
        assert!((0..1000).all(|_| red.drops(15.0)));
    }

    #[test]
    fn an_overloaded_queue_settles_between_the_thresholds_and_drops_what_is_too_much() {
        let mut red = Red::new(7);
        let mut packets = of_size(64, 16, Content::Random);
        for number in 0..20_000 {
            red.process(&mut packets.packet(number));
        }
        let taken: u64 = (0..64_000).map(|number| red.process(&mut packets.packet(number))).sum();
        // As much as leaves, to within what the queue holds more or less.
        assert!(taken.abs_diff(60_000) < 100, "{taken}");
        assert!((THRESHOLDS.0..THRESHOLDS.1).contains(&red.average), "{}", red.average);
    }
}
