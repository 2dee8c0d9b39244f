//! REED: a payload with the check bytes of a Reed-Solomon code, 32 to each 223 bytes.
//!
//! Reed & Solomon 1960. The code is RS(255, 223) over GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 and
//! the roots 2^0 to 2^31. It corrects 16 wrong bytes, or 32 at known positions.

use super::{Kernel, Packet};

const CHECK_BYTES: usize = 32;
const DATA_BYTES: usize = 255 - CHECK_BYTES;
const POLYNOMIAL: u32 = 0x11d;

/// Powers of 2 twice over, and logarithms, in GF(2^8).
struct Field {
    powers: [u8; 510],
    logarithms: [u8; 256],
}

impl Field {
    fn new() -> Self {
        let mut field = Self { powers: [0; 510], logarithms: [0; 256] };
        let mut value = 1u32;
        for power in 0..255 {
            field.powers[power] = value as u8;
            field.powers[power + 255] = value as u8;
            field.logarithms[value as usize] = power as u8;
            value <<= 1;
            if value > 255 {
                value ^= POLYNOMIAL;
            }
        }
        field
    }

    fn product(&self, a: u8, b: u8) -> u8 {
        if a == 0 || b == 0 {
            return 0;
        }
        self.powers[usize::from(self.logarithms[usize::from(a)]) + usize::from(self.logarithms[usize::from(b)])]
    }
}

/// Encodes payloads.
pub struct Reed {
    field: Field,
    /// Logarithms of the generator's coefficients, the highest power (which is 1) left out.
    generator: [u8; CHECK_BYTES],
}

impl Reed {
    /// The code.
    pub fn new() -> Self {
        let field = Field::new();
        let mut product = vec![1u8];
        for root in 0..CHECK_BYTES {
            // Times (x - 2^root), which is x + 2^root here.
            let mut next = product.clone();
            next.push(0);
            for (at, &coefficient) in product.iter().enumerate() {
                next[at + 1] ^= field.product(coefficient, field.powers[root]);
            }
            product = next;
        }
        // The generator of this code has no coefficient that is 0.
        let generator = std::array::from_fn(|at| field.logarithms[usize::from(product[at + 1])]);
        Self { field, generator }
    }

    /// The check bytes of some data: the remainder of its division by the generator.
    fn check_bytes(&self, data: &[u8]) -> [u8; CHECK_BYTES] {
        let mut rest = [0u8; CHECK_BYTES];
        for &byte in data {
            let lead = byte ^ rest[0];
            rest.copy_within(1.., 0);
            rest[CHECK_BYTES - 1] = 0;
            if lead != 0 {
                let logarithm = usize::from(self.field.logarithms[usize::from(lead)]);
                for (symbol, &coefficient) in rest.iter_mut().zip(&self.generator) {
                    *symbol ^= self.field.powers[logarithm + usize::from(coefficient)];
                }
            }
        }
        rest
    }
}

impl Kernel for Reed {
    /// Writes the data with its check bytes and returns the number of bytes.
    fn process(&mut self, packet: &mut Packet<'_>) -> u64 {
        let payload = &packet.frame[packet.payload..packet.end];
        let mut written = 0;
        for data in payload.chunks(DATA_BYTES) {
            let check = self.check_bytes(data);
            let Some(out) = packet.out.get_mut(written..written + data.len() + CHECK_BYTES) else { break };
            out[..data.len()].copy_from_slice(data);
            out[data.len()..].copy_from_slice(&check);
            written += data.len() + CHECK_BYTES;
        }
        written as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::packets::tests::of_size;
    use crate::workload::request::Content;

    /// The product without tables: shift and add.
    fn slow_product(mut a: u8, mut b: u8) -> u8 {
        let mut product = 0;
        while b > 0 {
            if b & 1 == 1 {
                product ^= a;
            }
            a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { (POLYNOMIAL & 0xff) as u8 };
            b >>= 1;
        }
        product
    }

    fn value_at(word: &[u8], point: u8) -> u8 {
        word.iter().fold(0, |value, &byte| slow_product(value, point) ^ byte)
    }

    fn power_of_two(exponent: usize) -> u8 {
        (0..exponent).fold(1, |value, _| slow_product(value, 2))
    }

    /// Computes the missing bytes at known positions: solves the equations of the roots by Gaussian elimination.
    fn mended(word: &mut [u8], missing: &[usize]) {
        let inverse = |value: u8| (1..=255).find(|&b| slow_product(value, b) == 1).unwrap();
        for &at in missing {
            word[at] = 0;
        }
        let mut rows: Vec<Vec<u8>> = (0..missing.len())
            .map(|root| {
                let point = power_of_two(root);
                let weight = |&at: &usize| (at + 1..word.len()).fold(1, |value, _| slow_product(value, point));
                missing.iter().map(weight).chain([value_at(word, point)]).collect()
            })
            .collect();
        for column in 0..missing.len() {
            let pivot = (column..rows.len()).find(|&row| rows[row][column] != 0).unwrap();
            rows.swap(column, pivot);
            let factor = inverse(rows[column][column]);
            rows[column].iter_mut().for_each(|value| *value = slow_product(*value, factor));
            let pivot = rows[column].clone();
            for (_, row) in rows.iter_mut().enumerate().filter(|&(row, _)| row != column) {
                let factor = row[column];
                row.iter_mut().zip(&pivot).for_each(|(value, &b)| *value ^= slow_product(factor, b));
            }
        }
        for (row, &at) in rows.iter().zip(missing) {
            word[at] = row[missing.len()];
        }
    }

    #[test]
    fn code_words_are_zero_at_every_root_and_come_back_from_as_many_losses_as_check_bytes() {
        let mut reed = Reed::new();
        let mut packets = of_size(1518, 2, Content::Random);
        for number in 0..2 {
            let mut packet = packets.packet(number);
            let payload = packet.payload().to_vec();
            let bytes = reed.process(&mut packet) as usize;
            assert_eq!(bytes, payload.len() + payload.len().div_ceil(DATA_BYTES) * CHECK_BYTES);
            let words: Vec<_> = packet.out[..bytes].chunks(255).collect();
            for (word, data) in words.iter().zip(payload.chunks(DATA_BYTES)) {
                assert_eq!(&word[..data.len()], data);
                assert!((0..CHECK_BYTES).all(|root| value_at(word, power_of_two(root)) == 0));
                let missing: Vec<usize> = (0..CHECK_BYTES).map(|lost| (lost * 7 + 3) % word.len()).collect();
                let mut lossy = word.to_vec();
                for &at in &missing {
                    lossy[at] = 0xaa;
                }
                mended(&mut lossy, &missing);
                assert_eq!(lossy, *word);
            }
        }
    }
}
