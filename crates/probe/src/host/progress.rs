//! The progress of a long measurement.

use crate::error::{ProbeError, Result};

/// A part of the measurement, reported as a share of the whole.
pub struct Progress<'a> {
    report: &'a mut dyn FnMut(f64) -> bool,
    from: f64,
    to: f64,
}

impl<'a> Progress<'a> {
    /// The whole; `report` gets the share, 0 to 1, and returns whether to go on.
    pub fn new(report: &'a mut dyn FnMut(f64) -> bool) -> Self {
        Self { report, from: 0.0, to: 1.0 }
    }

    /// The part of this span from one share of it to another.
    pub fn part(&mut self, from: f64, to: f64) -> Progress<'_> {
        let at = |share: f64| self.from + share * (self.to - self.from);
        Progress { from: at(from), to: at(to), report: &mut *self.report }
    }

    /// Reports that a share of this span is done and returns whether to go on.
    pub fn goes_on(&mut self, share: f64) -> bool {
        (self.report)(self.from + share.clamp(0.0, 1.0) * (self.to - self.from))
    }

    /// Reports that a share of this span is done.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Interrupted`] if the caller stops it.
    pub fn at(&mut self, share: f64) -> Result<()> {
        if self.goes_on(share) { Ok(()) } else { Err(ProbeError::Interrupted) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_parts_are_told_as_shares_of_the_whole() {
        let mut reported = Vec::new();
        let mut report = |share| {
            reported.push(share);
            share < 0.7
        };
        let mut all = Progress::new(&mut report);
        let mut half = all.part(0.5, 1.0);
        half.at(0.0).unwrap();
        half.part(0.0, 0.5).at(0.5).unwrap();
        assert_eq!(half.at(7.0).unwrap_err().kind(), "interrupted");
        assert_eq!(reported, [0.5, 0.625, 1.0]);
    }
}
