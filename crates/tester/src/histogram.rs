//! Log-linear histogram of nanoseconds, the buckets that the receiving program counts in.
//!
//! Each octave has 64 equal steps, so a bucket is at most 1/64 wide relative to its lower bound; below 128 ns it is
//! 1 ns wide.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use crate::port::Tally;

const STEP_BITS: u32 = 6;
const STEPS: u64 = 1 << STEP_BITS;
/// Longest span with an own bucket, as a power of two of ns: 18 minutes.
const TOP_BITS: u32 = 40;
/// Number of buckets; longer spans are counted in the last one.
pub const SLOTS: usize = ((TOP_BITS - STEP_BITS) as usize + 1) * STEPS as usize;

/// `(bucket, count)` of the buckets that are not empty, in order.
pub type Sparse = Vec<(u32, u64)>;

/// The bucket of a span.
#[must_use]
pub fn slot(span_ns: u64) -> usize {
    let shift = (span_ns | (2 * STEPS - 1)).ilog2() - STEP_BITS;
    ((u64::from(shift) * STEPS + (span_ns >> shift)) as usize).min(SLOTS - 1)
}

/// Middle of a bucket, ns.
#[must_use]
pub fn middle_ns(slot: u32) -> f64 {
    let (slot, steps) = (u64::from(slot), STEPS);
    if slot < 2 * steps {
        return slot as f64;
    }
    let shift = slot / steps - 1;
    let width = (shift as f64).exp2();
    (slot - shift * steps) as f64 * width + 0.5 * (width - 1.0)
}

/// Buckets of a table of counts that are not empty.
#[must_use]
pub fn sparse(counts: impl IntoIterator<Item = u64>) -> Sparse {
    (0..).zip(counts).filter(|&(_, count)| count > 0).collect()
}

/// Moments and percentiles of a time, seconds; `hdr_base64` is the V2 compressed HDR encoding in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Distribution {
    /// Frames counted.
    pub count: u64,
    /// Smallest, exact.
    pub min_s: f64,
    /// Mean, exact.
    pub mean_s: f64,
    /// Median.
    pub p50_s: f64,
    /// 90th percentile.
    pub p90_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// 99.9th percentile.
    pub p999_s: f64,
    /// Largest, exact.
    pub max_s: f64,
    /// HDR histogram, nanoseconds, base64 of the compressed V2 form.
    pub hdr_base64: String,
}

impl Distribution {
    /// Summarises exact moments and a histogram; `None` if nothing was counted.
    ///
    /// # Panics
    ///
    /// Never: the histogram grows as needed and the encoding is written to memory.
    #[must_use]
    pub fn of(tally: &Tally) -> Option<Self> {
        if tally.count == 0 {
            return None;
        }
        let total: u64 = tally.histogram.iter().map(|&(_, count)| count).sum();
        let percentile = |share: f64| {
            let rank = ((share * total as f64).ceil() as u64).max(1);
            let mut seen = 0;
            let slot = tally.histogram.iter().find(|&&(_, count)| {
                seen += count;
                seen >= rank
            });
            // The middle of an outer bucket may lie outside the range of the counted spans.
            let middle = slot.map_or(0.0, |&(slot, _)| middle_ns(slot));
            middle.clamp(tally.min_ns as f64, tally.max_ns as f64) / 1e9
        };
        let mut hdr = Hdr::<u64>::new(3).expect("3 digits are allowed");
        for &(slot, count) in &tally.histogram {
            hdr.record_n(middle_ns(slot).round() as u64, count).expect("an auto-resizing histogram grows");
        }
        let mut encoded = Vec::new();
        V2DeflateSerializer::new().serialize(&hdr, &mut encoded).expect("writing to memory works");
        Some(Self {
            count: tally.count,
            min_s: tally.min_ns as f64 / 1e9,
            mean_s: tally.sum_ns as f64 / tally.count as f64 / 1e9,
            p50_s: percentile(0.5),
            p90_s: percentile(0.9),
            p99_s: percentile(0.99),
            p999_s: percentile(0.999),
            max_s: tally.max_ns as f64 / 1e9,
            hdr_base64: STANDARD.encode(&encoded),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_one_part_in_64_wide_and_they_follow_each_other() {
        for span in [0_u64, 1, 63, 64, 127, 128, 129, 1000, 65_535, 1 << 30, (1 << 40) - 1] {
            let here = slot(span);
            let middle = middle_ns(here as u32);
            assert!((middle - span as f64).abs() <= (span as f64 / 128.0).max(0.0) + 0.5, "{span}: {middle}");
            assert!(slot(span + 1) == here || slot(span + 1) == here + 1);
        }
        assert_eq!(slot(u64::MAX), SLOTS - 1);
    }

    #[test]
    fn percentiles_of_a_uniform_sample_are_its_quantiles() {
        let mut counts = vec![0_u64; SLOTS];
        (1..=100_000_u64).for_each(|span| counts[slot(span)] += 1);
        let tally = Tally {
            count: 100_000,
            sum_ns: (1..=100_000).sum(),
            min_ns: 1,
            max_ns: 100_000,
            histogram: sparse(counts),
        };
        let distribution = Distribution::of(&tally).unwrap();
        for (share, got) in [
            (0.5, distribution.p50_s),
            (0.9, distribution.p90_s),
            (0.99, distribution.p99_s),
            (0.999, distribution.p999_s),
        ] {
            assert!((got / (share * 1e-4) - 1.0).abs() < 1.0 / 64.0, "{share}: {got}");
        }
        assert_eq!((distribution.min_s, distribution.max_s, distribution.mean_s), (1e-9, 1e-4, 50_000.5e-9));
        assert_eq!(Distribution::of(&Tally::default()), None);
    }
}
