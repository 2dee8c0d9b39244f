//! CAST: a payload enciphered with CAST-128 in cipher block chaining (RFC 2144).

use cast5::Cast5;
use cast5::cipher::{Block, BlockEncrypt, KeyInit};

use super::{Kernel, Packet};

const BLOCK_BYTES: usize = 8;

/// Enciphers the whole blocks of payloads, with one key.
pub struct Cast {
    cipher: Cast5,
}

impl Cast {
    /// A cipher with a key of 128 bits.
    pub fn new(key: [u8; 16]) -> Self {
        Self { cipher: Cast5::new(&key.into()) }
    }

    fn encipher(&self, payload: &[u8], out: &mut [u8]) -> usize {
        let mut chained = [0; BLOCK_BYTES];
        let mut done = 0;
        for (block, out) in payload.chunks_exact(BLOCK_BYTES).zip(out.chunks_exact_mut(BLOCK_BYTES)) {
            let mut mixed: Block<Cast5> =
                std::array::from_fn::<u8, BLOCK_BYTES, _>(|at| block[at] ^ chained[at]).into();
            self.cipher.encrypt_block(&mut mixed);
            chained = mixed.into();
            out.copy_from_slice(&chained);
            done += BLOCK_BYTES;
        }
        done
    }
}

impl Kernel for Cast {
    fn process(&mut self, packet: &mut Packet<'_>) -> u64 {
        let payload = &packet.frame[packet.payload..packet.end];
        self.encipher(payload, packet.out) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_what_the_rfc_says_and_the_next_is_chained_to_it() {
        // RFC 2144, appendix B.1: the key of 128 bits.
        let cast = Cast::new(*b"\x01\x23\x45\x67\x12\x34\x56\x78\x23\x45\x67\x89\x34\x56\x78\x9a");
        let plain = *b"\x01\x23\x45\x67\x89\xab\xcd\xef";
        let known = *b"\x23\x8b\x4f\xe5\x84\x7e\x44\xb2";
        let second: [u8; 8] = std::array::from_fn(|at| known[at] ^ plain[at]);
        let mut out = [0; 24];
        assert_eq!(cast.encipher(&[plain, second, [1; 8]].concat()[..20], &mut out), 16);
        // The second block of plain text is chosen so that the chain gives the cipher the first one again.
        assert_eq!(out[..8], known);
        assert_eq!(out[8..16], known);
        assert_eq!(out[16..], [0; 8]);
    }
}
