//! Memory shared with `bpf/generate.bpf.c`; each structure mirrors the one of its name there.

use crate::frame::{LONGEST_HEAD_BYTES, Template};
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
    pub head: [u8; HEAD_ROOM],
    pub ipv4_sum: u16,
    pub udp_sum: u16,
    pub ipv6: u8,
    pub datagram: u8,
    pub head_bytes: u8,
    pub outer: u8,
    pub outer_ipv4_sum: u16,
    pub outer_ipv6: u8,
    pub outer_udp: u8,
    pub spare: u32,
}

/// Room for the longest head, in whole words of eight octets.
const HEAD_ROOM: usize = LONGEST_HEAD_BYTES.next_multiple_of(8);

impl From<&Template> for Flow {
    fn from(template: &Template) -> Self {
        let mut head = [0; HEAD_ROOM];
        head[..template.head().len()].copy_from_slice(template.head());
        let outer = template.outer_ip();
        // The program adds words as they stand in memory; one's complement sums do not mind (RFC 1071 sec. 2 B).
        Self {
            head,
            ipv4_sum: template.ipv4_sum().to_be(),
            udp_sum: template.udp_sum().to_be(),
            ipv6: u8::from(template.is_ipv6()),
            datagram: template.datagram() as u8,
            head_bytes: template.head().len() as u8,
            outer: outer.map_or(0, |ip| ip.at as u8),
            outer_ipv4_sum: outer.map_or(0, |ip| ip.ipv4_sum.to_be()),
            outer_ipv6: outer.map_or(0, |ip| u8::from(ip.ipv6)),
            outer_udp: outer.map_or(0, |ip| u8::from(ip.udp)),
            spare: 0,
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
    assert!(HEAD_ROOM == 160 && size_of::<Flow>() == 176);
    assert!(size_of::<Slot>() == 16);
    assert!(size_of::<Segment>() == 24);
};
