//! The kernels: what each does to a packet, with the answer that is known for it in its tests.
//!
//! A kernel reads the packet and writes beside it, so that a packet may be processed again and again. What it needs
//! but the packet (tables, queues, keys) it makes before the first one.

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

/// A packet and a place for what comes out of it.
#[derive(Debug)]
pub struct Packet<'a> {
    /// Its number among the packets.
    pub number: usize,
    /// The frame without its FCS.
    pub frame: &'a [u8],
    /// Where its IPv4 header begins.
    pub ip: usize,
    /// Where its payload begins: behind IP and TCP or UDP.
    pub payload: usize,
    /// Where its payload ends: padding of the frame may follow.
    pub end: usize,
    /// Where a kernel writes.
    pub out: &'a mut [u8],
}

impl Packet<'_> {
    /// What is behind the headers.
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

/// A small program that does one thing to each packet.
pub trait Kernel: Send {
    /// Processes a packet; what comes back tells what was done: bytes written, a next hop, a verdict.
    fn process(&mut self, packet: &mut Packet<'_>) -> u64;
}
