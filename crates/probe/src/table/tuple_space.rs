//! Tuple space search (Srinivasan, Suri & Varghese 1999, "Packet classification using tuple space search").
//!
//! Rules that mask the same bits are a tuple and share a hash table of masked keys. A lookup reads one line in each
//! tuple's table and keeps the best rule. All tables lie behind one another in one memory.

use std::collections::HashMap;

use crate::batch::{BATCH_FRAMES, Words};
use crate::error::{ProbeError, Result};
use crate::memory::{HugeMemory, Line, Pages};
use crate::operation::prefetch;
use crate::table::hash_table::{EMPTY, Slots, Written};

/// Keys of two words; the value is the rule's rank above its action.
type Tuples = Slots<2, 1>;

/// A rule: keys whose masked bits are those of `value` get `action`, unless a better rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The key's bits, as [`parse`](crate::operation::parse) gives them.
    pub value: [u64; 2],
    /// The bits that count.
    pub mask: [u64; 2],
    /// The highest wins; of equal ones the first.
    pub priority: u32,
    /// The result of the lookup.
    pub action: u32,
}

impl Rule {
    /// Whether a key matches.
    #[must_use]
    pub fn matches(&self, key: &[u64; 2]) -> bool {
        (0..2).all(|word| (key[word] ^ self.value[word]) & self.mask[word] == 0)
    }

    fn masked(&self) -> [u64; 2] {
        [self.value[0] & self.mask[0], self.value[1] & self.mask[1]]
    }
}

#[derive(Debug, Clone, Copy)]
struct Tuple {
    mask: [u64; 2],
    first: usize,
    lines: usize,
}

/// A classifier of some rules.
#[derive(Debug)]
pub struct TupleSpace {
    memory: HugeMemory,
    tuples: Vec<Tuple>,
    default: u32,
}

impl TupleSpace {
    /// A classifier; keys that no rule matches get the action `default`.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Request`] for a rule whose first masked word is all ones (it stands for "empty"), or more than
    /// `2^31` rules; [`ProbeError::Memory`] if there is not that much.
    pub fn new(what: &str, rules: &[Rule], default: u32, pages: Pages) -> Result<Self> {
        if rules.len() >= 1 << 31 {
            return Err(ProbeError::request(what, format!("got {} rules; up to 2^31 - 1 are allowed", rules.len())));
        }
        if let Some(rule) = rules.iter().find(|rule| rule.masked()[0] == EMPTY) {
            let got = format!("got {rule:?}; its first word must not be all ones: leave a bit out of its mask");
            return Err(ProbeError::request(what, got));
        }
        let mut order: Vec<&Rule> = rules.iter().collect();
        order.sort_by_key(|rule| std::cmp::Reverse(rule.priority));

        let mut tuples: Vec<Tuple> = Vec::new();
        let mut tuple_of: HashMap<[u64; 2], usize> = HashMap::new();
        for rule in &order {
            let tuple = *tuple_of.entry(rule.mask).or_insert(tuples.len());
            if tuple == tuples.len() {
                tuples.push(Tuple { mask: rule.mask, first: 0, lines: 0 });
            }
            tuples[tuple].lines += 1;
        }
        let mut lines = 0;
        for tuple in &mut tuples {
            tuple.first = lines;
            // A load of a quarter: most lookups miss, and hardly a line overflows.
            tuple.lines = Tuples::lines_for(2 * tuple.lines);
            lines += tuple.lines;
        }
        let mut memory = HugeMemory::new(what, lines.max(1) * size_of::<Line>(), pages)?;
        let all: &mut [Line] = memory.as_mut_slice();
        all.fill(Line([EMPTY; 8]));
        for (index, rule) in order.iter().enumerate() {
            let tuple = tuples[tuple_of[&rule.mask]];
            let lines = &mut all[tuple.first..tuple.first + tuple.lines];
            let key = rule.masked();
            let at = Tuples::line(&key, lines.len());
            // The best comes first: a rule with the same bits as an earlier one never counts.
            if !Tuples::read(lines, at, &key, &mut [0]) {
                let rank = (order.len() - index) as u64;
                let written = Tuples::write(lines, at, &key, &[rank << 32 | u64::from(rule.action)], true);
                debug_assert!(matches!(written, Written::Inserted(_)));
            }
        }
        Ok(Self { memory, tuples, default })
    }

    /// Combinations of masks.
    #[must_use]
    pub fn tuples(&self) -> usize {
        self.tuples.len()
    }

    /// The memory that the tables lie in.
    #[must_use]
    pub fn memory(&self) -> &HugeMemory {
        &self.memory
    }

    /// The actions for a batch of keys; see [`acl_lookup`](crate::operation::acl_lookup).
    #[inline]
    pub fn lookup(&self, keys: &Words<2>, count: usize, actions: &mut [u32; BATCH_FRAMES]) {
        let count = count.min(BATCH_FRAMES);
        let all: &[Line] = self.memory.as_slice();
        let mut best = [u64::from(self.default); BATCH_FRAMES];
        let mut masked: Words<2> = [[0; 2]; BATCH_FRAMES];
        let mut at = [0; BATCH_FRAMES];
        for tuple in &self.tuples {
            let lines = &all[tuple.first..tuple.first + tuple.lines];
            for frame in 0..count {
                masked[frame] = [keys[frame][0] & tuple.mask[0], keys[frame][1] & tuple.mask[1]];
                at[frame] = Tuples::line(&masked[frame], lines.len());
                prefetch(lines, at[frame]);
            }
            let mut again = 0u32;
            for frame in 0..count {
                let mut value = [0];
                let (hit, on) = Tuples::compare(&lines[at[frame]], &masked[frame], &mut value);
                best[frame] = larger(best[frame], value[0] & 0u64.wrapping_sub(u64::from(hit)));
                again |= on << frame;
            }
            while again != 0 {
                let frame = again.trailing_zeros() as usize % BATCH_FRAMES;
                again &= again - 1;
                let mut value = [0];
                let next = Tuples::next(at[frame], lines.len());
                let hit = Tuples::read(lines, next, &masked[frame], &mut value);
                best[frame] = best[frame].max(if hit { value[0] } else { 0 });
            }
        }
        for (action, best) in actions.iter_mut().zip(best).take(count) {
            *action = best as u32;
        }
    }
}

/// The larger of two numbers below `2^63`, computed: of a choice the compiler makes a branch, which no processor can
/// predict here.
#[inline(always)]
fn larger(first: u64, second: u64) -> u64 {
    let difference = first.wrapping_sub(second) as i64;
    first.wrapping_sub((difference & (difference >> 63)) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::operation::acl_lookup;

    /// Compares every rule.
    fn naive(rules: &[Rule], key: &[u64; 2], default: u32) -> u32 {
        let mut best: Option<&Rule> = None;
        for rule in rules.iter().filter(|rule| rule.matches(key)) {
            if best.is_none_or(|best| rule.priority > best.priority) {
                best = Some(rule);
            }
        }
        best.map_or(default, |rule| rule.action)
    }

    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..4, Just(1u64 << 63), Just(u64::MAX), any::<u64>()]
    }

    fn rule() -> impl Strategy<Value = Rule> {
        let masks = prop::sample::select(vec![0, 1, 3, 0xff00, !0 << 1]);
        (word(), word(), masks.clone(), masks, 0u32..6, any::<u32>()).prop_map(
            |(first, second, a, b, priority, action)| Rule { value: [first, second], mask: [a, b], priority, action },
        )
    }

    proptest! {
        #[test]
        fn the_best_rule_wins_as_in_a_search_of_all_rules(
            rules in prop::collection::vec(rule(), 0..200),
            keys in prop::collection::vec((word(), word()), 1..=32),
        ) {
            // The reserved value is refused, which has a test of its own.
            let rules: Vec<Rule> = rules.into_iter().filter(|rule| rule.masked()[0] != EMPTY).collect();
            let space = TupleSpace::new("a test", &rules, 77, Pages::Normal).unwrap();
            let mut batch: Words<2> = [[0; 2]; BATCH_FRAMES];
            for (key_words, key) in batch.iter_mut().zip(&keys) {
                *key_words = [key.0, key.1];
            }
            let mut actions = [5; BATCH_FRAMES];
            acl_lookup(&space, &batch, keys.len(), &mut actions);
            for (frame, action) in actions.iter().enumerate() {
                let expected = if frame < keys.len() { naive(&rules, &batch[frame], 77) } else { 5 };
                prop_assert_eq!(*action, expected);
            }
        }
    }

    #[test]
    fn rules_with_the_same_masks_are_one_tuple() {
        let rule = |value: u64, mask| Rule { value: [value, 0], mask: [mask, 0], priority: 1, action: 1 };
        let rules: Vec<Rule> = (0..500).flat_map(|value| [rule(value, 0xfff), rule(value, 0xff)]).collect();
        assert_eq!(TupleSpace::new("a test", &rules, 0, Pages::Normal).unwrap().tuples(), 2);
    }

    #[test]
    fn a_rule_that_looks_like_an_empty_slot_is_refused() {
        let rule = Rule { value: [u64::MAX; 2], mask: [u64::MAX; 2], priority: 0, action: 0 };
        assert_eq!(TupleSpace::new("table rules", &[rule], 0, Pages::Normal).unwrap_err().kind(), "request");
    }
}
