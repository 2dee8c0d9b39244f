//! One trajectory cut into segments, a lane each, whose seams are proved.
//!
//! ```text
//!   lane 1   ├──────── segment 1 ────────┤
//!   lane 2            ╌╌ warm-up ╌╌├──────── segment 2 ────────┤
//!                                  ▲ equal states: from here on both are the same trajectory
//! ```
//!
//! A lane begins a warm-up before its segment, empty. If its state at the border equals the state with which the segment
//! before ended, the cut changes nothing. A seam that stays open is repaired: its segment runs again, from the known
//! state, which proves the seam and opens the next one if its own end has changed.

use std::ops::ControlFlow;

#[cfg(feature = "parallel")]
use rayon::prelude::*;

use crate::device::{Device, DeviceLanes, Job, Kernel, Stop};
use crate::kept::State;
use crate::program::{Program, STRETCH_BITS, TICK_BITS};
use crate::router::Refusal;
use crate::state::Lanes;
use crate::tally::{Histograms, Tally};
use crate::vectors::{Run, Vectors};

/// How a trajectory is cut.
#[derive(Debug, Clone)]
pub struct Cut {
    /// The state that the trajectory goes on from; none: it begins empty at tick 0.
    pub begin: Option<State>,
    /// Borders of the windows that are counted apart, ticks, from the beginning on.
    pub windows: Vec<u64>,
    /// For each window, the part of the trajectory whose histograms it belongs to, in order.
    pub part_of: Vec<usize>,
    /// Segments, at most one for each window.
    pub segments: usize,
    /// Ticks of a warm-up.
    pub warm_up: u64,
    /// Instructions to use.
    pub vectors: Vectors,
    /// How full cores go on whose services have one length; none: every lane begins empty.
    pub turns: Option<Turns>,
}

/// Cores that were busy at a known instant, and that come to the same point of their work again and again as long as they
/// stay so: a lane begins with them where they would be by then. That is a guess, which a seam proves like any other.
#[derive(Debug, Clone)]
pub struct Turns {
    /// The state at the known instant.
    pub known: State,
    /// By core, ticks of a turn; none where they are not known.
    pub ticks: Vec<Option<u64>>,
}

/// What a trajectory keeps of how it began.
#[derive(Debug, Clone)]
pub enum Memory {
    /// Nothing, after a warm-up.
    Forgets,
    /// At what point of their work its cores are.
    Turns(Turns),
    /// More than that: such a trial is as well run in one stretch.
    Keeps,
}

impl Turns {
    fn new(program: &Program, known: State) -> Option<Self> {
        let turn = |core: usize| program.turn_ticks(core).filter(|_| known.cores[core].began.is_some());
        let ticks: Vec<Option<u64>> = (0..known.cores.len()).map(turn).collect();
        ticks.iter().any(Option::is_some).then_some(Self { known, ticks })
    }

    /// Puts the cores of a lane that begins at an instant to where they would be.
    fn guess<W: Run>(&self, program: &Program, lanes: &mut Lanes<W>, lane: usize, start: u64) {
        let Some(since) = start.checked_sub(self.known.at) else { return };
        let mut state = lanes.state(program, lane);
        for (core, ticks) in self.ticks.iter().enumerate() {
            let Some(ticks) = ticks else { continue };
            let mut after = self.after(program, since % ticks);
            state.cores[core] = after.cores.swap_remove(core);
            if let Some(dealer) = program.dealer_behind(core) {
                let frames = since / ticks * program.turn_frames(core);
                let dealt = u64::from(after.dealt[dealer]) + frames;
                state.dealt[dealer] = (dealt % u64::from(program.dealers[dealer])) as u32;
            }
        }
        lanes.restore(program, lane, &state);
    }

    /// The state some ticks after the known one.
    fn after(&self, program: &Program, ticks: u64) -> State {
        let mut lane = Lanes::<u32>::empty(program, &[0]);
        lane.restore(program, 0, &self.known);
        advance(&mut lane, program, vec![self.known.at], &[self.known.at + ticks]);
        lane.state(program, 0)
    }
}

/// What was counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// By window.
    pub windows: Vec<Tally>,
    /// By part.
    pub parts: Vec<Histograms>,
    /// The state at the end.
    pub end: State,
    /// How the cut went.
    pub seams: Seams,
}

/// Seams between segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seams {
    /// All.
    pub all: usize,
    /// Proved by the warm-up alone.
    pub at_once: usize,
    /// Proved by running a segment again.
    pub repaired: usize,
}

/// A segment that was run.
pub(crate) struct Segment {
    pub begin: State,
    pub end: State,
    pub windows: Vec<Tally>,
    /// By part; none where a device counts those of all its segments together.
    pub histograms: Vec<(usize, Histograms)>,
}

/// Runs a trajectory. `report` receives the finished share, 0..1, and may stop it; then the result is none.
///
/// # Errors
///
/// [`Refusal`]: the windows are not in order, or too long for a clock.
///
/// # Panics
///
/// Never: every segment leaves a state.
pub fn run(
    program: &Program,
    cut: &Cut,
    report: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
) -> Result<Option<Outcome>, Refusal> {
    cut.check(program)?;
    let done = run_spans(program, cut, &cut.spans(), report);
    Ok(done.and_then(|done| join(program, cut, done, vec![Histograms::default(); cut.parts()], report).done()))
}

/// Runs segments, given by their windows, on all processors; none where `report` stops them.
fn run_spans(
    program: &Program,
    cut: &Cut,
    spans: &[(usize, usize)],
    report: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
) -> Option<Vec<Segment>> {
    let groups: Vec<&[(usize, usize)]> = spans.chunks(cut.vectors.lanes()).collect();
    let finished = std::sync::atomic::AtomicUsize::new(0);
    let run_group = |group: &&[(usize, usize)]| {
        if report(finished.load(std::sync::atomic::Ordering::Relaxed) as f64 / groups.len() as f64).is_break() {
            return None;
        }
        let result = run_group_of(program, cut, group);
        finished.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Some(result)
    };
    #[cfg(feature = "parallel")]
    let run_groups: Option<Vec<Vec<Segment>>> = groups.par_iter().map(run_group).collect();
    #[cfg(not(feature = "parallel"))]
    let run_groups: Option<Vec<Vec<Segment>>> = groups.iter().map(run_group).collect();
    run_groups.map(|groups| groups.into_iter().flatten().collect())
}

/// Runs a trajectory on a device; what a device gives up is run by the processor, and why is said beside the outcome.
///
/// # Errors
///
/// [`Refusal`]: as [`run`], or the device has no place for a part of the router.
pub fn run_on(
    device: &dyn Device,
    program: &Program,
    cut: &Cut,
    report: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
) -> Result<(Option<Outcome>, Vec<String>), Refusal> {
    cut.check(program)?;
    let kernel = Kernel::new(program, device.has_u64())?;
    let (mut done, mut parts, mut said) = (Vec::new(), vec![Histograms::default(); cut.parts()], Vec::new());
    let spans = cut.spans();
    let most = device.most_lanes(kernel.words, kernel.memory).unwrap_or_else(|why| {
        said.push(why);
        1
    });
    for group in spans.chunks(most.max(1)) {
        // A device that was given up is not asked again.
        let here: &[_] = if said.is_empty() { group } else { &spans[done.len()..] };
        if !said.is_empty() {
            let before = done.len() as f64 / spans.len() as f64;
            let Some(rest) = run_spans(program, cut, here, &|share| report(before + (1.0 - before) * share)) else {
                return Ok((None, said));
            };
            done.extend(rest);
            break;
        }
        let before = done.len() as f64;
        let report = |share: f64| report((before + share * group.len() as f64) / spans.len() as f64);
        match DeviceLanes::run(Job { device, kernel: &kernel, report: &report }, program, cut, group) {
            Ok((segments, counted)) => {
                parts.iter_mut().zip(&counted).for_each(|(part, counted)| part.add(counted));
                done.extend(segments);
            }
            Err(Stop::Interrupted) => return Ok((None, said)),
            Err(Stop::GivenUp(why)) => {
                said.push(why);
                let Some(segments) = run_spans(program, cut, group, &report) else { return Ok((None, said)) };
                done.extend(segments);
            }
        }
    }
    match join(program, cut, done, parts, report) {
        Joined::Wrong => {
            said.push("it counted what a processor does not".into());
            Ok((run(program, cut, report)?, said))
        }
        joined => Ok((joined.done(), said)),
    }
}

/// What became of segments.
enum Joined {
    Done(Outcome),
    Stopped,
    /// What a device has counted in histograms is less than a segment of it counts.
    Wrong,
}

impl Joined {
    fn done(self) -> Option<Outcome> {
        if let Self::Done(outcome) = self { Some(outcome) } else { None }
    }
}

/// Proves the seams of segments, repairs those that stay open, and adds what was counted to the histograms of the parts.
fn join(
    program: &Program,
    cut: &Cut,
    mut done: Vec<Segment>,
    mut parts: Vec<Histograms>,
    report: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
) -> Joined {
    let spans = cut.spans();
    let mut seams = Seams { all: done.len() - 1, ..Seams::default() };
    for number in 1..done.len() {
        if done[number].begin == done[number - 1].end {
            seams.at_once += 1;
            continue;
        }
        if report(number as f64 / done.len() as f64).is_break() {
            return Joined::Stopped;
        }
        if done[number].histograms.is_empty() {
            // A device has counted its frames together with those of others: what it counted wrongly is found once more.
            let wrong = run_from(program, cut, done[number].begin.clone(), spans[number]);
            if !wrong.histograms.iter().all(|(part, histograms)| parts[*part].remove(histograms)) {
                return Joined::Wrong;
            }
        }
        let known = done[number - 1].end.clone();
        done[number] = run_from(program, cut, known, spans[number]);
        seams.repaired += 1;
    }
    let mut windows = Vec::with_capacity(cut.part_of.len());
    let mut end = None;
    for segment in done {
        segment.histograms.iter().for_each(|(part, histograms)| parts[*part].add(histograms));
        windows.extend(segment.windows);
        end = Some(segment.end);
    }
    end.map_or(Joined::Stopped, |end| Joined::Done(Outcome { windows, parts, end, seams }))
}

impl Cut {
    /// The windows of each segment: its first, and the first behind it.
    fn spans(&self) -> Vec<(usize, usize)> {
        let count = self.part_of.len();
        let segments = self.segments.clamp(1, count);
        let border = |segment: usize| segment * count / segments;
        (0..segments).map(|segment| (border(segment), border(segment + 1))).collect()
    }

    /// Parts with histograms of their own.
    fn parts(&self) -> usize {
        self.part_of.last().map_or(0, |last| last + 1)
    }

    /// When the warm-ups of segments begin, ticks.
    pub(crate) fn starts(&self, program: &Program, spans: &[(usize, usize)]) -> Vec<u64> {
        let cell = program.cell_ticks();
        let start = |&(first, _): &(usize, usize)| match &self.begin {
            Some(begin) if first == 0 => begin.at,
            _ => self.windows[first].saturating_sub(self.warm_up) / cell * cell,
        };
        spans.iter().map(start).collect()
    }

    /// A lane at the beginning of the warm-up of a segment.
    pub(crate) fn lane(&self, program: &Program, start: u64, span: (usize, usize)) -> Lanes<u32> {
        let mut lane = Lanes::empty(program, &[start]);
        if let Some(turns) = &self.turns {
            turns.guess(program, &mut lane, 0, start);
        }
        if let Some(begin) = self.begin.as_ref().filter(|_| span.0 == 0) {
            lane.restore(program, 0, begin);
        }
        lane
    }

    fn check(&self, program: &Program) -> Result<(), Refusal> {
        if self.begin.as_ref().is_some_and(|begin| !begin.is_of(program)) {
            return Err(Refusal("the state to go on from is of another router".into()));
        }
        let first = self.begin.as_ref().map_or(0, |begin| begin.at);
        let in_order = self.windows.len() == self.part_of.len() + 1
            && self.windows.first() == Some(&first)
            && self.windows.is_sorted()
            && self.part_of.is_sorted()
            && !self.part_of.is_empty();
        if !in_order {
            return Err(Refusal("windows are not in order".into()));
        }
        if self.windows.last().is_some_and(|&last| last >> TICK_BITS > 0) {
            return Err(Refusal("the trial is longer than 2^52 ticks".into()));
        }
        if self.windows.last().is_some_and(|&last| !program.counts_cells(last)) {
            return Err(Refusal("the trial is too long beside the gaps between its frames".into()));
        }
        Ok(())
    }

    /// The part whose histograms end with a window; none if they go on.
    fn part_ends(&self, window: usize, last: usize) -> Option<usize> {
        let part = self.part_of[window];
        (window + 1 == last || self.part_of[window + 1] != part).then_some(part)
    }
}

/// Whether a warm-up makes two trajectories one, tried at two places, and from what beginning.
#[must_use]
pub fn memory(program: &Program, warm_up: u64) -> Memory {
    let cell = program.cell_ticks();
    let warm_up = warm_up.div_ceil(cell) * cell;
    let mut known = Lanes::<u32>::empty(program, &[0]);
    advance(&mut known, program, vec![0], &[warm_up]);
    let turns = Turns::new(program, known.state(program, 0));
    let (mut forgets, mut goes_round) = (true, turns.is_some());
    for place in 1..=2 {
        let (from, to) = (place * warm_up, (place + 1) * warm_up);
        advance(&mut known, program, vec![from], &[to]);
        let goal = known.state(program, 0);
        let meets = |turns: Option<&Turns>| {
            let mut other = Lanes::<u32>::empty(program, &[from]);
            if let Some(turns) = turns {
                turns.guess(program, &mut other, 0, from);
            }
            advance(&mut other, program, vec![from], &[to]);
            other.state(program, 0) == goal
        };
        forgets = forgets && meets(None);
        goes_round = goes_round && (forgets || meets(turns.as_ref()));
    }
    match turns {
        _ if forgets => Memory::Forgets,
        Some(turns) if goes_round => Memory::Turns(turns),
        _ => Memory::Keeps,
    }
}

/// Runs segments, given by their windows, side by side.
fn run_group_of(program: &Program, cut: &Cut, spans: &[(usize, usize)]) -> Vec<Segment> {
    match cut.vectors {
        Vectors::Plain => run_lanes::<u32>(program, cut, spans),
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx2 => run_lanes::<crate::vectors::Avx2>(program, cut, spans),
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx512 => run_lanes::<crate::words::Pair<crate::vectors::Avx512>>(program, cut, spans),
        #[cfg(not(target_arch = "x86_64"))]
        Vectors::Avx2 | Vectors::Avx512 => run_lanes::<u32>(program, cut, spans),
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Vectors::Simd128 => run_lanes::<crate::vectors::Simd128>(program, cut, spans),
        #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
        Vectors::Simd128 => run_lanes::<u32>(program, cut, spans),
    }
}

fn run_lanes<W: Run>(program: &Program, cut: &Cut, spans: &[(usize, usize)]) -> Vec<Segment> {
    // Lanes without a segment stand still.
    let borders: Vec<u64> = (0..W::LANES).map(|lane| spans.get(lane).map_or(0, |span| cut.windows[span.0])).collect();
    let goes_on = cut.begin.as_ref().filter(|_| spans[0].0 == 0);
    let mut starts = cut.starts(program, spans);
    starts.resize(W::LANES, 0);
    let mut lanes = Lanes::<W>::empty(program, &starts);
    for (lane, &start) in starts.iter().enumerate().take(spans.len()) {
        if let Some(turns) = &cut.turns {
            turns.guess(program, &mut lanes, lane, start);
        }
    }
    if let Some(begin) = goes_on {
        lanes.restore(program, 0, begin);
    }
    advance(&mut lanes, program, starts, &borders);
    let mut segments: Vec<Segment> = (0..spans.len())
        .map(|lane| {
            lanes.counts.take(lane);
            lanes.counts.take_histograms(lane);
            Segment::from(lanes.state(program, lane))
        })
        .collect();
    let longest = spans.iter().map(|span| span.1 - span.0).max().unwrap_or(0);
    let mut at = borders;
    for offset in 0..longest {
        let ends = |lane: usize| match spans.get(lane) {
            Some(span) if span.0 + offset < span.1 => cut.windows[span.0 + offset + 1],
            _ => at[lane],
        };
        let until: Vec<u64> = (0..W::LANES).map(ends).collect();
        advance(&mut lanes, program, at, &until);
        at = until;
        for (lane, (span, segment)) in spans.iter().zip(&mut segments).enumerate() {
            if span.0 + offset < span.1 {
                segment.close(&mut lanes, program, cut, lane, (span.0 + offset, span.1));
            }
        }
    }
    segments
}

/// Takes lanes from instants to others, in stretches that their clocks can hold.
fn advance<W: Run>(lanes: &mut Lanes<W>, program: &Program, mut at: Vec<u64>, until: &[u64]) {
    while at != until {
        for (lane, (at, &until)) in at.iter_mut().zip(until).enumerate() {
            *at = until.min(*at + (1 << STRETCH_BITS));
            lanes.end.set(lane, *at as u32);
        }
        W::run(lanes, program);
        lanes.settle(program);
    }
}

/// Runs one segment from a known state.
fn run_from(program: &Program, cut: &Cut, begin: State, span: (usize, usize)) -> Segment {
    let mut lanes = Lanes::<u32>::empty(program, &[0]);
    lanes.restore(program, 0, &begin);
    let mut segment = Segment::from(begin);
    for window in span.0..span.1 {
        advance(&mut lanes, program, vec![cut.windows[window]], &[cut.windows[window + 1]]);
        segment.close(&mut lanes, program, cut, 0, (window, span.1));
    }
    segment
}

impl From<State> for Segment {
    fn from(begin: State) -> Self {
        Self { end: begin.clone(), begin, windows: Vec::new(), histograms: Vec::new() }
    }
}

impl Segment {
    /// Takes what a lane counted in a window, the first number; the second is the window after the segment.
    fn close<W: Run>(
        &mut self,
        lanes: &mut Lanes<W>,
        program: &Program,
        cut: &Cut,
        lane: usize,
        (window, last): (usize, usize),
    ) {
        self.windows.push(lanes.counts.take(lane));
        if let Some(part) = cut.part_ends(window, last) {
            self.histograms.push((part, lanes.counts.take_histograms(lane)));
        }
        if window + 1 == last {
            self.end = lanes.state(program, lane);
        }
    }
}
