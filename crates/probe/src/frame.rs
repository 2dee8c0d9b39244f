//! Frames in memory: a ring like that of a network card, and bounded writers of headers.
//!
//! ```text
//!   descriptors   | 0 | 1 | 2 | … | 4095 |       start, length, port of each frame
//!                   │   │   │
//!   buffers       | 0 | 1 | 2 | … | 4095 |       33 lines each: headroom, frame, free
//! ```
//!
//! A function moves starts and rewrites headers; a refill moves every frame back to its first start and writes the
//! headers of a new flow. It touches only the lines that hold headers, in the order of the ring, as a pass does.
//! Payloads are zeros.

mod header;

pub use header::{
    ETHERTYPE_IPV4, ETHERTYPE_MPLS, ETHERTYPE_QINQ, ETHERTYPE_VLAN, HeaderWriter, Ipv4, PROTOCOL_GRE, PROTOCOL_TCP,
    PROTOCOL_UDP,
};

use crate::batch::{BATCH_FRAMES, BUFFER_BYTES, Buffer, FCS_BYTES, HEADROOM_BYTES};
use crate::error::{ProbeError, Result};
use crate::memory::{HugeMemory, Pages};
use crate::operation::Descriptor;
use crate::traffic::Scramble;

/// Bytes of the smallest frame of an Ethernet, FCS included (IEEE 802.3, sec. 3.2.7).
pub const SMALLEST_FRAME_BYTES: u16 = 64;
/// Bytes of the largest received frame.
pub const LARGEST_FRAME_BYTES: u16 = 1522;
/// Most frames of a ring: numbers of buffers have 16 bits.
pub const MOST_FRAMES: usize = 1 << 16;

/// Frames of a ring with their buffers.
#[derive(Debug)]
pub struct FrameRing {
    memory: HugeMemory,
    descriptors: Vec<Descriptor>,
}

impl FrameRing {
    /// A ring of `frames` buffers whose frames have the sizes given with their weights, as exactly as whole frames
    /// allow, in an order that the seed shuffles.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Request`] for no frames or too many, for sizes out of range or invalid weights;
    /// [`ProbeError::Memory`] if memory is short.
    pub fn new(frames: usize, mix: &[(u16, f64)], seed: u64, pages: Pages) -> Result<Self> {
        if !(1..=MOST_FRAMES).contains(&frames) {
            let got = format!("got {frames}; a ring has 1 to {MOST_FRAMES} frames");
            return Err(ProbeError::request("frames_in_flight", got));
        }
        check_mix(mix)?;
        let memory = HugeMemory::new("frames", frames * BUFFER_BYTES, pages)?;
        let order = Scramble::new(frames as u64, seed);
        let total: f64 = mix.iter().map(|&(_, weight)| weight).sum();
        let descriptors = (0..frames)
            .map(|frame| {
                let mut share = (order.of(frame as u64) as f64 + 0.5) / frames as f64 * total;
                let size = mix.iter().find(|&&(_, weight)| {
                    share -= weight;
                    share < 0.0
                });
                let length = size.or(mix.last()).map_or(SMALLEST_FRAME_BYTES, |&(bytes, _)| bytes);
                Descriptor { buffer: frame as u16, start: HEADROOM_BYTES as u16, length, port: 0 }
            })
            .collect();
        Ok(Self { memory, descriptors })
    }

    /// Frames of the ring.
    #[must_use]
    pub fn len(&self) -> usize {
        self.descriptors.len()
    }

    /// Whether it is empty: never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// Moves every frame back and lets a callback write its headers: `headers(frame, port)` gets the frame without its
    /// FCS.
    pub fn refill(&mut self, headers: impl FnMut(&mut [u8]) -> u16) {
        self.refill_part(0, self.len(), headers);
    }

    /// [`Self::refill`] of some frames only.
    pub fn refill_part(&mut self, from: usize, to: usize, mut headers: impl FnMut(&mut [u8]) -> u16) {
        let buffers = self.memory.as_mut_slice::<Buffer>();
        for (buffer, descriptor) in buffers[from..to].iter_mut().zip(&mut self.descriptors[from..to]) {
            let end = HEADROOM_BYTES + usize::from(descriptor.length) - FCS_BYTES;
            descriptor.port = headers(&mut buffer.bytes[HEADROOM_BYTES..end]);
        }
    }

    /// Buffers and descriptors.
    #[must_use]
    pub fn parts(&mut self) -> (&mut [Buffer], &[Descriptor]) {
        (self.memory.as_mut_slice(), &self.descriptors)
    }

    /// The memory of the buffers.
    #[must_use]
    pub fn memory(&self) -> &HugeMemory {
        &self.memory
    }

    /// Batches of one pass.
    #[must_use]
    pub fn batches(&self) -> usize {
        self.len().div_ceil(BATCH_FRAMES)
    }
}

/// Refuses sizes out of range and invalid weights.
fn check_mix(mix: &[(u16, f64)]) -> Result<()> {
    if mix.is_empty() {
        return Err(ProbeError::request("mix", "got no sizes; name at least one with its weight: [[64, 1]]"));
    }
    for &(bytes, weight) in mix {
        if !(SMALLEST_FRAME_BYTES..=LARGEST_FRAME_BYTES).contains(&bytes) {
            let got = format!("got {bytes} bytes; {SMALLEST_FRAME_BYTES} to {LARGEST_FRAME_BYTES} are allowed");
            return Err(ProbeError::request("frame_bytes", got));
        }
        if !(weight.is_finite() && weight > 0.0) {
            return Err(ProbeError::request(
                "mix",
                format!("got the weight {weight} of {bytes} bytes; name one above 0"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_has_its_shares_to_the_frame() {
        let mut ring = FrameRing::new(1200, &[(64, 7.0), (570, 4.0), (1518, 1.0)], 3, Pages::Normal).unwrap();
        let count = |bytes| ring.descriptors.iter().filter(|descriptor| descriptor.length == bytes).count();
        assert_eq!((count(64), count(570), count(1518)), (700, 400, 100));
        let mut sizes = Vec::new();
        ring.refill(|frame| {
            sizes.push(frame.len());
            0
        });
        assert!(!sizes.is_sorted() && sizes.contains(&1514));
    }

    #[test]
    fn rings_that_cannot_be_are_refused() {
        let refused = |frames, mix: &[(u16, f64)]| FrameRing::new(frames, mix, 1, Pages::Normal).unwrap_err().kind();
        assert_eq!(refused(0, &[(64, 1.0)]), "request");
        assert_eq!(refused(MOST_FRAMES + 1, &[(64, 1.0)]), "request");
        assert_eq!(refused(32, &[]), "request");
        for bad in [(63, 1.0), (1523, 1.0), (64, 0.0), (64, -1.0), (64, f64::NAN), (64, f64::INFINITY)] {
            assert_eq!(refused(32, &[bad]), "request");
        }
    }
}
