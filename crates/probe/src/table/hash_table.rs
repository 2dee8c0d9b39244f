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

/// The layout of keys of `N` words and values of `V` words in lines; the lines belong to the caller.
#[derive(Debug, Clone, Copy)]
pub struct Slots<const N: usize, const V: usize>;

/// The outcome of writing an entry.
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
    fn first_word(hits: u32) -> usize {
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

    /// Compares a key with one line: 1 if it is there (with its value, else of no meaning), and 1 if it may be in the
    /// next. Without branches; a `bool` would bring some back.
    #[inline(always)]
    pub fn compare(line: &Line, key: &[u64; N], value: &mut [u64; V]) -> (u32, u32) {
        let words = &line.0;
        let hits = Self::find(words, key);
        let first_word = Self::first_word(hits);
        for (word, value) in value.iter_mut().enumerate() {
            *value = words[(first_word + N + word) % LINE_WORDS];
        }
        // A key that begins with EMPTY "hits" an empty slot.
        let hit = (hits + 15) >> 4;
        (hit & u32::from(key[0] != EMPTY), (1 - hit) & u32::from(Self::overflows(words)))
    }

    /// Writes a value under a key if it is in the line: whether it is. Without branches.
    #[inline(always)]
    pub fn update(line: &mut Line, key: &[u64; N], value: &[u64; V], allowed: bool) -> bool {
        let words = &mut line.0;
        let hits = Self::find(words, key);
        let first_word = Self::first_word(hits);
        let hit = (hits != 0) & (key[0] != EMPTY) & allowed;
        for (word, new) in value.iter().enumerate() {
            let old = &mut words[(first_word + N + word) % LINE_WORDS];
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
            if on == 0 {
                return hit == 1;
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
            let free =
                (0..Self::PER_LINE).map(|slot| slot * Self::WORDS).find(|&first_word| words[first_word] == EMPTY);
            match free {
                _ if !room && !on => return Written::Refused,
                Some(first_word) if !on => {
                    words[first_word..first_word + N].copy_from_slice(key);
                    words[first_word + N..first_word + N + V].copy_from_slice(value);
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

    /// Writes a value under a key, in place if the key is there; returns whether there was room for it.
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

    /// Removes all entries.
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
mod tests;
