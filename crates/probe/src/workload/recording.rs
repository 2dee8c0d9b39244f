//! Times, sizes and flows of the packets of a capture.

use std::collections::HashMap;
use std::path::Path;

use super::capture::{self, Capture};
use crate::error::{ProbeError, Result};

/// Bytes that a network card strips from a frame before the capture.
const FCS_BYTES: u32 = 4;
/// A shorter frame was padded on the wire.
const SMALLEST_FRAME_BYTES: u32 = 64;
/// Octets of a packet that hold its headers up to the ports, with tags and IPv6.
const HEADERS_BYTES: usize = 128;
const IPV6_PORTS_AT: usize = 40;
/// "More fragments" and the offset of an IPv4 header; both are 0 in a whole datagram.
const FRAGMENTS: u16 = 0x3fff;

/// The packets of a capture in the order of their times.
#[derive(Debug, Default, PartialEq)]
pub struct Recording {
    /// Times since the first packet, seconds.
    pub at_s: Vec<f64>,
    /// Bytes of the frame on the wire, with its FCS; at least 64.
    pub frame_bytes: Vec<u32>,
    /// Number of its flow, in the order of their first packets: addresses, protocol and ports of IPv4 and IPv6, one
    /// flow for everything else.
    pub flow: Vec<u32>,
    /// Whether the file has more packets.
    pub more: bool,
}

/// Reads the first `most` packets of a capture file.
///
/// # Errors
///
/// As [`capture::read`], and if packets have no times.
pub fn read(path: &Path, most: usize) -> Result<Recording> {
    let capture = capture::read_headers(path, most, HEADERS_BYTES)?;
    of(&capture).map_err(|message| ProbeError::request("pcap", format!("{}: {message}", path.display())))
}

fn of(capture: &Capture) -> std::result::Result<Recording, String> {
    let mut order: Vec<usize> = (0..capture.packets.len()).collect();
    // A capture of several queues is slightly out of order.
    order.sort_by_key(|&nth| capture.at_ns[nth]);
    let first_ns = order.first().map_or(Some(0), |&nth| capture.at_ns[nth]);
    let mut recording = Recording { more: capture.more, ..Recording::default() };
    let mut flows = HashMap::new();
    for nth in order {
        let (Some(at_ns), Some(first_ns)) = (capture.at_ns[nth], first_ns) else {
            let packet = nth + 1;
            return Err(format!(
                "has packet {packet} without a time (a simple packet block): write it with tcpdump -w"
            ));
        };
        let next = flows.len() as u32;
        recording.at_s.push((at_ns - first_ns) as f64 / 1e9);
        recording.frame_bytes.push((capture.original_bytes[nth] + FCS_BYTES).max(SMALLEST_FRAME_BYTES));
        recording.flow.push(*flows.entry(key(&capture.packets[nth])).or_insert(next));
    }
    Ok(recording)
}

/// Addresses, protocol and ports of the packet; `None` if it is not IP, or truncated before its addresses.
fn key(packet: &[u8]) -> Option<Vec<u8>> {
    let mut at = 12;
    let mut ether_type = packet.get(at..at + 2)?;
    while matches!(ether_type, [0x81, 0x00] | [0x88, 0xa8]) {
        at += 4;
        ether_type = packet.get(at..at + 2)?;
    }
    let ip = &packet[at + 2..];
    let (protocol, addresses, ports_at) = match ether_type {
        // Of fragments, only the first one has ports.
        [0x08, 0x00] if ip.len() >= 20 && u16::from_be_bytes([ip[6], ip[7]]) & FRAGMENTS == 0 => {
            (ip[9], &ip[12..20], usize::from(ip[0] & 0x0f) * 4)
        }
        [0x08, 0x00] if ip.len() >= 20 => (ip[9], &ip[12..20], ip.len()),
        [0x86, 0xdd] if ip.len() >= IPV6_PORTS_AT => (ip[6], &ip[8..40], IPV6_PORTS_AT),
        _ => return None,
    };
    let has_ports = matches!(protocol, 6 | 17 | 132);
    let ports = ip.get(ports_at..ports_at + 4).filter(|_| has_ports).unwrap_or_default();
    Some([&[protocol][..], addresses, ports].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(source: u8, port: u16) -> Vec<u8> {
        let mut packet = vec![0; 60];
        packet[12..14].copy_from_slice(&[0x08, 0x00]);
        (packet[14], packet[23], packet[29]) = (0x45, 17, source);
        packet[34..36].copy_from_slice(&port.to_be_bytes());
        packet
    }

    fn capture(packets: &[(Option<u64>, u32, Vec<u8>)]) -> Capture {
        let mut capture = Capture::default();
        for (at_ns, original_bytes, bytes) in packets {
            capture.take(bytes, *original_bytes, *at_ns, usize::MAX);
        }
        capture
    }

    #[test]
    fn packets_are_in_order_as_long_as_on_the_wire_and_numbered_by_flow() {
        let mut tagged = udp(1, 7);
        tagged.splice(12..12, [0x81, 0x00, 0x00, 0x05]);
        let arp = [vec![0; 12], vec![0x08, 0x06], vec![0; 28]].concat();
        let captured = capture(&[
            (Some(5_000_000_000), 1514, udp(1, 7)),
            (Some(5_000_002_000), 42, arp),
            (Some(5_000_001_000), 60, udp(1, 8)),
            (Some(5_000_003_000), 64, tagged),
        ]);
        let read = of(&captured).unwrap();
        assert_eq!(read.at_s, [0.0, 1e-6, 2e-6, 3e-6]);
        assert_eq!(read.frame_bytes, [1518, 64, 64, 68]);
        assert_eq!(read.flow, [0, 1, 2, 0]);
    }

    #[test]
    fn packets_without_times_are_refused() {
        let message = of(&capture(&[(None, 60, udp(1, 7))])).unwrap_err();
        assert!(message.contains("packet 1 without a time"), "{message}");
    }

    #[test]
    fn fragments_without_ports_are_of_one_flow_with_each_other() {
        let mut fragment = udp(1, 7);
        fragment[21] = 5;
        let mut other = udp(1, 9);
        other[21] = 9;
        assert_eq!(key(&fragment), key(&other));
        assert_ne!(key(&fragment), key(&udp(1, 7)));
        assert_eq!(key(&[0; 13]), None);
    }
}
