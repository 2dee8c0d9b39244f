//! The vectors of a processor: the instructions of [`Word`] for each of its sets, chosen when it runs.
//!
//! Arrays that a compiler should turn into vectors were tried first: as soon as one lane is read by itself it takes all of
//! them apart. M/M/1/50 at load 0.9 then went through 10 million frames a second on AVX-512, and 23 by instructions, on the
//! same busy machine.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "instructions are used after the processor was asked for them; places are clamped")
)]

use crate::program::Program;
use crate::state::Lanes;

/// Instructions that a group of lanes runs by. All give the same integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vectors {
    /// One lane, by what every processor has.
    Plain,
    /// AVX2: eight lanes.
    Avx2,
    /// AVX-512 (F, BW, CD, DQ, VL): two times sixteen lanes.
    Avx512,
    /// The vectors of WebAssembly: four lanes, where a module was compiled with them.
    Simd128,
}

impl Vectors {
    /// The widest that this processor has.
    #[must_use]
    pub fn widest() -> Self {
        Self::known().into_iter().find(|vectors| vectors.is_here()).unwrap_or(Self::Plain)
    }

    /// All, the widest first.
    #[must_use]
    pub fn known() -> [Self; 4] {
        [Self::Avx512, Self::Avx2, Self::Simd128, Self::Plain]
    }

    /// Whether this processor has them.
    #[must_use]
    pub fn is_here(self) -> bool {
        match self {
            Self::Plain => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
            Self::Simd128 => cfg!(all(target_arch = "wasm32", target_feature = "simd128")),
        }
    }

    /// Lanes of a group.
    #[must_use]
    pub fn lanes(self) -> usize {
        match self {
            Self::Plain => 1,
            Self::Simd128 => 4,
            Self::Avx2 => 8,
            Self::Avx512 => 32,
        }
    }
}

/// Takes lanes to their ends, by the instructions of their words.
pub(crate) trait Run: crate::words::Word {
    /// Takes every lane to its end.
    fn run(lanes: &mut Lanes<Self>, program: &Program);
}

impl Run for u32 {
    fn run(lanes: &mut Lanes<Self>, program: &Program) {
        lanes.run(program);
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[allow(clippy::wildcard_imports, reason = "sixty instructions")]
    use std::arch::x86_64::*;

    use super::{Lanes, Program, Run};
    use crate::words::{Pair, Word};

    /// Sixteen lanes. Only made where the processor has the instructions.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Avx512(__m512i);

    /// Eight lanes, likewise.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Avx2(__m256i);

    impl Run for Pair<Avx512> {
        fn run(lanes: &mut Lanes<Self>, program: &Program) {
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
            fn run(lanes: &mut Lanes<Pair<Avx512>>, program: &Program) {
                lanes.run(program);
            }
            assert!(super::Vectors::Avx512.is_here(), "AVX-512 is not on this processor");
            // SAFETY: the processor has these instructions, as was just asked.
            unsafe { run(lanes, program) }
        }
    }

    impl Run for Avx2 {
        fn run(lanes: &mut Lanes<Self>, program: &Program) {
            #[target_feature(enable = "avx2")]
            fn run(lanes: &mut Lanes<Avx2>, program: &Program) {
                lanes.run(program);
            }
            assert!(super::Vectors::Avx2.is_here(), "AVX2 is not on this processor");
            // SAFETY: the processor has these instructions, as was just asked.
            unsafe { run(lanes, program) }
        }
    }

    /// A method that is an expression of instructions.
    macro_rules! instructions {
        ($($name:ident($self:ident $(, $other:ident: $kind:ty)*) -> $result:ty { $value:expr })*) => {
            $(
                #[inline(always)]
                fn $name($self $(, $other: $kind)*) -> $result {
                    // SAFETY: the words were only made where the processor has the instructions; no memory is touched.
                    unsafe { $value }
                }
            )*
        };
    }

    #[expect(clippy::inline_always, reason = "each is an instruction or two, in a function that enables them")]
    impl Word for Avx512 {
        const LANES: usize = 16;

        #[inline(always)]
        fn all(word: u32) -> Self {
            // SAFETY: as above.
            Self(unsafe { _mm512_set1_epi32(word as i32) })
        }
        #[inline(always)]
        fn of(words: &[u32]) -> Self {
            assert!(words.len() >= Self::LANES, "a word for each lane");
            // SAFETY: there are as many words as lanes.
            Self(unsafe { _mm512_loadu_epi32(words.as_ptr().cast()) })
        }
        #[inline(always)]
        fn get(&self, lane: usize) -> u32 {
            let mut words = [0; Self::LANES];
            self.write(&mut words);
            words[lane]
        }
        #[inline(always)]
        fn set(&mut self, lane: usize, word: u32) {
            let mut words = [0; Self::LANES];
            self.write(&mut words);
            words[lane] = word;
            *self = Self::of(&words);
        }
        #[inline(always)]
        fn write(self, to: &mut [u32]) {
            assert!(to.len() >= Self::LANES, "a place for each lane");
            // SAFETY: there are as many places as lanes.
            unsafe { _mm512_storeu_epi32(to.as_mut_ptr().cast(), self.0) }
        }
        instructions! {
            plus(self, other: Self) -> Self { Self(_mm512_add_epi32(self.0, other.0)) }
            minus(self, other: Self) -> Self { Self(_mm512_sub_epi32(self.0, other.0)) }
            times(self, other: Self) -> Self { Self(_mm512_mullo_epi32(self.0, other.0)) }
            times_high(self, other: Self) -> Self {{
                let even = _mm512_srli_epi64(_mm512_mul_epu32(self.0, other.0), 32);
                let odd = _mm512_mul_epu32(_mm512_srli_epi64(self.0, 32), _mm512_srli_epi64(other.0, 32));
                Self(_mm512_mask_blend_epi32(0xaaaa, even, odd))
            }}
            or(self, other: Self) -> Self { Self(_mm512_or_si512(self.0, other.0)) }
            and(self, other: Self) -> Self { Self(_mm512_and_si512(self.0, other.0)) }
            xor(self, other: Self) -> Self { Self(_mm512_xor_si512(self.0, other.0)) }
            left(self, bits: u32) -> Self { Self(_mm512_sllv_epi32(self.0, _mm512_set1_epi32(bits as i32))) }
            right(self, bits: u32) -> Self { Self(_mm512_srlv_epi32(self.0, _mm512_set1_epi32(bits as i32))) }
            left_by(self, bits: Self) -> Self { Self(_mm512_sllv_epi32(self.0, bits.0)) }
            right_by(self, bits: Self) -> Self { Self(_mm512_srlv_epi32(self.0, bits.0)) }
            rotate(self, bits: u32) -> Self { Self(_mm512_rolv_epi32(self.0, _mm512_set1_epi32(bits as i32))) }
            leading_zeros(self) -> Self { Self(_mm512_lzcnt_epi32(self.0)) }
            below(self, other: Self) -> Self { Self(_mm512_movm_epi32(_mm512_cmplt_epu32_mask(self.0, other.0))) }
            below_signed(self, other: Self) -> Self { Self(_mm512_movm_epi32(_mm512_cmplt_epi32_mask(self.0, other.0))) }
            equals(self, other: Self) -> Self { Self(_mm512_movm_epi32(_mm512_cmpeq_epi32_mask(self.0, other.0))) }
            choose(self, set: Self, clear: Self) -> Self {
                Self(_mm512_mask_blend_epi32(_mm512_movepi32_mask(self.0), clear.0, set.0))
            }
            any(self) -> bool { _mm512_movepi32_mask(self.0) != 0 }
        }
        #[inline(always)]
        fn look_up(self, list: &[u32]) -> Self {
            assert!(!list.is_empty(), "a list has something");
            // SAFETY: no place lies beyond the end.
            unsafe {
                let places = _mm512_min_epu32(self.0, _mm512_set1_epi32(list.len() as i32 - 1));
                Self(_mm512_i32gather_epi32::<4>(places, list.as_ptr().cast()))
            }
        }
        #[inline(always)]
        fn put(self, list: &mut [u32], places: Self) {
            assert!(!list.is_empty(), "a list has something");
            // SAFETY: no place lies beyond the end.
            unsafe {
                let places = _mm512_min_epu32(places.0, _mm512_set1_epi32(list.len() as i32 - 1));
                _mm512_i32scatter_epi32::<4>(list.as_mut_ptr().cast(), places, self.0);
            }
        }
    }

    #[expect(clippy::inline_always, reason = "each is an instruction or a few, in a function that enables them")]
    impl Word for Avx2 {
        const LANES: usize = 8;

        #[inline(always)]
        fn rotate(self, bits: u32) -> Self {
            self.left(bits).or(self.right(32 - bits))
        }
        #[inline(always)]
        fn all(word: u32) -> Self {
            // SAFETY: as above.
            Self(unsafe { _mm256_set1_epi32(word as i32) })
        }
        #[inline(always)]
        fn of(words: &[u32]) -> Self {
            assert!(words.len() >= Self::LANES, "a word for each lane");
            // SAFETY: there are as many words as lanes.
            Self(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
        }
        #[inline(always)]
        fn get(&self, lane: usize) -> u32 {
            let mut words = [0; Self::LANES];
            self.write(&mut words);
            words[lane]
        }
        #[inline(always)]
        fn set(&mut self, lane: usize, word: u32) {
            let mut words = [0; Self::LANES];
            self.write(&mut words);
            words[lane] = word;
            *self = Self::of(&words);
        }
        #[inline(always)]
        fn write(self, to: &mut [u32]) {
            assert!(to.len() >= Self::LANES, "a place for each lane");
            // SAFETY: there are as many places as lanes.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), self.0) }
        }
        instructions! {
            plus(self, other: Self) -> Self { Self(_mm256_add_epi32(self.0, other.0)) }
            minus(self, other: Self) -> Self { Self(_mm256_sub_epi32(self.0, other.0)) }
            times(self, other: Self) -> Self { Self(_mm256_mullo_epi32(self.0, other.0)) }
            times_high(self, other: Self) -> Self {{
                let even = _mm256_srli_epi64(_mm256_mul_epu32(self.0, other.0), 32);
                let odd = _mm256_mul_epu32(_mm256_srli_epi64(self.0, 32), _mm256_srli_epi64(other.0, 32));
                Self(_mm256_blend_epi32(even, odd, 0b1010_1010))
            }}
            or(self, other: Self) -> Self { Self(_mm256_or_si256(self.0, other.0)) }
            and(self, other: Self) -> Self { Self(_mm256_and_si256(self.0, other.0)) }
            xor(self, other: Self) -> Self { Self(_mm256_xor_si256(self.0, other.0)) }
            left(self, bits: u32) -> Self { Self(_mm256_sllv_epi32(self.0, _mm256_set1_epi32(bits as i32))) }
            right(self, bits: u32) -> Self { Self(_mm256_srlv_epi32(self.0, _mm256_set1_epi32(bits as i32))) }
            left_by(self, bits: Self) -> Self { Self(_mm256_sllv_epi32(self.0, bits.0)) }
            right_by(self, bits: Self) -> Self { Self(_mm256_srlv_epi32(self.0, bits.0)) }
            leading_zeros(self) -> Self {{
                // The exponent of a float, of a word whose lower bits cannot round it up.
                let cleared = _mm256_andnot_si256(_mm256_srli_epi32(self.0, 1), self.0);
                let float = _mm256_castps_si256(_mm256_cvtepi32_ps(cleared));
                let zeros = _mm256_sub_epi32(_mm256_set1_epi32(158), _mm256_srli_epi32(float, 23));
                // 158 of zero becomes 32; a word whose first bit is set was negative.
                let zeros = _mm256_min_epi32(zeros, _mm256_set1_epi32(32));
                Self(_mm256_andnot_si256(_mm256_srai_epi32(self.0, 31), zeros))
            }}
            below(self, other: Self) -> Self {{
                let sign = _mm256_set1_epi32(i32::MIN);
                Self(_mm256_cmpgt_epi32(_mm256_xor_si256(other.0, sign), _mm256_xor_si256(self.0, sign)))
            }}
            below_signed(self, other: Self) -> Self { Self(_mm256_cmpgt_epi32(other.0, self.0)) }
            equals(self, other: Self) -> Self { Self(_mm256_cmpeq_epi32(self.0, other.0)) }
            choose(self, set: Self, clear: Self) -> Self { Self(_mm256_blendv_epi8(clear.0, set.0, self.0)) }
            any(self) -> bool { _mm256_movemask_epi8(self.0) != 0 }
        }
        #[inline(always)]
        fn look_up(self, list: &[u32]) -> Self {
            assert!(!list.is_empty(), "a list has something");
            // SAFETY: no place lies beyond the end.
            unsafe {
                let places = _mm256_min_epu32(self.0, _mm256_set1_epi32(list.len() as i32 - 1));
                Self(_mm256_i32gather_epi32::<4>(list.as_ptr().cast(), places))
            }
        }
        #[inline(always)]
        fn put(self, list: &mut [u32], places: Self) {
            let (mut words, mut at) = ([0; Self::LANES], [0; Self::LANES]);
            self.write(&mut words);
            places.write(&mut at);
            for (place, word) in at.into_iter().zip(words) {
                let place = (place as usize).min(list.len() - 1);
                list[place] = word;
            }
        }
    }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) use wasm::Simd128;

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm {
    #[allow(clippy::wildcard_imports, reason = "thirty instructions")]
    use std::arch::wasm32::*;

    use super::{Lanes, Program, Run};
    use crate::words::Word;

    /// Four lanes.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Simd128(v128);

    impl Run for Simd128 {
        fn run(lanes: &mut Lanes<Self>, program: &Program) {
            lanes.run(program);
        }
    }

    impl Simd128 {
        #[inline(always)]
        fn words(self) -> [u32; 4] {
            [
                u32x4_extract_lane::<0>(self.0),
                u32x4_extract_lane::<1>(self.0),
                u32x4_extract_lane::<2>(self.0),
                u32x4_extract_lane::<3>(self.0),
            ]
        }

        #[inline(always)]
        fn with(words: [u32; 4]) -> Self {
            Self(u32x4(words[0], words[1], words[2], words[3]))
        }

        #[inline(always)]
        fn each(self, other: Self, of: fn(u32, u32) -> u32) -> Self {
            let (one, other) = (self.words(), other.words());
            Self::with([0, 1, 2, 3].map(|lane| of(one[lane], other[lane])))
        }
    }

    #[expect(clippy::inline_always, reason = "each is an instruction or a few")]
    impl Word for Simd128 {
        const LANES: usize = 4;

        #[inline(always)]
        fn all(word: u32) -> Self {
            Self(u32x4_splat(word))
        }
        #[inline(always)]
        fn of(words: &[u32]) -> Self {
            Self::with([words[0], words[1], words[2], words[3]])
        }
        #[inline(always)]
        fn get(&self, lane: usize) -> u32 {
            self.words()[lane]
        }
        #[inline(always)]
        fn set(&mut self, lane: usize, word: u32) {
            let mut words = self.words();
            words[lane] = word;
            *self = Self::with(words);
        }
        #[inline(always)]
        fn write(self, to: &mut [u32]) {
            to[..4].copy_from_slice(&self.words());
        }
        #[inline(always)]
        fn plus(self, other: Self) -> Self {
            Self(u32x4_add(self.0, other.0))
        }
        #[inline(always)]
        fn minus(self, other: Self) -> Self {
            Self(u32x4_sub(self.0, other.0))
        }
        #[inline(always)]
        fn times(self, other: Self) -> Self {
            Self(u32x4_mul(self.0, other.0))
        }
        #[inline(always)]
        fn times_high(self, other: Self) -> Self {
            let (low, high) = (u64x2_extmul_low_u32x4(self.0, other.0), u64x2_extmul_high_u32x4(self.0, other.0));
            Self(u32x4_shuffle::<1, 3, 5, 7>(low, high))
        }
        #[inline(always)]
        fn or(self, other: Self) -> Self {
            Self(v128_or(self.0, other.0))
        }
        #[inline(always)]
        fn and(self, other: Self) -> Self {
            Self(v128_and(self.0, other.0))
        }
        #[inline(always)]
        fn xor(self, other: Self) -> Self {
            Self(v128_xor(self.0, other.0))
        }
        #[inline(always)]
        fn left(self, bits: u32) -> Self {
            // An instruction shifts by its number modulo 32.
            Self(u32x4_shl(self.0, bits))
        }
        #[inline(always)]
        fn right(self, bits: u32) -> Self {
            Self(u32x4_shr(self.0, bits))
        }
        #[inline(always)]
        fn left_by(self, bits: Self) -> Self {
            self.each(bits, |word, bits| word << (bits & 31))
        }
        #[inline(always)]
        fn right_by(self, bits: Self) -> Self {
            self.each(bits, |word, bits| word >> (bits & 31))
        }
        #[inline(always)]
        fn rotate(self, bits: u32) -> Self {
            self.left(bits).or(self.right(32 - bits))
        }
        #[inline(always)]
        fn leading_zeros(self) -> Self {
            Self::with(self.words().map(u32::leading_zeros))
        }
        #[inline(always)]
        fn below(self, other: Self) -> Self {
            Self(u32x4_lt(self.0, other.0))
        }
        #[inline(always)]
        fn below_signed(self, other: Self) -> Self {
            Self(i32x4_lt(self.0, other.0))
        }
        #[inline(always)]
        fn equals(self, other: Self) -> Self {
            Self(u32x4_eq(self.0, other.0))
        }
        #[inline(always)]
        fn choose(self, set: Self, clear: Self) -> Self {
            Self(v128_bitselect(set.0, clear.0, self.0))
        }
        #[inline(always)]
        fn any(self) -> bool {
            v128_any_true(self.0)
        }
        #[inline(always)]
        fn look_up(self, list: &[u32]) -> Self {
            Self::with(self.words().map(|place| list[(place as usize).min(list.len() - 1)]))
        }
        #[inline(always)]
        fn put(self, list: &mut [u32], places: Self) {
            for (place, word) in places.words().into_iter().zip(self.words()) {
                let place = (place as usize).min(list.len() - 1);
                list[place] = word;
            }
        }
    }
}
