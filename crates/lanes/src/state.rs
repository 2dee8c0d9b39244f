//! The state of lanes: what trajectories need to go on, side by side, and what they have counted.

use crate::draw::threefry;
use crate::pace::{FAR, Pace, Recorded, recorded_counter};
use crate::program::{EVEN_CELL_BITS, NUMBER_BITS, Program, Ring};
use crate::tally::{BINS, Histograms, Tally};
use crate::team::{Place, TeamLanes};
use crate::words::{Sum, Word, WordExt};

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

pub(crate) fn low(instant: u64) -> u32 {
    instant as u32
}

/// Ticks between two interrupts.
fn moderation(program: &Program) -> u32 {
    program.polls.as_ref().map_or(0, |polls| polls.moderation)
}

pub(crate) fn high(instant: u64) -> u32 {
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
}

impl<W: Word> CoreLanes<W> {
    /// Mask: nothing is under way, and its unit may sleep.
    pub(crate) fn is_idle(&self) -> W {
        self.phase.is_zero().or(self.phase.equals(W::all(phase::WAITS)))
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
