//! `parse(b)` and `deparse(b)`: fields of a header between frames and values.

use crate::batch::{BATCH_FRAMES, Batch, Words, with_count};

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
    with_count!(count, {
        for (frame, field) in fields.iter_mut().enumerate().take(count) {
            let words = batch.words::<W>(frame, at);
            for ((value, word), mask) in field.iter_mut().zip(words).zip(mask) {
                *value = word & mask;
            }
        }
    });
}

/// `deparse(b)`: writes the first `B` bytes of each frame's words to byte `at` of the frame.
///
/// `B` is at most `8·W`. Source: Baldi & Sapio 2018, sec. 2.1, operation 2.
#[inline]
pub fn deparse<const B: usize, const W: usize>(batch: &mut Batch<'_>, at: usize, fields: &Words<W>) {
    const { assert!(B <= 8 * W) };
    let count = batch.count();
    with_count!(count, {
        for (frame, field) in fields.iter().enumerate().take(count.min(BATCH_FRAMES)) {
            write(batch.bytes_mut::<B>(frame, at), field);
        }
    });
}

/// Writes as many bytes of some words as fit.
#[inline(always)]
pub(super) fn write<const B: usize, const W: usize>(bytes: &mut [u8; B], words: &[u64; W]) {
    let (full_words, rest) = bytes.split_at_mut(B / 8 * 8);
    for (chunk, word) in full_words.chunks_exact_mut(8).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    if !B.is_multiple_of(8) {
        rest.copy_from_slice(&words[B / 8].to_le_bytes()[..B % 8]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::{BUFFER_BYTES, Buffer};

    fn numbered() -> Vec<Buffer> {
        let mut buffers = vec![Buffer::default(); 3];
        for (index, byte) in buffers.iter_mut().flat_map(|buffer| &mut buffer.bytes).enumerate() {
            *byte = (index * 7 % 251) as u8;
        }
        buffers
    }

    fn there_and_back<const B: usize, const W: usize>(start: u16, at: usize) {
        let mut buffers = numbered();
        let before = buffers.clone();
        let mut batch = Batch::new(&mut buffers);
        batch.start.fill(start);
        let mut fields: Words<W> = [[9; W]; BATCH_FRAMES];
        parse::<W>(&batch, at, mask::<W>(B), &mut fields);
        let from = usize::from(start) + at;
        for (frame, field) in fields.iter().enumerate() {
            let bytes: Vec<u8> = field.iter().flat_map(|word| word.to_le_bytes()).collect();
            if frame < 3 && from + 8 * W <= BUFFER_BYTES {
                assert_eq!(bytes[..B], before[frame].bytes[from..from + B]);
            }
            if frame < 3 {
                assert!(bytes[B..].iter().all(|&byte| byte == 0));
            } else {
                assert_eq!(*field, [9; W], "frames that are not there keep their values");
            }
        }
        let new: Words<W> = std::array::from_fn(|frame| [!(frame as u64); W]);
        deparse::<B, W>(&mut batch, at, &new);
        let from = from.min(BUFFER_BYTES - B);
        for (frame, before) in before.iter().enumerate() {
            let mut expected = before.bytes;
            let bytes: Vec<u8> = new[frame].iter().flat_map(|word| word.to_le_bytes()).collect();
            expected[from..from + B].copy_from_slice(&bytes[..B]);
            assert!(batch.buffers[frame].bytes == expected);
        }
    }

    proptest! {
        #[test]
        fn a_field_is_read_and_written_where_it_is_and_nowhere_else(
            start in prop_oneof![Just(128u16), any::<u16>()],
            at in 0usize..200,
        ) {
            there_and_back::<1, 1>(start, at);
            there_and_back::<6, 1>(start, at);
            there_and_back::<8, 1>(start, at);
            there_and_back::<13, 2>(start, at);
            there_and_back::<16, 2>(start, at);
            there_and_back::<20, 3>(start, at);
            there_and_back::<64, 8>(start, at);
        }
    }
}
