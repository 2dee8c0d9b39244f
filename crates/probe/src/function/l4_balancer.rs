//! Load balancer for connections (Eisenbud et al. 2016, "Maglev", sec. 3.4): addresses rewritten, by hash.

use crate::batch::{BATCH_FRAMES, Batch, Fault, Words};
use crate::error::Result;
use crate::frame::{ETHERTYPE_IPV4, HeaderWriter, Ipv4, PROTOCOL_UDP};
use crate::operation::{array_access, crc_hash, deparse, inc_checksum, io_mem, mem_io, parse};
use crate::table::array::Array;
use crate::table::maglev::Maglev;
use crate::traffic::{mac, mix};

use super::l2_switch::port_of;
use super::{Build, NetworkFunction, Ports, TableFacts, checks, mac_word, nat44};

/// Ethernet, IPv4 and the first bytes of UDP or TCP.
const HEADER: usize = 42;
const TUPLE: [u64; 2] = [0xffff_ffff_0000_ff00, u64::MAX];
const NEXT_HOPS: u64 = 1 << 45;
/// The address that stands for all backends: 192.0.2.1 (RFC 5737).
const SERVICE: u32 = 0xc000_0201;

/// The balancer. A backend is `[MAC address 6, port 2, address 4]` in memory.
#[derive(Debug)]
pub struct L4Balancer {
    maglev: Maglev,
    backends: Array<2>,
    own: u64,
}

impl L4Balancer {
    /// A balancer for the requested number of backends.
    pub fn new(build: &Build) -> Result<Self> {
        let count = build.entries("backends");
        let names: Vec<u64> = (0..count).map(|number| mix(build.seed ^ number)).collect();
        let maglev = Maglev::new("table maglev", &names, build.entries("maglev") as usize, build.pages)?;
        let mut backends = Array::new("table backends", count as usize, build.pages)?;
        for (number, backend) in backends.entries_mut().iter_mut().enumerate() {
            let number = number as u64;
            let address = 0x0a00_0001 + number as u32;
            *backend = [mac_word(mac(NEXT_HOPS + number)) | port_of(number) << 48, u64::from(address.swap_bytes())];
        }
        Ok(Self { maglev, backends, own: mac_word(mac(NEXT_HOPS - 1)) })
    }
}

impl NetworkFunction for L4Balancer {
    fn process(&mut self, batch: &mut Batch<'_>, ports: &mut Ports<'_>) -> usize {
        let count = batch.count();
        io_mem::<HEADER>(batch, ports.incoming);
        nat44::check(batch);
        let mut fields: Words<2> = [[0; 2]; BATCH_FRAMES];
        parse(batch, 22, [u64::MAX; 2], &mut fields);
        let mut keys = fields;
        let mut others = 0;
        for (frame, key) in keys.iter_mut().enumerate().take(count) {
            others |= u32::from(key[1] as u32 != SERVICE.swap_bytes()) << frame;
            *key = [key[0] & TUPLE[0], key[1]];
        }
        checks::mark(batch, others, Fault::NoEntry);
        let mut hashes = [0; BATCH_FRAMES];
        crc_hash(&keys, count, &mut hashes);
        let mut numbers = [0; BATCH_FRAMES];
        self.maglev.lookup(&hashes, count, &mut numbers);
        let mut backends: Words<2> = [[0; 2]; BATCH_FRAMES];
        array_access(&self.backends, &numbers, count, &mut backends);
        let mut old: Words<1> = [[0]; BATCH_FRAMES];
        let mut new: Words<1> = [[0]; BATCH_FRAMES];
        let mut checksums: Words<1> = [[0]; BATCH_FRAMES];
        for frame in 0..count {
            old[frame] = [fields[frame][1] & 0xffff_ffff];
            new[frame] = [backends[frame][1]];
            checksums[frame] = [fields[frame][0] >> 16 & 0xffff];
            let [to, _] = backends[frame];
            batch.port[frame] = (to >> 48) as u16;
            backends[frame] = [to & 0xffff_ffff_ffff | self.own << 48, self.own >> 16];
        }
        inc_checksum(&mut checksums, &old, &new, count);
        nat44::transport_checksum(batch, &fields, &old, &new);
        deparse::<2, 1>(batch, 24, &checksums);
        deparse::<4, 1>(batch, 30, &new);
        deparse::<12, 2>(batch, 0, &backends);
        mem_io(batch, ports.first, ports.outgoing, ports.drops)
    }

    fn headers(&self, flow: u64, frame: &mut [u8]) -> u16 {
        let mut writer = HeaderWriter::new(frame);
        writer.ethernet(mac(NEXT_HOPS - 1), mac(NEXT_HOPS - 2)).ethertype(ETHERTYPE_IPV4);
        let ip = Ipv4 {
            total_bytes: writer.left() as u16,
            time_to_live: 64,
            protocol: PROTOCOL_UDP,
            source: 0x0b00_0000 | (mix(flow) as u32 & 0x00ff_ffff),
            destination: SERVICE,
        };
        writer.ipv4(&ip).udp(&ip, 1024 + (flow % 60_000) as u16, 80);
        0
    }

    fn tables(&self) -> Vec<TableFacts> {
        let maglev = self.maglev.entries().len() as u64 * 2;
        let maglev = TableFacts { name: "maglev", bytes: maglev, huge_ratio: 0.0, collision_ratio: None };
        vec![maglev, TableFacts::new("backends", self.backends.memory(), None)]
    }
}
