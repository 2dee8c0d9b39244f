//! `aes_gcm(b)`: authenticated encryption, as IPsec ESP does it (RFC 4106).

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};

use crate::batch::{BATCH_FRAMES, Batch, Fault};

/// Bytes of the authentication tag.
pub const TAG_BYTES: usize = 16;

/// An AES-GCM key.
#[derive(Debug)]
pub struct AesGcm {
    key: LessSafeKey,
}

impl AesGcm {
    /// A key of 16 bytes (AES-128).
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self { key: LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).expect("a key of 16 bytes")) }
    }

    /// A key of 32 bytes (AES-256).
    #[must_use]
    pub fn new_256(key: &[u8; 32]) -> Self {
        Self { key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("a key of 32 bytes")) }
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
            let sealed = key.key.seal_in_place_separate_tag(nonce(0, vectors[frame]), Aad::from(&*head), text);
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
                key.key.open_in_place_separate_tag(nonce(0, vectors[frame]), Aad::from(&*head), tag, text, 0..);
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
    let whole = aad + bytes + TAG_BYTES;
    if aad > at || batch.slice_mut(frame, at - aad, whole).len() < whole {
        batch.mark_fault(frame, Fault::TooLong);
        return None;
    }
    let (head, rest) = batch.slice_mut(frame, at - aad, whole).split_at_mut(aad);
    let (text, tag) = rest.split_last_chunk_mut()?;
    Some((head, text, tag))
}
