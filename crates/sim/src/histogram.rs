//! Log-linear histogram of picoseconds with a hot path of a few instructions.
//!
//! The buckets are those of an HDR histogram with 512 sub-buckets: relative width at most 1/512. Recording is one
//! count of leading zeros, one shift and one increment, because the simulator does it twice per frame; everything
//! else (percentiles, export) goes through [`hdrhistogram`].

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

const BITS: u32 = 10;
const HALF: usize = 1 << (BITS - 1);
const SLOTS: usize = HALF * (64 - BITS as usize + 2);

/// Counts of time spans.
#[derive(Debug, Clone)]
pub struct Histogram {
    /// Two counts of each bucket: many spans are counted in turn, for a count that is wanted again at once makes the next
    /// span wait.
    counts: Box<[[u64; 2]; SLOTS]>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![[0; 2]; SLOTS].try_into().expect("as many as there are slots") }
    }
}

/// A finished histogram: `(bucket, count)` of the buckets that are not empty.
pub type Sparse = Vec<(u32, u64)>;

/// The bucket of a span.
#[inline]
#[must_use]
pub fn slot(value_ps: u64) -> usize {
    let shift = 64 - BITS - (value_ps | ((1 << BITS) - 1)).leading_zeros();
    (shift as usize) * HALF + (value_ps >> shift) as usize
}

/// Spans whose buckets are found at once.
const AT_ONCE: usize = 64;

/// [`slot`] of a span that a floating-point number holds exactly, by its exponent and the first bits of its mantissa:
/// instructions that work on several spans at once.
#[inline]
fn slot_of_exact(value_ps: u64) -> u64 {
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    const FRACTION: u32 = f64::MANTISSA_DIGITS - BITS;
    let real = f64::from_bits(TWO_52 | value_ps) - f64::from_bits(TWO_52);
    // The exponent of HALF, one bucket for each value below.
    let first = (HALF as f64).to_bits() >> FRACTION;
    let beyond = (real.to_bits() >> FRACTION).wrapping_sub(first) + HALF as u64;
    if real < HALF as f64 { value_ps } else { beyond }
}

/// Middle of a bucket in picoseconds.
fn middle(slot: usize) -> f64 {
    let (low, width) = bounds(slot);
    low + 0.5 * (width - 1.0)
}

fn bounds(slot: usize) -> (f64, f64) {
    if slot < 2 * HALF {
        return (slot as f64, 1.0);
    }
    let shift = slot / HALF - 1;
    let width = (shift as f64).exp2();
    ((slot - shift * HALF) as f64 * width, width)
}

impl Histogram {
    /// Counts one span.
    #[inline]
    pub fn record(&mut self, value_ps: u64) {
        self.counts[slot(value_ps)][0] += 1;
    }

    /// Counts many spans.
    pub fn record_all(&mut self, values_ps: &[u64]) {
        if values_ps.iter().fold(0, |all, value| all | value) >= 1 << (f64::MANTISSA_DIGITS - 1) {
            for &value in values_ps {
                self.record(value);
            }
            return;
        }
        let mut slots = [0; AT_ONCE];
        for values in values_ps.chunks(AT_ONCE) {
            slots.iter_mut().zip(values).for_each(|(slot, &value)| *slot = slot_of_exact(value));
            for pair in slots[..values.len()].chunks(2) {
                for (turn, &slot) in pair.iter().enumerate() {
                    self.counts[slot as usize][turn] += 1;
                }
            }
        }
    }

    /// Takes what was counted and starts again from zero.
    pub fn take(&mut self) -> Sparse {
        let is_counted = |counts: &[u64; 2]| *counts != [0; 2];
        let low = self.counts.iter().position(is_counted).unwrap_or(SLOTS);
        let high = self.counts.iter().rposition(is_counted).map_or(0, |last| last + 1);
        let mut taken = Vec::new();
        for (offset, counts) in self.counts[low.min(high)..high].iter_mut().enumerate() {
            if is_counted(counts) {
                taken.push(((low + offset) as u32, std::mem::take(counts).iter().sum()));
            }
        }
        taken
    }
}

/// Mean and percentiles of a time, seconds; `hdr` is the V2 compressed HDR encoding in nanoseconds, base64.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Distribution {
    /// Frames counted.
    pub count: u64,
    /// Mean.
    pub mean_s: f64,
    /// Least.
    pub min_s: f64,
    /// Median.
    pub p50_s: f64,
    /// 90th percentile.
    pub p90_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// 99.9th percentile.
    pub p999_s: f64,
    /// Largest.
    pub max_s: f64,
    /// HDR histogram, nanoseconds, base64 of the compressed V2 form.
    pub hdr_base64: String,
}

/// Summarises several finished histograms together; `mean_s` is the caller's exact mean.
///
/// # Panics
///
/// Never: the histogram grows as needed and the encoding is written to memory.
#[must_use]
pub fn summarise<'a>(parts: impl Iterator<Item = &'a Sparse>, mean_s: f64) -> Distribution {
    let mut merged = std::collections::BTreeMap::<u32, u64>::new();
    for part in parts {
        for &(slot, count) in part {
            *merged.entry(slot).or_default() += count;
        }
    }
    let count: u64 = merged.values().sum();
    if count == 0 {
        return Distribution::default();
    }
    let percentile = |p: f64| {
        let rank = ((p * count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (&slot, &n) in &merged {
            seen += n;
            if seen >= rank {
                return middle(slot as usize) / 1e12;
            }
        }
        0.0
    };
    let mut hdr = Hdr::<u64>::new(3).expect("3 digits are allowed");
    for (&slot, &n) in &merged {
        hdr.record_n((middle(slot as usize) / 1e3).round() as u64, n).expect("an auto-resizing histogram grows");
    }
    let mut encoded = Vec::new();
    V2DeflateSerializer::new().serialize(&hdr, &mut encoded).expect("writing to memory works");
    Distribution {
        count,
        mean_s,
        min_s: percentile(0.0),
        p50_s: percentile(0.5),
        p90_s: percentile(0.9),
        p99_s: percentile(0.99),
        p999_s: percentile(0.999),
        max_s: percentile(1.0),
        hdr_base64: STANDARD.encode(&encoded),
    }
}

/// The value below which a share `p` of what was counted lies, in the unit that was counted; 0 if nothing was.
#[must_use]
pub fn percentile(counted: &Sparse, p: f64) -> f64 {
    let count: u64 = counted.iter().map(|&(_, n)| n).sum();
    let rank = ((p * count as f64).ceil() as u64).max(1);
    let mut seen = 0;
    for &(slot, n) in counted {
        seen += n;
        if seen >= rank {
            return middle(slot as usize);
        }
    }
    0.0
}

/// Adds histograms in the compressed V2 form, base64; `None` if one is not of that form. No text gives an empty text.
///
/// # Panics
///
/// Never: the histogram grows as needed and the encoding is written to memory.
#[must_use]
pub fn merged<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut sum: Option<Hdr<u64>> = None;
    for text in texts {
        let encoded = STANDARD.decode(text.trim()).ok()?;
        let part: Hdr<u64> = Deserializer::new().deserialize(&mut encoded.as_slice()).ok()?;
        match &mut sum {
            None => {
                sum = Some(part);
                sum.as_mut().expect("it was just set").auto(true);
            }
            Some(sum) => sum.add(&part).ok()?,
        }
    }
    let Some(sum) = sum else { return Some(String::new()) };
    let mut encoded = Vec::new();
    V2DeflateSerializer::new().serialize(&sum, &mut encoded).expect("writing to memory works");
    Some(STANDARD.encode(&encoded))
}

/// Classes of an HDR histogram that hold something: least value, greatest value, count, in its unit.
///
/// `None` if the text is not base64 of the compressed V2 form.
#[must_use]
pub fn classes(hdr_base64: &str) -> Option<Vec<(u64, u64, u64)>> {
    let encoded = STANDARD.decode(hdr_base64.trim()).ok()?;
    let hdr: Hdr<u64> = Deserializer::new().deserialize(&mut encoded.as_slice()).ok()?;
    let class = |value: u64, count: u64| (hdr.lowest_equivalent(value), hdr.highest_equivalent(value), count);
    Some(hdr.iter_recorded().map(|step| class(step.value_iterated_to(), step.count_since_last_iteration())).collect())
}

/// Reads times in seconds out of an HDR histogram in nanoseconds, one per probability (0..=1).
///
/// `hdr_base64` is the compressed V2 form that [`Distribution`] carries; `None` if it is not one, or is empty.
#[must_use]
pub fn quantiles_s(hdr_base64: &str, probabilities: &[f64]) -> Option<Vec<f64>> {
    let encoded = STANDARD.decode(hdr_base64.trim()).ok()?;
    let hdr: Hdr<u64> = Deserializer::new().deserialize(&mut encoded.as_slice()).ok()?;
    if hdr.is_empty() {
        return None;
    }
    Some(probabilities.iter().map(|&p| hdr.value_at_quantile(p) as f64 * 1e-9).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_value_within_one_part_in_512() {
        for value in [0_u64, 1, 1023, 1024, 1025, 999_999, 123_456_789_012, u64::MAX / 3] {
            let (low, width) = bounds(slot(value));
            assert!(low <= value as f64 && (value as f64) < low + width, "{value}");
            assert!(width <= 1.0 || width / low <= 1.0 / 512.0, "{value}");
        }
    }

    #[test]
    fn many_spans_are_counted_as_one_by_one() {
        let mut values: Vec<u64> = (0..2000).collect();
        values.extend((0..52).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + (1 << bit >> 1) + 1]));
        for most in [values.len(), values.len() + 1] {
            values.resize(most, u64::MAX / 3);
            let (mut all, mut each) = (Histogram::default(), Histogram::default());
            all.record_all(&values);
            for &value in &values {
                each.record(value);
            }
            assert_eq!(all.take(), each.take());
        }
    }

    #[test]
    fn percentiles_of_a_uniform_sample_are_its_quantiles() {
        let mut histogram = Histogram::default();
        (1..=100_000_u64).for_each(|i| histogram.record(i * 1000));
        let summary = summarise(std::iter::once(&histogram.take()), 50.0);
        assert!((summary.p50_s * 1e12 / 50e6 - 1.0).abs() < 2e-3);
        assert!((summary.p99_s * 1e12 / 99e6 - 1.0).abs() < 2e-3);
        assert_eq!(summary.count, 100_000);
        let read = quantiles_s(&summary.hdr_base64, &[0.5, 0.99]).expect("it was just written");
        assert!((read[0] / 50e-6 - 1.0).abs() < 2e-3 && (read[1] / 99e-6 - 1.0).abs() < 2e-3, "{read:?}");
        assert_eq!(quantiles_s("not base64", &[0.5]), None);
        let twice = merged([summary.hdr_base64.as_str(), summary.hdr_base64.as_str()]).expect("both are histograms");
        assert_eq!(quantiles_s(&twice, &[0.5, 0.99]).expect("it has values"), read);
        assert_eq!(merged(["not base64"]), None);
        let held = classes(&summary.hdr_base64).expect("it was just written");
        assert_eq!(held.iter().map(|&(_, _, count)| count).sum::<u64>(), summary.count);
        assert!(held.is_sorted() && held.iter().all(|&(least, most, _)| least <= most));
        assert!(histogram.take().is_empty());
    }
}
