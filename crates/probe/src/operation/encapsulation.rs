//! `prepend(b)` and `strip(b)`: headers ahead of a frame.

use crate::batch::{BUFFER_BYTES, Batch, FCS_BYTES, Fault, Words};
use crate::operation::field::write;

/// `prepend(b)`: writes `B` bytes of each frame's words ahead of the frame.
///
/// A frame without that much room ahead of it is marked; one with a fault is not moved, and what is written into it
/// is of no meaning.
#[inline]
pub fn prepend<const B: usize, const W: usize>(batch: &mut Batch<'_>, headers: &Words<W>) {
    const { assert!(B <= 8 * W && B < BUFFER_BYTES) };
    let count = batch.count();
    for frame in 0..count {
        let room = (batch.start[frame] >= B as u16) & (batch.length[frame] <= (BUFFER_BYTES - B) as u16);
        let sound = batch.fault[frame] == 0;
        let by = if room & sound { B as u16 } else { 0 };
        batch.start[frame] -= by;
        batch.length[frame] += by;
        batch.fault[frame] = if !room & sound { Fault::NoRoom as u8 } else { batch.fault[frame] };
    }
    for (frame, header) in headers.iter().enumerate().take(count) {
        write(batch.bytes_mut::<B>(frame, 0), header);
    }
}

/// `strip(b)`: takes the first `b` bytes off each frame.
///
/// A frame with no more than `b` bytes ahead of its FCS stays as it is and is marked.
#[inline]
pub fn strip(batch: &mut Batch<'_>, b: u16) {
    let count = batch.count();
    for frame in 0..count {
        let enough = batch.length[frame] > b.saturating_add(FCS_BYTES as u16);
        let sound = enough & (batch.fault[frame] == 0);
        let by = if sound { b } else { 0 };
        batch.start[frame] = batch.start[frame].saturating_add(by);
        batch.length[frame] -= by;
        let short = !enough & (batch.fault[frame] == 0);
        batch.fault[frame] = if short { Fault::TooShort as u8 } else { batch.fault[frame] };
    }
}
