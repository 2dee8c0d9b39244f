//! Passes over the ring, flat out or for an exact number of packets.

use crate::batch::{BATCH_FRAMES, Batch, Buffer, FAULT_KINDS};
use crate::error::{ProbeError, Result};
use crate::frame::FrameRing;
use crate::function::{NetworkFunction, Ports};
use crate::host::{Clock, ticks};
use crate::operation::Descriptor;
use crate::traffic::Traffic;

use super::Shared;

/// What became of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Frames that came in.
    pub offered: u64,
    /// Frames that left.
    pub forwarded: u64,
    /// Frames dropped, by [`Fault`](crate::batch::Fault).
    pub drops: [u64; FAULT_KINDS],
}

/// Works on frames that lie side by side in a ring, the first of them number `first`, batch after batch.
///
/// Descriptors of the frames that leave go to the front of `outgoing`, 32 for each batch.
#[inline(never)]
pub fn pass(
    function: &mut dyn NetworkFunction,
    buffers: &mut [Buffer],
    incoming: &[Descriptor],
    first: u16,
    outgoing: &mut [[Descriptor; BATCH_FRAMES]],
    tally: &mut Tally,
) {
    let mut number = first;
    let places = outgoing.len().max(1);
    let mut spare = [Descriptor::default(); BATCH_FRAMES];
    for (batch, (buffers, incoming)) in buffers.chunks_mut(BATCH_FRAMES).zip(incoming.chunks(BATCH_FRAMES)).enumerate()
    {
        let count = buffers.len();
        let outgoing = outgoing.get_mut(batch % places).unwrap_or(&mut spare);
        let mut ports = Ports { incoming, first: number, outgoing, drops: &mut tally.drops };
        tally.forwarded += function.process(&mut Batch::new(buffers), &mut ports) as u64;
        tally.offered += count as u64;
        number = number.wrapping_add(count as u16);
    }
}

/// A function with its frames.
pub(super) struct Bench {
    pub function: Box<dyn NetworkFunction>,
    pub ring: FrameRing,
    pub traffic: Traffic,
    pub outgoing: Vec<[Descriptor; BATCH_FRAMES]>,
}

impl Bench {
    /// New flows for all frames.
    pub fn refill(&mut self) {
        let (function, traffic) = (&self.function, &mut self.traffic);
        self.ring.refill(|frame| function.headers(traffic.draw(), frame));
    }

    /// One pass over the first `frames` of the ring, in ticks.
    pub fn pass(&mut self, frames: usize, tally: &mut Tally) -> u64 {
        let (buffers, incoming) = self.ring.parts();
        let start = ticks();
        let (buffers, incoming) = (&mut buffers[..frames], &incoming[..frames]);
        pass(self.function.as_mut(), buffers, incoming, 0, &mut self.outgoing, tally);
        ticks() - start
    }

    /// Passes for some seconds of the wall clock, a tenth of it to warm up; ticks of each.
    pub fn flat_out(
        &mut self,
        duration_s: f64,
        clock: &Clock,
        core: usize,
        shared: &Shared,
    ) -> Result<(Tally, Vec<f64>)> {
        const FEWEST: usize = 5;
        let frames = self.ring.len();
        let (mut tally, mut times) = (Tally::default(), Vec::new());
        let start = ticks();
        let mut warm = false;
        loop {
            if shared.stopped() {
                return Err(ProbeError::Interrupted);
            }
            let share = clock.seconds((ticks() - start) as f64) / duration_s;
            shared.set_done(core, share);
            if share >= 1.0 && times.len() >= FEWEST {
                return Ok((tally, times));
            }
            if !warm && share >= 0.1 {
                warm = true;
                (tally, times) = (Tally::default(), Vec::new());
            }
            self.refill();
            let time = self.pass(frames, &mut tally) as f64;
            times.push(time);
        }
    }

    /// Exactly so many packets. A refill fills the whole ring, so with no more packets than the ring has frames,
    /// runs of different numbers of packets differ by the function's work alone.
    pub fn exactly(&mut self, packets: u64, core: usize, shared: &Shared) -> Result<(Tally, Vec<f64>)> {
        let (mut tally, mut times) = (Tally::default(), Vec::new());
        loop {
            if shared.stopped() {
                return Err(ProbeError::Interrupted);
            }
            self.refill();
            let frames = (packets - tally.offered).min(self.ring.len() as u64) as usize;
            if frames > 0 {
                let time = self.pass(frames, &mut tally) as f64;
                // A part of the ring as if it were the whole.
                times.push(time * self.ring.len() as f64 / frames as f64);
            }
            shared.set_done(core, tally.offered as f64 / packets.max(1) as f64);
            if tally.offered >= packets {
                return Ok((tally, times));
            }
        }
    }
}
