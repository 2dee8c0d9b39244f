//! ZIP: a payload compressed by itself with DEFLATE, as `IPComp` does with each packet (RFC 1951, RFC 2394).

use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, compress, create_comp_flags_from_zip_params};

use super::{Kernel, Packet};

/// zlib's own level between speed and size.
const LEVEL: i32 = 6;
/// DEFLATE without zlib's header.
const RAW: i32 = -15;

/// Compresses payloads.
pub struct Zip {
    compressor: Box<CompressorOxide>,
}

impl Zip {
    /// A compressor; it keeps no state between packets.
    pub fn new() -> Self {
        Self { compressor: Box::new(CompressorOxide::new(create_comp_flags_from_zip_params(LEVEL, RAW, 0))) }
    }
}

impl Kernel for Zip {
    fn process(&mut self, packet: &mut Packet<'_>) -> u64 {
        self.compressor.reset();
        let payload = &packet.frame[packet.payload..packet.end];
        compress(&mut self.compressor, payload, packet.out, TDEFLFlush::Finish).2 as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::packets::tests::of_size;
    use crate::workload::request::Content;

    #[test]
    fn what_is_compressed_is_the_payload_again_and_words_become_shorter() {
        let mut zip = Zip::new();
        for (content, shorter) in [(Content::Words, true), (Content::Random, false)] {
            for size in [64, 594, 1518] {
                let mut packets = of_size(size, 4, content);
                for number in 0..4 {
                    let mut packet = packets.packet(number);
                    let bytes = zip.process(&mut packet) as usize;
                    let back = miniz_oxide::inflate::decompress_to_vec(&packet.out[..bytes]).unwrap();
                    assert_eq!(back, packet.payload());
                    assert!(size < 500 || (bytes < packet.payload().len() * 3 / 4) == shorter, "{bytes}");
                }
            }
        }
    }
}
