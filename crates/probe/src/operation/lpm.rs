//! `lpm_lookup(b, es, max)`: the longest prefix that matches an IPv4 address.

use crate::batch::{BATCH_FRAMES, Words};
use crate::table::dir24_8::Dir24;

/// `lpm_lookup(b, es, max)`: the next hop of each destination, in DIR-24-8 with entries of `es = 2` bytes.
///
/// The destination is the lower half of word `word` of each frame's fields, in the byte order of memory. Says which
/// frames (bit `i`: frame `i`) no route matches; their next hop is 0. First loop: prefetch; second loop: first level;
/// if any address of the batch needs it (`b > 3`), one more for the second level. Sources: Baldi & Sapio 2018,
/// sec. 2.1, operation 8; Gupta, Lin & `McKeown` 1998.
#[inline]
pub fn lpm_lookup<const W: usize>(
    table: &Dir24,
    fields: &Words<W>,
    word: usize,
    count: usize,
    next_hops: &mut [u32; BATCH_FRAMES],
) -> u32 {
    table.lookup(fields, word, count, next_hops)
}
