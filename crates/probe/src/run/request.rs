//! What is asked of a run.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::memory::Pages;

/// How often each flow comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Popularity {
    /// All equally often.
    #[default]
    Uniform,
    /// The flow of rank r in proportion to r to the power of −`exponent`.
    Zipf,
}

/// A run of one function.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// Name of the function: `l2_switch`.
    pub function: String,
    /// Direction of the function; its first if left out.
    #[serde(default)]
    pub direction: Option<String>,
    /// Bytes of each frame, FCS included.
    #[serde(default = "smallest")]
    pub frame_bytes: u16,
    /// Sizes with their weights, instead of one size.
    #[serde(default)]
    pub mix: Option<Vec<(u16, f64)>>,
    /// Entries of the tables; those left out have the function's own sizes.
    #[serde(default)]
    pub tables: BTreeMap<String, u64>,
    /// Flows; as many as the function's main table has entries if left out.
    #[serde(default)]
    pub flows: Option<u64>,
    /// How often each flow comes.
    #[serde(default)]
    pub popularity: Popularity,
    /// Exponent of Zipf's law.
    #[serde(default = "one")]
    pub exponent: f64,
    /// Processors, each with frames and tables of its own.
    #[serde(default = "first_core")]
    pub cores: Vec<usize>,
    /// Seconds to measure for (not to be waited for: refills between passes come on top).
    #[serde(default = "one")]
    pub duration_s: f64,
    /// Frames that arrive per second, summed over the cores; as fast as it goes if left out.
    #[serde(default)]
    pub offered_pps: Option<f64>,
    /// Buffers of the ring of each core.
    #[serde(default = "frames_in_flight")]
    pub frames_in_flight: usize,
    /// Pages of tables and frames.
    #[serde(default)]
    pub pages: Pages,
    /// Seed of everything random.
    #[serde(default = "seed")]
    pub seed: u64,
    /// Process exactly so many frames per core and stop: for counting instructions.
    #[serde(default)]
    pub packets: Option<u64>,
    /// Frames that wait at an offered rate before frames are lost.
    #[serde(default = "frames_in_flight")]
    pub queue_frames: usize,
    /// Also run the loop optimised by hand for the same lookup, the reference for how fast it can be.
    #[serde(default)]
    pub hand_loop: bool,
}

fn smallest() -> u16 {
    64
}

fn one() -> f64 {
    1.0
}

fn seed() -> u64 {
    1
}

fn first_core() -> Vec<usize> {
    vec![0]
}

fn frames_in_flight() -> usize {
    4096
}

impl RunRequest {
    /// A run of `function` with every other value at its default.
    #[must_use]
    pub fn new(function: &str) -> Self {
        Self {
            function: function.to_owned(),
            direction: None,
            frame_bytes: smallest(),
            mix: None,
            tables: BTreeMap::new(),
            flows: None,
            popularity: Popularity::Uniform,
            exponent: one(),
            cores: first_core(),
            duration_s: one(),
            offered_pps: None,
            frames_in_flight: frames_in_flight(),
            pages: Pages::Huge,
            seed: seed(),
            packets: None,
            queue_frames: frames_in_flight(),
            hand_loop: false,
        }
    }
}
