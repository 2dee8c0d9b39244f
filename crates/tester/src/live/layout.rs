//! Memory shared with `bpf/generate.bpf.c`; each structure mirrors the one of its name there.

use crate::frame::Template;
use crate::plan::{Segment, Slot};
use crate::request::MOST_STREAMS;
use crate::sys::mapping::Plain;

/// A stream that is sent.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Stream {
    pub frames: u64,
    pub warmup: u64,
    pub late_after: u64,
    pub hardly_late: u64,
    pub port: u32,
    pub number: u32,
    pub first_segment: u32,
    pub segments: u32,
    pub first_slot: u32,
    pub cycle: u32,
    pub first_flow: u32,
    pub segment: u32,
    pub due: u64,
    pub index: u64,
    pub next_segment: u64,
    pub table: u32,
    pub position: u32,
    pub earliest: u64,
    pub sent: u64,
    pub first: u64,
    pub last: u64,
    pub late: u64,
    pub latest: u64,
}

/// The generator's work, state and results.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Generator {
    pub start: u64,
    pub end: u64,
    pub wire: u64,
    pub streams: u32,
    pub batch: u32,
    pub trial: u32,
    pub longest: u32,
    pub stop: u32,
    pub unfinished: u32,
    pub calls: u64,
    pub sent: u64,
    pub ended: u64,
    pub gone: u64,
    pub free: [u64; MOST_STREAMS],
    pub stream: [Stream; MOST_STREAMS],
}

/// Head of the frames of a flow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Flow {
    pub head: [u8; 80],
    pub ipv4_sum: u16,
    pub udp_sum: u16,
    pub ipv6: u32,
}

impl From<&Template> for Flow {
    fn from(template: &Template) -> Self {
        let mut head = [0; 80];
        head[..template.head().len()].copy_from_slice(template.head());
        // The program adds words as they stand in memory; one's complement sums do not mind (RFC 1071 sec. 2 B).
        Self {
            head,
            ipv4_sum: template.ipv4_sum().to_be(),
            udp_sum: template.udp_sum().to_be(),
            ipv6: u32::from(template.is_ipv6()),
        }
    }
}

/// A slot as the program reads it: sums as they stand in memory.
#[must_use]
pub fn slot(slot: Slot) -> Slot {
    Slot { pattern_sum: slot.pattern_sum.to_be(), ..slot }
}

#[allow(unsafe_code, reason = "a promise on the layout of these structures, which only this file can check")]
mod plain {
    use super::{Flow, Generator, Plain, Segment, Slot};

    // SAFETY: `repr(C)` of integers without padding; the sizes are asserted below.
    unsafe impl Plain for Generator {}
    // SAFETY: as above.
    unsafe impl Plain for Flow {}
    // SAFETY: as above.
    unsafe impl Plain for Slot {}
    // SAFETY: as above.
    unsafe impl Plain for Segment {}
}

const _: () = {
    assert!(size_of::<Stream>() == 144);
    assert!(size_of::<Generator>() == 80 + 8 * MOST_STREAMS + 144 * MOST_STREAMS);
    assert!(size_of::<Flow>() == 88);
    assert!(size_of::<Slot>() == 16);
    assert!(size_of::<Segment>() == 24);
};
