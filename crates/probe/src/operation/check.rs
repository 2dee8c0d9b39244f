//! `check(b)` and `assemble(b)`: tests of fields, and headers from fields, between parsing and deparsing.

use crate::batch::{BATCH_FRAMES, Words, with_count};

/// `check(b)`: the frames (bit `i`: frame `i`) whose word `word`, under a mask, differs from the expected value.
///
/// Without branches: nearly all frames pass, and the others must not slow them down.
#[inline]
#[must_use]
pub fn check<const W: usize>(fields: &Words<W>, count: usize, word: usize, mask: u64, right: u64) -> u32 {
    let mut wrong = 0;
    with_count!(count, {
        for (frame, field) in fields.iter().enumerate().take(count) {
            wrong |= u32::from(field[word] & mask != right) << frame;
        }
    });
    wrong
}

/// `assemble(b)`: `b = 8·W` bytes of header for each frame, put together from fields by `put`, which gets the number of
/// the frame.
#[inline]
pub fn assemble<const W: usize>(count: usize, header: &mut Words<W>, mut put: impl FnMut(usize) -> [u64; W]) {
    with_count!(count, {
        for (frame, header) in header.iter_mut().enumerate().take(count.min(BATCH_FRAMES)) {
            *header = put(frame);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_finds_just_the_frames_that_differ_under_the_mask() {
        let mut fields: Words<2> = [[0, 0x1234]; BATCH_FRAMES];
        fields[3][1] = 0x5634;
        fields[7][1] = 0x1235;
        assert_eq!(check(&fields, BATCH_FRAMES, 1, 0xff00, 0x1200), 1 << 3);
        assert_eq!(check(&fields, BATCH_FRAMES, 1, 0xffff, 0x1234), 1 << 3 | 1 << 7);
        assert_eq!(check(&fields, 3, 1, 0xffff, 0x1234), 0);
    }

    #[test]
    fn headers_are_put_together_frame_by_frame() {
        let mut headers: Words<1> = [[9]; BATCH_FRAMES];
        assemble(5, &mut headers, |frame| [frame as u64]);
        assert_eq!(headers[4], [4]);
        assert_eq!(headers[5], [9]);
    }
}
