//! `crc_hash(b)`: CRC-32C of a key, as switches and network cards spread flows with it.
#![allow(unsafe_code, reason = "the processor's CRC instruction")]

use crate::batch::{BATCH_FRAMES, Words};

/// CRC-32C (RFC 3720, sec. 12.1, and its appendix B.4) of some words in the byte order of memory.
#[must_use]
pub fn crc32c(words: &[u64]) -> u32 {
    !words.iter().fold(u32::MAX, |crc, &word| step(crc, word))
}

/// `crc_hash(b)`: CRC-32C of the `b = 8·W` bytes of each key, with the SSE 4.2 instruction where there is one.
#[inline]
pub fn crc_hash<const W: usize>(keys: &Words<W>, count: usize, hashes: &mut [u32; BATCH_FRAMES]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has SSE 4.2.
        unsafe { with_instruction(keys, count, hashes) };
        return;
    }
    for (hash, key) in hashes.iter_mut().zip(keys).take(count) {
        *hash = crc32c(key);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn with_instruction<const W: usize>(keys: &Words<W>, count: usize, hashes: &mut [u32; BATCH_FRAMES]) {
    for (hash, key) in hashes.iter_mut().zip(keys).take(count) {
        let mut crc = u64::from(u32::MAX);
        for &word in key {
            crc = std::arch::x86_64::_mm_crc32_u64(crc, word);
        }
        *hash = !(crc as u32);
    }
}

/// One word further, a byte at a time.
fn step(crc: u32, word: u64) -> u32 {
    word.to_le_bytes().iter().fold(crc, |crc, &byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

static TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            // The polynomial 0x1edc6f41 with its bits turned around.
            crc = (crc >> 1) ^ (0x82f6_3b78 * (crc & 1));
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    type Vector = (fn(u8) -> u8, [u8; 4]);

    /// RFC 3720, appendix B.4: 32 bytes of zeros, of ones, and counting up. The RFC lists the bytes of the CRC as
    /// they are sent, the lowest first.
    const VECTORS: [Vector; 4] = [
        (|_| 0, [0xaa, 0x36, 0x91, 0x8a]),
        (|_| 0xff, [0x43, 0xab, 0xa8, 0x62]),
        (|index| index, [0x4e, 0x79, 0xdd, 0x46]),
        (|index| 31 - index, [0x5c, 0xdb, 0x3f, 0x11]),
    ];

    #[test]
    fn both_ways_give_the_vectors_of_rfc_3720() {
        for (byte, crc) in VECTORS {
            let mut key = [0; 4];
            for (index, word) in key.iter_mut().enumerate() {
                *word = u64::from_le_bytes(std::array::from_fn(|within| byte((8 * index + within) as u8)));
            }
            assert_eq!(crc32c(&key), u32::from_le_bytes(crc));
            let mut hashes = [0; BATCH_FRAMES];
            crc_hash(&[key; BATCH_FRAMES], 31, &mut hashes);
            assert_eq!(hashes[..31], [u32::from_le_bytes(crc); 31]);
            assert_eq!(hashes[31], 0);
        }
    }
}
