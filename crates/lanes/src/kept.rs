//! The state of one trajectory as plain data: what seams are proved by, and what a trial goes on from.

use serde::{Deserialize, Serialize};

use crate::pace::Pace;
use crate::program::{Program, Ring};
use crate::state::{CoreLanes, Lanes, high, low, phase};
use crate::words::Word;

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

impl<W: Word> Lanes<W> {
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
    /// Low word of the instant from which a lane's core has been idle, where that matters.
    fn idle_since(&self, program: &Program, what: u32, lane: usize) -> Option<u32> {
        (!program.sleep.is_empty() && matches!(what, phase::IDLE | phase::WAITS)).then(|| self.idle.get(lane))
    }
}
