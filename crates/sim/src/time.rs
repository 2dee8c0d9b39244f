//! Spans of simulated time in integer picoseconds (semantics S3).
//!
//! One picosecond resolves a 64-byte frame on a 1 Tbit/s link to 1 part in 700; 64 bits last for 213 days.

/// A length of simulated time in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

/// Picoseconds in a second.
pub const PS_PER_S: f64 = 1e12;

impl Span {
    /// The span nearest to a non-negative number of picoseconds.
    #[inline]
    #[must_use]
    pub fn from_ps(ps: f64) -> Self {
        // `as` saturates and maps NaN to 0; the scenario check has refused both before.
        Self((ps + 0.5) as u64)
    }
}
