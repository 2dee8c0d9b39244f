//! Stateless firewall (Srinivasan, Suri & Varghese 1999: tuple space search over the five-tuple).

use crate::batch::{BATCH_FRAMES, Batch, Fault, Words};
use crate::error::Result;
use crate::frame::{ETHERTYPE_IPV4, HeaderWriter, Ipv4, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::operation::{acl_lookup, io_mem, mem_io, parse};
use crate::table::tuple_space::{Rule, TupleSpace};
use crate::traffic::{Scramble, mac, mix};

use super::{Build, NetworkFunction, Ports, TableFacts, checks, nat44};

/// Ethernet, IPv4 and the first bytes of UDP or TCP.
const HEADER: usize = 42;
/// Protocol and source address in the word from the time to live on; destination address and ports.
const TUPLE: [u64; 2] = [0xffff_ffff_0000_ff00, u64::MAX];
/// Bits of source and destination address, and whether source and destination port count, for each tuple.
const TUPLES: [(u32, u32, bool, bool); 8] = [
    (24, 32, false, true),
    (32, 24, false, true),
    (32, 32, false, true),
    (24, 24, false, true),
    (32, 32, true, true),
    (20, 32, false, true),
    (32, 20, false, false),
    (28, 28, false, false),
];
/// The action of rules that let frames pass; all others and the default deny.
const PERMIT: u32 = 1;
const DENY: u32 = 0;
/// One rule of so many denies.
const DENY_EVERY: u64 = 16;

/// The firewall.
#[derive(Debug)]
pub struct AclFirewall {
    rules: TupleSpace,
    keys: Scramble,
    entries: u64,
}

/// The first `bits` of an address, as it lies in memory.
fn prefix(bits: u32) -> u64 {
    u64::from(u32::MAX.checked_shl(32 - bits).unwrap_or(0).swap_bytes())
}

/// The bits that a tuple counts.
fn tuple_mask(number: u64) -> [u64; 2] {
    let (source, destination, from, to) = TUPLES[(number % 8) as usize];
    let ports = (u64::from(from) * (0xffff << 32)) | (u64::from(to) * (0xffff << 48));
    [0xff00 | prefix(source) << 32, prefix(destination) | ports]
}

/// The key that rule `number` was made from: one five-tuple that it matches.
fn model(keys: Scramble, number: u64) -> [u64; 2] {
    let seed = mix(keys.of(number));
    let protocol = if seed & 1 == 0 { PROTOCOL_UDP } else { PROTOCOL_TCP };
    // Rules differ by their number in bits that every tuple counts.
    let source = 0x0a00_0000 | (keys.of(number) as u32 & 0xfff) << 12;
    let destination = 0xc000_0000 | ((keys.of(number) >> 12) as u32 & 0xffff) << 12;
    let ports = seed & 0xffff_ffff_0000_0000;
    [u64::from(protocol) << 8 | u64::from(source.swap_bytes()) << 32, u64::from(destination.swap_bytes()) | ports]
}

impl AclFirewall {
    /// A firewall with the requested number of rules; frames that no rule permits are denied.
    pub fn new(build: &Build) -> Result<Self> {
        let entries = build.entries("rules");
        let keys = Scramble::new(1 << 28, build.seed);
        let rules: Vec<_> = (0..entries)
            .map(|number| Rule {
                value: model(keys, number),
                mask: tuple_mask(number),
                priority: (entries - number) as u32,
                action: if number % DENY_EVERY == DENY_EVERY - 1 { DENY } else { PERMIT },
            })
            .collect();
        let rules = TupleSpace::new("table rules", &rules, DENY, build.pages)?;
        Ok(Self { rules, keys, entries })
    }

    /// The key of a flow: matches a rule that permits; bits that the rule does not count are the flow's own.
    fn flow_key(&self, flow: u64) -> [u64; 2] {
        let rule = flow % self.entries;
        let rule = if rule % DENY_EVERY == DENY_EVERY - 1 { rule - 1 } else { rule };
        let (value, mask) = (model(self.keys, rule), tuple_mask(rule));
        let own = [mix(flow), mix(!flow)];
        std::array::from_fn(|word| value[word] & mask[word] | own[word] & !mask[word] & TUPLE[word])
    }
}

impl NetworkFunction for AclFirewall {
    fn process(&mut self, batch: &mut Batch<'_>, ports: &mut Ports<'_>) -> usize {
        let count = batch.count();
        io_mem::<HEADER>(batch, ports.incoming);
        nat44::check(batch);
        let mut keys: Words<2> = [[0; 2]; BATCH_FRAMES];
        parse(batch, 22, TUPLE, &mut keys);
        let mut actions = [0; BATCH_FRAMES];
        acl_lookup(&self.rules, &keys, count, &mut actions);
        let mut denied = 0;
        for (frame, &action) in actions.iter().enumerate().take(count) {
            denied |= u32::from(action == DENY) << frame;
        }
        checks::mark(batch, denied, Fault::Denied);
        mem_io(batch, ports.first, ports.outgoing, ports.drops)
    }

    fn headers(&self, flow: u64, frame: &mut [u8]) -> u16 {
        let [first, second] = self.flow_key(flow);
        let mut writer = HeaderWriter::new(frame);
        writer.ethernet(mac(1), mac(2)).ethertype(ETHERTYPE_IPV4);
        let ip = Ipv4 {
            total_bytes: writer.left() as u16,
            time_to_live: 64,
            protocol: (first >> 8) as u8,
            source: ((first >> 32) as u32).swap_bytes(),
            destination: (second as u32).swap_bytes(),
        };
        // The ports lie at the same place in UDP and TCP; the function reads no further.
        writer.ipv4(&ip).udp(&ip, ((second >> 32) as u16).swap_bytes(), ((second >> 48) as u16).swap_bytes());
        0
    }

    fn tables(&self) -> Vec<TableFacts> {
        vec![TableFacts::new("rules", self.rules.memory(), None)]
    }
}
