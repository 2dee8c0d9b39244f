//! `ht_lookup(N, HE, max, p)` and `ct_insertion(N, HE, max, p)`: entries of a hash table.

use crate::batch::{BATCH_FRAMES, Words};
use crate::operation::prefetch;
use crate::table::hash_table::{HashTable, Slots};

/// `ht_lookup(N, HE, max, p)`: the values of `V` words that the table has for keys of `N` words; `HE = 8·(N + V)`.
///
/// Says which frames (bit `i`: frame `i`) the table has an entry for; the values of the others are of no meaning. Two
/// loops: hash and prefetch, then compare. Source: Baldi & Sapio 2018, sec. 2.1, operation 7.
#[inline]
pub fn ht_lookup<const N: usize, const V: usize>(
    table: &HashTable<N, V>,
    keys: &Words<N>,
    count: usize,
    values: &mut Words<V>,
) -> u32 {
    let count = count.min(BATCH_FRAMES);
    let lines = table.lines();
    let mut at = [0; BATCH_FRAMES];
    for (at, key) in at.iter_mut().zip(keys).take(count) {
        *at = Slots::<N, V>::line(key, lines.len());
        prefetch(lines, *at as usize);
    }
    let mut found = 0;
    for (frame, (value, key)) in values.iter_mut().zip(keys).enumerate().take(count) {
        found |= u32::from(Slots::read(lines, at[frame], key, value)) << frame;
    }
    found
}

/// `ct_insertion(N, HE, max, p)`: writes values under keys: in place where the key is there, else as a new entry.
///
/// Only for the frames in `which` (bit `i`: frame `i`). The first value word is a timestamp by habit. Says for which
/// of them the table had no room. Two loops: hash and prefetch, then compare and write. Source: Baldi & Sapio 2018,
/// sec. 2.1, operation 9.
#[inline]
pub fn ct_insertion<const N: usize, const V: usize>(
    table: &mut HashTable<N, V>,
    keys: &Words<N>,
    values: &Words<V>,
    count: usize,
    which: u32,
) -> u32 {
    let count = count.min(BATCH_FRAMES);
    let mut lines = [0; BATCH_FRAMES];
    for (line, key) in lines.iter_mut().zip(keys).take(count) {
        *line = table.line(key);
        table.prefetch(*line);
    }
    let mut refused = 0;
    for frame in 0..count {
        if (which >> frame) & 1 == 1 {
            refused |= u32::from(!table.write(lines[frame], &keys[frame], &values[frame])) << frame;
        }
    }
    refused
}
