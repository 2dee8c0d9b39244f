//! Repeats made of short slices.

use super::clock::ticks;
use super::quantile::quantile;

/// Which of the slices speaks for a repeat: low, because disturbance only adds time; not the lowest, because slices that
/// happen to find more in a cache than others are as true as those that find less.
const SPEAKS: f64 = 0.3;

/// How often a figure is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Repeats that are reported.
    pub repeats: usize,
    /// Slices behind each repeat.
    pub slices: usize,
}

impl Effort {
    /// One figure of ticks per repeat, each a low quantile of slices of `work`.
    pub fn ticks(self, mut work: impl FnMut()) -> Vec<f64> {
        let mut times = Vec::with_capacity(self.slices);
        (0..self.repeats)
            .map(|_| {
                times.clear();
                times.extend((0..self.slices).map(|_| {
                    let start = ticks();
                    work();
                    (ticks() - start) as f64
                }));
                quantile(&mut times, SPEAKS)
            })
            .collect()
    }
}
