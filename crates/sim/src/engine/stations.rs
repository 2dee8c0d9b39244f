//! Stations inside the events: their departures are known on arrival, so that a frame costs one event or none.

use std::collections::VecDeque;

use super::frames::Held;
use super::{Engine, REFUSED};
use crate::frame::Frame;
use crate::graph::{EXIT, Graph, Next};
use crate::ledger::Ledger;
use crate::planes::Plane;
use crate::station::{Passage, Servers};

/// Servers whose departures are known on arrival (see [`crate::planes::Group`]).
#[derive(Debug)]
pub(super) struct Group {
    pub(super) servers: Servers,
    /// Frames inside, in order of departure.
    pub(super) leaving: VecDeque<Leaving>,
}

/// A frame whose departure from a station is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    pub(super) at: u64,
    pub(super) held: Held,
    /// The node that serves it.
    pub(super) node: u32,
}

/// Frames that are looked at one by one.
const NEAR: usize = 8;

/// The next step of a frame whose departure from a station is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Its next node has other feeders too: it waits for its turn in the calendar.
    Later,
    /// Its next node is a station that only this one feeds, in order: it can go through at once.
    Chain(u32),
    /// It leaves the events.
    Out,
}

impl Engine {
    /// Passes a frame through a station, and through the stations behind that only this one feeds.
    ///
    /// `place` is its place, if it was inside before. The changing values are kept apart from the frame, because
    /// copying it right after a change stalls on store forwarding.
    #[inline]
    pub(super) fn pass(
        &mut self,
        mut node: u32,
        frame: &Frame,
        place: Option<Held>,
        graph: &mut Graph,
        ledger: &mut Ledger,
    ) {
        let limit = ledger.segment_end();
        let (mut at, mut waited, mut before) = (frame.at, frame.waited, None);
        loop {
            let (number, station) = self.stations[node as usize].as_mut().expect("arrive saw it");
            let group = &mut self.groups[*number as usize];
            let Some(Passage { start, done }) = station.offer(&mut group.servers, at, frame.bytes, limit) else {
                self.refuse(node, &Frame { at, waited, ..*frame }, place, before, ledger);
                return;
            };
            ledger.hop(node, frame, at, start);
            if done > limit {
                ledger.wait(node as usize, at, start);
                ledger.work(node as usize, start, done);
            }
            if self.is_port[node as usize] {
                self.frames.forget(place);
                ledger.forward(&Frame { at, waited, ..*frame }, start - at, start, done);
                return;
            }
            (at, waited) = (done, waited + (start - at));
            match self.ways[node as usize] {
                // No departure after the end of the trial: such frames stay inside.
                Way::Chain(next) if done < self.end => {
                    before = Some(node);
                    node = next;
                }
                Way::Out => {
                    self.frames.forget(place);
                    let next = graph.onward(node, frame.flow, frame.seq);
                    self.outbox.push((Frame { at, waited, ..*frame }, next));
                    return;
                }
                Way::Chain(_) | Way::Later => {
                    let slot = self.first_group_slot + *number;
                    let held = self.frames.put_back(place, frame, at, waited);
                    if group.insert(done, held, node) {
                        self.calendar.schedule(slot, done, self.priority[node as usize]);
                    }
                    return;
                }
            }
        }
    }

    /// Drops a frame that finds no room; `before` is the station that it has just passed, ahead of time.
    #[inline(never)]
    fn refuse(&mut self, node: u32, frame: &Frame, place: Option<Held>, before: Option<u32>, ledger: &mut Ledger) {
        if let Some(held) = place.filter(|&held| self.windows.is_carrying(held)) {
            if let Some(before) = before {
                self.frames[held] = *frame;
                self.refuse_later(before, held, frame.at);
                return;
            }
            self.drop_units(held, ledger);
        }
        self.frames.forget(place);
        ledger.drop_frame(node as usize, frame);
    }

    /// Schedules the drop of a frame after the station `before`: it gives back its units only then.
    #[cold]
    fn refuse_later(&mut self, before: u32, held: Held, at: u64) {
        let (number, _) = self.stations[before as usize].as_ref().expect("the frame went through it");
        if self.groups[*number as usize].insert(at, held, before | REFUSED) {
            self.calendar.schedule(self.first_group_slot + number, at, self.priority[before as usize]);
        }
    }

    /// Handles the departure of the first frame of a group.
    #[inline]
    pub(super) fn depart(&mut self, slot: u32, graph: &mut Graph, ledger: &mut Ledger) -> (Held, u32) {
        let group = &mut self.groups[(slot - self.first_group_slot) as usize];
        let Leaving { held, node, .. } = group.leaving.pop_front().expect("a scheduled group has a frame");
        match group.leaving.front() {
            Some(next) => self.calendar.schedule(slot, next.at, self.priority[(next.node & !REFUSED) as usize]),
            None => self.calendar.cancel(slot),
        }
        let (station, refused) = (node & !REFUSED, node & REFUSED);
        if self.windows.any && refused == 0 {
            self.pass_window(held, station, ledger);
        }
        let frame = &self.frames[held];
        (held, graph.onward(station, frame.flow, frame.seq) | refused)
    }
}

impl Group {
    /// Inserts a frame by departure; true if it departs first.
    #[expect(clippy::inline_always, reason = "a frame handed over in memory stalls on store forwarding")]
    #[inline(always)]
    pub(super) fn insert(&mut self, at: u64, held: Held, node: u32) -> bool {
        match self.leaving.back() {
            Some(last) if last.at > at => self.insert_before(at, held, node),
            last => {
                let is_first = last.is_none();
                self.leaving.push_back(Leaving { at, held, node });
                is_first
            }
        }
    }

    /// Several servers may finish out of order, mostly by little: the search for the position starts at the back.
    #[inline(never)]
    fn insert_before(&mut self, at: u64, held: Held, node: u32) -> bool {
        let mut position = self.leaving.len();
        let near = position.saturating_sub(NEAR);
        while position > near && self.leaving[position - 1].at > at {
            position -= 1;
        }
        if position == near {
            position = self.leaving.partition_point(|other| other.at <= at);
        }
        self.leaving.insert(position, Leaving { at, held, node });
        position == 0
    }
}

/// The way on from each node; `ends` are task units where frames give units back, `unsure` if ways change during the
/// trial.
pub(super) fn ways(graph: &Graph, ends: &[bool], mut unsure: bool) -> Vec<Way> {
    let nodes = graph.planes.len();
    let mut feeders = vec![0_usize; nodes];
    for node in (0..nodes).filter(|&node| graph.planes[node] != Plane::Passthrough) {
        match graph.next_of(node) {
            Next::Fixed(EXIT) => {}
            Next::Fixed(next) => feeders[*next as usize] += 1,
            Next::ByFlow(table) => {
                let mut targets: Vec<u32> = table.iter().copied().filter(|&next| next != EXIT).collect();
                targets.sort_unstable();
                targets.dedup();
                for next in targets {
                    feeders[next as usize] += 1;
                }
            }
            Next::Dynamic => unsure = true,
        }
    }
    for node in graph.first_nodes() {
        match feeders.get_mut(node as usize) {
            Some(count) => *count += 1,
            None => unsure |= node != EXIT,
        }
    }
    let inside = |node: u32| node != EXIT && graph.planes[node as usize] == Plane::Events;
    let alone = |group: u32| graph.grouped.iter().filter(|&&other| other == Some(group)).count() == 1;
    (0..nodes)
        .map(|node| match (graph.grouped[node], graph.next_of(node)) {
            (None, _) | (_, Next::Dynamic) => Way::Later,
            _ if ends.get(node).is_some_and(|&end| end) => Way::Later,
            (_, Next::ByFlow(table)) if table.iter().any(|&next| inside(next)) => Way::Later,
            (_, Next::Fixed(next)) if !inside(*next) => Way::Out,
            (_, Next::ByFlow(_)) => Way::Out,
            (Some(group), Next::Fixed(next)) => match graph.grouped[*next as usize] {
                // One server keeps the order; a group of its own has no other arrivals.
                Some(behind)
                    if !unsure
                        && graph.groups[group as usize].servers == 1
                        && feeders[*next as usize] == 1
                        && alone(behind) =>
                {
                    Way::Chain(*next)
                }
                _ => Way::Later,
            },
        })
        .collect()
}
