//! Ethernet switch with a static forwarding table (Baldi & Sapio 2018, sec. 3.1.1, fig. 6a).

use crate::batch::{BATCH_FRAMES, Batch, Buffer, FCS_BYTES, Fault, Words, with_count};
use crate::error::Result;
use crate::frame::{ETHERTYPE_IPV4, HeaderWriter};
use crate::operation::{Descriptor, ht_lookup, io_mem, mask, mem_io, parse, prefetch};
use crate::table::hash_table::{HashTable, Slots};
use crate::traffic::{Scramble, mac};

use super::{Build, ByHand, NetworkFunction, Ports, TableFacts, checks, mac_word};

/// Header bytes.
const HEADER: usize = 14;
const ADDRESS: [u64; 1] = mask(6);

/// The switch.
#[derive(Debug)]
pub struct L2Switch {
    table: HashTable<1, 1>,
    stations: Scramble,
}

impl L2Switch {
    /// A switch whose table is full of stations.
    pub fn new(build: &Build) -> Result<Self> {
        let entries = build.entries("mac");
        let mut table = HashTable::new("table mac", entries as usize, build.pages)?;
        let stations = Scramble::new(1 << 46, build.seed);
        for station in 0..entries {
            table.insert(&[mac_word(mac(stations.of(station)))], &[port_of(station)]);
        }
        Ok(Self { table, stations })
    }

    fn station(&self, number: u64) -> [u8; 6] {
        mac(self.stations.of(number % self.table.capacity() as u64))
    }
}

/// The port of a station: one of 32.
pub(super) fn port_of(station: u64) -> u64 {
    station % 32
}

impl NetworkFunction for L2Switch {
    fn process(&mut self, batch: &mut Batch<'_>, ports: &mut Ports<'_>) -> usize {
        let count = batch.count();
        io_mem::<HEADER>(batch, ports.incoming);
        let mut keys: Words<1> = [[0]; BATCH_FRAMES];
        parse(batch, 0, ADDRESS, &mut keys);
        let mut values: Words<1> = [[0]; BATCH_FRAMES];
        let hits = ht_lookup(&self.table, &keys, count, &mut values);
        checks::mark_missing(batch, hits, Fault::NoEntry);
        with_count!(count, {
            for (port, value) in batch.port.iter_mut().zip(&values).take(count) {
                *port = value[0] as u16;
            }
        });
        mem_io(batch, ports.first, ports.outgoing, ports.drops)
    }

    fn headers(&self, flow: u64, frame: &mut [u8]) -> u16 {
        let source = (flow + 1) % self.table.capacity() as u64;
        HeaderWriter::new(frame).ethernet(self.station(flow), self.station(source)).ethertype(ETHERTYPE_IPV4);
        port_of(source) as u16
    }

    fn tables(&self) -> Vec<TableFacts> {
        vec![TableFacts::new("mac", self.table.memory(), Some(self.table.collision_ratio()))]
    }

    fn by_hand(&mut self) -> Option<&mut dyn ByHand> {
        Some(self)
    }
}

impl ByHand for L2Switch {
    fn pass(&mut self, buffers: &mut [Buffer], incoming: &[Descriptor], outgoing: &mut [Descriptor]) -> usize {
        let lines = self.table.lines();
        let mut sent = 0;
        let mut keys = [0; BATCH_FRAMES];
        let mut at = [0; BATCH_FRAMES];
        for (group, descriptors) in buffers.chunks(BATCH_FRAMES).zip(incoming.chunks(BATCH_FRAMES)) {
            for (frame, descriptor) in descriptors.iter().enumerate() {
                let bytes = &group[frame].bytes;
                let start = usize::from(descriptor.start).min(bytes.len() - 8);
                let word = bytes[start..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
                keys[frame] = word & ADDRESS[0];
                at[frame] = Slots::<1, 1>::line(&[keys[frame]], lines.len());
                prefetch(lines, at[frame]);
            }
            for (frame, descriptor) in descriptors.iter().enumerate() {
                let mut port = [0];
                let hits = Slots::<1, 1>::read(lines, at[frame], &[keys[frame]], &mut port);
                let is_complete = usize::from(descriptor.length) >= HEADER + FCS_BYTES;
                outgoing[sent] = Descriptor { port: port[0] as u16, ..*descriptor };
                sent += usize::from(hits & is_complete);
            }
        }
        sent
    }

    fn lookups(&mut self, keys: &[[u64; 2]]) -> usize {
        look_up(&self.table, keys, |key| [key[0]])
    }

    fn key(&self, flow: u64) -> [u64; 2] {
        [mac_word(self.station(flow)), 0]
    }
}

/// Looks keys up in groups of 32, prefetched: the lookup alone.
pub(super) fn look_up<const N: usize, const V: usize>(
    table: &HashTable<N, V>,
    keys: &[[u64; 2]],
    of: impl Fn(&[u64; 2]) -> [u64; N],
) -> usize {
    let lines = table.lines();
    let mut hits = 0;
    let mut at = [0; BATCH_FRAMES];
    for group in keys.chunks(BATCH_FRAMES) {
        for (at, key) in at.iter_mut().zip(group) {
            *at = Slots::<N, V>::line(&of(key), lines.len());
            prefetch(lines, *at);
        }
        for (at, key) in at.iter().zip(group) {
            let mut value = [0; V];
            hits += usize::from(Slots::<N, V>::read(lines, *at, &of(key), &mut value));
            std::hint::black_box(value);
        }
    }
    hits
}
