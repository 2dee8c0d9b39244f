//! Frames that come straight from the sources, meet one server and leave the router: how they came in says all of them.
//!
//! Such frames are no structures that go from list to list, but a column of arrivals. What happens to some of them is worked
//! out in a loop that does nothing else; sums and histograms follow in loops of their own. That takes fewer instructions
//! than [`Station::pass`], and none of them waits for a sum in memory.

use super::{Passage, Servers, Starts, Station};
use crate::ledger::{Ledger, Mini};
use crate::source::Arrival;

/// Frames of a loop, a power of two: what they leave behind stays in the fastest cache.
const AT_ONCE: usize = 256;

/// What frames that found room leave behind, in order.
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
    /// When the first of them came, picoseconds.
    pub first_ps: u64,
    /// When the last of them came, picoseconds.
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

impl Station {
    /// Offers frames to one server in order of arrival, none earlier than the last one, and counts them as they leave the
    /// router behind it. Arrival, start and end of those that are done after the segment go to `beyond`.
    pub fn pass_column(
        &mut self,
        servers: &mut Servers,
        arrivals: &[Arrival],
        done: &mut Done,
        ledger: &mut Ledger,
        beyond: &mut Vec<(u64, Passage)>,
    ) -> Refused {
        let limit_ps = ledger.segment_end();
        let mut refused = Refused::default();
        // The work of all frames, if there is one.
        let constant = (!self.service.depends_on_size()).then(|| self.service.constant_ps(0)).flatten();
        let constant = constant.map(|ps| (ps * self.slowness + 0.5) as u64);
        for arrivals in arrivals.chunks(AT_ONCE) {
            let mut starts = std::mem::replace(&mut self.starts, Starts::none());
            starts.reserve(arrivals.len(), arrivals[0].at);
            let line = Line { starts: &mut starts, queue: self.queue, free_at: &mut servers.free_at[0] };
            match constant {
                Some(work) => line.serve(arrivals, |_| work, done, &mut refused),
                None => line.serve(arrivals, |bytes| self.work(bytes), done, &mut refused),
            }
            self.starts = starts;
            let sums = done.sums();
            if done.ends_ps().last().is_none_or(|&last| last <= limit_ps) {
                self.tally.waited_ps += sums.waited_ps;
                self.tally.busy_ps += sums.latency_ps - sums.waited_ps;
            } else {
                for (end_ps, Mini { latency_ps, waited_ps, .. }) in done.each() {
                    if end_ps <= limit_ps {
                        self.tally.waited_ps += waited_ps;
                        self.tally.busy_ps += latency_ps - waited_ps;
                    } else {
                        let at = end_ps - latency_ps;
                        beyond.push((at, Passage { start: at + waited_ps, done: end_ps }));
                    }
                }
            }
            ledger.forward_all(&sums, done);
        }
        refused
    }
}

/// A queue and its server.
struct Line<'a> {
    starts: &'a mut Starts,
    queue: usize,
    free_at: &'a mut u64,
}

impl Line<'_> {
    /// What happens to frames, which must not be more than a loop takes. A function of its own, because then most of what it
    /// needs has a register.
    #[inline(never)]
    fn serve(self, arrivals: &[Arrival], mut work: impl FnMut(u32) -> u64, done: &mut Done, refused: &mut Refused) {
        let (mut head, mut tail) = (self.starts.head as usize, self.starts.tail as usize);
        let ring = self.starts.ring.as_mut_slice();
        let mask = ring.len() - 1;
        let (queue, mut free_at, mut count) = (self.queue, *self.free_at, 0);
        for &Arrival { at, bytes, .. } in arrivals {
            if tail - head >= queue {
                // Room for one is made by one that has started. Departures come before arrivals at one instant (S3).
                if if queue > 0 { ring[head & mask] > at } else { free_at > at } {
                    refused.add(at);
                    continue;
                }
                head += usize::from(queue > 0);
            }
            let start = free_at.max(at);
            free_at = start.saturating_add(work(bytes));
            // A frame that starts at once never waits, so it needs no entry in the ring.
            ring[tail & mask] = start;
            tail += usize::from(start > at);
            let place = count & (AT_ONCE - 1);
            done.waits_ps[place] = start - at;
            done.latencies_ps[place] = free_at - at;
            done.ends_ps[place] = free_at;
            done.bytes[place] = bytes;
            count += 1;
        }
        done.count = count;
        (self.starts.head, self.starts.tail, *self.free_at) = (head as u64, tail as u64, free_at);
    }
}

impl Refused {
    fn add(&mut self, at_ps: u64) {
        if self.count == 0 {
            self.first_ps = at_ps;
        }
        self.count += 1;
        self.last_ps = at_ps;
    }
}
