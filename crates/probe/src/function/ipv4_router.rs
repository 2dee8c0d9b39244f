//! IPv4 router on DIR-24-8 (RFC 1812, sec. 5.2; steps of DPDK's l3fwd).
#![allow(clippy::needless_bitwise_bool, reason = "a branch per test would be mispredicted where frames differ")]

use crate::batch::{BATCH_FRAMES, Batch, Buffer, FCS_BYTES, Fault, Words, with_count};
use crate::error::Result;
use crate::frame::{ETHERTYPE_IPV4, HeaderWriter, Ipv4, PROTOCOL_UDP};
use crate::operation::{
    Descriptor, array_access, check, checksum, deparse, internet_checksum, io_mem, lpm_lookup, mem_io, prefetch,
};
use crate::table::array::Array;
use crate::table::dir24_8::{Dir24, FIRST_ENTRIES};
use crate::traffic::mac;

use super::checks::Packets;
use super::l2_switch::port_of;
use super::{Build, ByHand, NetworkFunction, Ports, TableFacts, checks, mac_word, next_hop_of, route, route_address};

/// Ethernet and IPv4.
const HEADER: usize = 34;
/// Where IPv4 begins.
const IP: usize = 14;
/// Numbers from which the addresses of next hops and the router's own come.
const NEXT_HOPS: u64 = 1 << 41;

/// The router. A next hop is `[to 6, from 6, port 2]` in memory.
#[derive(Debug)]
pub struct Ipv4Router {
    routes: Dir24,
    next_hops: Array<2>,
    entries: u64,
    seed: u64,
}

impl Ipv4Router {
    /// A router with the requested routes and next hops.
    pub fn new(build: &Build) -> Result<Self> {
        let (entries, hops) = (build.entries("fib"), build.entries("next_hop"));
        let routes: Vec<_> = (0..entries).map(|number| route(number, hops, false, build.seed)).collect();
        let routes = Dir24::new("table fib", &routes, build.pages)?;
        let mut next_hops = Array::new("table next_hop", hops as usize, build.pages)?;
        let own = mac_word(mac(NEXT_HOPS - 1));
        for (number, hop) in next_hops.entries_mut().iter_mut().enumerate() {
            let port = port_of(u64::from(next_hop_of(number as u64, hops)));
            *hop = [mac_word(mac(NEXT_HOPS + number as u64)) | own << 48, own >> 16 | port << 32];
        }
        Ok(Self { routes, next_hops, entries, seed: build.seed })
    }

    fn destination(&self, flow: u64) -> u32 {
        let route = route(flow % self.entries, self.next_hops.entries().len() as u64, false, self.seed);
        route_address(&route, flow)
    }
}

/// Checksums of headers with options, which are longer than those that [`checksum`] went over: rare.
#[cold]
fn with_options(batch: &mut Batch<'_>, frames: u32, packets: &Packets, sums: &mut Words<1>) {
    for frame in (0..batch.count()).filter(|frame| (frames >> frame) & 1 == 1) {
        let header = 4 * ((packets.first[frame][0] >> 16) as usize & 0x0f);
        sums[frame][0] = u64::from(internet_checksum(batch.slice_mut(frame, IP, header)));
    }
}

impl NetworkFunction for Ipv4Router {
    fn process(&mut self, batch: &mut Batch<'_>, ports: &mut Ports<'_>) -> usize {
        let count = batch.count();
        io_mem::<HEADER>(batch, ports.incoming);
        let mut packets = Packets::parse(batch, IP);
        // Before the checks, not only in the lookup: the memory access overlaps with them, as in a loop written by
        // hand.
        let fib = self.routes.memory().as_slice::<u16>();
        with_count!(count, {
            for field in packets.destination.iter().take(count) {
                prefetch(fib, ((field[0] as u32).swap_bytes() >> 8) as usize);
            }
        });
        let options = checks::ipv4(batch, IP as u16, &packets, true);
        let mut sums: Words<1> = [[0]; BATCH_FRAMES];
        checksum::<20>(batch, IP, &mut sums);
        if options != 0 {
            let sound = batch.sound();
            with_options(batch, options & sound, &packets, &mut sums);
        }
        let wrong = check(&sums, count, 0, u64::MAX, 0);
        checks::mark(batch, wrong, Fault::BadChecksum);
        let mut hops = [0; BATCH_FRAMES];
        let missing = lpm_lookup(&self.routes, &packets.destination, 0, count, &mut hops);
        checks::mark(batch, missing, Fault::NoEntry);
        let mut entries: Words<2> = [[0; 2]; BATCH_FRAMES];
        array_access(&self.next_hops, &hops, count, &mut entries);
        checks::hop(batch, IP, &mut packets.second);
        deparse::<12, 2>(batch, 0, &entries);
        with_count!(count, {
            for (port, entry) in batch.port.iter_mut().zip(&entries).take(count) {
                *port = (entry[1] >> 32) as u16;
            }
        });
        mem_io(batch, ports.first, ports.outgoing, ports.drops)
    }

    fn headers(&self, flow: u64, frame: &mut [u8]) -> u16 {
        let mut writer = HeaderWriter::new(frame);
        writer.ethernet(mac(NEXT_HOPS - 1), mac(NEXT_HOPS - 2)).ethertype(ETHERTYPE_IPV4);
        let ip = Ipv4 {
            total_bytes: writer.left() as u16,
            time_to_live: 64,
            protocol: PROTOCOL_UDP,
            source: 0x0a00_0001,
            destination: self.destination(flow),
        };
        writer.ipv4(&ip).udp(&ip, 1024, 53);
        0
    }

    fn tables(&self) -> Vec<TableFacts> {
        let mut fib = TableFacts::new("fib", self.routes.memory(), None);
        fib.bytes = self.routes.bytes() as u64;
        vec![fib, TableFacts::new("next_hop", self.next_hops.memory(), None)]
    }

    fn by_hand(&mut self) -> Option<&mut dyn ByHand> {
        Some(self)
    }
}

impl ByHand for Ipv4Router {
    fn pass(&mut self, buffers: &mut [Buffer], incoming: &[Descriptor], outgoing: &mut [Descriptor]) -> usize {
        let first = self.routes.memory().as_slice::<u16>();
        let next_hops = self.next_hops.entries();
        let mut sent = 0;
        let mut addresses = [0u32; BATCH_FRAMES];
        for (group, descriptors) in buffers.chunks_mut(BATCH_FRAMES).zip(incoming.chunks(BATCH_FRAMES)) {
            for (frame, descriptor) in descriptors.iter().enumerate() {
                let start = usize::from(descriptor.start).min(1024);
                let bytes = group[frame].bytes[start..].first_chunk::<64>().expect("a buffer is longer");
                addresses[frame] = u32::from_be_bytes([bytes[30], bytes[31], bytes[32], bytes[33]]);
                prefetch(first, (addresses[frame] >> 8) as usize);
            }
            for (frame, descriptor) in descriptors.iter().enumerate() {
                let start = usize::from(descriptor.start).min(1024);
                let bytes = group[frame].bytes[start..].first_chunk_mut::<64>().expect("a buffer is longer");
                let entry = first[(addresses[frame] >> 8) as usize % FIRST_ENTRIES];
                // Routes of this function have 24 bits at most; only for a longer one the table is read again.
                let hop = if entry >> 15 == 0 {
                    entry.wrapping_sub(1)
                } else {
                    self.routes.get(addresses[frame]).unwrap_or(u16::MAX)
                };
                let total = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
                let sum = internet_checksum(bytes[14..34].first_chunk::<20>().expect("20 bytes"));
                let goes = (bytes[12..14] == [8, 0])
                    & (bytes[14] == 0x45)
                    & (total >= 20)
                    & (total + IP + FCS_BYTES <= usize::from(descriptor.length))
                    & (sum == 0)
                    & (bytes[22] > 1)
                    & (hop != u16::MAX);
                let next = next_hops[usize::from(hop).min(next_hops.len() - 1)];
                if goes {
                    bytes[..8].copy_from_slice(&next[0].to_le_bytes());
                    bytes[8..12].copy_from_slice(&(next[1] as u32).to_le_bytes());
                    bytes[22] -= 1;
                    // One hop less is 0x0100 more in the checksum, its carry at the low end (RFC 1141).
                    let old = u32::from(u16::from_be_bytes([bytes[24], bytes[25]])) + 0x0100;
                    bytes[24..26].copy_from_slice(&((old + (old >> 16)) as u16).to_be_bytes());
                }
                outgoing[sent] = Descriptor { port: (next[1] >> 32) as u16, ..*descriptor };
                sent += usize::from(goes);
            }
        }
        sent
    }

    fn lookups(&mut self, keys: &[[u64; 2]]) -> usize {
        let first = self.routes.memory().as_slice::<u16>();
        let mut hits = 0;
        for group in keys.chunks(BATCH_FRAMES) {
            for key in group {
                prefetch(first, key[0] as usize >> 8);
            }
            for key in group {
                hits += usize::from(first[(key[0] as usize >> 8) % FIRST_ENTRIES] != 0);
            }
        }
        hits
    }

    fn key(&self, flow: u64) -> [u64; 2] {
        [u64::from(self.destination(flow)), 0]
    }
}
