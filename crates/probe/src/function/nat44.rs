//! Translator of IPv4 addresses and ports, from inside to outside (RFC 3022, sec. 2.2 and 4.1; RFC 1624).
#![allow(clippy::needless_bitwise_bool, reason = "a branch per test would be mispredicted where frames differ")]

use crate::batch::{BATCH_FRAMES, Batch, Buffer, FCS_BYTES, Fault, Words, with_count};
use crate::error::Result;
use crate::frame::{ETHERTYPE_IPV4, HeaderWriter, Ipv4, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::operation::{
    Descriptor, counter_update, decrease, deparse, ht_lookup, inc_checksum, io_mem, mem_io, parse, prefetch,
};
use crate::table::array::Array;
use crate::table::hash_table::{HashTable, Slots};
use crate::traffic::{Scramble, mac, mix};

use super::checks::Packets;
use super::l2_switch::{look_up, port_of};
use super::{Build, ByHand, NetworkFunction, Ports, TableFacts, checks, mac_word};

/// Ethernet, IPv4 and the first bytes of UDP or TCP.
const HEADER: usize = 42;
const IP: usize = 14;
/// More fragments, and where this one lies (RFC 791, sec. 3.1).
const FRAGMENT: u64 = 0xff3f;
/// Protocol and source address in the word from the time to live on.
const TUPLE: [u64; 2] = [0xffff_ffff_0000_ff00, u64::MAX];
/// Where the checksum of each protocol stands in the frame.
const UDP_CHECKSUM: usize = 40;
const TCP_CHECKSUM: usize = 50;
const NEXT_HOPS: u64 = 1 << 42;

/// The translator. A session is `[address 4, port 2, out 2, number of its counter 4]` in memory.
#[derive(Debug)]
pub struct Nat44 {
    sessions: HashTable<2, 2>,
    counters: Array<2>,
    inside: Scramble,
    addresses: [u64; 2],
}

/// The five-tuple of a session: addresses and ports as numbers.
#[derive(Debug, Clone, Copy)]
struct Session {
    source: u32,
    destination: u32,
    ports: [u16; 2],
}

impl Nat44 {
    /// A translator with the requested number of sessions.
    pub fn new(build: &Build) -> Result<Self> {
        let entries = build.entries("sessions");
        let sessions = HashTable::new("table sessions", entries as usize, build.pages)?;
        let counters = Array::new("table counters", build.entries("counters") as usize, build.pages)?;
        let own = mac_word(mac(NEXT_HOPS - 1));
        let addresses = [mac_word(mac(NEXT_HOPS)) | own << 48, own >> 16];
        let mut nat = Self { sessions, counters, inside: Scramble::new(1 << 40, build.seed), addresses };
        let counters = nat.counters.entries().len() as u64;
        for number in 0..entries {
            // 64512 ports of each outside address, from 198.18.0.0 on (RFC 2544, app. C.2.2).
            let outside = 0xc612_0000 + (number / 64_512) as u32;
            let port = 1024 + (number % 64_512) as u16;
            let value = u64::from(outside.swap_bytes()) | u64::from(port.swap_bytes()) << 32 | port_of(number) << 48;
            nat.sessions.insert(&nat.session(number).key(), &[value, number % counters]);
        }
        Ok(nat)
    }

    fn session(&self, flow: u64) -> Session {
        let number = self.inside.of(flow % self.sessions.capacity() as u64);
        // 24 bits of address within 10.0.0.0/8 and 16 of port tell sessions apart.
        let source = 0x0a00_0000 | (number >> 16) as u32;
        Session { source, destination: 0xc633_6400 | (mix(number) as u32 & 0xff), ports: [number as u16, 53] }
    }
}

impl Session {
    fn key(&self) -> [u64; 2] {
        let first = u64::from(PROTOCOL_UDP) << 8 | u64::from(self.source.swap_bytes()) << 32;
        let ports = u64::from(self.ports[0].swap_bytes()) << 32 | u64::from(self.ports[1].swap_bytes()) << 48;
        [first, u64::from(self.destination.swap_bytes()) | ports]
    }
}

/// Marks all but whole IPv4 packets of UDP or TCP without options; fragments have no ports to translate.
#[inline]
pub(super) fn check(batch: &mut Batch<'_>) {
    let count = batch.count();
    let packets = Packets::parse(batch, IP);
    let mut fragments: Words<1> = [[0]; BATCH_FRAMES];
    parse(batch, IP + 6, [FRAGMENT], &mut fragments);
    let mut others = checks::ipv4(batch, IP as u16, &packets, true);
    let mut short = 0;
    with_count!(count, {
        for (frame, fragment) in fragments.iter().enumerate().take(count) {
            let protocol = (packets.second[frame][0] >> 8) as u8;
            let (tcp, udp) = (protocol == PROTOCOL_TCP, protocol == PROTOCOL_UDP);
            others |= u32::from(!(tcp | udp) | (fragment[0] != 0)) << frame;
            short |= u32::from(packets.total_bytes(frame) < if tcp { 40 } else { 28 }) << frame;
        }
    });
    checks::mark(batch, others, Fault::WrongProtocol);
    checks::mark(batch, short, Fault::TooShort);
}

/// Brings the checksums of UDP or TCP up to date; `old` and `new` are what changed. Operation `inc_checksum`.
///
/// The protocol is the second byte of each frame's word.
pub(super) fn transport_checksum(batch: &mut Batch<'_>, protocols: &Words<2>, old: &Words<1>, new: &Words<1>) {
    let count = batch.count();
    let mut checksums: Words<1> = [[0]; BATCH_FRAMES];
    let mut at = [0; BATCH_FRAMES];
    with_count!(count, {
        for frame in 0..count {
            at[frame] = if (protocols[frame][0] >> 8) as u8 == PROTOCOL_TCP { TCP_CHECKSUM } else { UDP_CHECKSUM };
            checksums[frame][0] = u64::from(u16::from_le_bytes(*batch.bytes::<2>(frame, at[frame])));
        }
    });
    let before = checksums;
    inc_checksum(&mut checksums, old, new, count);
    with_count!(count, {
        for frame in 0..count {
            // In UDP 0 says that there is none, and a checksum of 0 is sent as ffff (RFC 768).
            let udp = at[frame] == UDP_CHECKSUM;
            let computed = if udp & (checksums[frame][0] == 0) { 0xffff } else { checksums[frame][0] };
            let checksum = if udp & (before[frame][0] == 0) { 0 } else { computed };
            // Dropped frames are not written: in a frame that is neither, the UDP checksum might lie beyond its end.
            if batch.fault[frame] == 0 {
                *batch.bytes_mut::<2>(frame, at[frame]) = (checksum as u16).to_le_bytes();
            }
        }
    });
}

impl NetworkFunction for Nat44 {
    fn process(&mut self, batch: &mut Batch<'_>, ports: &mut Ports<'_>) -> usize {
        let count = batch.count();
        io_mem::<HEADER>(batch, ports.incoming);
        check(batch);
        // From time to live to the ports: 16 bytes that hold the five-tuple.
        let mut fields: Words<2> = [[0; 2]; BATCH_FRAMES];
        parse(batch, 22, [u64::MAX; 2], &mut fields);
        let mut keys: Words<2> = [[0; 2]; BATCH_FRAMES];
        with_count!(count, {
            for (key, field) in keys.iter_mut().zip(&fields).take(count) {
                *key = [field[0] & TUPLE[0], field[1]];
            }
        });
        let mut sessions: Words<2> = [[0; 2]; BATCH_FRAMES];
        let hits = ht_lookup(&self.sessions, &keys, count, &mut sessions);
        checks::mark_missing(batch, hits, Fault::NoEntry);

        // Source address and port, which the transport's checksum covers.
        let mut old: Words<1> = [[0]; BATCH_FRAMES];
        let mut new: Words<1> = [[0]; BATCH_FRAMES];
        with_count!(count, {
            for frame in 0..count {
                old[frame] = [fields[frame][0] >> 32 | (fields[frame][1] >> 32 & 0xffff) << 32];
                new[frame] = [sessions[frame][0] & 0xffff_ffff_ffff];
                batch.port[frame] = (sessions[frame][0] >> 48) as u16;
            }
        });
        transport_checksum(batch, &fields, &old, &new);

        // Address and hop, which the header's checksum covers: the same word without its own two bytes.
        let mut checksums: Words<1> = [[0]; BATCH_FRAMES];
        let mut source_ports: Words<1> = [[0]; BATCH_FRAMES];
        with_count!(count, {
            for frame in 0..count {
                let field = fields[frame][0];
                old[frame] = [field & !0xffff_0000];
                checksums[frame] = [field >> 16 & 0xffff];
                source_ports[frame] = [new[frame][0] >> 32];
                fields[frame][0] = field & 0xffff | new[frame][0] << 32;
            }
        });
        let used_up = decrease::<1, 2>(&mut fields, count, 0, 1);
        checks::mark(batch, used_up, Fault::TimeToLive);
        with_count!(count, {
            for frame in 0..count {
                new[frame] = [fields[frame][0]];
            }
        });
        inc_checksum(&mut checksums, &old, &new, count);
        with_count!(count, {
            for frame in 0..count {
                new[frame][0] |= checksums[frame][0] << 16;
            }
        });
        deparse::<8, 1>(batch, 22, &new);
        deparse::<2, 1>(batch, 34, &source_ports);
        deparse::<12, 2>(batch, 0, &[self.addresses; BATCH_FRAMES]);

        let mut numbers = [0; BATCH_FRAMES];
        let mut amounts: Words<2> = [[0; 2]; BATCH_FRAMES];
        with_count!(count, {
            for frame in 0..count {
                numbers[frame] = sessions[frame][1] as u32;
                amounts[frame] = [1, u64::from(batch.length[frame])];
            }
        });
        let which = batch.sound();
        counter_update(&mut self.counters, &numbers, &amounts, count, which);
        mem_io(batch, ports.first, ports.outgoing, ports.drops)
    }

    fn headers(&self, flow: u64, frame: &mut [u8]) -> u16 {
        let session = self.session(flow);
        let mut writer = HeaderWriter::new(frame);
        writer.ethernet(mac(NEXT_HOPS - 1), mac(NEXT_HOPS - 2)).ethertype(ETHERTYPE_IPV4);
        let ip = Ipv4 {
            total_bytes: writer.left() as u16,
            time_to_live: 64,
            protocol: PROTOCOL_UDP,
            source: session.source,
            destination: session.destination,
        };
        writer.ipv4(&ip).udp(&ip, session.ports[0], session.ports[1]);
        0
    }

    fn tables(&self) -> Vec<TableFacts> {
        let ratio = Some(self.sessions.collision_ratio());
        vec![
            TableFacts::new("sessions", self.sessions.memory(), ratio),
            TableFacts::new("counters", self.counters.memory(), None),
        ]
    }

    fn by_hand(&mut self) -> Option<&mut dyn ByHand> {
        Some(self)
    }
}

impl ByHand for Nat44 {
    fn pass(&mut self, buffers: &mut [Buffer], incoming: &[Descriptor], outgoing: &mut [Descriptor]) -> usize {
        let mut sent = 0;
        let mut sessions = [[0u64; 2]; BATCH_FRAMES];
        let mut keys = [[0u64; 2]; BATCH_FRAMES];
        let mut at = [0; BATCH_FRAMES];
        for (group, descriptors) in buffers.chunks_mut(BATCH_FRAMES).zip(incoming.chunks(BATCH_FRAMES)) {
            let lines = self.sessions.lines();
            for (frame, descriptor) in descriptors.iter().enumerate() {
                let start = usize::from(descriptor.start).min(1024);
                let bytes = group[frame].bytes[start..].first_chunk::<64>().expect("a buffer is longer");
                let word = |at: usize| bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
                keys[frame] = [word(22) & TUPLE[0], word(30)];
                at[frame] = Slots::<2, 2>::line(&keys[frame], lines.len());
                prefetch(lines, at[frame]);
            }
            let counters = self.counters.entries();
            let mut hits = 0u32;
            for frame in 0..descriptors.len() {
                let hit = Slots::<2, 2>::read(lines, at[frame], &keys[frame], &mut sessions[frame]);
                hits |= u32::from(hit) << frame;
                prefetch(counters, sessions[frame][1] as u32 as usize);
            }
            let counters = self.counters.entries_mut();
            for (frame, descriptor) in descriptors.iter().enumerate() {
                let start = usize::from(descriptor.start).min(1024);
                let bytes = group[frame].bytes[start..].first_chunk_mut::<64>().expect("a buffer is longer");
                let total = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
                // Only UDP here: that is what the frames of a run are.
                let goes = ((hits >> frame) & 1 == 1)
                    & (bytes[12..15] == [8, 0, 0x45])
                    & (bytes[20] & 0x3f | bytes[21] == 0)
                    & (total >= 28)
                    & (total + IP + FCS_BYTES <= usize::from(descriptor.length))
                    & (bytes[22] > 1);
                let session = sessions[frame];
                outgoing[sent] = Descriptor { port: (session[0] >> 48) as u16, ..*descriptor };
                sent += usize::from(goes);
                if goes {
                    let word = |at: usize| u64::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
                    let fold = |sum: u64| {
                        let sum = (sum & 0xffff) + (sum >> 16);
                        ((sum & 0xffff) + (sum >> 16)) as u16
                    };
                    let halves = |value: u64| (value & 0xffff) + (value >> 16 & 0xffff);
                    let change = halves(!keys[frame][0] >> 32) + halves(session[0]);
                    let ip = !fold((!word(24) & 0xffff) + change + (!1u64 & 0xffff));
                    let ports = (!word(34) & 0xffff) + (session[0] >> 32 & 0xffff);
                    let udp = !fold((!word(40) & 0xffff) + change + ports);
                    let udp = if word(40) == 0 {
                        0
                    } else if udp == 0 {
                        0xffff
                    } else {
                        udp
                    };
                    bytes[..8].copy_from_slice(&self.addresses[0].to_le_bytes());
                    bytes[8..12].copy_from_slice(&(self.addresses[1] as u32).to_le_bytes());
                    bytes[22] -= 1;
                    bytes[24..26].copy_from_slice(&ip.to_le_bytes());
                    bytes[26..30].copy_from_slice(&(session[0] as u32).to_le_bytes());
                    bytes[34..36].copy_from_slice(&((session[0] >> 32) as u16).to_le_bytes());
                    bytes[40..42].copy_from_slice(&udp.to_le_bytes());
                    let index = (session[1] as u32 as usize).min(counters.len() - 1);
                    counters[index][0] += 1;
                    counters[index][1] += u64::from(descriptor.length);
                }
            }
        }
        sent
    }

    fn lookups(&mut self, keys: &[[u64; 2]]) -> usize {
        look_up(&self.sessions, keys, |key| *key)
    }

    fn key(&self, flow: u64) -> [u64; 2] {
        self.session(flow).key()
    }
}
