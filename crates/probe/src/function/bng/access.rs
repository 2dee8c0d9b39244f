//! From subscribers to the core: their tags off, a tunnel on.

use crate::batch::{BATCH_FRAMES, Batch, FCS_BYTES, Fault, Words};
use crate::error::Result;
use crate::frame::{ETHERTYPE_MPLS, ETHERTYPE_QINQ, ETHERTYPE_VLAN, PROTOCOL_GRE};
use crate::host::ticks;
use crate::operation::{
    array_access, check, checksum_bytes, checksum_words, ct_insertion, ht_lookup, io_mem, lpm_lookup, mask, mem_io,
    parse, prefetch, prepend, strip, sum,
};
use crate::table::array::Array;
use crate::table::dir24_8::Dir24;
use crate::table::hash_table::HashTable;
use crate::traffic::mac;

use super::{ACCESS_HEADER, CORE_HEADER, NEXT_HOPS, OWN, Subscribers, access_frame};
use crate::function::checks::Packets;
use crate::function::{Build, NetworkFunction, Ports, TableFacts, checks, mac_word, route, route_address};

/// Ethernet, both tags and IPv4.
const HEADER: usize = ACCESS_HEADER + 20;
/// Types of both tags in the word from byte 12 on, and the identifiers of the VLANs.
const TAGS_MASK: u64 = 0x0000_ffff_0000_ffff;
const TAGS: u64 = ETHERTYPE_QINQ.swap_bytes() as u64 | (ETHERTYPE_VLAN.swap_bytes() as u64) << 32;
const VLANS: u64 = 0xff0f_0000_ff0f_0000;
/// Tunnels, the targets of routes.
const TUNNELS: u64 = 256;
/// Bytes that go ahead of the inner packet inside the outer IPv4 packet.
const OUTER: u64 = 20 + 12;

/// The gateway's way from subscribers to the core. A tunnel is `[next hop 6, port 2, endpoint 4, label entry 4]`.
#[derive(Debug)]
pub struct Access {
    qinq: HashTable<1, 1>,
    routes: Dir24,
    tunnels: Array<2>,
    cpe: HashTable<2, 2>,
    subscribers: Subscribers,
    own: u64,
    entries: [u64; 3],
    seed: u64,
}

/// The identifiers of two VLANs as they lie in the word from byte 12 on.
fn tag_word([outer, inner]: [u16; 2]) -> u64 {
    u64::from(outer.swap_bytes()) << 16 | u64::from(inner.swap_bytes()) << 48
}

impl Access {
    /// A gateway with the requested subscribers, all of them learned, and routes.
    pub fn new(build: &Build) -> Result<Self> {
        let entries = [build.entries("qinq"), build.entries("cpe"), build.entries("routes")];
        let subscribers = Subscribers::new(build.seed);
        let mut qinq = HashTable::new("table qinq", entries[0] as usize, build.pages)?;
        for number in 0..entries[0] {
            let key = u64::from(subscribers.gre_key(number).swap_bytes());
            qinq.insert(&[tag_word(subscribers.vlans(number))], &[key]);
        }
        let mut cpe = HashTable::new("table cpe", entries[1] as usize, build.pages)?;
        for number in 0..entries[1].min(entries[0]) {
            let (key, value) = subscribers.way_back(number);
            cpe.insert(&key, &value);
        }
        let routes: Vec<_> = (0..entries[2]).map(|number| route(number, TUNNELS, true, build.seed)).collect();
        let routes = Dir24::new("table routes", &routes, build.pages)?;
        let mut tunnels = Array::new("tunnels", TUNNELS as usize, build.pages)?;
        for (number, tunnel) in tunnels.entries_mut().iter_mut().enumerate() {
            let number = number as u64;
            // Endpoints in 203.0.113.0/24 (RFC 5737); labels from 16 on, the ones below are reserved (RFC 3032).
            let endpoint = 0xcb00_7100 | number as u32;
            let entry = (16 + number as u32) << 12 | 1 << 8 | 64;
            let second = u64::from(endpoint.swap_bytes()) | u64::from(entry.swap_bytes()) << 32;
            *tunnel = [mac_word(mac(NEXT_HOPS + number)) | (8 + number % 8) << 48, second];
        }
        let own = mac_word(mac(NEXT_HOPS - 1));
        Ok(Self { qinq, routes, tunnels, cpe, subscribers, own, entries, seed: build.seed })
    }

    /// Drops frames without two tags and an IPv4 packet, and removes padding.
    fn check(batch: &mut Batch<'_>, tags: &Words<1>, lengths: &mut [u16; BATCH_FRAMES]) -> Packets {
        let count = batch.count();
        let packets = Packets::parse(batch, ACCESS_HEADER);
        let others = check(tags, count, 0, TAGS_MASK, TAGS);
        checks::mark(batch, others, Fault::WrongProtocol);
        checks::ipv4(batch, ACCESS_HEADER as u16, &packets, true);
        for (frame, length) in lengths.iter_mut().enumerate().take(count) {
            let total = packets.total_bytes(frame);
            let sound = batch.fault[frame] == 0;
            *length = if sound { total } else { 0 };
            let frame_bytes = total.saturating_add((ACCESS_HEADER + FCS_BYTES) as u16);
            batch.length[frame] = if sound { frame_bytes } else { batch.length[frame] };
        }
        packets
    }

    /// The headers ahead of the inner packets: Ethernet 14, MPLS 4, IPv4 20 with its checksum, GRE 12.
    fn outer_headers(&self, tunnels: &Words<2>, keys: &Words<1>, totals: &Words<1>, sums: &Words<1>) -> Words<7> {
        let mut headers: Words<7> = [[0; 7]; BATCH_FRAMES];
        let ethertype = u64::from(ETHERTYPE_MPLS.swap_bytes());
        for (frame, header) in headers.iter_mut().enumerate() {
            let [hop, far] = tunnels[frame];
            let (endpoint, label) = (far & 0xffff_ffff, far >> 32);
            let total = u64::from((totals[frame][0] as u16).swap_bytes());
            // Bytes 0 to 7: to 6, from 2; 8 to 15: from 4, type 2, label entry 2; 16 to 23: label 2, IPv4 6.
            header[0] = hop & 0xffff_ffff_ffff | self.own << 48;
            header[1] = self.own >> 16 | ethertype << 32 | label << 48;
            header[2] = label >> 16 | 0x45 << 16 | total << 32;
            // 24 to 31: do not fragment 2, time to live, protocol, checksum 2, source 2; 32 to 39: source 2,
            // destination 4, GRE flags 2; 40 to 47: type 2, checksum 2, reserved 2, key 2; 48 and 49: key.
            let own = u64::from(OWN.swap_bytes());
            header[3] = 0x40 | 64 << 16 | u64::from(PROTOCOL_GRE) << 24 | own << 48;
            header[4] = own >> 16 | endpoint << 16 | 0xa0 << 48;
            // The outer IPv4 header is bytes 18 to 37.
            let outer = checksum_words(&[header[2] >> 16, header[3], header[4] & 0xffff_ffff_ffff]);
            header[3] |= u64::from(outer) << 32;
            header[5] = 0x08 | sums[frame][0] << 16 | keys[frame][0] << 48;
            header[6] = keys[frame][0] >> 16;
        }
        headers
    }
}

/// The checksum of a GRE header with a key, and of the packet behind it (RFC 2784, sec. 2.5), from the packet's.
#[inline]
fn gre_checksums(sums: &mut Words<1>, keys: &Words<1>, count: usize) {
    for (sum, key) in sums.iter_mut().zip(keys).take(count) {
        let flags_and_type = 0x00a0 + 0x0008;
        let all = (!sum[0] & 0xffff) + flags_and_type + (key[0] & 0xffff) + (key[0] >> 16 & 0xffff);
        let all = (all & 0xffff) + (all >> 16);
        sum[0] = !((all & 0xffff) + (all >> 16)) & 0xffff;
    }
}

impl NetworkFunction for Access {
    fn process(&mut self, batch: &mut Batch<'_>, ports: &mut Ports<'_>) -> usize {
        let count = batch.count();
        io_mem::<HEADER>(batch, ports.incoming);
        // The headers that go ahead of the frame lie in the line before it.
        for frame in 0..count {
            prefetch(&batch.buffers[frame].bytes, usize::from(batch.start[frame]).saturating_sub(1));
        }
        let mut tags: Words<1> = [[0]; BATCH_FRAMES];
        parse(batch, 12, [u64::MAX], &mut tags);
        let mut lengths = [0; BATCH_FRAMES];
        let mut packets = Self::check(batch, &tags, &mut lengths);
        for tag in tags.iter_mut().take(count) {
            tag[0] &= VLANS;
        }
        let mut keys: Words<1> = [[0]; BATCH_FRAMES];
        let hits = ht_lookup(&self.qinq, &tags, count, &mut keys);
        checks::mark_missing(batch, hits, Fault::NoEntry);
        let mut hops = [0; BATCH_FRAMES];
        let missing = lpm_lookup(&self.routes, &packets.destination, 0, count, &mut hops);
        checks::mark(batch, missing, Fault::NoEntry);
        let mut tunnels: Words<2> = [[0; 2]; BATCH_FRAMES];
        array_access(&self.tunnels, &hops, count, &mut tunnels);
        checks::hop(batch, ACCESS_HEADER, &mut packets.second);
        let mut sums: Words<1> = [[0]; BATCH_FRAMES];
        checksum_bytes(batch, ACCESS_HEADER, &lengths, &mut sums);
        gre_checksums(&mut sums, &keys, count);
        let mut totals: Words<1> = [[OUTER]; BATCH_FRAMES];
        let bytes: Words<1> = lengths.map(|bytes| [u64::from(bytes)]);
        sum(&mut totals, &bytes, count);

        let mut sources: Words<1> = [[0]; BATCH_FRAMES];
        parse(batch, 6, mask(6), &mut sources);
        let now = ticks() >> 20 << 32;
        let mut learned: Words<2> = [[0; 2]; BATCH_FRAMES];
        let mut learned_keys: Words<2> = [[0; 2]; BATCH_FRAMES];
        for frame in 0..count {
            learned_keys[frame] = [keys[frame][0], packets.second[frame][0] >> 32];
            let vlans = tags[frame][0] >> 16 & 0xffff | (tags[frame][0] >> 48) << 16;
            learned[frame] = [sources[frame][0] | u64::from(batch.port[frame]) << 48, vlans | now];
        }
        let which = batch.sound();
        let refused = ct_insertion(&mut self.cpe, &learned_keys, &learned, count, which);
        // A subscriber who cannot be learned could not be answered.
        checks::mark(batch, refused, Fault::TableFull);

        let headers = self.outer_headers(&tunnels, &keys, &totals, &sums);
        strip(batch, ACCESS_HEADER as u16);
        prepend::<CORE_HEADER, 7>(batch, &headers);
        for (port, tunnel) in batch.port.iter_mut().zip(&tunnels).take(count) {
            *port = (tunnel[0] >> 48) as u16;
        }
        mem_io(batch, ports.first, ports.outgoing, ports.drops)
    }

    fn headers(&self, flow: u64, frame: &mut [u8]) -> u16 {
        let number = flow % self.entries[0].min(self.entries[1]);
        let route = route(crate::traffic::mix(flow) % self.entries[2], TUNNELS, true, self.seed);
        access_frame(self.subscribers, number, route_address(&route, flow), frame);
        Subscribers::port(number)
    }

    fn tables(&self) -> Vec<TableFacts> {
        let mut routes = TableFacts::new("routes", self.routes.memory(), None);
        routes.bytes = self.routes.bytes() as u64;
        vec![
            TableFacts::new("qinq", self.qinq.memory(), Some(self.qinq.collision_ratio())),
            routes,
            TableFacts::new("cpe", self.cpe.memory(), Some(self.cpe.collision_ratio())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Buffer, FAULT_KINDS, HEADROOM_BYTES};
    use crate::function::twin;
    use crate::memory::Pages;
    use crate::operation::Descriptor;

    #[test]
    fn a_subscriber_who_moves_is_learned_with_its_new_address_and_port() {
        let tables = ["qinq", "cpe", "routes"].map(|name| (name.to_owned(), 20)).into();
        let build = Build::new(twin("bng", Some("access")).unwrap(), &tables, None, Pages::Normal, 1).unwrap();
        let mut gateway = Access::new(&build).unwrap();
        let mut buffers = [Buffer::default(); 1];
        let frame = &mut buffers[0].bytes[HEADROOM_BYTES..HEADROOM_BYTES + 96];
        gateway.headers(5, frame);
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        let incoming = [Descriptor { buffer: 0, start: HEADROOM_BYTES as u16, length: 100, port: 77 }];
        let (mut outgoing, mut drops) = ([Descriptor::default(); BATCH_FRAMES], [0; FAULT_KINDS]);
        let mut ports = Ports { incoming: &incoming, first: 0, outgoing: &mut outgoing, drops: &mut drops };
        assert_eq!(gateway.process(&mut Batch::new(&mut buffers), &mut ports), 1);

        let (key, before) = gateway.subscribers.way_back(5);
        let learned = gateway.cpe.get(&key).unwrap();
        assert_eq!(learned[0], mac_word([2, 0, 0, 0, 0, 9]) | 77 << 48);
        assert_eq!(learned[1] & 0xffff_ffff, before[1], "its tags are as before");
    }
}
