//! The load as data: what arrives at which port, and when.

use serde::Deserialize;

/// What arrives.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// One source per port that receives.
    pub sources: Vec<Source>,
    /// All flows; sources refer to them.
    pub flows: Vec<Flow>,
    /// One period of the sequence of frame sizes in bytes, FCS included.
    pub sizes: Vec<u32>,
    /// Draw each size at random from the sequence instead of repeating it.
    pub random_sizes: bool,
}

/// A flow as the router sees it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Receive-side scaling hash.
    pub hash: u32,
    /// Port that it leaves by.
    pub egress: usize,
    /// Share of its source's frames, relative.
    pub weight: f64,
}

/// The frames of one port.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The port.
    pub port: usize,
    /// Intended frames per second.
    pub rate_pps: f64,
    /// Arrival process.
    pub process: Process,
    /// Flows of this port.
    pub flows: Vec<u32>,
    /// Changes of the rate during the trial, in order of time.
    #[serde(default)]
    pub steps: Vec<Step>,
}

/// From an instant on, a source has another intended rate.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Picoseconds since the start.
    pub at_ps: f64,
    /// Intended frames per second from then on.
    pub rate_pps: f64,
}

/// Arrival processes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Process {
    /// Equal gaps, the first frame after `phase` of a gap.
    Cbr {
        /// 0..1, staggers the ports.
        phase: f64,
    },
    /// Exponential gaps.
    Poisson,
    /// Bursts at a peak rate, exponential pauses between.
    OnOff {
        /// Mean frames per burst (geometric).
        burst_frames: f64,
        /// Peak rate over mean rate, > 1.
        peak_ratio: f64,
    },
    /// Bursts of a fixed number of frames at the rate of the link, at equal distances.
    Bursts {
        /// Frames per burst.
        burst_frames: u64,
    },
    /// Recorded arrivals, in order of time.
    Trace {
        /// Picoseconds since the start.
        time_ps: Vec<u64>,
        /// Frame sizes.
        bytes: Vec<u32>,
        /// Flow indices.
        flow: Vec<u32>,
    },
}
