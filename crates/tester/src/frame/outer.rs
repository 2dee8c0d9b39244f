//! VLAN tags and tunnels: the headers between the Ethernet addresses of a frame and the datagram of the test.
//!
//! ```text
//! addresses 12 │ tags 0, 4, 8 │ type 2 │                                                        │ datagram …
//! addresses 12 │ tags 0, 4, 8 │ type 2 │ IP 20 or 40 │ UDP 8 │ VXLAN 8 │ addresses 12 │ type 2  │ datagram …
//! addresses 12 │ tags 0, 4, 8 │ type 2 │ IP 20 or 40 │ GRE: flags 2 │ type 2                   │ datagram …
//! ```

use std::net::IpAddr;

use super::{ETHERNET_BYTES, UDP_BYTES, UDP_PROTOCOL, address, ip_bytes, stamp_ip, write_ip};
use crate::error::{Result, TesterError};
use crate::request::{Encapsulation, Tunnel};

/// Octets before the datagram with two tags and VXLAN over IPv6.
pub(super) const MOST_BYTES: usize = ETHERNET_BYTES + 8 + 40 + UDP_BYTES + VXLAN_BYTES + ETHERNET_BYTES;
/// UDP port of VXLAN (RFC 7348 sec. 8).
pub(super) const VXLAN_PORT: u16 = 4789;
pub(super) const VXLAN_BYTES: usize = 8;
/// First octet of a VXLAN header with an identifier.
pub(super) const VXLAN_HAS_VNI: u8 = 0x08;
pub(super) const GRE_PROTOCOL: u8 = 47;
pub(super) const GRE_BYTES: usize = 4;
pub(super) const VLAN: u16 = 0x8100;
pub(super) const SERVICE_VLAN: u16 = 0x88a8;

const MOST_TAGS: usize = 2;
const LAST_VLAN: u16 = 4094;
const LAST_VNI: u32 = (1 << 24) - 1;

/// The IP header of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OuterIp {
    /// Its offset in the frame.
    pub at: usize,
    /// Whether it is IPv6.
    pub ipv6: bool,
    /// Folded sum of an IPv4 header with total length and checksum 0.
    pub ipv4_sum: u16,
    /// Whether UDP follows it, which has a length field too.
    pub udp: bool,
}

impl OuterIp {
    /// Writes lengths and checksum.
    pub(super) fn stamp(&self, frame: &mut [u8]) {
        stamp_ip(&mut frame[self.at..], self.ipv6, self.ipv4_sum);
        if self.udp {
            let udp = self.at + ip_bytes(self.ipv6);
            let length = (frame.len() - udp) as u16;
            frame[udp + 4..udp + 6].copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// The offset of the datagram, and the tunnel around it.
pub(super) struct Outer {
    pub datagram: usize,
    pub ip: Option<OuterIp>,
}

/// Writes tags and tunnel of a flow behind the Ethernet addresses of `head`.
pub(super) fn write(
    head: &mut [u8],
    encapsulation: &Encapsulation,
    source: IpAddr,
    destination: IpAddr,
    source_port: u16,
) -> Result<Outer> {
    let ids = &encapsulation.vlan_ids;
    if ids.len() > MOST_TAGS {
        return Err(TesterError::value("encapsulation.vlan_ids", ids.len(), format!("at most {MOST_TAGS} tags")));
    }
    let mut at = ETHERNET_BYTES - 2;
    for (nth, &id) in ids.iter().enumerate() {
        if !(1..=LAST_VLAN).contains(&id) {
            let place = format!("encapsulation.vlan_ids[{nth}]");
            return Err(TesterError::value(place, id, format!("1 to {LAST_VLAN} (IEEE 802.1Q)")));
        }
        put(head, &mut at, if nth + 1 < ids.len() { SERVICE_VLAN } else { VLAN });
        put(head, &mut at, id);
    }
    let ipv6 = source.is_ipv6();
    let ether_type = if ipv6 { 0x86dd } else { 0x0800 };
    put(head, &mut at, ether_type);
    let Some(tunnel) = &encapsulation.tunnel else { return Ok(Outer { datagram: at, ip: None }) };
    let (protocol, outer_address) = match tunnel {
        Tunnel::Vxlan { destination_address, .. } => (UDP_PROTOCOL, destination_address),
        Tunnel::Gre { destination_address } => (GRE_PROTOCOL, destination_address),
    };
    let place = "encapsulation.tunnel.destination_address";
    let far = outer_address.as_ref().map_or(Ok(destination), |text| address(place, text))?;
    if far.is_ipv6() != ipv6 {
        return Err(TesterError::value(place, far, format!("an address of the version of {source}")));
    }
    let (ipv4_sum, _) = write_ip(&mut head[at..], source, far, protocol);
    let ip = OuterIp { at, ipv6, ipv4_sum, udp: protocol == UDP_PROTOCOL };
    at += ip_bytes(ipv6);
    match tunnel {
        Tunnel::Vxlan { vni, .. } => {
            if *vni > LAST_VNI {
                return Err(TesterError::value("encapsulation.tunnel.vni", vni, format!("0 to {LAST_VNI}")));
            }
            put(head, &mut at, source_port);
            put(head, &mut at, VXLAN_PORT);
            // The length comes with the frame's size; RFC 7348 sec. 5 wants no checksum.
            at += 4;
            head[at] = VXLAN_HAS_VNI;
            head[at + 4..at + VXLAN_BYTES].copy_from_slice(&(vni << 8).to_be_bytes());
            at += VXLAN_BYTES;
            head.copy_within(..ETHERNET_BYTES - 2, at);
            at += ETHERNET_BYTES - 2;
        }
        Tunnel::Gre { .. } => put(head, &mut at, 0),
    }
    put(head, &mut at, ether_type);
    Ok(Outer { datagram: at, ip: Some(ip) })
}

fn put(head: &mut [u8], at: &mut usize, word: u16) {
    head[*at..*at + 2].copy_from_slice(&word.to_be_bytes());
    *at += 2;
}
