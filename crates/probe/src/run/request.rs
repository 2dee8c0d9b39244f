//! What is asked of a run.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::batch::BUFFER_BYTES;
use crate::error::{ProbeError, Result};
use crate::frame::{LARGEST_FRAME_BYTES, MOST_FRAMES};
use crate::function::{Build, twin};
use crate::host::cpu::allowed;
use crate::memory::{Pages, available_bytes};

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
    #[serde(default = "default_one")]
    pub exponent: f64,
    /// Processors, each with frames and tables of its own.
    #[serde(default = "first_core")]
    pub cores: Vec<usize>,
    /// Seconds to measure for (not to be waited for: refills between passes come on top).
    #[serde(default = "default_one")]
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

fn default_one() -> f64 {
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
            exponent: default_one(),
            cores: first_core(),
            duration_s: default_one(),
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

/// A request that has been checked.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub build: Build,
    pub mix: Vec<(u16, f64)>,
}

impl RunRequest {
    /// Refuses what is out of range or does not fit into memory, before anything is made.
    pub(super) fn check(&self) -> Result<Plan> {
        let twin = twin(&self.function, self.direction.as_deref())?;
        let mix = self.mix.clone().unwrap_or_else(|| vec![(self.frame_bytes, 1.0)]);
        for &(bytes, _) in &mix {
            if !(twin.smallest_frame_bytes..=LARGEST_FRAME_BYTES).contains(&bytes) {
                let got = format!(
                    "got {bytes} bytes; {} ({}) takes {} to {LARGEST_FRAME_BYTES}",
                    twin.function, twin.direction, twin.smallest_frame_bytes
                );
                return Err(ProbeError::request("frame_bytes", got));
            }
        }
        positive("duration_s", self.duration_s, 86_400.0)?;
        if let Some(rate) = self.offered_pps {
            positive("offered_pps", rate, 1e12)?;
            if self.packets.is_some() {
                let message = "got a rate and an exact number of packets; leave one of them out";
                return Err(ProbeError::request("packets", message));
            }
        }
        if !(self.exponent.is_finite() && self.exponent >= 0.0) {
            let got = format!("got {}; Zipf's law takes a number of 0 or more", self.exponent);
            return Err(ProbeError::request("exponent", got));
        }
        if self.flows == Some(0) {
            return Err(ProbeError::request("flows", "got 0 flows; ask for one or more"));
        }
        if self.queue_frames == 0 {
            return Err(ProbeError::request("queue_frames", "got 0; a queue holds one frame or more"));
        }
        if !(1..=MOST_FRAMES).contains(&self.frames_in_flight) {
            let got = format!("got {}; a ring has 1 to {MOST_FRAMES} frames", self.frames_in_flight);
            return Err(ProbeError::request("frames_in_flight", got));
        }
        self.check_cores()?;
        let build = Build::new(twin, &self.tables, self.flows, self.pages, self.seed)?;
        let frames = (self.frames_in_flight * BUFFER_BYTES) as u64;
        let needed_bytes = build.bytes().saturating_add(frames).saturating_mul(self.cores.len() as u64);
        let available_bytes = available_bytes();
        if needed_bytes > available_bytes {
            let what = format!("tables and frames of {} on {} cores", twin.function, self.cores.len());
            return Err(ProbeError::Memory { what, needed_bytes, available_bytes });
        }
        Ok(Plan { build, mix })
    }

    fn check_cores(&self) -> Result<()> {
        if self.cores.is_empty() {
            return Err(ProbeError::request("cores", "got no cores; name one or more, such as [0]"));
        }
        let allowed = allowed()?;
        for (index, &cpu) in self.cores.iter().enumerate() {
            if !allowed.contains(&cpu) {
                return Err(ProbeError::Cpu { cpu, allowed });
            }
            if self.cores[..index].contains(&cpu) {
                return Err(ProbeError::request("cores", format!("got core {cpu} twice; name each once")));
            }
        }
        Ok(())
    }
}

fn positive(place: &str, value: f64, most: f64) -> Result<()> {
    if value > 0.0 && value <= most {
        return Ok(());
    }
    Err(ProbeError::request(place, format!("got {value}; a number above 0 and up to {most} is needed")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: serde_json::Value) -> String {
        let request: RunRequest = serde_json::from_value(json).unwrap();
        request.check().unwrap_err().to_string()
    }

    #[test]
    fn a_request_out_of_range_is_refused_where_it_is_wrong() {
        use serde_json::json;
        assert!(refusal(json!({"function": "l3_switch"})).contains("l2_switch, learning_switch"));
        assert!(
            refusal(json!({"function": "bng", "direction": "up"})).starts_with("direction: bng has no direction `up`")
        );
        for (wrong, name) in [
            (json!({"function": "l2_switch", "frame_bytes": 63}), "frame_bytes"),
            (json!({"function": "bng", "direction": "core", "frame_bytes": 64}), "frame_bytes"),
            (json!({"function": "l2_switch", "duration_s": 0}), "duration_s"),
            (json!({"function": "l2_switch", "offered_pps": -1}), "offered_pps"),
            (json!({"function": "l2_switch", "offered_pps": 9, "packets": 9}), "packets"),
            (json!({"function": "l2_switch", "exponent": -1}), "exponent"),
            (json!({"function": "l2_switch", "flows": 0}), "flows"),
            (json!({"function": "l2_switch", "queue_frames": 0}), "queue_frames"),
            (json!({"function": "l2_switch", "frames_in_flight": 0}), "frames_in_flight"),
            (json!({"function": "l2_switch", "cores": []}), "cores"),
            (json!({"function": "l2_switch", "cores": [100_000]}), "cpu 100000"),
            (json!({"function": "l2_switch", "tables": {"fib": 1}}), "tables.fib"),
            (json!({"function": "l2_switch", "tables": {"mac": 0}}), "tables.mac"),
            (json!({"function": "mpls_switch", "tables": {"label": 1_048_577}}), "tables.label"),
            (json!({"function": "l2_switch", "tables": {"mac": 2_000_000_000}}), "tables and frames of l2_switch"),
        ] {
            let message = refusal(wrong.clone());
            assert!(message.starts_with(name), "{wrong}: {message}");
        }
    }

    #[test]
    fn an_unknown_value_is_not_passed_over() {
        assert!(serde_json::from_str::<RunRequest>(r#"{"function": "l2_switch", "frame_byte": 64}"#).is_err());
    }
}
