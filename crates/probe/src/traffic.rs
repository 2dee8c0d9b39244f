//! The flow of each frame and the keys of flows, computed and not stored, so that they occupy no cache.

use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::{ProbeError, Result};
use crate::run::Popularity;

/// A bijection of the numbers below a bound that scatters neighbours.
///
/// Four rounds of multiplying by an odd number and folding the upper half down, on the least power of two that holds
/// all; numbers outside the bound are mapped again (cycle walking: Black & Rogaway 2002, "Ciphers with arbitrary finite
/// domains").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scramble {
    below: u64,
    mask: u64,
    shift: u32,
    factors: [u64; 4],
}

impl Scramble {
    /// A bijection of `0..below`; `below` 0 counts as 1.
    #[must_use]
    pub fn new(below: u64, seed: u64) -> Self {
        let below = below.max(1);
        let bits = (64 - (below - 1).leading_zeros()).max(2);
        let factors = std::array::from_fn(|round| mix(seed ^ mix(round as u64 + 1)) | 1);
        Self { below, mask: u64::MAX >> (64 - bits), shift: bits.div_ceil(2), factors }
    }

    /// The image of a number below the bound; larger numbers are taken modulo the bound.
    #[inline]
    #[must_use]
    pub fn of(&self, number: u64) -> u64 {
        let mut value = if number < self.below { number } else { number % self.below };
        loop {
            for factor in self.factors {
                value = (value.wrapping_mul(factor).wrapping_add(factor >> 32)) & self.mask;
                value ^= value >> self.shift;
            }
            if value < self.below {
                return value;
            }
        }
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea & Flood 2014): a bijection of 64-bit words that scatters neighbours.
#[inline]
#[must_use]
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A unicast, locally administered address: one for each number below 2^46.
#[inline]
#[must_use]
pub fn mac(number: u64) -> [u8; 6] {
    let bytes = number.to_be_bytes();
    [(number >> 38) as u8 & 0xfc | 0x02, bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]
}

/// Draws flows, numbered from 0, one per frame.
#[derive(Debug, Clone)]
pub struct Traffic {
    flows: u64,
    zipf: Option<Zipf<f64>>,
    random: Xoshiro256PlusPlus,
}

impl Traffic {
    /// Traffic of some flows.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Request`] for no flows or an exponent below 0 or that is no number.
    pub fn new(flows: u64, popularity: Popularity, exponent: f64, seed: u64) -> Result<Self> {
        if flows == 0 {
            return Err(ProbeError::request("flows", "got 0 flows; ask for one or more"));
        }
        let zipf = match popularity {
            Popularity::Uniform => None,
            Popularity::Zipf => Some(Zipf::new(flows as f64, exponent).map_err(|_| {
                ProbeError::request("exponent", format!("got {exponent}; Zipf's law takes a number of 0 or more"))
            })?),
        };
        Ok(Self { flows, zipf, random: Xoshiro256PlusPlus::seed_from_u64(mix(seed)) })
    }

    /// The next frame's flow.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        match &self.zipf {
            // The share of a 64-bit range (Lemire 2019): its bias is flows / 2^64.
            None => ((u128::from(self.random.next_u64()) * u128::from(self.flows)) >> 64) as u64,
            Some(zipf) => (zipf.sample(&mut self.random) as u64).clamp(1, self.flows) - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scramble_is_a_bijection() {
        for below in [1, 2, 3, 10, 255, 256, 257, 5000] {
            let scramble = Scramble::new(below, 7);
            let mut seen: Vec<u64> = (0..below).map(|number| scramble.of(number)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..below), "{below}");
        }
    }

    #[test]
    fn addresses_are_unicast_local_and_different() {
        let mut seen = std::collections::HashSet::new();
        for number in (0..64).map(|bit| 1u64 << bit).filter(|&number| number < 1 << 46).chain([0, (1 << 46) - 1]) {
            let address = mac(number);
            assert_eq!(address[0] & 3, 2);
            assert!(seen.insert(address), "{number:x}");
        }
    }

    #[test]
    fn zipf_draws_the_first_flow_as_often_as_its_law_says() {
        // 1/H(1000) = 1/7.4855 for exponent 1 (harmonic number).
        let mut traffic = Traffic::new(1000, Popularity::Zipf, 1.0, 5).unwrap();
        let first = (0..100_000).filter(|_| traffic.draw() == 0).count() as f64 / 1e5;
        // Standard deviation of the share: 0.0011.
        assert!((first - 1.0 / 7.4855).abs() < 0.005, "{first}");
    }

    #[test]
    fn uniform_traffic_reaches_all_flows_and_no_others() {
        let mut traffic = Traffic::new(10, Popularity::Uniform, 1.0, 5).unwrap();
        let mut counts = [0; 10];
        (0..10_000).for_each(|_| counts[traffic.draw() as usize] += 1);
        // 1000 each, standard deviation 30.
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn traffic_that_cannot_be_is_refused() {
        assert_eq!(Traffic::new(0, Popularity::Uniform, 1.0, 1).unwrap_err().kind(), "request");
        for exponent in [-1.0, f64::NAN] {
            assert_eq!(Traffic::new(9, Popularity::Zipf, exponent, 1).unwrap_err().kind(), "request");
        }
    }
}
