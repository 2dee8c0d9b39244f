//! `aes_gcm(b)`: authenticated encryption, as ESP of `IPsec` does it (RFC 4106).

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};

use crate::batch::{BATCH_FRAMES, Batch, Fault};

/// Bytes of the authentication tag.
pub const TAG_BYTES: usize = 16;

/// An AES-GCM key with the salt of its nonces (RFC 4106, sec. 4).
#[derive(Debug)]
pub struct AesGcm {
    key: LessSafeKey,
    salt: u32,
}

impl AesGcm {
    /// A key of 16 bytes (AES-128).
    ///
    /// # Panics
    ///
    /// Never: the key is as long as the cipher's.
    #[must_use]
    pub fn new(key: &[u8; 16], salt: u32) -> Self {
        Self { salt, key: LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).expect("a key of 16 bytes")) }
    }

    /// A key of 32 bytes (AES-256).
    ///
    /// # Panics
    ///
    /// Never: the key is as long as the cipher's.
    #[must_use]
    pub fn new_256(key: &[u8; 32], salt: u32) -> Self {
        Self { salt, key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("a key of 32 bytes")) }
    }
}

/// Nonces of 12 bytes, a fixed field and a counter (RFC 4106, sec. 3.1 and 4: salt and initialisation vector).
fn nonce(salt: u32, vector: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[..4].copy_from_slice(&salt.to_be_bytes());
    bytes[4..].copy_from_slice(&vector.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// `aes_gcm(b)`: encrypts `bytes[i]` bytes at byte `at` of frame `i` in place and writes the tag behind them.
///
/// `vectors[i]` must never come twice under one key; the first `aad` bytes ahead of `at` are authenticated (8: the ESP
/// header). Frames with a fault, or whose bytes and tag do not fit into their buffer, are left alone, the latter with
/// a fault. Source: RFC 4106.
pub fn aes_gcm_seal(
    key: &AesGcm,
    batch: &mut Batch<'_>,
    at: usize,
    aad: usize,
    bytes: &[u16; BATCH_FRAMES],
    vectors: &[u64; BATCH_FRAMES],
) {
    for frame in 0..batch.count() {
        if let Some((head, text, tag)) = split(batch, frame, at, aad, usize::from(bytes[frame])) {
            let sealed = key.key.seal_in_place_separate_tag(nonce(key.salt, vectors[frame]), Aad::from(&*head), text);
            match sealed {
                Ok(sealed) => tag.copy_from_slice(sealed.as_ref()),
                Err(_) => batch.mark_fault(frame, Fault::TooLong),
            }
        }
    }
}

/// `aes_gcm(b)`, the other way: checks the tag behind `bytes[i]` bytes at byte `at` of frame `i` and decrypts them.
///
/// A frame whose tag does not match gets a fault. Source: RFC 4106.
pub fn aes_gcm_open(
    key: &AesGcm,
    batch: &mut Batch<'_>,
    at: usize,
    aad: usize,
    bytes: &[u16; BATCH_FRAMES],
    vectors: &[u64; BATCH_FRAMES],
) {
    for frame in 0..batch.count() {
        if let Some((head, text, tag)) = split(batch, frame, at, aad, usize::from(bytes[frame])) {
            let tag = Tag::from(*tag);
            let opened =
                key.key.open_in_place_separate_tag(nonce(key.salt, vectors[frame]), Aad::from(&*head), tag, text, 0..);
            if opened.is_err() {
                batch.mark_fault(frame, Fault::Unauthentic);
            }
        }
    }
}

/// What is authenticated only, the text and the place of the tag; none for a frame with a fault or where they do not
/// fit into the buffer.
fn split<'b>(
    batch: &'b mut Batch<'_>,
    frame: usize,
    at: usize,
    aad: usize,
    bytes: usize,
) -> Option<(&'b mut [u8], &'b mut [u8], &'b mut [u8; TAG_BYTES])> {
    if batch.fault[frame] != 0 {
        return None;
    }
    let packet_bytes = aad + bytes + TAG_BYTES;
    if aad > at || batch.slice_mut(frame, at - aad, packet_bytes).len() < packet_bytes {
        batch.mark_fault(frame, Fault::TooLong);
        return None;
    }
    let (head, rest) = batch.slice_mut(frame, at - aad, packet_bytes).split_at_mut(aad);
    let (text, tag) = rest.split_last_chunk_mut()?;
    Some((head, text, tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Buffer;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// `McGrew` & Viega 2005, "The Galois/Counter Mode of Operation", appendix B, test case 4.
    #[test]
    fn sealing_gives_the_published_text_and_tag_and_opening_gives_the_text_back() {
        let key: [u8; 16] = bytes("feffe9928665731c6d6a8f9467308308").try_into().unwrap();
        let aad = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let plain = bytes(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
             1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        );
        let sealed = bytes(
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
             21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091\
             5bc94fbc3221a5db94fae95ae7121a47",
        );
        let key = AesGcm::new(&key, 0xcafe_babe);
        let mut buffers = [Buffer::default(); 2];
        let mut batch = Batch::new(&mut buffers);
        for frame in 0..2 {
            batch.slice_mut(frame, 10, 20).copy_from_slice(&aad);
            batch.slice_mut(frame, 30, 60).copy_from_slice(&plain);
        }
        let (lengths, vectors) = ([60; BATCH_FRAMES], [0xface_dbad_deca_f888; BATCH_FRAMES]);
        aes_gcm_seal(&key, &mut batch, 30, 20, &lengths, &vectors);
        assert_eq!(batch.sound(), 0b11);
        assert_eq!(*batch.bytes::<76>(0, 30), *sealed);
        batch.slice_mut(1, 40, 1)[0] ^= 1;
        aes_gcm_open(&key, &mut batch, 30, 20, &lengths, &vectors);
        assert_eq!(batch.fault[..2], [0, Fault::Unauthentic as u8]);
        assert_eq!(*batch.bytes::<60>(0, 30), *plain);
    }

    #[test]
    fn text_that_does_not_fit_into_its_buffer_is_left_alone() {
        let key = AesGcm::new_256(&[1; 32], 2);
        let mut buffers = [Buffer::default(); 2];
        let mut batch = Batch::new(&mut buffers);
        aes_gcm_seal(&key, &mut batch, 8, 8, &[1961; BATCH_FRAMES], &[1; BATCH_FRAMES]);
        assert_eq!(batch.fault[..2], [Fault::TooLong as u8; 2]);
        batch.fault = [0; BATCH_FRAMES];
        aes_gcm_seal(&key, &mut batch, 8, 8, &[1960; BATCH_FRAMES], &[2; BATCH_FRAMES]);
        assert_eq!(batch.fault[..2], [0; 2]);
        batch.start = [u16::MAX; BATCH_FRAMES];
        aes_gcm_open(&key, &mut batch, 8, 8, &[u16::MAX; BATCH_FRAMES], &[2; BATCH_FRAMES]);
        assert_eq!(batch.fault[..2], [Fault::TooLong as u8; 2]);
    }
}
