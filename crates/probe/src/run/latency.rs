//! Latencies of frames: exact mean and extremes, quantiles within one part in a thousand.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use super::outcome::Latency;

/// Latencies, kept in nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    counts: Hdr<u64>,
    sum_s: f64,
    least_s: f64,
    most_s: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        let counts = Hdr::new(3).expect("3 digits are allowed");
        Self { counts, sum_s: 0.0, least_s: f64::INFINITY, most_s: 0.0 }
    }
}

impl Histogram {
    /// Counts one frame.
    pub fn record(&mut self, latency_s: f64) {
        // An auto-resizing histogram grows as needed.
        let _ = self.counts.record((latency_s * 1e9).round() as u64);
        self.sum_s += latency_s;
        self.least_s = self.least_s.min(latency_s);
        self.most_s = self.most_s.max(latency_s);
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Self) {
        // An auto-resizing histogram grows as needed.
        let _ = self.counts.add(&other.counts);
        self.sum_s += other.sum_s;
        self.least_s = self.least_s.min(other.least_s);
        self.most_s = self.most_s.max(other.most_s);
    }

    /// The summary for reports; none if no frame was counted.
    pub fn summary(&self) -> Option<Latency> {
        if self.counts.is_empty() {
            return None;
        }
        let quantile = |probability| self.counts.value_at_quantile(probability) as f64 * 1e-9;
        let mut encoded = Vec::new();
        V2DeflateSerializer::new().serialize(&self.counts, &mut encoded).ok()?;
        Some(Latency {
            count: self.counts.len(),
            mean_s: self.sum_s / self.counts.len() as f64,
            min_s: self.least_s,
            p50_s: quantile(0.5),
            p90_s: quantile(0.9),
            p99_s: quantile(0.99),
            p999_s: quantile(0.999),
            max_s: self.most_s,
            hdr_base64: BASE64_STANDARD.encode(&encoded),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_uniform_sample_are_its_quantiles() {
        let (mut histogram, mut other) = (Histogram::default(), Histogram::default());
        (1..=50_000).for_each(|step| histogram.record(f64::from(step) * 1e-7));
        (50_001..=100_000).for_each(|step| other.record(f64::from(step) * 1e-7));
        histogram.add(&other);
        let latency = histogram.summary().unwrap();
        assert_eq!(latency.count, 100_000);
        assert!((latency.p50_s / 5e-3 - 1.0).abs() < 2e-3 && (latency.p99_s / 9.9e-3 - 1.0).abs() < 2e-3);
        assert!((latency.mean_s / 5.000_05e-3 - 1.0).abs() < 1e-9 && latency.min_s == 1e-7 && latency.max_s == 1e-2);
        assert!(Histogram::default().summary().is_none());
    }
}
