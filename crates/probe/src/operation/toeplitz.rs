//! `toeplitz_hash(b)`: receive-side scaling's hash.

use crate::batch::{BATCH_FRAMES, Words};

/// The key of the verification suite ("Verifying the RSS hash calculation", Windows driver documentation).
pub const MICROSOFT_KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b,
    0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac,
    0x01, 0xfa,
];

/// The hash of `B` bytes under one key: a table of what each byte adds, 1 KiB per byte.
#[derive(Debug, Clone)]
pub struct Toeplitz<const B: usize> {
    tables: Box<[[u32; 256]; B]>,
}

impl<const B: usize> Toeplitz<B> {
    /// The tables of a key; `B` is 1 to 36, the addresses and ports of IPv6.
    ///
    /// # Panics
    ///
    /// Never: there are as many tables as bytes.
    #[must_use]
    pub fn new(key: &[u8; 40]) -> Self {
        const { assert!(B >= 1 && B <= 36) };
        let mut tables = vec![[0; 256]; B];
        for (index, table) in tables.iter_mut().enumerate() {
            // Input bit i adds bits i..i + 32 of the key; the eight windows of this byte lie in 40 bits.
            let window = key[index..index + 5].iter().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
            for (byte, entry) in table.iter_mut().enumerate() {
                for bit in (0..8).filter(|bit| byte >> (7 - bit) & 1 == 1) {
                    *entry ^= (window >> (8 - bit)) as u32;
                }
            }
        }
        Self { tables: tables.try_into().expect("as many tables as bytes") }
    }

    /// The hash of the first `B` bytes of some words in the byte order of memory.
    #[inline]
    #[must_use]
    pub fn hash<const W: usize>(&self, words: &[u64; W]) -> u32 {
        const { assert!(B <= 8 * W) };
        let mut hash = 0;
        for (tables, word) in self.tables.chunks(8).zip(words) {
            for (table, byte) in tables.iter().zip(word.to_le_bytes()) {
                hash ^= table[usize::from(byte)];
            }
        }
        hash
    }
}

/// `toeplitz_hash(b)`: the Toeplitz hash of the first `B` bytes of each key, in the order that receive-side scaling
/// takes them: addresses, then ports, as they stand in the headers. Its tables are `1 KiB · b`.
#[inline]
pub fn toeplitz_hash<const B: usize, const W: usize>(
    toeplitz: &Toeplitz<B>,
    keys: &Words<W>,
    count: usize,
    hashes: &mut [u32; BATCH_FRAMES],
) {
    for (hash, key) in hashes.iter_mut().zip(keys).take(count) {
        *hash = toeplitz.hash(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<const W: usize>(bytes: &[u8]) -> [u64; W] {
        std::array::from_fn(|word| {
            let mut eight = [0; 8];
            let rest = bytes.get(8 * word..).unwrap_or_default();
            let count = rest.len().min(8);
            eight[..count].copy_from_slice(&rest[..count]);
            u64::from_le_bytes(eight)
        })
    }

    /// Destination and source, each with its port, the hash of the addresses, and that of addresses and ports.
    type Vector = ([u8; 4], u16, [u8; 4], u16, u32, u32);

    /// "Verifying the RSS hash calculation", Windows driver documentation.
    const IPV4: [Vector; 5] = [
        ([161, 142, 100, 80], 1766, [66, 9, 149, 187], 2794, 0x323e_8fc2, 0x51cc_c178),
        ([65, 69, 140, 83], 4739, [199, 92, 111, 2], 14230, 0xd718_262a, 0xc626_b0ea),
        ([12, 22, 207, 184], 38024, [24, 19, 198, 95], 12898, 0xd2d0_a5de, 0x5c2b_394a),
        ([209, 142, 163, 6], 2217, [38, 27, 205, 30], 48228, 0x8298_9176, 0xafc7_327f),
        ([202, 188, 127, 2], 1303, [153, 39, 163, 191], 44251, 0x5d18_09c5, 0x10e8_28a2),
    ];

    #[test]
    fn the_verification_suite_for_ipv4_is_met() {
        let (addresses, flows) = (Toeplitz::<8>::new(&MICROSOFT_KEY), Toeplitz::<12>::new(&MICROSOFT_KEY));
        for (destination, destination_port, source, source_port, of_addresses, of_flow) in IPV4 {
            let mut bytes = [source, destination].concat();
            bytes.extend([source_port.to_be_bytes(), destination_port.to_be_bytes()].concat());
            assert_eq!(addresses.hash::<1>(&words(&bytes)), of_addresses);
            let mut hashes = [0; BATCH_FRAMES];
            toeplitz_hash(&flows, &[words::<2>(&bytes); BATCH_FRAMES], 4, &mut hashes);
            assert_eq!(hashes[..5], [of_flow, of_flow, of_flow, of_flow, 0]);
        }
    }

    #[test]
    fn the_verification_suite_for_ipv6_is_met() {
        let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
        let mut bytes = [address("3ffe:2501:200:1fff::7"), address("3ffe:2501:200:3::1")].concat();
        bytes.extend([2794u16.to_be_bytes(), 1766u16.to_be_bytes()].concat());
        assert_eq!(Toeplitz::<32>::new(&MICROSOFT_KEY).hash::<4>(&words(&bytes)), 0x2cc1_8cd5);
        assert_eq!(Toeplitz::<36>::new(&MICROSOFT_KEY).hash::<5>(&words(&bytes)), 0x4020_7d3d);
    }
}
