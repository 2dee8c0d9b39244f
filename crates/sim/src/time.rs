//! Simulated time: integer picoseconds (semantics S3).
//!
//! Instants and spans are two types, so that adding two instants does not compile. One picosecond resolves a
//! 64-byte frame on a 1 Tbit/s link to 1 part in 700; 64 bits last for 213 days.

use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time, picoseconds since the trial began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

/// A length of simulated time in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

/// Picoseconds in a second.
pub const PS_PER_S: f64 = 1e12;

impl Instant {
    /// An instant that no trial reaches.
    pub const NEVER: Self = Self(u64::MAX);

    /// Seconds since the trial began.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / PS_PER_S
    }

    /// The span since an earlier instant.
    #[inline]
    #[must_use]
    pub fn since(self, earlier: Self) -> Span {
        debug_assert!(self >= earlier, "time runs forward");
        Span(self.0 - earlier.0)
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// The span nearest to a non-negative number of picoseconds.
    #[inline]
    #[must_use]
    pub fn from_ps(ps: f64) -> Self {
        // `as` saturates and maps NaN to 0; the scenario check has refused both before.
        Self((ps + 0.5) as u64)
    }

    /// The span nearest to a non-negative number of seconds.
    #[must_use]
    pub fn from_seconds(seconds: f64) -> Self {
        Self::from_ps(seconds * PS_PER_S)
    }

    /// This span in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / PS_PER_S
    }
}

impl Add<Span> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}

impl Sub<Span> for Instant {
    type Output = Self;
    #[inline]
    fn sub(self, span: Span) -> Self {
        Self(self.0 - span.0)
    }
}

impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
