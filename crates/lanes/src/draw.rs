//! The rule of draws: a number belongs to what it is drawn for, not to its place in a stream.
//!
//! An arrival is drawn from (cell, source, number within the cell), a service from (tick of its start, server). So a
//! draw can be made from anywhere, without those before it, and two trajectories that start a service in the same tick
//! have the same service. The generator is Threefry-2x32 with 13 rounds (Salmon, Moraes, Dror and Shaw, "Parallel
//! random numbers: as easy as 1, 2, 3", SC 2011): a block cipher of a counter, which needs additions, rotations and
//! exclusive ors alone.

use crate::words::{Word, WordExt};

/// The key of all draws of one purpose: a replication of a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub [u32; 2]);

/// What numbers are drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// When a frame comes, and what kind of frame it is.
    Arrival,
    /// How long a service takes.
    Service,
    /// How long it takes from an interrupt until its core is asked for.
    WakeUp,
    /// When a core's work is interrupted, and for how long.
    Interruption,
    /// How long the pause before a burst is, of how many frames the burst, and which they are.
    Burst,
}

impl Key {
    /// The key of a purpose in a replication of a seed.
    #[must_use]
    pub fn new(seed: u64, replication: u64, purpose: Purpose) -> Self {
        let mut state = mix(seed);
        for word in [replication, purpose as u64] {
            state = mix(state ^ mix(word.wrapping_add(0x9e37_79b9_7f4a_7c15)));
        }
        Self([state as u32, (state >> 32) as u32])
    }
}

/// `SplitMix64`: a bijection of 64-bit words that scatters neighbours (Steele, Lea and Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Threefry-2x32-13 of a counter: two random words in each lane.
#[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
#[inline(always)]
#[must_use]
pub fn threefry<W: Word>(key: Key, counter: [W; 2]) -> [W; 2] {
    let [k0, k1] = key.0;
    let keys = [k0, k1, 0x1bd1_1bda ^ k0 ^ k1];
    let [mut x, mut y] = [counter[0].plus(W::all(k0)), counter[1].plus(W::all(k1))];
    // Written out, for a loop would keep its rotations in memory.
    macro_rules! mix {
        ($($rotation:literal)*) => { $( x = x.plus(y); y = y.rotate($rotation).xor(x); )* };
    }
    let inject = |x: W, y: W, turn: u32| {
        let [first, second] = [turn % 3, (turn + 1) % 3].map(|place| keys[place as usize]);
        (x.plus(W::all(first)), y.plus(W::all(second.wrapping_add(turn))))
    };
    mix!(13 15 26 6);
    (x, y) = inject(x, y, 1);
    mix!(17 29 16 24);
    (x, y) = inject(x, y, 2);
    mix!(13 15 26 6);
    (x, y) = inject(x, y, 3);
    mix!(17);
    [x, y]
}

/// Fraction bits of [`exponential`].
pub const UNIT_BITS: u32 = 27;

const LN_2: u32 = 93_032_640;

/// `ln(1 + f) / f` for 0 <= f <= 1, from the constant on, signs alternate, 31 fraction bits: the polynomial of degree 6
/// through Chebyshev's points. It is off by at most 9.1e-7 of a mean, by 1.0e-8 on average.
const SERIES: [u32; 7] = [2_147_480_993, 1_073_466_766, 711_075_900, 504_977_854, 320_908_325, 142_996_748, 30_500_336];

/// An exponential of mean 1 from a random word, [`UNIT_BITS`] fraction bits: `-ln((word | 1) / 2^32)`, at most 22.2.
///
/// With `U = 2^-(z + 1) (1 + f)`, z the leading zeros, it is `(z + 1) ln 2 - ln(1 + f)`.
#[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
#[inline(always)]
#[must_use]
pub fn exponential<W: Word>(word: W) -> W {
    let odd = word.or(W::all(1));
    let zeros = odd.leading_zeros();
    let fraction = odd.left_by(zeros).left(1);
    let mut sum = W::all(SERIES[6]);
    for coefficient in SERIES[..6].iter().rev() {
        sum = W::all(*coefficient).minus(fraction.times_high(sum));
    }
    let logarithm = fraction.times_high(sum).right(31 - UNIT_BITS);
    // Where the polynomial exceeds ln 2, with U near 1, the difference would wrap to 32 means.
    let bits = zeros.plus(W::all(1)).times(W::all(LN_2));
    bits.minus(logarithm).and(bits.below(logarithm).not())
}

/// `value · factor / 2^shift`, floored, for products below 2^(32 + shift) and a shift from 1 to 31.
#[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
#[inline(always)]
#[must_use]
pub fn scaled<W: Word>(value: W, factor: W, shift: u32) -> W {
    value.times_high(factor).left(32 - shift).or(value.times(factor).right(shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(key: Key, counter: [u32; 2]) -> [u32; 2] {
        threefry(key, counter)
    }

    #[test]
    fn it_is_the_published_cipher() {
        // Random123's known answers for threefry2x32 with 13 rounds (kat_vectors).
        assert_eq!(word(Key([0, 0]), [0, 0]), [0x9d1c_5ec6, 0x8bd5_0731]);
        assert_eq!(word(Key([u32::MAX, u32::MAX]), [u32::MAX, u32::MAX]), [0xfd36_d048, 0x2d17_272c]);
        assert_eq!(word(Key([0x1319_8a2e, 0x0370_7344]), [0x243f_6a88, 0x85a3_08d3]), [0xba3e_4725, 0xf27d_669e]);
    }

    #[test]
    fn an_exponential_is_minus_the_logarithm() {
        let unit = f64::from(1_u32 << UNIT_BITS);
        let value = |word| f64::from(exponential(word)) / unit;
        let mut worst = 0.0_f64;
        for word in (0..=u32::MAX).step_by(65_537).chain(0..4096).chain(u32::MAX - 4096..=u32::MAX) {
            let exact = -(f64::from(word | 1) / 4_294_967_296.0).ln();
            worst = worst.max((value(word) - exact).abs());
        }
        assert!(worst < 1e-6, "{worst}");
    }
}
