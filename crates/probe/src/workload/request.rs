//! What is asked of a workload.

use std::path::PathBuf;

use serde::Deserialize;

/// What the payload of generated packets is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Words, the more frequent ones much more often (Zipf's law): compresses well.
    #[default]
    Words,
    /// Random bytes: does not compress.
    Random,
}

/// Where the packets come from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum PacketSource {
    /// Made here.
    Generated {
        /// Frame sizes (bytes, FCS included) with their weights.
        mix: Vec<(u16, f64)>,
        /// What is in them.
        #[serde(default)]
        content: Content,
        /// How many flows they belong to.
        flows: u64,
    },
    /// Read from a capture file, pcap or pcapng.
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
    /// Where the packets come from.
    pub source: PacketSource,
    /// Most packets that are made, or taken from the capture.
    pub packets: usize,
    /// Packets processed before anything is measured, from the first on.
    #[serde(default)]
    pub warm_up: usize,
    /// Packets processed after that, going round; none: none.
    #[serde(default)]
    pub measured: usize,
    /// Take the measured packets, but do not process them: what a counting tool is to take off.
    #[serde(default)]
    pub idle: bool,
    /// Go round for so many seconds and take the time; 0: do not.
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
