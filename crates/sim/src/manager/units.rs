//! Sets of the units of one pool.

use std::ops::{BitAnd, BitOr};

/// Units a managed pool may have: two sockets of 192 cores fit in, and some.
pub const MOST_UNITS: usize = WORDS * BITS;

const WORDS: usize = 8;
const BITS: usize = u64::BITS as usize;

/// A set of units by number, below [`MOST_UNITS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Units([u64; WORDS]);

impl Units {
    pub const NONE: Self = Self([0; WORDS]);

    /// The units 0 to `count` - 1.
    pub fn first(count: usize) -> Self {
        (0..count.min(MOST_UNITS)).map(Self::one).fold(Self::NONE, BitOr::bitor)
    }

    /// One unit; none where there are not so many.
    #[inline]
    pub fn one(unit: usize) -> Self {
        let mut words = [0; WORDS];
        if let Some(word) = words.get_mut(unit / BITS) {
            *word = 1 << (unit % BITS);
        }
        Self(words)
    }

    #[inline]
    pub fn has(&self, unit: usize) -> bool {
        self.0.get(unit / BITS).is_some_and(|word| word >> (unit % BITS) & 1 != 0)
    }

    #[inline]
    pub fn insert(&mut self, unit: usize) {
        if let Some(word) = self.0.get_mut(unit / BITS) {
            *word |= 1 << (unit % BITS);
        }
    }

    #[inline]
    pub fn remove(&mut self, unit: usize) {
        if let Some(word) = self.0.get_mut(unit / BITS) {
            *word &= !(1 << (unit % BITS));
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().fold(0, BitOr::bitor) == 0
    }

    /// Whether a unit is in both sets.
    #[inline]
    pub fn meets(&self, other: &Self) -> bool {
        self.in_both(other).any(|word| word != 0)
    }

    /// Whether so many units are in both sets.
    #[inline]
    pub fn shares(&self, other: &Self, units: usize) -> bool {
        if units == 1 {
            return self.meets(other);
        }
        self.in_both(other).map(|word| word.count_ones() as usize).sum::<usize>() >= units
    }

    /// The unit of the lowest number that is in both sets; [`MOST_UNITS`] if there is none.
    #[inline]
    pub fn lowest_shared(&self, other: &Self) -> usize {
        let found = self.in_both(other).enumerate().find(|&(_, word)| word != 0);
        found.map_or(MOST_UNITS, |(at, word)| at * BITS + word.trailing_zeros() as usize)
    }

    #[inline]
    fn in_both(&self, other: &Self) -> impl Iterator<Item = u64> {
        self.0.iter().zip(&other.0).map(|(word, with)| word & with)
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether it is a single unit.
    #[inline]
    pub fn is_single(&self) -> bool {
        self.count() == 1
    }
}

impl BitAnd for Units {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        let mut words = self.0;
        words.iter_mut().zip(other.0).for_each(|(word, with)| *word &= with);
        Self(words)
    }
}

impl BitOr for Units {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        let mut words = self.0;
        words.iter_mut().zip(other.0).for_each(|(word, with)| *word |= with);
        Self(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_every_word_are_kept_and_found() {
        let mut set = Units::first(384);
        let all = Units::first(MOST_UNITS);
        assert_eq!((set.count(), set.lowest_shared(&all)), (384, 0));
        assert!(set.has(383) && !set.has(384) && !set.has(MOST_UNITS));
        set.remove(0);
        assert_eq!(set.lowest_shared(&all), 1);
        assert!(set.shares(&all, 383) && !set.shares(&all, 384) && set.shares(&all, 1));
        assert!(Units::one(200).meets(&set) && !Units::one(400).meets(&set) && Units::one(200).is_single());
        set.insert(400);
        assert!(Units::one(400).meets(&set) && (set & Units::first(1)).is_empty());
        assert_eq!(Units::NONE.lowest_shared(&all), MOST_UNITS);
    }
}
