//! The packets of a workload: their bytes, the ends of their headers, and room for the output of a kernel.
//!
//! ```text
//!   incoming   | frame 0 .... | frame 1 .. | ...      each from a new cache line on, without FCS
//!   outgoing   | 2 x frame 0 + 1 KiB ... | ...        as a driver would hand out buffers: one for each packet
//! ```

use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::kernel::Packet;
use super::request::{Content, PacketSource, WorkloadRequest};
use crate::batch::FCS_BYTES;
use crate::error::{ProbeError, Result};
use crate::frame::{ETHERTYPE_IPV4, HeaderWriter, Ipv4, LARGEST_FRAME_BYTES, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::frame::{ETHERTYPE_QINQ, ETHERTYPE_VLAN, SMALLEST_FRAME_BYTES};
use crate::function::{route, route_address};
use crate::memory::{HugeMemory, LINE_BYTES, Pages};
use crate::operation::internet_checksum;
use crate::traffic::{mac, mix};

use super::capture;

/// Most packets that are held at a time.
pub const MOST_PACKETS: usize = 65_536;
/// Routes that the destinations of generated packets belong to, unless the kernel has another number of them.
pub const ROUTES: u64 = 16_384;
/// 1 over the golden ratio.
const GOLDEN: f64 = 0.618_033_988_749_894_9;
/// Words that the compressible content is made of.
const WORDS: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    bytes: usize,
    ip: usize,
    payload: usize,
    end: usize,
    out: usize,
    out_bytes: usize,
}

/// Packets in memory.
pub struct Packets {
    incoming: HugeMemory,
    outgoing: HugeMemory,
    spans: Vec<Span>,
    /// Packets of the capture that are not IPv4, or shorter than their headers; left out.
    pub skipped: u64,
    /// Packets that the capture truncates.
    pub cut: u64,
    /// Whether the capture has more packets than requested.
    pub more: bool,
}

impl Packets {
    /// Generates or reads the packets of a request; their destinations belong to `routes` routes.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Request`] for an invalid mix or number, or a capture that cannot be read or holds no
    /// IPv4 packet.
    pub fn new(request: &WorkloadRequest, routes: u64) -> Result<Self> {
        if !(1..=MOST_PACKETS).contains(&request.packets) {
            let got = format!("got {}; 1 to {MOST_PACKETS} are held at a time", request.packets);
            return Err(ProbeError::request("packets", got));
        }
        match &request.source {
            PacketSource::Generated { mix, content, flows } => {
                generated(mix, *content, *flows, routes, request.packets, request.seed)
            }
            PacketSource::Capture { path } => {
                let read = capture::read(path, request.packets)?;
                let mut packets = held(read.packets.iter().map(Vec::as_slice))?;
                packets.cut = read.cut;
                packets.more = read.more;
                if packets.spans.is_empty() {
                    let message =
                        format!("{} holds no IPv4 packet with its header; take another capture", path.display());
                    return Err(ProbeError::request("pcap", message));
                }
                Ok(packets)
            }
        }
    }

    /// Number of packets; at least one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether it is empty: never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Packet `number`, cyclically.
    #[inline]
    #[must_use]
    pub fn packet(&mut self, number: usize) -> Packet<'_> {
        let span = self.spans[number % self.spans.len()];
        let frame = &self.incoming.as_slice::<u8>()[span.start..span.start + span.bytes];
        let out = &mut self.outgoing.as_mut_slice::<u8>()[span.out..span.out + span.out_bytes];
        Packet { number, frame, ip: span.ip, payload: span.payload, end: span.end, out }
    }

    /// Bytes of packet `number` as a frame, FCS included.
    #[must_use]
    pub fn frame_bytes(&self, number: usize) -> usize {
        (self.spans[number % self.spans.len()].bytes + FCS_BYTES).max(usize::from(SMALLEST_FRAME_BYTES))
    }

    /// Bytes of packet `number` behind its headers.
    #[must_use]
    pub fn payload_bytes(&self, number: usize) -> usize {
        let span = self.spans[number % self.spans.len()];
        span.end - span.payload
    }

    /// Memory of the packets: first address and bytes of the incoming and of the outgoing ones.
    #[must_use]
    pub fn memory(&self) -> [(u64, u64); 2] {
        [&self.incoming, &self.outgoing].map(|memory| {
            let bytes = memory.as_slice::<u8>();
            (bytes.as_ptr() as u64, bytes.len() as u64)
        })
    }
}

fn generated(
    mix: &[(u16, f64)],
    content: Content,
    flows: u64,
    routes: u64,
    count: usize,
    seed: u64,
) -> Result<Packets> {
    if mix.is_empty() {
        return Err(ProbeError::request("mix", "got no sizes; name at least one with its weight: [[64, 1]]"));
    }
    for &(bytes, weight) in mix {
        if !(SMALLEST_FRAME_BYTES..=LARGEST_FRAME_BYTES).contains(&bytes) {
            let got = format!("got {bytes} bytes; {SMALLEST_FRAME_BYTES} to {LARGEST_FRAME_BYTES} are allowed");
            return Err(ProbeError::request("frame", got));
        }
        if !(weight.is_finite() && weight > 0.0) {
            let got = format!("got the weight {weight} of {bytes} bytes; name one above 0");
            return Err(ProbeError::request("mix", got));
        }
    }
    if flows == 0 {
        return Err(ProbeError::request("flows", "got 0 flows; ask for one or more"));
    }
    let total: f64 = mix.iter().map(|&(_, weight)| weight).sum();
    let start = Xoshiro256PlusPlus::seed_from_u64(seed).next_u64() as f64 / 2f64.powi(64);
    let mut writer = ContentWriter::new(content, seed);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(crate::traffic::mix(seed ^ 2));
    let frames: Vec<Vec<u8>> = (0..count)
        .map(|number| {
            // Multiples of the golden ratio, so that few packets in a row already have the mix (Weyl's sequence).
            let mut share = (start + number as f64 * GOLDEN).fract() * total;
            let size = mix.iter().find(|&&(_, weight)| {
                share -= weight;
                share < 0.0
            });
            let bytes = size.or(mix.last()).map_or(SMALLEST_FRAME_BYTES, |&(bytes, _)| bytes);
            let flow = random.next_u64() % flows;
            let mut frame = vec![0; usize::from(bytes) - FCS_BYTES];
            let headers = write_headers(&mut frame, flow, number as u16, routes, seed);
            writer.fill(&mut frame[headers..]);
            frame
        })
        .collect();
    held(frames.iter().map(Vec::as_slice))
}

/// Writes the headers of a flow and returns their length; flows with an even number are TCP, the others UDP.
fn write_headers(frame: &mut [u8], flow: u64, identification: u16, routes: u64, seed: u64) -> usize {
    let protocol = if flow.is_multiple_of(2) { PROTOCOL_TCP } else { PROTOCOL_UDP };
    let total_bytes = (frame.len() - 14) as u16;
    let destination = route_address(&route(mix(flow) % routes.max(1), 256, false, seed), flow);
    let ip = Ipv4 {
        total_bytes,
        time_to_live: 64,
        protocol,
        source: 0x0a00_0000 | (mix(flow ^ 5) as u32 & 0x00ff_ffff),
        destination,
    };
    let ports = mix(flow ^ 9);
    let from = 1024 + (ports >> 16) as u16 % 60_000;
    // A third of the flows goes to a web server.
    let to = if ports.is_multiple_of(3) { 80 } else { 1024 + ports as u16 % 60_000 };
    let mut writer = HeaderWriter::new(frame);
    writer.ethernet(mac(flow + 1), mac(0)).ethertype(ETHERTYPE_IPV4).ipv4(&ip);
    if protocol == PROTOCOL_TCP {
        writer.put(from.to_be_bytes()).put(to.to_be_bytes()).put([0; 8]).put([0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    } else {
        writer.put(from.to_be_bytes()).put(to.to_be_bytes()).put((total_bytes - 20).to_be_bytes()).put([0, 0]);
    }
    // These may be fragmented, so they need an identification (RFC 6864).
    frame[18..20].copy_from_slice(&identification.to_be_bytes());
    frame[20] = 0;
    frame[24..26].fill(0);
    let checksum = internet_checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_ne_bytes());
    if protocol == PROTOCOL_TCP { 54 } else { 42 }
}

/// Writes payloads.
struct ContentWriter {
    content: Content,
    words: Vec<Vec<u8>>,
    rank: Option<Zipf<f64>>,
    random: Xoshiro256PlusPlus,
}

impl ContentWriter {
    fn new(content: Content, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(mix(seed ^ 3));
        let words = (0..WORDS)
            .map(|_| {
                let letters = 2 + random.next_u64() % 8;
                (0..letters).map(|_| b'a' + (random.next_u64() % 26) as u8).chain([b' ']).collect()
            })
            .collect();
        Self { content, words, rank: Zipf::new(WORDS as f64, 1.0).ok(), random }
    }

    fn fill(&mut self, payload: &mut [u8]) {
        if self.content == Content::Random {
            self.random.fill_bytes(payload);
            return;
        }
        let mut at = 0;
        while at < payload.len() {
            let rank = self.rank.map_or(1.0, |rank| rank.sample(&mut self.random));
            let word = &self.words[(rank as usize).clamp(1, WORDS) - 1];
            let bytes = word.len().min(payload.len() - at);
            payload[at..at + bytes].copy_from_slice(&word[..bytes]);
            at += bytes;
        }
    }
}

/// Where the parts of an IPv4 packet begin and end: its IP header, its payload and the end of that.
fn parts(frame: &[u8]) -> Option<(usize, usize, usize)> {
    let word = |at: usize| frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    let mut ip = 14;
    while matches!(word(ip - 2)?, ETHERTYPE_VLAN | ETHERTYPE_QINQ) {
        ip += 4;
    }
    let first = *frame.get(ip)?;
    if word(ip - 2)? != ETHERTYPE_IPV4 || first >> 4 != 4 {
        return None;
    }
    let transport = ip + usize::from(first & 15) * 4;
    let end = frame.len().min(ip + usize::from(word(ip + 2)?));
    if usize::from(first & 15) < 5 || transport > end {
        return None;
    }
    let later = word(ip + 6)? & 0x1fff != 0;
    let header = match frame[ip + 9] {
        PROTOCOL_TCP if !later => usize::from(frame.get(transport + 12).copied().unwrap_or(0x50) >> 4) * 4,
        PROTOCOL_UDP if !later => 8,
        _ => 0,
    };
    Some((ip, (transport + header).min(end), end))
}

fn held<'a>(frames: impl Iterator<Item = &'a [u8]> + Clone) -> Result<Packets> {
    let line = |bytes: usize| bytes.next_multiple_of(LINE_BYTES);
    let (mut start, mut out, mut skipped) = (0, 0, 0);
    let mut spans = Vec::new();
    for frame in frames.clone() {
        let Some((ip, payload, end)) = parts(frame) else {
            skipped += 1;
            continue;
        };
        let out_bytes = line(2 * frame.len() + 1024);
        spans.push(Span { start, bytes: frame.len(), ip, payload, end, out, out_bytes });
        start += line(frame.len());
        out += out_bytes;
    }
    let mut incoming = HugeMemory::new("packets", start.max(LINE_BYTES), Pages::Normal)?;
    let outgoing = HugeMemory::new("packets that leave", out.max(LINE_BYTES), Pages::Normal)?;
    let bytes = incoming.as_mut_slice::<u8>();
    for (frame, span) in frames.filter(|frame| parts(frame).is_some()).zip(&spans) {
        bytes[span.start..span.start + span.bytes].copy_from_slice(frame);
    }
    Ok(Packets { incoming, outgoing, spans, skipped, cut: 0, more: false })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Packets of one size, for the tests of kernels.
    pub fn of_size(frame_bytes: u16, count: usize, content: Content) -> Packets {
        generated(&[(frame_bytes, 1.0)], content, 64, ROUTES, count, 5).unwrap()
    }

    #[test]
    fn generated_packets_are_what_a_parser_of_others_reads() {
        for bytes in [64, 65, 594, 1518] {
            let mut packets = of_size(bytes, 50, Content::Words);
            for number in 0..50 {
                assert_eq!(packets.frame_bytes(number), usize::from(bytes));
                let packet = packets.packet(number);
                let read = etherparse::SlicedPacket::from_ethernet(packet.frame).unwrap();
                let Some(etherparse::NetSlice::Ipv4(ip)) = read.net else { panic!("no IPv4") };
                assert_eq!(internet_checksum(ip.header().slice()), 0);
                assert!(read.transport.is_some());
                assert_eq!(packet.ip, 14);
                assert_eq!(packet.end, packet.frame.len());
            }
        }
    }

    #[test]
    fn few_packets_in_a_row_have_the_mix_already() {
        let mix: Vec<_> = [64, 128, 256, 512, 1024, 1280, 1518].map(|bytes| (bytes, 1.0)).to_vec();
        let packets = generated(&mix, Content::Words, 64, ROUTES, 700, 5).unwrap();
        for first in [0, 100, 333] {
            let count = |bytes| (first..first + 70).filter(|&number| packets.frame_bytes(number) == bytes).count();
            assert!(mix.iter().all(|&(bytes, _)| (9..=11).contains(&count(usize::from(bytes)))));
        }
    }

    #[test]
    fn payload_begins_behind_headers_of_any_length_and_ends_before_the_padding() {
        // A VLAN tag, an IP header with 4 bytes of options, UDP with 2 bytes of payload, padding.
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[0x81, 0]);
        frame[16..18].copy_from_slice(&[8, 0]);
        frame[18] = 0x46;
        frame[20..22].copy_from_slice(&34u16.to_be_bytes());
        frame[27] = PROTOCOL_UDP;
        assert_eq!(parts(&frame), Some((18, 50, 52)));
        for cut in 0..42 {
            assert_eq!(parts(&frame[..cut]), None, "{cut}");
        }
        frame[16] = 0x86;
        assert_eq!(parts(&frame), None);
    }

    proptest::proptest! {
        #[test]
        fn parts_of_any_bytes_lie_within_them(frame: Vec<u8>) {
            if let Some((ip, payload, end)) = parts(&frame) {
                proptest::prop_assert!(ip + 20 <= payload && payload <= end && end <= frame.len());
            }
        }
    }
}
