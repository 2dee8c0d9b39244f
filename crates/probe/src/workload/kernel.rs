//! The kernels, each with known answers in its tests.
//!
//! A kernel reads the packet and writes to another buffer, so that a packet can be processed repeatedly. It makes its
//! tables, queues and keys before the first packet.

mod aes;
mod cast;
mod crc;
mod drr;
mod frag;
mod jpeg;
mod md5;
mod red;
mod reed;
mod registry;
mod rtr;
mod tcp;
mod wfq;
mod zip;

pub use registry::{KERNELS, KernelInfo, kernel};

/// A packet and a buffer for the output.
#[derive(Debug)]
pub struct Packet<'a> {
    /// Its number among the packets.
    pub number: usize,
    /// The frame without its FCS.
    pub frame: &'a [u8],
    /// Offset of its IPv4 header.
    pub ip: usize,
    /// Offset of its payload, behind IP and TCP or UDP.
    pub payload: usize,
    /// Offset of the end of its payload; padding of the frame may follow.
    pub end: usize,
    /// Buffer for the output of a kernel.
    pub out: &'a mut [u8],
}

impl Packet<'_> {
    /// The payload.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.frame[self.payload..self.end]
    }

    /// A half word of the IP header, from byte `at` of it on.
    #[inline]
    #[must_use]
    pub fn ip_half(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.frame[self.ip + at], self.frame[self.ip + at + 1]])
    }

    /// A word of the IP header, from byte `at` of it on.
    #[inline]
    #[must_use]
    pub fn ip_word(&self, at: usize) -> u32 {
        u32::from(self.ip_half(at)) << 16 | u32::from(self.ip_half(at + 2))
    }

    /// A number that the packets of a flow have in common: addresses, protocol and ports, mixed.
    #[inline]
    #[must_use]
    pub fn flow_hash(&self) -> u64 {
        let addresses = u64::from(self.ip_word(12)) << 32 | u64::from(self.ip_word(16));
        let transport = self.ip + usize::from(self.frame[self.ip] & 15) * 4;
        let ports = self.frame[transport..].first_chunk().map_or(0, |ports| u32::from_be_bytes(*ports));
        let protocol = u64::from(self.frame[self.ip + 9]);
        crate::traffic::mix(addresses ^ (u64::from(ports) << 8 | protocol).rotate_left(24))
    }
}

/// A small program that processes packets.
pub trait Kernel: Send {
    /// Processes a packet and returns its result: bytes written, a next hop, a verdict.
    fn process(&mut self, packet: &mut Packet<'_>) -> u64;
}
