//! Checks of the headers that a function needs. A loop without branches finds unusual frames; only if there are any,
//! they are examined singly.
#![allow(clippy::needless_bitwise_bool, reason = "a branch per test would be mispredicted where frames differ")]

use crate::batch::{BATCH_FRAMES, Batch, FCS_BYTES, Fault, Words, with_count};
use crate::frame::ETHERTYPE_IPV4;
use crate::operation::{decrease, deparse, inc_checksum};

/// Bits of the frames that a batch has.
#[inline]
pub fn all(count: usize) -> u32 {
    u32::MAX.checked_shr(32 - count as u32).unwrap_or(0)
}

/// Marks the frames of a batch that a lookup did not find.
#[inline]
pub fn mark_missing(batch: &mut Batch<'_>, hits: u32, fault: Fault) {
    let missing = !hits & all(batch.count());
    if missing != 0 {
        batch.mark_faults(missing, fault);
    }
}

/// Marks frames, the rare case out of line.
#[inline]
pub fn mark(batch: &mut Batch<'_>, frames: u32, fault: Fault) {
    if frames != 0 {
        batch.mark_faults(frames, fault);
    }
}

/// IPv4 headers of a batch, in the byte order of memory. Operation `parse(20)`.
#[derive(Debug)]
pub struct Packets {
    /// Two bytes ahead of the header (its `EtherType`, mostly), version, service, length 2, identification 2.
    pub first: Words<1>,
    /// Time to live, protocol, checksum 2, source 4.
    pub second: Words<1>,
    /// Destination 4.
    pub destination: Words<1>,
}

impl Packets {
    /// Reads headers that begin at byte `at` of the frames.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a call would copy the headers once more")]
    pub fn parse(batch: &Batch<'_>, at: usize) -> Self {
        let mut packets =
            Self { first: [[0]; BATCH_FRAMES], second: [[0]; BATCH_FRAMES], destination: [[0]; BATCH_FRAMES] };
        let count = batch.count();
        with_count!(count, {
            for frame in 0..count {
                packets.first[frame] = batch.words(frame, at - 2);
                packets.second[frame] = batch.words(frame, at + 8);
                packets.destination[frame] = [u64::from(u32::from_le_bytes(*batch.bytes(frame, at + 16)))];
            }
        });
        packets
    }

    /// Length of a packet as its header says.
    #[inline]
    pub fn total_bytes(&self, frame: usize) -> u16 {
        ((self.first[frame][0] >> 32) as u16).swap_bytes()
    }
}

/// Marks frames without a valid IPv4 packet (RFC 1812, sec. 5.2.2, tests 1 and 3 to 5); returns the frames
/// with options. `typed`: the two bytes ahead of the header are the `EtherType`.
#[inline]
pub fn ipv4(batch: &mut Batch<'_>, at: u16, packets: &Packets, typed: bool) -> u32 {
    let (mask, right) = if typed { (0xff_ffff, 0x45_0000 | TYPE) } else { (0xff_0000, 0x45_0000) };
    let mut suspicious = 0;
    let count = batch.count();
    with_count!(count, {
        for frame in 0..count {
            let total = u32::from(packets.total_bytes(frame));
            let other = packets.first[frame][0] & mask != right;
            let long = total + u32::from(at) + FCS_BYTES as u32 > u32::from(batch.length[frame]);
            suspicious |= u32::from(other | long | (total < 20)) << frame;
        }
    });
    if suspicious == 0 { 0 } else { suspects(batch, at, packets, typed, suspicious) }
}

const TYPE: u64 = ETHERTYPE_IPV4.swap_bytes() as u64;

/// Unusual frames: those that are wrong, with their faults.
#[cold]
fn suspects(batch: &mut Batch<'_>, at: u16, packets: &Packets, typed: bool, frames: u32) -> u32 {
    let mut options = 0;
    for frame in (0..batch.count()).filter(|frame| (frames >> frame) & 1 == 1) {
        let first = packets.first[frame][0];
        let (version, header) = ((first >> 20) & 0x0f, 4 * ((first >> 16) as u16 & 0x0f));
        let total = packets.total_bytes(frame);
        let room = batch.length[frame].saturating_sub(at + FCS_BYTES as u16);
        if typed && first & 0xffff != TYPE {
            batch.mark_fault(frame, Fault::WrongProtocol);
        } else if version != 4 || header < 20 || total < header {
            batch.mark_fault(frame, Fault::BadHeader);
        } else if total > room {
            batch.mark_fault(frame, Fault::TooShort);
        }
        options |= u32::from(header > 20) << frame;
    }
    options
}

/// Takes one hop off the time to live and brings the header checksum up to date, in fields and frame.
///
/// The header begins at byte `at` of the frame; `second` is [`Packets::second`]. Operations: `decrease(1)`,
/// `inc_checksum(2)`, `deparse(4)`.
#[inline]
pub fn hop(batch: &mut Batch<'_>, at: usize, second: &mut Words<1>) {
    let count = batch.count();
    let old = *second;
    let used_up = decrease::<1, 1>(second, count, 0, 1);
    mark(batch, used_up, Fault::TimeToLive);
    let mut checksums: Words<1> = old.map(|[word]| [(word >> 16) & 0xffff]);
    inc_checksum(&mut checksums, &old, second, count);
    for (checksum, word) in checksums.iter_mut().zip(second) {
        checksum[0] = (word[0] & 0xffff) | (checksum[0] << 16);
    }
    deparse::<4, 1>(batch, at + 8, &checksums);
}
