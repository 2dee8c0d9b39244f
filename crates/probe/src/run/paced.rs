//! Frames at an offered rate: they arrive in real time at a queue, overflow it, and each has a latency.
//!
//! ```text
//!   arrival n at n/rate ──► queue of queue_frames ──up to 32──► function ──► latency = end of its batch − arrival
//!                              └── full: lost
//! ```
//!
//! The time of refilling the ring is left out, because a network card would refill it.

use std::collections::VecDeque;

use crate::batch::BATCH_FRAMES;
use crate::error::{ProbeError, Result};
use crate::host::{Clock, ticks};

use super::Shared;
use super::latency::Histogram;
use super::passes::{Bench, Tally, pass};

/// An offered rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub rate_pps: f64,
    pub duration_s: f64,
    pub queue_frames: u64,
}

/// The outcome at an offered rate.
pub(super) struct Paced {
    pub tally: Tally,
    /// Frames that were lost at a full queue.
    pub lost: u64,
    /// Ticks that the function worked in each pass over the ring, as if the ring had been full.
    pub busy: Vec<f64>,
    pub latency: Histogram,
    /// From the first arrival to the end, seconds.
    pub elapsed_s: f64,
}

/// Arrivals that wait or were lost; waiting ones are stored as runs of consecutive numbers.
struct Queue {
    runs: VecDeque<(u64, u64)>,
    waiting: u64,
    arrived: u64,
    lost: u64,
}

impl Queue {
    /// Lets everybody in who arrived up to `arrived`, as far as there is room.
    fn admit(&mut self, arrived: u64, room: u64) {
        let new = arrived - self.arrived;
        let taken = new.min(room.saturating_sub(self.waiting));
        if taken > 0 {
            match self.runs.back_mut().filter(|run| run.0 + run.1 == self.arrived) {
                Some(run) => run.1 += taken,
                None => self.runs.push_back((self.arrived, taken)),
            }
            self.waiting += taken;
        }
        self.lost += new - taken;
        self.arrived = arrived;
    }

    /// Takes up to `most` consecutive arrivals: number of the first, and how many.
    fn take(&mut self, most: u64) -> (u64, u64) {
        let Some(run) = self.runs.front_mut() else { return (0, 0) };
        let count = run.1.min(most);
        let first = run.0;
        *run = (first + count, run.1 - count);
        if run.1 == 0 {
            self.runs.pop_front();
        }
        self.waiting -= count;
        (first, count)
    }
}

impl Bench {
    /// Works at a pace until all frames of the duration have come and been worked on.
    pub fn paced(&mut self, pace: Pace, clock: &Clock, core: usize, shared: &Shared) -> Result<Paced> {
        let all = (pace.rate_pps * pace.duration_s).floor() as u64;
        let ticks_per_frame = clock.tsc_hz / pace.rate_pps;
        let mut queue = Queue { runs: VecDeque::new(), waiting: 0, arrived: 0, lost: 0 };
        let mut outcome =
            Paced { tally: Tally::default(), lost: 0, busy: Vec::new(), latency: Histogram::default(), elapsed_s: 0.0 };
        let frames = self.ring.len();
        // First arrival, frames and end of each batch of a pass: recorded while time stands still.
        let mut ends: Vec<(u64, u64, u64)> = Vec::with_capacity(frames);
        self.refill();
        let mut origin = ticks();
        loop {
            let (mut at, mut busy) = (0, 0);
            ends.clear();
            let (buffers, incoming) = self.ring.parts();
            while at < frames {
                let now = ticks() - origin;
                let arrived = ((now as f64 / ticks_per_frame) as u64).min(all);
                queue.admit(arrived, pace.queue_frames);
                let most = BATCH_FRAMES.min(frames - at) as u64;
                let (first, count) = queue.take(most);
                if count == 0 {
                    if queue.arrived == all || shared.stopped() {
                        break;
                    }
                    std::hint::spin_loop();
                    continue;
                }
                let to = at + count as usize;
                let (function, tally) = (self.function.as_mut(), &mut outcome.tally);
                let started = ticks();
                let out = std::slice::from_mut(&mut self.outgoing[at / BATCH_FRAMES]);
                pass(function, &mut buffers[at..to], &incoming[at..to], at as u16, out, tally);
                let ended = ticks();
                busy += ended - started;
                ends.push((first, count, ended - origin));
                at = to;
            }
            let halted = ticks();
            if shared.stopped() {
                return Err(ProbeError::Interrupted);
            }
            if at > 0 {
                outcome.busy.push(busy as f64 * frames as f64 / at as f64);
            }
            for &(first, count, end) in &ends {
                for number in first..first + count {
                    // Frame n is there when n + 1 frames' time has passed, as the count of arrivals has it.
                    let arrival = (number + 1) as f64 * ticks_per_frame;
                    outcome.latency.record(clock.seconds((end as f64 - arrival).max(0.0)));
                }
            }
            shared.set_done(core, queue.arrived as f64 / all.max(1) as f64);
            if queue.arrived == all && queue.waiting == 0 {
                outcome.elapsed_s = clock.seconds((halted - origin) as f64).max(pace.duration_s);
                outcome.lost = queue.lost;
                outcome.tally.offered = all;
                return Ok(outcome);
            }
            self.refill();
            origin += ticks() - halted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_loses_the_last_to_come_and_keeps_the_order() {
        let mut queue = Queue { runs: VecDeque::new(), waiting: 0, arrived: 0, lost: 0 };
        queue.admit(10, 8);
        assert_eq!((queue.waiting, queue.lost), (8, 2));
        assert_eq!(queue.take(5), (0, 5));
        queue.admit(12, 8);
        // Frames 8 and 9 are lost: what waits is 5 to 7 and 10 to 11.
        assert_eq!(queue.take(32), (5, 3));
        assert_eq!(queue.take(32), (10, 2));
        assert_eq!(queue.take(32), (0, 0));
        assert_eq!((queue.waiting, queue.lost, queue.arrived), (0, 2, 12));
    }
}
