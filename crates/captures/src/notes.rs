//! What was counted while a capture was read, and what of it a reader must know.

use super::container::Packet;
use super::flows::{MOST_FLOWS, Rule};
use super::link::{Direction, Found};
use super::segments::LongFrames;
use super::{OBSTACLES, Options};

/// Longest capture whose times are believed without a word.
const LONG_S: f64 = 30.0 * 86_400.0;

/// Numbers of packets (as the file holds them) and frames (as the wire carried them).
#[derive(Default)]
pub struct Counts {
    pub packets: u64,
    pub frames: u64,
    pub flows: u64,
    pub rest_packets: u64,
    pub out_of_order: u64,
    pub without_ethernet: u64,
    pub split_packets: u64,
    pub segments: u64,
    pub is_cut_off: bool,
    pub duration_s: f64,
    bytes: u64,
    cut: u64,
    fragments: u64,
    not_hashed: [u64; OBSTACLES.len()],
    kernel_in: u64,
    kernel_out: u64,
    /// Frames longer than those of an MTU of 1500 B, which were not split.
    pub long: LongFrames,
}

impl Counts {
    /// Counts a packet.
    pub fn take(&mut self, packet: &Packet<'_>, headers: &Found, frame_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(frame_bytes);
        self.cut += u64::from(packet.is_cut);
        self.fragments += u64::from(headers.is_fragment);
        if let Err(obstacle) = headers.flow {
            for (count, (known, _)) in self.not_hashed.iter_mut().zip(OBSTACLES) {
                *count += u64::from(known == obstacle);
            }
        }
        match packet.link.direction(packet.bytes) {
            Direction::In => self.kernel_in += 1,
            Direction::Out => self.kernel_out += 1,
            Direction::Unknown => {}
        }
    }

    /// The counts, by name.
    pub fn by_name(&self) -> Vec<(&'static str, u64)> {
        let (super_packets, super_bytes) = self.long.super_packets();
        vec![
            ("packets", self.packets),
            ("frames", self.frames),
            ("flows", self.flows),
            ("out_of_order", self.out_of_order),
            ("not_hashed", self.not_hashed.iter().sum()),
            ("fragments", self.fragments),
            ("cut", self.cut),
            ("without_ethernet", self.without_ethernet),
            ("super_packets", super_packets),
            ("super_bytes", super_bytes),
            ("split_packets", self.split_packets),
            ("segments", self.segments),
        ]
    }

    fn share(&self, packets: u64) -> String {
        format!("{} ({packets} of {})", percent(packets, self.packets), self.packets)
    }

    /// What a reader must know, in sentences.
    pub fn notes(&self, rule: Rule, options: Options) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_cut_off {
            let packets = self.packets;
            notes.push(format!("The file ends within packet {}; the {packets} before it are read.", packets + 1));
        }
        if self.out_of_order > 0 {
            notes.push(format!(
                "{} of the packets are out of order in time; they are sorted.",
                self.share(self.out_of_order)
            ));
        }
        if self.duration_s > LONG_S {
            let days = self.duration_s / 86_400.0;
            notes.push(format!("The times span {days:.0} days; if that is wrong, a clock was set during the capture."));
        }
        if self.without_ethernet > 0 {
            notes.push(format!(
                "{} of the packets were captured without an Ethernet header; their frames are taken as 18 B longer than \
                 the packets of IP, and as 64 B at least.",
                self.share(self.without_ethernet)
            ));
        }
        if self.kernel_in > 0 && self.kernel_out > 0 {
            notes.push(format!(
                "The machine that captured received {} of the packets and sent {}: a packet that it forwarded is in the \
                 capture twice; tcpdump -i DEVICE captures one interface.",
                self.kernel_in, self.kernel_out
            ));
        }
        notes.extend(self.offloads(options));
        notes.extend(self.hashing(options));
        notes.push(sides(rule).to_owned());
        notes
    }

    fn offloads(&self, options: Options) -> Vec<String> {
        let mut notes = Vec::new();
        if self.split_packets > 0 {
            notes.push(format!(
                "{} of the packets are longer than the MTU of {} B; they are split into {} frames, which have the time of \
                 their packet, for how they were spaced on the wire is not in the capture.",
                self.share(self.split_packets),
                options.split_mtu_bytes,
                self.segments
            ));
        }
        let (packets, bytes) = self.long.super_packets();
        if packets > 0 {
            notes.push(format!(
                "{} of the packets, with {} of the bytes, are longer than any frame of an MTU of 1500 B: super-packets of \
                 the host's offloads, and not what the wire carried. Capture with offloads off (ethtool -K DEVICE gro off \
                 gso off tso off lro off), or split those of TCP and \
                 UDP (--split-mtu 1500).",
                self.share(packets),
                percent(bytes, self.bytes)
            ));
        }
        notes
    }

    fn hashing(&self, options: Options) -> Vec<String> {
        let mut notes = Vec::new();
        let all: u64 = self.not_hashed.iter().sum();
        if all > 0 {
            let causes: Vec<String> = self
                .not_hashed
                .iter()
                .zip(OBSTACLES)
                .filter(|(count, _)| **count > 0)
                .map(|(&count, (_, words))| format!("{} {words}", percent(count, self.packets)))
                .collect();
            notes.push(format!(
                "A network card cannot hash {} of the packets: {}. They are one flow, on one queue.",
                self.share(all),
                causes.join(", ")
            ));
        }
        if self.fragments > 0 {
            notes.push(format!(
                "{} of the packets are fragments, which are hashed by their addresses only.",
                self.share(self.fragments)
            ));
        }
        if self.rest_packets > 0 {
            notes.push(format!(
                "The capture has more than {MOST_FLOWS} flows; {} of the packets are of those beyond and are one flow, which \
                 is not hashed.",
                self.share(self.rest_packets)
            ));
        }
        if options.inner {
            notes.push("Flows are those of the innermost packets, inside tags, labels and tunnels.".to_owned());
        }
        notes
    }
}

fn sides(rule: Rule) -> &'static str {
    match rule {
        Rule::Interface => "The side of a flow is the number of the interface that captured it.",
        Rule::Direction => "The side of a flow is its direction in the capture: 0 came in, 1 went out.",
        Rule::Addresses => {
            "The capture does not say directions: of two addresses, the one that sent first is on side 0, the other on \
             side 1."
        }
    }
}

fn percent(part: u64, whole: u64) -> String {
    let share = part as f64 / whole as f64 * 100.0;
    if share < 0.1 { "less than 0.1 %".to_owned() } else { format!("{share:.1} %") }
}
