//! An array of entries of `8·W` bytes, read by index: next hops, counters, policies.

use crate::error::{ProbeError, Result};
use crate::memory::{HugeMemory, Pages};

/// An array of entries of `W` 64-bit words.
#[derive(Debug)]
pub struct Array<const W: usize> {
    memory: HugeMemory,
}

impl<const W: usize> Array<W> {
    /// An array of `entries` zeros.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Request`] for no entries; [`ProbeError::Memory`] if there is not that much.
    pub fn new(what: &str, entries: usize, pages: Pages) -> Result<Self> {
        if entries == 0 {
            return Err(ProbeError::request(what, "got an array of 0 entries; ask for one or more"));
        }
        Ok(Self { memory: HugeMemory::new(what, entries.saturating_mul(8 * W), pages)? })
    }

    /// All entries; never none.
    #[inline]
    #[must_use]
    pub fn entries(&self) -> &[[u64; W]] {
        self.memory.as_slice()
    }

    /// All entries, to be written.
    #[inline]
    #[must_use]
    pub fn entries_mut(&mut self) -> &mut [[u64; W]] {
        self.memory.as_mut_slice()
    }

    /// The memory that the array lies in.
    #[must_use]
    pub fn memory(&self) -> &HugeMemory {
        &self.memory
    }
}
