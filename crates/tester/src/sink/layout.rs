//! Memory shared with `bpf/receive.bpf.c`; each structure mirrors the one of its name there.

use crate::histogram::{self, SLOTS};
use crate::port;
use crate::request::MOST_STREAMS;
use crate::sys::mapping::Plain;

/// The frames and flows that a stream may send here.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected {
    pub frames: u32,
    pub first_word: u32,
    pub first_flow: u32,
    pub flows: u32,
}

/// The streams that a trial may send here.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Expectation {
    pub trial: u32,
    pub check_below: u32,
    pub begin: u64,
    pub part_ticks: u64,
    pub streams: [Expected; MOST_STREAMS],
}

/// Moments and buckets of a span.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Spans {
    pub count: u64,
    pub sum: u64,
    pub min: u64,
    pub max: u64,
    pub slots: [u32; SLOTS],
}

/// Counts of one core for one stream.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Tally {
    pub frames: u64,
    pub bytes: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    pub first: u64,
    pub last: u64,
    pub longest_gap: u64,
    pub longest_gap_at: u64,
    pub previous_latency: u64,
    pub previous_sequence: u64,
    pub part_end: u64,
    pub parted: u64,
    pub part: u64,
    pub latency: Spans,
    pub ipdv: Spans,
}

/// Counts of one core for all other frames.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Others {
    pub foreign: u64,
    pub stale: u64,
    pub misrouted: u64,
}

/// A flow.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Flow {
    pub next: u32,
    pub received: u32,
}

impl Spans {
    const ZERO: Self = Self { count: 0, sum: 0, min: 0, max: 0, slots: [0; SLOTS] };
}

impl Tally {
    /// Counters at 0.
    pub const ZERO: Self = Self {
        frames: 0,
        bytes: 0,
        duplicated: 0,
        reordered: 0,
        corrupted: 0,
        first: 0,
        last: 0,
        longest_gap: 0,
        longest_gap_at: 0,
        previous_latency: 0,
        previous_sequence: 0,
        part_end: 0,
        parted: 0,
        part: 0,
        latency: Spans::ZERO,
        ipdv: Spans::ZERO,
    };

    /// Frames of any kind.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.frames + self.duplicated + self.corrupted
    }
}

/// The sum of the counts of several cores.
#[must_use]
pub fn merge(cores: &[Tally], of: fn(&Tally) -> &Spans) -> port::Tally {
    let counted = || cores.iter().map(of).filter(|spans| spans.count > 0);
    let mut slots = vec![0_u64; SLOTS];
    for spans in counted() {
        for (sum, &count) in slots.iter_mut().zip(&spans.slots) {
            *sum += u64::from(count);
        }
    }
    port::Tally {
        count: counted().map(|spans| spans.count).sum(),
        sum_ns: counted().map(|spans| spans.sum).sum(),
        min_ns: counted().map(|spans| spans.min).min().unwrap_or(0),
        max_ns: counted().map(|spans| spans.max).max().unwrap_or(0),
        histogram: histogram::sparse(slots),
    }
}

#[allow(unsafe_code, reason = "a promise on the layout of these structures, which only this file can check")]
mod plain {
    use super::{Expectation, Flow, Others, Plain, Tally};

    // SAFETY: `repr(C)` of integers without padding; the sizes are asserted below.
    unsafe impl aya::Pod for Expectation {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Tally {}
    // SAFETY: as above.
    unsafe impl aya::Pod for Others {}
    // SAFETY: as above.
    unsafe impl Plain for Flow {}
}

const _: () = {
    assert!(size_of::<Expectation>() == 24 + 16 * MOST_STREAMS);
    assert!(size_of::<Spans>() == 32 + 4 * SLOTS);
    assert!(size_of::<Tally>() == 112 + 2 * size_of::<Spans>());
    assert!(size_of::<Flow>() == 8);
};
