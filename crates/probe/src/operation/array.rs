//! `array_access(es, max)` and `counter_update(es, max)`: entries of an array by their number.

use crate::batch::{BATCH_FRAMES, Words, with_count};
use crate::operation::prefetch;
use crate::table::array::Array;

/// `array_access(es, max)`: the entries of `es = 8·W` bytes that the indices name.
///
/// Two loops: prefetch, then read. An index beyond the array reads its last entry. Source: Baldi & Sapio 2018,
/// sec. 2.1, operation 6.
#[inline]
pub fn array_access<const W: usize>(
    array: &Array<W>,
    indices: &[u32; BATCH_FRAMES],
    count: usize,
    entries: &mut Words<W>,
) {
    let all = array.entries();
    with_count!(count, {
        for &index in indices.iter().take(count) {
            prefetch(all, index as usize);
        }
    });
    let last = all.len() - 1;
    with_count!(count, {
        for (entry, &index) in entries.iter_mut().zip(indices).take(count) {
            *entry = all[last.min(index as usize)];
        }
    });
}

/// `counter_update(es, max)`: adds `amounts`, word by word, to the entries of `es = 8·W` bytes that the indices name.
///
/// Only for the frames in `which` (bit `i`: frame `i`); the others add 0. An index beyond the array is its last
/// entry. Two loops: prefetch, then read, add and write.
#[inline]
pub fn counter_update<const W: usize>(
    array: &mut Array<W>,
    indices: &[u32; BATCH_FRAMES],
    amounts: &Words<W>,
    count: usize,
    which: u32,
) {
    let all = array.entries_mut();
    with_count!(count, {
        for &index in indices.iter().take(count) {
            prefetch(all, index as usize);
        }
    });
    let last = all.len() - 1;
    with_count!(count, {
        for (frame, (amount, &index)) in amounts.iter().zip(indices).enumerate().take(count) {
            let keep = 0u64.wrapping_sub(u64::from((which >> frame) & 1));
            let entry = &mut all[last.min(index as usize)];
            for (word, more) in entry.iter_mut().zip(amount) {
                *word = word.wrapping_add(more & keep);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Pages;

    #[test]
    fn counters_add_up_for_the_frames_that_count_even_if_they_are_the_same() {
        let mut array = Array::<2>::new("a test", 10, Pages::Normal).unwrap();
        let mut indices = [3; BATCH_FRAMES];
        indices[0] = 9;
        indices[1] = u32::MAX;
        let amounts: Words<2> = std::array::from_fn(|frame| [1, 100 + frame as u64]);
        counter_update(&mut array, &indices, &amounts, 6, !0b10_0000);
        let mut entries = [[7; 2]; BATCH_FRAMES];
        array_access(&array, &indices, 6, &mut entries);
        // An index beyond the array is its last entry.
        assert_eq!(entries[..7], [[2, 201], [2, 201], [3, 309], [3, 309], [3, 309], [3, 309], [7, 7]]);
    }

    #[test]
    fn an_array_of_nothing_is_refused() {
        assert_eq!(Array::<1>::new("table next_hops", 0, Pages::Huge).unwrap_err().kind(), "request");
    }
}
