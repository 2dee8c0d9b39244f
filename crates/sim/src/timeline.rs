//! Offered and dropped frames over time; kept only if the run asks for them. Forwarded frames are counted in any case.

use crate::ledger::{MINIS, mini_boundary};

/// Frames by mini-batch of the trial.
#[derive(Debug)]
pub struct Timeline {
    end: u64,
    /// Offered frames, by their last bit in.
    pub offered: Vec<u64>,
    /// Dropped frames, by the instant of the drop.
    pub dropped: Vec<u64>,
}

impl Timeline {
    /// No frame in a trial of so many picoseconds.
    #[must_use]
    pub fn new(duration_ps: u64) -> Self {
        Self { end: duration_ps, offered: vec![0; MINIS], dropped: vec![0; MINIS] }
    }

    /// Counts an offered frame.
    pub fn offer(&mut self, at_ps: u64) {
        let mini = self.mini(at_ps);
        self.offered[mini] += 1;
    }

    /// Counts a dropped frame.
    pub fn drop_frame(&mut self, at_ps: u64) {
        let mini = self.mini(at_ps);
        self.dropped[mini] += 1;
    }

    /// The mini-batch of an instant. The product may round across a boundary; the boundaries decide.
    fn mini(&self, at_ps: u64) -> usize {
        let mini = ((at_ps as f64 * (MINIS as f64 / self.end as f64)) as usize).min(MINIS - 1);
        if at_ps < mini_boundary(self.end, mini) {
            mini - 1
        } else if mini + 1 < MINIS && at_ps >= mini_boundary(self.end, mini + 1) {
            mini + 1
        } else {
            mini
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_instant_lies_between_the_boundaries_of_its_part(end in 1_u64..1 << 60, share in 0.0_f64..1.0) {
            let at = ((end as f64 * share) as u64).min(end - 1);
            let mini = Timeline::new(end).mini(at);
            prop_assert!(mini_boundary(end, mini) <= at);
            prop_assert!(at < mini_boundary(end, mini + 1));
        }
    }
}
