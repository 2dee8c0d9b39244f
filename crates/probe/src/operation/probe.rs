//! Times the operations on this host: cycles per frame with everything in the first-level cache.
//!
//! ```text
//!   repeat 1: case a, case b, …      a turn of a case: slices of 16 batches, each prepared untimed with new keys
//!   repeat 2: case a, case b, …      its value: a low quantile of the slices, less an empty slice
//! ```
//!
//! The cases call the functions that network functions call, in the same loops over batches. Repeats lie apart in time,
//! so a disturbance of a second spoils one of them; the low quantile passes over those of microseconds. Ticks become
//! cycles at the clock that the core has during the turn.

mod frames;
mod tables;
mod values;

use std::hint::black_box;

use serde::{Deserialize, Serialize};

use crate::batch::BATCH_FRAMES;
use crate::error::{ProbeError, Result};
use crate::host::clock::{ticks, ticks_per_cycle_now};

/// The cost of an operation with some parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The operation's name.
    pub operation: String,
    /// Values of its parameters, by the letters of Baldi & Sapio 2018, table 1.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// Cycles of the core per frame, one value per repeat.
    pub cycles: Vec<f64>,
    /// The level of the memory hierarchy that all data are found in.
    pub level: String,
}

/// The duration of the measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Effort {
    repeats: usize,
    turn_slices: usize,
    /// Slices that may go unused at the beginning of a turn, until caches and predictors know the case.
    warm_slices: usize,
    /// Ticks after which a turn ends even with fewer slices.
    turn_ticks: u64,
}

impl Effort {
    fn new(quick: bool, tsc_hz: f64) -> Self {
        if quick {
            Self { repeats: 5, turn_slices: 400, warm_slices: 20, turn_ticks: (0.006 * tsc_hz) as u64 }
        } else {
            Self { repeats: 7, turn_slices: 2000, warm_slices: 50, turn_ticks: (0.02 * tsc_hz) as u64 }
        }
    }
}

/// Batches of a slice.
const SLICE_BATCHES: usize = 16;
/// Share of a turn's slices that were faster than the value taken.
const QUANTILE_RATIO: f64 = 0.2;

/// One operation with some parameters, ready to be timed.
struct Case {
    operation: &'static str,
    parameters: Vec<(&'static str, f64)>,
    level: &'static str,
    batch_frames: usize,
    /// Prepares and times a slice; ticks.
    slice: Box<dyn FnMut() -> u64>,
}

impl Case {
    fn new(operation: &'static str, parameters: &[(&'static str, f64)], slice: impl FnMut() -> u64 + 'static) -> Self {
        Self {
            operation,
            parameters: parameters.to_vec(),
            level: "L1",
            batch_frames: BATCH_FRAMES,
            slice: Box::new(slice),
        }
    }

    /// Cycles of the core per frame, of one turn.
    fn turn(&mut self, effort: Effort, empty_ticks: f64) -> f64 {
        for _ in 0..effort.warm_slices {
            (self.slice)();
        }
        let before = ticks_per_cycle_now();
        let until = ticks() + effort.turn_ticks;
        let mut slices = Vec::with_capacity(effort.turn_slices);
        while slices.len() < effort.turn_slices && (slices.len() < 20 || ticks() < until) {
            slices.push((self.slice)());
        }
        let ticks_per_cycle = before.midpoint(ticks_per_cycle_now());
        let frames = (SLICE_BATCHES * self.batch_frames) as f64;
        (low_quantile(&mut slices) - empty_ticks).max(0.0) / ticks_per_cycle / frames
    }
}

/// Times a slice: the body once per batch.
#[inline(never)]
fn timed(mut body: impl FnMut(usize)) -> u64 {
    let start = ticks();
    for batch in 0..SLICE_BATCHES {
        body(batch);
    }
    ticks().wrapping_sub(start)
}

fn low_quantile(slices: &mut [u64]) -> f64 {
    slices.sort_unstable();
    slices[(slices.len() as f64 * QUANTILE_RATIO) as usize] as f64
}

/// Times every operation over a small grid of its parameters.
///
/// `tsc_hz` is the rate of the counter, `seed` draws the keys. `progress` gets the share done, 0 to 1, every few
/// milliseconds, and returns whether to go on. Takes about 10 s, 3 s if `quick`.
///
/// # Errors
///
/// [`ProbeError::Interrupted`] if `progress` says so; [`ProbeError::Memory`] if there is none for the tables, about
/// 50 MiB.
pub fn samples(quick: bool, seed: u64, tsc_hz: f64, progress: &mut dyn FnMut(f64) -> bool) -> Result<Vec<Sample>> {
    let effort = Effort::new(quick, tsc_hz);
    let mut cases = cases(seed)?;
    let mut empty: Vec<u64> = (0..1000).map(|_| timed(|batch| _ = black_box(batch))).collect();
    let empty_ticks = low_quantile(&mut empty);
    let mut cycles = vec![Vec::with_capacity(effort.repeats); cases.len()];
    let turns = effort.repeats * cases.len();
    for repeat in 0..effort.repeats {
        for (number, case) in cases.iter_mut().enumerate() {
            if !progress((repeat * cycles.len() + number) as f64 / turns as f64) {
                return Err(ProbeError::Interrupted);
            }
            cycles[number].push(case.turn(effort, empty_ticks));
        }
    }
    let sample = |(case, cycles): (Case, Vec<f64>)| Sample {
        operation: case.operation.to_owned(),
        parameters: case.parameters.into_iter().map(|(name, value)| (name.to_owned(), number(value))).collect(),
        cycles,
        level: case.level.to_owned(),
    };
    Ok(cases.into_iter().zip(cycles).map(sample).collect())
}

/// A whole number without a decimal point.
fn number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 { (value as u64).into() } else { value.into() }
}

fn cases(seed: u64) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    frames::cases(&mut cases);
    values::cases(&mut cases)?;
    tables::cases(&mut cases, seed)?;
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_timed_with_values_of_the_parameters_that_it_depends_on() {
        let mut samples_of = std::collections::BTreeMap::<_, Vec<_>>::new();
        for case in cases(1).unwrap() {
            samples_of.entry(case.operation).or_default().push(case.parameters);
        }
        let operations = "io_mem mem_io parse deparse increase decrease sum checksum inc_checksum array_access \
                          ht_lookup lpm_lookup ct_insertion crc_hash toeplitz_hash aes_gcm acl_lookup counter_update \
                          prepend strip enqueue dequeue check assemble";
        let mut operations: Vec<&str> = operations.split(' ').filter(|name| !name.is_empty()).collect();
        operations.sort_unstable();
        assert_eq!(samples_of.keys().copied().collect::<Vec<_>>(), operations);
        for (operation, grid) in samples_of {
            assert!(grid.len() >= 4, "{operation} has {} samples", grid.len());
            for (index, parameters) in grid.iter().enumerate() {
                assert!(!grid[..index].contains(parameters), "{operation}{parameters:?} comes twice");
                assert!(parameters.iter().map(|pair| pair.0).eq(grid[0].iter().map(|pair| pair.0)));
            }
        }
    }

    #[test]
    fn a_probe_ends_when_its_caller_says_so() {
        let mut calls = 0;
        let outcome = samples(true, 1, 1e9, &mut |done| {
            calls += 1;
            assert!((0.0..1.0).contains(&done));
            calls < 3
        });
        assert!(matches!(outcome, Err(ProbeError::Interrupted)));
        assert_eq!(calls, 3);
    }

    #[test]
    fn every_slice_of_every_case_runs_without_a_fault() {
        for case in &mut cases(7).unwrap() {
            for _ in 0..3 {
                (case.slice)();
            }
        }
    }
}
