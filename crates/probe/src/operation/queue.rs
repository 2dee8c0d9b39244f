//! `enqueue(burst)` and `dequeue(burst)`: descriptors between two cores, in bursts.

use crate::table::ring::{Consumer, Producer};

/// `enqueue(burst)`: puts as many items of a burst into a ring as fit, and returns their number.
#[inline]
pub fn enqueue(ring: &mut Producer, burst: &[u64]) -> usize {
    ring.enqueue(burst)
}

/// `dequeue(burst)`: takes up to a burst of items from a ring and returns their number.
#[inline]
pub fn dequeue(ring: &mut Consumer, burst: &mut [u64]) -> usize {
    ring.dequeue(burst)
}
