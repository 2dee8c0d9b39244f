//! From the core to subscribers: the tunnel off, two tags on.

use crate::batch::{BATCH_FRAMES, Batch, FCS_BYTES, Fault, Words};
use crate::error::Result;
use crate::frame::{
    ETHERTYPE_IPV4, ETHERTYPE_MPLS, ETHERTYPE_QINQ, ETHERTYPE_VLAN, PROTOCOL_GRE, SMALLEST_FRAME_BYTES,
};
use crate::operation::{check, ht_lookup, io_mem, mask, mem_io, parse, prepend, strip};
use crate::table::hash_table::HashTable;
use crate::traffic::mac;

use super::{ACCESS_HEADER, CORE_HEADER, NEXT_HOPS, Subscribers, core_frame};
use crate::function::checks::Packets;
use crate::function::{Build, NetworkFunction, Ports, TableFacts, checks, mac_word};

/// All headers up to the inner one.
const HEADER: usize = CORE_HEADER + 20;
/// Where the outer IPv4 header begins.
const OUTER: usize = 18;

/// The gateway's way from the core to subscribers.
#[derive(Debug)]
pub struct Core {
    cpe: HashTable<2, 2>,
    subscribers: Subscribers,
    own: u64,
    entries: u64,
}

impl Core {
    /// A gateway that has learned the requested number of subscribers.
    pub fn new(build: &Build) -> Result<Self> {
        let entries = build.entries("cpe");
        let subscribers = Subscribers::new(build.seed);
        let mut cpe = HashTable::new("table cpe", entries as usize, build.pages)?;
        for number in 0..entries {
            let (key, value) = subscribers.way_back(number);
            cpe.insert(&key, &value);
        }
        Ok(Self { cpe, subscribers, own: mac_word(mac(NEXT_HOPS - 1)), entries })
    }
}

/// Drops frames without MPLS, IPv4 and GRE with checksum and key around IPv4, and removes padding.
///
/// The outer checksums are not verified, as in the models of the paper (a network card verifies them).
fn check_headers(batch: &mut Batch<'_>, packets: &Packets) {
    let count = batch.count();
    let mut types: Words<1> = [[0]; BATCH_FRAMES];
    parse(batch, 12, mask(2), &mut types);
    let mut others = check(&types, count, 0, u64::MAX, u64::from(ETHERTYPE_MPLS.swap_bytes()));
    // The bottom of the label stack and the outer header as far as its protocol.
    let mut outer: Words<2> = [[0; 2]; BATCH_FRAMES];
    parse(batch, OUTER - 2, [u64::MAX; 2], &mut outer);
    // Label entry's last bytes 2, version, service, length 2, identification 2 | fragment 2, hops, protocol, …
    others |= check(&outer, count, 0, 0x00ff_0001, 0x0045_0001);
    others |= check(&outer, count, 1, 0xff00_ff3f, u64::from(PROTOCOL_GRE) << 24);
    let mut tunnels: Words<1> = [[0]; BATCH_FRAMES];
    parse(batch, OUTER + 20, mask(4), &mut tunnels);
    others |= check(&tunnels, count, 0, u64::MAX, 0x0008_00a0);
    checks::mark(batch, others, Fault::WrongProtocol);
    checks::ipv4(batch, CORE_HEADER as u16, packets, false);
    let mut long = 0;
    for (frame, outer) in outer.iter().enumerate().take(count) {
        let total = packets.total_bytes(frame);
        let room = ((outer[0] >> 32) as u16).swap_bytes();
        // The inner packet is as long as the outer one says, without the outer header and GRE's.
        long |= u32::from(u32::from(total) + 32 > u32::from(room)) << frame;
    }
    checks::mark(batch, long, Fault::TooLong);
    for frame in 0..count {
        let frame_bytes = packets.total_bytes(frame).saturating_add((CORE_HEADER + FCS_BYTES) as u16);
        batch.length[frame] = if batch.fault[frame] == 0 { frame_bytes } else { batch.length[frame] };
    }
}

/// Zeros behind the packets of frames that would have fewer than 64 bytes (IEEE 802.3, sec. 3.2.7): rare.
#[cold]
fn pad(batch: &mut Batch<'_>) {
    for frame in 0..batch.count() {
        let length = batch.length[frame];
        if length < SMALLEST_FRAME_BYTES && batch.fault[frame] == 0 {
            let end = usize::from(length) - FCS_BYTES;
            batch.slice_mut(frame, end, usize::from(SMALLEST_FRAME_BYTES - length)).fill(0);
            batch.length[frame] = SMALLEST_FRAME_BYTES;
        }
    }
}

impl NetworkFunction for Core {
    fn process(&mut self, batch: &mut Batch<'_>, ports: &mut Ports<'_>) -> usize {
        let count = batch.count();
        io_mem::<HEADER>(batch, ports.incoming);
        let mut packets = Packets::parse(batch, CORE_HEADER);
        check_headers(batch, &packets);
        let mut gre_keys: Words<1> = [[0]; BATCH_FRAMES];
        parse(batch, CORE_HEADER - 4, mask(4), &mut gre_keys);
        let mut keys: Words<2> = [[0; 2]; BATCH_FRAMES];
        for frame in 0..count {
            keys[frame] = [gre_keys[frame][0], packets.destination[frame][0]];
        }
        let mut ways: Words<2> = [[0; 2]; BATCH_FRAMES];
        let hits = ht_lookup(&self.cpe, &keys, count, &mut ways);
        checks::mark_missing(batch, hits, Fault::NoEntry);
        checks::hop(batch, CORE_HEADER, &mut packets.second);

        let types = [ETHERTYPE_QINQ, ETHERTYPE_VLAN, ETHERTYPE_IPV4].map(|ethertype| u64::from(ethertype.swap_bytes()));
        let mut headers: Words<3> = [[0; 3]; BATCH_FRAMES];
        let mut small = false;
        for frame in 0..count {
            let [way, tags] = ways[frame];
            headers[frame] = [
                way & 0xffff_ffff_ffff | self.own << 48,
                self.own >> 16 | types[0] << 32 | tags << 48,
                types[1] | (tags >> 16 & 0xffff) << 16 | types[2] << 32,
            ];
            batch.port[frame] = (way >> 48) as u16;
            small |= batch.length[frame] < SMALLEST_FRAME_BYTES + (CORE_HEADER - ACCESS_HEADER) as u16;
        }
        strip(batch, CORE_HEADER as u16);
        prepend::<ACCESS_HEADER, 3>(batch, &headers);
        if small {
            pad(batch);
        }
        mem_io(batch, ports.first, ports.outgoing, ports.drops)
    }

    fn headers(&self, flow: u64, frame: &mut [u8]) -> u16 {
        core_frame(self.subscribers, flow % self.entries, flow, frame);
        8
    }

    fn tables(&self) -> Vec<TableFacts> {
        vec![TableFacts::new("cpe", self.cpe.memory(), Some(self.cpe.collision_ratio()))]
    }
}
