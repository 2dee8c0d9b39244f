//! The cost of calling an empty network function: through a dynamic object, for a batch of frames.

use std::hint::black_box;

use serde::Serialize;

use super::quantile::median;
use super::slices::Effort;
use crate::batch::{BATCH_FRAMES, Batch, Buffer};

const CALLS: usize = 256;

/// Cost of calling.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CallCost {
    /// Core cycles of a call for a batch without frames, one value per repeat.
    pub per_batch_cycles: Vec<f64>,
    /// Core cycles that each frame of a full batch adds, one value per repeat.
    pub per_packet_cycles: Vec<f64>,
}

trait Callee {
    fn run(&mut self, batch: &mut Batch<'_>) -> usize;
}

/// Reads the number of frames, not the frames.
struct Nothing;

impl Callee for Nothing {
    #[inline(never)]
    fn run(&mut self, batch: &mut Batch<'_>) -> usize {
        black_box(batch.count())
    }
}

/// Measures the call.
#[must_use]
pub fn call_cost(effort: Effort) -> CallCost {
    let mut buffers = vec![Buffer::default(); BATCH_FRAMES];
    let mut cycles = |frames: usize| -> Vec<f64> {
        let mut callee: Box<dyn Callee> = black_box(Box::new(Nothing));
        let took = effort.measure(|| calls(black_box(&mut *callee), &mut buffers[..frames]));
        took.into_iter().map(|took| took.core_cycles() / CALLS as f64).collect()
    };
    let (empty, full) = (cycles(0), cycles(BATCH_FRAMES));
    let least = median(&empty);
    let per_packet_cycles = full.iter().map(|cycles| (cycles - least).max(0.0) / BATCH_FRAMES as f64).collect();
    CallCost { per_batch_cycles: empty, per_packet_cycles }
}

#[inline(never)]
fn calls(callee: &mut dyn Callee, buffers: &mut [Buffer]) {
    for _ in 0..CALLS {
        let mut batch = Batch::new(black_box(&mut *buffers));
        black_box(callee.run(black_box(&mut batch)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_costs_something_and_every_repeat_is_told() {
        let cost = call_cost(Effort { repeats: 4, slices: 5 });
        assert_eq!((cost.per_batch_cycles.len(), cost.per_packet_cycles.len()), (4, 4));
        assert!(cost.per_batch_cycles.iter().all(|&cycles| cycles > 0.0), "{cost:?}");
        assert!(cost.per_packet_cycles.iter().all(|&cycles| cycles >= 0.0), "{cost:?}");
    }
}
