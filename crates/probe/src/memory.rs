//! Memory on huge or normal pages, for tables, frames and the working sets of the probe.
//!
//! ```text
//!   | guard |  2 MiB page  |  2 MiB page  | ... | guard |     anonymous, zeroed, all pages present
//!             ^ aligned to 2 MiB                              guards keep it a mapping of its own in smaps
//! ```
//!
//! A chase over 1 GiB on 4 KiB pages measures the TLB as much as the memory. Therefore the kind of pages is requested
//! with `madvise(2)`, and the share that the kernel granted is read from `/proc/self/smaps`.
#![allow(unsafe_code, reason = "mmap(2) and typed views of the mapped memory")]

use std::fmt;
use std::ptr::NonNull;

use serde::{Deserialize, Serialize};

use crate::error::{ProbeError, Result};

/// Alignment of the memory and size of a huge page, bytes.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// Bytes that always stay free for the host.
const RESERVE_BYTES: u64 = 64 << 20;

/// Pages that memory lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pages {
    /// 2 MiB, as far as the kernel has any.
    #[default]
    Huge,
    /// The default of the processor, mostly 4 KiB.
    Normal,
}

/// Types whose every bit pattern, all zeros too, is a value.
///
/// # Safety
///
/// No references, no invalid bit patterns, no destructor, size above 0. Padding is allowed: nothing reads it.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($type:ty),*) => {$(
        // SAFETY: every bit pattern of an integer is a value.
        unsafe impl Plain for $type {}
    )*};
}
plain!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

// SAFETY: arrays consist of their elements alone; an empty one is refused where a slice is made.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// A cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line(pub [u64; LINE_BYTES / 8]);

// SAFETY: an array of integers without padding.
unsafe impl Plain for Line {}

/// Zeroed memory that belongs to one owner and goes back to the kernel when that is dropped.
pub struct HugeMemory {
    base: NonNull<u8>,
    bytes: usize,
    pages: Pages,
    mapping: NonNull<u8>,
    mapping_bytes: usize,
}

// SAFETY: the memory belongs to this value alone, like that of a `Box<[u8]>`.
unsafe impl Send for HugeMemory {}
// SAFETY: shared access only reads.
unsafe impl Sync for HugeMemory {}

impl HugeMemory {
    /// Gets `bytes` of zeroed memory for `what` ("table mac"), every page of it present.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Memory`] if there is not that much; [`ProbeError::Request`] for none at all;
    /// [`ProbeError::System`] if the kernel refuses.
    pub fn new(what: &str, bytes: usize, pages: Pages) -> Result<Self> {
        if bytes == 0 {
            return Err(ProbeError::request(what, "got 0 bytes of memory; ask for one byte or more"));
        }
        let available_bytes = available_bytes();
        let too_much = || ProbeError::Memory { what: what.to_owned(), needed_bytes: bytes as u64, available_bytes };
        if bytes as u64 > available_bytes {
            return Err(too_much());
        }
        let unit = if pages == Pages::Huge { HUGE_PAGE_BYTES } else { page_bytes() };
        let body = bytes.checked_next_multiple_of(unit).ok_or_else(too_much)?;
        let mapping_bytes = body.checked_add(2 * HUGE_PAGE_BYTES).ok_or_else(too_much)?;
        // SAFETY: a new private mapping at an address that the kernel chooses overlaps no other.
        let mapping = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), mapping_bytes, libc::PROT_NONE, flags, -1, 0)
        };
        let mapping = if mapping == libc::MAP_FAILED { None } else { NonNull::new(mapping.cast::<u8>()) };
        let Some(mapping) = mapping else {
            return Err(ProbeError::last_os(format!("mapping {} MiB for {what}", mebibytes(bytes as u64))));
        };
        // A page of guard before and at least one after stay without access.
        let into =
            (mapping.as_ptr() as usize + page_bytes()).next_multiple_of(HUGE_PAGE_BYTES) - mapping.as_ptr() as usize;
        // SAFETY: page + up to 2 MiB of alignment + body + page fit into body + 4 MiB.
        let base = unsafe { mapping.add(into) };
        let memory = Self { base, bytes, pages, mapping, mapping_bytes };
        memory.open(what, body)?;
        Ok(memory)
    }

    fn open(&self, what: &str, body: usize) -> Result<()> {
        let start = self.base.as_ptr();
        // SAFETY: start..start + body lies within the mapping, which no other code has a pointer to yet.
        unsafe {
            if libc::mprotect(start.cast(), body, libc::PROT_READ | libc::PROT_WRITE) != 0 {
                return Err(ProbeError::last_os(format!("mapping {} MiB for {what}", mebibytes(body as u64))));
            }
            let advice = if self.pages == Pages::Huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
            // Advice: a kernel without transparent huge pages refuses it, which `huge_ratio` shows.
            libc::madvise(start.cast(), body, advice);
            // Not MADV_POPULATE_WRITE: it needs Linux 5.14.
            for offset in (0..body).step_by(page_bytes()) {
                start.add(offset).write_volatile(0);
            }
        }
        Ok(())
    }

    /// Requested bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Requested pages.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.pages
    }

    /// Share of the memory that lies on huge pages, 0 to 1; 0 where the kernel does not say.
    #[must_use]
    pub fn huge_ratio(&self) -> f64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let start = self.base.as_ptr() as u64;
        let body = self.bytes.next_multiple_of(page_bytes()) as u64;
        (huge_bytes(&smaps, start, start + body) as f64 / body as f64).min(1.0)
    }

    /// The memory as values of a type; what does not fill a whole one at the end is left out.
    #[must_use]
    pub fn as_slice<T: Plain>(&self) -> &[T] {
        let length = self.length::<T>();
        // SAFETY: aligned to 2 MiB, long enough, initialised with zeros, and every bit pattern is a T.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().cast(), length) }
    }

    /// The memory as values of a type, to be written.
    #[must_use]
    pub fn as_mut_slice<T: Plain>(&mut self) -> &mut [T] {
        let length = self.length::<T>();
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().cast(), length) }
    }

    fn length<T: Plain>(&self) -> usize {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= HUGE_PAGE_BYTES) };
        self.bytes / size_of::<T>()
    }
}

impl Drop for HugeMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no slice of it outlives `self`.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapping_bytes) };
    }
}

impl fmt::Debug for HugeMemory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HugeMemory")
            .field("bytes", &self.bytes)
            .field("pages", &self.pages)
            .finish_non_exhaustive()
    }
}

/// Bytes of memory that this process can still have: what the host can spare, within the limits of its control groups.
#[must_use]
pub fn available_bytes() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let host = field_kib(&read("/proc/meminfo"), "MemAvailable:").map_or(u64::MAX, |kib| kib * 1024);
    let groups = read("/proc/self/cgroup");
    let group = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let limit = std::path::Path::new(group)
        .ancestors()
        .filter_map(|group| {
            let file = |name: &str| read(&format!("/sys/fs/cgroup{}/{name}", group.display())).trim().parse::<u64>();
            Some(file("memory.max").ok()?.saturating_sub(file("memory.current").ok()?))
        })
        .min();
    host.min(limit.unwrap_or(u64::MAX)).saturating_sub(RESERVE_BYTES)
}

/// Bytes as MiB for a message.
#[must_use]
pub fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

fn page_bytes() -> usize {
    // SAFETY: no pointers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

fn field_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Bytes on huge pages in the mappings of `smaps` that lie within `start..end`.
fn huge_bytes(smaps: &str, start: u64, end: u64) -> u64 {
    let mut within = false;
    let mut bytes = 0;
    for line in smaps.lines() {
        if let Some((from, to)) = line.split_whitespace().next().and_then(|range| range.split_once('-')) {
            let ends = u64::from_str_radix(from, 16).ok().zip(u64::from_str_radix(to, 16).ok());
            within = ends.is_some_and(|(from, to)| from < end && to > start);
        } else if within {
            bytes += field_kib(line, "AnonHugePages:").unwrap_or(0) * 1024;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_to_a_huge_page_and_zero_to_its_last_byte() {
        for pages in [Pages::Huge, Pages::Normal] {
            for bytes in [1, 4097, 3 << 20] {
                let mut memory = HugeMemory::new("a test", bytes, pages).unwrap();
                let slice = memory.as_mut_slice::<u8>();
                assert_eq!(slice.len(), bytes);
                assert!((slice.as_ptr() as usize).is_multiple_of(HUGE_PAGE_BYTES));
                assert!(slice.iter().all(|&byte| byte == 0));
                slice.fill(0xa5);
                assert!(memory.as_slice::<u8>().iter().all(|&byte| byte == 0xa5));
            }
        }
    }

    #[test]
    fn a_typed_view_leaves_out_what_does_not_fill_a_value() {
        let memory = HugeMemory::new("a test", 3 * LINE_BYTES - 1, Pages::Normal).unwrap();
        assert_eq!(memory.as_slice::<Line>().len(), 2);
        assert_eq!(memory.as_slice::<[u16; 3]>().len(), 191 / 6);
    }

    #[test]
    fn normal_pages_are_not_huge() {
        let memory = HugeMemory::new("a test", 8 << 20, Pages::Normal).unwrap();
        assert_eq!(memory.huge_ratio(), 0.0);
    }

    #[test]
    fn huge_pages_are_counted_in_the_memorys_own_mapping_only() {
        let smaps = "200000-400000 rw-p 00000000 00:00 0\nRss: 2048 kB\nAnonHugePages:      2048 kB\n\
                     400000-800000 rw-p 00000000 00:00 0\nAnonHugePages:      4096 kB\n\
                     800000-a00000 ---p 00000000 00:00 0\nAnonHugePages:         0 kB\n";
        assert_eq!(huge_bytes(smaps, 0x40_0000, 0x80_0000), 4096 * 1024);
        assert_eq!(huge_bytes(smaps, 0x80_0000, 0xa0_0000), 0);
    }

    #[test]
    fn more_memory_than_there_is_is_refused_with_both_sizes() {
        for bytes in [usize::try_from(available_bytes()).unwrap() + (1 << 30), usize::MAX] {
            let error = HugeMemory::new("table mac", bytes, Pages::Huge).unwrap_err();
            assert_eq!(error.kind(), "memory");
            let message = error.to_string();
            assert!(message.starts_with("table mac needs") && message.contains("available"), "{message}");
        }
        assert_eq!(HugeMemory::new("table mac", 0, Pages::Huge).unwrap_err().kind(), "request");
    }
}
