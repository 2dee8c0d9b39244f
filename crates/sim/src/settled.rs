//! A run without its transient: where it is cut, its means, and their intervals.

use crate::ledger::{MINIS, Mini, Row, SEGMENTS};
use crate::run::Record;
use crate::scenario::Scenario;
use crate::steady::{Truncation, half_width, ratio_half_width, transient};
use crate::time::PS_PER_S;

const MINIS_PER_SEGMENT: usize = MINIS / SEGMENTS;

/// The fewest frames of a steady state.
pub(crate) const FEWEST_FRAMES: u64 = 200;

/// The fewest segments that are left out, because every trial starts with an empty router.
const LEAST_CUT: usize = 1;

/// How many leading segments are the transient of all replications, and whether it ended within them.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub first: usize,
    pub settled: bool,
}

/// Decides on the transient from the mean latencies of all replications together.
///
/// All replications share one cut: a cut for each would leave out a beginning that happens to be high, and so bias the
/// mean.
///
/// In a trial with changes the transient is the subject, and a trace is measured whole, so nothing is left out.
pub(crate) fn window(scenario: &Scenario, records: &[Record]) -> Window {
    if scenario.run.whole || !scenario.run.events.is_empty() {
        return Window { first: 0, settled: scenario.run.whole };
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
    match transient(&series) {
        // The series may have gaps; cut the same share of the trial as of the series.
        Truncation::After(cut) => {
            let first = (cut * SEGMENTS).div_ceil(series.len()).clamp(LEAST_CUT, SEGMENTS / 2);
            Window { first, settled: true }
        }
        // A trial that is all transient is reported whole.
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

/// Sums pieces of a run.
pub(crate) fn total(minis: &[Mini]) -> Mini {
    let mut sum = Mini::default();
    for mini in minis {
        sum.add(mini);
    }
    sum
}

/// Half-widths of the 95 % intervals: from the batch means of one run, or the means of several.
pub(crate) struct HalfWidths {
    pub forwarded_pps: f64,
    pub loss: f64,
    pub latency_s: f64,
    pub waited_s: f64,
}

impl HalfWidths {
    /// Half-widths from the batch means of runs, one after the other.
    pub fn of_batches(records: &[Record], duration_s: f64, first: usize) -> Self {
        let minis: Vec<&Mini> =
            records.iter().flat_map(|record| &record.ledger.minis[first * MINIS_PER_SEGMENT..]).collect();
        let of = |pick: fn(&Mini) -> u64| minis.iter().map(|mini| pick(mini) as f64).collect::<Vec<f64>>();
        let frames = of(|mini| mini.frames);
        let spans_s = vec![duration_s / MINIS as f64; minis.len()];
        let (mut offered, mut dropped) = (vec![], vec![]);
        for ledger in records.iter().map(|record| &record.ledger) {
            for segment in first..SEGMENTS {
                offered.push(ledger.offered_in(segment) as f64);
                dropped.push(ledger.accounts.iter().map(|account| account.dropped[segment]).sum::<u64>() as f64);
            }
        }
        let forwarded_pps = ratio_half_width(&frames, &spans_s);
        Self {
            forwarded_pps: wider(forwarded_pps, edge_pps(&frames, &spans_s) * records.len() as f64),
            loss: ratio_half_width(&dropped, &offered),
            latency_s: ratio_half_width(&of(|mini| mini.latency_ps), &frames) / PS_PER_S,
            waited_s: ratio_half_width(&of(|mini| mini.waited_ps), &frames) / PS_PER_S,
        }
    }

    /// No half-widths, for one run with changes: its parts are not samples of one distribution.
    pub fn none() -> Self {
        Self { forwarded_pps: f64::NAN, loss: f64::NAN, latency_s: f64::NAN, waited_s: f64::NAN }
    }

    /// Student's of the means of several runs, or that of their batch means where it is wider: few means do not show how
    /// skewed they are.
    pub fn of_replications(means: &[Means], records: &[Record], duration_s: f64, first: usize) -> Self {
        let (runs, batches) = (Self::of_means(means), Self::of_batches(records, duration_s, first));
        Self {
            forwarded_pps: wider(runs.forwarded_pps, batches.forwarded_pps),
            loss: wider(runs.loss, batches.loss),
            latency_s: wider(runs.latency_s, batches.latency_s),
            waited_s: wider(runs.waited_s, batches.waited_s),
        }
    }

    /// Student's of the means of several runs.
    pub fn of_means(means: &[Means]) -> Self {
        let of = |pick: fn(&Means) -> f64| half_width(&means.iter().map(pick).collect::<Vec<f64>>());
        Self {
            forwarded_pps: of(|m| m.forwarded / m.seconds),
            loss: of(Means::loss),
            latency_s: of(|m| m.latency_s),
            waited_s: of(|m| m.waited_s),
        }
    }
}

/// The error of a rate of equally spaced frames by where counting begins and ends. Each batch and each run counts the
/// same number, so the spread does not show it.
fn edge_pps(frames: &[f64], spans_s: &[f64]) -> f64 {
    let most = frames.iter().copied().fold(0.0, f64::max);
    let least = frames.iter().copied().fold(most, f64::min);
    (most - least) / spans_s.iter().sum::<f64>()
}

/// The wider of two half-widths; the first where the second is none.
fn wider(first: f64, second: f64) -> f64 {
    if second > first { second } else { first }
}
