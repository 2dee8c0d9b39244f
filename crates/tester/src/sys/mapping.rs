//! Memory of a BPF array map, shared with the programs that use it.

use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::error::{Result, TesterError};

/// Types whose every bit pattern is a value and that have no padding.
///
/// # Safety
///
/// The type is `repr(C)`, without padding, references or invalid bit patterns.
pub unsafe trait Plain: Copy + 'static {}

// SAFETY: integers are.
unsafe impl Plain for u64 {}
// SAFETY: integers are.
unsafe impl Plain for u32 {}

/// The values of an array map with `BPF_F_MMAPABLE`, in this process's memory.
#[derive(Debug)]
pub struct Mapping<T> {
    base: NonNull<u8>,
    octets: usize,
    values: usize,
    of: PhantomData<T>,
}

// SAFETY: the memory belongs to the mapping until it is dropped, and all accesses are volatile or atomic.
unsafe impl<T> Send for Mapping<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Mapping<T> {}

impl<T: Plain> Mapping<T> {
    /// Maps `values` values of the map.
    ///
    /// # Errors
    ///
    /// The kernel refuses: the map is no array, is not mappable or is shorter.
    ///
    /// # Panics
    ///
    /// Panics where `T` is not aligned like the values of an array, to 8 octets.
    pub fn new(map: BorrowedFd<'_>, values: usize) -> Result<Self> {
        assert!(size_of::<T>().is_multiple_of(8) && align_of::<T>() <= 8, "array values are padded to 8 octets");
        let octets = (values * size_of::<T>()).next_multiple_of(4096);
        // SAFETY: a new mapping at an address of the kernel's choice harms nobody.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                octets,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                map.as_raw_fd(),
                0,
            )
        };
        let base = if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast::<u8>()) };
        let Some(base) = base else { return Err(TesterError::last_os("mapping the memory of an eBPF map")) };
        Ok(Self { base, octets, values, of: PhantomData })
    }

    fn at(&self, index: usize) -> *mut T {
        assert!(index < self.values, "value {index} of {}", self.values);
        // SAFETY: the index is inside the mapping.
        unsafe { self.base.as_ptr().cast::<T>().add(index) }
    }

    /// A copy of a value.
    ///
    /// # Panics
    ///
    /// Panics where there is no such value.
    #[must_use]
    pub fn get(&self, index: usize) -> T {
        // SAFETY: valid and aligned; any bit pattern is a value.
        unsafe { self.at(index).read_volatile() }
    }

    /// Writes a value.
    ///
    /// # Panics
    ///
    /// Panics where there is no such value.
    pub fn set(&self, index: usize, value: T) {
        // SAFETY: valid and aligned.
        unsafe { self.at(index).write_volatile(value) }
    }

    /// Zeroes the first `values` values.
    ///
    /// # Panics
    ///
    /// Panics where there are fewer.
    pub fn clear(&self, values: usize) {
        assert!(values <= self.values, "{values} values of {}", self.values);
        // SAFETY: inside the mapping; zero is a value.
        unsafe { self.base.as_ptr().write_bytes(0, values * size_of::<T>()) }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values == 0
    }

    /// The field at an offset (`offset_of!`) of the first value, while a program may change it.
    ///
    /// # Panics
    ///
    /// Panics where the field is not inside the first value or not aligned.
    #[must_use]
    pub fn word32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= size_of::<T>());
        // SAFETY: aligned and inside the mapping, which lives as long as the reference.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// As [`Mapping::word32`], for 64 bits.
    ///
    /// # Panics
    ///
    /// Panics where the field is not inside the first value or not aligned.
    #[must_use]
    pub fn word64(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= size_of::<T>());
        // SAFETY: aligned and inside the mapping, which lives as long as the reference.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.octets) };
    }
}
