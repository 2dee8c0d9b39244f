//! Frames that meet one server, many at a time, where nobody asks for any of them.
//!
//! What happens to some of them is worked out in a loop that does nothing else. Sums, histograms and the way on follow in loops
//! of their own. That takes fewer instructions than [`Station::pass`], and none of them waits for a sum in memory.

use super::{Passage, Servers, Starts, Station};
use crate::ledger::{Ledger, Mini};
use crate::source::Arrival;

/// Frames of a loop, a power of two: what they leave behind stays in the fastest cache.
pub const AT_ONCE: usize = 256;

/// A frame between two nodes: no number, because in order of coming to the router frames are known by instant and source.
#[derive(Debug, Clone, Copy, Default)]
pub struct Passing {
    /// When it reached the present node, picoseconds.
    pub at: u64,
    /// Last bit in (S9), picoseconds.
    pub arrival: u64,
    /// Time spent in queues so far, picoseconds.
    pub waited: u64,
    /// Index of its flow.
    pub flow: u32,
    /// Size in bytes, FCS included (S1).
    pub bytes: u32,
}

/// A frame in a column.
pub trait Coming {
    /// The frame as it comes to the station.
    fn passing(&self) -> Passing;
}

impl Coming for Arrival {
    #[inline]
    fn passing(&self) -> Passing {
        let Self { at, bytes, flow } = *self;
        Passing { at, arrival: at, waited: 0, flow, bytes }
    }
}

impl Coming for Passing {
    #[inline]
    fn passing(&self) -> Passing {
        *self
    }
}

/// Receives the frames that a station has served, in order, a loop of them at a time.
pub trait Keep {
    /// Receives one, number `slot` of its loop: as it came, its place in the column, start and end of its service.
    fn keep(&mut self, slot: usize, frame: &Passing, place: usize, start_ps: u64, end_ps: u64);

    /// All of a loop, `count` of a column, are received.
    fn close<C: Coming>(&mut self, count: usize, column: &[C]);
}

/// What frames that go on to another node leave behind, in order.
#[derive(Debug)]
pub struct Stays {
    /// Places in the column.
    places: [u8; AT_ONCE],
    waits_ps: [u64; AT_ONCE],
    ends_ps: [u64; AT_ONCE],
}

impl Default for Stays {
    fn default() -> Self {
        Self { places: [0; AT_ONCE], waits_ps: [0; AT_ONCE], ends_ps: [0; AT_ONCE] }
    }
}

impl Stays {
    /// Notes a frame.
    #[inline]
    pub fn note(&mut self, slot: usize, place: usize, wait_ps: u64, end_ps: u64) {
        let slot = slot & (AT_ONCE - 1);
        self.places[slot] = place as u8;
        self.waits_ps[slot] = wait_ps;
        self.ends_ps[slot] = end_ps;
    }

    /// The first frames as they go on.
    #[inline]
    pub fn passed<'a, C: Coming>(&'a self, count: usize, column: &'a [C]) -> impl Iterator<Item = Passing> {
        let all = self.places.iter().zip(&self.waits_ps).zip(&self.ends_ps).take(count);
        all.map(|((&place, &wait_ps), &end_ps)| {
            let frame = column[usize::from(place)].passing();
            Passing { at: end_ps, waited: frame.waited + wait_ps, ..frame }
        })
    }
}

/// What frames that leave the router leave behind, in order.
#[derive(Debug)]
pub struct Done {
    waits_ps: [u64; AT_ONCE],
    latencies_ps: [u64; AT_ONCE],
    /// Instants at which they leave, picoseconds.
    ends_ps: [u64; AT_ONCE],
    bytes: [u32; AT_ONCE],
    count: usize,
}

/// Frames that found no room.
#[derive(Debug, Clone, Copy, Default)]
pub struct Refused {
    /// Their number.
    pub count: u64,
    /// When the first of them came to the router, picoseconds.
    pub first_ps: u64,
    /// When the last of them came to the router, picoseconds.
    pub last_ps: u64,
}

impl Default for Done {
    fn default() -> Self {
        let zeros = [0; AT_ONCE];
        Self { waits_ps: zeros, latencies_ps: zeros, ends_ps: zeros, bytes: [0; AT_ONCE], count: 0 }
    }
}

impl Done {
    /// What each adds to a mini-batch, with the instant at which it leaves.
    pub fn each(&self) -> impl Iterator<Item = (u64, Mini)> {
        let times = self.waits_ps.iter().zip(&self.latencies_ps).zip(&self.ends_ps).zip(&self.bytes).take(self.count);
        times.map(|(((&waited_ps, &latency_ps), &end_ps), &bytes)| {
            (end_ps, Mini { frames: 1, bytes: u64::from(bytes), latency_ps, waited_ps })
        })
    }

    /// What they add to a mini-batch together.
    pub fn sums(&self) -> Mini {
        Mini {
            frames: self.count as u64,
            bytes: self.bytes[..self.count].iter().map(|&bytes| u64::from(bytes)).sum(),
            latency_ps: self.latencies_ps().iter().sum(),
            waited_ps: self.waits_ps().iter().sum(),
        }
    }

    /// Their waiting times.
    pub fn waits_ps(&self) -> &[u64] {
        &self.waits_ps[..self.count]
    }

    /// Their latencies.
    pub fn latencies_ps(&self) -> &[u64] {
        &self.latencies_ps[..self.count]
    }

    /// When they leave, in order.
    pub fn ends_ps(&self) -> &[u64] {
        &self.ends_ps[..self.count]
    }
}

/// Frames leave the router: a task unit at one instant, a port from the first bit on (S9).
#[derive(Debug)]
pub struct Leaving<'a, const FIRST_BIT: bool> {
    /// What those of the present loop leave behind.
    pub done: &'a mut Done,
    /// Where they are counted.
    pub ledger: &'a mut Ledger,
}

impl<const FIRST_BIT: bool> Keep for Leaving<'_, FIRST_BIT> {
    #[inline]
    fn keep(&mut self, slot: usize, frame: &Passing, _: usize, start_ps: u64, end_ps: u64) {
        let slot = slot & (AT_ONCE - 1);
        self.done.waits_ps[slot] = frame.waited + (start_ps - frame.at);
        self.done.latencies_ps[slot] = if FIRST_BIT { start_ps } else { end_ps } - frame.arrival;
        self.done.ends_ps[slot] = end_ps;
        self.done.bytes[slot] = frame.bytes;
    }

    fn close<C: Coming>(&mut self, count: usize, _: &[C]) {
        self.done.count = count;
        self.ledger.forward_all(&self.done.sums(), self.done);
    }
}

/// What a station made of a column.
#[derive(Debug, Clone, Copy, Default)]
pub struct Served {
    /// Frames that found no room.
    pub refused: Refused,
    /// Whether some work took no time, so that frames may have left at one instant.
    pub at_once: bool,
}

/// What holds for a whole trial and the present segment.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The size of all frames, if there is one.
    pub only_bytes: Option<u32>,
    /// Beginning of the segment, picoseconds.
    pub segment_begin_ps: u64,
    /// End of the segment, picoseconds.
    pub segment_end_ps: u64,
    /// Nothing is known of frames that come from here on, picoseconds.
    pub bound_ps: u64,
}

impl Station {
    /// Offers frames to one server in order of arrival, none earlier than the last one. Arrival, start and end of those that
    /// are done after the segment go to `beyond`.
    pub fn pass_column<C: Coming>(
        &mut self,
        servers: &mut Servers,
        column: &[C],
        keep: &mut impl Keep,
        bounds: Bounds,
        beyond: &mut Vec<(u64, Passage)>,
    ) -> Served {
        let mut served = Served::default();
        let even = self.only_work_ps(bounds.only_bytes).and_then(|work_ps| Even::new(work_ps, self.queue));
        let known = beyond.len();
        for column in column.chunks(AT_ONCE) {
            let refused = &mut served.refused;
            let mut line = Line { free_at: servers.free_at[0], limit_ps: bounds.segment_end_ps, waited_ps: 0, beyond };
            if let Some(mut even) = even {
                let count = line.serve(column, &mut even, keep, refused);
                served.at_once |= even.work_ps == 0;
                self.tally.busy_ps += count as u64 * even.work_ps;
            } else {
                let mut starts = std::mem::replace(&mut self.starts, Starts::none());
                starts.reserve(AT_ONCE, column[0].passing().at);
                let queue = self.queue;
                let mut uneven = Uneven::new(&mut starts, queue, |bytes| self.work(bytes));
                line.serve(column, &mut uneven, keep, refused);
                served.at_once |= uneven.least_ps == 0;
                let busy_ps = uneven.busy_ps;
                drop(uneven);
                self.tally.busy_ps += busy_ps;
                self.starts = starts;
            }
            servers.free_at[0] = line.free_at;
            self.tally.waited_ps += line.waited_ps;
        }
        for (at, Passage { start, done }) in &beyond[known..] {
            self.tally.waited_ps -= start - at;
            self.tally.busy_ps -= done - start;
        }
        served
    }

    /// The work of all frames, if there is one; `only_bytes` is the size of all frames, if there is one.
    fn only_work_ps(&self, only_bytes: Option<u32>) -> Option<u64> {
        let bytes = if self.service.depends_on_size() { only_bytes? } else { 0 };
        self.service.constant_ps(bytes).map(|ps| (ps * self.slowness + 0.5) as u64)
    }
}

/// A queue as it looks to the frames that come.
trait Queue {
    /// Whether a frame finds no room; `free_at` is when the server is done with all that it has taken. Departures come before
    /// arrivals at one instant (S3).
    fn is_full(&mut self, at: u64, free_at: u64) -> bool;

    /// When the server is done with a frame that it starts.
    fn end(&mut self, start: u64, bytes: u32) -> u64;

    /// A frame is taken that starts at an instant.
    fn take(&mut self, start: u64, at: u64);
}

/// A queue of frames of equal work: what is left to do says how many wait.
///
/// While some wait, each of them starts when the last one ends. So those that start after an instant t are `queue` or more
/// exactly if the server will be busy for longer than `queue` works from t on.
#[derive(Clone, Copy)]
struct Even {
    work_ps: u64,
    room_ps: u64,
}

impl Even {
    /// None if so much work overflows.
    fn new(work_ps: u64, queue: usize) -> Option<Self> {
        let room_ps = work_ps.checked_mul(queue as u64)?;
        (room_ps < 1 << 62 && work_ps < 1 << 62).then_some(Self { work_ps, room_ps })
    }
}

impl Queue for Even {
    #[inline]
    fn is_full(&mut self, at: u64, free_at: u64) -> bool {
        free_at > at + self.room_ps
    }

    #[inline]
    fn end(&mut self, start: u64, _: u32) -> u64 {
        start + self.work_ps
    }

    #[inline]
    fn take(&mut self, _: u64, _: u64) {}
}

/// A queue of frames of any work: the starts that are still to come.
struct Uneven<'a, W> {
    ring: &'a mut [u64],
    head: usize,
    tail: usize,
    /// Where head and tail are kept.
    kept: (&'a mut u64, &'a mut u64),
    queue: usize,
    work: W,
    busy_ps: u64,
    /// The least work.
    least_ps: u64,
}

impl<'a, W: FnMut(u32) -> u64> Uneven<'a, W> {
    fn new(starts: &'a mut Starts, queue: usize, work: W) -> Self {
        let Starts { ring, head, tail } = starts;
        let (first, last) = (*head as usize, *tail as usize);
        let ring = ring.as_mut_slice();
        Self { ring, head: first, tail: last, kept: (head, tail), queue, work, busy_ps: 0, least_ps: u64::MAX }
    }
}

impl<W> Drop for Uneven<'_, W> {
    fn drop(&mut self) {
        (*self.kept.0, *self.kept.1) = (self.head as u64, self.tail as u64);
    }
}

impl<W: FnMut(u32) -> u64> Queue for Uneven<'_, W> {
    #[inline]
    fn is_full(&mut self, at: u64, free_at: u64) -> bool {
        if self.tail - self.head < self.queue {
            return false;
        }
        // Room for one is made by one that has started.
        let mask = self.ring.len() - 1;
        if if self.queue > 0 { self.ring[self.head & mask] > at } else { free_at > at } {
            return true;
        }
        self.head += usize::from(self.queue > 0);
        false
    }

    #[inline]
    fn end(&mut self, start: u64, bytes: u32) -> u64 {
        let work_ps = (self.work)(bytes);
        self.busy_ps += work_ps;
        self.least_ps = self.least_ps.min(work_ps);
        start.saturating_add(work_ps)
    }

    #[inline]
    fn take(&mut self, start: u64, at: u64) {
        let mask = self.ring.len() - 1;
        // A frame that starts at once never waits, so it needs no entry in the ring.
        self.ring[self.tail & mask] = start;
        self.tail += usize::from(start > at);
    }
}

/// A server, and where what it does is noted.
struct Line<'a> {
    free_at: u64,
    limit_ps: u64,
    /// For how long frames waited, all together.
    waited_ps: u64,
    beyond: &'a mut Vec<(u64, Passage)>,
}

impl Line<'_> {
    /// What happens to the frames of a loop; returns how many found room. A function of its own, because then most of what it
    /// needs has a register.
    #[inline(never)]
    fn serve<C: Coming>(
        &mut self,
        column: &[C],
        queue: &mut impl Queue,
        keep: &mut impl Keep,
        refused: &mut Refused,
    ) -> usize {
        let (mut free_at, mut count, mut waited_ps, limit_ps) = (self.free_at, 0, 0, self.limit_ps);
        for (place, coming) in column.iter().enumerate() {
            let frame = coming.passing();
            if queue.is_full(frame.at, free_at) {
                refused.add(frame.arrival);
                continue;
            }
            let start = free_at.max(frame.at);
            free_at = queue.end(start, frame.bytes);
            queue.take(start, frame.at);
            waited_ps += start - frame.at;
            if free_at > limit_ps {
                self.beyond.push((frame.at, Passage { start, done: free_at }));
            }
            keep.keep(count, &frame, place, start, free_at);
            count += 1;
        }
        (self.free_at, self.waited_ps) = (free_at, waited_ps);
        keep.close(count, column);
        count
    }
}

impl Refused {
    /// Adds one that came to the router at an instant.
    #[inline]
    pub fn add(&mut self, arrival_ps: u64) {
        self.first_ps = if self.count == 0 { arrival_ps } else { self.first_ps.min(arrival_ps) };
        self.last_ps = self.last_ps.max(arrival_ps);
        self.count += 1;
    }
}
