//! What the headers of a frame must be for a function to work on it, checked for a whole batch without branches.

use crate::batch::{BATCH_FRAMES, Batch, FCS_BYTES, Fault, Words};
use crate::operation::{decrease, deparse, inc_checksum};

/// Bits of the frames that a batch has.
#[inline]
pub fn all(count: usize) -> u32 {
    u32::MAX.checked_shr(32 - count as u32).unwrap_or(0)
}

/// Marks the frames of a batch that a lookup did not find.
#[inline]
pub fn mark_missing(batch: &mut Batch<'_>, found: u32, fault: Fault) {
    let missing = !found & all(batch.count());
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

/// What is wrong with the IPv4 headers of a batch: bit `i` stands for frame `i`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ipv4Faults {
    /// Version or lengths that cannot be (RFC 1812, sec. 5.2.2, tests 3 to 5).
    pub header: u32,
    /// More bytes than the frame has (test 1).
    pub length: u32,
    /// Header longer than 20 bytes: it has options.
    pub options: u32,
}

/// Checks IPv4 headers whose first word (version to fragment) stands in word `word` of the fields, at byte `at` of
/// the frame.
#[inline]
pub fn ipv4<const W: usize>(batch: &Batch<'_>, at: u16, fields: &Words<W>, word: usize) -> Ipv4Faults {
    let mut faults = Ipv4Faults::default();
    for (frame, field) in fields.iter().enumerate().take(batch.count()) {
        let first = field[word];
        let total = u32::from((first >> 16) as u16 & 0xff) << 8 | u32::from((first >> 24) as u8);
        let version = first & 0xf0;
        let header = 4 * (first as u32 & 0x0f);
        let room = u32::from(batch.length[frame]).saturating_sub(u32::from(at) + FCS_BYTES as u32);
        let wrong = (version != 0x40) | (header < 20) | (total < header);
        faults.header |= u32::from(wrong) << frame;
        faults.length |= u32::from(total > room) << frame;
        faults.options |= u32::from(header > 20) << frame;
    }
    faults
}

/// Frames whose masked word is not as it should be.
#[inline]
pub fn differing<const W: usize>(fields: &Words<W>, count: usize, word: usize, mask: u64, right: u64) -> u32 {
    let mut wrong = 0;
    for (frame, field) in fields.iter().enumerate().take(count) {
        wrong |= u32::from(field[word] & mask != right) << frame;
    }
    wrong
}

/// Takes one hop off the time to live and brings the header checksum up to date, in fields and frame.
///
/// Word `word` of the fields holds the header's bytes 8 to 15 (time to live, protocol, checksum, source), and the
/// header begins at byte `at` of the frame. Operations: `decrease(1)`, `inc_checksum(2)`, `deparse(4)`.
#[inline]
pub fn hop<const W: usize>(batch: &mut Batch<'_>, at: usize, fields: &mut Words<W>, word: usize) {
    let count = batch.count();
    let mut old: Words<1> = [[0]; BATCH_FRAMES];
    let mut new: Words<1> = [[0]; BATCH_FRAMES];
    let mut checksums: Words<1> = [[0]; BATCH_FRAMES];
    for frame in 0..count {
        old[frame] = [fields[frame][word] & 0xffff];
        checksums[frame] = [fields[frame][word] >> 16 & 0xffff];
    }
    let used_up = decrease::<1, W>(fields, count, 8 * word, 1);
    mark(batch, used_up, Fault::TimeToLive);
    for frame in 0..count {
        new[frame] = [fields[frame][word] & 0xffff];
    }
    inc_checksum(&mut checksums, &old, &new, count);
    for frame in 0..count {
        new[frame][0] |= checksums[frame][0] << 16;
    }
    deparse::<4, 1>(batch, at + 8, &new);
}
