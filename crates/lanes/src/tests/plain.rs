//! A plain simulation of what lanes run, event by event, with the same draws.

use std::collections::VecDeque;

use crate::draw::{exponential, scaled, threefry};
use crate::kept::{CoreState, LinkState, ServedState, SourceState, State};
use crate::pace::{Bursts, FAR, Pace, Rest};
use crate::program::{NO_DEALER, NO_LINK, NO_NEXT, NUMBER_BITS, Program, TICK_BITS, TimeProgram};
use crate::tally::{Histograms, Tally, bin};

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
    /// Where frames come in bursts: frames of the present one that are left behind the next, and its instant, 32 fraction
    /// bits.
    left: u32,
    due: u128,
    place: u32,
    /// In 256ths of a tick.
    last_fine: Option<u64>,
    next: Frame,
}

impl<'a> Arrivals<'a> {
    fn new(program: &'a Program, source: usize) -> Self {
        let next = Frame::at(0, 0, None);
        let (number, left, due) = (0, 0, 0);
        let mut arrivals = Self {
            program,
            source,
            cell: 0,
            begin: 0,
            number,
            ideal: 0,
            count: 0,
            rest: 0,
            left,
            due,
            place: 0,
            last_fine: None,
            next,
        };
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
                self.place = (self.count % u64::from(source.places)) as u32;
                self.space(self.kind(what, self.place as usize));
                return;
            }
            Pace::Bursts(bursts) => {
                self.draw_in_burst(bursts);
                return;
            }
            Pace::Recorded(recorded) => {
                let frame = self.count as usize;
                (self.number, self.rest, self.place) = (frame as u32, recorded.rest[frame], recorded.place[frame]);
                self.ideal = recorded.at[frame];
                let own = (self.source as u32) << NUMBER_BITS;
                let [_, what] = threefry(self.program.arrival, [self.number >> 24, (self.number & 0xff_ffff) | own]);
                self.space(self.kind(what, self.place as usize));
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

    /// The next frame of the burst, or the first of the next one.
    fn draw_in_burst(&mut self, bursts: &Bursts) {
        let opens = self.count == 0 || self.left == 0;
        if self.count > 0 {
            (self.cell, self.number) = if opens { (self.cell + 1, 0) } else { (self.cell, self.number) };
        }
        let own = (self.source as u32) << NUMBER_BITS;
        let word = |number| threefry(bursts.key, [self.cell as u32, number | own]);
        let places = u64::from(self.program.sources[self.source].places);
        let mut place = (self.count % places) as usize;
        match bursts.rest {
            Rest::Random { pause, bits, factor, shift } => {
                let [when, many] = word(0);
                self.due += u128::from(bursts.gap);
                if opens {
                    let ticks = (u64::from(exponential(when)) * u64::from(pause)) >> (27 + bits);
                    self.due += u128::from(ticks) << 32;
                    self.left = ((u64::from(exponential(many)) * u64::from(factor)) >> (32 + shift)) as u32;
                } else {
                    self.left -= 1;
                }
                place = ((u64::from(word(1)[0]) * places) >> 32) as usize;
            }
            Rest::Fixed { period, frames } => {
                self.due = u128::from(self.count / u64::from(frames)) * u128::from(period);
                self.left = frames - 1 - (self.count % u64::from(frames)) as u32;
            }
        }
        (self.ideal, self.rest) = ((self.due >> 32) as u64, self.due as u32);
        let [_, what] = threefry(self.program.arrival, [self.cell as u32, self.number | own]);
        self.place = place as u32;
        self.space(self.kind(what, place));
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
            let pace = &self.program.sources[self.source].pace;
            let knows_part = matches!(pace, Pace::Even { .. } | Pace::Recorded(_));
            self.next = Frame::at(self.ideal, kind, knows_part.then_some(self.rest >> 24));
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
        let is_far = self.next.came > at + u64::from(FAR);
        SourceState {
            next: if is_far { FAR } else { (self.next.came - at) as u32 },
            fine: self.last_fine.unwrap_or(0) as u32 & 255,
            kind: self.next.kind as u32,
            ideal: if is_far { FAR } else { self.ideal.wrapping_sub(at) as u32 },
            cell: self.cell as u32,
            number: self.number,
            rest: self.rest,
            place: self.place,
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
    /// Where servers are shared, or several: services that are under way, the instant of the last start, and how many began
    /// then.
    served: Vec<Service>,
    started: Option<u64>,
    began_then: u32,
}

/// A service at one of several servers.
struct Service {
    frame: Frame,
    began: u64,
    done: u64,
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

pub(super) struct Plain<'a> {
    program: &'a Program,
    sources: Vec<Arrivals<'a>>,
    cores: Vec<Station>,
    links: Vec<Out>,
    /// Frames that were dealt, and those that each dealer between cores dealt.
    dealt: usize,
    dealers: Vec<u32>,
    pub(super) tally: Tally,
    pub(super) histograms: Histograms,
}

impl<'a> Plain<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
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

    pub(super) fn run_until(&mut self, end: u64) {
        loop {
            let working = self.cores.iter().enumerate().filter(|(_, core)| core.does != Does::Nothing);
            let ends = working.map(|(number, core)| (core.done, 0, number));
            let served = |core: &Station| core.served.iter().map(|service| service.done).min();
            let of_teams = self.cores.iter().enumerate().filter_map(|(number, core)| Some((served(core)?, 0, number)));
            let ends = ends.chain(of_teams).min();
            let comes = self.sources.iter().enumerate().map(|(number, source)| (source.next.came, 1, number)).min();
            let Some((at, what, number)) = ends.into_iter().chain(comes).min() else { return };
            if at >= end {
                break;
            }
            match (what, self.cores.get(number).map(|core| core.does)) {
                (1, _) => self.come(number),
                (_, Some(_)) if !self.cores[number].served.is_empty() => self.end_in_team(number, at),
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

    fn polls(&self) -> &'a crate::program::PollProgram {
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
        match self.program.polls_at(number) {
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
        if let Some((team, _)) = self.program.team_at(number) {
            self.reach_team(team, number, frame, at);
            return;
        }
        let core = &mut self.cores[number];
        let room = self.program.cores[number].room as usize;
        let has_room =
            core.queue.len() < room || (core.does == Does::Nothing && self.program.polls_at(number).is_none());
        if !has_room {
            self.tally.lost[number] += 1;
            self.note_loss(frame.came);
            return;
        }
        core.queue.push_back(frame);
        match core.does {
            Does::Nothing if self.program.polls_at(number).is_some_and(|polls| polls.interrupts) => {
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
        if self.program.struck.get(number) == Some(&0) {
            return 0;
        }
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
        let polls = self.program.polls_at(number);
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
        let contends = |number: usize| self.program.contends.get(number).is_none_or(|&mask| mask != 0);
        let works = |core: &Station| matches!(core.does, Does::Serves | Does::Interrupted);
        let those = self.cores.iter().enumerate().filter(|&(number, _)| contends(number));
        those.map(|(_, core)| usize::from(works(core)) + core.served.len()).sum()
    }

    /// A frame comes to a core that shares servers, or has several.
    fn reach_team(&mut self, team: usize, number: usize, frame: Frame, at: u64) {
        let team = &self.program.teams[team];
        let core_of = |frame: &Frame| self.program.core_of[frame.kind] as usize;
        let leader = &mut self.cores[team.leader];
        let waiting = leader.queue.iter().filter(|other| core_of(other) == number).count();
        if leader.served.len() < team.servers {
            self.start_in_team(team.leader, frame, at, true);
        } else if waiting < self.program.cores[number].room as usize {
            leader.queue.push_back(frame);
        } else {
            self.tally.lost[number] += 1;
            self.note_loss(frame.came);
        }
    }

    fn start_in_team(&mut self, leader: usize, frame: Frame, at: u64, from_idle: bool) {
        let core = &mut self.cores[leader];
        core.began_then = if core.started == Some(at) { core.began_then + 1 } else { 0 };
        core.started = Some(at);
        let before = core.began_then;
        core.served.push(Service { frame, began: at, done: at });
        let factors = self.program.factors as usize;
        let work = self.program.work_of[frame.kind * factors + self.busy().clamp(1, factors) - 1];
        let [low, high] = counter(leader, at);
        let [random, rounding] = threefry(self.program.service, [low, high ^ (before << 26)]);
        let law = &self.program.laws[self.program.law_of[leader] as usize];
        let by_chance = (rounding >> 8) & 255;
        let part = if from_idle { frame.part.unwrap_or(by_chance) } else { 0 };
        let fine = scaled(work, law.factor(random), law.bits());
        let service = u64::from((fine + (rounding & 255) + part) / 256).max(1);
        self.tally.busy_ticks[self.program.core_of[frame.kind] as usize] += service;
        self.cores[leader].served.last_mut().expect("it has begun").done = at + service;
    }

    fn end_in_team(&mut self, leader: usize, at: u64) {
        let core = &mut self.cores[leader];
        let ended = core.served.iter().position(|service| service.done == at).expect("one ends");
        let Service { frame, began, .. } = core.served.remove(ended);
        if let Some(next) = core.queue.pop_front() {
            self.start_in_team(leader, next, at, false);
        }
        self.depart(self.program.core_of[frame.kind] as usize, frame, began, at);
    }

    fn note_loss(&mut self, came: u64) {
        let (first, last) = self.tally.lost_at.unwrap_or((came, came));
        self.tally.lost_at = Some((first.min(came), last.max(came)));
    }

    fn start(&mut self, number: usize, at: u64, extra: u32, from_idle: bool) {
        let busy = self.busy();
        let kind = self.cores[number].taken[0].kind;
        let factors = self.program.factors as usize;
        let work = self.program.work_of[kind * factors + busy.clamp(1, factors) - 1];
        let [random, rounding] = threefry(self.program.service, counter(number, at));
        let law = &self.program.laws[self.program.law_of[number] as usize];
        let fine = scaled(work, law.factor(random), law.bits()) + extra;
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
        let polls = self.program.polls_at(number);
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
        self.depart(number, frame, began, at);
    }

    /// A frame leaves its core.
    fn depart(&mut self, number: usize, frame: Frame, began: u64, at: u64) {
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

    pub(super) fn state(&self, at: u64) -> State {
        let polls = self.program.polls.as_ref();
        let moderation = polls.map_or(0, |polls| u64::from(polls.moderation));
        let core = |(number, core): (usize, &Station)| {
            let polls = self.program.polls_at(number);
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
                served: (core.served.iter())
                    .map(|service| ServedState {
                        done: (service.done - at) as u32,
                        began: (at - service.began) as u32,
                        kind: service.frame.kind as u32,
                        came: (at - service.frame.came) as u32,
                        reached: (at - service.frame.reached) as u32,
                        waited: service.frame.waited as u32,
                    })
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
            cores: self.cores.iter().enumerate().map(core).collect(),
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
