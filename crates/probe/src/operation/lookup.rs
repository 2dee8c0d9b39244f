//! `ht_lookup(N, HE, max, p)` and `ct_insertion(N, HE, max, p)`: entries of a hash table.

use crate::batch::{BATCH_FRAMES, Words, with_count};
use crate::memory::Line;
use crate::operation::prefetch;
use crate::table::hash_table::{HashTable, Slots};

/// `ht_lookup(N, HE, max, p)`: the values of `V` words that the table has for keys of `N` words; `HE = 8·(N + V)`.
///
/// Returns the frames (bit `i`: frame `i`) with an entry in the table; the values of the others have no meaning. Two
/// loops: hash and prefetch, then compare, and a third over the few keys that may be in a further line. Source: Baldi &
/// Sapio 2018, sec. 2.1, operation 7.
#[inline]
pub fn ht_lookup<const N: usize, const V: usize>(
    table: &HashTable<N, V>,
    keys: &Words<N>,
    count: usize,
    values: &mut Words<V>,
) -> u32 {
    let count = count.min(BATCH_FRAMES);
    let lines = table.lines();
    let at = lines_of::<N, V>(lines, keys, count);
    let (mut hits, mut overflowed) = (0, 0);
    with_count!(count, {
        for (frame, (value, key)) in values.iter_mut().zip(keys).enumerate().take(count) {
            let (hit, on) = Slots::compare(&lines[at[frame]], key, value);
            hits |= hit << frame;
            overflowed |= on << frame;
        }
    });
    while overflowed != 0 {
        let frame = overflowed.trailing_zeros() as usize % BATCH_FRAMES;
        overflowed &= overflowed - 1;
        let next = Slots::<N, V>::next(at[frame], lines.len());
        hits |= u32::from(Slots::read(lines, next, &keys[frame], &mut values[frame])) << frame;
    }
    hits
}

/// First loop: the lines of keys, with a prefetch of each.
#[inline(always)]
fn lines_of<const N: usize, const V: usize>(lines: &[Line], keys: &Words<N>, count: usize) -> [usize; BATCH_FRAMES] {
    let mut at = [0; BATCH_FRAMES];
    with_count!(count, {
        for (at, key) in at.iter_mut().zip(keys).take(count) {
            *at = Slots::<N, V>::line(key, lines.len());
            prefetch(lines, *at);
        }
    });
    at
}

/// `ct_insertion(N, HE, max, p)`: writes values under keys: in place where the key is there, else as a new entry.
///
/// Only for the frames in `which` (bit `i`: frame `i`). The first value word is a timestamp by habit. Says for which of
/// them the table had no room. Two loops: hash and prefetch, then compare and write, and a third over the keys that are
/// not in their own line. Source: Baldi & Sapio 2018, sec. 2.1, operation 9.
#[inline]
pub fn ct_insertion<const N: usize, const V: usize>(
    table: &mut HashTable<N, V>,
    keys: &Words<N>,
    values: &Words<V>,
    count: usize,
    which: u32,
) -> u32 {
    let count = count.min(BATCH_FRAMES);
    let lines = table.lines_mut();
    let at = lines_of::<N, V>(lines, keys, count);
    let mut overflowed = 0;
    with_count!(count, {
        for frame in 0..count {
            let allowed = (which >> frame) & 1 == 1;
            let hit = Slots::update(&mut lines[at[frame]], &keys[frame], &values[frame], allowed);
            overflowed |= u32::from(allowed & !hit) << frame;
        }
    });
    let mut refused = 0;
    while overflowed != 0 {
        let frame = overflowed.trailing_zeros() as usize % BATCH_FRAMES;
        overflowed &= overflowed - 1;
        refused |= u32::from(!table.write(at[frame], &keys[frame], &values[frame])) << frame;
    }
    refused
}
