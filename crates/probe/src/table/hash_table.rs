//! A hash table of cache lines: a key is in the line that it hashes to, or, where that was full, in one behind.
//!
//! ```text
//!   line    | key value | key value | key value | key value |      slots of 16, 32 or 64 bytes, filled from the left
//!   next    | key value |   empty   |   empty   |   empty   |      all ones where no key is
//! ```
//!
//! At most half of the slots are taken, so a lookup reads one line for nearly every key. Within a line all slots are
//! compared without branches; the only branch, whether to go on to the next line, is nearly always not taken.

use crate::error::{ProbeError, Result};
use crate::memory::{HugeMemory, Line, Pages};

/// First word of a slot without a key; no key may begin with it.
pub const EMPTY: u64 = u64::MAX;

/// Words of a cache line.
const LINE_WORDS: usize = 8;

/// How keys of `N` words and values of `V` words lie in lines; works on lines that belong to somebody else.
#[derive(Debug, Clone, Copy)]
pub struct Slots<const N: usize, const V: usize>;

/// What came of writing an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The key was there; its value is new.
    Updated,
    /// The key is new; it stands `0` lines behind its own, or more.
    Inserted(usize),
    /// A new key where none is allowed, or one that begins with [`EMPTY`].
    Refused,
}

impl<const N: usize, const V: usize> Slots<N, V> {
    /// Words of a slot.
    pub const WORDS: usize = {
        let words = (N + V).next_power_of_two();
        assert!(N >= 1 && words <= LINE_WORDS, "key and value fill one line at most");
        if words < 2 { 2 } else { words }
    };
    /// Whether a slot has a word to spare.
    const SPARE: bool = N + V < Self::WORDS;
    /// Slots of a line.
    pub const PER_LINE: usize = LINE_WORDS / Self::WORDS;

    /// Lines for some entries at a load of at most one half.
    #[must_use]
    pub fn lines_for(entries: usize) -> usize {
        entries.saturating_mul(2).div_ceil(Self::PER_LINE).max(1)
    }

    /// The line of a key among `lines`, fewer than `2^32`: its hash's share of the range.
    #[inline(always)]
    #[must_use]
    pub fn line(key: &[u64; N], lines: usize) -> usize {
        (((hash(key) >> 32) * lines as u64) >> 32) as usize
    }

    /// Which slots of a line have a key: bit `i` stands for slot `i`.
    ///
    /// Bits and not a `bool`: from a chain of those the compiler makes branches that no processor can predict.
    #[inline(always)]
    fn find(words: &[u64; LINE_WORDS], key: &[u64; N]) -> u32 {
        let mut hits = 0;
        for slot in 0..Self::PER_LINE {
            let mut different = 0;
            for word in 0..N {
                different |= words[slot * Self::WORDS + word] ^ key[word];
            }
            hits |= u32::from(different == 0) << slot;
        }
        hits
    }

    /// The first word of the first of some slots.
    #[inline(always)]
    fn place(hits: u32) -> usize {
        hits.trailing_zeros() as usize % Self::PER_LINE * Self::WORDS
    }

    /// Whether keys of a line may be in the next one, too.
    ///
    /// Where a line has a word to spare, that says whether one is; else one may be if the last slot is taken, for
    /// slots are taken from the left.
    #[inline(always)]
    fn overflows(words: &[u64; LINE_WORDS]) -> bool {
        words[if Self::SPARE { LINE_WORDS - 1 } else { LINE_WORDS - Self::WORDS }] != EMPTY
    }

    /// Compares a key with one line: whether it is there (with its value, else of no meaning), and whether it may be
    /// in the next. Without branches.
    #[inline(always)]
    pub fn compare(line: &Line, key: &[u64; N], value: &mut [u64; V]) -> (bool, bool) {
        let words = &line.0;
        let hits = Self::find(words, key);
        let place = Self::place(hits);
        for (word, value) in value.iter_mut().enumerate() {
            *value = words[(place + N + word) % LINE_WORDS];
        }
        // A key that begins with EMPTY "hits" an empty slot.
        ((hits != 0) & (key[0] != EMPTY), (hits == 0) & Self::overflows(words))
    }

    /// Writes a value under a key if it is in the line: whether it is. Without branches.
    #[inline(always)]
    pub fn update(line: &mut Line, key: &[u64; N], value: &[u64; V], allowed: bool) -> bool {
        let words = &mut line.0;
        let hits = Self::find(words, key);
        let place = Self::place(hits);
        let hit = (hits != 0) & (key[0] != EMPTY) & allowed;
        for (word, new) in value.iter().enumerate() {
            let old = &mut words[(place + N + word) % LINE_WORDS];
            *old = if hit { *new } else { *old };
        }
        hit
    }

    /// The value of a key, looked for from line `at` on; of no meaning where it says that there is none.
    #[inline]
    #[must_use]
    pub fn read(lines: &[Line], at: usize, key: &[u64; N], value: &mut [u64; V]) -> bool {
        let mut at = at;
        loop {
            let (hit, on) = Self::compare(&lines[at], key, value);
            if !on {
                return hit;
            }
            at = Self::next(at, lines.len());
        }
    }

    /// The line behind one.
    #[inline]
    #[must_use]
    pub fn next(at: usize, lines: usize) -> usize {
        if at + 1 == lines { 0 } else { at + 1 }
    }

    /// Writes a value under a key, looked for from line `at` on; as a new entry only where `room` is.
    ///
    /// Ends if some line has an empty slot, as with a load of at most one half.
    #[inline(never)]
    pub fn write(lines: &mut [Line], at: usize, key: &[u64; N], value: &[u64; V], room: bool) -> Written {
        if key[0] == EMPTY {
            return Written::Refused;
        }
        let count = lines.len();
        let mut at = at;
        let mut distance = 0;
        loop {
            if Self::update(&mut lines[at], key, value, true) {
                return Written::Updated;
            }
            let words = &mut lines[at].0;
            let on = Self::overflows(words);
            let free = (0..Self::PER_LINE).map(|slot| slot * Self::WORDS).find(|&place| words[place] == EMPTY);
            match free {
                _ if !room && !on => return Written::Refused,
                Some(place) if !on => {
                    words[place..place + N].copy_from_slice(key);
                    words[place + N..place + N + V].copy_from_slice(value);
                    return Written::Inserted(distance);
                }
                _ => {}
            }
            if Self::SPARE {
                words[LINE_WORDS - 1] = 0;
            }
            at = Self::next(at, count);
            distance += 1;
        }
    }
}

/// Mixes a key: 64 x 64 to 128 bits, both halves folded, and multiplied once more, because single bits of a folded
/// product hang on few bits of the key. The upper half of the result is the better one.
#[inline(always)]
fn hash<const N: usize>(key: &[u64; N]) -> u64 {
    // Digits of pi, as in wyhash and its like.
    const SECRET: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];
    let fold = |left: u64, right: u64| {
        let product = u128::from(left) * u128::from(right);
        product as u64 ^ (product >> 64) as u64
    };
    let mut state = fold(key[0] ^ SECRET[0], key.get(1).copied().unwrap_or(0) ^ SECRET[1]);
    for word in key.iter().skip(2) {
        state = fold(state ^ SECRET[0], word ^ SECRET[1]);
    }
    state.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A hash table of keys of `N` words and values of `V` words.
///
/// ```
/// use routecast_probe::memory::Pages;
/// use routecast_probe::table::hash_table::HashTable;
///
/// let mut table = HashTable::<1, 1>::new("table mac", 1000, Pages::Normal)?;
/// assert!(table.insert(&[0x0200_0000_0001], &[7]));
/// assert_eq!(table.get(&[0x0200_0000_0001]), Some([7]));
/// # Ok::<(), routecast_probe::error::ProbeError>(())
/// ```
#[derive(Debug)]
pub struct HashTable<const N: usize, const V: usize> {
    memory: HugeMemory,
    capacity: usize,
    entries: usize,
    displaced: usize,
}

impl<const N: usize, const V: usize> HashTable<N, V> {
    /// A table with room for `capacity` entries, which then fill one half of its slots.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Request`] for no entries, or more lines than fit into 32 bits; [`ProbeError::Memory`] if there is
    /// not that much.
    pub fn new(what: &str, capacity: usize, pages: Pages) -> Result<Self> {
        if capacity == 0 {
            return Err(ProbeError::request(what, "got a hash table of 0 entries; ask for one or more"));
        }
        let lines = Slots::<N, V>::lines_for(capacity);
        if u32::try_from(lines).is_err() {
            return Err(ProbeError::request(what, format!("got {capacity} entries; a hash table has up to 2^31")));
        }
        let mut memory = HugeMemory::new(what, lines * size_of::<Line>(), pages)?;
        memory.as_mut_slice::<Line>().fill(Line([EMPTY; LINE_WORDS]));
        Ok(Self { memory, capacity, entries: 0, displaced: 0 })
    }

    /// The table's lines.
    #[inline]
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        self.memory.as_slice()
    }

    /// The line that a key belongs into.
    #[inline]
    #[must_use]
    pub fn line(&self, key: &[u64; N]) -> usize {
        Slots::<N, V>::line(key, self.lines().len())
    }

    /// The table's lines, for values to be written in place.
    #[inline]
    #[must_use]
    pub fn lines_mut(&mut self) -> &mut [Line] {
        self.memory.as_mut_slice()
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &[u64; N]) -> Option<[u64; V]> {
        let mut value = [0; V];
        Slots::<N, V>::read(self.lines(), self.line(key), key, &mut value).then_some(value)
    }

    /// Writes a value under a key, in place where the key is there; says whether there was room for it.
    ///
    /// Keys that begin with [`EMPTY`] are refused.
    pub fn insert(&mut self, key: &[u64; N], value: &[u64; V]) -> bool {
        self.write(self.line(key), key, value)
    }

    /// As [`Self::insert`], for a key whose line is known.
    pub fn write(&mut self, line: usize, key: &[u64; N], value: &[u64; V]) -> bool {
        let room = self.entries < self.capacity;
        match Slots::write(self.memory.as_mut_slice(), line, key, value, room) {
            Written::Updated => true,
            Written::Inserted(distance) => {
                self.entries += 1;
                self.displaced += usize::from(distance > 0);
                true
            }
            Written::Refused => false,
        }
    }

    /// Takes all entries out.
    pub fn clear(&mut self) {
        self.memory.as_mut_slice::<Line>().fill(Line([EMPTY; LINE_WORDS]));
        self.entries = 0;
        self.displaced = 0;
    }

    /// Entries in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether the table has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Entries that the table has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Share of the entries that are not in their own line, 0 to 1: the `p` of Baldi & Sapio 2018, sec. 2.1.
    #[must_use]
    pub fn collision_ratio(&self) -> f64 {
        if self.entries == 0 { 0.0 } else { self.displaced as f64 / self.entries as f64 }
    }

    /// The memory that the table lies in.
    #[must_use]
    pub fn memory(&self) -> &HugeMemory {
        &self.memory
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::batch::{BATCH_FRAMES, Words};
    use crate::operation::{ct_insertion, ht_lookup};

    fn key<const N: usize>(number: u64) -> [u64; N] {
        std::array::from_fn(|word| number.wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(17 * word as u32))
    }

    /// Inserts in batches what a map holds as well, then asks for what is there and for what is not.
    fn follows_a_map<const N: usize, const V: usize>(numbers: &[u64], capacity: usize) {
        let mut table = HashTable::<N, V>::new("a test", capacity, Pages::Normal).unwrap();
        let mut map = HashMap::new();
        for (time, batch) in numbers.chunks(BATCH_FRAMES).enumerate() {
            let mut keys: Words<N> = [[EMPTY; N]; BATCH_FRAMES];
            let mut values: Words<V> = [[0; V]; BATCH_FRAMES];
            let mut refused = 0;
            for (frame, &number) in batch.iter().enumerate() {
                keys[frame] = key(number);
                values[frame] = std::array::from_fn(|word| (32 * time + frame + word) as u64);
                if map.len() < capacity || map.contains_key(&keys[frame]) {
                    map.insert(keys[frame], values[frame]);
                } else {
                    refused |= 1 << frame;
                }
            }
            assert_eq!(ct_insertion(&mut table, &keys, &values, batch.len(), u32::MAX), refused);
        }
        assert_eq!(table.len(), map.len());
        for numbers in [numbers, &numbers.iter().map(|number| number ^ 1 << 40).collect::<Vec<_>>()] {
            for batch in numbers.chunks(BATCH_FRAMES) {
                let mut keys: Words<N> = [[EMPTY; N]; BATCH_FRAMES];
                for (key_of, &number) in keys.iter_mut().zip(batch) {
                    *key_of = key(number);
                }
                let mut values: Words<V> = [[0; V]; BATCH_FRAMES];
                let found = ht_lookup(&table, &keys, batch.len(), &mut values);
                for frame in 0..batch.len() {
                    let there = (found >> frame & 1 == 1).then_some(values[frame]);
                    assert_eq!(there, map.get(&keys[frame]).copied());
                    assert_eq!(table.get(&keys[frame]), there);
                }
                assert_eq!(u64::from(found) >> batch.len(), 0);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_hash_table_holds_what_a_map_holds(
            numbers in prop::collection::vec(0u64..150, 0..300),
            capacity in 1usize..200,
        ) {
            follows_a_map::<1, 1>(&numbers, capacity);
            follows_a_map::<1, 2>(&numbers, capacity);
            follows_a_map::<1, 7>(&numbers, capacity);
            follows_a_map::<2, 1>(&numbers, capacity);
            follows_a_map::<2, 2>(&numbers, capacity);
            follows_a_map::<2, 5>(&numbers, capacity);
            follows_a_map::<3, 1>(&numbers, capacity);
        }
    }

    #[test]
    fn the_reserved_key_is_refused_and_never_found() {
        let mut table = HashTable::<2, 2>::new("a test", 64, Pages::Normal).unwrap();
        for number in 0..64 {
            assert!(table.insert(&key(number), &[number; 2]));
        }
        assert!(!table.insert(&[EMPTY, 5], &[1; 2]));
        let mut values = [[0; 2]; BATCH_FRAMES];
        for second in [EMPTY, 0, 5] {
            assert_eq!(table.get(&[EMPTY, second]), None);
            assert_eq!(ht_lookup(&table, &[[EMPTY, second]; BATCH_FRAMES], BATCH_FRAMES, &mut values), 0);
        }
        assert_eq!(table.len(), 64);
    }

    #[test]
    fn frames_that_are_not_asked_for_are_not_inserted() {
        let mut table = HashTable::<1, 1>::new("a test", 100, Pages::Normal).unwrap();
        let keys: Words<1> = std::array::from_fn(|frame| key(frame as u64));
        assert_eq!(ct_insertion(&mut table, &keys, &[[3]; BATCH_FRAMES], 8, 0b1010_1010), 0);
        assert_eq!(table.len(), 4);
        assert_eq!(ct_insertion(&mut table, &keys, &[[4]; BATCH_FRAMES], 8, 0b0000_0110), 0);
        let values: Vec<_> = keys.iter().take(8).map(|key| table.get(key)).collect();
        assert_eq!(values, [None, Some([4]), Some([4]), Some([3]), None, Some([3]), None, Some([3])]);
    }

    /// Keys spread over lines like a Poisson process of `a` per line: the share that finds its line of `s` slots full
    /// is `E[max(X - s, 0)] / a`, as long as few are pushed into further lines.
    #[test]
    fn collisions_are_as_rare_as_the_poisson_distribution_says() {
        let poisson = |a: f64, s: u32| {
            let mut term = (-a).exp();
            let mut excess = 0.0;
            for x in 1..60u32 {
                term *= a / f64::from(x);
                excess += f64::from(x.saturating_sub(s)) * term;
            }
            excess / a
        };
        let mut table = HashTable::<1, 1>::new("a test", 200_000, Pages::Normal).unwrap();
        for number in 0..200_000 {
            assert!(table.insert(&key(number), &[number]));
        }
        let ratio = table.collision_ratio();
        // What is pushed on takes slots of the next line, so there are a few more than in separate lines.
        let least = poisson(2.0, 4);
        assert!((least..1.5 * least).contains(&ratio), "{ratio} against {least}");
        table.clear();
        for number in 0..50_000 {
            assert!(table.insert(&key(number), &[number]));
        }
        let (ratio, least) = (table.collision_ratio(), poisson(0.5, 4));
        assert!((0.5 * least..2.0 * least).contains(&ratio), "{ratio} against {least}");
    }

    /// Real keys differ in few bits: addresses that count up in network order, flows between neighbours.
    #[test]
    fn keys_that_count_up_anywhere_spread_as_random_ones_do() {
        let kinds: [fn(u64) -> [u64; 2]; 8] = [
            |number| [number, 0],
            |number| [number.swap_bytes() >> 16, 0],
            |number| [number << 12, 0],
            |number| [number << 40, 7],
            |number| [number << 32, number],
            |number| [0x0600, number.swap_bytes() >> 32],
            |number| [number << 32, (number & 0xff) << 48],
            |number| [(number >> 8) << 48, (number & 0xff).swap_bytes()],
        ];
        for (kind, key) in kinds.into_iter().enumerate() {
            for lines in [1 << 10, 10_007, 1 << 15] {
                let entries = 2 * lines as u64;
                let mut counts = vec![0u32; lines];
                for number in 0..entries {
                    counts[Slots::<2, 1>::line(&key(number), lines)] += 1;
                }
                // Variance over mean of a Poisson distribution: 1, within sqrt(2 / lines).
                let squares: f64 = counts.iter().map(|&count| (f64::from(count) - 2.0).powi(2)).sum();
                let dispersion = squares / entries as f64;
                assert!(dispersion < 1.5, "kind {kind}, {lines} lines: {dispersion}");
            }
        }
    }

    #[test]
    fn a_table_of_no_entries_is_refused() {
        assert_eq!(HashTable::<1, 1>::new("table mac", 0, Pages::Huge).unwrap_err().kind(), "request");
        assert_eq!(HashTable::<1, 1>::new("table mac", 1 << 34, Pages::Huge).unwrap_err().kind(), "request");
    }
}
