//! Lanes against a plain simulation, event by event, with the same draws.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use proptest::prelude::*;

use crate::draw::{exponential, scaled, threefry};
use crate::law::Law;
use crate::pace::Pace;
use crate::router::{
    Arrivals as Pattern, Core, Interruptions, Interrupts, Kind, Link, NO_DEALER, NO_LINK, NO_NEXT, NUMBER_BITS, Next,
    Polls, Program, RandomTime, Router, Sleep, Source, TICK_BITS, TimeProgram,
};
use crate::segments::{Cut, Outcome, run};
use crate::state::{CoreState, Histograms, LinkState, SourceState, State, Tally, bin};
use crate::vectors::Vectors;

/// A frame and when it came.
#[derive(Clone, Copy)]
struct Frame {
    came: u64,
    kind: usize,
    /// 256ths of a tick after that, where gaps are equal.
    part: Option<u32>,
    /// When it came to its core, and for how long it waited before.
    reached: u64,
    waited: u64,
}

impl Frame {
    fn at(came: u64, kind: usize, part: Option<u32>) -> Self {
        Self { came, kind, part, reached: came, waited: 0 }
    }
}

/// The frames of a source, cell by cell, spaced by the wire.
struct Arrivals<'a> {
    program: &'a Program,
    source: usize,
    cell: u64,
    /// The instant at which the cell begins.
    begin: u64,
    number: u32,
    ideal: u64,
    /// Frames before the next, where gaps are equal, and what its instant has beyond a whole tick.
    count: u64,
    rest: u32,
    /// In 256ths of a tick.
    last_fine: Option<u64>,
    next: Frame,
}

impl<'a> Arrivals<'a> {
    fn new(program: &'a Program, source: usize) -> Self {
        let next = Frame::at(0, 0, None);
        let mut arrivals =
            Self { program, source, cell: 0, begin: 0, number: 0, ideal: 0, count: 0, rest: 0, last_fine: None, next };
        arrivals.draw();
        arrivals
    }

    /// Draws the next frame: the first of the cell, or a gap after the last.
    fn draw(&mut self) {
        let source = &self.program.sources[self.source];
        let (eras, bits) = match &source.pace {
            Pace::Poisson { eras, bits } => (eras, *bits),
            &Pace::Even { gap, first } => {
                // Frame n comes n gaps after the first; its kind is that of its place, or drawn by its number.
                let instant = u128::from(first) + u128::from(self.count) * u128::from(gap);
                (self.ideal, self.rest) = ((instant >> 32) as u64, instant as u32);
                (self.cell, self.number) = (self.count >> 16, self.count as u32 & 0xffff);
                let counter = [self.cell as u32, self.number | (self.source as u32) << NUMBER_BITS];
                let [_, what] = threefry(self.program.arrival, counter);
                self.space(self.kind(what, (self.count % u64::from(source.places)) as usize));
                return;
            }
        };
        loop {
            let counter = [self.cell as u32, self.number | (self.source as u32) << NUMBER_BITS];
            let [when, what] = threefry(self.program.arrival, counter);
            // A cell ends after so many ticks, or where the rate changes.
            let mean = eras.iter().rfind(|era| era.from <= self.begin).expect("there is one").gap;
            let steps = eras.iter().map(|era| era.from).filter(|&from| from > self.begin);
            let end = steps.chain([self.begin + (1 << self.program.cell_bits)]).min().expect("there is one");
            let gap = (u64::from(exponential(when)) * u64::from(mean)) >> (bits + 27);
            if self.ideal + gap < end {
                self.ideal += gap;
                self.space(self.kind(what, 0));
                return;
            }
            (self.begin, self.ideal) = (end, end);
            self.cell += 1;
            self.number = 0;
        }
    }

    /// The kind at a place of the sequence, by Walker's tables.
    fn kind(&self, what: u32, place: usize) -> usize {
        let source = &self.program.sources[self.source];
        let kinds = source.own.len() / source.places as usize;
        let scaled = u64::from(what) * kinds as u64;
        let entry = place * kinds + (scaled >> 32) as usize;
        let takes_own = kinds == 1 || (scaled as u32) < source.own_share[entry];
        (if takes_own { source.own[entry] } else { source.other[entry] }) as usize
    }

    /// Not closer than the wire allows; the fraction of a tick goes on while the wire is busy.
    fn space(&mut self, kind: usize) {
        if !self.program.sources[self.source].is_spaced {
            let is_even = matches!(self.program.sources[self.source].pace, Pace::Even { .. });
            self.next = Frame::at(self.ideal, kind, is_even.then_some(self.rest >> 24));
            return;
        }
        let earliest = self.last_fine.map_or(0, |last| last + u64::from(self.program.wire_of[kind]));
        let fine = if earliest >> 8 >= self.ideal { earliest } else { self.ideal << 8 };
        self.last_fine = Some(fine);
        self.next = Frame::at(fine >> 8, kind, None);
    }

    fn take(&mut self) -> Frame {
        let frame = self.next;
        self.number += 1;
        self.count += 1;
        self.draw();
        frame
    }

    fn state(&self, at: u64) -> SourceState {
        SourceState {
            next: (self.next.came - at) as u32,
            fine: self.last_fine.unwrap_or(0) as u32 & 255,
            kind: self.next.kind as u32,
            ideal: self.ideal.wrapping_sub(at) as u32,
            cell: self.cell as u32,
            number: self.number,
            rest: self.rest,
            place: (self.count % u64::from(self.program.sources[self.source].places)) as u32,
        }
    }
}

/// A core: what it has taken, the frame in service first, and what waits.
#[derive(Default)]
struct Station {
    taken: VecDeque<Frame>,
    queue: VecDeque<Frame>,
    does: Does,
    began: u64,
    done: u64,
    polled: u32,
    /// The last interrupt.
    interrupted: Option<u64>,
    /// Since when it has been idle, if it is, and up to when its sleep is counted.
    idle: u64,
    counted: u64,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Does {
    #[default]
    Nothing,
    Serves,
    Interrupted,
    Waits,
    Wakes,
    Lingers,
}

/// A link: when it is free, in 256ths of a tick, and when the transmissions begin that have not begun.
#[derive(Default)]
struct Out {
    free: u64,
    starts: VecDeque<u64>,
}

struct Plain<'a> {
    program: &'a Program,
    sources: Vec<Arrivals<'a>>,
    cores: Vec<Station>,
    links: Vec<Out>,
    /// Frames that were dealt, and those that each dealer between cores dealt.
    dealt: usize,
    dealers: Vec<u32>,
    tally: Tally,
    histograms: Histograms,
}

impl<'a> Plain<'a> {
    fn new(program: &'a Program) -> Self {
        let zeros = |count| vec![0; count];
        let (sources, cores, links) = (program.sources.len(), program.cores.len(), program.links.len());
        Self {
            program,
            sources: (0..sources).map(|source| Arrivals::new(program, source)).collect(),
            cores: (0..cores).map(|_| Station::default()).collect(),
            links: (0..links).map(|_| Out::default()).collect(),
            dealt: 0,
            dealers: vec![0; program.dealers.len()],
            tally: Tally {
                offered: zeros(sources),
                offered_bytes: zeros(sources),
                lost: zeros(cores),
                busy_ticks: zeros(cores),
                interrupts: zeros(cores),
                polls: zeros(cores),
                spun_ticks: zeros(cores),
                waking_ticks: zeros(cores),
                asleep_ticks: zeros(cores * program.sleep.len()),
                wakes: zeros(cores * program.sleep.len()),
                waited_at_core_ticks: zeros(cores),
                lost_at_link: zeros(links),
                sent_fine: zeros(links),
                waited_at_link_ticks: zeros(links),
                ..Tally::default()
            },
            histograms: Histograms::default(),
        }
    }

    fn run_until(&mut self, end: u64) {
        loop {
            let working = self.cores.iter().enumerate().filter(|(_, core)| core.does != Does::Nothing);
            let ends = working.map(|(number, core)| (core.done, 0, number)).min();
            let comes = self.sources.iter().enumerate().map(|(number, source)| (source.next.came, 1, number)).min();
            let Some((at, what, number)) = ends.into_iter().chain(comes).min() else { return };
            if at >= end {
                break;
            }
            match (what, self.cores.get(number).map(|core| core.does)) {
                (1, _) => self.come(number),
                (_, Some(Does::Waits)) => {
                    self.tally.interrupts[number] += 1;
                    self.ask(number, at, false);
                }
                (_, Some(Does::Wakes)) => self.begin(number, at, false),
                (_, Some(Does::Lingers)) => {
                    self.tally.spun_ticks[number] += u64::from(self.polls().linger);
                    self.rest(number, at);
                }
                (_, Some(Does::Interrupted)) => self.poll(number, at, 0, false),
                _ => self.end_service(number, at),
            }
        }
        for number in 0..self.cores.len() {
            if matches!(self.cores[number].does, Does::Nothing | Does::Waits) {
                self.count_sleep(number, end);
            }
        }
    }

    fn polls(&self) -> &'a crate::router::PollProgram {
        self.program.polls.as_ref().expect("there are polls")
    }

    /// Counts a core's sleep up to an instant; returns the state that it is in.
    fn count_sleep(&mut self, number: usize, until: u64) -> Option<usize> {
        let sleep = &self.program.sleep;
        let core = &mut self.cores[number];
        for (state, its) in sleep.iter().enumerate() {
            let from = (core.idle + u64::from(its.after)).max(core.counted);
            let to = sleep.get(state + 1).map_or(until, |next| until.min(core.idle + u64::from(next.after)));
            self.tally.asleep_ticks[number * sleep.len() + state] += to.saturating_sub(from);
        }
        core.counted = until;
        let idle = until - core.idle;
        (0..sleep.len()).rev().find(|&state| idle > 0 && idle >= u64::from(sleep[state].after))
    }

    fn rest(&mut self, number: usize, at: u64) {
        let core = &mut self.cores[number];
        (core.does, core.idle, core.counted) = (Does::Nothing, at, at);
    }

    /// Asks for a core, which may have to wake up.
    fn ask(&mut self, number: usize, at: u64, from_idle: bool) {
        let Some(state) = self.count_sleep(number, at) else {
            self.begin(number, at, from_idle);
            return;
        };
        let exit = u64::from(self.program.sleep[state].exit);
        self.tally.wakes[number * self.program.sleep.len() + state] += 1;
        self.tally.waking_ticks[number] += exit;
        (self.cores[number].does, self.cores[number].done) = (Does::Wakes, at + exit);
    }

    /// A core that is awake begins: with the work of an interrupt, or a poll.
    fn begin(&mut self, number: usize, at: u64, from_idle: bool) {
        match &self.program.polls {
            Some(polls) if polls.interrupts => self.interrupt(number, at),
            _ => self.poll(number, at, 0, from_idle),
        }
    }

    fn come(&mut self, source: usize) {
        let mut frame = self.sources[source].take();
        self.tally.offered[source] += 1;
        self.tally.offered_bytes[source] += u64::from(self.program.bytes_of[frame.kind]);
        frame.kind += self.dealt % self.program.turns as usize;
        self.dealt += 1;
        self.reach(frame, frame.came);
    }

    /// A frame comes to its core.
    fn reach(&mut self, frame: Frame, at: u64) {
        let number = self.program.core_of[frame.kind] as usize;
        let core = &mut self.cores[number];
        let room = self.program.cores[number].room as usize;
        let has_room = core.queue.len() < room || (core.does == Does::Nothing && self.program.polls.is_none());
        if !has_room {
            self.tally.lost[number] += 1;
            self.note_loss(frame.came);
            return;
        }
        core.queue.push_back(frame);
        match core.does {
            Does::Nothing if self.program.polls.as_ref().is_some_and(|polls| polls.interrupts) => {
                self.raise(number, at, true);
            }
            Does::Nothing => self.ask(number, at, true),
            Does::Lingers => {
                let left = core.done - at;
                self.tally.spun_ticks[number] += u64::from(self.polls().linger) - left;
                self.poll(number, at, 0, true);
            }
            _ => {}
        }
    }

    /// Raises an interrupt as soon as it may be.
    fn raise(&mut self, number: usize, at: u64, was_idle: bool) {
        let polls = self.polls();
        let core = &mut self.cores[number];
        let raised = core.interrupted.map_or(at, |last| at.max(last + u64::from(polls.moderation)));
        let [word, _] = threefry(self.program.wakeup, counter(number, at));
        let wakeup = polls.wakeup.as_ref().filter(|_| was_idle || raised > at);
        let due = raised + wakeup.map_or(0, |wakeup| drawn(wakeup, word));
        (core.does, core.done, core.interrupted) = (Does::Waits, due, Some(raised));
    }

    /// Ticks that interruptions add to a work in 256ths of a tick: strikes at exponential distances.
    fn interruptions(&self, number: usize, at: u64, fine: u32) -> u64 {
        let Some(interruptions) = &self.program.interruptions else { return 0 };
        let mut left = ((u64::from(fine) * u64::from(interruptions.ratio)) >> 32) << interruptions.shift;
        let mut added = 0;
        for strike in 0_u32.. {
            let [low, high] = counter(number, at);
            let [when, how] = threefry(self.program.interruption, [low, high ^ (strike << 26)]);
            let gap = u64::from(exponential(when)) >> 2;
            if gap >= left {
                break;
            }
            added += drawn(&interruptions.duration, how);
            left -= gap;
        }
        added
    }

    /// The work of an interrupt goes first, or with the first frame.
    fn interrupt(&mut self, number: usize, at: u64) {
        let polls = self.polls();
        self.cores[number].does = Does::Interrupted;
        let busy = self.busy();
        let work = polls.interrupt_of[busy.min(polls.interrupt_of.len()) - 1];
        if !polls.works_first {
            self.poll(number, at, work, false);
            return;
        }
        let [_, rounding] = threefry(self.program.service, counter(number, at));
        let ticks = u64::from((work + (rounding & 255)) / 256).max(1) + self.interruptions(number, at, work);
        self.tally.busy_ticks[number] += ticks;
        self.cores[number].done = at + ticks;
    }

    /// Takes frames out of the ring and begins with the first; `extra` is work before it.
    fn poll(&mut self, number: usize, at: u64, extra: u32, from_idle: bool) {
        let core = &mut self.cores[number];
        core.does = Does::Serves;
        let polls = self.program.polls.as_ref();
        let most = polls.map_or(1, |polls| if polls.exhaustive { 1 } else { polls.batch as usize });
        let takes = core.queue.len().min(most);
        core.taken.extend(core.queue.drain(..takes));
        core.polled = takes as u32;
        self.tally.polls[number] += u64::from(polls.is_some());
        let busy = self.busy();
        let cost = polls.map_or(0, |polls| polls.cost_of[busy.min(polls.cost_of.len()) - 1]);
        self.start(number, at, extra + cost, from_idle);
    }

    fn busy(&self) -> usize {
        self.cores.iter().filter(|core| matches!(core.does, Does::Serves | Does::Interrupted)).count()
    }

    fn note_loss(&mut self, came: u64) {
        let (first, last) = self.tally.lost_at.unwrap_or((came, came));
        self.tally.lost_at = Some((first.min(came), last.max(came)));
    }

    fn start(&mut self, number: usize, at: u64, extra: u32, from_idle: bool) {
        let busy = self.busy();
        let kind = self.cores[number].taken[0].kind;
        let factors = self.program.factors as usize;
        let work = self.program.work_of[kind * factors + busy.min(factors) - 1];
        let [random, rounding] = threefry(self.program.service, counter(number, at));
        let fine = scaled(work, self.program.law.factor(random), self.program.law.bits()) + extra;
        let by_chance = (rounding >> 8) & 255;
        let part = if from_idle { self.cores[number].taken[0].part.unwrap_or(by_chance) } else { 0 };
        let service = u64::from((fine + (rounding & 255) + part) / 256).max(1) + self.interruptions(number, at, fine);
        self.tally.busy_ticks[number] += service;
        let core = &mut self.cores[number];
        (core.began, core.done) = (at, at + service);
    }

    fn end_service(&mut self, number: usize, at: u64) {
        let core = &mut self.cores[number];
        let (began, frame) = (core.began, core.taken.pop_front().expect("it was served"));
        let polls = self.program.polls.as_ref();
        let is_short = polls.is_some_and(|polls| core.polled < polls.batch);
        let drains = polls.is_some_and(|polls| polls.exhaustive) && is_short;
        let linger = polls.map_or(0, |polls| u64::from(polls.linger));
        let lingers = linger > 0;
        if !core.taken.is_empty() {
            self.start(number, at, 0, false);
        } else if core.queue.is_empty() && lingers {
            (core.does, core.done) = (Does::Lingers, at + linger);
        } else if core.queue.is_empty() {
            self.rest(number, at);
        } else if drains {
            core.polled += 1;
            core.taken.extend(core.queue.pop_front());
            self.start(number, at, 0, false);
        } else if polls.is_some_and(|polls| polls.interrupts) && is_short && !lingers {
            (core.idle, core.counted) = (at, at);
            self.raise(number, at, false);
        } else {
            self.poll(number, at, 0, false);
        }
        let mut first_bit = at;
        self.tally.waited_at_core_ticks[number] += began - frame.reached;
        let waited = frame.waited + began - frame.reached;
        let next = self.program.next_of.get(frame.kind).copied().unwrap_or(NO_NEXT);
        if next != NO_NEXT {
            let dealer = self.program.dealer_of[frame.kind];
            let mut kind = next;
            if dealer != NO_DEALER {
                let dealt = &mut self.dealers[dealer as usize];
                kind += *dealt;
                *dealt = (*dealt + 1) % self.program.dealers[dealer as usize];
            }
            self.reach(Frame { kind: kind as usize, part: Some(0), reached: at, waited, ..frame }, at);
            return;
        }
        if self.program.link_of[frame.kind] != NO_LINK {
            let number = self.program.link_of[frame.kind] as usize;
            let (link, room) = (&mut self.links[number], self.program.links[number].room as usize);
            link.starts.retain(|&start| start > at);
            if link.free >> 8 > at && link.starts.len() >= room {
                self.tally.lost_at_link[number] += 1;
                self.note_loss(frame.came);
                return;
            }
            let begins = if link.free >> 8 > at { link.free } else { at << 8 };
            first_bit = begins >> 8;
            if first_bit > at {
                link.starts.push_back(first_bit);
            }
            self.tally.sent_fine[number] += u64::from(self.program.transmission_of[frame.kind]);
            self.tally.waited_at_link_ticks[number] += first_bit - at;
            link.free = begins + u64::from(self.program.transmission_of[frame.kind]);
        }
        let (latency, waited) = (first_bit - frame.came, waited + first_bit - at);
        self.tally.forwarded += 1;
        self.tally.forwarded_bytes += u64::from(self.program.bytes_of[frame.kind]);
        self.tally.latency_ticks += latency;
        self.tally.waited_ticks += waited;
        self.histograms.latencies[bin(latency as u32) as usize] += 1;
        self.histograms.waits[bin(waited as u32) as usize] += 1;
    }

    fn state(&self, at: u64) -> State {
        let polls = self.program.polls.as_ref();
        let moderation = polls.map_or(0, |polls| u64::from(polls.moderation));
        let core = |core: &Station| {
            let serves = core.does == Does::Serves;
            let last = core.interrupted.filter(|last| last + moderation > at);
            CoreState {
                phase: core.does as u32,
                done: (core.does != Does::Nothing).then(|| (core.done - at) as u32),
                began: serves.then(|| (at - core.began) as u32),
                rest: if serves && polls.is_some() { core.taken.len() as u32 } else { 0 },
                polled: if serves && polls.is_some() { core.polled } else { 0 },
                interrupted: last.unwrap_or(at.wrapping_sub(moderation)).wrapping_sub(at) as u32,
                idle: (self.program.sleep.last())
                    .filter(|_| matches!(core.does, Does::Nothing | Does::Waits))
                    .map(|last| (at - core.idle).min(u64::from(last.after) + 1) as u32),
                frames: (core.taken.iter().chain(&core.queue))
                    .map(|frame| ((at - frame.came) as u32, frame.kind as u32))
                    .collect(),
                passed: (core.taken.iter().chain(&core.queue))
                    .filter(|_| !self.program.next_of.is_empty())
                    .map(|frame| ((at - frame.reached) as u32, frame.waited as u32))
                    .collect(),
            }
        };
        let link = |link: &Out| {
            let sends = link.free >> 8 > at;
            LinkState {
                free: if sends { ((link.free >> 8) - at) as u32 } else { 0 },
                fine: if sends { link.free as u32 & 255 } else { 0 },
                starts: link.starts.iter().filter(|&&start| start > at).map(|start| (start - at) as u32).collect(),
            }
        };
        State {
            at,
            turn: (self.dealt % self.program.turns as usize) as u32,
            dealt: self.dealers.clone(),
            sources: self.sources.iter().map(|source| source.state(at)).collect(),
            cores: self.cores.iter().map(core).collect(),
            links: self.links.iter().map(link).collect(),
        }
    }
}

/// Ticks of a random time.
fn drawn(time: &TimeProgram, word: u32) -> u64 {
    (u64::from(time.mean) * u64::from(time.law.factor(word))) >> time.law.bits()
}

/// The counter of a draw for what begins at a core at an instant.
fn counter(number: usize, at: u64) -> [u32; 2] {
    [at as u32, (at >> 32) as u32 ^ ((number as u32) << (TICK_BITS - 32))]
}

fn plain(program: &Program, cut: &Cut) -> (Vec<Tally>, Histograms, State) {
    let mut plain = Plain::new(program);
    let empty = plain.tally.clone();
    let end = *cut.windows.last().expect("there are windows");
    let windows = cut.windows[1..].iter().map(|&border| {
        plain.run_until(border);
        std::mem::replace(&mut plain.tally, empty.clone())
    });
    let windows = windows.collect();
    (windows, plain.histograms.clone(), plain.state(end))
}

fn lanes(program: &Program, cut: &Cut) -> Outcome {
    run(program, cut, &|_| ControlFlow::Continue(())).expect("it fits").expect("nobody stops it")
}

/// Windows of some thousand services each.
fn cut(windows: u64, ticks: u64, segments: usize, vectors: Vectors) -> Cut {
    Cut {
        begin: None,
        windows: (0..=windows).map(|window| window * ticks).collect(),
        part_of: (0..windows as usize).map(|window| window / 3).collect(),
        segments,
        warm_up: 400_000,
        vectors,
    }
}

fn law() -> impl Strategy<Value = Law> {
    prop_oneof![
        Just(Law::Constant),
        Just(Law::Exponential),
        Just(Law::of_survival(|x| (1.0 - x).clamp(0.0, 1.0))),
        Just(Law::of_survival(|x| (1.0 + x).powf(-4.0))),
    ]
}

fn polls() -> impl Strategy<Value = Option<Polls>> {
    let wakeup = prop::option::of((0.1e6..20e6_f64, law()).prop_map(|(mean_ps, law)| RandomTime { mean_ps, law }));
    let linger = prop_oneof![Just(0.0), 0.0..10e6_f64];
    let interrupts = (0.0..3e6_f64, 0.0..20e6_f64, any::<bool>(), any::<bool>(), wakeup, linger).prop_map(
        |(cost_ps, moderation_ps, exhaustive, is_free, wakeup, linger_ps)| Interrupts {
            cost_ps: if is_free { 0.0 } else { cost_ps },
            moderation_ps,
            exhaustive,
            wakeup,
            linger_ps,
        },
    );
    let polls = (1..40_u32, 0.0..1e6_f64, prop::option::of(interrupts))
        .prop_map(|(batch, cost_ps, interrupts)| Polls { batch, cost_ps, interrupts });
    prop::option::of(polls)
}

fn sleep() -> impl Strategy<Value = Vec<Sleep>> {
    let two = (0.1e6..5e6_f64, 5e6..50e6_f64, 1e6..40e6_f64).prop_map(|(after_ps, later_ps, exit_ps)| {
        vec![Sleep { after_ps, exit_ps: exit_ps / 8.0 }, Sleep { after_ps: later_ps, exit_ps }]
    });
    prop_oneof![Just(vec![]), Just(vec![Sleep { after_ps: 0.0, exit_ps: 2e6 }]), two]
}

fn interruptions() -> impl Strategy<Value = Option<Interruptions>> {
    prop::option::of(
        (1e3..3e4_f64, 0.1e6..10e6_f64, law())
            .prop_map(|(rate_hz, mean_ps, law)| Interruptions { rate_hz, duration: RandomTime { mean_ps, law } }),
    )
}

fn router() -> impl Strategy<Value = Router> {
    let rest = (sleep(), interruptions(), (1..=3_usize, 0..=4_usize));
    let shape = (1..=5_usize, 0..=3_usize, 1..=3_usize, 3..=6_usize, law(), any::<bool>(), polls(), rest);
    shape.prop_flat_map(|(cores, links, sources, kinds, law, slows, polls, (sleep, interruptions, (turns, later)))| {
        let kind = (64..1518_u32, 0..cores, 0..=links, 0.5e6..2e6_f64, 0.0..1.0_f64, 0.0..0.6_f64).prop_map(
            move |(bytes, core, link, work_ps, wire, transmission)| Kind {
                bytes,
                wire_ps: wire * work_ps,
                core,
                work_ps,
                next: None,
                link: link.checked_sub(1),
                transmission_ps: transmission * work_ps,
            },
        );
        let kinds = prop::collection::vec(kind, kinds + later);
        let ways = prop::collection::vec((0..8_usize, any::<bool>()), 12);
        let least = u32::from(polls.is_some());
        let queues = (prop::collection::vec(least..40_u32, cores), prop::collection::vec(0..20_u32, links));
        let rates = prop::collection::vec((0.05e6..1.5e6_f64, 0..4_usize), sources);
        let sleep = if polls.is_some() { sleep } else { vec![] };
        (kinds, queues, rates, ways).prop_map(move |(mut kinds, (queues, rings), rates, ways)| {
            // Some go on as kinds behind them, dealt to two of these or not.
            let (from, count) = (kinds.len() - later, kinds.len());
            for (number, (way, is_dealt)) in (0..count).zip(ways) {
                let kind = from.max(number + 1) + way;
                let dealer = (is_dealt && kind + 2 <= count).then_some(0);
                kinds[number].next = (kind < count).then_some(Next { kind, dealer });
            }
            // Kinds that frames are dealt to are alike on the wire, which carries what is offered.
            let fastest_pps = rates.iter().map(|rate| rate.0).fold(0.0, f64::max);
            for kind in &mut kinds {
                kind.wire_ps = kind.wire_ps.min(0.9e12 / fastest_pps);
                if turns > 1 {
                    (kind.wire_ps, kind.bytes) = (0.1e6, 64);
                }
            }
            let entries = from + 1 - turns;
            let all: Vec<(usize, f64)> = (0..entries).map(|kind| (kind, 1.0 + kind as f64)).collect();
            let source = |&(rate_pps, way): &(f64, usize)| {
                let even = Pattern::Even { phase: rate_pps / 1.5e6 };
                let steps = if way == 1 { vec![(0.3e9, rate_pps * 0.4), (0.65e9, rate_pps)] } else { vec![] };
                let (arrivals, kinds) = match way {
                    0 | 1 => (Pattern::Poisson, vec![all.clone()]),
                    // In turn; and in turn between two places at random.
                    2 => (even, all.iter().map(|&(kind, _)| vec![(kind, 1.0)]).collect()),
                    _ => (even, vec![all.clone(), vec![(0, 1.0)]]),
                };
                Source { rate_pps, steps, arrivals, kinds }
            };
            Router {
                tick_ps: Router::usual_tick_ps(&kinds),
                sources: rates.iter().map(source).collect(),
                cores: queues.iter().map(|&queue| Core { queue }).collect(),
                links: rings.iter().map(|&queue| Link { queue }).collect(),
                law: law.clone(),
                turns,
                polls: polls.clone(),
                sleep: sleep.clone(),
                interruptions: interruptions.clone(),
                contention: if slows { vec![1.0, 1.1, 1.3] } else { vec![] },
                dealers: vec![2],
                kinds,
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn lanes_count_what_a_plain_simulation_counts(router in router(), seed: u64, ticks in 100_000..1_500_000_u64) {
        let program = Program::new(&router, seed, 0).expect("it fits");
        for vectors in Vectors::known().into_iter().filter(|vectors| vectors.is_here()) {
            for segments in [1, 7] {
                let cut = cut(9, ticks, segments, vectors);
                let (windows, histograms, end) = plain(&program, &cut);
                let outcome = lanes(&program, &cut);
                let mut all = Histograms::default();
                outcome.parts.iter().for_each(|part| all.add(part));
                prop_assert_eq!(&outcome.windows, &windows, "{:?}, {} segments", vectors, segments);
                prop_assert_eq!(&outcome.end, &end);
                prop_assert!(all == histograms);
                prop_assert_eq!(outcome.seams.all, segments - 1);
                prop_assert_eq!(outcome.seams.at_once + outcome.seams.repaired, segments - 1);
            }
        }
    }
}

#[test]
fn a_trajectory_goes_on_from_a_state_that_was_kept() {
    let program = one_queue(0.95, 20, Law::Exponential);
    for vectors in Vectors::known().into_iter().filter(|vectors| vectors.is_here()) {
        for segments in [1, 5] {
            let whole = cut(12, 6_000_000, segments, vectors);
            let (first, then) = (whole.windows[..=5].to_vec(), whole.windows[5..].to_vec());
            let parts = |windows: &Vec<u64>| vec![0; windows.len() - 1];
            let first = Cut { part_of: parts(&first), windows: first, ..whole.clone() };
            let first = lanes(&program, &first);
            let then = Cut { part_of: parts(&then), windows: then, begin: Some(first.end.clone()), ..whole.clone() };
            let then = lanes(&program, &then);
            let outcome = lanes(&program, &whole);
            assert_eq!([first.windows, then.windows].concat(), outcome.windows);
            assert_eq!(then.end, outcome.end);
        }
    }
}

fn one_queue(load: f64, queue: u32, law: Law) -> Program {
    let kind = Kind { bytes: 64, wire_ps: 0.0, core: 0, work_ps: 1e6, next: None, link: None, transmission_ps: 0.0 };
    let router = Router {
        tick_ps: Router::usual_tick_ps(&[kind]),
        sources: vec![Source {
            rate_pps: load * 1e6,
            steps: vec![],
            arrivals: Pattern::Poisson,
            kinds: vec![vec![(0, 1.0)]],
        }],
        turns: 1,
        kinds: vec![kind],
        cores: vec![Core { queue }],
        law,
        polls: None,
        sleep: vec![],
        interruptions: None,
        contention: vec![],
        links: vec![],
        dealers: vec![],
    };
    Program::new(&router, 3, 0).expect("it fits")
}

#[test]
fn the_outcome_does_not_depend_on_the_cut() {
    for load in [0.9, 1.0, 1.3] {
        let program = one_queue(load, 100, Law::Exponential);
        let whole = lanes(&program, &cut(80, 2_000_000, 1, Vectors::Plain));
        for segments in [2, 5, 16, 40, 80] {
            for vectors in Vectors::known().into_iter().filter(|vectors| vectors.is_here()) {
                let outcome = lanes(&program, &cut(80, 2_000_000, segments, vectors));
                assert_eq!(outcome.seams.all, segments - 1);
                assert_eq!((&outcome.windows, &outcome.parts), (&whole.windows, &whole.parts), "{load} {segments}");
                assert_eq!(outcome.end, whole.end);
            }
        }
    }
}

#[test]
fn a_seam_stays_open_where_the_warm_up_is_too_short_and_is_repaired() {
    let program = one_queue(1.0, 500, Law::Exponential);
    let short = Cut { warm_up: 1000, ..cut(40, 2_000_000, 20, Vectors::widest()) };
    let outcome = lanes(&program, &short);
    assert!(outcome.seams.repaired > 0, "{:?}", outcome.seams);
    assert_eq!(outcome.seams.at_once + outcome.seams.repaired, outcome.seams.all);
    assert_eq!(outcome.windows, lanes(&program, &cut(40, 2_000_000, 1, Vectors::Plain)).windows);
}

#[test]
fn a_clock_that_wraps_changes_nothing() {
    // 2^32 ticks are 4.3 million services; the low word turns over several times.
    let program = one_queue(0.7, 20, Law::Constant);
    let cut = cut(12, 1_500_000_000, 12, Vectors::widest());
    let (windows, _, end) = plain(&program, &cut);
    let outcome = lanes(&program, &cut);
    assert_eq!(outcome.windows, windows);
    assert_eq!(outcome.end, end);
}

#[test]
fn every_field_of_a_state_opens_a_seam() {
    // The second goes on to the first core, as the third and the fourth in turn.
    let next = Some(Next { kind: 2, dealer: Some(0) });
    let kinds = [(0, None), (1, next), (0, None), (0, None)].map(|(core, next)| Kind {
        bytes: 64,
        wire_ps: 3e5,
        core,
        work_ps: 1e6,
        next,
        link: Some(0),
        transmission_ps: 1.333e6,
    });
    let router = Router {
        tick_ps: Router::usual_tick_ps(&kinds),
        sources: vec![Source {
            rate_pps: 2.5e6,
            steps: vec![],
            arrivals: Pattern::Poisson,
            kinds: vec![vec![(0, 1.0), (1, 1.0)]],
        }],
        turns: 1,
        cores: vec![Core { queue: 30 }; 2],
        law: Law::Exponential,
        polls: None,
        sleep: vec![],
        interruptions: None,
        contention: vec![1.0, 1.2],
        links: vec![Link { queue: 10 }],
        dealers: vec![2],
        kinds: kinds.to_vec(),
    };
    let program = Program::new(&router, 1, 0).expect("it fits");
    let state = lanes(&program, &cut(4, 1_000_000, 1, Vectors::Plain)).end;
    assert!(state.links[0].starts.len() > 1 && state.cores[0].frames.len() > 1, "{state:?}");
    let changes: [fn(&mut State); 26] = [
        |state| state.at += 1,
        |state| state.turn += 1,
        |state| state.dealt[0] ^= 1,
        |state| state.cores[0].passed[0].0 += 1,
        |state| state.cores[0].passed[0].1 += 1,
        |state| state.sources[0].rest += 1,
        |state| state.sources[0].place += 1,
        |state| state.sources[0].next += 1,
        |state| state.sources[0].fine ^= 1,
        |state| state.sources[0].kind ^= 1,
        |state| state.sources[0].ideal ^= 1,
        |state| state.sources[0].cell += 1,
        |state| state.sources[0].number += 1,
        |state| state.cores[1].done = state.cores[1].done.map(|done| done + 1),
        |state| state.cores[1].began = state.cores[1].began.map(|began| began + 1),
        |state| state.cores[1].phase += 1,
        |state| state.cores[1].rest += 1,
        |state| state.cores[1].polled += 1,
        |state| state.cores[1].interrupted += 1,
        |state| state.cores[1].idle = Some(state.cores[1].idle.unwrap_or(0) + 1),
        |state| state.cores[0].frames[1].0 += 1,
        |state| state.cores[0].frames[1].1 ^= 1,
        |state| state.cores[0].frames.truncate(1),
        |state| state.links[0].free += 1,
        |state| state.links[0].fine ^= 1,
        |state| state.links[0].starts[0] += 1,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut other = state.clone();
        change(&mut other);
        assert_ne!(other, state, "change {number}");
    }
}

/// Loss of M/M/1/K: the chain's stationary law.
fn erlang_loss(load: f64, places: i32) -> f64 {
    if load == 1.0 {
        1.0 / f64::from(places + 1)
    } else {
        (1.0 - load) * load.powi(places) / (1.0 - load.powi(places + 1))
    }
}

#[test]
fn a_queue_loses_what_theory_says() {
    for load in [0.5, 0.9, 1.0, 1.2, 2.0] {
        let program = one_queue(load, 9, Law::Exponential);
        let outcome = lanes(&program, &cut(96, 40_000_000, 32, Vectors::widest()));
        let sum = |of: fn(&Tally) -> u64| outcome.windows.iter().map(of).sum::<u64>() as f64;
        let losses: Vec<f64> =
            outcome.windows.iter().map(|window| window.lost[0] as f64 / window.offered[0] as f64).collect();
        let loss = sum(|window| window.lost[0]) / sum(|window| window.offered[0]);
        let spread = losses.iter().map(|x| (x - loss).powi(2)).sum::<f64>() / 95.0;
        let exact = erlang_loss(load, 10);
        let error = (spread / 96.0).sqrt();
        assert!((loss - exact).abs() < 3.3 * error, "{load}: {loss} +- {error} for {exact}");
    }
}

#[test]
fn a_core_whose_frames_come_with_the_windows_sleeps_between_them() {
    // A frame each 100 us, 2 us to wake up, 1 us of service; windows of 100 us, and of 30.
    let kind = Kind { bytes: 64, wire_ps: 0.0, core: 0, work_ps: 1e6, next: None, link: None, transmission_ps: 0.0 };
    let router = Router {
        tick_ps: Router::usual_tick_ps(&[kind]),
        sources: vec![Source {
            rate_pps: 1e4,
            steps: vec![],
            arrivals: Pattern::Even { phase: 0.0 },
            kinds: vec![vec![(0, 1.0)]],
        }],
        turns: 1,
        kinds: vec![kind],
        cores: vec![Core { queue: 9 }],
        law: Law::Constant,
        polls: Some(Polls { batch: 1, cost_ps: 0.0, interrupts: None }),
        sleep: vec![Sleep { after_ps: 0.0, exit_ps: 2e6 }],
        interruptions: None,
        contention: vec![],
        links: vec![],
        dealers: vec![],
    };
    let program = Program::new(&router, 1, 0).expect("it fits");
    for ticks in [100_000, 30_000] {
        let outcome = lanes(&program, &cut(90, ticks, 1, Vectors::Plain));
        let sum = |of: fn(&Tally) -> u64| outcome.windows.iter().map(of).sum::<u64>();
        let frames = sum(|window| window.forwarded);
        assert_eq!(frames, 90 * ticks / 100_000);
        // The first comes at the beginning, when nobody has been idle.
        assert_eq!(sum(|window| window.latency_ticks), 3000 * frames - 2000);
        assert_eq!(sum(|window| window.wakes[0]), frames - 1);
        assert_eq!(sum(|window| window.asleep_ticks[0]), 90 * ticks - 3000 * frames + 2000);
    }
}
