//! AES: a payload enciphered with AES-128 in cipher block chaining (FIPS 197), by tables, as on a processor without
//! instructions for it (Daemen & Rijmen 1999, sec. 5.2.1).
//!
//! A workload only, not a safe cipher: the time of a table access reveals parts of the key.

use super::{Kernel, Packet};

const ROUNDS: usize = 10;
const BLOCK_BYTES: usize = 16;

/// Enciphers the whole blocks of payloads, with one key.
pub struct Aes {
    substitution: [u8; 256],
    /// Substitution and mixing of columns in one, for the first byte of a column; the others are turned.
    columns: [u32; 256],
    keys: [[u32; 4]; ROUNDS + 1],
}

fn doubled(value: u8) -> u8 {
    (value << 1) ^ if value & 0x80 == 0 { 0 } else { 0x1b }
}

/// The substitution (FIPS 197, sec. 5.1.1): the inverse in GF(2^8), then an affine map.
fn substitution() -> [u8; 256] {
    let mut table = [0x63; 256];
    // All values but 0 as powers of 3, beside their inverses: the powers of 1/3 = 0xf6.
    let (mut value, mut inverse) = (1u8, 1u8);
    for _ in 0..255 {
        value ^= doubled(value);
        // Times 0xf6 = 11110110.
        let mut product = 0;
        let mut shifted = inverse;
        for bit in 0..8 {
            if 0xf6 >> bit & 1 == 1 {
                product ^= shifted;
            }
            shifted = doubled(shifted);
        }
        inverse = product;
        let turned = (1..5).fold(inverse, |sum, bits| sum ^ inverse.rotate_left(bits));
        table[usize::from(value)] = turned ^ 0x63;
    }
    table
}

impl Aes {
    /// A cipher with a key of 128 bits.
    pub fn new(key: [u8; 16]) -> Self {
        let substitution = substitution();
        let columns = std::array::from_fn(|byte| {
            let value = substitution[byte];
            u32::from_be_bytes([doubled(value), value, value, doubled(value) ^ value])
        });
        // FIPS 197, sec. 5.2.
        let mut words = [0u32; 4 * (ROUNDS + 1)];
        for (word, bytes) in words.iter_mut().zip(key.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        let mut constant = 1;
        for at in 4..words.len() {
            let mut word = words[at - 1];
            if at % 4 == 0 {
                let bytes = word.rotate_left(8).to_be_bytes().map(|byte| substitution[usize::from(byte)]);
                word = u32::from_be_bytes(bytes) ^ u32::from(constant) << 24;
                constant = doubled(constant);
            }
            words[at] = words[at - 4] ^ word;
        }
        let keys = std::array::from_fn(|round| std::array::from_fn(|column| words[4 * round + column]));
        Self { substitution, columns, keys }
    }

    fn block(&self, block: [u32; 4]) -> [u32; 4] {
        let byte = |word: u32, index: usize| usize::from(word.to_be_bytes()[index]);
        let mut state: [u32; 4] = std::array::from_fn(|column| block[column] ^ self.keys[0][column]);
        for key in &self.keys[1..ROUNDS] {
            state = std::array::from_fn(|column| {
                self.columns[byte(state[column], 0)]
                    ^ self.columns[byte(state[(column + 1) % 4], 1)].rotate_right(8)
                    ^ self.columns[byte(state[(column + 2) % 4], 2)].rotate_right(16)
                    ^ self.columns[byte(state[(column + 3) % 4], 3)].rotate_right(24)
                    ^ key[column]
            });
        }
        std::array::from_fn(|column| {
            let bytes = std::array::from_fn(|index| self.substitution[byte(state[(column + index) % 4], index)]);
            u32::from_be_bytes(bytes) ^ self.keys[ROUNDS][column]
        })
    }

    fn encipher(&self, payload: &[u8], out: &mut [u8]) -> usize {
        let word = |bytes: &[u8], at: usize| {
            u32::from_be_bytes([bytes[4 * at], bytes[4 * at + 1], bytes[4 * at + 2], bytes[4 * at + 3]])
        };
        let mut chained = [0; 4];
        let mut done = 0;
        for (block, out) in payload.chunks_exact(BLOCK_BYTES).zip(out.chunks_exact_mut(BLOCK_BYTES)) {
            chained = self.block(std::array::from_fn(|at| word(block, at) ^ chained[at]));
            for (out_word, word) in out.chunks_exact_mut(4).zip(chained) {
                out_word.copy_from_slice(&word.to_be_bytes());
            }
            done += BLOCK_BYTES;
        }
        done
    }
}

impl Kernel for Aes {
    fn process(&mut self, packet: &mut Packet<'_>) -> u64 {
        let payload = &packet.frame[packet.payload..packet.end];
        self.encipher(payload, packet.out) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_what_the_standard_says_and_a_chain_what_the_nist_says() {
        let bytes = |hex: u128| hex.to_be_bytes();
        // FIPS 197, appendix B.
        let aes = Aes::new(bytes(0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c));
        let mut out = [0; 16];
        aes.encipher(&bytes(0x3243_f6a8_885a_308d_3131_98a2_e037_0734), &mut out);
        assert_eq!(out, bytes(0x3925_841d_02dc_09fb_dc11_8597_196a_0b32));
        // NIST SP 800-38A, F.2.1, whose first block is mixed with its initial vector here.
        let first = 0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a ^ 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f;
        let plain = [bytes(first), bytes(0xae2d_8a57_1e03_ac9c_9eb7_6fac_45af_8e51)].concat();
        let mut out = [0; 32];
        assert_eq!(aes.encipher(&plain, &mut out), 32);
        assert_eq!(out[..16], bytes(0x7649_abac_8119_b246_cee9_8e9b_12e9_197d));
        assert_eq!(out[16..], bytes(0x5086_cb9b_5072_19ee_95db_113a_9176_78b2));
    }
}
