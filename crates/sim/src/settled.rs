//! What is left of a run without its transient: where to cut it, its means, and the samples that give the intervals.

use crate::ledger::{MINIS, Mini, Row, SEGMENTS};
use crate::run::Record;
use crate::scenario::Scenario;
use crate::steady::{Truncation, mser5};
use crate::time::PS_PER_S;

const MINIS_PER_SEGMENT: usize = MINIS / SEGMENTS;
const BATCHES: usize = 20;

/// Fewer frames than this say nothing about a steady state.
pub(crate) const FEWEST_FRAMES: u64 = 200;

/// Segments that are left out at least: every trial starts with an empty router.
const LEAST_CUT: usize = 1;

/// How many leading segments are the transient of all replications, and whether it ended within them.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub first: usize,
    pub settled: bool,
}

/// Decides on the transient from the mean latencies of all replications together.
///
/// One cut for all of them: a cut for each would leave out what happens to be high at its beginning, and so bias the
/// mean.
///
/// Where something happens during the trial, that is the question, and nothing is left out.
pub(crate) fn window(scenario: &Scenario, records: &[Record]) -> Window {
    if !scenario.run.events.is_empty() {
        return Window { first: 0, settled: false };
    }
    let mut sums = vec![Mini::default(); MINIS];
    for record in records {
        sums.iter_mut().zip(&record.ledger.minis).for_each(|(sum, mini)| sum.add(mini));
    }
    let series: Vec<f64> =
        sums.iter().filter(|mini| mini.frames > 0).map(|mini| mini.latency_ps as f64 / mini.frames as f64).collect();
    let fewest = records.iter().map(|record| record.ledger.offered_in_all()).min().unwrap_or(0);
    if series.is_empty() || fewest < FEWEST_FRAMES {
        return Window { first: 0, settled: false };
    }
    match mser5(&series) {
        // The series may have gaps; cut the same share of the trial as of the series.
        Truncation::After(cut) => {
            let first = (cut * SEGMENTS).div_ceil(series.len()).clamp(LEAST_CUT, SEGMENTS / 2);
            Window { first, settled: true }
        }
        // Of a trial that is all transient, everything is reported.
        Truncation::NotSettled => Window { first: 0, settled: false },
    }
}

/// Sums what a row counts after its first segments.
pub(crate) fn after(row: &Row, first: usize) -> f64 {
    row[first..].iter().sum::<u64>() as f64
}

/// Means over one run after its transient.
pub(crate) struct Means {
    pub seconds: f64,
    pub forwarded: f64,
    pub bytes: f64,
    pub offered: f64,
    pub dropped: f64,
    pub latency_s: f64,
    pub waited_s: f64,
}

impl Means {
    pub fn of(record: &Record, duration_s: f64, first: usize) -> Self {
        let ledger = &record.ledger;
        let sum = total(&ledger.minis[first * MINIS_PER_SEGMENT..]);
        let frames = sum.frames as f64;
        Self {
            seconds: duration_s * (SEGMENTS - first) as f64 / SEGMENTS as f64,
            forwarded: frames,
            bytes: sum.bytes as f64,
            offered: ledger.offered.iter().map(|offered| after(&offered.frames, first)).sum(),
            dropped: ledger.accounts.iter().map(|account| after(&account.dropped, first)).sum(),
            latency_s: sum.latency_ps as f64 / frames / PS_PER_S,
            waited_s: sum.waited_ps as f64 / frames / PS_PER_S,
        }
    }

    fn loss(&self) -> f64 {
        if self.offered > 0.0 { self.dropped / self.offered } else { 0.0 }
    }
}

/// Adds pieces of a run up.
pub(crate) fn total(minis: &[Mini]) -> Mini {
    let mut sum = Mini::default();
    for mini in minis {
        sum.add(mini);
    }
    sum
}

/// Samples whose spread gives the intervals: batch means of one run, or the means of several.
pub(crate) struct Samples {
    pub forwarded_pps: Vec<f64>,
    pub loss: Vec<f64>,
    pub latency_s: Vec<f64>,
    pub waited_s: Vec<f64>,
}

impl Samples {
    pub fn of_batches(record: &Record, duration_s: f64, first: usize) -> Self {
        let minis = &record.ledger.minis[first * MINIS_PER_SEGMENT..];
        let size = minis.len() / BATCHES;
        let batches: Vec<Mini> = minis.chunks_exact(size).map(total).collect();
        let each_s = duration_s * size as f64 / MINIS as f64;
        let mean = |pick: fn(&Mini) -> u64| {
            batches
                .iter()
                .filter(|batch| batch.frames > 0)
                .map(|batch| pick(batch) as f64 / batch.frames as f64 / PS_PER_S)
                .collect()
        };
        let loss = (first..SEGMENTS)
            .filter(|&segment| record.ledger.offered_in(segment) > 0)
            .map(|segment| {
                let dropped: u64 = record.ledger.accounts.iter().map(|account| account.dropped[segment]).sum();
                dropped as f64 / record.ledger.offered_in(segment) as f64
            })
            .collect();
        Self {
            forwarded_pps: batches.iter().map(|batch| batch.frames as f64 / each_s).collect(),
            loss,
            latency_s: mean(|batch| batch.latency_ps),
            waited_s: mean(|batch| batch.waited_ps),
        }
    }

    /// Parts of a trial in which something happens are no samples of one thing.
    pub fn none() -> Self {
        Self { forwarded_pps: vec![], loss: vec![], latency_s: vec![], waited_s: vec![] }
    }

    pub fn of_replications(means: &[Means]) -> Self {
        Self {
            forwarded_pps: means.iter().map(|m| m.forwarded / m.seconds).collect(),
            loss: means.iter().map(Means::loss).collect(),
            latency_s: means.iter().map(|m| m.latency_s).collect(),
            waited_s: means.iter().map(|m| m.waited_s).collect(),
        }
    }
}
