//! Super-packets: what the offloads of a host (TSO, GSO, GRO, LRO) make of several frames, before a capture sees them.

use std::collections::HashMap;

use super::SMALLEST_FRAME_BYTES;
use super::link::{Found, TCP, UDP};
use super::window::Parsed;

/// Longest frame of a link with an MTU of 1500 B: 1518 B and two tags.
const LONGEST_FRAME_BYTES: u32 = 1526;
/// Longest frame of a link with a jumbo MTU, 9216 B of IP with headers, two tags and FCS.
const LONGEST_JUMBO_BYTES: u32 = 9242;

/// The frames that are longer than those of an MTU of 1500 B, by length.
#[derive(Default)]
pub struct LongFrames {
    frames: HashMap<u32, u64>,
}

impl LongFrames {
    /// Counts a frame if it is long.
    pub fn take(&mut self, frame_bytes: u32) {
        if frame_bytes > LONGEST_FRAME_BYTES {
            *self.frames.entry(frame_bytes).or_default() += 1;
        }
    }

    /// Number and bytes of the frames that no link carries. Where most long frames have one length, no other is longer
    /// by more than two tags and a jumbo MTU allows it, that is the MTU of the link.
    pub fn super_packets(&self) -> (u64, u64) {
        let all: u64 = self.frames.values().sum();
        let longest = self.frames.keys().copied().max().unwrap_or_default();
        let common = self.frames.iter().max_by_key(|&(&bytes, &count)| (count, bytes));
        if let Some((&common, &count)) = common
            && longest <= LONGEST_JUMBO_BYTES
            && longest <= common + 8
            && 2 * count > all
        {
            return (0, 0);
        }
        (all, self.frames.iter().map(|(&bytes, &count)| u64::from(bytes) * count).sum())
    }
}

/// How a super-packet falls into frames.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::struct_field_names, reason = "a physical number ends in its unit")]
pub struct Split {
    heads_bytes: u32,
    data_bytes: u32,
    room_bytes: u32,
}

impl Split {
    /// Nothing where the packet is no longer than the MTU, or has no data of TCP or UDP that could be split.
    pub fn of(headers: &Found, frame_bytes: u32, wire_bytes: u32, mtu_bytes: u32) -> Option<Self> {
        let tuple = headers.flow.ok().filter(|tuple| matches!(tuple.protocol, TCP | UDP))?;
        let (network_at, data_at) = (headers.network_at?, headers.data_at.filter(|_| tuple.ports.is_some())?);
        let data_bytes = wire_bytes.checked_sub(data_at as u32)?;
        if wire_bytes.checked_sub(network_at as u32)? <= mtu_bytes {
            return None;
        }
        let room_bytes = mtu_bytes.checked_sub((data_at - network_at) as u32).filter(|&room| room > 0)?;
        Some(Self { heads_bytes: frame_bytes.checked_sub(data_bytes)?, data_bytes, room_bytes })
    }

    /// Its number of frames.
    pub fn segments(self) -> u32 {
        self.data_bytes.div_ceil(self.room_bytes)
    }

    /// Hands over the bytes of each frame.
    pub fn each(self, mut push: impl FnMut(u32) -> Parsed<()>) -> Parsed<()> {
        let mut left_bytes = self.data_bytes;
        while left_bytes > 0 {
            let bytes = left_bytes.min(self.room_bytes);
            push((self.heads_bytes + bytes).max(SMALLEST_FRAME_BYTES))?;
            left_bytes -= bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn super_packets(lengths: &[(u32, u64)]) -> (u64, u64) {
        let mut long = LongFrames::default();
        for &(bytes, count) in lengths {
            (0..count).for_each(|_| long.take(bytes));
        }
        long.super_packets()
    }

    #[test]
    fn jumbo_frames_of_one_length_are_the_links_and_others_are_super_packets() {
        assert_eq!(super_packets(&[(64, 9), (1526, 9)]), (0, 0));
        assert_eq!(super_packets(&[(9018, 9), (4000, 3), (9022, 1)]), (0, 0));
        assert_eq!(super_packets(&[(9018, 9), (65_230, 1)]), (10, 9 * 9018 + 65_230));
        assert_eq!(super_packets(&[(2966, 2), (4414, 2)]), (4, 2 * (2966 + 4414)));
    }

    #[test]
    fn the_segments_have_the_data_of_the_packet_and_each_its_headers() {
        // 66 B of headers, 4 B of FCS and 3000 B of data in segments of 1448 B.
        let split = Split { heads_bytes: 70, data_bytes: 3000, room_bytes: 1448 };
        let mut frames = Vec::new();
        split
            .each(|bytes| {
                frames.push(bytes);
                Ok(())
            })
            .unwrap();
        assert_eq!(frames, [1518, 1518, 174]);
        assert_eq!(split.segments(), 3);
    }
}
