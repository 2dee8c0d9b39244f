//! What a run came to.

use std::collections::BTreeMap;

use serde::Serialize;

/// Seconds that one pass over the ring took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct PassTimes {
    /// Least.
    pub min: f64,
    /// Lower quartile.
    pub p25: f64,
    /// Median.
    pub median: f64,
    /// Upper quartile.
    pub p75: f64,
}

/// What one core did.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CoreOutcome {
    /// The processor.
    pub cpu: usize,
    /// Frames that arrived.
    pub offered: u64,
    /// Frames that left.
    pub forwarded: u64,
    /// Passes over the ring.
    pub passes: u64,
    /// Their times.
    pub pass_s: PassTimes,
    /// Frames per second of the median pass.
    pub pps: f64,
    /// Core cycles per packet of the median pass.
    pub cycles_per_packet: f64,
    /// Clock of the core, measured beside the run.
    pub core_hz: f64,
    /// Bytes of its tables.
    pub table_bytes: BTreeMap<String, u64>,
    /// Share of the processor's time that the hypervisor gave to others.
    pub steal_ratio: f64,
}

/// Time from a frame's arrival to the end of its batch, seconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Latency {
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

/// The loop optimised by hand: the same lookup without the framework.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct HandLoop {
    /// The same frames, one fused loop with prefetching in groups, nanoseconds per packet (median pass).
    pub ns_per_packet: f64,
    /// The lookup alone, keys ready in an array, nanoseconds per lookup (median pass).
    pub lookup_ns: f64,
    /// Function's time over this loop's time.
    pub ratio: f64,
    /// Frames that the loop forwarded in one pass over a ring; equals the function's on the same ring.
    pub forwarded: u64,
}

/// A run's outcome.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RunOutcome {
    /// Frames that arrived.
    pub offered: u64,
    /// Frames that left.
    pub forwarded: u64,
    /// Frames that were dropped, by reason; `queue` is the overflow at an offered rate.
    pub dropped: BTreeMap<String, u64>,
    /// Passes over the rings.
    pub passes: u64,
    /// Times of one pass, over the passes of all cores.
    pub pass_s: PassTimes,
    /// Ring over median pass, summed over the cores; at an offered rate, frames forwarded per second.
    pub pps: f64,
    /// Core cycles per packet of the median pass, mean over the cores.
    pub cycles_per_packet: f64,
    /// Clock of the cores while running, hertz, mean.
    pub core_hz: f64,
    /// Ticks per second of the counter that times.
    pub tsc_hz: f64,
    /// Core by core.
    pub per_core: Vec<CoreOutcome>,
    /// At an offered rate: latency of the forwarded frames.
    pub latency: Option<Latency>,
    /// Bytes of each table of one core.
    pub table_bytes: BTreeMap<String, u64>,
    /// What pages the memory lies on: `huge 98 %`.
    pub pages: String,
    /// Share of the processors' time that the hypervisor gave to others, largest of the cores.
    pub steal_ratio: f64,
    /// Share of the keys of each hash table that lie outside their own line.
    pub collision_ratio: BTreeMap<String, f64>,
    /// The loop optimised by hand, if it was asked for.
    pub hand_loop: Option<HandLoop>,
    /// What the reader should know.
    pub notes: Vec<String>,
}
