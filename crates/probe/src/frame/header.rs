//! Writes consecutive headers into a buffer that may be too short; a header that does not fit is not written.

use crate::operation::internet_checksum;

/// `EtherType` of IPv4 (RFC 894).
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// `EtherType` of a VLAN tag (IEEE 802.1Q).
pub const ETHERTYPE_VLAN: u16 = 0x8100;
/// `EtherType` of an outer, service VLAN tag (IEEE 802.1ad).
pub const ETHERTYPE_QINQ: u16 = 0x88a8;
/// `EtherType` of MPLS unicast (RFC 5332).
pub const ETHERTYPE_MPLS: u16 = 0x8847;
/// Protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;
/// Protocol number of GRE.
pub const PROTOCOL_GRE: u8 = 47;

/// The fields that differ between IPv4 headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4 {
    /// Header and payload, bytes.
    pub total_bytes: u16,
    /// Hops left.
    pub time_to_live: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
}

/// Writes headers from the first byte on.
#[derive(Debug)]
pub struct HeaderWriter<'a> {
    bytes: &'a mut [u8],
    at: usize,
    fits: bool,
}

impl<'a> HeaderWriter<'a> {
    /// A writer at the first of some bytes.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0, fits: true }
    }

    /// Bytes from here to the end.
    #[must_use]
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether all headers have fitted so far.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.fits
    }

    /// Writes bytes unchanged.
    #[inline]
    pub fn put<const N: usize>(&mut self, field: [u8; N]) -> &mut Self {
        if let Some(target) = self.bytes.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut::<N>()) {
            *target = field;
            self.at += N;
        } else {
            self.fits = false;
        }
        self
    }

    /// Destination and source address; an [`Self::ethertype`] or tag follows.
    #[inline]
    pub fn ethernet(&mut self, destination: [u8; 6], source: [u8; 6]) -> &mut Self {
        self.put(destination).put(source)
    }

    /// The type of what follows.
    #[inline]
    pub fn ethertype(&mut self, ethertype: u16) -> &mut Self {
        self.put(ethertype.to_be_bytes())
    }

    /// A VLAN tag with its type ahead (IEEE 802.1Q, sec. 9.3): [`ETHERTYPE_VLAN`] or [`ETHERTYPE_QINQ`].
    #[inline]
    pub fn vlan(&mut self, ethertype: u16, identifier: u16) -> &mut Self {
        self.ethertype(ethertype).put((identifier & 0x0fff).to_be_bytes())
    }

    /// The only entry of a label stack (RFC 3032, sec. 2.1).
    #[inline]
    pub fn mpls(&mut self, label: u32, time_to_live: u8) -> &mut Self {
        self.put((label << 12 | 1 << 8 | u32::from(time_to_live)).to_be_bytes())
    }

    /// A header without options, its checksum included (RFC 791, sec. 3.1).
    #[inline]
    pub fn ipv4(&mut self, header: &Ipv4) -> &mut Self {
        let mut bytes = [0; 20];
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&header.total_bytes.to_be_bytes());
        bytes[6] = 0x40; // do not fragment: the identification need not differ (RFC 6864)
        bytes[8] = header.time_to_live;
        bytes[9] = header.protocol;
        bytes[12..16].copy_from_slice(&header.source.to_be_bytes());
        bytes[16..20].copy_from_slice(&header.destination.to_be_bytes());
        let checksum = internet_checksum(&bytes);
        bytes[10..12].copy_from_slice(&checksum.to_ne_bytes());
        self.put(bytes)
    }

    /// A header with the checksum of a datagram whose payload is zeros (RFC 768); nothing for fewer than 8 bytes.
    #[inline]
    pub fn udp(&mut self, ip: &Ipv4, source_port: u16, destination_port: u16) -> &mut Self {
        let Some(bytes) = ip.total_bytes.checked_sub(20).filter(|&bytes| bytes >= 8) else { return self };
        let mut pseudo = [0; 20];
        pseudo[0..4].copy_from_slice(&ip.source.to_be_bytes());
        pseudo[4..8].copy_from_slice(&ip.destination.to_be_bytes());
        pseudo[9] = PROTOCOL_UDP;
        pseudo[10..12].copy_from_slice(&bytes.to_be_bytes());
        pseudo[12..14].copy_from_slice(&source_port.to_be_bytes());
        pseudo[14..16].copy_from_slice(&destination_port.to_be_bytes());
        pseudo[16..18].copy_from_slice(&bytes.to_be_bytes());
        let checksum = internet_checksum(&pseudo);
        let checksum = if checksum == 0 { 0xffff } else { checksum };
        self.put(source_port.to_be_bytes()).put(destination_port.to_be_bytes());
        self.put(bytes.to_be_bytes()).put(checksum.to_ne_bytes())
    }

    /// A GRE header with key and checksum (RFC 2784, sec. 2; RFC 2890, sec. 2.1), IPv4 behind it.
    ///
    /// `within` writes the headers behind it, which the checksum covers; all bytes behind those are zeros.
    #[inline]
    pub fn gre(&mut self, key: u32, within: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.at;
        self.put([0xa0, 0]).ethertype(ETHERTYPE_IPV4).put([0; 4]).put(key.to_be_bytes());
        within(self);
        let checksum = internet_checksum(&self.bytes[start..self.at]);
        if let Some(target) = self.bytes.get_mut(start + 4..start + 6).filter(|_| self.fits) {
            target.copy_from_slice(&checksum.to_ne_bytes());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_not_written() {
        let mut bytes = [0xee; 30];
        let ip = Ipv4 { total_bytes: 46, time_to_live: 64, protocol: PROTOCOL_UDP, source: 1, destination: 2 };
        let mut writer = HeaderWriter::new(&mut bytes[..20]);
        writer.ethernet([1; 6], [2; 6]).ethertype(ETHERTYPE_IPV4).ipv4(&ip);
        assert!(!writer.fits());
        assert_eq!(writer.left(), 6);
        assert_eq!(bytes[14..], [0xee; 16]);
    }

    #[test]
    fn an_ipv4_header_sums_to_nothing() {
        let mut bytes = [0; 20];
        let ip =
            Ipv4 { total_bytes: 46, time_to_live: 64, protocol: 17, source: 0x0a00_0001, destination: 0xc000_0201 };
        HeaderWriter::new(&mut bytes).ipv4(&ip);
        assert_eq!(internet_checksum(&bytes), 0);
    }
}
