//! `io_mem(hdr, data)` and `mem_io(hdr, data)`: frames from the ring of a network card, and back.

use crate::batch::{BATCH_FRAMES, BUFFER_BYTES, Batch, FAULT_KINDS, FCS_BYTES, Fault, with_count};
use crate::operation::prefetch;

/// The descriptor of a frame in the ring of a network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, align(8))]
pub struct Descriptor {
    /// Number of the buffer in its pool.
    pub buffer: u16,
    /// First byte of the frame in its buffer.
    pub start: u16,
    /// Bytes of the frame, FCS included.
    pub length: u16,
    /// Port that it came from or leaves by.
    pub port: u16,
}

impl Descriptor {
    /// The descriptor as an item of a [`Ring`](crate::table::ring).
    #[inline]
    #[must_use]
    pub fn to_word(self) -> u64 {
        u64::from(self.buffer) | u64::from(self.start) << 16 | u64::from(self.length) << 32 | u64::from(self.port) << 48
    }

    /// The descriptor in an item of a ring.
    #[inline]
    #[must_use]
    pub fn from_word(word: u64) -> Self {
        Self { buffer: word as u16, start: (word >> 16) as u16, length: (word >> 32) as u16, port: (word >> 48) as u16 }
    }
}

/// `io_mem(hdr, data)`: takes the frames of some descriptors, and prefetches the lines of their first `HDR` bytes.
///
/// The rest of the frame stays where the network card put it. A frame with fewer than `HDR` bytes ahead of its FCS is
/// too short, one that ends beyond its buffer too long. Source: Baldi & Sapio 2018, sec. 2.1, operation 1.
#[inline]
pub fn io_mem<const HDR: usize>(batch: &mut Batch<'_>, descriptors: &[Descriptor]) {
    let count = batch.count().min(descriptors.len());
    with_count!(count, {
        for (frame, descriptor) in descriptors.iter().enumerate().take(count) {
            let start = usize::from(descriptor.start);
            let length = usize::from(descriptor.length);
            let short = length < HDR + FCS_BYTES;
            let long = start + length > BUFFER_BYTES;
            batch.start[frame] = descriptor.start;
            batch.length[frame] = descriptor.length;
            batch.port[frame] = descriptor.port;
            batch.fault[frame] =
                u8::from(short) * Fault::TooShort as u8 + u8::from(long & !short) * Fault::TooLong as u8;
            for line in 0..HDR.div_ceil(64) {
                prefetch(&batch.buffers[frame].bytes, start + 64 * line);
            }
        }
    });
}

/// `mem_io(hdr, data)`: writes the descriptors of the frames that leave and counts the others by their faults.
///
/// `first` is the number of the batch's first buffer. Returns the frames that leave; their descriptors stand at the
/// front of `out`. Source: Baldi & Sapio 2018, sec. 2.1, operation 1.
#[inline]
pub fn mem_io(
    batch: &Batch<'_>,
    first: u16,
    out: &mut [Descriptor; BATCH_FRAMES],
    drops: &mut [u64; FAULT_KINDS],
) -> usize {
    let count = batch.count();
    let mut sent = 0;
    with_count!(count, {
        for frame in 0..count {
            out[sent % BATCH_FRAMES] = Descriptor {
                buffer: first.wrapping_add(frame as u16),
                start: batch.start[frame],
                length: batch.length[frame],
                port: batch.port[frame],
            };
            sent += usize::from(batch.fault[frame] == 0);
        }
    });
    if sent < count {
        for &fault in batch.fault.iter().take(count).filter(|&&fault| fault != 0) {
            drops[usize::from(fault) % FAULT_KINDS] += 1;
        }
    }
    sent
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::Buffer;

    #[test]
    fn frames_that_are_too_short_or_too_long_are_marked() {
        let mut buffers = [Buffer::default(); 6];
        let mut batch = Batch::new(&mut buffers);
        batch.fault.fill(9);
        let frame = |start, length| Descriptor { buffer: 3, start, length, port: 1 };
        // 34 bytes of headers and 4 of FCS; 2112 bytes of buffer.
        let descriptors =
            [frame(128, 38), frame(128, 37), frame(128, 1984), frame(128, 1985), frame(u16::MAX, u16::MAX)];
        io_mem::<34>(&mut batch, &descriptors);
        let (short, long) = (Fault::TooShort as u8, Fault::TooLong as u8);
        assert_eq!(batch.fault[..6], [0, short, 0, long, long, 9]);
        assert_eq!((batch.start[1], batch.length[1], batch.port[1]), (128, 37, 1));
    }

    proptest! {
        #[test]
        fn every_frame_leaves_or_is_counted(faults in prop::collection::vec(0u8..14, 0..=32), first in any::<u16>()) {
            let mut buffers = vec![Buffer::default(); faults.len()];
            let mut batch = Batch::new(&mut buffers);
            batch.fault[..faults.len()].copy_from_slice(&faults);
            for (frame, length) in batch.length.iter_mut().enumerate() {
                *length = 64 + frame as u16;
            }
            let mut out = [Descriptor::default(); BATCH_FRAMES];
            let mut drops = [0; FAULT_KINDS];
            let sent = mem_io(&batch, first, &mut out, &mut drops);
            prop_assert_eq!(sent as u64 + drops.iter().sum::<u64>(), faults.len() as u64);
            prop_assert_eq!(drops[0], 0);
            let left = faults.iter().enumerate().filter(|(_, fault)| **fault == 0).map(|(frame, _)| frame as u16);
            for (descriptor, frame) in out[..sent].iter().zip(left) {
                prop_assert_eq!(descriptor.buffer, first.wrapping_add(frame));
                prop_assert_eq!(descriptor.length, 64 + frame);
            }
            for (kind, drops) in drops.into_iter().enumerate().skip(1) {
                let expected = faults.iter().filter(|fault| usize::from(**fault) == kind).count();
                prop_assert_eq!(drops, expected as u64);
            }
        }

        #[test]
        fn a_descriptor_goes_through_a_ring_unchanged(fields in any::<[u16; 4]>()) {
            let [buffer, start, length, port] = fields;
            let descriptor = Descriptor { buffer, start, length, port };
            prop_assert_eq!(Descriptor::from_word(descriptor.to_word()), descriptor);
        }
    }
}
