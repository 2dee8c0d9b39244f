//! The cost of a line in a working set of a given size.
//!
//! ```text
//!   dependent   a chain of pointers through all lines in random order: each load waits for the one before
//!   batched     random lines, 32 prefetched, then 32 loaded, then 32 used, as in the operations
//!   streamed    lines in the order of their addresses
//! ```
//!
//! Lines are accessed at random with repetition, as packets access the entries of a table. A chase that repeats one
//! cycle longer than a cache would have no hit in a cache that replaces the least recently used line. Chases therefore
//! continue at a random place of the cycle every [`SEGMENT`] steps.

use std::hint::black_box;

use serde::Serialize;

use super::clock::{Clock, raw_ns, ticks};
use super::progress::Progress;
use super::quantile::median;
use super::slices::{Effort, Took, rest};
use crate::batch::BATCH_FRAMES;
use crate::error::{ProbeError, Result};
use crate::memory::{HugeMemory, LINE_BYTES, Line, Pages};
use crate::operation::prefetch;

/// Steps of a chase between two jumps.
pub const SEGMENT: usize = 16;

const SEGMENTS: usize = 128;
const BATCHES: usize = 64;
/// Rounds of arithmetic on each loaded value: about 30 cycles, as the other operations of a small function.
const WORK: usize = 16;
/// Rest after a batch over its time: a function reads a line or two per packet, and takes 100 to 200 cycles for the
/// packet, with the refill of the rings.
const REST_RATIO: f64 = 2.0;
const STREAM_LINES: usize = 2048;
/// Lines of a call of `chase`, `batched`, `streamed`.
const CHASED: usize = SEGMENTS * SEGMENT;
const BATCHED: usize = BATCHES * BATCH_FRAMES;
/// Mean number of accesses to each line before a working set is measured. A last-level cache that holds the lines
/// evicted from the inner caches, and is shared with others, reaches its steady state only after several rounds.
const WARMING_ROUNDS: usize = 8;
/// Longest warming up, ns.
const WARMING_NS: u64 = 200_000_000;
const WORDS: usize = LINE_BYTES / 8;
/// The working set of the reference, whose cost is 0 by definition.
const L1_BYTES: usize = 4096;

/// Cost of a line in a working set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencySample {
    /// Size of the working set.
    pub bytes: usize,
    /// Pages that it lies on.
    pub pages: Pages,
    /// Core cycles per line, one value per repeat.
    pub cycles: Vec<f64>,
}

/// Costs of lines by the kind of access.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Latencies {
    /// Dependent loads.
    pub latency: Vec<LatencySample>,
    /// Batched loads, on top of a working set of 4 KiB.
    pub batched: Vec<LatencySample>,
    /// Streamed loads, on top of a working set of 4 KiB.
    pub streamed: Vec<LatencySample>,
}

/// How working sets are measured.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// Sizes of the working sets: powers of two, growing.
    pub sizes: &'a [usize],
    /// Bytes of the caches that run with the core's clock (L1 and L2).
    pub core_bytes: usize,
    /// Repeats.
    pub effort: Effort,
    /// Seed of the random order.
    pub seed: u64,
    /// Converts ticks to cycles.
    pub clock: &'a Clock,
}

impl Plan<'_> {
    /// Cycles per line of work that accesses `lines`, on top of `l1` cycles of the core, with the caches in the steady
    /// state of this work.
    ///
    /// The level that holds the lines decides which clock the wait on top depends on.
    fn cycles(&self, bytes: usize, lines: usize, l1: f64, rest_ratio: f64, mut work: impl FnMut()) -> Vec<f64> {
        let (start, rounds) = (raw_ns(), WARMING_ROUNDS * bytes / LINE_BYTES / lines);
        for round in 0..=rounds {
            let from = ticks();
            work();
            rest((rest_ratio * (ticks() - from) as f64) as u64);
            if round % 16 == 0 && raw_ns() - start > WARMING_NS {
                break;
            }
        }
        let on_top = |took: Took| {
            let wait = Took { ticks: took.ticks / lines as f64 - l1 * took.ticks_per_cycle, ..took };
            let cycles = if bytes <= self.core_bytes { wait.core_cycles() } else { wait.usual_cycles(self.clock) };
            cycles.max(0.0)
        };
        self.effort.measure_resting(rest_ratio, work).into_iter().map(on_top).collect()
    }
}

/// Measures the plan's working sets on one kind of pages.
///
/// The outcome is empty if huge pages are requested and the kernel has none.
///
/// # Errors
///
/// [`ProbeError::Memory`] if the greatest working set does not fit; [`ProbeError::Request`] for a size that is not a
/// power of two of 4 KiB or more; [`ProbeError::Interrupted`].
pub fn latencies(plan: &Plan<'_>, pages: Pages, progress: &mut Progress<'_>) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    if let Some(wrong) = plan.sizes.iter().find(|&&size| size < L1_BYTES || !size.is_power_of_two()) {
        let message = format!("got {wrong} bytes; a working set is a power of two of 4096 bytes or more");
        return Err(ProbeError::request("working set", message));
    }
    let Some(most) = plan.sizes.iter().copied().max() else { return Ok(latencies) };
    let mut memory = HugeMemory::new("the working set of the latency", most, pages)?;
    progress.at(0.1)?;
    if pages == Pages::Huge && memory.huge_ratio() < 0.5 {
        return Ok(latencies);
    }
    let (mut random, mut next_line) = (plan.seed, 0);
    let set = &memory.as_slice::<Line>()[..L1_BYTES / LINE_BYTES];
    // L1 depends on the core's clock for any `core_bytes`.
    let l1 = Plan { core_bytes: L1_BYTES, ..*plan };
    let batched_l1 = median(&l1.cycles(L1_BYTES, BATCHED, 0.0, 0.0, || batched(set, &mut random)));
    let streamed_l1 = median(&l1.cycles(L1_BYTES, STREAM_LINES, 0.0, 0.0, || streamed(set, &mut next_line)));
    let (mut done, all) = (0, plan.sizes.iter().sum::<usize>() + plan.sizes.len() * BIG);
    for &bytes in plan.sizes {
        let lines = bytes / LINE_BYTES;
        write_cycle(&mut memory.as_mut_slice::<u64>()[..lines * WORDS], plan.seed);
        let set = &memory.as_slice::<Line>()[..lines];
        let words = &memory.as_slice::<u64>()[..lines * WORDS];
        let sample = |cycles| LatencySample { bytes, pages, cycles };
        let cycles = plan.cycles(bytes, CHASED, 0.0, 0.0, || chase(words, &mut random));
        latencies.latency.push(sample(cycles));
        let cycles = plan.cycles(bytes, BATCHED, batched_l1, REST_RATIO, || batched(set, &mut random));
        latencies.batched.push(sample(cycles));
        next_line = 0;
        let cycles = plan.cycles(bytes, STREAM_LINES, streamed_l1, 0.0, || streamed(set, &mut next_line));
        latencies.streamed.push(sample(cycles));
        done += bytes + BIG;
        progress.at(0.1 + 0.9 * done as f64 / all as f64)?;
    }
    Ok(latencies)
}

/// Bytes of a working set whose measurement takes as long as its preparation, about.
const BIG: usize = 32 << 20;

/// A permutation of 0..2^bits in no visible order.
#[derive(Debug, Clone, Copy)]
struct Shuffle {
    mask: usize,
    half: u32,
    seed: usize,
}

impl Shuffle {
    fn new(count: usize, seed: u64) -> Self {
        debug_assert!(count.is_power_of_two());
        Self { mask: count - 1, half: count.trailing_zeros().div_ceil(2).max(1), seed: seed as usize }
    }

    /// Each step can be undone within the bits of the mask: adding, multiplying by an odd number, x ^ x >> n.
    fn at(self, number: usize) -> usize {
        let mut value = number.wrapping_add(self.seed) & self.mask;
        for factor in [0x9e37_79b9_7f4a_7c15_u64, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
            value = value.wrapping_mul(factor as usize | 1) & self.mask;
            value ^= value >> self.half;
        }
        value
    }
}

/// Writes into the first word of each line the number of the first word of the next one: one cycle through all lines.
fn write_cycle(words: &mut [u64], seed: u64) {
    let count = words.len() / WORDS;
    let order = Shuffle::new(count, seed);
    let mut line = order.at(0);
    for number in 1..=count {
        let next = order.at(number & (count - 1));
        words[line * WORDS] = (next * WORDS) as u64;
        line = next;
    }
}

/// A number that looks random for each count (splitmix64's finaliser; Steele, Lea & Flood 2014).
#[inline]
fn mix(count: &mut u64) -> u64 {
    *count = count.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (*count ^ *count >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ value >> 27
}

/// A random place among `count` (a power of two).
#[inline]
fn somewhere(count: usize, random: &mut u64) -> usize {
    (mix(random).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20) as usize & (count - 1)
}

/// Follows the cycle for some segments, each from a random line on.
#[inline(never)]
fn chase(words: &[u64], random: &mut u64) {
    let none: usize = black_box(0);
    let mut at = 0;
    for _ in 0..SEGMENTS {
        // Always 0, but the processor cannot know it, so the segments do not overlap.
        at = (at & none) ^ (somewhere(words.len() / WORDS, random) * WORDS);
        for _ in 0..SEGMENT {
            at = words[at] as usize;
        }
    }
    black_box(at);
}

/// Batches of random lines, stage by stage, with as much work between batches as functions have. The processor then
/// looks no further ahead into the next batch than in a function, and the time between two accesses to a line is
/// realistic: others evict lines from a shared cache all the time, so the hits depend on the rate of the accesses.
#[inline(never)]
fn batched(lines: &[Line], random: &mut u64) {
    let mut sum = 0;
    let mut lines_at = [0; BATCH_FRAMES];
    let mut values = [0; BATCH_FRAMES];
    for _ in 0..BATCHES {
        for line in &mut lines_at {
            *line = somewhere(lines.len(), random);
            prefetch(lines, *line);
        }
        for (value, &line) in values.iter_mut().zip(&lines_at) {
            *value = lines[line].0[0];
        }
        for value in black_box(&mut values) {
            let mut count = *value;
            for _ in 0..WORK {
                count ^= mix(&mut count);
            }
            sum ^= count;
        }
    }
    black_box(sum);
}

/// Lines in order, from where the last call ended.
#[inline(never)]
fn streamed(lines: &[Line], next_line: &mut usize) {
    let mut sum: u64 = 0;
    let mut left = STREAM_LINES;
    while left > 0 {
        let end = (*next_line + left).min(lines.len());
        for line in &lines[*next_line..end] {
            sum = sum.wrapping_add(line.0[0]);
        }
        left -= end - *next_line;
        *next_line = end & (lines.len() - 1);
    }
    black_box(sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(words: &[u64]) -> Vec<u32> {
        let mut visits = vec![0; words.len() / WORDS];
        let mut at = 0;
        for _ in 0..visits.len() {
            visits[at / WORDS] += 1;
            at = words[at] as usize;
        }
        assert_eq!(at, 0, "the cycle closes");
        visits
    }

    #[test]
    fn a_chase_visits_every_line_once_and_comes_back() {
        for (lines, seed) in [(64, 1), (128, 7), (1 << 12, 2), (1 << 15, u64::MAX)] {
            let mut words = vec![0; lines * WORDS];
            write_cycle(&mut words, seed);
            assert!(visits(&words).iter().all(|&visits| visits == 1), "{lines} lines, seed {seed}");
        }
    }

    #[test]
    fn neighbours_in_a_chase_are_no_neighbours_in_memory() {
        let mut words = vec![0; (1 << 15) * WORDS];
        write_cycle(&mut words, 1);
        let near = (0..1 << 15).filter(|line| (words[line * WORDS] as usize / WORDS).abs_diff(*line) <= 64).count();
        // Of a random permutation, 2 · 64 / 2^15 of the lines have their successor that close: 128 in the mean.
        assert!(near < 256, "{near}");
    }

    #[test]
    fn random_places_cover_the_working_set_evenly() {
        let mut random = 1;
        let mut visits = [0_u32; 64];
        for _ in 0..64_000 {
            visits[somewhere(64, &mut random)] += 1;
        }
        // Poisson with mean 1000: six standard deviations.
        assert!(visits.iter().all(|&visits| visits.abs_diff(1000) < 190), "{visits:?}");
    }

    fn measured(
        sizes: &[usize],
        pages: Pages,
        effort: Effort,
        report: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Latencies> {
        let clock = Clock { tsc_hz: 1e9, core_hz_repeats: vec![1e9] };
        let plan = Plan { sizes, core_bytes: 0, effort, seed: 1, clock: &clock };
        latencies(&plan, pages, &mut Progress::new(report))
    }

    #[test]
    fn a_line_far_away_does_not_cost_less_than_one_in_l1() {
        let effort = Effort { repeats: 3, slices: 10 };
        let latencies = measured(&[4 << 10, 128 << 20], Pages::Normal, effort, &mut |_| true).unwrap();
        let cost = |samples: &[LatencySample], size: usize| median(&samples[size].cycles);
        // Memory is tens of times slower than L1; half as slow would be a wrong measurement, not noise.
        assert!(cost(&latencies.latency, 1) > 2.0 * cost(&latencies.latency, 0), "{:?}", latencies.latency);
        assert!(cost(&latencies.batched, 1) >= cost(&latencies.batched, 0), "{:?}", latencies.batched);
        // Accesses to memory in a batch overlap, so that they cost less than dependent ones.
        assert!(cost(&latencies.batched, 1) < cost(&latencies.latency, 1), "{latencies:?}");
    }

    #[test]
    fn a_working_set_that_cannot_be_is_refused() {
        let effort = Effort { repeats: 1, slices: 1 };
        for (bytes, goes_on, kind) in [(5000, true, "request"), (1 << 46, true, "memory"), (4096, false, "interrupted")]
        {
            let error = measured(&[bytes], Pages::Huge, effort, &mut |_| goes_on).unwrap_err();
            assert_eq!(error.kind(), kind);
        }
    }
}
