//! Longest prefix match in one or two reads (Gupta, Lin & `McKeown` 1998, "Routing lookups in hardware at memory access
//! speeds", DIR-24-8).
//!
//! ```text
//!   first[address >> 8], 2^24 x 2 bytes            second, groups of 256 x 2 bytes
//!   | 0: no route | 0 | next hop + 1 | 1 | group ─┼──► | next hop + 1 of the last 8 bits |
//! ```

use crate::batch::{BATCH_FRAMES, Words, with_count};
use crate::error::{ProbeError, Result};
use crate::memory::{HugeMemory, Pages};
use crate::operation::prefetch;

/// Entries of the first level.
pub const FIRST_ENTRIES: usize = 1 << 24;
/// The entry's other bits are the number of a group.
const GROUP_BIT: u16 = 1 << 15;
/// Largest next hop.
pub const LARGEST_NEXT_HOP: u16 = GROUP_BIT - 2;
/// Groups of the second level that entries can name.
pub const MOST_GROUPS: usize = 1 << 15;

/// A route: addresses that share their first `length` bits with `prefix` go to `next_hop`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The prefix, most significant byte first as a number; bits beyond `length` do not matter.
    pub prefix: u32,
    /// Bits of the prefix, 0 to 32.
    pub length: u8,
    /// The next hop, at most [`LARGEST_NEXT_HOP`].
    pub next_hop: u16,
}

/// A DIR-24-8 table.
#[derive(Debug)]
pub struct Dir24 {
    first: HugeMemory,
    second: HugeMemory,
    groups: usize,
}

impl Dir24 {
    /// A table of some routes; of two with the same prefix the later one counts.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Request`] for a length above 32, a next hop above [`LARGEST_NEXT_HOP`] or prefixes longer than 24
    /// bits in more than [`MOST_GROUPS`] networks of 24; [`ProbeError::Memory`] if there is not that much.
    pub fn new(what: &str, routes: &[Route], pages: Pages) -> Result<Self> {
        for route in routes {
            if route.length > 32 || route.next_hop > LARGEST_NEXT_HOP {
                return Err(ProbeError::request(
                    what,
                    format!("got {route:?}; lengths are 0 to 32, next hops 0 to {LARGEST_NEXT_HOP}"),
                ));
            }
        }
        // From short to long, so that the longer prefix is written over the shorter one; by address within a length,
        // so that memory is written in order; a stable sort leaves equal prefixes in the order given.
        let key = |route: &Route| (route.length, route.prefix & network_mask(route.length));
        let mut sorted: Vec<&Route> = routes.iter().collect();
        sorted.sort_by_key(|route| key(route));

        let mut first = HugeMemory::new(what, 2 * FIRST_ENTRIES, pages)?;
        let level: &mut [u16] = first.as_mut_slice();
        let mut groups: Vec<[u16; 256]> = Vec::new();
        for (index, route) in sorted.iter().enumerate() {
            if sorted.get(index + 1).is_some_and(|next| key(next) == key(route)) {
                continue;
            }
            let (length, prefix) = key(route);
            let network = prefix as usize >> 8;
            let entry = route.next_hop + 1;
            if length <= 24 {
                level[network..network + (1 << (24 - length))].fill(entry);
                continue;
            }
            if level[network] & GROUP_BIT == 0 {
                if groups.len() == MOST_GROUPS {
                    let got =
                        format!("got prefixes beyond 24 bits in more than {MOST_GROUPS} networks; leave some out");
                    return Err(ProbeError::request(what, got));
                }
                groups.push([level[network]; 256]);
                level[network] = GROUP_BIT | (groups.len() - 1) as u16;
            }
            let host = prefix as usize & 0xff;
            let group = &mut groups[usize::from(level[network] & !GROUP_BIT)];
            group[host..host + (1 << (32 - length))].fill(entry);
        }
        let mut second = HugeMemory::new(what, 512 * groups.len().max(1), pages)?;
        second.as_mut_slice::<[u16; 256]>()[..groups.len()].copy_from_slice(&groups);
        Ok(Self { first, second, groups: groups.len() })
    }

    /// Groups of the second level.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Bytes of both levels.
    #[must_use]
    pub fn bytes(&self) -> usize {
        2 * FIRST_ENTRIES + 512 * self.groups
    }

    /// The memory of the first level.
    #[must_use]
    pub fn memory(&self) -> &HugeMemory {
        &self.first
    }

    #[inline]
    fn first(&self) -> &[u16; FIRST_ENTRIES] {
        self.first.as_slice().first_chunk().expect("as many as were asked for")
    }

    /// The next hop of an address.
    #[must_use]
    pub fn get(&self, address: u32) -> Option<u16> {
        let mut entry = self.first()[(address >> 8) as usize];
        if entry & GROUP_BIT != 0 {
            entry = self.second.as_slice::<u16>()[usize::from(entry & !GROUP_BIT) * 256 + (address & 0xff) as usize];
        }
        entry.checked_sub(1)
    }

    /// The next hops of a batch; see [`lpm_lookup`](crate::operation::lpm_lookup).
    #[inline]
    pub fn lookup<const W: usize>(
        &self,
        fields: &Words<W>,
        word: usize,
        count: usize,
        next_hops: &mut [u32; BATCH_FRAMES],
    ) -> u32 {
        let count = count.min(BATCH_FRAMES);
        let first = self.first();
        let address = |frame: usize| (fields[frame][word] as u32).swap_bytes();
        with_count!(count, {
            for frame in 0..count {
                prefetch(first, (address(frame) >> 8) as usize);
            }
        });
        let mut missing = 0;
        let mut union = 0;
        with_count!(count, {
            for frame in 0..count {
                let entry = first[(address(frame) >> 8) as usize];
                union |= entry;
                missing |= u32::from(entry == 0) << frame;
                next_hops[frame] = u32::from(entry.saturating_sub(1));
            }
        });
        if union & GROUP_BIT != 0 {
            missing = self.lookup_second(fields, word, count, next_hops);
        }
        missing
    }

    /// The second level, for a batch with at least one address that needs it; the others read an entry that is there.
    #[inline]
    fn lookup_second<const W: usize>(
        &self,
        fields: &Words<W>,
        word: usize,
        count: usize,
        next_hops: &mut [u32; BATCH_FRAMES],
    ) -> u32 {
        let (first, second) = (self.first(), self.second.as_slice::<u16>());
        let mut second_indices = [0u32; BATCH_FRAMES];
        let mut entries = [0u16; BATCH_FRAMES];
        for frame in 0..count {
            let address = (fields[frame][word] as u32).swap_bytes();
            let entry = first[(address >> 8) as usize];
            let second_index = u32::from(entry & !GROUP_BIT) * 256 + (address & 0xff);
            second_indices[frame] = if entry & GROUP_BIT == 0 { 0 } else { second_index };
            entries[frame] = entry;
            prefetch(second, second_indices[frame] as usize);
        }
        let mut missing = 0;
        for frame in 0..count {
            let deep = second[second_indices[frame] as usize];
            let entry = if entries[frame] & GROUP_BIT == 0 { entries[frame] } else { deep };
            missing |= u32::from(entry == 0) << frame;
            next_hops[frame] = u32::from(entry.saturating_sub(1));
        }
        missing
    }
}

/// The first `length` bits.
fn network_mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::operation::lpm_lookup;

    /// Compares every route.
    fn naive(routes: &[Route], address: u32) -> Option<u16> {
        let matches = |route: &&Route| (address ^ route.prefix) & network_mask(route.length) == 0;
        // Of equally long ones `max_by_key` takes the last.
        routes.iter().filter(matches).max_by_key(|route| route.length).map(|route| route.next_hop)
    }

    /// Routes close to one another, so that they overlap, and addresses near them.
    fn prefix() -> impl Strategy<Value = u32> {
        (0u32..4, 0u32..3, 0u32..3, any::<u8>()).prop_map(|(a, b, c, d)| a << 30 | b << 16 | c << 8 | u32::from(d))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn the_longest_prefix_wins_as_in_a_search_of_all_routes(
            routes in prop::collection::vec((prefix(), 0u8..=32, 0u16..=LARGEST_NEXT_HOP), 0..120),
            addresses in prop::collection::vec(prop_oneof![prefix(), any::<u32>()], 1..=32),
        ) {
            let routes: Vec<Route> =
                routes.into_iter().map(|(prefix, length, next_hop)| Route { prefix, length, next_hop }).collect();
            let table = Dir24::new("a test", &routes, Pages::Huge).unwrap();
            let mut fields: Words<2> = [[0; 2]; BATCH_FRAMES];
            for (field, address) in fields.iter_mut().zip(&addresses) {
                field[1] = 0xdead_beef << 32 | u64::from(address.to_be());
            }
            let mut next_hops = [9; BATCH_FRAMES];
            let missing = lpm_lookup(&table, &fields, 1, addresses.len(), &mut next_hops);
            for (frame, &address) in addresses.iter().enumerate() {
                let expected = naive(&routes, address);
                prop_assert_eq!(table.get(address), expected);
                prop_assert_eq!(missing >> frame & 1 == 1, expected.is_none());
                prop_assert_eq!(next_hops[frame], u32::from(expected.unwrap_or(0)));
            }
        }
    }

    #[test]
    fn a_million_routes_are_all_found() {
        let scramble = |number: u32| number.wrapping_mul(0x9e37_79b1);
        // Networks of 24 all over the address space, and 4096 hosts; the later of two that are the same counts.
        let routes: Vec<Route> = (0..1_000_000)
            .map(|number| {
                let prefix = (scramble(number) & 0xffff_ff00) | number & 0xff;
                let length = if number < 4096 { 32 } else { 24 };
                Route { prefix, length, next_hop: (number % 30_000) as u16 }
            })
            .collect();
        let table = Dir24::new("a test", &routes, Pages::Huge).unwrap();
        assert!(table.groups() <= 4096);
        let mut hosts = std::collections::HashMap::new();
        let mut networks = std::collections::HashMap::new();
        for route in &routes {
            if route.length == 32 {
                hosts.insert(route.prefix, route.next_hop);
            } else {
                networks.insert(route.prefix >> 8, route.next_hop);
            }
        }
        assert!(hosts.len() + networks.len() > 900_000);
        for (&host, &next_hop) in &hosts {
            assert_eq!(table.get(host), Some(next_hop));
        }
        for (network, next_hop) in networks {
            let address = network << 8 | 0x80;
            assert_eq!(table.get(address), Some(hosts.get(&address).copied().unwrap_or(next_hop)));
        }
    }

    #[test]
    fn routes_that_cannot_be_are_refused() {
        let route = Route { prefix: 1, length: 24, next_hop: 1 };
        for wrong in [Route { length: 33, ..route }, Route { next_hop: LARGEST_NEXT_HOP + 1, ..route }] {
            assert_eq!(Dir24::new("table fib", &[route, wrong], Pages::Huge).unwrap_err().kind(), "request");
        }
        let hosts: Vec<Route> =
            (0..=MOST_GROUPS as u32).map(|number| Route { prefix: number << 8, length: 32, next_hop: 1 }).collect();
        assert_eq!(Dir24::new("table fib", &hosts, Pages::Huge).unwrap_err().kind(), "request");
    }

    #[test]
    fn without_routes_every_address_is_missing() {
        let table = Dir24::new("a test", &[], Pages::Huge).unwrap();
        let mut next_hops = [1; BATCH_FRAMES];
        assert_eq!(lpm_lookup(&table, &[[7]; BATCH_FRAMES], 0, 5, &mut next_hops), 0b1_1111);
        assert_eq!(next_hops[..6], [0, 0, 0, 0, 0, 1]);
    }
}
