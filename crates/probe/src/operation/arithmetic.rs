//! `increase(b)`, `decrease(b)` and `sum(b)`: arithmetic on fields that have been parsed.

use crate::batch::{Words, with_count};

/// `increase(b)`: adds `by` to the field of `B` bytes at byte `at` of each value, modulo `256^B`.
///
/// The field is in network byte order and lies within one word; `B` is 1 to 8. Source: Baldi & Sapio 2018, sec. 2.1,
/// operation 3.
///
/// # Panics
///
/// If the field does not lie within one word.
#[inline]
pub fn increase<const B: usize, const W: usize>(fields: &mut Words<W>, count: usize, at: usize, by: u64) {
    const { assert!(B >= 1 && B <= 8) };
    assert!(at % 8 + B <= 8 && at / 8 < W, "the field lies within one word");
    let mask = (u64::MAX >> (64 - 8 * B)) << (8 * (at % 8));
    let turn = 64 - 8 * B as u32;
    with_count!(count, {
        for field in fields.iter_mut().take(count) {
            let word = &mut field[at / 8];
            let old = *word >> (8 * (at % 8));
            // Network order to number and back; for a single byte there is nothing to turn.
            let new = if B == 1 {
                old.wrapping_add(by)
            } else {
                ((old.swap_bytes() >> turn).wrapping_add(by) << turn).swap_bytes()
            };
            *word = (*word & !mask) | ((new << (8 * (at % 8))) & mask);
        }
    });
}

/// `decrease(b)`: takes `by` from the field of `B` bytes at byte `at` of each value, modulo `256^B`.
///
/// Says which frames (bit `i`: frame `i`) had no more than `by`: their time to live is used up (RFC 1812, sec. 5.3.1).
/// Source: Baldi & Sapio 2018, sec. 2.1, operation 3.
///
/// # Panics
///
/// If the field does not lie within one word.
#[inline]
pub fn decrease<const B: usize, const W: usize>(fields: &mut Words<W>, count: usize, at: usize, by: u64) -> u32 {
    const { assert!(B >= 1 && B <= 8) };
    assert!(at % 8 + B <= 8 && at / 8 < W, "the field lies within one word");
    let low = u64::MAX >> (64 - 8 * B);
    let mask = low << (8 * (at % 8));
    let turn = 64 - 8 * B as u32;
    let mut used_up = 0;
    with_count!(count, {
        for (frame, field) in fields.iter_mut().enumerate().take(count) {
            let word = &mut field[at / 8];
            let old = *word >> (8 * (at % 8));
            let number = if B == 1 { old & low } else { old.swap_bytes() >> turn };
            let less = number.wrapping_sub(by);
            let new = if B == 1 { less } else { (less << turn).swap_bytes() };
            used_up |= u32::from(number <= by) << frame;
            *word = (*word & !mask) | ((new << (8 * (at % 8))) & mask);
        }
    });
    used_up
}

/// `sum(b)`: adds two operands of `8·W` bytes word by word, each modulo `2^64`; the sum takes the place of the first.
///
/// Source: Baldi & Sapio 2018, sec. 2.1, operation 4.
#[inline]
pub fn sum<const W: usize>(operands: &mut Words<W>, others: &Words<W>, count: usize) {
    with_count!(count, {
        for (operand, other) in operands.iter_mut().zip(others).take(count) {
            for (word, more) in operand.iter_mut().zip(other) {
                *word = word.wrapping_add(*more);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::BATCH_FRAMES;

    /// The same on the bytes of a field, as a number of 64 bits.
    fn oracle<const B: usize>(fields: &[[u64; 2]], at: usize, change: impl Fn(u64) -> u64) -> Vec<[u64; 2]> {
        let changed = |field: &[u64; 2]| {
            let mut bytes: [u8; 16] = [field[0].to_le_bytes(), field[1].to_le_bytes()].concat().try_into().unwrap();
            let number = bytes[at..at + B].iter().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
            bytes[at..at + B].copy_from_slice(&change(number).to_be_bytes()[8 - B..]);
            [0, 8].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()))
        };
        fields.iter().map(changed).collect()
    }

    fn agrees<const B: usize>(values: &[[u64; 2]], at: usize, by: u64) {
        let mut fields: Words<2> = [[0; 2]; BATCH_FRAMES];
        fields[..values.len()].copy_from_slice(values);
        let mut more = fields;
        increase::<B, 2>(&mut more, values.len(), at, by);
        assert_eq!(more[..values.len()], oracle::<B>(values, at, |number| number.wrapping_add(by)));
        let used_up = decrease::<B, 2>(&mut fields, values.len(), at, by);
        assert_eq!(fields[..values.len()], oracle::<B>(values, at, |number| number.wrapping_sub(by)));
        for (frame, value) in values.iter().enumerate() {
            let bytes: Vec<u8> = value.iter().flat_map(|word| word.to_le_bytes()).collect();
            let number = bytes[at..at + B].iter().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
            assert_eq!(used_up >> frame & 1 == 1, number <= by);
        }
    }

    proptest! {
        #[test]
        fn fields_count_up_and_down_in_network_order(
            values in prop::collection::vec(
                prop_oneof![any::<[u64; 2]>(), Just([0, u64::MAX]), Just([u64::MAX, 0]), Just([1, 1 << 56])], 1..=32),
            by in prop_oneof![0u64..3, any::<u32>().prop_map(u64::from)],
            word in 0usize..2,
        ) {
            agrees::<1>(&values, 8 * word + 5, by);
            agrees::<2>(&values, 8 * word + 2, by);
            agrees::<4>(&values, 8 * word + 4, by);
            agrees::<6>(&values, 8 * word + 1, by);
            agrees::<8>(&values, 8 * word, by);
        }
    }

    #[test]
    fn operands_are_added_word_by_word() {
        let mut operands = [[1, u64::MAX]; BATCH_FRAMES];
        sum(&mut operands, &[[2, 3]; BATCH_FRAMES], 2);
        assert_eq!(operands[..3], [[3, 2], [3, 2], [1, u64::MAX]]);
    }
}
