//! `checksum(b)` and `inc_checksum(b)`: the Internet checksum, whole and by what changed.
//!
//! Ones'-complement sums may be computed in any byte order as long as it is one (RFC 1071, sec. 2B), so nothing is
//! turned: checksums stand in words as they stand in memory.

use crate::batch::{Batch, Words};

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
        let word = u64::from_le_bytes(chunk.try_into().expect("a chunk of 8 bytes"));
        low += word & 0xffff_ffff;
        high += word >> 32;
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let last = u64::from_le_bytes(last);
    !fold(low + high + (last & 0xffff_ffff) + (last >> 32))
}

/// Folds a sum to 16 bits with its carries coming in again at the low end.
#[inline]
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// `checksum(b)`: the Internet checksum of `B` bytes at byte `at` of each frame, in the low 16 bits of its word.
///
/// It is 0 for a header whose own checksum field is right. Sources: Baldi & Sapio 2018, sec. 2.1, operation 5;
/// RFC 1071.
#[inline]
pub fn checksum<const B: usize>(batch: &Batch<'_>, at: usize, checksums: &mut Words<1>) {
    let count = batch.count();
    for (frame, checksum) in checksums.iter_mut().enumerate().take(count) {
        checksum[0] = u64::from(internet_checksum(batch.bytes::<B>(frame, at)));
    }
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
    for ((checksum, old), new) in checksums.iter_mut().zip(old).zip(new).take(count) {
        let mut sum = !checksum[0] & 0xffff;
        for (old, new) in old.iter().zip(new) {
            sum += (!old & 0xffff_ffff) + (!old >> 32) + (new & 0xffff_ffff) + (new >> 32);
        }
        checksum[0] = u64::from(!fold(sum));
    }
}
