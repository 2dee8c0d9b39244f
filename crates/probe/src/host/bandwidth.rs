//! Bytes per second that a core reads, writes and copies, by the size of the working set.

use std::hint::black_box;

use serde::Serialize;

use super::clock::Clock;
use super::progress::Progress;
use super::slices::Effort;
use crate::error::Result;
use crate::memory::{HugeMemory, Pages};

/// Bytes that one slice of time moves.
const SLICE_BYTES: usize = 512 << 10;

/// Rounds through a working set before the measurement, and the limit of their bytes.
const WARMING_ROUNDS: usize = 8;
const MOST_WARMING_BYTES: usize = 1 << 30;

/// The kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Each byte is read.
    Read,
    /// Each byte is written.
    Write,
    /// Half of them are read and written into the other half.
    Copy,
}

/// Bytes per second within a working set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BandwidthSample {
    /// The kind of access.
    pub kind: Kind,
    /// Size of the working set; of a copy, source and destination together.
    pub bytes: usize,
    /// Bytes read, written or copied (once, not twice) per second, one value per repeat.
    pub bytes_per_s: Vec<f64>,
}

/// Measures working sets of the given sizes.
///
/// # Errors
///
/// [`ProbeError::Memory`](crate::error::ProbeError::Memory) if the greatest does not fit;
/// [`ProbeError::Interrupted`](crate::error::ProbeError::Interrupted).
pub fn bandwidths(
    sizes: &[usize],
    effort: Effort,
    clock: &Clock,
    progress: &mut Progress<'_>,
) -> Result<Vec<BandwidthSample>> {
    let mut samples = Vec::new();
    let Some(most) = sizes.iter().copied().max() else { return Ok(samples) };
    let mut memory = HugeMemory::new("the working set of the bandwidth", most, Pages::Huge)?;
    for (number, &bytes) in sizes.iter().enumerate() {
        for kind in [Kind::Read, Kind::Write, Kind::Copy] {
            let mut walk = Walk::new(kind, &mut memory.as_mut_slice::<u64>()[..bytes / 8]);
            // Several times over everything: the last-level cache comes to its steady state.
            let mut warmed = 0;
            while warmed < (WARMING_ROUNDS * bytes).min(bytes.max(MOST_WARMING_BYTES)) {
                warmed += walk.slice(SLICE_BYTES);
            }
            let mut moved = 0;
            let took = effort.measure(|| moved = walk.slice(SLICE_BYTES));
            let bytes_per_s = took.into_iter().map(|took| moved as f64 / clock.seconds(took.ticks)).collect();
            samples.push(BandwidthSample { kind, bytes, bytes_per_s });
        }
        progress.at((number + 1) as f64 / sizes.len() as f64)?;
    }
    Ok(samples)
}

/// Walks through a working set repeatedly.
struct Walk<'a> {
    kind: Kind,
    words: &'a mut [u64],
    next_word: usize,
}

impl<'a> Walk<'a> {
    fn new(kind: Kind, words: &'a mut [u64]) -> Self {
        Self { kind, words, next_word: 0 }
    }

    /// Moves at least `bytes`, in pieces from where it stands to the end at most; how many it moved.
    fn slice(&mut self, bytes: usize) -> usize {
        let end = if self.kind == Kind::Copy { self.words.len() / 2 } else { self.words.len() };
        let mut moved = 0;
        while moved < bytes {
            let to = (self.next_word + (bytes - moved) / 8).min(end).max(self.next_word + 1);
            match self.kind {
                Kind::Read => read(&self.words[self.next_word..to]),
                Kind::Write => write(&mut self.words[self.next_word..to]),
                Kind::Copy => {
                    let (from, into) = self.words.split_at_mut(end);
                    copy(&from[self.next_word..to], &mut into[self.next_word..to]);
                }
            }
            moved += (to - self.next_word) * 8;
            self.next_word = if to >= end { 0 } else { to };
        }
        moved
    }
}

#[inline(never)]
fn read(words: &[u64]) {
    black_box(words.iter().fold(0_u64, |sum, &word| sum.wrapping_add(word)));
}

#[inline(never)]
fn write(words: &mut [u64]) {
    let value = black_box(0x0102_0304_0506_0708);
    for word in words {
        *word = value;
    }
}

#[inline(never)]
fn copy(from: &[u64], into: &mut [u64]) {
    into.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_puts_the_first_half_into_the_second_and_counts_its_bytes_once() {
        let mut words: Vec<u64> = (0..2000).collect();
        let mut walk = Walk::new(Kind::Copy, &mut words);
        assert_eq!(walk.slice(8 * 300), 8 * 300);
        assert_eq!(walk.slice(8 * 700), 8 * 700);
        assert!(words[..1000].iter().copied().eq(0..1000));
        assert_eq!(words[..1000], words[1000..]);
    }

    #[test]
    fn a_read_leaves_the_words_and_a_write_changes_every_one() {
        let mut words: Vec<u64> = (0..1000).collect();
        assert_eq!(Walk::new(Kind::Read, &mut words).slice(8 * 1500), 8 * 1500);
        assert!(words.iter().copied().eq(0..1000));
        Walk::new(Kind::Write, &mut words).slice(8 * 1000);
        assert!(words.iter().all(|&word| word == 0x0102_0304_0506_0708));
    }

    #[test]
    fn every_size_is_read_written_and_copied() {
        let clock = Clock { tsc_hz: 1e9, core_hz_repeats: vec![1e9] };
        let mut report = |_| true;
        let effort = Effort { repeats: 2, slices: 3 };
        let samples = bandwidths(&[4096, 1 << 20], effort, &clock, &mut Progress::new(&mut report)).unwrap();
        assert_eq!(samples.len(), 6);
        assert!(samples.iter().all(|sample| sample.bytes_per_s.iter().all(|rate| rate.is_finite() && *rate > 0.0)));
    }
}
