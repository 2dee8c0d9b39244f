//! Flows of a capture: their numbers, their directions, and what a card hashes of them.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::link::{Addresses, Direction, SCTP, TCP, Tuple, UDP};

/// Most flows that are told apart.
pub const MOST_FLOWS: usize = 1_000_000;

/// What tells the flows of a file apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Number of the interface.
    pub interface: u32,
    /// Direction that the file says.
    pub direction: Direction,
    /// Addresses, or nothing where a card hashes nothing.
    pub tuple: Option<Tuple>,
}

/// A flow of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// What receive-side scaling hashes: addresses and ports, source first; empty where it cannot.
    pub rss_input: Vec<u8>,
    /// Its direction, or its interface.
    pub side: u32,
    /// Its frames.
    pub frames: u64,
    /// Its addresses in words.
    pub text: String,
}

/// How the sides of flows were told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// By the interface that captured them.
    Interface,
    /// By the direction that the capture says.
    Direction,
    /// By which of two addresses sent first.
    Addresses,
}

/// The flows seen so far, in the order of the file.
#[derive(Default)]
pub struct Flows {
    numbers: HashMap<Key, u32>,
    keys: Vec<Key>,
    last: Option<(Key, u32)>,
    /// Frames beyond the greatest number of flows.
    pub rest_frames: u64,
}

/// Number of the flow of all frames beyond [`MOST_FLOWS`].
const REST: u32 = MOST_FLOWS as u32;

impl Flows {
    /// The number of the flow with this key.
    pub fn number(&mut self, key: Key) -> u32 {
        if let Some((last, number)) = self.last
            && last == key
        {
            return number;
        }
        let next = self.keys.len();
        let number = match self.numbers.get(&key) {
            Some(&number) => number,
            None if next < MOST_FLOWS => {
                self.numbers.insert(key, next as u32);
                self.keys.push(key);
                next as u32
            }
            None => {
                self.rest_frames += 1;
                return REST;
            }
        };
        self.last = Some((key, number));
        number
    }

    /// How the sides are told apart: by what the file holds of it.
    fn rule(&self) -> Rule {
        let first = self.keys.first().map(|key| key.interface);
        let has = |direction| self.keys.iter().any(|key| key.direction == direction);
        if self.keys.iter().any(|key| Some(key.interface) != first) {
            Rule::Interface
        } else if has(Direction::In) && has(Direction::Out) {
            // At a mirror port both directions come in.
            Rule::Direction
        } else {
            Rule::Addresses
        }
    }

    /// The flows in the order of their first frames, and the rule of their sides. `flow` has the number of each frame,
    /// and is renumbered.
    pub fn finish(mut self, flow: &mut [u32]) -> (Vec<Flow>, Rule) {
        let rule = self.rule();
        self.numbers = HashMap::new();
        let mut new_numbers = vec![u32::MAX; self.keys.len() + 1];
        let mut by_key: HashMap<Key, u32> = HashMap::new();
        let mut sides = Sides::default();
        let mut flows: Vec<Flow> = Vec::new();
        for number in flow {
            let place = (*number as usize).min(self.keys.len());
            if new_numbers[place] == u32::MAX {
                let key = self.keys.get(place).map(|&key| key.for_rule(rule));
                let next = flows.len() as u32;
                new_numbers[place] = key.map_or(next, |key| *by_key.entry(key).or_insert(next));
                if new_numbers[place] == next {
                    flows.push(key.map_or_else(Flow::rest, |key| key.flow(sides.of(&key, rule))));
                }
            }
            *number = new_numbers[place];
            flows[*number as usize].frames += 1;
        }
        (flows, rule)
    }
}

impl Key {
    /// Without what does not count under the rule.
    fn for_rule(self, rule: Rule) -> Self {
        match rule {
            Rule::Interface => Self { direction: Direction::Unknown, ..self },
            Rule::Direction => Self { interface: 0, ..self },
            Rule::Addresses => Self { interface: 0, direction: Direction::Unknown, ..self },
        }
    }

    fn flow(&self, side: u32) -> Flow {
        let Some(tuple) = self.tuple else {
            return Flow { rss_input: Vec::new(), side, frames: 0, text: "not hashed".to_owned() };
        };
        let mut rss_input = tuple.addresses.bytes().to_vec();
        if let (TCP | UDP, Some(ports)) = (tuple.protocol, tuple.ports) {
            rss_input.extend(ports);
        }
        Flow { rss_input, side, frames: 0, text: words(&tuple) }
    }
}

impl Flow {
    fn rest() -> Self {
        Self { rss_input: Vec::new(), side: 0, frames: 0, text: format!("the flows beyond the first {MOST_FLOWS}") }
    }
}

/// The side from which each pair of addresses was seen first.
#[derive(Default)]
struct Sides {
    seen: HashMap<Addresses, u32>,
}

impl Sides {
    fn of(&mut self, key: &Key, rule: Rule) -> u32 {
        match (rule, key.tuple) {
            (Rule::Interface, _) => key.interface,
            (Rule::Direction, _) => u32::from(key.direction == Direction::Out),
            (Rule::Addresses, None) => 0,
            (Rule::Addresses, Some(tuple)) => {
                let back = self.seen.get(&tuple.addresses.reversed()).copied();
                *self.seen.entry(tuple.addresses).or_insert(back.map_or(0, |side| 1 - side))
            }
        }
    }
}

fn words(tuple: &Tuple) -> String {
    let bytes = tuple.addresses.bytes();
    let (from, to) = bytes.split_at(bytes.len() / 2);
    let (from, to) = (address(from), address(to));
    let protocol = match tuple.protocol {
        1 => "icmp".to_owned(),
        2 => "igmp".to_owned(),
        TCP => "tcp".to_owned(),
        UDP => "udp".to_owned(),
        47 => "gre".to_owned(),
        50 => "esp".to_owned(),
        58 => "icmpv6".to_owned(),
        SCTP => "sctp".to_owned(),
        other => format!("protocol {other}"),
    };
    let Some([source_high, source_low, high, low]) = tuple.ports else { return format!("{from} > {to} {protocol}") };
    let (source, destination) = (u16::from_be_bytes([source_high, source_low]), u16::from_be_bytes([high, low]));
    match tuple.addresses {
        Addresses::V4(_) => format!("{from}:{source} > {to}:{destination} {protocol}"),
        Addresses::V6(_) => format!("[{from}]:{source} > [{to}]:{destination} {protocol}"),
    }
}

fn address(bytes: &[u8]) -> String {
    match bytes.first_chunk::<16>() {
        Some(&octets) => Ipv6Addr::from(octets).to_string(),
        None => bytes.first_chunk::<4>().map_or_else(String::new, |&octets| Ipv4Addr::from(octets).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(interface: u32, direction: Direction, from: u8, to: u8, port: u8) -> Key {
        let tuple = Tuple {
            addresses: Addresses::V4([10, 0, 0, from, 10, 0, 0, to]),
            protocol: UDP,
            ports: Some([0, port, 0, 9]),
        };
        Key { interface, direction, tuple: Some(tuple) }
    }

    fn sides(keys: &[Key]) -> (Vec<u32>, Rule) {
        let mut flows = Flows::default();
        let mut numbers: Vec<u32> = keys.iter().map(|&key| flows.number(key)).collect();
        let (flows, rule) = flows.finish(&mut numbers);
        (flows.iter().map(|flow| flow.side).collect(), rule)
    }

    #[test]
    fn the_first_sender_of_two_addresses_is_side_0_and_its_peer_side_1() {
        let unknown = Direction::Unknown;
        let keys =
            [key(0, unknown, 1, 2, 7), key(0, unknown, 2, 1, 9), key(0, unknown, 2, 1, 8), key(0, unknown, 3, 4, 7)];
        assert_eq!(sides(&keys), (vec![0, 1, 1, 0], Rule::Addresses));
    }

    #[test]
    fn interfaces_count_before_directions_and_directions_before_addresses() {
        let keys = [key(0, Direction::In, 1, 2, 7), key(3, Direction::In, 2, 1, 7), key(3, Direction::Out, 2, 1, 7)];
        assert_eq!(sides(&keys), (vec![0, 3], Rule::Interface));
        let keys = [key(2, Direction::In, 1, 2, 7), key(2, Direction::Out, 1, 2, 7)];
        assert_eq!(sides(&keys), (vec![0, 1], Rule::Direction));
        let keys = [key(2, Direction::In, 1, 2, 7), key(2, Direction::In, 2, 1, 7)];
        assert_eq!(sides(&keys), (vec![0, 1], Rule::Addresses));
    }

    #[test]
    fn flows_are_numbered_by_their_first_frame_and_hash_addresses_then_ports() {
        let mut flows = Flows::default();
        let (one, two) = (key(0, Direction::Unknown, 1, 2, 7), key(0, Direction::Unknown, 3, 4, 7));
        let (one, two) = (flows.number(one), flows.number(two));
        let mut numbers = [two, one, two];
        let (flows, _) = flows.finish(&mut numbers);
        assert_eq!(numbers, [0, 1, 0]);
        assert_eq!(flows[0].text, "10.0.0.3:7 > 10.0.0.4:9 udp");
        assert_eq!(flows[0].rss_input, [10, 0, 0, 3, 10, 0, 0, 4, 0, 7, 0, 9]);
        assert_eq!((flows[0].frames, flows[1].frames), (2, 1));
    }

    #[test]
    fn flows_beyond_the_greatest_number_are_one() {
        let mut flows = Flows::default();
        let mut numbers: Vec<u32> = (0..MOST_FLOWS as u32 + 3)
            .map(|nth| {
                let [a, b, c, d] = nth.to_be_bytes();
                let addresses = Addresses::V4([a, b, c, d, 10, 0, 0, 1]);
                let tuple = Some(Tuple { addresses, protocol: UDP, ports: None });
                flows.number(Key { interface: 0, direction: Direction::Unknown, tuple })
            })
            .collect();
        assert_eq!(flows.rest_frames, 3);
        let (flows, _) = flows.finish(&mut numbers);
        assert_eq!(flows.len(), MOST_FLOWS + 1);
        assert_eq!((flows[MOST_FLOWS].frames, flows[MOST_FLOWS].rss_input.len()), (3, 0));
    }
}
