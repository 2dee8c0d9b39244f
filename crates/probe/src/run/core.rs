//! What one core does in a run.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::batch::BATCH_FRAMES;
use crate::error::{ProbeError, Result};
use crate::frame::FrameRing;
use crate::function::{TableFacts, build};
use crate::host::Clock;
use crate::host::cpu::Pinned;
use crate::host::noise::Noise;
use crate::operation::Descriptor;
use crate::traffic::{Traffic, mix};

use super::Shared;
use super::kept;
use super::latency::Histogram;
use super::outcome::HandLoop;
use super::paced::Pace;
use super::passes::{Bench, Tally};
use super::request::{Plan, RunRequest};

/// Repeats of the clock's calibration, before and after the run.
const CALIBRATIONS: usize = 3;

/// What one core did.
pub(super) struct Work {
    pub cpu: usize,
    pub tally: Tally,
    pub lost: u64,
    /// Ticks of each pass over the ring.
    pub times: Vec<f64>,
    /// At an offered rate: latencies and seconds.
    pub paced: Option<(Histogram, f64)>,
    pub hand: Option<HandLoop>,
    pub clock: Clock,
    pub tables: Vec<TableFacts>,
    pub frames_huge_ratio: f64,
    pub frames_bytes: u64,
    pub steal_ratio: f64,
}

/// Makes frames and tables on core number `core` of the request, waits for the others and runs.
pub(super) fn work(request: &RunRequest, plan: &Plan, core: usize, shared: &Shared) -> Result<Work> {
    let cpu = request.cores[core];
    let _pinned = Pinned::to(Some(cpu))?;
    // Somebody who counts instructions does not want ours.
    let mut clock = if request.packets.is_some() {
        Clock { tsc_hz: 1e9, core_hz_repeats: vec![1e9] }
    } else {
        Clock::calibrate(CALIBRATIONS)
    };
    // Who counts instructions wants those of building its tables in every run, so that they cancel out.
    let function = if request.packets.is_some() { build(&plan.build)? } else { kept::take(&plan.build, core)? };
    let seed = mix(request.seed ^ mix(core as u64 + 1));
    let ring = FrameRing::new(request.frames_in_flight, &plan.mix, seed, request.pages)?;
    let traffic = Traffic::new(plan.build.flows, request.popularity, request.exponent, seed)?;
    let outgoing = vec![[Descriptor::default(); BATCH_FRAMES]; ring.batches()];
    let mut bench = Bench { function, ring, traffic, outgoing };

    shared.ready.fetch_add(1, Ordering::Relaxed);
    while shared.ready.load(Ordering::Relaxed) < request.cores.len() {
        if shared.stopped() {
            return Err(ProbeError::Interrupted);
        }
        std::thread::sleep(Duration::from_micros(100));
    }

    let noise = Noise::start(cpu);
    let (mut lost, mut paced) = (0, None);
    let (tally, times) = if let Some(packets) = request.packets {
        bench.exactly(packets, core, shared)?
    } else if let Some(offered_pps) = request.offered_pps {
        let pace = Pace {
            rate_pps: offered_pps / request.cores.len() as f64,
            duration_s: request.duration_s,
            queue_frames: request.queue_frames as u64,
        };
        let outcome = bench.paced(pace, &clock, core, shared)?;
        lost = outcome.lost;
        paced = Some((outcome.latency, outcome.elapsed_s));
        (outcome.tally, outcome.busy)
    } else {
        bench.flat_out(request.duration_s, &clock, core, shared)?
    };
    let steal_ratio = noise.steal_ratio();
    let hand = if request.hand_loop { bench.by_hand(&clock, shared)? } else { None };
    if request.packets.is_none() {
        clock.core_hz_repeats.extend(Clock::calibrate(CALIBRATIONS).core_hz_repeats);
    }
    let tables = bench.function.tables();
    let (frames_huge_ratio, frames_bytes) = (bench.ring.memory().huge_ratio(), bench.ring.memory().bytes() as u64);
    if request.packets.is_none() {
        kept::keep(&plan.build, core, bench.function);
    }
    Ok(Work { cpu, tally, lost, times, paced, hand, clock, tables, frames_huge_ratio, frames_bytes, steal_ratio })
}
