//! Verification of received frames: intact, corrupted or foreign.

use super::outer::{GRE_BYTES, GRE_PROTOCOL, SERVICE_VLAN, VLAN, VXLAN_BYTES, VXLAN_HAS_VNI, VXLAN_PORT};
use super::{ETHERNET_BYTES, PATTERN, SIGNATURE_BYTES, Signature, UDP_BYTES, UDP_PROTOCOL, fold, ip_bytes, sum16};

/// The verdict on a received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Not a test frame: another protocol, or no signature where one must be.
    Foreign,
    /// It has a signature, but a length, a checksum or the pattern is wrong. The signature itself may be damaged, so
    /// its sequence number must not count as received: a corrupted frame counts as lost, and separately as corrupted.
    Corrupted(Signature),
    /// As sent, except for the fields that a router changes: Ethernet addresses, tags, TTL.
    Intact(Signature),
}

/// Judges a received frame without its FCS. It accepts arbitrary octets.
#[must_use]
pub fn verify(frame: &[u8]) -> Verdict {
    let Some((outer, ipv6)) = datagram(frame) else { return Verdict::Foreign };
    let direct = judge(outer, ipv6);
    if direct != Verdict::Foreign {
        return direct;
    }
    let Some((inner, ipv6, intact)) = tunnelled(outer, ipv6) else { return Verdict::Foreign };
    match judge(inner, ipv6) {
        Verdict::Intact(signature) if !intact => Verdict::Corrupted(signature),
        verdict => verdict,
    }
}

/// Judges the datagram of a test.
fn judge(datagram: &[u8], ipv6: bool) -> Verdict {
    let Some(udp) = udp_of(datagram, ipv6) else { return Verdict::Foreign };
    let payload = &udp.segment[UDP_BYTES.min(udp.segment.len())..];
    let Some(signature) = Signature::read(payload) else { return Verdict::Foreign };
    let is_intact = udp.intact && udp.datagram_bytes == datagram.len() && udp_is_right(&udp);
    if is_intact
        && payload.len() <= PATTERN.len()
        && payload[SIGNATURE_BYTES..] == PATTERN[SIGNATURE_BYTES..payload.len()]
    {
        Verdict::Intact(signature)
    } else {
        Verdict::Corrupted(signature)
    }
}

/// The signature of a possibly truncated frame, unchecked.
#[must_use]
pub fn signature(frame: &[u8]) -> Option<Signature> {
    let (outer, ipv6) = datagram(frame)?;
    let read = |datagram, ipv6| Signature::read(udp_of(datagram, ipv6)?.segment.get(UDP_BYTES..)?);
    read(outer, ipv6).or_else(|| tunnelled(outer, ipv6).and_then(|(inner, ipv6, _)| read(inner, ipv6)))
}

/// The datagram in a tunnel, whether it is IPv6, and whether the headers around it are right.
fn tunnelled(outer: &[u8], ipv6: bool) -> Option<(&[u8], bool, bool)> {
    let header = outer.get(..ip_bytes(ipv6))?;
    let word = |at: usize| usize::from(u16::from_be_bytes([header[at], header[at + 1]]));
    let (protocol, intact) = if ipv6 {
        (header[6], header[0] >> 4 == 6 && word(4) + 40 == outer.len())
    } else if header[0] == 0x45 && word(6) & FRAGMENTS == 0 {
        (header[9], word(2) == outer.len() && fold(sum16(header)) == 0xffff)
    } else {
        return None;
    };
    let rest = &outer[header.len()..];
    let (at, intact) = match protocol {
        GRE_PROTOCOL if rest.get(..2)? == [0, 0] => (GRE_BYTES, intact),
        UDP_PROTOCOL => {
            let udp = rest.get(..UDP_BYTES + VXLAN_BYTES)?;
            if udp[2..4] != VXLAN_PORT.to_be_bytes() || udp[UDP_BYTES] != VXLAN_HAS_VNI {
                return None;
            }
            let length = usize::from(u16::from_be_bytes([udp[4], udp[5]]));
            (UDP_BYTES + VXLAN_BYTES + ETHERNET_BYTES, intact && length == rest.len())
        }
        _ => return None,
    };
    let inner = rest.get(at..)?;
    match rest[at - 2..at] {
        [0x08, 0x00] => Some((inner, false, intact)),
        [0x86, 0xdd] => Some((inner, true, intact)),
        _ => None,
    }
}

/// Of an IPv4 header: "more fragments" and the offset, none of which a whole datagram has.
const FRAGMENTS: usize = 0x3fff;

struct Udp<'a> {
    segment: &'a [u8],
    /// The length of the datagram according to the IP header.
    datagram_bytes: usize,
    /// Whether the IP header's own checksum is right.
    intact: bool,
    /// Sum of addresses and protocol.
    pseudo_sum: u32,
}

/// The datagram after the Ethernet header and up to two tags (IEEE 802.1Q), and whether it is IPv6.
fn datagram(frame: &[u8]) -> Option<(&[u8], bool)> {
    let mut at = ETHERNET_BYTES - 2;
    for _ in 0..=2 {
        let ether_type = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
        match ether_type {
            VLAN | SERVICE_VLAN => at += 4,
            0x0800 => return Some((&frame[at + 2..], false)),
            0x86dd => return Some((&frame[at + 2..], true)),
            _ => return None,
        }
    }
    None
}

fn udp_of(datagram: &[u8], ipv6: bool) -> Option<Udp<'_>> {
    let word = |at: usize| usize::from(u16::from_be_bytes([datagram[at], datagram[at + 1]]));
    if ipv6 {
        let header = datagram.get(..40)?;
        if header[0] >> 4 != 6 || header[6] != UDP_PROTOCOL {
            return None;
        }
        return Some(Udp {
            segment: &datagram[40..],
            datagram_bytes: 40 + word(4),
            intact: true,
            pseudo_sum: u32::from(UDP_PROTOCOL) + sum16(&header[8..40]),
        });
    }
    let header_bytes = usize::from(datagram.first()? & 0x0f) * 4;
    let header = datagram.get(..header_bytes.max(20))?;
    let fragment_offset = word(6) & 0x1fff;
    if header[0] >> 4 != 4 || header_bytes < 20 || header[9] != UDP_PROTOCOL || fragment_offset != 0 {
        return None;
    }
    Some(Udp {
        segment: &datagram[header_bytes..],
        datagram_bytes: word(2),
        intact: fold(sum16(header)) == 0xffff,
        pseudo_sum: u32::from(UDP_PROTOCOL) + sum16(&header[12..20]),
    })
}

fn udp_is_right(udp: &Udp<'_>) -> bool {
    let length = u16::from_be_bytes([udp.segment[4], udp.segment[5]]);
    let checksum = u16::from_be_bytes([udp.segment[6], udp.segment[7]]);
    // 0 means "none", which the tester never sends.
    usize::from(length) == udp.segment.len()
        && checksum != 0
        && fold(udp.pseudo_sum + u32::from(length) + u32::from(fold(sum16(udp.segment)))) == 0xffff
}
