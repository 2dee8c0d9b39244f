//! Ticks of the processor's counter, in seconds and in cycles of the core.
//!
//! ```text
//!   ticks (TSC)  ── / tsc_hz ──► seconds                 tsc_hz   against CLOCK_MONOTONIC_RAW
//!                ── × core_hz / tsc_hz ──► core cycles    core_hz  a chain of additions: one cycle each
//! ```
//!
//! The TSC runs at a constant rate, the core at a rate that depends on its governor and its neighbours. Where a program
//! may read no counter, `CLOCK_MONOTONIC_RAW` in nanoseconds replaces it.
#![allow(unsafe_code, reason = "rdtsc and clock_gettime(2)")]

use std::hint::black_box;

use super::quantile::{median, quantile};

/// Steps of the short and the long chain of additions; their difference is free of the cost of taking the time.
const CHAIN_STEPS: [u32; 2] = [2_000, 10_000];
/// Cycles of a step: an addition and an exclusive or, each waiting for the one before.
pub(crate) const STEP_CYCLES: f64 = 2.0;
/// Chains of each length in a repeat.
const CHAINS: usize = 60;
/// The same for a quick reading of the clock.
const CHAINS_NOW: usize = 12;

/// The counter that [`ticks`] reads.
pub const COUNTER: &str = if cfg!(target_arch = "x86_64") { "rdtsc" } else { "clock_monotonic_raw" };

/// Reads the counter, after all earlier instructions and before all later ones.
#[cfg(target_arch = "x86_64")]
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 processor has both instructions (SSE2; a kernel that forbids rdtsc ends the process).
    unsafe {
        // lfence waits for all earlier instructions and holds up later ones (Intel SDM vol. 2, RDTSC).
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

/// Reads the counter, after all earlier instructions and before all later ones.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    raw_ns()
}

/// `CLOCK_MONOTONIC_RAW`, ns, which NTP does not adjust.
#[must_use]
pub fn raw_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the call, and this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processor time of the calling thread, ns.
#[must_use]
pub fn thread_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid for the call, and this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The length of a tick.
#[derive(Debug, Clone, PartialEq)]
pub struct Clock {
    /// Ticks per second.
    pub tsc_hz: f64,
    /// Cycles of the core per second, one value per repeat.
    pub core_hz_repeats: Vec<f64>,
}

impl Clock {
    /// Calibrates the clock on the core that the calling thread runs on: pin it before ([`super::cpu::Pinned`]).
    ///
    /// Takes about `repeats` x 25 ms.
    #[must_use]
    pub fn calibrate(repeats: usize) -> Self {
        let start = instant();
        // Warms the core up: its frequency rises within milliseconds of work.
        while raw_ns() - start.1 < 10_000_000 {
            black_box(chain(CHAIN_STEPS[1]));
        }
        let mut rates = Vec::new();
        let mut costs = Vec::new();
        for _ in 0..repeats.max(1) {
            let (from_ticks, from_ns) = instant();
            costs.push(ticks_per_cycle(CHAINS));
            while raw_ns() - from_ns < 20_000_000 {
                std::hint::spin_loop();
            }
            let (to_ticks, to_ns) = instant();
            rates.push((to_ticks - from_ticks) as f64 / ((to_ns - from_ns) as f64 * 1e-9));
        }
        let tsc_hz = if cfg!(target_arch = "x86_64") { median(&rates) } else { 1e9 };
        Self { tsc_hz, core_hz_repeats: costs.iter().map(|ticks| tsc_hz / ticks).collect() }
    }

    /// Cycles of the core per second: the median of the repeats.
    #[must_use]
    pub fn core_hz(&self) -> f64 {
        median(&self.core_hz_repeats)
    }

    /// Ticks as seconds.
    #[must_use]
    pub fn seconds(&self, ticks: f64) -> f64 {
        ticks / self.tsc_hz
    }

    /// Ticks as cycles of the core.
    #[must_use]
    pub fn cycles(&self, ticks: f64) -> f64 {
        ticks * self.core_hz() / self.tsc_hz
    }
}

/// Both clocks at the same moment, as closely as possible in 16 tries.
fn instant() -> (u64, u64) {
    let look = || {
        let before = ticks();
        let ns = raw_ns();
        let after = ticks();
        (after - before, before.midpoint(after), ns)
    };
    let (_, ticks, ns) = (0..16).map(|_| look()).min().expect("looked 16 times");
    (ticks, ns)
}

/// A chain of `2 · steps` instructions of one cycle that wait for each other.
///
/// Additions alone would be folded into one multiplication by the compiler, and additions of a constant are done at no
/// cost by recent cores; an exclusive or in between leaves nothing to fold.
#[inline(never)]
pub(crate) fn chain(steps: u32) -> u64 {
    let step: u64 = black_box(0x9e37_79b9_7f4a_7c15);
    let mut value: u64 = black_box(1);
    for _ in 0..steps / 8 {
        for _ in 0..8 {
            value = value.wrapping_add(step) ^ step;
        }
    }
    black_box(value)
}

/// Ticks per cycle of the core at this moment, in a tenth of a millisecond: for figures that depend on the core's clock
/// alone.
///
/// Cores change their clock several times a second, as heat and neighbours allow.
#[must_use]
pub fn ticks_per_cycle_now() -> f64 {
    ticks_per_cycle(CHAINS_NOW)
}

fn ticks_per_cycle(chains: usize) -> f64 {
    let [short, long] = CHAIN_STEPS.map(|steps| {
        let mut times: Vec<f64> = (0..chains)
            .map(|_| {
                let start = ticks();
                chain(steps);
                (ticks() - start) as f64
            })
            .collect();
        quantile(&mut times, 0.1)
    });
    (long - short).max(1.0) / (f64::from(CHAIN_STEPS[1] - CHAIN_STEPS[0]) * STEP_CYCLES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_does_not_run_backwards() {
        let mut last = ticks();
        for _ in 0..1000 {
            let now = ticks();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn a_second_of_ticks_is_a_second_of_the_clock_and_core_hz_of_cycles() {
        let clock = Clock { tsc_hz: 2e9, core_hz_repeats: vec![3e9, 2.9e9, 9e9] };
        assert_eq!(clock.seconds(2e9), 1.0);
        assert_eq!(clock.cycles(2e9), 3e9);
    }

    #[test]
    fn calibration_finds_a_clock_that_a_processor_can_have() {
        let clock = Clock::calibrate(3);
        assert_eq!(clock.core_hz_repeats.len(), 3);
        assert!((1e6..1e11).contains(&clock.tsc_hz), "{clock:?}");
        // Disturbance only lengthens a chain, so it lowers the figure.
        assert!((1e8..1e10).contains(&clock.core_hz()), "{clock:?}");
    }
}
