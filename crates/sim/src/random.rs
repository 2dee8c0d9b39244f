//! Random streams: one seed, one named stream per source and purpose (semantics S8).

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator behind every stream: xoshiro256++ (Blackman and Vigna 2019), 2^256 − 1 long, 1 ns a draw.
pub type Stream = Xoshiro256PlusPlus;

/// Opens the stream of `purpose` number `index` for a replication of a seed.
///
/// Streams are seeded by hashing their name, so a part added to a model does not disturb the numbers of another.
#[must_use]
pub fn stream(seed: u64, replication: u64, purpose: &str, index: u64) -> Stream {
    // FNV-1a over the name, then SplitMix64 finalisers, as xoshiro's authors advise for seeding.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in purpose.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let mut state = mix(seed);
    for word in [replication, hash, index] {
        state = mix(state ^ mix(word.wrapping_add(0x9e37_79b9_7f4a_7c15)));
    }
    Stream::seed_from_u64(state)
}

/// `SplitMix64`: a bijection of 64-bit words that scatters neighbours.
#[inline]
#[must_use]
pub fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn a_stream_depends_on_every_part_of_its_name() {
        let draw = |seed, replication, purpose, index| stream(seed, replication, purpose, index).next_u64();
        let first = draw(1, 0, "gap", 0);
        assert_eq!(first, draw(1, 0, "gap", 0));
        for other in [draw(2, 0, "gap", 0), draw(1, 1, "gap", 0), draw(1, 0, "size", 0), draw(1, 0, "gap", 1)] {
            assert_ne!(first, other);
        }
    }
}
