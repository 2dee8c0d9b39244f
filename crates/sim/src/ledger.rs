//! The ledger of one run: offered, forwarded and dropped frames and their latencies, by segment of the trial.
//!
//! The trial is cut into [`SEGMENTS`] equal segments of [`MINIS`] / [`SEGMENTS`] mini-batches each. Mini-batches carry
//! the series that decides where the transient ends and the batch means of the confidence intervals; segments carry
//! the histograms, so that those of the transient can be left out afterwards without a second run.

use crate::by_flow::ByFlow;
use crate::frame::{Fate, Frame, Hops};
use crate::histogram::{Histogram, Sparse};
use crate::scenario::Scenario;
use crate::source::Arrival;
use crate::station::{Bounds, Done, PollTally, Refused};
use crate::timeline::Timeline;

/// Segments of a trial.
pub const SEGMENTS: usize = 20;
/// Mini-batches of a trial.
pub const MINIS: usize = 1000;
/// One number per segment.
pub type Row = [u64; SEGMENTS];

/// Forwarded frames of one mini-batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mini {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of their latencies, picoseconds.
    pub latency_ps: u64,
    /// Sum of their waiting times, picoseconds.
    pub waited_ps: u64,
}

impl Mini {
    /// Adds another mini-batch's sums.
    #[inline]
    pub fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.latency_ps += other.latency_ps;
        self.waited_ps += other.waited_ps;
    }
}

/// Frames and bytes offered by one source, by segment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offered {
    /// Frames.
    pub frames: Row,
    /// Bytes.
    pub bytes: Row,
}

/// The account of one node (task unit or outgoing port).
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// Picoseconds of work, all units together.
    pub busy_ps: Row,
    /// Picoseconds of waiting, all frames together.
    pub waited_ps: Row,
    /// Frames dropped for want of room, or in an outage.
    pub dropped: Row,
    /// Copies served.
    pub copied: Row,
    /// Copies dropped.
    pub copies_lost: Row,
    /// Picoseconds of holding units without work (a poll that finds nothing), all lanes together; polls and events only.
    pub spinning_ps: Row,
    /// Interrupts taken.
    pub interrupts: Row,
    /// Polls and grants that found frames; polls and events only.
    pub polls: Row,
}

/// Time of the units of one pool outside work; empty where they do not sleep and no frame carries them.
#[derive(Debug, Clone, Default)]
pub struct Rest {
    /// Picoseconds asleep by state, all units together.
    pub asleep_ps: Vec<Row>,
    /// How often a unit woke from each state.
    pub wakes: Vec<Row>,
    /// Picoseconds of waking up, all units together.
    pub waking_ps: Row,
    /// Picoseconds for which frames carried units, all units together.
    pub held_ps: Row,
}

impl Rest {
    /// Counters for units with so many sleep states, at 0.
    #[must_use]
    pub fn new(states: usize) -> Self {
        let zeros = vec![[0; SEGMENTS]; states];
        Self { asleep_ps: zeros.clone(), wakes: zeros, waking_ps: [0; SEGMENTS], held_ps: [0; SEGMENTS] }
    }
}

/// Everything counted during one run.
#[derive(Debug)]
pub struct Ledger {
    end: u64,
    per_segment: f64,
    per_mini: f64,
    segment: usize,
    segment_begin: u64,
    segment_end: u64,
    /// The open mini-batch: departures in `mini_begin .. mini_begin + mini_length` add to `mini`.
    mini: Mini,
    mini_index: usize,
    mini_begin: u64,
    mini_length: u64,
    /// Forwarded frames by mini-batch of their departure.
    pub minis: Vec<Mini>,
    latency: Histogram,
    waiting: Histogram,
    /// Finished latency histograms by segment.
    pub latencies: Vec<Sparse>,
    /// Finished waiting-time histograms by segment.
    pub waitings: Vec<Sparse>,
    /// What each source offered.
    pub offered: Vec<Offered>,
    /// One account per node.
    pub accounts: Vec<Account>,
    /// One for each pool.
    pub rests: Vec<Rest>,
    /// Frames that leave after the end of the trial, as counted at the exits.
    pub late: u64,
    /// When the first and the last of the dropped frames came in, picoseconds.
    pub lost: Option<(u64, u64)>,
    /// Whether any of the following records is kept.
    details: bool,
    /// Fates, where they are kept.
    pub fates: Option<Vec<Fate>>,
    /// Stays at nodes, where they are kept.
    pub hops: Option<Hops>,
    /// Counts by flow, where they are kept.
    pub by_flow: Option<ByFlow>,
    /// Counts by mini-batch, where they are kept.
    pub timeline: Option<Timeline>,
}

impl Ledger {
    /// A blank ledger for a run of a scenario.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let (model, run) = (&scenario.model, &scenario.run);
        let duration_ps = run.duration_ps;
        let over_time = run.over_time || !run.events.is_empty();
        Self {
            end: duration_ps,
            per_segment: SEGMENTS as f64 / duration_ps as f64,
            per_mini: MINIS as f64 / duration_ps as f64,
            segment: 0,
            segment_begin: 0,
            segment_end: boundary(duration_ps, 1),
            mini: Mini::default(),
            mini_index: 0,
            mini_begin: 0,
            mini_length: mini_boundary(duration_ps, 1),
            minis: vec![Mini::default(); MINIS],
            latency: Histogram::default(),
            waiting: Histogram::default(),
            latencies: Vec::with_capacity(SEGMENTS),
            waitings: Vec::with_capacity(SEGMENTS),
            offered: vec![Offered::default(); scenario.load.sources.len()],
            accounts: vec![Account::default(); model.tasks.len() + model.ports.len()],
            rests: model.pools.iter().map(|pool| Rest::new(pool.sleep.len())).collect(),
            late: 0,
            lost: None,
            details: run.record_frames || run.per_flow || over_time,
            fates: run.record_frames.then(Vec::new),
            hops: run.record_from_ps.map(Hops::from),
            timeline: over_time.then(|| Timeline::new(duration_ps)),
            by_flow: run.per_flow.then(|| ByFlow::new(scenario.load.flows.len())),
        }
    }

    /// The bounds of what is computed of the present segment, up to an instant.
    #[must_use]
    pub fn bounds(&self, bound_ps: u64) -> Bounds {
        let Self { segment_begin, segment_end, .. } = *self;
        Bounds { only_bytes: None, segment_begin_ps: segment_begin, segment_end_ps: segment_end, bound_ps }
    }

    /// Books what a task unit that takes frames in polls did in the present segment.
    pub fn book_polls(&mut self, node: usize, tally: &PollTally) {
        let account = &mut self.accounts[node];
        account.busy_ps[self.segment] += tally.busy_ps;
        account.waited_ps[self.segment] += tally.waited_ps;
        account.polls[self.segment] += tally.polls;
        account.interrupts[self.segment] += tally.interrupts;
        tally.held.iter().for_each(|&(from_ps, to_ps)| self.spin(node, from_ps, to_ps));
    }

    /// End of the segment that is being computed.
    #[must_use]
    pub fn segment_end(&self) -> u64 {
        self.segment_end
    }

    /// The segment that is being computed.
    #[inline]
    #[must_use]
    pub fn segment(&self) -> usize {
        self.segment
    }

    /// Whether all segments are closed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.segment == SEGMENTS
    }

    /// Counts frames that a source offers in the present segment.
    pub fn offer(&mut self, source: usize, frames: &[Arrival]) {
        let offered = &mut self.offered[source];
        offered.frames[self.segment] += frames.len() as u64;
        offered.bytes[self.segment] += frames.iter().map(|frame| u64::from(frame.bytes)).sum::<u64>();
        if let Some(by_flow) = &mut self.by_flow {
            by_flow.offer(self.segment, frames);
        }
        if let Some(timeline) = &mut self.timeline {
            for frame in frames {
                timeline.offer(frame.at);
            }
        }
    }

    /// Frames that all sources offered in a segment.
    #[must_use]
    pub fn offered_in(&self, segment: usize) -> u64 {
        self.offered.iter().map(|offered| offered.frames[segment]).sum()
    }

    /// Frames that all sources offered.
    #[must_use]
    pub fn offered_in_all(&self) -> u64 {
        self.offered.iter().flat_map(|offered| offered.frames).sum()
    }

    /// Counts a frame that leaves the router: first bit out at `first_ps`, last bit at `last_ps`, after a last wait of
    /// `wait_ps`, which the frame's own waiting time does not include.
    #[expect(clippy::inline_always, reason = "called once per frame; keeps the sums in registers")]
    #[inline(always)]
    pub fn forward(&mut self, frame: &Frame, wait_ps: u64, first_ps: u64, last_ps: u64) {
        let (latency_ps, waited_ps) = (first_ps - frame.arrival, frame.waited + wait_ps);
        let is_counted = self.count(last_ps, &Mini { frames: 1, bytes: u64::from(frame.bytes), latency_ps, waited_ps });
        if self.details {
            self.forward_in_detail(frame, last_ps, is_counted);
        }
    }

    /// Counts frames that leave the router in order, each at an instant, given their sums. Many at once, because a sum in
    /// memory makes the next frame wait. Their details are not kept; see [`Self::keeps_details`].
    pub fn forward_all(&mut self, sums: &Mini, frames: &Done) {
        let (Some(first), Some(last)) = (frames.ends_ps().first(), frames.ends_ps().last()) else { return };
        let is_open = |end_ps: &u64| end_ps.wrapping_sub(self.mini_begin) < self.mini_length;
        if is_open(first) && is_open(last) {
            self.mini.add(sums);
            self.latency.record_all(frames.latencies_ps());
            self.waiting.record_all(frames.waits_ps());
            return;
        }
        for (end_ps, frame) in frames.each() {
            self.count(end_ps, &frame);
        }
    }

    /// Whether more than sums is kept of a frame that leaves.
    #[must_use]
    pub fn keeps_details(&self) -> bool {
        self.details || self.hops.is_some()
    }

    /// Counts a frame that leaves at an instant; false if the trial is over by then.
    #[inline]
    fn count(&mut self, at_ps: u64, frame: &Mini) -> bool {
        if at_ps.wrapping_sub(self.mini_begin) >= self.mini_length && !self.turn_to(at_ps) {
            return false;
        }
        self.mini.add(frame);
        self.latency.record(frame.latency_ps);
        self.waiting.record(frame.waited_ps);
        true
    }

    /// Keeps the records of a frame that left. A separate function, because the fastest path affords one branch only.
    #[inline(never)]
    fn forward_in_detail(&mut self, frame: &Frame, last_ps: u64, is_counted: bool) {
        if !is_counted {
            self.by_flow.iter_mut().for_each(|by_flow| by_flow.keep(frame));
            return;
        }
        if let Some(by_flow) = &mut self.by_flow {
            by_flow.forward(self.mini_index / (MINIS / SEGMENTS), frame);
        }
        if let Some(fates) = &mut self.fates {
            fates.push(Fate { seq: frame.seq, arrival_ps: frame.arrival, end_ps: last_ps, dropped_at: None });
        }
    }

    /// Opens the mini-batch of the instant at which a frame leaves; false if the trial is over by then.
    #[cold]
    fn turn_to(&mut self, at_ps: u64) -> bool {
        if at_ps >= self.end {
            self.late += 1;
            return false;
        }
        self.minis[self.mini_index].add(&std::mem::take(&mut self.mini));
        self.mini_index = ((at_ps as f64 * self.per_mini) as usize).min(MINIS - 1);
        self.mini_begin = mini_boundary(self.end, self.mini_index);
        self.mini_length = mini_boundary(self.end, self.mini_index + 1) - self.mini_begin;
        // The product may round across a boundary; the boundaries decide.
        if at_ps < self.mini_begin || at_ps - self.mini_begin >= self.mini_length {
            let later = at_ps >= self.mini_begin;
            self.mini_index = if later { self.mini_index + 1 } else { self.mini_index - 1 }.min(MINIS - 1);
            self.mini_begin = mini_boundary(self.end, self.mini_index);
            self.mini_length = mini_boundary(self.end, self.mini_index + 1) - self.mini_begin;
        }
        true
    }

    /// Counts a frame that a node dropped or lost.
    #[inline]
    pub fn drop_frame(&mut self, node: usize, frame: &Frame) {
        let segment = self.segment_of(frame.at);
        self.accounts[node].dropped[segment] += 1;
        let (first, last) = self.lost.unwrap_or((frame.arrival, frame.arrival));
        self.lost = Some((first.min(frame.arrival), last.max(frame.arrival)));
        if self.details {
            self.drop_in_detail(node, frame, segment);
        }
    }

    /// Counts frames that a node dropped as they came in during the present segment.
    pub fn drop_all(&mut self, node: usize, refused: &Refused) {
        if refused.count > 0 {
            self.accounts[node].dropped[self.segment] += refused.count;
            let (first, last) = self.lost.unwrap_or((refused.first_ps, refused.last_ps));
            self.lost = Some((first.min(refused.first_ps), last.max(refused.last_ps)));
        }
    }

    #[inline(never)]
    fn drop_in_detail(&mut self, node: usize, frame: &Frame, segment: usize) {
        if let Some(by_flow) = &mut self.by_flow {
            by_flow.drop_frame(segment, frame);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.drop_frame(frame.at);
        }
        if let Some(fates) = &mut self.fates {
            let dropped_at = Some(node as u32);
            fates.push(Fate { seq: frame.seq, arrival_ps: frame.arrival, end_ps: frame.at, dropped_at });
        }
    }

    /// Books work of a node between two instants.
    #[inline]
    pub fn work(&mut self, node: usize, from_ps: u64, to_ps: u64) {
        if from_ps >= self.segment_begin && to_ps <= self.segment_end {
            self.accounts[node].busy_ps[self.segment] += to_ps - from_ps;
        } else {
            self.spread(from_ps, to_ps).for_each(|(segment, ps)| self.accounts[node].busy_ps[segment] += ps);
        }
    }

    /// Books the wait of a frame at a node between two instants.
    #[inline]
    pub fn wait(&mut self, node: usize, from_ps: u64, to_ps: u64) {
        if from_ps >= self.segment_begin && to_ps <= self.segment_end {
            self.accounts[node].waited_ps[self.segment] += to_ps - from_ps;
        } else {
            self.spread(from_ps, to_ps).for_each(|(segment, ps)| self.accounts[node].waited_ps[segment] += ps);
        }
    }

    /// Keeps the stay of a frame at a node: its arrival and the start of its service.
    #[inline]
    pub fn hop(&mut self, node: u32, frame: &Frame, at_ps: u64, start_ps: u64) {
        if let Some(hops) = &mut self.hops {
            hops.note(node, frame, at_ps, start_ps);
        }
    }

    /// Books the spinning of a node's lane, which holds its units without work, between two instants.
    #[inline]
    pub fn spin(&mut self, node: usize, from_ps: u64, to_ps: u64) {
        if from_ps >= self.segment_begin && to_ps <= self.segment_end {
            self.accounts[node].spinning_ps[self.segment] += to_ps - from_ps;
        } else {
            self.spread(from_ps, to_ps).for_each(|(segment, ps)| self.accounts[node].spinning_ps[segment] += ps);
        }
    }

    /// Counts a frame or a copy that a node dropped or lost.
    #[inline(never)]
    pub fn lose(&mut self, node: usize, frame: &Frame) {
        if frame.is_copy() {
            let segment = self.segment_of(frame.at);
            self.accounts[node].copies_lost[segment] += 1;
        } else {
            self.drop_frame(node, frame);
        }
    }

    /// Counts a copy that a node has served.
    pub fn copied(&mut self, node: usize) {
        self.accounts[node].copied[self.segment] += 1;
    }

    /// Counts an interrupt of a node.
    #[inline]
    pub fn interrupt(&mut self, node: usize) {
        self.accounts[node].interrupts[self.segment] += 1;
    }

    /// Counts a poll or grant of a node that found frames.
    #[inline]
    pub fn poll(&mut self, node: usize) {
        self.accounts[node].polls[self.segment] += 1;
    }

    /// Books the sleep of a unit in a state between two instants.
    pub fn sleep(&mut self, pool: usize, state: usize, from_ps: u64, to_ps: u64) {
        let spans = self.spread(from_ps, to_ps);
        spans.for_each(|(segment, ps)| self.rests[pool].asleep_ps[state][segment] += ps);
    }

    /// Books the time for which a frame carried units of a pool.
    #[inline]
    pub fn hold(&mut self, pool: usize, units: u64, from_ps: u64, to_ps: u64) {
        if from_ps >= self.segment_begin && to_ps <= self.segment_end {
            self.rests[pool].held_ps[self.segment] += units * (to_ps - from_ps);
        } else {
            let spans = self.spread(from_ps, to_ps);
            spans.for_each(|(segment, ps)| self.rests[pool].held_ps[segment] += units * ps);
        }
    }

    /// Books the wake-up of units of a pool between two instants.
    pub fn waking(&mut self, pool: usize, units: u64, from_ps: u64, to_ps: u64) {
        let spans = self.spread(from_ps, to_ps);
        spans.for_each(|(segment, ps)| self.rests[pool].waking_ps[segment] += units * ps);
    }

    /// Counts a unit of a pool that begins to wake from a state.
    pub fn wake(&mut self, pool: usize, state: usize, at_ps: u64) {
        let segment = self.segment_of(at_ps);
        self.rests[pool].wakes[state][segment] += 1;
    }

    /// The parts of a span by segment, as far as it lies within the trial.
    fn spread(&self, from_ps: u64, to_ps: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let (end, to_ps) = (self.end, to_ps.min(self.end));
        let first = ((from_ps as f64 * self.per_segment) as usize).min(SEGMENTS);
        let mut from_ps = from_ps;
        (first..SEGMENTS).map_while(move |segment| {
            let until = boundary(end, segment + 1).min(to_ps);
            let part = (from_ps < to_ps).then(|| (segment, until.saturating_sub(from_ps)));
            from_ps = from_ps.max(until);
            part
        })
    }

    /// Segment of an instant.
    #[inline]
    #[must_use]
    pub fn segment_of(&self, at_ps: u64) -> usize {
        let is_present = at_ps >= self.segment_begin && at_ps < self.segment_end;
        if is_present { self.segment } else { self.other_segment_of(at_ps) }
    }

    #[cold]
    fn other_segment_of(&self, at_ps: u64) -> usize {
        let near = ((at_ps as f64 * self.per_segment) as usize).min(SEGMENTS - 1);
        // The product may round across a boundary; the boundaries decide.
        if at_ps < boundary(self.end, near) {
            near - 1
        } else {
            near + usize::from(near + 1 < SEGMENTS && at_ps >= boundary(self.end, near + 1))
        }
    }

    /// Ends the present segment.
    pub fn close_segment(&mut self) {
        self.minis[self.mini_index].add(&std::mem::take(&mut self.mini));
        self.latencies.push(self.latency.take());
        self.waitings.push(self.waiting.take());
        self.segment += 1;
        self.segment_begin = self.segment_end;
        self.segment_end = boundary(self.end, self.segment + 1);
    }
}

/// Beginning of a mini-batch.
#[must_use]
pub(crate) fn mini_boundary(duration_ps: u64, minis: usize) -> u64 {
    (u128::from(duration_ps) * minis as u128 / MINIS as u128) as u64
}

/// End of the first `segments` segments.
#[must_use]
fn boundary(duration_ps: u64, segments: usize) -> u64 {
    (u128::from(duration_ps) * segments as u128 / SEGMENTS as u128) as u64
}
