//! MPLS switch that swaps one label (Baldi & Sapio 2018, sec. 3.1.3, fig. 6c; RFC 3031, 3032, 3443).
#![allow(clippy::needless_bitwise_bool, reason = "a branch per test would be mispredicted where frames differ")]

use crate::batch::{BATCH_FRAMES, Batch, Buffer, FCS_BYTES, Fault, Words, with_count};
use crate::error::Result;
use crate::frame::{ETHERTYPE_MPLS, HeaderWriter, Ipv4, PROTOCOL_UDP};
use crate::operation::{Descriptor, check, decrease, deparse, ht_lookup, io_mem, mask, mem_io, parse, prefetch};
use crate::table::hash_table::{HashTable, Slots};
use crate::traffic::{Scramble, mac};

use super::l2_switch::{look_up, port_of};
use super::{Build, ByHand, NetworkFunction, Ports, TableFacts, checks, mac_word};

/// Ethernet and one label stack entry.
const HEADER: usize = 18;
const TYPE: u64 = ETHERTYPE_MPLS.swap_bytes() as u64;
/// The label's 20 bits behind the type, as they lie in memory.
const LABEL: u64 = 0xf0_ffff << 16;
/// Numbers from which the addresses of next hops and the switch's own come.
const NEXT_HOPS: u64 = 1 << 40;

/// The switch. An entry is `[next hop | port << 48, new label]`.
#[derive(Debug)]
pub struct MplsSwitch {
    table: HashTable<1, 2>,
    labels: Scramble,
    entries: u64,
    own: u64,
}

/// A label as it lies in a word that begins with the type.
fn word(label: u64) -> u64 {
    let bytes = ((label as u32) << 12).to_be_bytes();
    u64::from_le_bytes([0, 0, bytes[0], bytes[1], bytes[2], 0, 0, 0])
}

impl MplsSwitch {
    /// A switch with an entry for each of the requested labels.
    pub fn new(build: &Build) -> Result<Self> {
        let entries = build.entries("label");
        let mut table = HashTable::new("table label", entries as usize, build.pages)?;
        let labels = Scramble::new(1 << 20, build.seed);
        for number in 0..entries {
            let value = mac_word(mac(NEXT_HOPS + number % 32)) | port_of(number) << 48;
            table.insert(&[word(labels.of(number))], &[value, word(labels.of(number + 1))]);
        }
        Ok(Self { table, labels, entries, own: mac_word(mac(NEXT_HOPS - 1)) })
    }

    fn label(&self, flow: u64) -> u64 {
        self.labels.of(flow % self.entries)
    }
}

impl NetworkFunction for MplsSwitch {
    fn process(&mut self, batch: &mut Batch<'_>, ports: &mut Ports<'_>) -> usize {
        let count = batch.count();
        io_mem::<HEADER>(batch, ports.incoming);
        // Type, label and time to live lie side by side.
        let mut fields: Words<1> = [[0]; BATCH_FRAMES];
        parse(batch, 12, mask(6), &mut fields);
        let others = check(&fields, count, 0, 0xffff, TYPE);
        checks::mark(batch, others, Fault::WrongProtocol);
        let mut keys: Words<1> = [[0]; BATCH_FRAMES];
        with_count!(count, {
            for (key, field) in keys.iter_mut().zip(&fields).take(count) {
                key[0] = field[0] & LABEL;
            }
        });
        let mut values: Words<2> = [[0; 2]; BATCH_FRAMES];
        let hits = ht_lookup(&self.table, &keys, count, &mut values);
        checks::mark_missing(batch, hits, Fault::NoEntry);
        let used_up = decrease::<1, 1>(&mut fields, count, 5, 1);
        checks::mark(batch, used_up, Fault::TimeToLive);
        let mut addresses: Words<2> = [[0; 2]; BATCH_FRAMES];
        with_count!(count, {
            for frame in 0..count {
                let [hop, label] = values[frame];
                batch.port[frame] = (hop >> 48) as u16;
                addresses[frame] = [hop & 0xffff_ffff_ffff | self.own << 48, self.own >> 16];
                fields[frame][0] = (fields[frame][0] & !LABEL | label) >> 16;
            }
        });
        deparse::<12, 2>(batch, 0, &addresses);
        deparse::<4, 1>(batch, 14, &fields);
        mem_io(batch, ports.first, ports.outgoing, ports.drops)
    }

    fn headers(&self, flow: u64, frame: &mut [u8]) -> u16 {
        let mut writer = HeaderWriter::new(frame);
        writer
            .ethernet(mac(NEXT_HOPS - 1), mac(NEXT_HOPS - 2))
            .ethertype(ETHERTYPE_MPLS)
            .mpls(self.label(flow) as u32, 64);
        let total_bytes = writer.left() as u16;
        let (source, destination) = (0x0a00_0001, 0x0a00_0002);
        writer.ipv4(&Ipv4 { total_bytes, time_to_live: 64, protocol: PROTOCOL_UDP, source, destination });
        0
    }

    fn tables(&self) -> Vec<TableFacts> {
        vec![TableFacts::new("label", self.table.memory(), Some(self.table.collision_ratio()))]
    }

    fn by_hand(&mut self) -> Option<&mut dyn ByHand> {
        Some(self)
    }
}

impl ByHand for MplsSwitch {
    fn pass(&mut self, buffers: &mut [Buffer], incoming: &[Descriptor], outgoing: &mut [Descriptor]) -> usize {
        let lines = self.table.lines();
        let mut sent = 0;
        let mut fields = [0; BATCH_FRAMES];
        let mut at = [0; BATCH_FRAMES];
        for (group, descriptors) in buffers.chunks_mut(BATCH_FRAMES).zip(incoming.chunks(BATCH_FRAMES)) {
            for (frame, descriptor) in descriptors.iter().enumerate() {
                let bytes = &group[frame].bytes;
                let start = usize::from(descriptor.start).min(bytes.len() - 20);
                let word = bytes[start + 12..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
                fields[frame] = word & 0xffff_ffff_ffff;
                at[frame] = Slots::<1, 2>::line(&[word & LABEL], lines.len());
                prefetch(lines, at[frame]);
            }
            for (frame, descriptor) in descriptors.iter().enumerate() {
                let mut value = [0; 2];
                let field = fields[frame];
                let hits = Slots::<1, 2>::read(lines, at[frame], &[field & LABEL], &mut value);
                let is_complete = usize::from(descriptor.length) >= HEADER + FCS_BYTES;
                let goes = hits & is_complete & (field & 0xffff == TYPE) & (field >> 40 > 1);
                if goes {
                    let start = usize::from(descriptor.start).min(group[frame].bytes.len() - 20);
                    if let Some(bytes) = group[frame].bytes[start..].first_chunk_mut::<18>() {
                        let low = value[0] & 0xffff_ffff_ffff | self.own << 48;
                        let entry = ((field & !LABEL | value[1]) >> 16).wrapping_sub(1 << 24);
                        bytes[..8].copy_from_slice(&low.to_le_bytes());
                        bytes[8..12].copy_from_slice(&((self.own >> 16) as u32).to_le_bytes());
                        bytes[14..18].copy_from_slice(&(entry as u32).to_le_bytes());
                    }
                }
                outgoing[sent] = Descriptor { port: (value[0] >> 48) as u16, ..*descriptor };
                sent += usize::from(goes);
            }
        }
        sent
    }

    fn lookups(&mut self, keys: &[[u64; 2]]) -> usize {
        look_up(&self.table, keys, |key| [key[0]])
    }

    fn key(&self, flow: u64) -> [u64; 2] {
        [word(self.label(flow)), 0]
    }
}
