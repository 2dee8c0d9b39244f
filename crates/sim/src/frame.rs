//! A frame on its way through the router.

use crate::source::Arrival;

/// What the simulator carries for each frame: 40 bytes, copied from stage to stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frame {
    /// When it reached the present stage, picoseconds. First, because stages sort by it.
    pub at: u64,
    /// Number in order of arrival at the router; decides ties. A copy has that of its frame and the top bit set.
    pub seq: u64,
    /// Last bit in (S9), picoseconds.
    pub arrival: u64,
    /// Time spent in queues so far, picoseconds.
    pub waited: u64,
    /// Index of its flow.
    pub flow: u32,
    /// Size in bytes, FCS included (S1).
    pub bytes: u32,
}

impl Frame {
    /// A frame that has just come in.
    #[inline]
    #[must_use]
    pub fn new(arrival: Arrival, seq: u64) -> Self {
        Self { at: arrival.at, seq, arrival: arrival.at, waited: 0, flow: arrival.flow, bytes: arrival.bytes }
    }
}

impl Frame {
    /// The frame after a station that served it from `start` to `done`.
    ///
    /// It is built anew, field by field: copying a frame right after a change stalls on store forwarding.
    #[inline]
    #[must_use]
    pub fn passed(&self, start: u64, done: u64) -> Self {
        let Self { at, seq, arrival, waited, flow, bytes } = *self;
        Self { at: done, seq, arrival, waited: waited + (start - at), flow, bytes }
    }
}

/// Marks the number of a copy. No trial has so many frames.
const COPY: u64 = 1 << 63;

impl Frame {
    /// A copy of the frame, which comes after all frames of its instant.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { seq: self.seq | COPY, ..*self }
    }

    /// Whether it is a copy: copies are not frames of the load and are not counted.
    #[inline]
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.seq & COPY != 0
    }
}

/// The fate of a frame; kept only if the run asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fate {
    /// The frame's number.
    pub seq: u64,
    /// Last bit in, picoseconds.
    pub arrival_ps: u64,
    /// Last bit out, or the instant of the drop, picoseconds.
    pub end_ps: u64,
    /// Node that dropped it; none if it was forwarded.
    pub dropped_at: Option<u32>,
}

/// A frame's stay at a node; kept only if the run asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// When its service began, picoseconds.
    pub start_ps: u64,
    /// The frame's number.
    pub seq: u64,
    /// When it came, picoseconds.
    pub at_ps: u64,
    /// The node.
    pub node: u32,
    /// Its flow.
    pub flow: u32,
}

/// The stays that a run keeps: those whose service begins at an instant or later.
#[derive(Debug, Default)]
pub struct Hops {
    from_ps: u64,
    /// The stays, in no order.
    pub kept: Vec<Hop>,
}

impl Hops {
    /// An empty list of stays, from an instant on.
    #[must_use]
    pub fn from(from_ps: u64) -> Self {
        Self { from_ps, kept: Vec::new() }
    }

    /// A frame that came to a node at `at_ps` is served from `start_ps` on. Copies are no frames of the load.
    pub fn note(&mut self, node: u32, frame: &Frame, at_ps: u64, start_ps: u64) {
        if start_ps >= self.from_ps && !frame.is_copy() {
            self.kept.push(Hop { start_ps, seq: frame.seq, at_ps, node, flow: frame.flow });
        }
    }
}
