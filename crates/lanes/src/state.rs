//! The state of lanes: what a trajectory needs to go on, and what it has counted.

use serde::{Deserialize, Serialize};

use crate::draw::threefry;
use crate::pace::{FAR, Pace, Recorded, recorded_counter};
use crate::program::{EVEN_CELL_BITS, NUMBER_BITS, Program, Ring};
use crate::team::{Place, TeamLanes};
use crate::words::{Sum, Word, WordExt};

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

/// Lanes side by side.
#[derive(Debug)]
pub(crate) struct Lanes<W> {
    /// The number of each lane.
    pub number: W,
    /// Instant of the last event: its low word, and its high word.
    pub now: W,
    pub high: W,
    /// Low word of the instant at which each lane stops.
    pub end: W,
    /// Cores at work.
    pub busy: W,
    /// To which kind from their source's on frames go next, where they are dealt in turn.
    pub turn: W,
    /// Mask: a loop would have gone round more often than it may ([`Word::ROUNDS`]).
    pub given_up: W,
    pub sources: Vec<SourceLanes<W>>,
    pub cores: Vec<CoreLanes<W>>,
    pub links: Vec<LinkLanes<W>>,
    pub teams: Vec<TeamLanes<W>>,
    /// Low words of the instants at which the frames in the cores' rings came, and their kinds: the lanes' words of a place
    /// lie side by side.
    pub came: Vec<u32>,
    pub kinds: Vec<u32>,
    /// Where frames go from core to core: low words of the instants at which they came to the core, and the ticks for which
    /// they had waited before, likewise.
    pub reached: Vec<u32>,
    pub waited: Vec<u32>,
    /// To which kind from the first on each dealer between cores deals next.
    pub dealt: Vec<W>,
    /// Low words of the instants at which transmissions start, in the links' rings, likewise.
    pub starts: Vec<u32>,
    pub counts: Counts<W>,
}

#[derive(Debug, Clone)]
pub(crate) struct SourceLanes<W> {
    /// Last bit in of the frame that comes next, and the fraction of a tick.
    pub next: W,
    pub fine: W,
    /// Its kind.
    pub kind: W,
    /// When it would have come on a wire without length.
    pub ideal: W,
    /// Its cell, its number there, and the low word of the cell's end (Poisson).
    pub cell: W,
    pub number: W,
    pub border: W,
    /// Its mean gap there (Poisson).
    pub gap: W,
    /// Where gaps are equal: the rest of a tick of its instant, 32 fraction bits.
    pub rest: W,
    /// Its place in the sequence that repeats.
    pub place: W,
    /// Frames of its burst after it.
    pub left: W,
}

#[derive(Debug, Clone)]
pub(crate) struct CoreLanes<W> {
    /// Frames there, the one in service included.
    pub frames: W,
    /// Place of the first in the ring.
    pub head: W,
    /// Low words of the instants at which the present service began, and at which what is under way ends.
    pub began: W,
    pub done: W,
    /// Where there are polls: what is under way ([`phase`]), frames of the poll that are left, frames that it took, and the
    /// low word of the instant of the last interrupt.
    pub phase: W,
    pub rest: W,
    pub polled: W,
    pub interrupted: W,
    /// Where cores sleep: low words of the instants from which it has been idle, and up to which its sleep is counted.
    pub idle: W,
    pub counted: W,
}

/// What a core that polls does.
pub(crate) mod phase {
    /// Nothing.
    pub const IDLE: u32 = 0;
    /// It serves a frame.
    pub const SERVES: u32 = 1;
    /// It works on an interrupt.
    pub const INTERRUPTED: u32 = 2;
    /// It waits until an interrupt may be raised.
    pub const WAITS: u32 = 3;
    /// It wakes up from a sleep state.
    pub const WAKES: u32 = 4;
    /// It polls on after a poll that came back short.
    pub const LINGERS: u32 = 5;
}

#[derive(Debug, Clone)]
pub(crate) struct LinkLanes<W> {
    /// When it has sent all that it has taken, and the fraction of a tick.
    pub free: W,
    pub fine: W,
    /// Place after the last in the ring.
    pub tail: W,
}

/// Counts of the present stretch.
#[derive(Debug)]
pub(crate) struct Counts<W> {
    pub offered: Vec<Sum<W>>,
    pub offered_bytes: Vec<Sum<W>>,
    pub lost: Vec<Sum<W>>,
    pub busy: Vec<Sum<W>>,
    pub interrupts: Vec<Sum<W>>,
    pub polls: Vec<Sum<W>>,
    pub spun: Vec<Sum<W>>,
    pub waking: Vec<Sum<W>>,
    pub asleep: Vec<Sum<W>>,
    pub wakes: Vec<Sum<W>>,
    pub waited_at_core: Vec<Sum<W>>,
    pub lost_at_link: Vec<Sum<W>>,
    pub sent: Vec<Sum<W>>,
    pub waited_at_link: Vec<Sum<W>>,
    /// Whether a frame was lost, and the words of the instants at which the first and the last came.
    pub has_lost: W,
    pub first_lost: [W; 2],
    pub last_lost: [W; 2],
    pub forwarded: Sum<W>,
    pub forwarded_bytes: Sum<W>,
    pub latency: Sum<W>,
    pub waited: Sum<W>,
    /// A histogram for each lane, one after the other, with a place at its end for what is not counted.
    pub latencies: Vec<u32>,
    pub waits: Vec<u32>,
    /// What these held before they could overflow, by lane.
    kept: Vec<Histograms>,
    /// Stretches since then.
    stretches: u32,
}

impl<W: Word> Counts<W> {
    fn new(program: &Program) -> Self {
        let sums = |count| vec![Sum::zero(); count];
        let (sources, cores) = (program.sources.len(), program.cores.len());
        let bins = W::LANES * (BINS + 1);
        Self {
            offered: sums(sources),
            offered_bytes: sums(sources),
            lost: sums(cores),
            busy: sums(cores),
            interrupts: sums(cores),
            polls: sums(cores),
            spun: sums(cores),
            waking: sums(cores),
            asleep: sums(cores * program.sleep.len()),
            wakes: sums(cores * program.sleep.len()),
            waited_at_core: sums(cores),
            lost_at_link: sums(program.links.len()),
            sent: sums(program.links.len()),
            waited_at_link: sums(program.links.len()),
            has_lost: W::all(0),
            first_lost: [W::all(0); 2],
            last_lost: [W::all(0); 2],
            forwarded: Sum::zero(),
            forwarded_bytes: Sum::zero(),
            latency: Sum::zero(),
            waited: Sum::zero(),
            latencies: vec![0; bins],
            waits: vec![0; bins],
            kept: vec![Histograms::default(); W::LANES],
            stretches: 0,
        }
    }

    /// All words but those of histograms.
    pub(crate) fn all_words(&mut self) -> Vec<&mut W> {
        let mut words = Vec::new();
        self.words(&mut words);
        words
    }

    fn words<'a>(&'a mut self, words: &mut Vec<&'a mut W>) {
        let sums = [&mut self.offered, &mut self.offered_bytes, &mut self.lost, &mut self.busy, &mut self.interrupts];
        let more = [&mut self.polls, &mut self.spun, &mut self.waking, &mut self.asleep, &mut self.wakes];
        let waits = [&mut self.waited_at_core, &mut self.lost_at_link, &mut self.sent, &mut self.waited_at_link];
        let all = sums.into_iter().chain(more).chain(waits).flatten();
        words.extend(all.flat_map(Sum::words));
        let last = [&mut self.forwarded, &mut self.forwarded_bytes, &mut self.latency, &mut self.waited];
        words.extend(last.into_iter().flat_map(Sum::words));
        words.push(&mut self.has_lost);
        words.extend(self.first_lost.iter_mut().chain(&mut self.last_lost));
    }

    /// Takes the counts of a lane and starts again from zero.
    pub(crate) fn take(&mut self, lane: usize) -> Tally {
        let take = |sums: &mut Vec<Sum<W>>| sums.iter_mut().map(|sum| sum.take(lane)).collect();
        let instant = |words: [W; 2]| u64::from(words[1].get(lane)) << 32 | u64::from(words[0].get(lane));
        let lost_at = (self.has_lost.get(lane) != 0).then(|| (instant(self.first_lost), instant(self.last_lost)));
        self.has_lost.set(lane, 0);
        Tally {
            offered: take(&mut self.offered),
            offered_bytes: take(&mut self.offered_bytes),
            lost: take(&mut self.lost),
            busy_ticks: take(&mut self.busy),
            interrupts: take(&mut self.interrupts),
            polls: take(&mut self.polls),
            spun_ticks: take(&mut self.spun),
            waking_ticks: take(&mut self.waking),
            asleep_ticks: take(&mut self.asleep),
            wakes: take(&mut self.wakes),
            waited_at_core_ticks: take(&mut self.waited_at_core),
            lost_at_link: take(&mut self.lost_at_link),
            sent_fine: take(&mut self.sent),
            waited_at_link_ticks: take(&mut self.waited_at_link),
            lost_at,
            forwarded: self.forwarded.take(lane),
            forwarded_bytes: self.forwarded_bytes.take(lane),
            latency_ticks: self.latency.take(lane),
            waited_ticks: self.waited.take(lane),
        }
    }

    /// Takes the histograms of a lane and starts again from zero.
    pub(crate) fn take_histograms(&mut self, lane: usize) -> Histograms {
        self.keep(lane);
        std::mem::take(&mut self.kept[lane])
    }

    fn keep(&mut self, lane: usize) {
        let own = lane * (BINS + 1)..lane * (BINS + 1) + BINS;
        let kept = &mut self.kept[lane];
        for (bins, sums) in [(&mut self.latencies, &mut kept.latencies), (&mut self.waits, &mut kept.waits)] {
            for (bin, sum) in bins[own.clone()].iter_mut().zip(sums) {
                *sum += u64::from(std::mem::take(bin));
            }
        }
    }

    /// Ends a stretch; a bin holds what 2^32 frames count.
    fn settle(&mut self) {
        self.stretches += 1;
        if self.stretches >= STRETCHES {
            self.stretches = 0;
            (0..W::LANES).for_each(|lane| self.keep(lane));
        }
    }
}

/// Stretches until bins are emptied: 2^29 ticks of 64 cores are fewer than 2^28 frames, since a service lasts 1,000 ticks.
const STRETCHES: u32 = 16;

/// The state of one trajectory at an instant, and nothing that has no effect on what follows.
///
/// Two trajectories of one [`Program`] whose states are equal at an instant are the same from there on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The instant, ticks.
    pub at: u64,
    /// Frames that were dealt in turn, modulo the number of kinds that they are dealt to.
    pub turn: u32,
    /// Frames that each dealer between cores has dealt, modulo the number of kinds that it deals to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dealt: Vec<u32>,
    /// Of each source: the frame that comes next.
    pub sources: Vec<SourceState>,
    /// Of each core: its service, and the frames there.
    pub cores: Vec<CoreState>,
    /// Of each link: what it has to send.
    pub links: Vec<LinkState>,
}

/// The frame that a source sends next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceState {
    /// Its last bit in, ticks after the state's instant, and the fraction.
    pub next: u32,
    /// In 256ths of a tick.
    pub fine: u32,
    /// Its kind.
    pub kind: u32,
    /// The instant without the wire's length, ticks after the state's instant, modulo 2^32.
    pub ideal: u32,
    /// The cell that it was drawn in.
    pub cell: u32,
    /// Its number in the cell.
    pub number: u32,
    /// The rest of a tick, where gaps are equal.
    pub rest: u32,
    /// Its place in the sequence that repeats.
    pub place: u32,
}

/// A core and its ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreState {
    /// What it does: 0 nothing, 1 a service, 2 the work of an interrupt, 3 it waits until one may be raised, 4 it wakes up,
    /// 5 it polls on.
    pub phase: u32,
    /// Ticks until that ends; none while it is idle.
    pub done: Option<u32>,
    /// Ticks for which a service has been under way.
    pub began: Option<u32>,
    /// Frames of the present poll that are left, the one in service included.
    pub rest: u32,
    /// Frames that the present poll has taken.
    pub polled: u32,
    /// Ticks until the last interrupt, modulo 2^32: it may lie ahead; no longer ago than the time between two.
    pub interrupted: u32,
    /// Ticks for which it has been idle, where cores sleep; at most one more than until its last sleep state.
    pub idle: Option<u32>,
    /// Age in ticks and kind of each frame, the one in service first.
    pub frames: Vec<(u32, u32)>,
    /// Where frames go from core to core, of each: for how many ticks it has been here, and for how many it waited before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<(u32, u32)>,
    /// Where it has several servers, or shares them: the services that are under way, the first begun first. Its frames are
    /// then those that wait, and a core that shares the servers of another has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub served: Vec<ServedState>,
}

/// A service that is under way at one of several servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServedState {
    /// Ticks until it ends.
    pub done: u32,
    /// Ticks since it began.
    pub began: u32,
    /// The kind of its frame.
    pub kind: u32,
    /// Ticks since the frame came to the router, and to the core.
    pub came: u32,
    /// See `came`.
    pub reached: u32,
    /// Ticks for which it waited before it came to the core.
    pub waited: u32,
}

/// A link and its ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkState {
    /// Ticks until it has sent all that it has taken; 0 where nothing is left.
    pub free: u32,
    /// In 256ths of a tick.
    pub fine: u32,
    /// Ticks until each transmission that has not begun starts.
    pub starts: Vec<u32>,
}

impl State {
    /// Whether it can be one of a program's.
    #[must_use]
    pub fn is_of(&self, program: &Program) -> bool {
        let is_known = |kind: u32| (kind as usize) < program.core_of.len();
        let fits = |core: &CoreState, ring: &Ring| {
            core.frames.len() <= ring.mask as usize
                && core.rest as usize <= core.frames.len()
                && core.phase <= phase::LINGERS
                && core.frames.iter().all(|frame| is_known(frame.1))
                && core.served.iter().all(|served| is_known(served.kind))
                && core.passed.len() == if program.next_of.is_empty() { 0 } else { core.frames.len() }
        };
        self.sources.len() == program.sources.len()
            && self.cores.len() == program.cores.len()
            && self.links.len() == program.links.len()
            && self.turn < program.turns.max(1)
            && self.dealt.len() == program.dealers.len()
            && self.dealt.iter().zip(&program.dealers).all(|(dealt, kinds)| dealt < kinds)
            && self
                .sources
                .iter()
                .zip(&program.sources)
                .all(|(own, source)| is_known(own.kind) && own.place < source.places)
            && self.cores.iter().zip(program.rings()).all(|(core, ring)| fits(core, ring))
            && self.cores.iter().enumerate().all(|(number, core)| {
                let team = program.teams.iter().find(|team| team.leader == number);
                core.served.len() <= team.map_or(0, |team| team.servers)
            })
            && self.links.iter().zip(&program.links).all(|(link, ring)| link.starts.len() <= ring.mask as usize)
    }
}

fn low(instant: u64) -> u32 {
    instant as u32
}

/// Ticks between two interrupts.
fn moderation(program: &Program) -> u32 {
    program.polls.as_ref().map_or(0, |polls| polls.moderation)
}

fn high(instant: u64) -> u32 {
    (instant >> 32) as u32
}

impl<W: Word> Lanes<W> {
    /// All words of the state and of what was counted, histograms apart, in an order that depends on the program alone.
    pub(crate) fn words(&mut self) -> Vec<&mut W> {
        let mut words = vec![&mut self.now, &mut self.high, &mut self.end];
        words.extend([&mut self.busy, &mut self.turn, &mut self.given_up]);
        for source in &mut self.sources {
            let SourceLanes { next, fine, kind, ideal, cell, number, border, gap, rest, place, left } = source;
            words.extend([next, fine, kind, ideal, cell, number, border, gap, rest, place, left]);
        }
        for core in &mut self.cores {
            let CoreLanes { frames, head, began, done, phase, rest, polled, interrupted, idle, counted } = core;
            words.extend([frames, head, began, done, phase, rest, polled, interrupted, idle, counted]);
        }
        for LinkLanes { free, fine, tail } in &mut self.links {
            words.extend([free, fine, tail]);
        }
        for team in &mut self.teams {
            words.extend([&mut team.busy, &mut team.waiting, &mut team.started, &mut team.before]);
            for Place { done, began, kind, came, reached, waited } in &mut team.places {
                words.extend([done, began, kind, came, reached, waited]);
            }
        }
        words.extend(&mut self.dealt);
        self.counts.words(&mut words);
        words
    }

    /// The lists of the state: those of the rings.
    pub(crate) fn lists(&mut self) -> [&mut Vec<u32>; 5] {
        [&mut self.came, &mut self.kinds, &mut self.reached, &mut self.waited, &mut self.starts]
    }

    /// Empty routers, each from an instant on.
    pub(crate) fn empty(program: &Program, starts: &[u64]) -> Self {
        let words = |of: fn(u64) -> u32| W::of(&starts.iter().map(|&start| of(start)).collect::<Vec<_>>());
        let mut lanes = Self::blank(program);
        (lanes.now, lanes.high) = (words(low), words(high));
        for (number, source) in lanes.sources.iter_mut().enumerate() {
            for (lane, &start) in starts.iter().enumerate() {
                let came = match program.sources[number].pace {
                    Pace::Poisson { .. } => source.draw_until(program, number, lane, start),
                    Pace::Even { .. } => source.skip(program, number, lane, start),
                    Pace::Bursts(_) => source.skip_bursts(program, number, lane, start),
                    Pace::Recorded(ref recorded) => {
                        let before = recorded.at.partition_point(|&at| at < start);
                        source.go_to(program, number, recorded, (lane, start, before as u32));
                        before as u64
                    }
                };
                let turn = u64::from(lanes.turn.get(lane)) + came;
                lanes.turn.set(lane, (turn % u64::from(program.turns)) as u32);
            }
        }
        for link in &mut lanes.links {
            link.free = lanes.now;
        }
        for team in &mut lanes.teams {
            team.started = lanes.now.minus(W::all(1));
        }
        for core in &mut lanes.cores {
            core.interrupted = lanes.now.minus(W::all(moderation(program)));
            (core.idle, core.counted) = (lanes.now, lanes.now);
        }
        for places in lanes.starts.chunks_mut(W::LANES) {
            lanes.now.write(places);
        }
        lanes
    }

    pub(crate) fn blank(program: &Program) -> Self {
        let zero = W::all(0);
        let source = SourceLanes {
            next: zero,
            fine: zero,
            kind: zero,
            ideal: zero,
            cell: zero,
            number: zero,
            border: zero,
            gap: zero,
            rest: zero,
            place: zero,
            left: zero,
        };
        let core = CoreLanes {
            frames: zero,
            head: zero,
            began: zero,
            done: zero,
            phase: zero,
            rest: zero,
            polled: zero,
            interrupted: zero,
            idle: zero,
            counted: zero,
        };
        let places = |ring: Option<&Ring>| ring.map_or(0, |ring| (ring.base + ring.mask + 1) as usize) * W::LANES;
        let inside = places(program.teams.last().map(|team| &team.ring).or(program.cores.last()));
        let passed = || vec![0; if program.next_of.is_empty() { 0 } else { inside }];
        let numbers: Vec<u32> = (0..W::LANES as u32).collect();
        Self {
            number: W::of(&numbers),
            now: zero,
            high: zero,
            end: zero,
            busy: zero,
            turn: zero,
            given_up: zero,
            sources: vec![source; program.sources.len()],
            cores: vec![core; program.cores.len()],
            links: vec![LinkLanes { free: zero, fine: zero, tail: zero }; program.links.len()],
            teams: Self::teams(program),
            came: vec![0; inside],
            kinds: vec![0; inside],
            reached: passed(),
            waited: passed(),
            dealt: vec![zero; program.dealers.len()],
            starts: vec![0; places(program.links.last())],
            counts: Counts::new(program),
        }
    }

    /// Moves all lanes to the instants at which they stopped, and forgets what is long past.
    pub(crate) fn settle(&mut self, program: &Program) {
        self.counts.settle();
        self.high = self.high.count(self.end.below(self.now));
        self.now = self.end;
        for (source, from) in self.sources.iter_mut().zip(&program.sources) {
            let Pace::Recorded(recorded) = &from.pace else { continue };
            for lane in 0..W::LANES {
                let (now, next) = (self.now.get(lane), source.next.get(lane));
                if next.wrapping_sub(now) >= FAR / 2 {
                    let instant = u64::from(self.high.get(lane)) << 32 | u64::from(now);
                    let seen = recorded.seen_from(instant, source.number.get(lane));
                    source.ideal.set(lane, seen);
                    source.next.set(lane, seen);
                }
            }
        }
        let earliest = self.now.minus(W::all(moderation(program)));
        for core in &mut self.cores {
            core.interrupted = core.interrupted.after(earliest).choose(core.interrupted, earliest);
        }
        if let Some(last) = program.sleep.last() {
            for number in 0..self.cores.len() {
                let is_idle = self.cores[number].is_idle();
                self.count_sleep(program, number, is_idle);
                let core = &mut self.cores[number];
                // One tick more: who has been idle for no time at all does not sleep.
                let earliest = self.now.minus(W::all(last.after + 1));
                core.idle = core.idle.after(earliest).choose(core.idle, earliest);
            }
        }
        for (link, ring) in self.links.iter_mut().zip(&program.links) {
            let sends = link.free.after(self.now);
            link.free = sends.choose(link.free, self.now);
            link.fine = sends.and(link.fine);
            let places = (ring.base as usize) * W::LANES..(ring.base + ring.mask + 1) as usize * W::LANES;
            W::change(&mut self.starts[places], |start| start.after(self.now).choose(start, self.now));
        }
    }

    /// The state of a settled lane.
    pub(crate) fn state(&self, program: &Program, lane: usize) -> State {
        let now = self.now.get(lane);
        let since = |instant: u32| now.wrapping_sub(instant);
        let until = |instant: u32| instant.wrapping_sub(now);
        let at = |ring: &Ring, place: u32| (ring.base + (place & ring.mask)) as usize * W::LANES + lane;
        let sources = self.sources.iter().map(|source| SourceState {
            next: until(source.next.get(lane)),
            fine: source.fine.get(lane),
            kind: source.kind.get(lane),
            ideal: until(source.ideal.get(lane)),
            cell: source.cell.get(lane),
            number: source.number.get(lane),
            rest: source.rest.get(lane),
            place: source.place.get(lane),
        });
        let cores = self.cores.iter().zip(&program.cores).enumerate().map(|(number, (core, ring))| {
            let team = program.team_at(number);
            let waits = match team {
                Some((team, program)) if program.leader == number => self.teams[team].waiting,
                Some(_) => W::all(0),
                None => core.frames,
            };
            let ring = team.map_or(ring, |(_, program)| &program.ring);
            let (frames, head) = (waits.get(lane), core.head.get(lane));
            let places: Vec<usize> = (0..frames).map(|offset| at(ring, head.wrapping_add(offset))).collect();
            let is_here = |_: &&usize| !program.next_of.is_empty();
            let polls = program.polls_at(number).is_some();
            let what = if polls { core.phase.get(lane) } else { u32::from(frames > 0 && team.is_none()) };
            let is_polling = polls && what == phase::SERVES;
            CoreState {
                phase: what,
                done: (what != phase::IDLE).then(|| until(core.done.get(lane))),
                began: (what == phase::SERVES).then(|| since(core.began.get(lane))),
                rest: if is_polling { core.rest.get(lane) } else { 0 },
                polled: if is_polling { core.polled.get(lane) } else { 0 },
                interrupted: until(core.interrupted.get(lane)),
                idle: core.idle_since(program, what, lane).map(since),
                frames: places.iter().map(|&place| (since(self.came[place]), self.kinds[place])).collect(),
                passed: {
                    let passed = places.iter().filter(is_here);
                    passed.map(|&place| (since(self.reached[place]), self.waited[place])).collect()
                },
                served: (team.filter(|(_, program)| program.leader == number))
                    .map_or(vec![], |(team, _)| self.teams[team].state(lane, now)),
            }
        });
        let links = self.links.iter().zip(&program.links).map(|(link, ring)| {
            let tail = link.tail.get(lane);
            let places = (1..=ring.room + 1).rev().map(|before| at(ring, tail.wrapping_sub(before)));
            LinkState {
                free: until(link.free.get(lane)),
                fine: link.fine.get(lane),
                starts: places.map(|place| until(self.starts[place])).filter(|&start| start > 0).collect(),
            }
        });
        State {
            at: u64::from(self.high.get(lane)) << 32 | u64::from(now),
            turn: self.turn.get(lane),
            dealt: self.dealt.iter().map(|dealt| dealt.get(lane)).collect(),
            sources: sources.collect(),
            cores: cores.collect(),
            links: links.collect(),
        }
    }

    /// Puts a state into a lane.
    pub(crate) fn restore(&mut self, program: &Program, lane: usize, state: &State) {
        let now = low(state.at);
        self.now.set(lane, now);
        self.end.set(lane, now);
        self.high.set(lane, high(state.at));
        self.turn.set(lane, state.turn);
        self.dealt.iter_mut().zip(&state.dealt).for_each(|(dealt, &from)| dealt.set(lane, from));
        for (number, (source, from)) in self.sources.iter_mut().zip(&state.sources).enumerate() {
            source.next.set(lane, now.wrapping_add(from.next));
            source.fine.set(lane, from.fine);
            source.kind.set(lane, from.kind);
            source.ideal.set(lane, now.wrapping_add(from.ideal));
            source.cell.set(lane, from.cell);
            source.number.set(lane, from.number);
            source.rest.set(lane, from.rest);
            source.place.set(lane, from.place);
            match &program.sources[number].pace {
                Pace::Poisson { .. } => {
                    let (gap, border) = program.sources[number].cell(from.cell, program.cell_bits);
                    source.border.set(lane, border);
                    source.gap.set(lane, gap);
                }
                Pace::Bursts(bursts) => {
                    let (_, frames, _) = bursts.draw(from.cell);
                    source.left.set(lane, frames.saturating_sub(1 + from.number));
                }
                Pace::Even { .. } | Pace::Recorded(_) => {}
            }
        }
        let at = |ring: &Ring, place: usize| (ring.base as usize + place) * W::LANES + lane;
        let contends = |number: usize| program.contends.get(number).is_none_or(|&mask| mask != 0);
        let works = |core: &CoreState| matches!(core.phase, phase::SERVES | phase::INTERRUPTED);
        let busy = state.cores.iter().enumerate().filter(|&(number, _)| contends(number));
        let busy: usize = busy.map(|(_, core)| usize::from(works(core)) + core.served.len()).sum();
        self.busy.set(lane, busy as u32);
        let rings = program.rings();
        for ((core, ring), from) in self.cores.iter_mut().zip(rings).zip(&state.cores) {
            core.frames.set(lane, from.frames.len() as u32);
            core.head.set(lane, 0);
            core.done.set(lane, now.wrapping_add(from.done.unwrap_or(0)));
            core.began.set(lane, now.wrapping_sub(from.began.unwrap_or(0)));
            core.phase.set(lane, from.phase);
            core.rest.set(lane, from.rest);
            core.polled.set(lane, from.polled);
            core.interrupted.set(lane, now.wrapping_add(from.interrupted));
            core.idle.set(lane, now.wrapping_sub(from.idle.unwrap_or(0)));
            core.counted.set(lane, now);
            for (place, &(age, kind)) in from.frames.iter().enumerate() {
                self.came[at(ring, place)] = now.wrapping_sub(age);
                self.kinds[at(ring, place)] = kind;
            }
            for (place, &(since, waited)) in from.passed.iter().enumerate() {
                self.reached[at(ring, place)] = now.wrapping_sub(since);
                self.waited[at(ring, place)] = waited;
            }
        }
        for (team, its) in self.teams.iter_mut().zip(&program.teams) {
            let from = &state.cores[its.leader];
            team.restore(lane, now, (&from.served, from.frames.len()));
            for &member in &its.cores {
                let is_its = |kind: u32| program.core_of[kind as usize] as usize == member;
                let waiting = from.frames.iter().filter(|frame| is_its(frame.1)).count();
                self.cores[member].frames.set(lane, waiting as u32);
            }
        }
        for ((link, ring), from) in self.links.iter_mut().zip(&program.links).zip(&state.links) {
            link.free.set(lane, now.wrapping_add(from.free));
            link.fine.set(lane, from.fine);
            link.tail.set(lane, from.starts.len() as u32);
            for place in 0..=ring.mask as usize {
                let start = from.starts.get(place).copied().unwrap_or(0);
                self.starts[at(ring, place)] = now.wrapping_add(start);
            }
        }
    }
}

impl<W: Word> CoreLanes<W> {
    /// Mask: nothing is under way, and its unit may sleep.
    pub(crate) fn is_idle(&self) -> W {
        self.phase.is_zero().or(self.phase.equals(W::all(phase::WAITS)))
    }

    /// Low word of the instant from which a lane's core has been idle, where that matters.
    fn idle_since(&self, program: &Program, what: u32, lane: usize) -> Option<u32> {
        (!program.sleep.is_empty() && matches!(what, phase::IDLE | phase::WAITS)).then(|| self.idle.get(lane))
    }
}

impl<W: Word> SourceLanes<W> {
    /// Goes to a lane's first frame at or after an instant, where gaps are equal; returns how many came before.
    fn skip(&mut self, program: &Program, number: usize, lane: usize, start: u64) -> u64 {
        let source = &program.sources[number];
        let Pace::Even { gap, first } = source.pace else { unreachable!("gaps are equal") };
        let (start, gap) = (u128::from(start) << 32, u128::from(gap));
        let before = start.saturating_sub(u128::from(first)).div_ceil(gap) as u64;
        let instant = u128::from(first) + u128::from(before) * gap;
        let due = (instant >> 32) as u64;
        self.ideal.set(lane, low(due));
        self.next.set(lane, low(due));
        self.rest.set(lane, instant as u32);
        self.cell.set(lane, (before >> EVEN_CELL_BITS) as u32);
        self.number.set(lane, before as u32 & ((1 << EVEN_CELL_BITS) - 1));
        let place = (before % u64::from(source.places)) as u32;
        self.place.set(lane, place);
        let counter = [self.cell.get(lane), self.number.get(lane) | (number as u32) << NUMBER_BITS];
        let [_, what] = threefry(program.arrival, counter);
        self.kind.set(lane, source.kind(what, place));
        before
    }

    /// Goes to a lane's first frame at or after an instant, where frames come in bursts; returns how many came before.
    fn skip_bursts(&mut self, program: &Program, number: usize, lane: usize, start: u64) -> u64 {
        let source = &program.sources[number];
        let Pace::Bursts(bursts) = &source.pace else { unreachable!("frames come in bursts") };
        let (opening, before) = bursts.first_from(start);
        let instant = opening.at + u128::from(before) * u128::from(bursts.gap);
        let (due, burst) = ((instant >> 32) as u64, opening.burst as u32);
        let (_, frames, place) = bursts.draw(burst);
        let came = opening.frames + u64::from(before);
        let place = if bursts.flows == 0 { (came % u64::from(source.places)) as u32 } else { place };
        self.ideal.set(lane, low(due));
        self.next.set(lane, low(due));
        self.rest.set(lane, instant as u32);
        self.cell.set(lane, burst);
        self.number.set(lane, before);
        self.place.set(lane, place);
        self.left.set(lane, frames - 1 - before);
        let [_, what] = threefry(program.arrival, [burst, before | (number as u32) << NUMBER_BITS]);
        self.kind.set(lane, source.kind(what, place));
        came
    }

    /// Goes to a recorded frame, given a lane, its instant and the frame's number.
    fn go_to(&mut self, program: &Program, number: usize, recorded: &Recorded, (lane, now, frame): (usize, u64, u32)) {
        let seen = recorded.seen_from(now, frame);
        self.ideal.set(lane, seen);
        self.next.set(lane, seen);
        self.number.set(lane, frame);
        self.rest.set(lane, recorded.rest[frame as usize]);
        let place = recorded.place[frame as usize];
        self.place.set(lane, place);
        let [_, what] = threefry(program.arrival, recorded_counter(number, frame));
        self.kind.set(lane, program.sources[number].kind(what, place));
    }

    /// Draws a lane's first frame at or after an instant; nobody counts how many came before.
    fn draw_until(&mut self, program: &Program, number: usize, lane: usize, start: u64) -> u64 {
        let (cell, begin) = program.sources[number].cell_at(start, program.cell_bits);
        self.border.set(lane, low(begin));
        self.cell.set(lane, (cell as u32).wrapping_sub(1));
        let mut own = W::all(0);
        own.set(lane, u32::MAX);
        self.cross(program, number, own);
        while (self.ideal.get(lane).wrapping_sub(low(start)) as i32) < 0 {
            self.draw_gap(program, number, own);
        }
        self.next.set(lane, self.ideal.get(lane));
        0
    }
}
