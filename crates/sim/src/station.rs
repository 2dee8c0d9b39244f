//! A queueing station by recursion: FIFO, c like servers, finite queue (Lindley 1952; Kiefer and Wolfowitz 1955).
//!
//! For one server the n-th accepted frame starts at `max(a_n, d_{n−1})` and departs a service time later. For c
//! servers it starts at `max(a_n, the earliest instant at which a server is free)`. A frame waits exactly as long as
//! its start lies ahead, so the queue is the list of starts that are still to come; starts are in order, departures
//! need not be.

use crate::frame::Frame;
use crate::random::stream;
use crate::scenario::Scenario;
use crate::service::Service;

/// Like servers: when each is free again.
#[derive(Debug)]
pub struct Servers {
    first: u64,
    others: Vec<u64>,
}

impl Servers {
    /// So many servers, all free.
    #[must_use]
    pub fn new(servers: usize) -> Self {
        Self { first: 0, others: vec![0; servers - 1] }
    }

    #[inline]
    fn earliest(&mut self) -> &mut u64 {
        let mut best = &mut self.first;
        for other in &mut self.others {
            if *other < *best {
                best = other;
            }
        }
        best
    }
}

/// State of a station: a finite queue in front of servers, which it may share with other stations.
#[derive(Debug)]
pub struct Station {
    starts: Starts,
    queue: u64,
    /// Work of the last frame size, where sizes decide it.
    known: (u32, u64),
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

/// Starts of the frames that wait: a ring whose length is a power of two.
#[derive(Debug)]
struct Starts {
    ring: Vec<u64>,
    head: u64,
    tail: u64,
}

/// Where the frames that pass a station go: told of each frame as it arrived, and when its service began and ended.
///
/// A trait and not a closure, because its one method must be inlined into the loop of the station.
pub trait Sink {
    /// A frame passed.
    fn take(&mut self, frame: &Frame, start: u64, done: u64);
}

/// What a station did since it was last asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Sum of the waiting times, picoseconds.
    pub waited_ps: u64,
    /// Work that ended before the limits given, picoseconds.
    pub busy_ps: u64,
    /// Most frames that waited.
    pub longest: u64,
}

impl Starts {
    #[inline]
    fn len(&self) -> u64 {
        self.tail - self.head
    }

    /// Forgets the frames that have started. Departures come before arrivals at one instant (S3), so a frame that
    /// starts right now has left the queue.
    #[inline]
    fn forget(&mut self, now: u64) {
        let mask = self.ring.len() - 1;
        while self.head != self.tail && self.ring[self.head as usize & mask] <= now {
            self.head += 1;
        }
    }

    #[inline]
    fn push(&mut self, start: u64) {
        if self.len() as usize == self.ring.len() {
            self.grow();
        }
        let mask = self.ring.len() - 1;
        self.ring[self.tail as usize & mask] = start;
        self.tail += 1;
    }

    /// Makes room for `more` starts beyond those that wait.
    fn reserve(&mut self, more: usize) {
        while self.ring.len() <= self.len() as usize + more {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let mask = self.ring.len() - 1;
        let mut ring: Vec<u64> = (self.head..self.tail).map(|i| self.ring[i as usize & mask]).collect();
        (self.head, self.tail) = (0, ring.len() as u64);
        ring.resize(2 * self.ring.len(), 0);
        self.ring = ring;
    }
}

impl Station {
    /// A station whose work takes `slowness` times as long as the service says, with room for `queue` frames.
    #[must_use]
    pub fn new(service: Service, slowness: f64, queue: usize) -> Self {
        let starts = Starts { ring: vec![0; queue.clamp(8, 1024).next_power_of_two()], head: 0, tail: 0 };
        Self { starts, queue: queue as u64, known: (u32::MAX, 0), tally: Tally::default(), slowness, service }
    }

    /// The station of a node of a scenario: a task unit, or a port on its way out.
    #[must_use]
    pub fn of_node(scenario: &Scenario, node: usize) -> Self {
        let model = &scenario.model;
        let rng = stream(scenario.run.seed, scenario.run.replication, "service", node);
        let Some(task) = model.tasks.get(node) else {
            let port = &model.ports[node - model.tasks.len()];
            return Self::new(Service::link(port.link_bps, rng), 1.0, port.tx_ring);
        };
        let slowness = task.needs.first().map_or(1.0, |need| {
            let unit = task.pin.first().copied().unwrap_or(0);
            1.0 / model.pools[need.pool].speed[unit]
        });
        Self::new(Service::new(task, rng), slowness, task.queue)
    }

    /// Offers a frame that arrives at `at`, no earlier than the last one; none if the queue is full.
    ///
    /// Work that ends by `limit` is tallied; the caller books the rest.
    #[inline]
    pub fn offer(&mut self, servers: &mut Servers, at: u64, bytes: u32, limit: u64) -> Option<Passage> {
        self.starts.forget(at);
        if self.starts.len() >= self.queue {
            return None;
        }
        let work = if bytes == self.known.0 { self.known.1 } else { self.work(bytes) };
        let free_at = servers.earliest();
        let start = (*free_at).max(at);
        let done = start + work;
        *free_at = done;
        if start > at {
            self.starts.push(start);
            self.tally.longest = self.tally.longest.max(self.starts.len());
            self.tally.waited_ps += start - at;
        }
        if done <= limit {
            self.tally.busy_ps += work;
        }
        Some(Passage { start, done })
    }

    /// Offers frames in order of arrival, none earlier than the last one; see [`Self::offer`].
    ///
    /// Those that find room go to the sink; those that do not go to `refused`.
    /// Work that ends after `limit` goes to `beyond`, from start to end.
    pub fn pass(
        &mut self,
        servers: &mut Servers,
        frames: &[Frame],
        refused: &mut Vec<Frame>,
        beyond: &mut Vec<(u64, u64)>,
        limit: u64,
        sink: &mut impl Sink,
    ) {
        // One server and work that depends on the size alone is the common case; it runs on registers.
        if servers.others.is_empty() && self.service.constant_ps(64).is_some() {
            return self.pass_even(servers, frames, refused, beyond, limit, sink);
        }
        for frame in frames {
            let Some(Passage { start, done }) = self.offer(servers, frame.at, frame.bytes, limit) else {
                refused.push(*frame);
                continue;
            };
            if done > limit {
                beyond.push((start, done));
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
        beyond: &mut Vec<(u64, u64)>,
        limit: u64,
        sink: &mut impl Sink,
    ) {
        self.starts.reserve(frames.len());
        let ring = self.starts.ring.as_mut_slice();
        let mask = ring.len() - 1;
        let (mut head, mut tail, mut free_at) = (self.starts.head as usize, self.starts.tail as usize, servers.first);
        let (mut known, queue, mut tally) = (self.known, self.queue as usize, self.tally);
        for frame in frames {
            let at = frame.at;
            while head != tail && ring[head & mask] <= at {
                head += 1;
            }
            if tail - head >= queue {
                refused.push(*frame);
                continue;
            }
            if frame.bytes != known.0 {
                let constant = self.service.constant_ps(frame.bytes).expect("the work of every size is constant");
                known = (frame.bytes, (constant * self.slowness + 0.5) as u64);
            }
            let start = free_at.max(at);
            free_at = start + known.1;
            ring[tail & mask] = start;
            // A frame that starts at once never waits: it stays outside of the ring.
            tail += usize::from(start > at);
            tally.longest = tally.longest.max((tail - head) as u64);
            tally.waited_ps += start - at;
            if free_at <= limit {
                tally.busy_ps += known.1;
            } else {
                beyond.push((start, free_at));
            }
            sink.take(frame, start, free_at);
        }
        (self.starts.head, self.starts.tail, servers.first) = (head as u64, tail as u64, free_at);
        (self.known, self.tally) = (known, tally);
    }

    /// What was done since the last call.
    pub fn tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    fn work(&mut self, bytes: u32) -> u64 {
        if let Some(constant) = self.service.constant_ps(bytes) {
            self.known = (bytes, (constant * self.slowness + 0.5) as u64);
            return self.known.1;
        }
        let drawn = self.service.draw_ps(bytes) + self.service.per_batch_ps();
        // Through i64, which is one instruction; the check keeps work far below 2^63 ps.
        (drawn * self.slowness + 0.5) as i64 as u64
    }
}
