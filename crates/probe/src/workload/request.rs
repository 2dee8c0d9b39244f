//! The request for a workload.

use std::path::PathBuf;

use serde::Deserialize;

/// The payload of generated packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Words, the more frequent ones much more often (Zipf's law): compresses well.
    #[default]
    Words,
    /// Random bytes: does not compress.
    Random,
}

/// The source of the packets.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum PacketSource {
    /// Generated packets.
    Generated {
        /// Frame sizes (bytes, FCS included) with their weights.
        mix: Vec<(u16, f64)>,
        /// Their payload.
        #[serde(default)]
        content: Content,
        /// Number of their flows.
        flows: u64,
    },
    /// Packets of a capture file, pcap or pcapng.
    Capture {
        /// The file.
        path: PathBuf,
    },
}

/// A kernel, its tables and the packets it gets.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadRequest {
    /// Name of the kernel: `rtr`.
    pub kernel: String,
    /// Entries of its table; its own default if left out.
    #[serde(default)]
    pub entries: Option<u64>,
    /// The source of the packets.
    pub source: PacketSource,
    /// Most packets that are generated, or read from the capture.
    pub packets: usize,
    /// Packets processed before anything is measured, from the first on.
    #[serde(default)]
    pub warm_up: usize,
    /// Packets processed after that, cyclically; `None`: 0.
    #[serde(default)]
    pub measured: usize,
    /// Take the measured packets without processing them, so that a counting tool can subtract the overhead.
    #[serde(default)]
    pub idle: bool,
    /// Process the packets cyclically for so many seconds and measure the time; 0: do not.
    #[serde(default)]
    pub duration_s: f64,
    /// Mark the measured packets for the tracer.
    #[serde(default)]
    pub traced: bool,
    /// Seed of all randomness.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

const fn default_seed() -> u64 {
    1
}
