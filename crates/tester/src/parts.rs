//! Frames by equal parts of a trial.
//!
//! Received frames count where they arrive, sent and lost ones where they were due. A trial may begin later than planned
//! (its back end was not ready), so receivers count more parts than it has.

use crate::plan::{Plan, TICKS_PER_NS};

/// Equal parts of a trial; the simulator's trials have as many.
pub const PARTS: usize = 1000;
/// Parts that receivers count; the last one holds everything later.
pub const ROOM: usize = 2048;

/// The beginning of the first part, and the length of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Grid {
    /// `CLOCK_MONOTONIC`, ns.
    pub begin_ns: u64,
    /// Length of a part, ticks; 0: nothing is counted by parts.
    pub part_ticks: u64,
}

impl Grid {
    /// The parts of a trial that begins at an instant.
    #[must_use]
    pub fn new(begin_ns: u64, duration_s: f64) -> Self {
        let ticks = duration_s * 1e9 * TICKS_PER_NS as f64 / PARTS as f64;
        Self { begin_ns, part_ticks: (ticks.round() as u64).max(1) }
    }

    /// The part of an instant.
    #[must_use]
    pub fn part(&self, at_ns: u64) -> usize {
        let since = u128::from(at_ns.saturating_sub(self.begin_ns)) * u128::from(TICKS_PER_NS);
        usize::try_from(since / u128::from(self.part_ticks.max(1))).unwrap_or(ROOM).min(ROOM - 1)
    }

    /// When a part begins, ns.
    #[must_use]
    pub fn begin_of(&self, part: usize) -> u64 {
        let ticks = u128::from(self.part_ticks) * part as u128;
        self.begin_ns + u64::try_from(ticks.div_ceil(u128::from(TICKS_PER_NS))).unwrap_or(u64::MAX - self.begin_ns)
    }
}

/// Counts frames by the parts in which they arrive; a frame of the same part as the one before costs an addition.
#[derive(Debug, Clone, Default)]
pub struct Arrivals {
    grid: Grid,
    counts: Vec<u64>,
    part: usize,
    from_ns: u64,
    until_ns: u64,
}

impl Arrivals {
    /// Counters at 0.
    #[must_use]
    pub fn new(grid: Grid) -> Self {
        Self { grid, counts: vec![0; ROOM], ..Self::default() }
    }

    /// Counts a frame.
    pub fn add(&mut self, at_ns: u64) {
        if self.counts.is_empty() {
            return;
        }
        if at_ns < self.from_ns || at_ns >= self.until_ns {
            self.part = self.grid.part(at_ns);
            self.from_ns = if self.part == 0 { 0 } else { self.grid.begin_of(self.part) };
            self.until_ns = if self.part + 1 == ROOM { u64::MAX } else { self.grid.begin_of(self.part + 1) };
        }
        self.counts[self.part] += 1;
    }

    /// Frames by part, [`ROOM`] of them; empty if the beginning of the parts was not set.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

/// Received frames by part of a trial that began at `begin_ns`, and those that arrived after its end; `None` where it
/// began so late that its end was not counted by parts.
#[must_use]
pub fn received(grid: Grid, begin_ns: u64, counts: &[u64]) -> Option<(Vec<u64>, u64)> {
    let late_ticks = u128::from(begin_ns.saturating_sub(grid.begin_ns)) * u128::from(TICKS_PER_NS);
    let part = u128::from(grid.part_ticks.max(1));
    let late = usize::try_from((late_ticks + part / 2) / part).unwrap_or(ROOM);
    if counts.len() != ROOM || late + PARTS >= ROOM {
        return None;
    }
    let mut parts = counts[late..late + PARTS].to_vec();
    // The beginning is rounded to a part.
    parts[0] += counts[..late].iter().sum::<u64>();
    Some((parts, counts[late + PARTS..].iter().sum()))
}

/// Of the first `sent` frames of a plan, how many were due in each part, and how many of these are not in the bitmap.
#[must_use]
pub fn sent_and_lost(grid: Grid, plan: &Plan, sent: u64, bitmap: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (mut due, mut lost) = (vec![0; PARTS], vec![0; PARTS]);
    let mut from = 0;
    for part in 0..PARTS {
        let until = if part + 1 == PARTS {
            sent
        } else {
            let end = plan.start() + grid.part_ticks * (part as u64 + 1);
            first_due_from(plan, end, from, sent)
        };
        due[part] = until - from;
        lost[part] = missing(bitmap, from, until);
        from = until;
    }
    (due, lost)
}

/// The first frame from `low` on that is due at `ticks` or later; `high` if there is none below it.
fn first_due_from(plan: &Plan, ticks: u64, mut low: u64, mut high: u64) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if plan.due(plan.warmup_frames() + middle) < ticks {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Bits from `from` to before `until` that are not set.
fn missing(bitmap: &[u64], from: u64, until: u64) -> u64 {
    let (mut at, mut lost) = (from, 0);
    while at < until {
        let (word, first) = ((at / 64) as usize, at % 64);
        let bits = (64 - first).min(until - at);
        let mask = if bits == 64 { u64::MAX } else { ((1 << bits) - 1) << first };
        lost += u64::from((!bitmap.get(word).copied().unwrap_or(0) & mask).count_ones());
        at += bits;
    }
    lost
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_instant_lies_in_its_part(begin in 0_u64..1 << 50, duration in 1e-5..1e4_f64, since in 0.0..2.0_f64) {
            let grid = Grid::new(begin, duration);
            let at = begin + (since * duration * 1e9) as u64;
            let part = grid.part(at);
            prop_assert!(grid.begin_of(part) <= at);
            prop_assert!(part + 1 == ROOM || at < grid.begin_of(part + 1));
        }

        /// In any order: every added frame is counted in the part of its instant.
        #[test]
        fn arrivals_are_counted_where_they_lie(times in prop::collection::vec(0_u64..3_000_000, 0..300)) {
            let grid = Grid::new(1_000_000, 1e-3);
            let mut arrivals = Arrivals::new(grid);
            let mut expected = vec![0; ROOM];
            for &at in &times {
                arrivals.add(at);
                expected[grid.part(at)] += 1;
            }
            prop_assert_eq!(arrivals.counts(), &expected[..]);
        }

        /// Compared with a check bit by bit.
        #[test]
        fn missing_bits_are_counted(words in prop::collection::vec(any::<u64>(), 0..5), a in 0_u64..300, b in 0_u64..300) {
            let (from, until) = (a.min(b), a.max(b));
            let is_set = |bit: u64| words.get((bit / 64) as usize).is_some_and(|word| word >> (bit % 64) & 1 == 1);
            prop_assert_eq!(missing(&words, from, until), (from..until).filter(|&bit| !is_set(bit)).count() as u64);
        }

        /// However late a trial begins, no frame is counted twice or forgotten.
        #[test]
        fn a_late_beginning_moves_the_parts(late in 0_u64..2_000, count in 0_u64..5) {
            let grid = Grid::new(5_000, 1e-3); // parts of 1 us
            let counts = vec![count; ROOM];
            match received(grid, 5_000 + late * 1_000, &counts) {
                Some((parts, after)) => {
                    prop_assert_eq!(parts.len(), PARTS);
                    prop_assert_eq!(parts.iter().sum::<u64>() + after, count * ROOM as u64);
                    prop_assert_eq!(parts[0], count * (late + 1));
                    prop_assert_eq!(parts[PARTS - 1], count);
                }
                None => prop_assert!(late as usize + PARTS >= ROOM),
            }
        }
    }

    #[test]
    fn without_a_beginning_nothing_is_counted_by_parts() {
        let mut arrivals = Arrivals::default();
        arrivals.add(7);
        assert!(arrivals.counts().is_empty());
        assert_eq!(received(Grid::default(), 0, arrivals.counts()), None);
    }
}
