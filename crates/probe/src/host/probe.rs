//! The whole probe: request, order of the measurements, outcome.

use serde::{Deserialize, Serialize};

use super::bandwidth::{BandwidthSample, bandwidths};
use super::caches::{Cache, caches};
use super::call::{CallCost, call_cost};
use super::clock::{self, Clock};
use super::counters::Counters;
use super::cpu::Pinned;
use super::latency::{Latencies, LatencySample, Plan, latencies};
use super::noise::Noise;
use super::progress::Progress;
use super::slices::Effort;
use crate::error::{ProbeError, Result};
use crate::memory::{Pages, available_bytes};
use crate::operation::probe::{Sample, samples};

/// The largest working set.
const MOST_BYTES: usize = 1 << 30;
const MOST_QUICK_BYTES: usize = 512 << 20;
/// The least memory that shows more than the first two levels.
const LEAST_BYTES: u64 = 1 << 20;

/// A group of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The clock, always measured, and the cost of a call.
    Clock,
    /// Latency and bandwidth by working set.
    Memory,
    /// The elementary operations.
    Operations,
}

/// The request of a probe.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProbeRequest {
    /// Fewer working sets and repeats: under 15 s instead of under 60 s.
    pub quick: bool,
    /// The processor to measure; the one that the thread runs on if left out.
    pub cpu: Option<usize>,
    /// Most memory to take at a time.
    pub most_memory_bytes: u64,
    /// Seed of random lines and keys.
    pub seed: u64,
    /// The groups to measure.
    pub parts: Vec<Part>,
}

impl Default for ProbeRequest {
    fn default() -> Self {
        Self {
            quick: false,
            cpu: None,
            most_memory_bytes: MOST_BYTES as u64,
            seed: 1,
            parts: vec![Part::Clock, Part::Memory, Part::Operations],
        }
    }
}

/// The outcome of a probe. Cycles are cycles of the core: for its own work at its clock at that moment, for
/// waits on L3 and memory ticks of the counter x median `core_hz` / `tsc_hz`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProbeOutcome {
    /// The processor that was measured.
    pub cpu: usize,
    /// Its clock.
    pub clock: ClockOutcome,
    /// Share of the processor's time that the hypervisor gave to others during the probe, 0 to 1.
    pub steal_ratio: f64,
    /// Involuntary context switches during the probe.
    pub interruptions: u64,
    /// Its caches, as the system describes them.
    pub caches: Vec<Cache>,
    /// Cycles per line, each load waiting for the one before.
    pub latency: Vec<LatencySample>,
    /// Cycles per line on top of L1, prefetched in batches of 32.
    pub batched: Vec<LatencySample>,
    /// Cycles per line on top of L1, in the order of addresses.
    pub streamed: Vec<LatencySample>,
    /// Bytes per second.
    pub bandwidth: Vec<BandwidthSample>,
    /// Cost of calling a function.
    pub call: CallCost,
    /// Cost of the elementary operations.
    pub operations: Vec<Sample>,
    /// The processor's own counters.
    pub perf: PerfOutcome,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// The clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClockOutcome {
    /// Ticks of the counter per second.
    pub tsc_hz: f64,
    /// Cycles of the core per second, one value per repeat, from before and after everything else.
    pub core_hz: Vec<f64>,
    /// The clock by which waits on L3 and memory became cycles: the median of the repeats from before everything else.
    pub cycles_hz: f64,
    /// The counter.
    pub counter: &'static str,
}

/// The processor's counters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PerfOutcome {
    /// Whether a program may read them.
    pub available: bool,
    /// The reason if it may not; else empty.
    pub why: String,
    /// Cycles that they count per cycle that a chain of dependent additions must take: 1 if both agree.
    pub cycles_ratio: Option<f64>,
}

/// Probes the host; `progress` gets the share done, 0 to 1, and returns whether to go on.
///
/// # Errors
///
/// [`ProbeError::Request`] for an invalid request, [`ProbeError::Cpu`] for a processor that this process may not use,
/// [`ProbeError::Memory`] if there is less than `most_memory_bytes`, [`ProbeError::Interrupted`].
pub fn probe(request: &ProbeRequest, progress: &mut dyn FnMut(f64) -> bool) -> Result<ProbeOutcome> {
    check(request)?;
    let mut progress = Progress::new(progress);
    progress.at(0.0)?;
    let wants = |part| request.parts.contains(&part);
    let pinned = Pinned::to(request.cpu)?;
    let noise = Noise::start(pinned.cpu());
    let caches = caches(pinned.cpu());
    let mut clock = Clock::calibrate(if request.quick { 7 } else { 15 });
    progress.at(0.02)?;
    let effort = if request.quick { Effort { repeats: 5, slices: 20 } } else { Effort { repeats: 9, slices: 40 } };
    let call = call_cost(Effort { slices: 100, ..effort });
    progress.at(0.03)?;
    let mut notes = Vec::new();
    let mut memory = Latencies::default();
    let mut bandwidth = Vec::new();
    let most = usize::try_from(request.most_memory_bytes).unwrap_or(usize::MAX);
    let memory_ends = if wants(Part::Operations) { 0.5 } else { 0.98 };
    if wants(Part::Memory) {
        let mut part = progress.part(0.03, memory_ends);
        let sizes = working_sets(most, request.quick);
        let core_bytes = size_bytes(&caches, "L2").unwrap_or(0);
        let plan = Plan { sizes: &sizes, core_bytes, effort, seed: request.seed, clock: &clock };
        for (pages, from, to) in [(Pages::Huge, 0.0, 0.42), (Pages::Normal, 0.42, 0.9)] {
            let more = latencies(&plan, pages, &mut part.part(from, to))?;
            if more.latency.is_empty() {
                notes.push(format!(
                    "the kernel gave no huge pages for {} MiB: /sys/kernel/mm/transparent_hugepage/enabled",
                    sizes.last().map_or(0, |bytes| bytes >> 20)
                ));
            }
            memory.latency.extend(more.latency);
            memory.batched.extend(more.batched);
            memory.streamed.extend(more.streamed);
        }
        let sizes = bandwidth_sets(&caches, sizes.last().copied().unwrap_or(most));
        bandwidth = bandwidths(&sizes, effort, &clock, &mut part.part(0.9, 1.0))?;
    }
    let mut operations = Vec::new();
    if wants(Part::Operations) {
        let mut part = progress.part(if wants(Part::Memory) { memory_ends } else { 0.03 }, 0.98);
        let mut goes_on = |share| part.goes_on(share);
        operations = samples(request.quick, request.seed, clock.tsc_hz, &mut goes_on)?;
    }
    let cycles_hz = clock.core_hz();
    // A clock that changed meanwhile shows in the scatter of these.
    let after = Clock::calibrate(if request.quick { 6 } else { 14 });
    clock.core_hz_repeats.extend(after.core_hz_repeats);
    progress.at(1.0)?;
    Ok(ProbeOutcome {
        cpu: pinned.cpu(),
        clock: ClockOutcome {
            tsc_hz: clock.tsc_hz,
            core_hz: clock.core_hz_repeats,
            cycles_hz,
            counter: clock::COUNTER,
        },
        steal_ratio: noise.steal_ratio(),
        interruptions: noise.interruptions(),
        caches,
        latency: memory.latency,
        batched: memory.batched,
        streamed: memory.streamed,
        bandwidth,
        call,
        operations,
        perf: perf(),
        notes,
    })
}

fn check(request: &ProbeRequest) -> Result<()> {
    if request.parts.is_empty() {
        return Err(ProbeError::request("parts", "got none; name one or more of clock, memory, operations"));
    }
    let most = request.most_memory_bytes;
    if most < LEAST_BYTES {
        let message = format!("got {most}; allowed are {LEAST_BYTES} bytes or more");
        return Err(ProbeError::request("most_memory_bytes", message));
    }
    let available_bytes = available_bytes();
    if request.parts.contains(&Part::Memory) && most > available_bytes {
        let what = "the probe, by most_memory_bytes,".to_owned();
        return Err(ProbeError::Memory { what, needed_bytes: most, available_bytes });
    }
    Ok(())
}

/// Powers of two from 4 KiB on, every other one if quick, up to `most`.
fn working_sets(most: usize, quick: bool) -> Vec<usize> {
    let (first, step, limit) = if quick { (13, 2, MOST_QUICK_BYTES) } else { (12, 1, MOST_BYTES) };
    (first..usize::BITS).step_by(step).map(|bits| 1 << bits).take_while(|&bytes| bytes <= most.min(limit)).collect()
}

fn size_bytes(caches: &[Cache], level: &str) -> Option<usize> {
    caches.iter().find(|cache| cache.level == level).map(|cache| cache.size_bytes as usize)
}

/// Half of L1 and of L2, a size well within L3, and the largest size.
fn bandwidth_sets(caches: &[Cache], most: usize) -> Vec<usize> {
    let size = |level| size_bytes(caches, level);
    let l2 = size("L2").unwrap_or(1 << 20);
    let l3 = size("L3").map(|l3| (l3 / 4).min(16 * l2).max(2 * l2));
    let mut sizes: Vec<usize> = [size("L1d").map(|l1| l1 / 2), Some(l2 / 2), l3, Some(most)]
        .into_iter()
        .flatten()
        .map(|bytes| bytes.min(most) & !4095)
        .filter(|&bytes| bytes > 0)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn perf() -> PerfOutcome {
    const STEPS: u32 = 1_000_000;
    match Counters::open() {
        Err(why) => PerfOutcome { available: false, why, cycles_ratio: None },
        Ok(mut counters) => {
            let counts = counters.count(|| {
                clock::chain(STEPS);
            });
            PerfOutcome {
                available: counts.is_some(),
                why: if counts.is_some() { String::new() } else { "the counters stand still".to_owned() },
                cycles_ratio: counts.map(|counts| counts.cycles as f64 / (f64::from(STEPS) * clock::STEP_CYCLES)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_sets_are_powers_of_two_up_to_what_is_allowed() {
        assert_eq!(working_sets(40 << 10, false), [4 << 10, 8 << 10, 16 << 10, 32 << 10]);
        assert_eq!(working_sets(usize::MAX, false).last(), Some(&MOST_BYTES));
        assert_eq!(working_sets(usize::MAX, true).last(), Some(&MOST_QUICK_BYTES));
    }

    #[test]
    fn bandwidth_is_taken_within_each_level() {
        let cache =
            |level: &str, size_bytes| Cache { level: level.to_owned(), size_bytes, line_bytes: 64, shared_cpus: 1 };
        let caches = [cache("L1d", 48 << 10), cache("L2", 2 << 20), cache("L3", 260 << 20)];
        assert_eq!(bandwidth_sets(&caches, 1 << 30), [24 << 10, 1 << 20, 32 << 20, 1 << 30]);
        assert_eq!(bandwidth_sets(&[], 1 << 30), [512 << 10, 1 << 30]);
    }

    #[test]
    fn a_request_for_more_memory_than_there_is_is_refused_at_once() {
        let request = ProbeRequest { most_memory_bytes: 1 << 60, ..ProbeRequest::default() };
        let error = probe(&request, &mut |_| true).unwrap_err();
        assert_eq!(error.kind(), "memory");
        assert!(error.to_string().contains("most_memory_bytes"), "{error}");
    }

    #[test]
    fn a_request_that_makes_no_sense_is_refused_with_its_place() {
        for (request, name) in [
            (ProbeRequest { most_memory_bytes: 5, ..ProbeRequest::default() }, "most_memory_bytes: got 5"),
            (ProbeRequest { parts: vec![], ..ProbeRequest::default() }, "parts: got none"),
        ] {
            let message = probe(&request, &mut |_| true).unwrap_err().to_string();
            assert!(message.starts_with(name), "{message}");
        }
        assert!(serde_json::from_str::<ProbeRequest>(r#"{"quik": true}"#).is_err());
        assert!(serde_json::from_str::<ProbeRequest>(r#"{"parts": ["disk"]}"#).is_err());
    }

    #[test]
    fn a_probe_that_is_told_to_stop_stops() {
        let mut shares = Vec::new();
        let error = probe(&ProbeRequest::default(), &mut |share| {
            shares.push(share);
            shares.len() < 3
        });
        assert_eq!(error.unwrap_err().kind(), "interrupted");
        assert!(shares.len() == 3 && shares.is_sorted(), "{shares:?}");
    }

    #[test]
    fn a_probe_of_the_memory_tells_every_working_set_on_normal_pages() {
        let request = ProbeRequest {
            quick: true,
            most_memory_bytes: 8 << 20,
            parts: vec![Part::Memory],
            ..ProbeRequest::default()
        };
        let mut last = 0.0;
        let outcome = probe(&request, &mut |share| {
            assert!(share >= last, "{share} after {last}");
            last = share;
            true
        });
        let outcome = outcome.unwrap();
        assert_eq!(last, 1.0);
        for samples in [&outcome.latency, &outcome.batched, &outcome.streamed] {
            let normal: Vec<_> = samples.iter().filter(|sample| sample.pages == Pages::Normal).collect();
            let sizes: Vec<_> = normal.iter().map(|sample| sample.bytes).collect();
            assert_eq!(sizes, [8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 8 << 20]);
            assert!(normal.iter().all(|sample| sample.cycles.len() == 5));
        }
        assert!(outcome.operations.is_empty());
        assert!((0.0..=1.0).contains(&outcome.steal_ratio));
        assert_eq!(outcome.perf.available, outcome.perf.why.is_empty());
        let core_hz = &outcome.clock.core_hz;
        assert!(core_hz.contains(&outcome.clock.cycles_hz), "{:?}", outcome.clock);
    }
}
