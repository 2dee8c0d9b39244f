//! `increase(b)`, `decrease(b)` and `sum(b)`: arithmetic on fields that have been parsed.

use crate::batch::Words;

/// `increase(b)`: adds `by` to the field of `B` bytes at byte `at` of each value, modulo `256^B`.
///
/// The field is in network byte order and lies within one word; `B` is 1 to 8. Source: Baldi & Sapio 2018, sec. 2.1,
/// operation 3.
#[inline]
pub fn increase<const B: usize, const W: usize>(fields: &mut Words<W>, count: usize, at: usize, by: u64) {
    const { assert!(B >= 1 && B <= 8) };
    assert!(at % 8 + B <= 8 && at / 8 < W, "the field lies within one word");
    let mask = (u64::MAX >> (64 - 8 * B)) << (8 * (at % 8));
    let turn = 64 - 8 * B as u32;
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
}

/// `decrease(b)`: takes `by` from the field of `B` bytes at byte `at` of each value, modulo `256^B`.
///
/// Says which frames (bit `i`: frame `i`) had no more than `by`: their time to live is used up (RFC 1812, sec. 5.3.1).
/// Source: Baldi & Sapio 2018, sec. 2.1, operation 3.
#[inline]
pub fn decrease<const B: usize, const W: usize>(fields: &mut Words<W>, count: usize, at: usize, by: u64) -> u32 {
    const { assert!(B >= 1 && B <= 8) };
    assert!(at % 8 + B <= 8 && at / 8 < W, "the field lies within one word");
    let low = u64::MAX >> (64 - 8 * B);
    let mask = low << (8 * (at % 8));
    let turn = 64 - 8 * B as u32;
    let mut used_up = 0;
    for (frame, field) in fields.iter_mut().enumerate().take(count) {
        let word = &mut field[at / 8];
        let old = *word >> (8 * (at % 8));
        let number = if B == 1 { old & low } else { old.swap_bytes() >> turn };
        let less = number.wrapping_sub(by);
        let new = if B == 1 { less } else { (less << turn).swap_bytes() };
        used_up |= u32::from(number <= by) << frame;
        *word = (*word & !mask) | ((new << (8 * (at % 8))) & mask);
    }
    used_up
}

/// `sum(b)`: adds two operands of `8·W` bytes word by word, each modulo `2^64`; the sum takes the place of the first.
///
/// Source: Baldi & Sapio 2018, sec. 2.1, operation 4.
#[inline]
pub fn sum<const W: usize>(operands: &mut Words<W>, others: &Words<W>, count: usize) {
    for (operand, other) in operands.iter_mut().zip(others).take(count) {
        for (word, more) in operand.iter_mut().zip(other) {
            *word = word.wrapping_add(*more);
        }
    }
}
