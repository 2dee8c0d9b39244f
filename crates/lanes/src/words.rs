//! A word of every lane: the instructions that a step is written in.
//!
//! A step knows 32-bit words alone, one in each lane. [`Word`] is what it needs of them; a plain `u32` is the reference,
//! and [`crate::vectors`] has the same for the vectors of processors. Masks are words of all ones or all zeros.

/// One 32-bit word in each of several lanes.
pub trait Word: Copy + std::fmt::Debug {
    /// How many lanes.
    const LANES: usize;

    /// The same word in all lanes.
    fn all(word: u32) -> Self;
    /// Another word in each lane, of a list of as many.
    fn of(words: &[u32]) -> Self;
    /// The word of a lane.
    fn get(&self, lane: usize) -> u32;
    /// Replaces the word of a lane.
    fn set(&mut self, lane: usize, word: u32);
    /// Writes all lanes to a list of as many.
    fn write(self, to: &mut [u32]);
    /// Sum modulo 2^32.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Difference modulo 2^32.
    #[must_use]
    fn minus(self, other: Self) -> Self;
    /// Product modulo 2^32.
    #[must_use]
    fn times(self, other: Self) -> Self;
    /// Upper half of the product.
    #[must_use]
    fn times_high(self, other: Self) -> Self;
    /// Bits of either.
    #[must_use]
    fn or(self, other: Self) -> Self;
    /// Bits of both.
    #[must_use]
    fn and(self, other: Self) -> Self;
    /// Bits that differ.
    #[must_use]
    fn xor(self, other: Self) -> Self;
    /// Shift to the left.
    #[must_use]
    fn left(self, bits: u32) -> Self;
    /// Shift to the right.
    #[must_use]
    fn right(self, bits: u32) -> Self;
    /// Shift to the left by another number of bits, below 32, in each lane.
    #[must_use]
    fn left_by(self, bits: Self) -> Self;
    /// Shift to the right, likewise.
    #[must_use]
    fn right_by(self, bits: Self) -> Self;
    /// Rotation to the left.
    #[must_use]
    fn rotate(self, bits: u32) -> Self;
    /// Number of leading zeros.
    #[must_use]
    fn leading_zeros(self) -> Self;
    /// Mask: below, without sign.
    #[must_use]
    fn below(self, other: Self) -> Self;
    /// Mask: below, with sign.
    #[must_use]
    fn below_signed(self, other: Self) -> Self;
    /// Mask: equal.
    #[must_use]
    fn equals(self, other: Self) -> Self;
    /// Of a mask: the first where it is set, the second elsewhere.
    #[must_use]
    fn choose(self, set: Self, clear: Self) -> Self;
    /// Whether any lane of a mask is set.
    fn any(self) -> bool;
    /// The words that a list holds at each lane's place; beyond its end, its last.
    #[must_use]
    fn look_up(self, list: &[u32]) -> Self;
    /// Writes a word to each lane's place of a list; beyond its end, to its last. No two lanes have one place.
    fn put(self, list: &mut [u32], places: Self);

    /// How often a loop goes round until the lanes that are not through are given up; a processor goes round for all.
    const ROUNDS: u32 = u32::MAX;

    /// Adds one at each lane's place of a list.
    #[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
    #[inline(always)]
    fn count_at(self, list: &mut [u32]) {
        self.look_up(list).plus(Self::all(1)).put(list, self);
    }

    /// Replaces all words of a list, a word of each lane after the other.
    fn change(list: &mut [u32], with: impl Fn(Self) -> Self) {
        for words in list.chunks_mut(Self::LANES) {
            with(Self::of(words)).write(words);
        }
    }
}

/// What follows from the instructions.
#[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
pub trait WordExt: Word {
    /// Mask: later on a clock that wraps, where instants lie less than 2^31 apart.
    #[inline(always)]
    #[must_use]
    fn after(self, other: Self) -> Self {
        Self::all(0).below_signed(self.minus(other))
    }

    /// All bits turned.
    #[inline(always)]
    #[must_use]
    fn not(self) -> Self {
        self.xor(Self::all(u32::MAX))
    }

    /// Mask: zero.
    #[inline(always)]
    #[must_use]
    fn is_zero(self) -> Self {
        self.equals(Self::all(0))
    }

    /// Adds one where a mask is set.
    #[inline(always)]
    #[must_use]
    fn count(self, mask: Self) -> Self {
        self.minus(mask)
    }

    /// Subtracts one where a mask is set.
    #[inline(always)]
    #[must_use]
    fn uncount(self, mask: Self) -> Self {
        self.plus(mask)
    }
}

impl<W: Word> WordExt for W {}

/// A sum that outgrows a word.
#[derive(Debug, Clone, Copy)]
pub struct Sum<W> {
    low: W,
    high: W,
}

#[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
impl<W: Word> Sum<W> {
    /// Zero.
    #[must_use]
    pub fn zero() -> Self {
        Self { low: W::all(0), high: W::all(0) }
    }

    /// Adds the words where a mask is set.
    #[inline(always)]
    pub fn add(&mut self, words: W, mask: W) {
        let words = words.and(mask);
        self.low = self.low.plus(words);
        self.high = self.high.count(self.low.below(words));
    }

    /// Adds one where a mask is set.
    #[inline(always)]
    pub fn count(&mut self, mask: W) {
        self.low = self.low.count(mask);
        self.high = self.high.count(self.low.is_zero().and(mask));
    }

    /// Its words.
    pub(crate) fn words(&mut self) -> [&mut W; 2] {
        [&mut self.low, &mut self.high]
    }

    /// Takes the sum of a lane and starts again from zero.
    pub fn take(&mut self, lane: usize) -> u64 {
        let sum = u64::from(self.high.get(lane)) << 32 | u64::from(self.low.get(lane));
        self.low.set(lane, 0);
        self.high.set(lane, 0);
        sum
    }
}

#[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
impl Word for u32 {
    const LANES: usize = 1;

    #[inline(always)]
    fn all(word: u32) -> Self {
        word
    }
    #[inline(always)]
    fn of(words: &[u32]) -> Self {
        words[0]
    }
    #[inline(always)]
    fn get(&self, _lane: usize) -> u32 {
        *self
    }
    #[inline(always)]
    fn set(&mut self, _lane: usize, word: u32) {
        *self = word;
    }
    #[inline(always)]
    fn write(self, to: &mut [u32]) {
        to[0] = self;
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
    #[inline(always)]
    fn times_high(self, other: Self) -> Self {
        ((u64::from(self) * u64::from(other)) >> 32) as u32
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }
    #[inline(always)]
    fn left(self, bits: u32) -> Self {
        self << bits
    }
    #[inline(always)]
    fn right(self, bits: u32) -> Self {
        self >> bits
    }
    #[inline(always)]
    fn left_by(self, bits: Self) -> Self {
        self << (bits & 31)
    }
    #[inline(always)]
    fn right_by(self, bits: Self) -> Self {
        self >> (bits & 31)
    }
    #[inline(always)]
    fn rotate(self, bits: u32) -> Self {
        self.rotate_left(bits)
    }
    #[inline(always)]
    fn leading_zeros(self) -> Self {
        u32::leading_zeros(self)
    }
    #[inline(always)]
    fn below(self, other: Self) -> Self {
        mask(self < other)
    }
    #[inline(always)]
    fn below_signed(self, other: Self) -> Self {
        mask((self as i32) < other as i32)
    }
    #[inline(always)]
    fn equals(self, other: Self) -> Self {
        mask(self == other)
    }
    #[inline(always)]
    fn choose(self, set: Self, clear: Self) -> Self {
        if self == 0 { clear } else { set }
    }
    #[inline(always)]
    fn any(self) -> bool {
        self != 0
    }
    #[inline(always)]
    fn look_up(self, list: &[u32]) -> Self {
        list[(self as usize).min(list.len() - 1)]
    }
    #[inline(always)]
    fn put(self, list: &mut [u32], places: Self) {
        let place = (places as usize).min(list.len() - 1);
        list[place] = self;
    }
}

#[expect(clippy::inline_always, reason = "part of the step")]
#[inline(always)]
fn mask(is_set: bool) -> u32 {
    if is_set { u32::MAX } else { 0 }
}

/// Twice as many lanes: what one half waits for, the other computes.
#[derive(Debug, Clone, Copy)]
pub struct Pair<W>(W, W);

macro_rules! both {
    ($($name:ident($self:ident $(, $other:ident: $kind:ty)*);)*) => {
        $(
            #[inline(always)]
            fn $name($self $(, $other: $kind)*) -> Self {
                Self($self.0.$name($($other.of_first()),*), $self.1.$name($($other.of_second()),*))
            }
        )*
    };
}

/// The halves of an argument; a number is the same in both.
trait Halves {
    type Half;
    fn of_first(&self) -> Self::Half;
    fn of_second(&self) -> Self::Half;
}

#[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
impl<W: Word> Halves for Pair<W> {
    type Half = W;
    #[inline(always)]
    fn of_first(&self) -> W {
        self.0
    }
    #[inline(always)]
    fn of_second(&self) -> W {
        self.1
    }
}

#[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
impl Halves for u32 {
    type Half = Self;
    #[inline(always)]
    fn of_first(&self) -> Self {
        *self
    }
    #[inline(always)]
    fn of_second(&self) -> Self {
        *self
    }
}

#[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
impl<W: Word> Word for Pair<W> {
    const LANES: usize = 2 * W::LANES;

    #[inline(always)]
    fn all(word: u32) -> Self {
        Self(W::all(word), W::all(word))
    }
    #[inline(always)]
    fn of(words: &[u32]) -> Self {
        Self(W::of(&words[..W::LANES]), W::of(&words[W::LANES..]))
    }
    #[inline(always)]
    fn get(&self, lane: usize) -> u32 {
        if lane < W::LANES { self.0.get(lane) } else { self.1.get(lane - W::LANES) }
    }
    #[inline(always)]
    fn set(&mut self, lane: usize, word: u32) {
        if lane < W::LANES { self.0.set(lane, word) } else { self.1.set(lane - W::LANES, word) }
    }
    #[inline(always)]
    fn write(self, to: &mut [u32]) {
        let (first, second) = to.split_at_mut(W::LANES);
        self.0.write(first);
        self.1.write(second);
    }
    both! {
        plus(self, other: Self);
        minus(self, other: Self);
        times(self, other: Self);
        times_high(self, other: Self);
        or(self, other: Self);
        and(self, other: Self);
        xor(self, other: Self);
        left(self, bits: u32);
        right(self, bits: u32);
        left_by(self, bits: Self);
        right_by(self, bits: Self);
        rotate(self, bits: u32);
        leading_zeros(self);
        below(self, other: Self);
        below_signed(self, other: Self);
        equals(self, other: Self);
        choose(self, set: Self, clear: Self);
    }
    #[inline(always)]
    fn any(self) -> bool {
        self.0.or(self.1).any()
    }
    #[inline(always)]
    fn look_up(self, list: &[u32]) -> Self {
        Self(self.0.look_up(list), self.1.look_up(list))
    }
    #[inline(always)]
    fn put(self, list: &mut [u32], places: Self) {
        self.0.put(list, places.0);
        self.1.put(list, places.1);
    }
}
