//! Broadband network gateway (Baldi & Sapio 2018, sec. 3.2, fig. 7 and 8; after Intel's DPPD).
//!
//! ```text
//!   access   Ethernet 12 | 88a8 tag | 8100 tag | 0800 | IPv4 20 | …                                      22 + 20
//!   core     Ethernet 14 | MPLS 4 | IPv4 20 | GRE with checksum and key 12 | IPv4 20 | …                 50 + 20
//! ```
//!
//! Subscribers are known by their two VLAN tags on the one side and by the GRE key on the other; the way back to one
//! is learned from what it sends. Padding behind the inner packet is taken off, and put on again where a frame
//! would have fewer than 64 bytes.

mod access;
mod core;

pub use access::Access;
pub use core::Core;

use crate::frame::{ETHERTYPE_IPV4, ETHERTYPE_MPLS, ETHERTYPE_QINQ, ETHERTYPE_VLAN, HeaderWriter, Ipv4};
use crate::frame::{PROTOCOL_GRE, PROTOCOL_UDP};
use crate::traffic::{Scramble, mac, mix};

use super::mac_word;

/// Header of an access frame ahead of its IPv4 header.
const ACCESS_HEADER: usize = 22;
/// Headers of a core frame ahead of its inner IPv4 header.
const CORE_HEADER: usize = 50;
/// Numbers from which addresses of devices come.
const NEXT_HOPS: u64 = 1 << 43;
const SUBSCRIBERS: u64 = 1 << 44;
/// Tunnel's end on this side: 198.51.100.1 (RFC 5737).
const OWN: u32 = 0xc633_6401;
/// Protocol for experiments (RFC 3692): inner packets too short for UDP.
const EXPERIMENT: u8 = 253;

/// The subscribers: their identifiers, addresses and ports.
#[derive(Debug, Clone, Copy)]
struct Subscribers {
    tags: Scramble,
    keys: Scramble,
}

impl Subscribers {
    fn new(seed: u64) -> Self {
        Self { tags: Scramble::new(1 << 24, seed), keys: Scramble::new(1 << 32, seed ^ 1) }
    }

    /// Outer and inner VLAN identifier.
    fn vlans(&self, number: u64) -> [u16; 2] {
        let tag = self.tags.of(number);
        [(tag >> 12) as u16, (tag & 0xfff) as u16]
    }

    fn gre_key(&self, number: u64) -> u32 {
        self.keys.of(number) as u32
    }

    /// Address within 100.64.0.0/10 (RFC 6598), as far as there are that many.
    fn address(number: u64) -> u32 {
        0x6440_0000 | (number as u32 & 0x003f_ffff)
    }

    fn mac(number: u64) -> [u8; 6] {
        mac(SUBSCRIBERS + number)
    }

    /// The port of a subscriber.
    fn port(number: u64) -> u16 {
        (number % 8) as u16
    }

    /// Key and value of the way back to a subscriber, in the byte order of memory; the time stamp is 0.
    fn way_back(&self, number: u64) -> ([u64; 2], [u64; 2]) {
        let key = [u64::from(self.gre_key(number).swap_bytes()), u64::from(Self::address(number).swap_bytes())];
        let [outer, inner] = self.vlans(number).map(|vlan| u64::from(vlan.swap_bytes()));
        (key, [mac_word(Self::mac(number)) | u64::from(Self::port(number)) << 48, outer | inner << 16])
    }
}

/// Writes an inner packet: IPv4 and, where it has room, UDP.
fn inner(writer: &mut HeaderWriter<'_>, source: u32, destination: u32) {
    let total_bytes = writer.left() as u16;
    let protocol = if total_bytes < 28 { EXPERIMENT } else { PROTOCOL_UDP };
    let ip = Ipv4 { total_bytes, time_to_live: 64, protocol, source, destination };
    writer.ipv4(&ip);
    if protocol == PROTOCOL_UDP {
        writer.udp(&ip, 1024, 53);
    }
}

/// A frame from a subscriber.
fn access_frame(subscribers: Subscribers, number: u64, destination: u32, frame: &mut [u8]) {
    let [outer, tag] = subscribers.vlans(number);
    let mut writer = HeaderWriter::new(frame);
    writer.ethernet(mac(NEXT_HOPS - 1), Subscribers::mac(number));
    writer.vlan(ETHERTYPE_QINQ, outer).vlan(ETHERTYPE_VLAN, tag).ethertype(ETHERTYPE_IPV4);
    inner(&mut writer, Subscribers::address(number), destination);
}

/// A frame to a subscriber, from the network's translator.
fn core_frame(subscribers: Subscribers, number: u64, flow: u64, frame: &mut [u8]) {
    let mut writer = HeaderWriter::new(frame);
    writer.ethernet(mac(NEXT_HOPS - 1), mac(NEXT_HOPS)).ethertype(ETHERTYPE_MPLS).mpls(100, 64);
    let (total_bytes, source) = (writer.left() as u16, 0xcb00_7101);
    writer.ipv4(&Ipv4 { total_bytes, time_to_live: 64, protocol: PROTOCOL_GRE, source, destination: OWN });
    let server = 0x0800_0000 | (mix(flow) as u32 & 0x00ff_ffff);
    writer.gre(subscribers.gre_key(number), |writer| inner(writer, server, Subscribers::address(number)));
}
