//! Consistent hashing for load balancers (Eisenbud et al. 2016, "Maglev", sec. 3.4).

use crate::error::{ProbeError, Result};
use crate::memory::{HugeMemory, Pages};
use crate::operation::prefetch;

/// Default number of entries of a table (sec. 5.3).
pub const DEFAULT_ENTRIES: usize = 65_537;

/// A table from hashes to backends.
#[derive(Debug)]
pub struct Maglev {
    memory: HugeMemory,
}

impl Maglev {
    /// A table of `entries`, a prime, for backends with these identities.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Request`] for no backend, more than `2^16` or than entries, or entries that are no prime up to
    /// `2^24`; [`ProbeError::Memory`] if there is not that much.
    pub fn new(what: &str, backends: &[u64], entries: usize, pages: Pages) -> Result<Self> {
        if backends.is_empty() || backends.len() > entries.min(1 << 16) {
            let got = format!(
                "got {} backends for {entries} entries; 1 to 65536 are allowed, and no more than entries",
                backends.len()
            );
            return Err(ProbeError::request(what, got));
        }
        if entries > 1 << 24 || !is_prime(entries) {
            let got = format!("got {entries} entries; a prime up to 2^24 is needed, such as {DEFAULT_ENTRIES}");
            return Err(ProbeError::request(what, got));
        }
        let mut memory = HugeMemory::new(what, 2 * entries, pages)?;
        fill(memory.as_mut_slice(), backends);
        Ok(Self { memory })
    }

    /// The backends by place.
    #[inline]
    #[must_use]
    pub fn entries(&self) -> &[u16] {
        self.memory.as_slice()
    }

    /// Place of a hash of 32 bits in the table: its share of the range instead of a remainder, which would divide.
    #[inline]
    #[must_use]
    pub fn index(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.entries().len() as u64) >> 32) as usize
    }

    /// The backends of a batch of hashes: two loops, prefetch, then read.
    #[inline]
    pub fn lookup(&self, hashes: &[u32; 32], count: usize, backends: &mut [u32; 32]) {
        let entries = self.entries();
        for &hash in hashes.iter().take(count) {
            prefetch(entries, self.index(hash));
        }
        for (backend, &hash) in backends.iter_mut().zip(hashes).take(count) {
            *backend = u32::from(entries[self.index(hash)]);
        }
    }
}

/// Each backend in turn takes the next free place of its own permutation, until all are taken (sec. 3.4, alg. 1).
fn fill(places: &mut [u16], backends: &[u64]) {
    let size = places.len() as u64;
    let mut permutations: Vec<(u64, u64)> = backends
        .iter()
        .map(|&backend| (scramble(backend) % size, scramble(!backend) % (size - 1).max(1) + 1))
        .collect();
    let mut taken = vec![false; places.len()];
    let mut left = places.len();
    while left > 0 {
        for (number, (next, skip)) in permutations.iter_mut().enumerate() {
            while taken[*next as usize] {
                *next = (*next + *skip) % size;
            }
            taken[*next as usize] = true;
            places[*next as usize] = number as u16;
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea & Flood 2014).
fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn is_prime(number: usize) -> bool {
    number >= 2 && (2..=number.isqrt()).all(|divisor| !number.is_multiple_of(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(maglev: &Maglev, backends: usize) -> Vec<usize> {
        let mut shares = vec![0; backends];
        for &backend in maglev.entries() {
            shares[usize::from(backend)] += 1;
        }
        shares
    }

    /// Backends take turns, so their shares differ by one entry at most (sec. 3.4).
    #[test]
    fn backends_share_the_table_evenly() {
        for backends in [1, 2, 7, 100, 1000] {
            let identities: Vec<u64> = (0..backends as u64).collect();
            let maglev = Maglev::new("a test", &identities, DEFAULT_ENTRIES, Pages::Normal).unwrap();
            let shares = shares(&maglev, backends);
            let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
            assert!(most - least <= 1, "{least} to {most}");
            let mut backends_seen = [0; 32];
            maglev.lookup(&std::array::from_fn(|frame| frame as u32 * 0x0800_0000 + 3), 32, &mut backends_seen);
            assert!(backends_seen.iter().all(|&backend| (backend as usize) < backends));
        }
    }

    /// Without one of n backends its entries must change, 1/n of all; of the others few do. The paper sees under 1 %
    /// of entries change beyond need for tables 100 times the backends and larger (sec. 5.3, fig. 12).
    #[test]
    fn when_a_backend_goes_few_entries_of_others_change() {
        let identities: Vec<u64> = (0..100).collect();
        let before = Maglev::new("a test", &identities, DEFAULT_ENTRIES, Pages::Normal).unwrap();
        let after = Maglev::new("a test", &identities[..99], DEFAULT_ENTRIES, Pages::Normal).unwrap();
        let changed = before.entries().iter().zip(after.entries()).filter(|(was, is)| **was != 99 && was != is).count();
        assert!((changed as f64) < 0.02 * DEFAULT_ENTRIES as f64, "{changed} of {DEFAULT_ENTRIES}");
    }

    #[test]
    fn what_is_no_prime_and_no_backend_are_refused() {
        for (backends, entries) in [(vec![], 7), (vec![1], 8), (vec![1, 2, 3], 2), (vec![1], 0), (vec![1], 1)] {
            assert_eq!(Maglev::new("a test", &backends, entries, Pages::Normal).unwrap_err().kind(), "request");
        }
    }

    #[test]
    fn a_place_lies_within_the_table_for_every_hash() {
        let maglev = Maglev::new("a test", &[1, 2], 13, Pages::Normal).unwrap();
        assert_eq!((maglev.index(0), maglev.index(u32::MAX)), (0, 12));
    }
}
