//! Misses of caches of every size from one pass over the lines that are touched.
//!
//! An access finds its line in a fully associative cache that replaces the least recently used line if no more other
//! lines were touched since than the cache holds beside it: its stack distance (Mattson, Gecsei, Slutz & Traiger
//! 1970). Distances are counted with a binary indexed tree over the moments of last accesses (Bennett & Kruskal 1975).

use std::collections::HashMap;

use serde::Serialize;

use crate::memory::LINE_BYTES;

/// Sizes of the reported caches: 2^8 to 2^23 bytes.
const SIZES: std::ops::RangeInclusive<u32> = 8..=23;

/// Misses of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MissPoint {
    /// Size of the cache.
    pub cache_bytes: u64,
    /// Accesses that missed, those to lines never touched before included.
    pub misses: u64,
}

/// Accesses to lines, and the misses of caches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReuseOutcome {
    /// Accesses to lines.
    pub accesses: u64,
    /// First accesses to a line, which miss in every cache.
    pub cold: u64,
    /// Misses by the size of the cache.
    pub misses: Vec<MissPoint>,
}

/// The stack of lines.
#[derive(Debug, Default)]
pub struct Reuse {
    /// Moment of each line's last access.
    last: HashMap<u64, usize>,
    /// Binary indexed tree: how many lines were last touched at a moment. Moments count from 1.
    tree: Vec<u32>,
    now: usize,
    recent: Option<u64>,
    accesses: u64,
    cold: u64,
    /// Number of distances by power of two: entry p counts those below 2^p lines.
    distances: Vec<u64>,
}

impl Reuse {
    /// Touches a line; accesses of the warm-up are not counted, but load their lines.
    pub fn touch(&mut self, line: u64, counts: bool) {
        self.accesses += u64::from(counts);
        if self.recent.replace(line) == Some(line) {
            self.count(0, counts);
            return;
        }
        if self.now + 1 >= self.tree.len() {
            self.renumber();
        }
        self.now += 1;
        let before = self.last.insert(line, self.now);
        if let Some(before) = before {
            // The lines last touched after it are all those above it in the stack.
            let distance = self.last.len() - self.up_to(before) as usize;
            self.add(before, false);
            self.count(distance, counts);
        } else {
            self.cold += u64::from(counts);
        }
        self.add(self.now, true);
    }

    /// Different lines that were touched.
    pub fn lines(&self) -> impl Iterator<Item = u64> {
        self.last.keys().copied()
    }

    /// The misses of caches.
    pub fn outcome(&self) -> ReuseOutcome {
        let misses = SIZES.map(|power| {
            // A cache of n lines holds those of distances 0 to n - 1.
            let lines_power = power as usize - LINE_BYTES.ilog2() as usize;
            let hits: u64 = self.distances.iter().take(lines_power + 1).sum();
            MissPoint { cache_bytes: 1 << power, misses: self.accesses - hits }
        });
        ReuseOutcome { accesses: self.accesses, cold: self.cold, misses: misses.collect() }
    }

    fn count(&mut self, distance: usize, counts: bool) {
        // The least p with distance < 2^p.
        let class = (usize::BITS - distance.leading_zeros()) as usize;
        if self.distances.len() <= class {
            self.distances.resize(class + 1, 0);
        }
        self.distances[class] += u64::from(counts);
    }

    fn add(&mut self, mut at: usize, is_more: bool) {
        while let Some(count) = self.tree.get_mut(at) {
            *count = if is_more { *count + 1 } else { *count - 1 };
            at += at & at.wrapping_neg();
        }
    }

    fn up_to(&self, mut at: usize) -> u32 {
        let mut sum = 0;
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }

    /// Renumbers the moments of last accesses from 1, and gives the tree room for as many again.
    fn renumber(&mut self) {
        let mut order: Vec<(usize, u64)> = self.last.iter().map(|(&line, &at)| (at, line)).collect();
        order.sort_unstable();
        self.tree = vec![0; (2 * order.len() + 2).max(1 << 16)];
        self.now = order.len();
        for (index, (_, line)) in order.into_iter().enumerate() {
            self.last.insert(line, index + 1);
            self.add(index + 1, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[u64]) -> ReuseOutcome {
        let mut reuse = Reuse::default();
        for &line in lines {
            reuse.touch(line, true);
        }
        reuse.outcome()
    }

    /// A cache that keeps its lines in the order of their last use.
    fn simulated(lines: &[u64], holds: usize) -> u64 {
        let mut cache: Vec<u64> = Vec::new();
        let mut misses = 0;
        for line in lines {
            match cache.iter().position(|held| held == line) {
                Some(index) => drop(cache.remove(index)),
                None => misses += 1,
            }
            cache.push(*line);
            if cache.len() > holds {
                cache.remove(0);
            }
        }
        misses
    }

    proptest::proptest! {
        #[test]
        fn every_size_misses_what_a_simulated_cache_of_that_size_misses(lines in proptest::collection::vec(0u64..90, 0..400)) {
            let outcome = of(&lines);
            for point in outcome.misses {
                let holds = point.cache_bytes as usize / LINE_BYTES;
                proptest::prop_assert_eq!(point.misses, simulated(&lines, holds), "{} lines", holds);
            }
            let different: std::collections::HashSet<_> = lines.iter().collect();
            proptest::prop_assert_eq!(outcome.cold, different.len() as u64);
        }
    }

    #[test]
    fn going_round_more_lines_than_a_cache_holds_misses_always_and_else_never_again() {
        // 3 x 65536 accesses, so that the tree is renumbered on the way.
        let round: Vec<u64> = (0..3 << 16).map(|access| access % 1024).collect();
        for point in of(&round).misses {
            let expected = if point.cache_bytes >= 1024 * 64 { 1024 } else { 3 << 16 };
            assert_eq!(point.misses, expected, "{}", point.cache_bytes);
        }
    }

    #[test]
    fn what_warms_up_is_there_but_does_not_count() {
        let mut reuse = Reuse::default();
        (0..8).for_each(|line| reuse.touch(line, false));
        (0..8).for_each(|line| reuse.touch(line, true));
        let outcome = reuse.outcome();
        assert_eq!((outcome.accesses, outcome.cold), (8, 0));
        assert_eq!(outcome.misses[0], MissPoint { cache_bytes: 256, misses: 8 });
        assert_eq!(outcome.misses[1], MissPoint { cache_bytes: 512, misses: 0 });
    }
}
