//! `enqueue(burst)` and `dequeue(burst)`: descriptors between two cores, in bursts.

use crate::table::ring::{Consumer, Producer};

/// `enqueue(burst)`: puts a burst of items into a ring, as many as it has room for, and says how many.
#[inline]
pub fn enqueue(ring: &mut Producer, burst: &[u64]) -> usize {
    ring.enqueue(burst)
}

/// `dequeue(burst)`: takes up to a burst of items from a ring and says how many.
#[inline]
pub fn dequeue(ring: &mut Consumer, burst: &mut [u64]) -> usize {
    ring.dequeue(burst)
}
