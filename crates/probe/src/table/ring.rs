//! A ring between two cores: one puts items in, the other takes them out, both in bursts.
//!
//! Head and tail lie in lines of their own, and each side keeps a copy of the other's, which it reads anew only when
//! the ring seems full or empty: a burst costs at most one line from the other core besides the items themselves
//! (Lee, Bu & Chandranmenon 2010, `MCRingBuffer`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::error::{ProbeError, Result};

#[derive(Debug)]
#[repr(align(128))] // two lines: processors prefetch in pairs
struct Own(AtomicUsize);

#[derive(Debug)]
struct Shared {
    tail: Own,
    head: Own,
    items: Box<[AtomicU64]>,
}

/// The input of a ring.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    tail: usize,
    head_seen: usize,
}

/// The output of a ring.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
    head: usize,
    tail_seen: usize,
}

/// Both ends of a ring for `capacity` items, a power of two.
///
/// # Errors
///
/// [`ProbeError::Request`] for any other capacity.
pub fn ring(capacity: usize) -> Result<(Producer, Consumer)> {
    if !capacity.is_power_of_two() || capacity > 1 << 24 {
        return Err(ProbeError::request("ring", format!("got {capacity} items; a ring has a power of two up to 2^24")));
    }
    let items = (0..capacity).map(|_| AtomicU64::new(0)).collect();
    let shared = Arc::new(Shared { tail: Own(AtomicUsize::new(0)), head: Own(AtomicUsize::new(0)), items });
    let producer = Producer { shared: Arc::clone(&shared), tail: 0, head_seen: 0 };
    Ok((producer, Consumer { shared, head: 0, tail_seen: 0 }))
}

impl Producer {
    /// Puts in as many of some items as fit, in order, and returns their number.
    #[inline]
    pub fn enqueue(&mut self, burst: &[u64]) -> usize {
        let items = &self.shared.items;
        let mut room = items.len() - self.tail.wrapping_sub(self.head_seen);
        if room < burst.len() {
            self.head_seen = self.shared.head.0.load(Ordering::Acquire);
            room = items.len() - self.tail.wrapping_sub(self.head_seen);
        }
        let count = burst.len().min(room);
        for (offset, item) in burst.iter().take(count).enumerate() {
            items[self.tail.wrapping_add(offset) & (items.len() - 1)].store(*item, Ordering::Relaxed);
        }
        self.tail = self.tail.wrapping_add(count);
        self.shared.tail.0.store(self.tail, Ordering::Release);
        count
    }
}

impl Consumer {
    /// Takes out as many items as fit into `burst`, and returns their number.
    #[inline]
    pub fn dequeue(&mut self, burst: &mut [u64]) -> usize {
        let items = &self.shared.items;
        let mut there = self.tail_seen.wrapping_sub(self.head);
        if there < burst.len() {
            self.tail_seen = self.shared.tail.0.load(Ordering::Acquire);
            there = self.tail_seen.wrapping_sub(self.head);
        }
        let count = burst.len().min(there);
        for (offset, item) in burst.iter_mut().take(count).enumerate() {
            *item = items[self.head.wrapping_add(offset) & (items.len() - 1)].load(Ordering::Relaxed);
        }
        self.head = self.head.wrapping_add(count);
        self.shared.head.0.store(self.head, Ordering::Release);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_the_order_they_went_in_across_threads() {
        let (mut producer, mut consumer) = ring(64).unwrap();
        let sender = std::thread::spawn(move || {
            let mut next = 0;
            while next < 20_000 {
                let burst: Vec<u64> = (next..20_000.min(next + 1 + next % 32)).collect();
                next += producer.enqueue(&burst) as u64;
            }
        });
        let mut expected = 0;
        let mut burst = [0; 24];
        while expected < 20_000 {
            let count = consumer.dequeue(&mut burst);
            for item in &burst[..count] {
                assert_eq!(*item, expected);
                expected += 1;
            }
            std::thread::yield_now();
        }
        sender.join().unwrap();
        assert_eq!(consumer.dequeue(&mut burst), 0);
    }

    #[test]
    fn a_full_ring_takes_no_more_and_an_empty_one_gives_nothing() {
        let (mut producer, mut consumer) = ring(8).unwrap();
        assert_eq!(producer.enqueue(&[1; 6]), 6);
        assert_eq!(producer.enqueue(&[2; 6]), 2);
        assert_eq!(producer.enqueue(&[3]), 0);
        let mut out = [0; 16];
        assert_eq!(consumer.dequeue(&mut out), 8);
        assert_eq!(out[..8], [1, 1, 1, 1, 1, 1, 2, 2]);
        assert_eq!(consumer.dequeue(&mut out), 0);
    }

    #[test]
    fn capacities_that_are_no_power_of_two_are_refused() {
        for capacity in [0, 3, 1 << 25] {
            assert_eq!(ring(capacity).unwrap_err().kind(), "request");
        }
    }
}
