//! The request of a trial: streams, rates, frames and flows.

use serde::{Deserialize, Serialize};

use crate::error::{Result, TesterError};

/// Most streams of a trial: the receiving program keeps a table of them.
pub const MOST_STREAMS: usize = 16;

/// A trial: its streams, its duration, and the time to wait for late frames.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// How long the counted frames are sent, seconds.
    pub duration_s: f64,
    /// How long frames are sent before that without being counted, seconds.
    #[serde(default)]
    pub warmup_s: f64,
    /// Least time between the last frame and the reading of the counters, seconds (2 s in RFC 2544 sec. 23).
    #[serde(default = "default_wait_s")]
    pub wait_s: f64,
    /// Rate of the link, bit/s on the wire with 20 bytes of gap and preamble a frame; `None`: the wire imposes it.
    #[serde(default)]
    pub wire_bps: Option<f64>,
    /// Seed of everything random.
    #[serde(default)]
    pub seed: u64,
    /// Marks the frames of this trial, 0..=127; stragglers of another one are not counted.
    #[serde(default)]
    pub trial_id: u8,
    /// The streams.
    pub streams: Vec<Stream>,
    /// Whether the outcome has counts over time.
    #[serde(default)]
    pub over_time: bool,
    /// Most runs of lost frames that are listed for a stream.
    #[serde(default = "default_runs")]
    pub max_lost_runs: usize,
}

fn default_wait_s() -> f64 {
    0.1
}

fn default_runs() -> usize {
    10_000
}

/// Frames from one port to another.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Index of the sending port.
    pub port: usize,
    /// Index of the port where the frames should arrive.
    pub to_port: usize,
    /// Frames per second.
    pub rate_pps: f64,
    /// When the frames leave.
    #[serde(default)]
    pub schedule: Schedule,
    /// Changes of the rate, in order of time.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Number of frames; `None`: as many as `rate_pps` makes in `duration_s`.
    #[serde(default)]
    pub frames: Option<u64>,
    /// Frame sizes with their weights.
    pub sizes: Vec<Size>,
    /// Flows, sent in turn.
    pub flows: Vec<Flow>,
    /// Tags and tunnel between a frame's Ethernet addresses and its IP datagram.
    #[serde(default)]
    pub encapsulation: Encapsulation,
}

/// VLAN tags and a tunnel around the datagrams of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Encapsulation {
    /// Identifiers of at most two VLAN tags, the outer one first: of two it is a service tag (IEEE 802.1ad).
    #[serde(default)]
    pub vlan_ids: Vec<u16>,
    /// The tunnel, if there is one.
    #[serde(default)]
    pub tunnel: Option<Tunnel>,
}

/// A tunnel whose outer source address is that of the flow.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Tunnel {
    /// An Ethernet frame in UDP (RFC 7348), from the flow's source port, without an outer UDP checksum.
    Vxlan {
        /// VXLAN network identifier.
        vni: u32,
        /// Outer destination; `None`: the flow's own.
        #[serde(default)]
        destination_address: Option<String>,
    },
    /// An IP datagram behind a header of four octets (RFC 2784).
    Gre {
        /// Outer destination; `None`: the flow's own.
        #[serde(default)]
        destination_address: Option<String>,
    },
}

/// When the frames of a stream leave.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Schedule {
    /// Equal gaps.
    #[default]
    Cbr,
    /// Exponential gaps.
    Poisson,
    /// Bursts at the rate of the link, with equal distances.
    Bursts {
        /// Frames of a burst.
        burst_frames: u32,
    },
    /// As recorded, again and again; `rate_pps` stretches the recording in proportion.
    Recorded(Recording),
}

/// Frames of a recording, one entry each.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// Times, in units of the mean distance of two frames: rising from 0, below the number of frames.
    pub places: Vec<f64>,
    /// Bytes of the frame with its FCS.
    pub bytes: Vec<u32>,
    /// Index in the stream's flows.
    pub flows: Vec<u16>,
}

/// A change of the rate.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its time, from the first counted frame, seconds.
    pub at_s: f64,
    /// The rate from then on, frames per second.
    pub rate_pps: f64,
}

/// A frame size.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Bytes of the frame with its FCS.
    pub bytes: u32,
    /// Its share, relative to the others.
    #[serde(default = "default_weight")]
    pub weight: f64,
}

fn default_weight() -> f64 {
    1.0
}

/// Addresses of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// MAC address of the sending port.
    pub source_mac: String,
    /// MAC address that the frame is sent to.
    pub destination_mac: String,
    /// IPv4 or IPv6 address.
    pub source_address: String,
    /// IPv4 or IPv6 address, of the same version.
    pub destination_address: String,
    /// UDP port.
    pub source_port: u16,
    /// UDP port.
    pub destination_port: u16,
}

impl Request {
    /// Reads and checks a request for a tester with so many ports.
    ///
    /// # Errors
    ///
    /// The text is not a request, or a value in it is outside what is allowed.
    pub fn parse(text: &str, ports: usize) -> Result<Self> {
        let request: Self = serde_json::from_str(text)
            .map_err(|error| TesterError::Text { place: "request", message: error.to_string() })?;
        request.check(ports)?;
        Ok(request)
    }

    fn check(&self, ports: usize) -> Result<()> {
        let seconds = |place: &str, got: f64, least: f64| {
            if got.is_finite() && got >= least && got <= 86_400.0 {
                Ok(())
            } else {
                Err(TesterError::value(place, got, format!("seconds, {least} to 86400")))
            }
        };
        seconds("duration_s", self.duration_s, 1e-6)?;
        seconds("warmup_s", self.warmup_s, 0.0)?;
        seconds("wait_s", self.wait_s, 0.0)?;
        if self.trial_id > 127 {
            return Err(TesterError::value("trial_id", self.trial_id, "0 to 127"));
        }
        if self.streams.is_empty() || self.streams.len() > MOST_STREAMS {
            return Err(TesterError::value("streams", self.streams.len(), format!("1 to {MOST_STREAMS} streams")));
        }
        for (index, stream) in self.streams.iter().enumerate() {
            let place = |field: &str| format!("streams[{index}].{field}");
            for (field, port) in [("port", stream.port), ("to_port", stream.to_port)] {
                if port >= ports {
                    return Err(TesterError::value(place(field), port, format!("the tester has {ports} ports")));
                }
            }
            if !(stream.rate_pps.is_finite() && stream.rate_pps > 0.0) {
                return Err(TesterError::value(place("rate_pps"), stream.rate_pps, "more than 0 frames per second"));
            }
            if stream.sizes.is_empty() {
                return Err(TesterError::value(place("sizes"), "none", "at least one frame size"));
            }
            if stream.flows.is_empty() || stream.flows.len() > 1 << 16 {
                return Err(TesterError::value(place("flows"), stream.flows.len(), "1 to 65536 flows"));
            }
        }
        Ok(())
    }
}
