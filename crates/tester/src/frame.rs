//! Test frames: how they are built, which octets change from frame to frame, and how a received one is verified.
//!
//! ```text
//! Ethernet 14 │ IPv4 20 or IPv6 40 │ UDP 8 │ signature 18 │ pattern 0..      │ FCS 4 (counted, not handed over: S1)
//!                                          │ magic sequence time flow trial stream │
//! ```
//!
//! VLAN tags and a tunnel stand before the datagram, see `outer`; the two octets before it are its `EtherType` in
//! any case, so that what reads a frame begins 14 octets before the datagram, wherever that is.
//!
//! The pattern is the offset in the UDP payload modulo 256 (incrementing octets; RFC 2544 app. C.2.1 wants neither all
//! 0 nor all 1), so its octets from payload offset 18 on depend on nothing but their place.
//!
//! # Checksums without reading the frame
//!
//! One's complement sums add up (RFC 1071), and every field stands on a 16-bit boundary of the datagram. So a checksum
//! is the sum of what each source of change contributes, folded once:
//!
//! ```text
//! UDP:  sum = template.udp_sum          addresses, protocol, ports, magic, flow      per flow
//!           + 2 · udp_length            pseudo header and UDP header                 per size
//!           + slot.pattern_sum          payload octets 18.., see `pattern_sum`       per size and IP version
//!           + (trial << 8 | stream)                                                  per trial
//!           + sequence_hi + sequence_lo + time_3 + time_2 + time_1 + time_0          per frame
//!       checksum = !fold(sum), 0xffff where that is 0 (RFC 768)
//! IPv4: checksum = !fold(template.ipv4_sum + total_length)                           per flow and size
//! ```
//!
//! All words are the numbers that their two octets write in network order; the sums fit in 32 bits and two folds
//! suffice.

use std::net::IpAddr;

use crate::error::{Result, TesterError};
use crate::request::{self, Encapsulation};

mod outer;
mod verify;

use outer::Outer;
pub use outer::OuterIp;

pub use verify::{Verdict, signature, verify};

/// First two octets of the signature: "RC".
pub const MAGIC: u16 = 0x5243;
/// Length of the signature.
pub const SIGNATURE_BYTES: usize = 18;
/// Octets of the FCS, which the medium appends and no socket delivers (S1).
pub const FCS_BYTES: usize = 4;
/// The longest frame that is built, FCS included: all of RFC 6985's letters fit.
pub const MAX_FRAME_BYTES: u16 = 16_384;
/// Set in the trial number of frames that are sent before a trial and do not count.
pub const WARM_UP: u8 = 0x80;
/// Octets of the longest headers, those of IPv6 in VXLAN over IPv6 with two tags, with the signature.
pub const LONGEST_HEAD_BYTES: usize = outer::MOST_BYTES + 40 + UDP_BYTES + SIGNATURE_BYTES;

const ETHERNET_BYTES: usize = 14;
const UDP_BYTES: usize = 8;
const UDP_PROTOCOL: u8 = 17;
const HOP_LIMIT: u8 = 64;

static PATTERN: [u8; MAX_FRAME_BYTES as usize] = {
    let mut octets = [0; MAX_FRAME_BYTES as usize];
    let mut offset = 0;
    while offset < octets.len() {
        octets[offset] = offset as u8;
        offset += 1;
    }
    octets
};

/// The signature at the start of the UDP payload: 18 octets in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// Number of the frame in its stream, from 0 in every trial.
    pub sequence: u32,
    /// `CLOCK_MONOTONIC` just before the frame was handed to the wire, ns.
    pub sent_ns: u64,
    /// Index of the flow in its stream.
    pub flow: u16,
    /// Number of the trial, with [`WARM_UP`]: a straggler of an earlier one does not count.
    pub trial: u8,
    /// Index of the stream in the trial.
    pub stream: u8,
}

impl Signature {
    fn to_bytes(self) -> [u8; SIGNATURE_BYTES] {
        let mut octets = [0; SIGNATURE_BYTES];
        octets[..2].copy_from_slice(&MAGIC.to_be_bytes());
        octets[2..6].copy_from_slice(&self.sequence.to_be_bytes());
        octets[6..14].copy_from_slice(&self.sent_ns.to_be_bytes());
        octets[14..16].copy_from_slice(&self.flow.to_be_bytes());
        octets[16] = self.trial;
        octets[17] = self.stream;
        octets
    }

    /// The signature at the start of a UDP payload, if there is one.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (octets, _) = payload.split_first_chunk::<SIGNATURE_BYTES>()?;
        let word = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
        let long = |at: usize| (u32::from(word(at)) << 16) | u32::from(word(at + 2));
        (word(0) == MAGIC).then(|| Self {
            sequence: long(2),
            sent_ns: (u64::from(long(6)) << 32) | u64::from(long(10)),
            flow: word(14),
            trial: octets[16],
            stream: octets[17],
        })
    }

    /// The contribution of the fields that change from frame to frame to the UDP checksum.
    fn sum(&self) -> u32 {
        let time = self.sent_ns;
        (self.sequence >> 16)
            + (self.sequence & 0xffff)
            + (time >> 48) as u32
            + ((time >> 32) & 0xffff) as u32
            + ((time >> 16) & 0xffff) as u32
            + (time & 0xffff) as u32
            + u32::from(u16::from_be_bytes([self.trial, self.stream]))
    }
}

/// The frames of one stream: a template per flow.
#[derive(Debug, Clone)]
pub struct Templates {
    /// In the order of the flows.
    pub flows: Vec<Template>,
}

impl Templates {
    /// The frames of a stream's flows.
    ///
    /// # Errors
    ///
    /// An address or an identifier cannot be read, or the addresses of a flow are of different IP versions.
    pub fn new(flows: &[request::Flow], encapsulation: &Encapsulation) -> Result<Self> {
        let template = |(index, flow)| Template::new(flow, u16::try_from(index).unwrap_or(u16::MAX), encapsulation);
        flows.iter().enumerate().map(template).collect::<Result<_>>().map(|flows| Self { flows })
    }
}

/// The frames of one flow, ready to be stamped.
#[derive(Debug, Clone)]
pub struct Template {
    /// Headers and signature; lengths, checksums, sequence, time, trial and stream are 0.
    head: [u8; LONGEST_HEAD_BYTES],
    /// Where the datagram of the test begins.
    datagram: usize,
    outer_ip: Option<OuterIp>,
    ipv6: bool,
    flow: u16,
    ipv4_sum: u16,
    udp_sum: u16,
}

impl Template {
    /// The frames of `flow`, the `index`-th of its stream.
    ///
    /// # Errors
    ///
    /// An address or an identifier cannot be read, or the addresses are of different IP versions.
    pub fn new(flow: &request::Flow, index: u16, encapsulation: &Encapsulation) -> Result<Self> {
        let place = |field: &str| format!("flows[{index}].{field}");
        let mac = |field, text: &str| {
            mac(text).ok_or_else(|| TesterError::value(place(field), text, "six octets, as in 02:00:00:00:01:02"))
        };
        let source = address(&place("source_address"), &flow.source_address)?;
        let destination = address(&place("destination_address"), &flow.destination_address)?;
        let ipv6 = source.is_ipv6();
        if destination.is_ipv6() != ipv6 {
            let allowed = format!("an address of the version of {source}");
            return Err(TesterError::value(place("destination_address"), destination, allowed));
        }
        let mut head = [0; LONGEST_HEAD_BYTES];
        head[..6].copy_from_slice(&mac("destination_mac", &flow.destination_mac)?);
        head[6..12].copy_from_slice(&mac("source_mac", &flow.source_mac)?);
        let Outer { datagram, ip: outer_ip } =
            outer::write(&mut head, encapsulation, source, destination, flow.source_port)?;
        let (ipv4_sum, addresses_sum) = write_ip(&mut head[datagram..], source, destination, UDP_PROTOCOL);
        let udp = datagram + ip_bytes(ipv6);
        head[udp..udp + 2].copy_from_slice(&flow.source_port.to_be_bytes());
        head[udp + 2..udp + 4].copy_from_slice(&flow.destination_port.to_be_bytes());
        let signature = Signature { sequence: 0, sent_ns: 0, flow: index, trial: 0, stream: 0 };
        let end = udp + UDP_BYTES + SIGNATURE_BYTES;
        head[udp + UDP_BYTES..end].copy_from_slice(&signature.to_bytes());
        let udp_sum = fold(addresses_sum + u32::from(UDP_PROTOCOL) + sum16(&head[udp..end]));
        Ok(Self { head, datagram, outer_ip, ipv6, flow: index, ipv4_sum, udp_sum })
    }

    /// The first octets of every frame of the flow, to the end of the signature; fields that change are 0.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head[..self.head_bytes() + SIGNATURE_BYTES]
    }

    /// Octets of the headers: 42, or 62 with IPv6, plus tags and tunnel. The signature begins here.
    #[must_use]
    pub fn head_bytes(&self) -> usize {
        self.datagram + ip_bytes(self.ipv6) + UDP_BYTES
    }

    /// Offset of the IP datagram of the test: 14, plus tags and tunnel.
    #[must_use]
    pub fn datagram(&self) -> usize {
        self.datagram
    }

    /// The IP header of the tunnel.
    #[must_use]
    pub fn outer_ip(&self) -> Option<OuterIp> {
        self.outer_ip
    }

    /// Whether the frames are IPv6.
    #[must_use]
    pub fn is_ipv6(&self) -> bool {
        self.ipv6
    }

    /// The shortest frame that has room for the signature, FCS included: 64 B, or 84 B with IPv6, plus tags and tunnel.
    #[must_use]
    pub fn smallest_frame_bytes(&self) -> u16 {
        (self.head_bytes() + SIGNATURE_BYTES + FCS_BYTES) as u16
    }

    /// Folded sum of the IPv4 header with total length and checksum 0; 0 for IPv6.
    #[must_use]
    pub fn ipv4_sum(&self) -> u16 {
        self.ipv4_sum
    }

    /// Folded sum of the words under the UDP checksum that all frames of the flow share.
    #[must_use]
    pub fn udp_sum(&self) -> u16 {
        self.udp_sum
    }

    /// Writes a whole frame into `frame`, whose length is that of the frame without its FCS.
    ///
    /// `sum` is [`pattern_sum`] of the frame; the flow of the signature is the template's.
    ///
    /// # Panics
    ///
    /// Panics where `frame` has no room for headers and signature or is longer than [`MAX_FRAME_BYTES`]: a plan
    /// refuses such sizes.
    pub fn write(&self, frame: &mut [u8], sum: u16, signature: Signature) {
        let head = self.head_bytes();
        let payload = frame.len() - head;
        frame[..head].copy_from_slice(&self.head[..head]);
        frame[head + SIGNATURE_BYTES..].copy_from_slice(&PATTERN[SIGNATURE_BYTES..payload]);
        self.stamp(frame, sum, signature);
    }

    /// Writes lengths, checksums and signature into a frame that has its headers and pattern already.
    pub fn stamp(&self, frame: &mut [u8], sum: u16, signature: Signature) {
        let head = self.head_bytes();
        let udp = head - UDP_BYTES;
        let udp_length = (frame.len() - udp) as u16;
        if let Some(outer) = self.outer_ip {
            outer.stamp(frame);
        }
        stamp_ip(&mut frame[self.datagram..], self.ipv6, self.ipv4_sum);
        let signature = Signature { flow: self.flow, ..signature };
        let sum = u32::from(self.udp_sum) + 2 * u32::from(udp_length) + u32::from(sum) + signature.sum();
        let checksum = match !fold(sum) {
            0 => 0xffff,
            some => some,
        };
        frame[udp + 4..udp + 6].copy_from_slice(&udp_length.to_be_bytes());
        frame[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
        frame[head..head + SIGNATURE_BYTES].copy_from_slice(&signature.to_bytes());
    }
}

/// The first octets of the pattern, from offset 0 of a UDP payload on.
#[must_use]
pub fn pattern() -> &'static [u8] {
    &PATTERN
}

/// The contribution of the pattern to the UDP checksum of a frame of `frame_bytes`, FCS included, with headers of
/// `head_bytes`.
#[must_use]
pub fn pattern_sum(frame_bytes: u16, head_bytes: usize) -> u16 {
    let payload = (frame_bytes as usize).saturating_sub(FCS_BYTES + head_bytes);
    fold(sum16(&PATTERN[SIGNATURE_BYTES.min(payload)..payload]))
}

fn ip_bytes(ipv6: bool) -> usize {
    if ipv6 { 40 } else { 20 }
}

fn address(place: &str, text: &str) -> Result<IpAddr> {
    text.parse().map_err(|_| TesterError::value(place, text, "an IPv4 or IPv6 address, as in 198.18.1.2"))
}

/// Writes an IP header without its length and checksum: its folded sum (0 for IPv6), and the sum of the addresses.
fn write_ip(ip: &mut [u8], source: IpAddr, destination: IpAddr, protocol: u8) -> (u16, u32) {
    for (address, nth) in [(source, 0), (destination, 1)] {
        match address {
            IpAddr::V4(v4) => ip[12 + 4 * nth..16 + 4 * nth].copy_from_slice(&v4.octets()),
            IpAddr::V6(v6) => ip[8 + 16 * nth..24 + 16 * nth].copy_from_slice(&v6.octets()),
        }
    }
    if source.is_ipv6() {
        (ip[0], ip[6], ip[7]) = (0x60, protocol, HOP_LIMIT);
        (0, sum16(&ip[8..40]))
    } else {
        // An atomic datagram: DF is set and the identification means nothing (RFC 6864 sec. 4.1).
        (ip[0], ip[6], ip[8], ip[9]) = (0x45, 0x40, HOP_LIMIT, protocol);
        (fold(sum16(&ip[..20])), sum16(&ip[12..20]))
    }
}

/// Writes length and checksum into the header of a datagram that ends with the frame.
fn stamp_ip(datagram: &mut [u8], ipv6: bool, ipv4_sum: u16) {
    if ipv6 {
        let length = (datagram.len() - 40) as u16;
        datagram[4..6].copy_from_slice(&length.to_be_bytes());
    } else {
        let length = datagram.len() as u16;
        let checksum = !fold(u32::from(ipv4_sum) + u32::from(length));
        datagram[2..4].copy_from_slice(&length.to_be_bytes());
        datagram[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut octets = [0; 6];
    let mut parts = text.split(':');
    for octet in &mut octets {
        let part = parts.next().filter(|part| part.len() == 2 && !part.starts_with('+'))?;
        *octet = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(octets)
}

/// Sum of the 16-bit words in network order, an odd octet padded with 0 (RFC 1071); 64 KiB do not overflow it.
fn sum16(octets: &[u8]) -> u32 {
    let words = octets.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |last| u32::from(*last) << 8);
    words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>() + odd
}

fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

#[cfg(test)]
mod tests;
