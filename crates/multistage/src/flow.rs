//! The row of a flow: what `bpf/balance.bpf.c` computes from a frame's headers.

use std::net::IpAddr;

use crate::table::ROWS;

/// The fields of a frame's headers that identify its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol number (IANA), 17 for UDP; for IPv6 the one after the extension headers.
    pub protocol: u8,
    /// Source and destination port of TCP, UDP or SCTP; `None` for a fragment and for other protocols.
    pub ports: Option<(u16, u16)>,
    /// Whether it is a fragment.
    pub is_fragment: bool,
}

fn mixed(mut hash: u32) -> u32 {
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

const GOLDEN: u32 = 0x9e37_79b9;

/// The four octets as the program reads them: in the order of this machine.
fn word(octets: &[u8]) -> u32 {
    u32::from_ne_bytes([octets[0], octets[1], octets[2], octets[3]])
}

impl Flow {
    fn hash_of_ports(&self) -> u32 {
        let ports = self.ports.filter(|_| matches!(self.protocol, 6 | 17 | 132)).map_or(0, |(source, destination)| {
            let ([a, b], [c, d]) = (source.to_be_bytes(), destination.to_be_bytes());
            u32::from_ne_bytes([a, b, c, d])
        });
        mixed(ports.wrapping_add(0x7f4a_7c15))
    }

    /// Its row of the table.
    #[must_use]
    pub fn row(&self) -> usize {
        let hash = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let hash = mixed(word(&source.octets()))
                    ^ mixed(word(&destination.octets()).wrapping_add(GOLDEN))
                    ^ u32::from(self.protocol);
                if self.is_fragment { hash } else { hash ^ self.hash_of_ports() }
            }
            (source, destination) => {
                let octets = |address: IpAddr| match address {
                    IpAddr::V6(address) => address.octets(),
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                };
                let (source, destination) = (octets(source), octets(destination));
                let hash = (0..16).step_by(4).fold(0, |hash, at| {
                    let hash = mixed(hash ^ word(&source[at..]));
                    mixed(hash.wrapping_add(word(&destination[at..])).wrapping_add(GOLDEN))
                });
                if self.is_fragment { hash } else { hash ^ self.hash_of_ports() ^ u32::from(self.protocol) }
            }
        };
        mixed(hash) as usize % ROWS
    }
}
