//! `parse(b)` and `deparse(b)`: fields of a header between frames and values.

use crate::batch::{BATCH_FRAMES, Batch, Words};

/// The mask of the first `b` bytes of `W` words.
///
/// ```
/// use routecast_probe::operation::mask;
/// assert_eq!(mask::<2>(9), [u64::MAX, 0xff]);
/// ```
#[must_use]
pub const fn mask<const W: usize>(b: usize) -> [u64; W] {
    let mut words = [0; W];
    let mut byte = 0;
    while byte < b && byte < 8 * W {
        let ones = u64::from_le_bytes([0xff, 0, 0, 0, 0, 0, 0, 0]);
        words[byte / 8] |= ones << (8 * (byte % 8));
        byte += 1;
    }
    words
}

/// `parse(b)`: reads the field of up to `8·W` bytes at byte `at` of each frame, with the bits of `mask` kept.
///
/// Words hold the bytes in the order of memory: byte `at` is the lowest of word 0. With [`mask`]`(b)` the field has `b`
/// bytes; other masks pick fields that lie side by side, like protocol, addresses and ports of an IPv4 header. Source:
/// Baldi & Sapio 2018, sec. 2.1, operation 2.
#[inline]
pub fn parse<const W: usize>(batch: &Batch<'_>, at: usize, mask: [u64; W], fields: &mut Words<W>) {
    let count = batch.count();
    for (frame, field) in fields.iter_mut().enumerate().take(count) {
        let words = batch.words::<W>(frame, at);
        for ((value, word), mask) in field.iter_mut().zip(words).zip(mask) {
            *value = word & mask;
        }
    }
}

/// `deparse(b)`: writes the first `B` bytes of each frame's words to byte `at` of the frame.
///
/// `B` is at most `8·W`. Source: Baldi & Sapio 2018, sec. 2.1, operation 2.
#[inline]
pub fn deparse<const B: usize, const W: usize>(batch: &mut Batch<'_>, at: usize, fields: &Words<W>) {
    const { assert!(B <= 8 * W) };
    let count = batch.count();
    for (frame, field) in fields.iter().enumerate().take(count.min(BATCH_FRAMES)) {
        write(batch.bytes_mut::<B>(frame, at), field);
    }
}

/// Writes as many bytes of some words as fit.
#[inline(always)]
pub(super) fn write<const B: usize, const W: usize>(bytes: &mut [u8; B], words: &[u64; W]) {
    let (whole, rest) = bytes.split_at_mut(B / 8 * 8);
    for (chunk, word) in whole.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    if B % 8 > 0 {
        rest.copy_from_slice(&words[B / 8].to_le_bytes()[..B % 8]);
    }
}
