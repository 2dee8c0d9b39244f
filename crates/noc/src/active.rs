//! A set of small numbers that iterates over its members only.

/// A bitmap with a summary of its words: one read tells that a set of 4096 is empty.
#[derive(Debug, Clone)]
pub struct ActiveSet {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl ActiveSet {
    /// An empty set of numbers below `count`.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let words = count.div_ceil(64).max(1);
        Self { words: vec![0; words], summary: vec![0; words.div_ceil(64)] }
    }

    /// Inserts a number.
    #[inline]
    pub fn insert(&mut self, member: usize) {
        let word = member / 64;
        self.words[word] |= 1 << (member % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    /// Inserts a number if a condition holds, without a branch: the condition is unpredictable.
    #[inline]
    pub fn insert_if(&mut self, condition: bool, member: usize) {
        let word = member / 64;
        self.words[word] |= u64::from(condition) << (member % 64);
        self.summary[word / 64] |= u64::from(condition) << (word % 64);
    }

    /// Removes a number.
    #[inline]
    pub fn remove(&mut self, member: usize) {
        let word = member / 64;
        self.words[word] &= !(1 << (member % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
    }

    /// Whether the set is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.summary.iter().all(|&word| word == 0)
    }

    /// The first word from `word` on with a member, and its current members: bit `b` of word `w` is `64 w + b`.
    #[inline]
    #[must_use]
    pub fn word(&self, word: usize) -> Option<(usize, u64)> {
        let mut level = word / 64;
        let mut mask = u64::MAX << (word % 64);
        while level < self.summary.len() {
            let words = self.summary[level] & mask;
            if words != 0 {
                let member = level * 64 + words.trailing_zeros() as usize;
                return Some((member, self.words[member]));
            }
            level += 1;
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_holds_what_a_plain_set_holds(steps in prop::collection::vec((any::<bool>(), 0_usize..10_000), 0..200)) {
            let (mut set, mut plain) = (ActiveSet::new(10_000), BTreeSet::new());
            for (put, member) in steps {
                if put {
                    set.insert(member);
                    set.insert_if(false, member / 2);
                    plain.insert(member);
                } else {
                    set.remove(member);
                    plain.remove(&member);
                }
            }
            let mut iterated = Vec::new();
            let mut from = 0;
            while let Some((word, members)) = set.word(from) {
                iterated.extend((0..64).filter(|bit| members >> bit & 1 == 1).map(|bit| 64 * word + bit));
                from = word + 1;
            }
            prop_assert_eq!(iterated, plain.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.is_empty(), plain.is_empty());
        }
    }
}
