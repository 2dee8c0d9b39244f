//! `prepend(b)` and `strip(b)`: headers ahead of a frame.

use crate::batch::{BUFFER_BYTES, Batch, FCS_BYTES, Fault, Words, with_count};
use crate::operation::field::write;

/// `prepend(b)`: writes `B` bytes of each frame's words ahead of the frame.
///
/// A frame without that much room ahead of it is marked; one with a fault is not moved, and what is written into it
/// is of no meaning.
#[inline]
pub fn prepend<const B: usize, const W: usize>(batch: &mut Batch<'_>, headers: &Words<W>) {
    const { assert!(B <= 8 * W && B < BUFFER_BYTES) };
    let count = batch.count();
    with_count!(count, {
        for frame in 0..count {
            let room = (batch.start[frame] >= B as u16) & (batch.length[frame] <= (BUFFER_BYTES - B) as u16);
            let sound = batch.fault[frame] == 0;
            let by = if room & sound { B as u16 } else { 0 };
            batch.start[frame] -= by;
            batch.length[frame] += by;
            batch.fault[frame] = if !room & sound { Fault::NoRoom as u8 } else { batch.fault[frame] };
        }
    });
    with_count!(count, {
        for (frame, header) in headers.iter().enumerate().take(count) {
            write(batch.bytes_mut::<B>(frame, 0), header);
        }
    });
}

/// `strip(b)`: takes the first `b` bytes off each frame.
///
/// A frame with no more than `b` bytes ahead of its FCS stays as it is and is marked.
#[inline]
pub fn strip(batch: &mut Batch<'_>, b: u16) {
    let count = batch.count();
    with_count!(count, {
        for frame in 0..count {
            let enough = batch.length[frame] > b.saturating_add(FCS_BYTES as u16);
            let sound = enough & (batch.fault[frame] == 0);
            let by = if sound { b } else { 0 };
            batch.start[frame] = batch.start[frame].saturating_add(by);
            batch.length[frame] -= by;
            let short = !enough & (batch.fault[frame] == 0);
            batch.fault[frame] = if short { Fault::TooShort as u8 } else { batch.fault[frame] };
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BATCH_FRAMES, Buffer};

    #[test]
    fn what_is_prepended_stands_ahead_of_the_frame_and_can_be_stripped_again() {
        let mut buffers = [Buffer::default(); 4];
        let mut batch = Batch::new(&mut buffers);
        batch.length.fill(64);
        for frame in 0..4 {
            batch.bytes_mut::<1>(frame, 0)[0] = 0xaa;
        }
        let headers: Words<3> = [[0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, 0x1312_1110]; BATCH_FRAMES];
        prepend::<20, 3>(&mut batch, &headers);
        let expected: [u8; 21] = std::array::from_fn(|index| if index < 20 { index as u8 } else { 0xaa });
        for frame in 0..4 {
            assert_eq!(*batch.bytes::<21>(frame, 0), expected);
            assert_eq!((batch.start[frame], batch.length[frame], batch.fault[frame]), (108, 84, 0));
        }
        strip(&mut batch, 20);
        assert_eq!((batch.start[3], batch.length[3], batch.bytes::<1>(3, 0)[0]), (128, 64, 0xaa));
    }

    #[test]
    fn a_frame_without_room_or_with_a_fault_is_not_moved() {
        let mut buffers = [Buffer::default(); 4];
        let mut batch = Batch::new(&mut buffers);
        batch.length.fill(64);
        batch.start[0] = 19;
        batch.length[1] = BUFFER_BYTES as u16;
        batch.mark_fault(2, Fault::Denied);
        prepend::<20, 3>(&mut batch, &[[1; 3]; BATCH_FRAMES]);
        let (room, denied) = (Fault::NoRoom as u8, Fault::Denied as u8);
        assert_eq!(batch.fault[..4], [room, room, denied, 0]);
        assert_eq!(batch.start[..4], [19, 128, 128, 108]);
        assert_eq!(batch.length[..4], [64, BUFFER_BYTES as u16, 64, 84]);
    }

    #[test]
    fn no_more_is_stripped_than_a_frame_has_ahead_of_its_fcs() {
        let mut buffers = [Buffer::default(); 4];
        let mut batch = Batch::new(&mut buffers);
        batch.length[..4].copy_from_slice(&[18, 19, 0, 64]);
        batch.mark_fault(3, Fault::NoEntry);
        strip(&mut batch, 14);
        let short = Fault::TooShort as u8;
        assert_eq!(batch.fault[..4], [short, 0, short, Fault::NoEntry as u8]);
        assert_eq!(batch.start[..4], [128, 142, 128, 128]);
        strip(&mut batch, u16::MAX);
        assert_eq!(batch.length[..4], [18, 5, 0, 64]);
    }
}
