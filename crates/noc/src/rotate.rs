//! Rotating priorities over the bits of a word.

/// The first set bit at or after `from`, else the first of all. `word` is not 0; `from` may be 64, which is 0.
#[inline]
#[must_use]
pub fn first_from(word: u64, from: u8) -> u32 {
    // Sums instead of a branch, which would be unpredictable.
    (word.rotate_right(u32::from(from)).trailing_zeros() + u32::from(from)) & 63
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_finds_what_a_walk_round_the_bits_finds(word in 1_u64.., from in 0_u8..=64) {
            let walked = (0..64).map(|step| (u32::from(from) + step) % 64).find(|bit| word >> bit & 1 == 1);
            prop_assert_eq!(Some(first_from(word, from)), walked);
        }
    }
}
