//! MD5: the digest of each payload (RFC 1321).
//!
//! A workload only: MD5 is broken.

use super::{Kernel, Packet};

const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// Computes digests.
pub struct Md5 {
    sines: [u32; 64],
}

impl Md5 {
    /// The table of sines (RFC 1321, sec. 3.4).
    pub fn new() -> Self {
        Self { sines: std::array::from_fn(|at| ((at as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32) }
    }

    fn block(&self, state: &mut [u32; 4], block: &[u8; 64]) {
        let words: [u32; 16] = std::array::from_fn(|at| {
            u32::from_le_bytes([block[4 * at], block[4 * at + 1], block[4 * at + 2], block[4 * at + 3]])
        });
        let [mut a, mut b, mut c, mut d] = *state;
        for step in 0..64 {
            let (mixed, word) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), (7 * step) % 16),
            };
            let sum = a.wrapping_add(mixed).wrapping_add(self.sines[step]).wrapping_add(words[word]);
            (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4])));
        }
        for (sum, value) in state.iter_mut().zip([a, b, c, d]) {
            *sum = sum.wrapping_add(value);
        }
    }

    fn digest(&self, bytes: &[u8]) -> [u8; 16] {
        let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
        let mut rest = bytes;
        while let Some((block, behind)) = rest.split_first_chunk::<64>() {
            self.block(&mut state, block);
            rest = behind;
        }
        let mut last = [0; 64];
        last[..rest.len()].copy_from_slice(rest);
        last[rest.len()] = 0x80;
        if rest.len() >= 56 {
            self.block(&mut state, &last);
            last.fill(0);
        }
        last[56..].copy_from_slice(&(8 * bytes.len() as u64).to_le_bytes());
        self.block(&mut state, &last);
        let mut digest = [0; 16];
        for (out_word, word) in digest.chunks_exact_mut(4).zip(state) {
            out_word.copy_from_slice(&word.to_le_bytes());
        }
        digest
    }
}

impl Kernel for Md5 {
    fn process(&mut self, packet: &mut Packet<'_>) -> u64 {
        let digest = self.digest(&packet.frame[packet.payload..packet.end]);
        packet.out[..16].copy_from_slice(&digest);
        16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_rfc() {
        // RFC 1321, appendix A.5.
        let long = "1234567890".repeat(8);
        for (text, digest) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"),
            (&long, "57edf4a22be3c955ac49da2e2107b67a"),
        ] {
            let known = u128::from_str_radix(digest, 16).unwrap();
            assert_eq!(Md5::new().digest(text.as_bytes()), known.to_be_bytes(), "{text}");
        }
    }
}
