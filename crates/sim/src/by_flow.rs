//! Counts of frames by flow; kept only if the run asks for them.

use crate::frame::Frame;
use crate::ledger::SEGMENTS;
use crate::source::Arrival;

/// Frames by segment of the trial and flow: the counts of one segment lie together, because they are used together.
#[derive(Debug)]
pub struct ByFlow {
    flows: usize,
    offered: Vec<u64>,
    forwarded: Vec<u64>,
    dropped: Vec<u64>,
    /// Frames that were still inside when the trial ended.
    in_flight: Vec<u64>,
}

/// The frames of one flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Offered.
    pub offered: u64,
    /// Forwarded.
    pub forwarded: u64,
    /// Dropped.
    pub dropped: u64,
}

impl ByFlow {
    /// Counters of so many flows, at 0.
    #[must_use]
    pub fn new(flows: usize) -> Self {
        let none = || vec![0; SEGMENTS * flows];
        Self { flows, offered: none(), forwarded: none(), dropped: none(), in_flight: vec![0; flows] }
    }

    /// Frames that are offered in a segment.
    pub fn offer(&mut self, segment: usize, frames: &[Arrival]) {
        let offered = &mut self.offered[segment * self.flows..][..self.flows];
        for frame in frames {
            offered[frame.flow as usize] += 1;
        }
    }

    /// A frame that leaves in a segment.
    #[inline]
    pub fn forward(&mut self, segment: usize, frame: &Frame) {
        self.forwarded[segment * self.flows + frame.flow as usize] += 1;
    }

    /// A frame that is dropped in a segment.
    #[inline]
    pub fn drop_frame(&mut self, segment: usize, frame: &Frame) {
        self.dropped[segment * self.flows + frame.flow as usize] += 1;
    }

    /// A frame that is inside when the trial ends.
    pub fn keep(&mut self, frame: &Frame) {
        self.in_flight[frame.flow as usize] += 1;
    }

    /// The frames of each flow from a segment on.
    pub fn after(&self, first: usize) -> impl Iterator<Item = Counts> + '_ {
        let sum = move |rows: &[u64], flow: usize| rows[first * self.flows + flow..].iter().step_by(self.flows).sum();
        (0..self.flows).map(move |flow| Counts {
            offered: sum(&self.offered, flow),
            forwarded: sum(&self.forwarded, flow),
            dropped: sum(&self.dropped, flow),
        })
    }

    /// The first flow whose frames are not all accounted for (S12), with its counts and those inside.
    #[must_use]
    pub fn unbalanced(&self) -> Option<(usize, Counts, u64)> {
        let mut counts = self.after(0).zip(&self.in_flight).enumerate();
        counts.find_map(|(flow, (counts, &inside))| {
            (counts.offered != counts.forwarded + counts.dropped + inside).then_some((flow, counts, inside))
        })
    }
}
