//! `checksum(b)` and `inc_checksum(b)`: the Internet checksum, whole and by what changed.
//!
//! Ones'-complement sums may be computed in any byte order as long as it is one (RFC 1071, sec. 2B), so nothing is
//! turned: checksums stand in words as they stand in memory.

use crate::batch::{Batch, Words, with_count};

/// The Internet checksum of some bytes (RFC 1071), in the byte order of memory.
#[inline]
#[must_use]
pub fn internet_checksum(bytes: &[u8]) -> u16 {
    let chunks = bytes.chunks_exact(8);
    let rest = chunks.remainder();
    let mut low = 0u64;
    let mut high = 0u64;
    // Halves of 32 bits in sums of 64: no carry before 2^32 words, and the loop becomes vector code.
    for chunk in chunks {
        let mut eight = [0; 8];
        eight.copy_from_slice(chunk);
        let word = u64::from_le_bytes(eight);
        low += word & 0xffff_ffff;
        high += word >> 32;
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let last = u64::from_le_bytes(last);
    !fold(low + high + (last & 0xffff_ffff) + (last >> 32))
}

/// The Internet checksum of words that stand in registers: of a header before it is written, whose bytes are in them
/// as in memory, an even number of bytes to each word.
///
/// A checksum over what has just been stored in other pieces would wait until the stores are done.
#[inline]
#[must_use]
pub fn checksum_words<const W: usize>(words: &[u64; W]) -> u16 {
    !fold(words.iter().map(|word| (word & 0xffff_ffff) + (word >> 32)).sum())
}

/// Folds a sum to 16 bits with its carries coming in again at the low end.
#[inline]
fn fold(sum: u64) -> u16 {
    // A value plus itself turned by half its width has the sum of its halves, carry included, in the upper half.
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
}

/// `checksum(b)`: the Internet checksum of `B` bytes at byte `at` of each frame, in the low 16 bits of its word.
///
/// It is 0 for a header whose own checksum field is right. Sources: Baldi & Sapio 2018, sec. 2.1, operation 5;
/// RFC 1071.
#[inline]
pub fn checksum<const B: usize>(batch: &Batch<'_>, at: usize, checksums: &mut Words<1>) {
    let count = batch.count();
    with_count!(count, {
        for (frame, checksum) in checksums.iter_mut().enumerate().take(count) {
            checksum[0] = u64::from(internet_checksum(batch.bytes::<B>(frame, at)));
        }
    });
}

/// `checksum(b)` of `bytes[i]` bytes at byte `at` of frame `i`: for payloads, whose sizes differ.
#[inline]
pub fn checksum_bytes(batch: &mut Batch<'_>, at: usize, bytes: &[u16; 32], checksums: &mut Words<1>) {
    let count = batch.count();
    for (frame, checksum) in checksums.iter_mut().enumerate().take(count) {
        checksum[0] = u64::from(internet_checksum(batch.slice_mut(frame, at, usize::from(bytes[frame]))));
    }
}

/// `inc_checksum(b)`: updates checksums for fields that change from `old` to `new`.
///
/// The fields begin at an even byte of what the checksum covers; bytes of the words that are not part of it are the
/// same in both. `HC' = ~(~HC + ~m + m')`, RFC 1624, sec. 3, eq. 3. Checksums stand in the low 16 bits of their words.
#[inline]
pub fn inc_checksum<const W: usize>(checksums: &mut Words<1>, old: &Words<W>, new: &Words<W>, count: usize) {
    with_count!(count, {
        for ((checksum, old), new) in checksums.iter_mut().zip(old).zip(new).take(count) {
            let mut sum = !checksum[0] & 0xffff;
            for (old, new) in old.iter().zip(new) {
                sum += (!old & 0xffff_ffff) + (!old >> 32) + (new & 0xffff_ffff) + (new >> 32);
            }
            checksum[0] = u64::from(!fold(sum));
        }
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::{BATCH_FRAMES, BUFFER_BYTES, Buffer};

    /// RFC 1071, sec. 4.1: sixteen bits at a time in network order.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum: u64 =
            bytes.chunks(2).map(|two| u64::from(two[0]) << 8 | u64::from(*two.get(1).unwrap_or(&0))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn the_example_of_rfc_1071_comes_out() {
        // Sec. 3: the sum of 0001 f203 f4f5 f6f7 is ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(u16::from_be(internet_checksum(&bytes)), !0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_comes_out() {
        // Sec. 4: checksum dd2f, a word changes from 5555 to 3285; the new checksum is 0000.
        let mut checksums = [[u64::from(0xdd2fu16.to_be())]; BATCH_FRAMES];
        let word = |value: u16| [[u64::from(value.to_be())]; BATCH_FRAMES];
        inc_checksum(&mut checksums, &word(0x5555), &word(0x3285), 4);
        assert_eq!(checksums[3], [0]);
        assert_eq!(checksums[4], [u64::from(0xdd2fu16.to_be())]);
    }

    #[test]
    fn the_fold_of_the_largest_sum_does_not_lose_a_carry() {
        assert_eq!(naive(&[0xff; 1500]), u16::from_be(internet_checksum(&[0xff; 1500])));
        assert_eq!(fold(u64::MAX), 0xffff);
        assert_eq!(fold(0xffff_0001_0000_0001), 2); // ffff + 1 + 0 + 1 = 1_0001, and its carry
    }

    proptest! {
        #[test]
        fn the_checksum_is_that_of_rfc_1071_for_every_length(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(u16::from_be(internet_checksum(&bytes)), naive(&bytes));
        }

        #[test]
        fn batches_are_summed_frame_by_frame_within_their_buffers(
            seed in any::<u8>(),
            start in prop_oneof![Just(128u16), any::<u16>()],
            bytes in any::<[u16; 32]>(),
        ) {
            let mut buffers = vec![Buffer::default(); 3];
            for (index, byte) in buffers.iter_mut().flat_map(|buffer| &mut buffer.bytes).enumerate() {
                *byte = ((index * 13) >> 2) as u8 ^ seed;
            }
            let before = buffers.clone();
            let mut batch = Batch::new(&mut buffers);
            batch.start.fill(start);
            let mut checksums: Words<1> = [[1 << 20]; BATCH_FRAMES];
            checksum::<20>(&batch, 14, &mut checksums);
            let from = (usize::from(start) + 14).min(BUFFER_BYTES - 20);
            for frame in 0..3 {
                let expected = naive(&before[frame].bytes[from..from + 20]);
                prop_assert_eq!(u16::from_be(checksums[frame][0] as u16), expected);
            }
            checksum_bytes(&mut batch, 14, &bytes, &mut checksums);
            let from = (usize::from(start) + 14).min(BUFFER_BYTES);
            for frame in 0..3 {
                let to = (from + usize::from(bytes[frame])).min(BUFFER_BYTES);
                prop_assert_eq!(u16::from_be(checksums[frame][0] as u16), naive(&before[frame].bytes[from..to]));
            }
            prop_assert_eq!(checksums[3], [1 << 20]);
        }

        /// For a header whose checksum is right, the update gives what a new computation gives. All zeros, the one
        /// header whose sum has two forms, cannot come about: the version is not 0.
        #[test]
        fn an_updated_checksum_is_that_of_the_new_header(
            header in any::<[u8; 20]>(),
            new in any::<[u8; 8]>(),
        ) {
            let mut header = header;
            header[0] = 0x45;
            header[10..12].fill(0);
            let checksum = naive(&header);
            let old: [u8; 8] = header[12..].try_into().unwrap();
            header[12..].copy_from_slice(&new);
            let expected = naive(&header);
            let mut checksums = [[u64::from(checksum.to_be())]; BATCH_FRAMES];
            let words = |bytes: [u8; 8]| [[0, u64::from_le_bytes(bytes)]; BATCH_FRAMES];
            inc_checksum(&mut checksums, &words(old), &words(new), 1);
            prop_assert_eq!(u16::from_be(checksums[0][0] as u16), expected);
            // Words that stay as they are change nothing.
            let before = checksums;
            inc_checksum(&mut checksums, &words(new), &words(new), BATCH_FRAMES);
            prop_assert_eq!(checksums, before);
        }
    }
}
