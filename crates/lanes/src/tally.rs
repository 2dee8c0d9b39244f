//! What lanes have counted: sums over a stretch of a trajectory, and frames by their times.

use crate::words::Word;

/// Counts of one stretch of a trajectory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Frames that came, by source.
    pub offered: Vec<u64>,
    /// Their bytes, by source.
    pub offered_bytes: Vec<u64>,
    /// Frames that found no room, by core.
    pub lost: Vec<u64>,
    /// Ticks of work, by core.
    pub busy_ticks: Vec<u64>,
    /// Interrupts, by core.
    pub interrupts: Vec<u64>,
    /// Polls that found frames, by core; counted where there are polls.
    pub polls: Vec<u64>,
    /// Ticks of polling on without a frame, by core.
    pub spun_ticks: Vec<u64>,
    /// Ticks of waking up, by core.
    pub waking_ticks: Vec<u64>,
    /// Ticks asleep, core by core in each state.
    pub asleep_ticks: Vec<u64>,
    /// How often a core woke up, likewise.
    pub wakes: Vec<u64>,
    /// Ticks for which the frames waited that left a core, by core.
    pub waited_at_core_ticks: Vec<u64>,
    /// Frames that found no room, by link.
    pub lost_at_link: Vec<u64>,
    /// 256ths of a tick of transmission, by link.
    pub sent_fine: Vec<u64>,
    /// Ticks for which frames waited, by link.
    pub waited_at_link_ticks: Vec<u64>,
    /// When the first and the last of the frames came that found no room, ticks.
    pub lost_at: Option<(u64, u64)>,
    /// Frames that left a core, and were taken by its link.
    pub forwarded: u64,
    /// Their bytes.
    pub forwarded_bytes: u64,
    /// Sum of their times from the last bit in to the first bit out, ticks.
    pub latency_ticks: u64,
    /// Sum of the parts of these that they waited, ticks.
    pub waited_ticks: u64,
}

impl Tally {
    /// Adds the counts of another stretch.
    pub fn add(&mut self, other: &Self) {
        let add = |sums: &mut Vec<u64>, more: &[u64]| {
            sums.resize(more.len(), 0);
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        };
        add(&mut self.offered, &other.offered);
        add(&mut self.offered_bytes, &other.offered_bytes);
        add(&mut self.lost, &other.lost);
        add(&mut self.busy_ticks, &other.busy_ticks);
        add(&mut self.interrupts, &other.interrupts);
        add(&mut self.polls, &other.polls);
        add(&mut self.spun_ticks, &other.spun_ticks);
        add(&mut self.waking_ticks, &other.waking_ticks);
        add(&mut self.asleep_ticks, &other.asleep_ticks);
        add(&mut self.wakes, &other.wakes);
        add(&mut self.waited_at_core_ticks, &other.waited_at_core_ticks);
        add(&mut self.lost_at_link, &other.lost_at_link);
        add(&mut self.sent_fine, &other.sent_fine);
        add(&mut self.waited_at_link_ticks, &other.waited_at_link_ticks);
        self.lost_at = match (self.lost_at, other.lost_at) {
            (Some((first, last)), Some((earlier, later))) => Some((first.min(earlier), last.max(later))),
            (own, others) => own.or(others),
        };
        self.forwarded += other.forwarded;
        self.forwarded_bytes += other.forwarded_bytes;
        self.latency_ticks += other.latency_ticks;
        self.waited_ticks += other.waited_ticks;
    }
}

/// Frames by their times, [`bin`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histograms {
    /// By latency.
    pub latencies: Vec<u64>,
    /// By waiting time.
    pub waits: Vec<u64>,
}

impl Default for Histograms {
    fn default() -> Self {
        Self { latencies: vec![0; BINS], waits: vec![0; BINS] }
    }
}

impl Histograms {
    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        let add = |sums: &mut [u64], more: &[u64]| sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        add(&mut self.latencies, &other.latencies);
        add(&mut self.waits, &other.waits);
    }

    /// Takes other counts away; false if they are not among them.
    pub(crate) fn remove(&mut self, other: &Self) -> bool {
        let remove = |sums: &mut [u64], less: &[u64]| {
            sums.iter_mut().zip(less).all(|(sum, less)| {
                sum.checked_sub(*less).is_some_and(|rest| {
                    *sum = rest;
                    true
                })
            })
        };
        remove(&mut self.latencies, &other.latencies) && remove(&mut self.waits, &other.waits)
    }
}

const BIN_BITS: u32 = 8;
/// Bins of a time in ticks: 256 for each power of two.
pub const BINS: usize = ((33 - BIN_BITS) as usize) << BIN_BITS;

/// The bin of a time.
#[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
#[inline(always)]
#[must_use]
pub fn bin<W: Word>(ticks: W) -> W {
    let shift = W::all(31 - BIN_BITS).minus(ticks.or(W::all((2 << BIN_BITS) - 1)).leading_zeros());
    shift.left(BIN_BITS).plus(ticks.right_by(shift))
}

/// The least ticks of a bin, and how many it holds.
#[must_use]
pub fn bounds(bin: usize) -> (u64, u64) {
    let places = 1_usize << BIN_BITS;
    if bin < 2 * places {
        return (bin as u64, 1);
    }
    let shift = (bin >> BIN_BITS) - 1;
    (((bin - (shift << BIN_BITS)) as u64) << shift, 1 << shift)
}
