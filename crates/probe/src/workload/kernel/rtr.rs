//! RTR: the longest prefix that matches a destination, in a radix tree.
//!
//! ```text
//!                 0.0.0.0/0
//!               0/        \1          a node holds a prefix; its bit number `length` says which way to go on
//!        10.0.0.0/8    192.0.2.0/24   chains of single children are left out (Morrison 1968; Sklower 1991)
//! ```

use super::{Kernel, Packet};
use crate::function::route;

/// No child, or no route.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    prefix: u32,
    length: u32,
    next_hop: u32,
    children: [u32; 2],
}

/// A routing table as a path-compressed binary tree.
#[derive(Debug)]
pub struct RadixTree {
    nodes: Vec<Node>,
}

fn mask(length: u32) -> u32 {
    u32::MAX.checked_shl(32 - length).unwrap_or(0)
}

fn bit(address: u32, number: u32) -> usize {
    ((address << number) >> 31) as usize
}

impl RadixTree {
    /// A table without routes.
    pub fn new() -> Self {
        Self { nodes: vec![Node { prefix: 0, length: 0, next_hop: NONE, children: [NONE; 2] }] }
    }

    /// Adds a route, or changes the one that is there.
    pub fn insert(&mut self, prefix: u32, length: u32, next_hop: u32) {
        let prefix = prefix & mask(length);
        let mut at = 0;
        loop {
            let node = self.nodes[at];
            if node.length == length {
                self.nodes[at].next_hop = next_hop;
                return;
            }
            let way = bit(prefix, node.length);
            let child = node.children[way];
            if child == NONE {
                self.nodes[at].children[way] = self.leaf(prefix, length, next_hop);
                return;
            }
            let below = self.nodes[child as usize];
            let common = (below.prefix ^ prefix).leading_zeros().min(length).min(below.length);
            if common == below.length {
                at = child as usize;
                continue;
            }
            // A node between the two, where they part; it is the route itself where that is shorter.
            let between = self.leaf(prefix & mask(common), common, if common == length { next_hop } else { NONE });
            self.nodes[between as usize].children[bit(below.prefix, common)] = child;
            if common < length {
                self.nodes[between as usize].children[bit(prefix, common)] = self.leaf(prefix, length, next_hop);
            }
            self.nodes[at].children[way] = between;
            return;
        }
    }

    fn leaf(&mut self, prefix: u32, length: u32, next_hop: u32) -> u32 {
        self.nodes.push(Node { prefix, length, next_hop, children: [NONE; 2] });
        (self.nodes.len() - 1) as u32
    }

    /// The next hop of the longest prefix that matches, if any does.
    pub fn lookup(&self, address: u32) -> Option<u32> {
        let mut best = NONE;
        let mut at = 0;
        while let Some(node) = self.nodes.get(at as usize) {
            if (address ^ node.prefix) & mask(node.length) != 0 {
                break;
            }
            if node.next_hop != NONE {
                best = node.next_hop;
            }
            if node.length == 32 {
                break;
            }
            at = node.children[bit(address, node.length)];
        }
        (best != NONE).then_some(best)
    }
}

/// Looks up the destination of each packet.
pub struct Rtr {
    tree: RadixTree,
}

impl Rtr {
    /// A table with some number of routes.
    pub fn new(routes: u64, seed: u64) -> Self {
        let mut tree = RadixTree::new();
        for number in 0..routes {
            let route = route(number, 256, false, seed);
            tree.insert(route.prefix, u32::from(route.length), u32::from(route.next_hop));
        }
        Self { tree }
    }
}

impl Kernel for Rtr {
    fn process(&mut self, packet: &mut Packet<'_>) -> u64 {
        self.tree.lookup(packet.ip_word(16)).map_or(u64::MAX, u64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::packets::{ROUTES, tests::of_size};
    use crate::workload::request::Content;

    proptest::proptest! {
        #[test]
        fn the_tree_finds_what_trying_every_route_finds(
            routes in proptest::collection::vec((0u32..64, 0u32..=32), 0..60), addresses: Vec<u32>
        ) {
            // Prefixes from few values, so that they lie within each other.
            let mut tree = RadixTree::new();
            let mut all = std::collections::BTreeMap::new();
            for (number, &(value, length)) in routes.iter().enumerate() {
                let prefix = (value << 26 | value) & mask(length);
                tree.insert(prefix, length, number as u32);
                all.insert((length, prefix), number as u32);
            }
            let near = routes.iter().flat_map(|&(value, _)| [value << 26 | value, value << 26, value << 26 | 1]);
            for address in addresses.iter().copied().chain(near) {
                let best = all.iter().rev().find(|((length, prefix), _)| address & mask(*length) == *prefix);
                proptest::prop_assert_eq!(tree.lookup(address), best.map(|(_, &hop)| hop));
            }
        }
    }

    #[test]
    fn the_tree_has_fewer_than_two_nodes_for_each_route() {
        // Every node but the root holds a route or has two children: 2 n nodes at most (Morrison 1968).
        for routes in [256, 16_384] {
            let rtr = Rtr::new(routes, 5);
            let nodes = rtr.tree.nodes.len() as f64 / routes as f64;
            assert!((1.0..2.0).contains(&nodes), "{nodes}");
            println!("{routes}: {nodes:.3} nodes a route of {} bytes", size_of::<Node>());
        }
    }

    #[test]
    fn generated_packets_find_their_routes() {
        let mut rtr = Rtr::new(ROUTES, 5);
        let mut packets = of_size(64, 200, Content::Words);
        for number in 0..200 {
            assert!(rtr.process(&mut packets.packet(number)) < 256);
        }
    }
}
