//! Longest prefix match in one or two reads (Gupta, Lin & McKeown 1998, "Routing lookups in hardware at memory access
//! speeds", DIR-24-8).
//!
//! ```text
//!   first[address >> 8], 2^24 x 2 bytes            second, groups of 256 x 2 bytes
//!   | 0: no route | 0 | next hop + 1 | 1 | group ─┼──► | next hop + 1 of the last 8 bits |
//! ```

use crate::batch::{BATCH_FRAMES, Words};
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
    /// Where to, at most [`LARGEST_NEXT_HOP`].
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
        for (place, route) in sorted.iter().enumerate() {
            if sorted.get(place + 1).is_some_and(|next| key(next) == key(route)) {
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
        for frame in 0..count {
            prefetch(first, (address(frame) >> 8) as usize);
        }
        let mut missing = 0;
        let mut union = 0;
        for frame in 0..count {
            let entry = first[(address(frame) >> 8) as usize];
            union |= entry;
            missing |= u32::from(entry == 0) << frame;
            next_hops[frame] = u32::from(entry.saturating_sub(1));
        }
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
        let mut places = [0u32; BATCH_FRAMES];
        let mut entries = [0u16; BATCH_FRAMES];
        for frame in 0..count {
            let address = (fields[frame][word] as u32).swap_bytes();
            let entry = first[(address >> 8) as usize];
            let place = u32::from(entry & !GROUP_BIT) * 256 + (address & 0xff);
            places[frame] = if entry & GROUP_BIT == 0 { 0 } else { place };
            entries[frame] = entry;
            prefetch(second, places[frame] as usize);
        }
        let mut missing = 0;
        for frame in 0..count {
            let deep = second[places[frame] as usize];
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
