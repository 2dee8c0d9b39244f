//! Repeats made of short slices.

use super::clock::{Clock, ticks, ticks_per_cycle_now};
use super::quantile::quantile;

/// The quantile of the slices that represents a repeat: low, because disturbance only adds time; not the lowest,
/// because slices with more cache hits than others are as valid as those with fewer.
const SPEAKS: f64 = 0.3;

/// Number of measurements of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Repeats that are reported.
    pub repeats: usize,
    /// Slices behind each repeat.
    pub slices: usize,
}

/// The time of a slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Took {
    /// Ticks of the counter.
    pub ticks: f64,
    /// Ticks per cycle of the core during the slice.
    pub ticks_per_cycle: f64,
}

impl Took {
    /// Cycles of the core, at the clock that it had then: for work that the core alone does.
    #[must_use]
    pub fn core_cycles(self) -> f64 {
        self.ticks / self.ticks_per_cycle
    }

    /// Cycles of the core at its usual clock: for waits on what has a clock of its own, L3 and memory.
    #[must_use]
    pub fn usual_cycles(self, clock: &Clock) -> f64 {
        clock.cycles(self.ticks)
    }
}

impl Effort {
    /// One figure per repeat, each a low quantile of slices of `work`.
    pub fn measure(self, work: impl FnMut()) -> Vec<Took> {
        self.measure_resting(0.0, work)
    }

    /// As [`Self::measure`], with rests between slices, `rest_ratio` times as long as the slice before.
    pub fn measure_resting(self, rest_ratio: f64, mut work: impl FnMut()) -> Vec<Took> {
        let mut times = Vec::with_capacity(self.slices);
        let mut before = ticks_per_cycle_now();
        (0..self.repeats)
            .map(|_| {
                times.clear();
                times.extend((0..self.slices).map(|_| {
                    let start = ticks();
                    work();
                    let took = ticks() - start;
                    rest((rest_ratio * took as f64) as u64);
                    took as f64
                }));
                let after = ticks_per_cycle_now();
                let ticks_per_cycle = before.midpoint(after);
                before = after;
                Took { ticks: quantile(&mut times, SPEAKS), ticks_per_cycle }
            })
            .collect()
    }
}

/// Waits for some ticks and keeps the core.
pub fn rest(long: u64) {
    let start = ticks();
    while long > 0 && ticks().wrapping_sub(start) < long {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faster_core_needs_the_same_cycles_in_less_time() {
        let clock = Clock { tsc_hz: 2e9, core_hz_repeats: vec![3e9] };
        let slow = Took { ticks: 200.0, ticks_per_cycle: 1.0 };
        let fast = Took { ticks: 100.0, ticks_per_cycle: 0.5 };
        assert_eq!(slow.core_cycles(), fast.core_cycles());
        assert_eq!(slow.usual_cycles(&clock), 300.0);
    }

    #[test]
    fn every_repeat_is_one_figure_of_all_its_slices() {
        let mut runs = 0;
        let took = Effort { repeats: 3, slices: 7 }.measure(|| runs += 1);
        assert_eq!((took.len(), runs), (3, 21));
        assert!(took.iter().all(|took| took.core_cycles() > 0.0), "{took:?}");
    }
}
