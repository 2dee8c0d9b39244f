//! Memory that the kernel shares: rings and the frames in them.

#![allow(unsafe_code, reason = "mmap, and pointers into what it returns; every access is checked against the length")]

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::error::{Result, TesterError};

/// A mapping that lives until it is dropped.
#[derive(Debug)]
pub(super) struct Region {
    base: NonNull<u8>,
    octets: usize,
}

// SAFETY: the memory belongs to the region until it is dropped; sharing with the kernel goes through atomics.
unsafe impl Send for Region {}

impl Region {
    /// Maps a ring of a socket.
    pub fn of_socket(socket: BorrowedFd<'_>, octets: usize, offset: libc::off_t) -> Result<Self> {
        Self::map(libc::MAP_SHARED | libc::MAP_POPULATE, socket.as_raw_fd(), octets, offset)
    }

    /// Memory for frames, all of it present.
    pub fn of_frames(octets: usize) -> Result<Self> {
        Self::map(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE, -1, octets, 0)
    }

    fn map(flags: libc::c_int, fd: libc::c_int, octets: usize, offset: libc::off_t) -> Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice harms nobody.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), octets, access, flags, fd, offset) };
        let base = if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast::<u8>()) };
        let base = base.ok_or_else(|| TesterError::last_os(format!("mapping {octets} bytes for frames")))?;
        Ok(Self { base, octets })
    }

    /// Its beginning.
    pub fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    /// Octets of a frame that the kernel does not touch at the moment.
    pub fn frame(&self, at: usize, octets: usize) -> &[u8] {
        assert!(at <= self.octets && octets <= self.octets - at, "{octets} at {at} of {}", self.octets);
        // SAFETY: inside the mapping; the ring's protocol leaves the frame to user space.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(at), octets) }
    }

    /// As [`Region::frame`], to write.
    pub fn frame_mut(&mut self, at: usize, octets: usize) -> &mut [u8] {
        assert!(at <= self.octets && octets <= self.octets - at, "{octets} at {at} of {}", self.octets);
        // SAFETY: inside the mapping and borrowed mutably; the ring's protocol leaves the frame to user space.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at), octets) }
    }

    /// A word that both sides change.
    pub fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.octets, "{at} of {}", self.octets);
        // SAFETY: aligned (mappings begin at a page) and inside the mapping, which outlives the reference.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Reads a word in a frame or a descriptor that user space owns at the moment.
    pub fn read32(&self, at: usize) -> u32 {
        self.word(at).load(Ordering::Relaxed)
    }

    /// Two octets, as [`Region::read32`].
    pub fn read16(&self, at: usize) -> u16 {
        let octets = self.frame(at, 2);
        u16::from_ne_bytes([octets[0], octets[1]])
    }

    /// Copies octets to memory that user space owns at the moment.
    pub fn write(&mut self, at: usize, octets: &[u8]) {
        self.frame_mut(at, octets.len()).copy_from_slice(octets);
    }

    /// A full memory barrier: the kernel sees all earlier writes before all later ones (for rings that it also polls).
    pub fn full_fence() {
        fence(Ordering::SeqCst);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.octets) };
    }
}
