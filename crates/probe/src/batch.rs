//! Batches of up to 32 frames in their buffers, on which every stage of a network function works.
//!
//! ```text
//!   Buffer, 33 lines of 64 bytes            start[i]      start[i] + length[i]
//!   |--------- headroom, 128 bytes ---------|-- frame -- FCS --|------ free ------|
//! ```
//!
//! Buffers are an odd number of lines long, so that the headers of consecutive frames fall into all sets of a cache.
//! A frame that must be dropped gets a [`Fault`] and stays in its place: later stages process it like any other, within
//! its buffer, and [`mem_io`](crate::operation::mem_io) drops and counts it.
#![allow(unsafe_code, reason = "a buffer of frames is plain memory, which the compiler cannot know")]

use crate::memory::Plain;

/// Frames in a full batch.
pub const BATCH_FRAMES: usize = 32;
/// Bytes of a buffer.
pub const BUFFER_BYTES: usize = 2112;
/// Free bytes ahead of a received frame, for further headers.
pub const HEADROOM_BYTES: usize = 128;
/// Bytes of the frame check sequence: part of a frame's length, never read.
pub const FCS_BYTES: usize = 4;

/// A value of `W` 64-bit words for each frame of a batch. Fields of frames lie in it as they lie in memory.
pub type Words<const W: usize> = [[u64; W]; BATCH_FRAMES];

/// Room for one frame.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Buffer {
    /// Headroom, frame and free bytes behind it.
    pub bytes: [u8; BUFFER_BYTES],
}

// SAFETY: an array of bytes whose length is a multiple of its alignment: no padding.
unsafe impl Plain for Buffer {}

impl Default for Buffer {
    fn default() -> Self {
        Self { bytes: [0; BUFFER_BYTES] }
    }
}

/// Why a frame is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// None: the frame goes on.
    None = 0,
    /// Shorter than the headers that the function reads, or than 64 bytes.
    TooShort = 1,
    /// Longer than the rest of its buffer, or than the length in the function's headers.
    TooLong = 2,
    /// Not of the protocol that the function works on.
    WrongProtocol = 3,
    /// An invalid version or length in a header.
    BadHeader = 4,
    /// The header checksum does not match.
    BadChecksum = 5,
    /// Time to live used up.
    TimeToLive = 6,
    /// The table has no entry for it.
    NoEntry = 7,
    /// A rule denies it.
    Denied = 8,
    /// The buffer has no room for another header.
    NoRoom = 9,
    /// The authentication tag does not match.
    Unauthentic = 10,
    /// Its rate limit is used up.
    Policed = 11,
    /// The queue behind is full.
    QueueFull = 12,
    /// The table has no room for its entry.
    TableFull = 13,
}

impl Fault {
    /// All faults, indexed by their number.
    pub const ALL: [Self; 14] = [
        Self::None,
        Self::TooShort,
        Self::TooLong,
        Self::WrongProtocol,
        Self::BadHeader,
        Self::BadChecksum,
        Self::TimeToLive,
        Self::NoEntry,
        Self::Denied,
        Self::NoRoom,
        Self::Unauthentic,
        Self::Policed,
        Self::QueueFull,
        Self::TableFull,
    ];

    /// Name of the reason, as reports show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::TooShort => "too_short",
            Self::TooLong => "too_long",
            Self::WrongProtocol => "wrong_protocol",
            Self::BadHeader => "bad_header",
            Self::BadChecksum => "bad_checksum",
            Self::TimeToLive => "time_to_live",
            Self::NoEntry => "no_entry",
            Self::Denied => "denied",
            Self::NoRoom => "no_room",
            Self::Unauthentic => "unauthentic",
            Self::Policed => "policed",
            Self::QueueFull => "queue_full",
            Self::TableFull => "table_full",
        }
    }
}

/// Length of a count of frames by fault; a power of two, so that every masked fault number is an index.
pub const FAULT_KINDS: usize = 16;

/// Runs a stage for `count` frames: with the constant where a batch is full, as nearly all are.
///
/// The compiler then knows the trip count of the stage's loop, and omits the code for other counts. It is a macro, so
/// that both branches contain the stage whatever its size.
macro_rules! with_count {
    ($count:ident, $stage:block) => {
        if $count == $crate::batch::BATCH_FRAMES {
            let $count = $crate::batch::BATCH_FRAMES;
            $stage
        } else {
            $stage
        }
    };
}
pub(crate) use with_count;

/// Up to 32 frames.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The buffers, at most 32.
    pub buffers: &'a mut [Buffer],
    /// First byte of each frame in its buffer.
    pub start: [u16; BATCH_FRAMES],
    /// Bytes of each frame, FCS included.
    pub length: [u16; BATCH_FRAMES],
    /// Port that each frame leaves by.
    pub port: [u16; BATCH_FRAMES],
    /// 0 for a frame that goes on, else a [`Fault`].
    pub fault: [u8; BATCH_FRAMES],
}

impl<'a> Batch<'a> {
    /// A batch of the first 32 of some buffers; [`io_mem`](crate::operation::io_mem) fills in the frames.
    #[inline]
    pub fn new(buffers: &'a mut [Buffer]) -> Self {
        let count = buffers.len().min(BATCH_FRAMES);
        Self {
            buffers: &mut buffers[..count],
            start: [HEADROOM_BYTES as u16; BATCH_FRAMES],
            length: [0; BATCH_FRAMES],
            port: [0; BATCH_FRAMES],
            fault: [0; BATCH_FRAMES],
        }
    }

    /// Frames in the batch, 0 to 32.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        self.buffers.len().min(BATCH_FRAMES)
    }

    /// `B` bytes at `offset` of frame `frame`, or the last `B` bytes of its buffer if they would reach beyond it.
    ///
    /// # Panics
    ///
    /// If there is no frame `frame`.
    #[inline]
    #[must_use]
    pub fn bytes<const B: usize>(&self, frame: usize, offset: usize) -> &[u8; B] {
        let from = (usize::from(self.start[frame]) + offset).min(BUFFER_BYTES - B);
        self.buffers[frame].bytes[from..from + B].first_chunk().expect("as long as asked for")
    }

    /// `B` bytes at `offset` of frame `frame`, to be written; within its buffer as in [`Self::bytes`].
    ///
    /// # Panics
    ///
    /// If there is no frame `frame`.
    #[inline]
    pub fn bytes_mut<const B: usize>(&mut self, frame: usize, offset: usize) -> &mut [u8; B] {
        let from = (usize::from(self.start[frame]) + offset).min(BUFFER_BYTES - B);
        self.buffers[frame].bytes[from..from + B].first_chunk_mut().expect("as long as asked for")
    }

    /// `8·W` bytes at `offset` of frame `frame` as words in the byte order of memory; within its buffer as in
    /// [`Self::bytes`].
    ///
    /// # Panics
    ///
    /// If there is no frame `frame`.
    #[inline]
    #[must_use]
    pub fn words<const W: usize>(&self, frame: usize, offset: usize) -> [u64; W] {
        const { assert!(8 * W <= BUFFER_BYTES) };
        let from = (usize::from(self.start[frame]) + offset).min(BUFFER_BYTES - 8 * W);
        let bytes = &self.buffers[frame].bytes[from..from + 8 * W];
        std::array::from_fn(|word| u64::from_le_bytes(bytes[8 * word..8 * word + 8].try_into().expect("eight bytes")))
    }

    /// At most `length` bytes at `offset` of frame `frame`: fewer where its buffer ends.
    ///
    /// # Panics
    ///
    /// If there is no frame `frame`.
    #[inline]
    pub fn slice_mut(&mut self, frame: usize, offset: usize, length: usize) -> &mut [u8] {
        let from = (usize::from(self.start[frame]) + offset).min(BUFFER_BYTES);
        let to = (from + length).min(BUFFER_BYTES);
        &mut self.buffers[frame].bytes[from..to]
    }

    /// The frames that go on: bit `i` stands for frame `i`.
    #[inline]
    #[must_use]
    pub fn sound(&self) -> u32 {
        let mut sound = 0;
        for (frame, &fault) in self.fault.iter().enumerate().take(self.count()) {
            sound |= u32::from(fault == 0) << frame;
        }
        sound
    }

    /// Gives frame `frame` a fault if it has none yet.
    #[inline]
    pub fn mark_fault(&mut self, frame: usize, fault: Fault) {
        let code = &mut self.fault[frame];
        *code = if *code == 0 { fault as u8 } else { *code };
    }

    /// Gives a fault to those of the `frames` (bit `i`: frame `i`) that have none yet; branch-free.
    #[inline]
    pub fn mark_faults(&mut self, frames: u32, fault: Fault) {
        for (frame, code) in self.fault.iter_mut().enumerate() {
            let mark = (frames >> frame) & 1 == 1 && *code == 0;
            *code = if mark { fault as u8 } else { *code };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_stands_at_its_number_under_its_own_name() {
        for (number, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, number);
            assert!(number < FAULT_KINDS);
            assert_eq!(Fault::ALL.iter().filter(|other| other.name() == fault.name()).count(), 1);
        }
    }

    #[test]
    fn the_first_fault_of_a_frame_stays() {
        let mut buffers = [Buffer::default(); 3];
        let mut batch = Batch::new(&mut buffers);
        batch.mark_fault(1, Fault::Denied);
        batch.mark_faults(0b110, Fault::NoEntry);
        assert_eq!(batch.fault[..4], [0, Fault::Denied as u8, Fault::NoEntry as u8, 0]);
        assert_eq!(batch.sound(), 0b001);
    }

    #[test]
    fn bytes_of_a_frame_never_lie_outside_its_buffer() {
        let mut buffers = [Buffer::default(); 1];
        buffers[0].bytes[BUFFER_BYTES - 1] = 7;
        let mut batch = Batch::new(&mut buffers);
        for start in [0, 2111, 2112, u16::MAX] {
            batch.start[0] = start;
            assert_eq!(batch.bytes::<8>(0, 4000)[7], 7);
            batch.bytes_mut::<16>(0, 4000)[15] = 7;
            assert!(batch.slice_mut(0, 2112, 9000).is_empty());
        }
    }

    #[test]
    fn a_batch_takes_no_more_than_32_buffers() {
        let mut buffers = vec![Buffer::default(); 40];
        assert_eq!(Batch::new(&mut buffers).count(), 32);
    }
}
