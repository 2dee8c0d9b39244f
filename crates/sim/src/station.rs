//! A queueing station by recursion: FIFO, c like servers, finite queue (Lindley 1952; Kiefer and Wolfowitz 1955).
//!
//! For one server the n-th accepted frame starts at `max(a_n, d_{n−1})` and departs a service time later. For c
//! servers it starts at `max(a_n, the earliest instant at which a server is free)`. A frame waits exactly as long as
//! its start lies ahead, so the queue is the list of starts that are still to come; starts are in order, departures
//! need not be.

mod column;
mod polled;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::frame::Frame;
use crate::planes::{polls_alone, servers};
use crate::random::stream;
use crate::scenario::Scenario;
use crate::service::Service;

pub use column::{AT_ONCE, Bounds, Coming, Done, Keep, Leaving, Passing, Refused, Served, Stays};
pub use polled::{PollTally, Polled};

/// Identical servers, by the instant at which each is free again.
#[derive(Debug)]
pub struct Servers {
    /// Few servers, in a list.
    free_at: Vec<u64>,
    /// Many servers, in a heap.
    many: Option<Many>,
}

/// Servers too many to scan: those that were busy at the last offer, and until when.
#[derive(Debug)]
struct Many {
    servers: usize,
    busy: BinaryHeap<Reverse<u64>>,
}

/// The most servers of a list.
const FEW: usize = 16;

impl Servers {
    /// So many servers, all free.
    #[must_use]
    pub fn new(servers: usize) -> Self {
        if servers <= FEW {
            return Self { free_at: vec![0; servers], many: None };
        }
        Self { free_at: vec![], many: Some(Many { servers, busy: BinaryHeap::new() }) }
    }

    /// Start and end of work that comes now, for the server that is free first.
    #[inline]
    pub(crate) fn serve(&mut self, at: u64, work: u64) -> Passage {
        if let Some(many) = &mut self.many {
            return many.serve(at, work);
        }
        let (server, free_at) = self.earliest();
        let start = free_at.max(at);
        let done = start.saturating_add(work);
        self.free_at[server] = done;
        Passage { start, done }
    }

    /// Whether a server would start at once.
    pub(crate) fn has_idle(&mut self, at: u64) -> bool {
        match &mut self.many {
            Some(many) => many.has_idle(at),
            None => self.free_at.iter().any(|&free_at| free_at <= at),
        }
    }

    /// The server that is free first. Written for conditional moves, because the choice is unpredictable.
    #[inline]
    fn earliest(&self) -> (usize, u64) {
        let (mut best, mut free_at) = (0, self.free_at[0]);
        for (server, &other) in self.free_at.iter().enumerate().skip(1) {
            let sooner = other < free_at;
            best = if sooner { server } else { best };
            free_at = if sooner { other } else { free_at };
        }
        (best, free_at)
    }
}

impl Many {
    fn has_idle(&mut self, at: u64) -> bool {
        while self.busy.peek().is_some_and(|&Reverse(free_at)| free_at <= at) {
            self.busy.pop();
        }
        self.busy.len() < self.servers
    }

    fn serve(&mut self, at: u64, work: u64) -> Passage {
        while self.busy.peek().is_some_and(|&Reverse(free_at)| free_at <= at) {
            self.busy.pop();
        }
        let first = if self.busy.len() < self.servers { None } else { self.busy.pop() };
        let start = first.map_or(at, |Reverse(free_at)| free_at);
        let done = start.saturating_add(work);
        self.busy.push(Reverse(done));
        Passage { start, done }
    }
}

/// What serves the frames of a node by recursion.
#[derive(Debug)]
pub enum Server {
    /// One by one.
    Station(Box<Station>, Servers),
    /// In polls.
    Polled(Box<Polled>),
}

impl Server {
    /// The server of a node of a scenario.
    #[must_use]
    pub fn of_node(scenario: &Scenario, node: usize) -> Self {
        if node < scenario.model.tasks.len() && polls_alone(scenario, node) {
            return Self::Polled(Box::new(Polled::of_node(scenario, node)));
        }
        Self::Station(Box::new(Station::of_node(scenario, node)), Servers::new(servers(scenario, node)))
    }

    /// Offers frames in a column; see [`Station::pass_column`] and [`Polled::pass_column`].
    pub fn pass_column<C: Coming>(
        &mut self,
        column: &[C],
        is_last: bool,
        keep: &mut impl Keep,
        bounds: Bounds,
        beyond: &mut Vec<(u64, Passage)>,
    ) -> Served {
        match self {
            Self::Station(station, servers) => station.pass_column(servers, column, keep, bounds, beyond),
            Self::Polled(polled) => polled.pass_column(column, is_last, keep, bounds, beyond),
        }
    }

    /// Offers frames, and does what is due before the bound; see [`Station::pass`] and [`Polled::pass`].
    pub fn pass(
        &mut self,
        frames: &[Frame],
        refused: &mut Vec<Frame>,
        beyond: &mut Vec<(u64, Passage)>,
        bounds: Bounds,
        sink: &mut impl Sink,
    ) {
        match self {
            Self::Station(station, servers) => {
                station.pass(servers, frames, refused, beyond, bounds.segment_end_ps, sink);
            }
            Self::Polled(polled) => polled.pass(frames, bounds, refused, beyond, sink),
        }
    }
}

/// State of a station: a finite queue in front of servers, which it may share with other stations.
#[derive(Debug)]
pub struct Station {
    starts: Starts,
    queue: usize,
    /// Work of the last frame size, where sizes decide it.
    known: (u32, u64),
    /// Work drawn ahead, where sizes do not matter, and how much of it was done.
    ahead: Vec<u64>,
    drawn: usize,
    tally: Tally,
    slowness: f64,
    service: Service,
}

/// A frame's way through a station, picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// Start of service.
    pub start: u64,
    /// End of service.
    pub done: u64,
}

/// Starts of the frames that wait, and of some that have started: these are removed when room is short, many at once,
/// which is cheaper than one by one. A ring whose length is a power of two.
#[derive(Debug)]
pub(crate) struct Starts {
    ring: Vec<u64>,
    head: u64,
    tail: u64,
}

/// Receives the frames that pass a station: each frame as it arrived, with the start and end of its service.
///
/// A trait and not a closure, because its one method must be inlined into the loop of the station.
pub trait Sink {
    /// Receives a frame.
    fn take(&mut self, frame: &Frame, start: u64, done: u64);
}

/// The work of a station since the last report.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Sum of the waiting times of the frames that were done by the limits given, picoseconds.
    pub waited_ps: u64,
    /// Their work, picoseconds.
    pub busy_ps: u64,
}

impl Starts {
    /// What stands for starts that are elsewhere for a moment.
    fn none() -> Self {
        Self { ring: vec![], head: 0, tail: 0 }
    }

    /// None yet, with some room for those of a queue of so many frames.
    pub(crate) fn new(queue: usize) -> Self {
        Self { ring: vec![0; queue.clamp(8, 1024).next_power_of_two()], head: 0, tail: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        (self.tail - self.head) as usize
    }

    /// Forgets the frames that have started. Departures come before arrivals at one instant (S3), so a frame that
    /// starts right now has left the queue.
    #[inline]
    pub(crate) fn forget(&mut self, now: u64) {
        let mask = self.ring.len() - 1;
        while self.head != self.tail && self.ring[self.head as usize & mask] <= now {
            self.head += 1;
        }
    }

    /// Remembers a start, if it lies ahead. There must be room.
    #[inline]
    pub(crate) fn remember(&mut self, start: u64, now: u64) {
        let mask = self.ring.len() - 1;
        self.ring[self.tail as usize & mask] = start;
        self.tail += u64::from(start > now);
    }

    /// Makes room for `more` starts.
    #[inline]
    pub(crate) fn reserve(&mut self, more: usize, now: u64) {
        if self.len() + more >= self.ring.len() {
            self.make_room(more, now);
        }
    }

    #[cold]
    fn make_room(&mut self, more: usize, now: u64) {
        self.forget(now);
        let mask = self.ring.len() - 1;
        let mut ring: Vec<u64> = (self.head..self.tail).map(|i| self.ring[i as usize & mask]).collect();
        (self.head, self.tail) = (0, ring.len() as u64);
        // At most half full, so that the next call has starts to remove.
        ring.resize((2 * (ring.len() + more)).next_power_of_two().max(self.ring.len()), 0);
        self.ring = ring;
    }
}

impl Station {
    /// A station whose work takes `slowness` times as long as the service says, with room for `queue` frames.
    #[must_use]
    pub fn new(service: Service, slowness: f64, queue: usize) -> Self {
        let (starts, known, tally) = (Starts::new(queue), (u32::MAX, 0), Tally::default());
        Self { starts, queue, known, ahead: vec![], drawn: 0, tally, slowness, service }
    }

    /// The station of a node of a scenario: a task unit, or a port on its way out.
    #[must_use]
    pub fn of_node(scenario: &Scenario, node: usize) -> Self {
        let model = &scenario.model;
        let rng = stream(scenario.run.seed, scenario.run.replication, "service", node as u64);
        let Some(task) = model.tasks.get(node) else {
            let port = &model.ports[node - model.tasks.len()];
            return Self::new(Service::link(port.link_bps, rng), 1.0, port.tx_ring);
        };
        let slowness = task.needs.first().map_or(1.0, |need| {
            let unit = task.pin.first().copied().unwrap_or(0);
            1.0 / model.pools[need.pool].speed[unit]
        });
        Self::new(Service::new(task, rng).interrupted(scenario, node), slowness, task.queue)
    }

    /// Offers a frame that arrives at `at`, no earlier than the last one; none if the queue is full.
    ///
    /// The wait and the work of a frame that is done by `limit` are tallied; the caller books those of the others.
    #[expect(clippy::inline_always, reason = "it is the body of two hot loops")]
    #[inline(always)]
    pub fn offer(&mut self, servers: &mut Servers, at: u64, bytes: u32, limit: u64) -> Option<Passage> {
        if self.starts.len() >= self.queue {
            self.starts.forget(at);
            if self.starts.len() >= self.queue && (self.queue > 0 || !servers.has_idle(at)) {
                return None;
            }
        }
        self.starts.reserve(1, at);
        let work = self.work(bytes);
        let Passage { start, done } = servers.serve(at, work);
        self.starts.remember(start, at);
        if done <= limit {
            self.tally.waited_ps += start - at;
            self.tally.busy_ps += work;
        }
        Some(Passage { start, done })
    }

    /// Offers frames in order of arrival, none earlier than the last one; see [`Self::offer`].
    ///
    /// Those that find room go to the sink; those that do not go to `refused`. Arrival, start and end of those that are
    /// done after `limit` go to `beyond`.
    pub fn pass(
        &mut self,
        servers: &mut Servers,
        frames: &[Frame],
        refused: &mut Vec<Frame>,
        beyond: &mut Vec<(u64, Passage)>,
        limit: u64,
        sink: &mut impl Sink,
    ) {
        // One server and work that depends on the size alone is the common case; it runs on registers.
        if servers.free_at.len() == 1 && self.service.constant_ps(64).is_some() {
            return self.pass_even(servers, frames, refused, beyond, limit, sink);
        }
        for frame in frames {
            let Some(Passage { start, done }) = self.offer(servers, frame.at, frame.bytes, limit) else {
                refused.push(*frame);
                continue;
            };
            if done > limit {
                beyond.push((frame.at, Passage { start, done }));
            }
            sink.take(frame, start, done);
        }
    }

    /// [`Self::pass`] for one server whose work depends on the size alone.
    fn pass_even(
        &mut self,
        servers: &mut Servers,
        frames: &[Frame],
        refused: &mut Vec<Frame>,
        beyond: &mut Vec<(u64, Passage)>,
        limit: u64,
        sink: &mut impl Sink,
    ) {
        self.starts.reserve(frames.len(), frames.first().map_or(0, |frame| frame.at));
        let ring = self.starts.ring.as_mut_slice();
        let mask = ring.len() - 1;
        let (mut head, mut tail) = (self.starts.head as usize, self.starts.tail as usize);
        let (mut known, queue, mut tally, mut free_at) = (self.known, self.queue, self.tally, servers.free_at[0]);
        for frame in frames {
            let at = frame.at;
            if tail - head >= queue {
                while head != tail && ring[head & mask] <= at {
                    head += 1;
                }
                if tail - head >= queue && (queue > 0 || free_at > at) {
                    refused.push(*frame);
                    continue;
                }
            }
            if frame.bytes != known.0 {
                let constant = self.service.constant_ps(frame.bytes).expect("the work of every size is constant");
                known = (frame.bytes, (constant * self.slowness + 0.5) as u64);
            }
            let start = free_at.max(at);
            free_at = start.saturating_add(known.1);
            // A frame that starts at once never waits, so it needs no entry in the ring.
            ring[tail & mask] = start;
            tail += usize::from(start > at);
            if free_at <= limit {
                tally.waited_ps += start - at;
                tally.busy_ps += known.1;
            } else {
                beyond.push((at, Passage { start, done: free_at }));
            }
            sink.take(frame, start, free_at);
        }
        (self.starts.head, self.starts.tail, servers.free_at[0]) = (head as u64, tail as u64, free_at);
        (self.known, self.tally) = (known, tally);
    }

    /// The work since the last call.
    pub fn tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    #[inline]
    fn work(&mut self, bytes: u32) -> u64 {
        if bytes == self.known.0 {
            return self.known.1;
        }
        if let Some(&work) = self.ahead.get(self.drawn) {
            self.drawn += 1;
            return work;
        }
        self.work_anew(bytes)
    }

    /// Work of a size that was not known, or that is not drawn ahead.
    #[inline(never)]
    fn work_anew(&mut self, bytes: u32) -> u64 {
        if let Some(constant) = self.service.constant_ps(bytes) {
            self.known = (bytes, (constant * self.slowness + 0.5) as u64);
            return self.known.1;
        }
        if self.service.depends_on_size() {
            return self.draw(bytes);
        }
        let slowness = self.slowness;
        self.service.draw_many(&mut self.ahead, |service, drawn| service.whole_ps(drawn, slowness));
        self.drawn = 1;
        self.ahead[0]
    }

    #[inline]
    fn draw(&mut self, bytes: u32) -> u64 {
        let drawn = self.service.draw_ps(bytes);
        self.service.whole_ps(drawn, self.slowness)
    }
}
