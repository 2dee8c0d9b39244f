//! Any number of routes, each computed from its number: prefixes with the lengths of those in the Internet.

use crate::table::dir24_8::Route;
use crate::traffic::{Scramble, mix};

/// First octets of unicast addresses: 1 to 223 without 127 (RFC 6890).
const FIRST_BYTES: u64 = 222;
/// Lengths of 20 routes, bits: most have 24, as in the Internet's table (bgp.potaroo.net).
const LENGTHS: [u8; 20] = [24, 24, 22, 24, 24, 23, 24, 16, 24, 24, 20, 24, 24, 22, 24, 19, 23, 24, 21, 24];
/// Bits of the routes of a gateway to tunnels: as long as needs the second level of DIR-24-8.
const DEEP_LENGTH: u8 = 28;

/// Route `number` of a seed, to one of `next_hops`; `deep` routes are longer than 24 bits.
#[must_use]
pub fn route(number: u64, next_hops: u64, deep: bool, seed: u64) -> Route {
    let (length, nth) = if deep {
        (DEEP_LENGTH, number)
    } else {
        let class = (number % 20) as usize;
        let earlier = LENGTHS[..class].iter().map(|&length| u64::from(length == LENGTHS[class])).sum::<u64>();
        let same = LENGTHS.iter().map(|&length| u64::from(length == LENGTHS[class])).sum::<u64>();
        (LENGTHS[class], number / 20 * same + earlier)
    };
    let host_bits = 32 - u32::from(length);
    let blocks = FIRST_BYTES << (24 - host_bits);
    let block = Scramble::new(blocks, seed ^ u64::from(length)).of(nth);
    let first = 1 + (block >> (24 - host_bits));
    let first = if first >= 127 { first + 1 } else { first };
    let within = block & ((1 << (24 - host_bits)) - 1);
    let prefix = (first << 24 | within << host_bits) as u32;
    Route { prefix, length, next_hop: next_hop_of(number, next_hops) }
}

/// The next hop of route `number`.
#[must_use]
pub fn next_hop_of(number: u64, next_hops: u64) -> u16 {
    (number % next_hops.max(1)) as u16
}

/// The address that a flow has within a route.
#[must_use]
pub fn route_address(route: &Route, flow: u64) -> u32 {
    route.prefix | (mix(flow) as u32 & u32::MAX.checked_shr(u32::from(route.length)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_different_and_lead_to_unicast_addresses() {
        for (deep, count) in [(false, 1 << 20), (true, 1 << 14)] {
            let mut seen = std::collections::HashSet::new();
            for number in 0..count {
                let route = route(number, 256, deep, 3);
                let first = route.prefix >> 24;
                assert!((1..=223).contains(&first) && first != 127, "{route:?}");
                assert!(seen.insert((route.prefix, route.length)), "{route:?}");
                let address = route_address(&route, number);
                assert_eq!((address ^ route.prefix) >> (32 - u32::from(route.length)), 0);
            }
        }
    }
}
