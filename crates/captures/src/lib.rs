//! What a capture records of a load: times, sizes and flows of its frames.
//!
//! ```text
//!   source      file, pipe ─► compressed  gzip, zstd ─► window ─► container  pcap, pcapng: packets, one at a time
//!                                                                    │
//!   link        link types, tags, tunnels: the addresses  ◄──────────┘
//!   flows       their numbers, their sides, what a card hashes
//!   segments    super-packets of the offloads of a host
//! ```
//!
//! No packet is kept: a frame takes 16 bytes.

mod compressed;
mod container;
pub mod error;
mod flows;
mod link;
mod notes;
mod segments;
pub mod source;
mod window;

use std::path::Path;

use container::Packet;
pub use flows::{Flow, MOST_FLOWS, Rule};
use flows::{Flows, Key};
use link::{Obstacle, found};
use notes::Counts;
use segments::Split;
use source::Source;
use window::{Fault, Parsed, Window};

use error::{CaptureError, Result};

/// Most frames that are read, for which 1.6 GB of memory are needed.
pub const MOST_FRAMES: usize = 100_000_000;
const FCS_BYTES: u32 = 4;
/// Header and FCS of Ethernet, for packets that were captured without them.
const ETHERNET_BYTES: u32 = 18;
/// A shorter frame was padded on the wire.
const SMALLEST_FRAME_BYTES: u32 = 64;

/// The frames of a capture in the order of their times.
#[derive(Debug, Default)]
pub struct Recording {
    /// Times since the earliest frame, seconds.
    pub time_s: Vec<f64>,
    /// Bytes of the frame on the wire, with its FCS; at least 64.
    pub frame_bytes: Vec<u32>,
    /// Number of its flow, in the order of their first frames.
    pub flow: Vec<u32>,
    /// The flows.
    pub flows: Vec<Flow>,
    /// What a reader of the recording must know, in sentences.
    pub notes: Vec<String>,
    /// Numbers of packets and frames, by name.
    pub counts: Vec<(&'static str, u64)>,
}

/// How a capture is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Flows of the innermost packets of tunnels, and not of the outer ones.
    pub inner: bool,
    /// Longest packet of IP, to which longer ones of TCP and UDP are split; 0 splits none.
    pub split_mtu_bytes: u32,
}

/// Reads a capture; `-` is the standard input. `go_on` is asked now and then, and ends the reading.
///
/// # Errors
///
/// [`CaptureError::File`]: the file cannot be read, is no capture, has no packets, is damaged, or has packets whose
/// link or time is unknown. [`CaptureError::Interrupted`].
pub fn read(path: &Path, options: Options, go_on: &(dyn Fn() -> bool + Sync)) -> Result<Recording> {
    let wrong = |message: &str| CaptureError::file(path, message);
    let source = Source::open(path, go_on).map_err(|error| CaptureError::file(path, error.to_string()))?;
    let unpacked = compressed::unpacked(source).map_err(|error| CaptureError::file(path, error.to_string()))?;
    of(&mut Window::new(unpacked, go_on), options).map_err(|fault| match fault {
        Fault::Interrupted => CaptureError::Interrupted,
        Fault::Wrong(message) | Fault::Packet(message) | Fault::Damaged(message) => wrong(&message),
        Fault::CutOff => wrong("is cut off"),
    })
}

/// Whether a file is a capture that [`read`] reads, packed or not, by its first bytes.
///
/// # Errors
///
/// [`CaptureError::File`]: the file cannot be read.
pub fn is_capture(path: &Path) -> Result<bool> {
    use std::io::Read as _;
    let wrong = |error: std::io::Error| CaptureError::file(path, error.to_string());
    let source = Source::open(path, &|| true).map_err(wrong)?;
    let mut magic = [0; 4];
    // What cannot be unpacked is no capture.
    let whole = compressed::unpacked(source).map_err(wrong)?.read_exact(&mut magic);
    Ok(whole.is_ok() && container::is_magic(magic))
}

fn of(window: &mut Window<'_>, options: Options) -> Parsed<Recording> {
    let mut frames = Frames { options, ..Frames::default() };
    let end = container::read(window, &mut |packet| frames.take(packet));
    let whole = frames.counts.packets;
    match end {
        Ok(()) if whole == 0 => return Err(Fault::wrong("holds no packet; name a capture with packets")),
        Ok(()) => {}
        // A capture that was ended in the middle of its last packet.
        Err(Fault::CutOff) if whole > 0 => frames.counts.is_cut_off = true,
        Err(Fault::CutOff) => return Err(Fault::wrong("ends within its first packet; capture it again")),
        Err(Fault::Packet(message)) => return Err(Fault::Wrong(format!("packet {} {message}", whole + 1))),
        Err(Fault::Damaged(message)) => {
            let remedy = match whole {
                0 => "capture it again".to_owned(),
                whole => format!("keep the packets before it with editcap -r IN OUT 1-{whole}"),
            };
            return Err(Fault::Wrong(format!("packet {} {message}: the file is damaged; {remedy}", whole + 1)));
        }
        Err(fault) => return Err(fault),
    }
    Ok(frames.finish())
}

/// The frames read so far, in the order of the file.
#[derive(Default)]
struct Frames {
    options: Options,
    first_ps: i128,
    latest_s: f64,
    time_s: Vec<f64>,
    frame_bytes: Vec<u32>,
    flow: Vec<u32>,
    flows: Flows,
    counts: Counts,
}

impl Frames {
    fn take(&mut self, packet: &Packet<'_>) -> Parsed<()> {
        if let Some(refusal) = packet.link.refusal() {
            return Err(Fault::Packet(refusal));
        }
        if self.counts.packets == 0 {
            self.first_ps = packet.time_ps;
        }
        let time_s = seconds(packet.time_ps - self.first_ps);
        let mut headers = found(packet.link, packet.bytes, packet.is_cut, self.options.inner);
        let frame_bytes = self.frame_bytes_of(packet);
        self.counts.take(packet, &headers, frame_bytes.max(SMALLEST_FRAME_BYTES));
        if time_s < self.latest_s {
            self.counts.out_of_order += 1;
        }
        self.latest_s = self.latest_s.max(time_s);
        let direction = match packet.link.direction(packet.bytes) {
            link::Direction::Unknown => packet.direction,
            direction => direction,
        };
        let key = Key { interface: packet.interface, direction, tuple: headers.flow.ok() };
        let flow = self.flows.number(key);
        let mtu_bytes = self.options.split_mtu_bytes;
        if mtu_bytes > 0 && frame_bytes > mtu_bytes {
            // Each segment has the headers of all tunnels again.
            headers = found(packet.link, packet.bytes, packet.is_cut, true);
            if let Some(split) = Split::of(&headers, frame_bytes, wire_bytes(packet), mtu_bytes) {
                self.counts.split_packets += 1;
                self.counts.segments += u64::from(split.segments());
                return split.each(|bytes| self.push(time_s, bytes, flow));
            }
        }
        self.counts.long.take(frame_bytes);
        self.push(time_s, frame_bytes, flow)
    }

    fn push(&mut self, time_s: f64, frame_bytes: u32, flow: u32) -> Parsed<()> {
        if self.time_s.len() == MOST_FRAMES {
            return Err(Fault::Packet(format!(
                "is beyond the {MOST_FRAMES} frames that are read; take a part with editcap -r IN OUT 1-{MOST_FRAMES}"
            )));
        }
        self.time_s.push(time_s);
        self.frame_bytes.push(frame_bytes.max(SMALLEST_FRAME_BYTES));
        self.flow.push(flow);
        Ok(())
    }

    /// Bytes of a frame with FCS, without padding.
    fn frame_bytes_of(&mut self, packet: &Packet<'_>) -> u32 {
        if packet.link.is_ethernet() {
            return wire_bytes(packet) + FCS_BYTES;
        }
        self.counts.without_ethernet += 1;
        let own = packet.link.start(packet.bytes).map_or(0, |(at, next)| match next {
            link::Next::Ppp => at + 2,
            _ => at,
        });
        wire_bytes(packet).saturating_sub(own as u32) + ETHERNET_BYTES
    }

    fn finish(mut self) -> Recording {
        if self.counts.out_of_order > 0 {
            self.sort();
        }
        self.counts.rest_packets = self.flows.rest_frames;
        let (flows, rule) = self.flows.finish(&mut self.flow);
        self.counts.frames = self.time_s.len() as u64;
        self.counts.flows = flows.len() as u64;
        self.counts.duration_s = self.time_s.last().copied().unwrap_or_default();
        Recording {
            notes: self.counts.notes(rule, self.options),
            counts: self.counts.by_name(),
            time_s: self.time_s,
            frame_bytes: self.frame_bytes,
            flow: self.flow,
            flows,
        }
    }

    /// Sorts by time; frames of one time stay in the order of the file.
    fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.time_s.len() as u32).collect();
        let times = &self.time_s;
        order.sort_by(|&a, &b| times[a as usize].total_cmp(&times[b as usize]));
        self.frame_bytes = order.iter().map(|&nth| self.frame_bytes[nth as usize]).collect();
        self.flow = order.iter().map(|&nth| self.flow[nth as usize]).collect();
        // Equal times are the same, so these need no order of the file, and no second copy.
        self.time_s.sort_unstable_by(f64::total_cmp);
        let earliest_s = self.time_s[0];
        self.time_s.iter_mut().for_each(|time_s| *time_s -= earliest_s);
    }
}

/// Bytes of the packet on the wire without FCS.
fn wire_bytes(packet: &Packet<'_>) -> u32 {
    packet.wire_bytes.saturating_sub(if packet.has_fcs { FCS_BYTES } else { 0 })
}

/// Picoseconds as seconds.
fn seconds(span_ps: i128) -> f64 {
    i64::try_from(span_ps).map_or(span_ps as f64, |span_ps| span_ps as f64) / 1e12
}

/// The obstacles that are counted, and what each is.
const OBSTACLES: [(Obstacle, &str); 5] = [
    (Obstacle::Mpls, "MPLS labels before the addresses"),
    (Obstacle::Pppoe, "PPPoE before the addresses"),
    (Obstacle::OldTag, "an outer VLAN tag of type 0x9100"),
    (Obstacle::Cut, "cut by the capture before the ports"),
    (Obstacle::NotIp, "not IP"),
];

#[cfg(test)]
mod tests;
