//! Ethernet switch with VLANs that learns addresses (Baldi & Sapio 2018, sec. 3.1.2, fig. 6b).

use crate::batch::{BATCH_FRAMES, Batch, Fault, Words};
use crate::error::Result;
use crate::frame::{ETHERTYPE_IPV4, ETHERTYPE_VLAN, HeaderWriter};
use crate::host::ticks;
use crate::operation::{check, ct_insertion, ht_lookup, io_mem, mem_io, parse};
use crate::table::hash_table::HashTable;
use crate::traffic::{Scramble, mac};

use super::l2_switch::port_of;
use super::{Build, FLOOD, NetworkFunction, Ports, TableFacts, checks, mac_word};

/// Ethernet header with a VLAN tag.
const HEADER: usize = 18;
/// Identifiers in use: 0 and 4095 are reserved (IEEE 802.1Q, table 9-2).
const VLANS: u64 = 4094;
const ADDRESS: u64 = 0xffff_ffff_ffff;
const TAG_TYPE: u64 = (ETHERTYPE_VLAN.swap_bytes() as u64) << 32;

/// The switch.
#[derive(Debug)]
pub struct LearningSwitch {
    table: HashTable<1, 1>,
    stations: Scramble,
    sources: Scramble,
    entries: u64,
    seed: u64,
}

impl LearningSwitch {
    /// A switch that has filled its table with learned stations.
    pub fn new(build: &Build) -> Result<Self> {
        let entries = build.entries("mac");
        let table = HashTable::new("table mac", entries as usize, build.pages)?;
        let stations = Scramble::new(1 << 46, build.seed);
        let sources = Scramble::new(entries.min(build.flows), build.seed ^ 1);
        let mut switch = Self { table, stations, sources, entries, seed: build.seed };
        for station in 0..entries {
            let key = mac_word(switch.station(station)) | switch.vlan(station) << 48;
            switch.table.insert(&[key], &[port_of(station)]);
        }
        Ok(switch)
    }

    fn station(&self, number: u64) -> [u8; 6] {
        mac(self.stations.of(number % self.entries))
    }

    /// VLAN as the low 12 bits, in the byte order of a tag: stations that talk to each other share one, so all do.
    fn vlan(&self, _station: u64) -> u64 {
        let vlan = (1 + self.stations.of(0) % VLANS) as u16;
        u64::from(vlan.swap_bytes())
    }
}

impl NetworkFunction for LearningSwitch {
    fn process(&mut self, batch: &mut Batch<'_>, ports: &mut Ports<'_>) -> usize {
        let count = batch.count();
        io_mem::<HEADER>(batch, ports.incoming);
        // Addresses, type and tag are the frame's first 16 bytes.
        let mut fields: Words<2> = [[0; 2]; BATCH_FRAMES];
        parse(batch, 0, [u64::MAX; 2], &mut fields);
        let untagged = check(&fields, count, 1, 0xffff_0000_0000, TAG_TYPE);
        checks::mark(batch, untagged, Fault::WrongProtocol);
        let mut keys: Words<1> = [[0]; BATCH_FRAMES];
        for (key, field) in keys.iter_mut().zip(&fields).take(count) {
            key[0] = field[0] & ADDRESS | (field[1] & 0xff0f_0000_0000_0000);
        }
        let mut values: Words<1> = [[0]; BATCH_FRAMES];
        let hits = ht_lookup(&self.table, &keys, count, &mut values);

        let now = ticks() << 16;
        let mut renewed: Words<1> = [[0]; BATCH_FRAMES];
        let mut group_addresses = 0;
        for frame in 0..count {
            let [first, second] = fields[frame];
            keys[frame][0] = first >> 48 | (second & 0xffff_ffff) << 16 | (second & 0xff0f_0000_0000_0000);
            renewed[frame][0] = now | u64::from(batch.port[frame]);
            // A group address is never a source (IEEE 802.1Q, sec. 8.7).
            group_addresses |= ((first >> 48 & 1) as u32) << frame;
        }
        checks::mark(batch, group_addresses, Fault::BadHeader);
        // A full table learns no more; frames to unknown stations are flooded, so none is lost.
        let which = batch.sound();
        ct_insertion(&mut self.table, &keys, &renewed, count, which);

        for (frame, value) in values.iter().enumerate().take(count) {
            let known = (hits >> frame) & 1 == 1;
            batch.port[frame] = if known { value[0] as u16 } else { FLOOD };
        }
        mem_io(batch, ports.first, ports.outgoing, ports.drops)
    }

    fn headers(&self, flow: u64, frame: &mut [u8]) -> u16 {
        let source = self.sources.of(flow);
        let vlan = (self.vlan(flow) as u16).swap_bytes();
        let mut writer = HeaderWriter::new(frame);
        writer.ethernet(self.station(flow), self.station(source)).vlan(ETHERTYPE_VLAN, vlan).ethertype(ETHERTYPE_IPV4);
        port_of(source) as u16
    }

    fn expect_flows(&mut self, flows: u64) {
        self.sources = Scramble::new(self.entries.min(flows), self.seed ^ 1);
    }

    fn tables(&self) -> Vec<TableFacts> {
        vec![TableFacts::new("mac", self.table.memory(), Some(self.table.collision_ratio()))]
    }
}
