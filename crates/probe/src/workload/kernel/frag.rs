//! FRAG: the headers of a packet's fragments, each with its checksum (RFC 791, sec. 3.2).
//!
//! ```text
//!   outgoing   | header, checksum | from | bytes | header, checksum | from | bytes | ...
//! ```
//!
//! Only headers are worked on, as in `CommBench`: where a fragment's payload lies in the packet stands behind its
//! header, for a network card that gathers.

use super::{Kernel, Packet};
use crate::operation::internet_checksum;

/// The packet size that every host can take (RFC 791, sec. 3.1).
pub const MTU_BYTES: usize = 576;
const HEADER_BYTES: usize = 20;
const MORE: u16 = 0x2000;
const WHOLE: u16 = 0x4000;
/// Behind each header: where its payload begins in the frame and how long it is.
const PIECE_BYTES: usize = HEADER_BYTES + 4;

/// Fragments packets that are longer than a link takes.
pub struct Frag;

impl Kernel for Frag {
    /// Says how many fragments were written; 0: the packet must not be fragmented, or its header is wrong.
    fn process(&mut self, packet: &mut Packet<'_>) -> u64 {
        let header_bytes = usize::from(packet.frame[packet.ip] & 15) * 4;
        let header = &packet.frame[packet.ip..packet.ip + header_bytes];
        if internet_checksum(header) != 0 {
            return 0;
        }
        let payload = packet.ip + header_bytes;
        let bytes = packet.end - payload;
        let flags = packet.ip_half(6);
        if header_bytes + bytes > MTU_BYTES && flags & WHOLE != 0 {
            return 0;
        }
        // Options that are not to be copied (RFC 791, sec. 3.1) are left out with all others: fragments have plain
        // headers.
        let mut plain = [0; HEADER_BYTES];
        plain.copy_from_slice(&header[..HEADER_BYTES]);
        plain[0] = 0x45;
        let room = MTU_BYTES - HEADER_BYTES;
        let mut count = 0;
        let mut from = 0;
        loop {
            // All but the last begin and end at multiples of 8 bytes.
            let piece = if bytes - from <= room { bytes - from } else { room & !7 };
            let last = from + piece == bytes;
            let fragment_field =
                ((flags & 0x1fff) + (from / 8) as u16) | flags & WHOLE | if last { flags & MORE } else { MORE };
            plain[2..4].copy_from_slice(&((HEADER_BYTES + piece) as u16).to_be_bytes());
            plain[6..8].copy_from_slice(&fragment_field.to_be_bytes());
            plain[10..12].fill(0);
            let checksum = internet_checksum(&plain);
            plain[10..12].copy_from_slice(&checksum.to_ne_bytes());
            let out = count * PIECE_BYTES;
            let Some(out) = packet.out.get_mut(out..out + PIECE_BYTES) else { return 0 };
            out[..HEADER_BYTES].copy_from_slice(&plain);
            out[HEADER_BYTES..HEADER_BYTES + 2].copy_from_slice(&((payload + from) as u16).to_be_bytes());
            out[HEADER_BYTES + 2..].copy_from_slice(&(piece as u16).to_be_bytes());
            count += 1;
            from += piece;
            if last {
                return count as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::packets::tests::of_size;
    use crate::workload::request::Content;

    #[test]
    fn fragments_put_together_are_the_packet() {
        for (bytes, fragments) in [(64, 1), (594, 1), (595, 2), (1146, 2), (1147, 3), (1518, 3)] {
            let mut packets = of_size(bytes, 8, Content::Random);
            for number in 0..8 {
                let mut packet = packets.packet(number);
                assert_eq!(Frag.process(&mut packet), fragments, "{bytes}");
                let mut together = vec![0; packet.end - packet.ip - HEADER_BYTES];
                let mut filled = 0;
                for piece in packet.out.chunks_exact(PIECE_BYTES).take(fragments as usize) {
                    let read = etherparse::Ipv4HeaderSlice::from_slice(piece).unwrap();
                    assert_eq!(read.header_checksum(), read.to_header().calc_header_checksum());
                    assert!(usize::from(read.total_len()) <= MTU_BYTES);
                    let from = usize::from(u16::from_be_bytes([piece[20], piece[21]]));
                    let count = usize::from(u16::from_be_bytes([piece[22], piece[23]]));
                    let offset = usize::from(read.fragments_offset().value()) * 8;
                    together[offset..offset + count].copy_from_slice(&packet.frame[from..from + count]);
                    filled += count;
                    assert_eq!(read.more_fragments(), filled < together.len());
                }
                assert_eq!(filled, together.len());
                assert_eq!(together, packet.frame[packet.ip + HEADER_BYTES..packet.end]);
            }
        }
    }

    #[test]
    fn what_must_not_be_fragmented_or_is_wrong_is_left() {
        for (at, value) in [(20, 0x40), (14 + 8, 1)] {
            let mut packets = of_size(1000, 1, Content::Random);
            let mut packet = packets.packet(0);
            let mut frame = packet.frame.to_vec();
            frame[at] ^= value;
            if at == 20 {
                frame[24..26].fill(0);
                let checksum = internet_checksum(&frame[14..34]);
                frame[24..26].copy_from_slice(&checksum.to_ne_bytes());
            }
            packet.frame = &frame;
            assert_eq!(Frag.process(&mut packet), 0);
        }
    }
}
