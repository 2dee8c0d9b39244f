//! Service times: the mean of S5 times a random factor of mean 1.

use rand::RngExt as _;
use rand_distr::{Distribution as _, Exp1, Gamma, LogNormal};

use crate::interruption::Interruptions;
use crate::random::Stream;
use crate::scenario::{Scenario, Task, Variation};

/// Service times of one task unit or port.
#[derive(Debug)]
pub struct Service {
    per_frame_ps: f64,
    per_byte_ps: f64,
    per_batch_ps: f64,
    factor: Factor,
    interruptions: Interruptions,
    rng: Stream,
    /// Factors drawn ahead, and the one that comes next.
    ahead: Box<[f64; AHEAD]>,
    next: usize,
}

const AHEAD: usize = 128;

/// Work that depends on the size of a frame alone.
#[derive(Debug, Clone, Copy)]
pub struct EvenWork {
    per_frame_ps: f64,
    per_byte_ps: f64,
}

impl EvenWork {
    /// Picoseconds of a frame.
    #[inline]
    #[must_use]
    pub fn of(self, bytes: u32) -> f64 {
        self.per_frame_ps + self.per_byte_ps * f64::from(bytes)
    }
}

/// A random factor of mean 1.
#[derive(Debug)]
pub(crate) enum Factor {
    One,
    Exponential,
    Gamma(Gamma<f64>),
    Hyperexponential { p: f64, mean_a: f64, mean_b: f64 },
    LogNormal(LogNormal<f64>),
    Uniform { half: f64 },
}

impl Factor {
    /// The factor of a variation that was checked.
    pub(crate) fn of(variation: Variation) -> Self {
        match variation {
            Variation::Deterministic => Self::One,
            Variation::Exponential => Self::Exponential,
            Variation::Gamma { scv } => Self::Gamma(Gamma::new(1.0 / scv, scv).expect("scv was checked")),
            Variation::Hyperexponential { scv } => {
                // Balanced means: each phase carries half of the mean.
                let p = 0.5 * (1.0 + ((scv - 1.0) / (scv + 1.0)).sqrt());
                Self::Hyperexponential { p, mean_a: 0.5 / p, mean_b: if p < 1.0 { 0.5 / (1.0 - p) } else { 0.0 } }
            }
            Variation::Lognormal { scv } => {
                let variance = (1.0 + scv).ln();
                Self::LogNormal(LogNormal::new(-0.5 * variance, variance.sqrt()).expect("scv was checked"))
            }
            Variation::Uniform { scv } => Self::Uniform { half: (3.0 * scv).sqrt() },
        }
    }

    /// Fills a slice with draws, in a loop for each law: that keeps the processor busy.
    pub(crate) fn fill(&self, rng: &mut Stream, draws: &mut [f64]) {
        match self {
            Self::One => draws.fill(1.0),
            Self::Exponential => draws.fill_with(|| Exp1.sample(rng)),
            Self::Gamma(gamma) => draws.fill_with(|| gamma.sample(rng)),
            Self::Hyperexponential { p, mean_a, mean_b } => draws.fill_with(|| {
                let phase = if rng.random::<f64>() < *p { *mean_a } else { *mean_b };
                let factor: f64 = Exp1.sample(rng);
                phase * factor
            }),
            Self::LogNormal(normal) => draws.fill_with(|| normal.sample(rng)),
            Self::Uniform { half } => draws.fill_with(|| 1.0 + *half * (2.0 * rng.random::<f64>() - 1.0)),
        }
    }
}

impl Service {
    /// The service of a task unit, with its own random stream.
    ///
    /// # Panics
    ///
    /// If the squared coefficient of variation was not checked.
    #[must_use]
    pub fn new(task: &Task, rng: Stream) -> Self {
        Self {
            per_frame_ps: task.per_frame_ps,
            per_byte_ps: task.per_byte_ps,
            per_batch_ps: task.per_batch_ps,
            factor: Factor::of(task.variation),
            interruptions: Interruptions::default(),
            rng,
            ahead: Box::new([1.0; AHEAD]),
            next: AHEAD,
        }
    }

    /// Transmission on a link: a fixed time per byte, the wire overhead included.
    #[must_use]
    pub fn link(link_bps: f64, rng: Stream) -> Self {
        let per_byte_ps = 8.0 * crate::time::PS_PER_S / link_bps;
        Self {
            per_frame_ps: per_byte_ps * f64::from(crate::source::WIRE_OVERHEAD_BYTES),
            per_byte_ps,
            per_batch_ps: 0.0,
            factor: Factor::One,
            interruptions: Interruptions::default(),
            rng,
            ahead: Box::new([1.0; AHEAD]),
            next: AHEAD,
        }
    }

    /// The service with the interruptions that strike a node's units.
    #[must_use]
    pub fn interrupted(self, scenario: &Scenario, node: usize) -> Self {
        Self { interruptions: Interruptions::of_node(scenario, node), ..self }
    }

    /// Draws the picoseconds that interruptions add to work that takes `work_ps` without them.
    #[inline]
    pub fn interruptions_ps(&mut self, work_ps: f64) -> f64 {
        if self.interruptions.is_none() { 0.0 } else { self.interruptions.added_ps(work_ps) }
    }

    /// Picoseconds that open a batch.
    #[inline]
    #[must_use]
    pub fn per_batch_ps(&self) -> f64 {
        self.per_batch_ps
    }

    /// The picoseconds of a frame of this size, batch cost included, if they do not vary.
    #[inline]
    #[must_use]
    pub fn constant_ps(&self, bytes: u32) -> Option<f64> {
        (matches!(self.factor, Factor::One) && self.interruptions.is_none())
            .then(|| self.per_frame_ps + self.per_byte_ps * f64::from(bytes) + self.per_batch_ps)
    }

    /// The picoseconds of a frame, batch cost apart, if they depend on its size alone.
    #[inline]
    #[must_use]
    pub fn even_ps(&self) -> Option<EvenWork> {
        let Self { per_frame_ps, per_byte_ps, .. } = *self;
        (matches!(self.factor, Factor::One) && self.interruptions.is_none())
            .then_some(EvenWork { per_frame_ps, per_byte_ps })
    }

    /// Whether frames of other sizes take other times.
    #[must_use]
    pub fn depends_on_size(&self) -> bool {
        self.per_byte_ps != 0.0
    }

    /// Draws the picoseconds of one frame at speed 1 without contention.
    #[inline]
    pub fn draw_ps(&mut self, bytes: u32) -> f64 {
        let mean = self.per_frame_ps + self.per_byte_ps * f64::from(bytes);
        if let Factor::One = self.factor {
            return mean;
        }
        if self.next == AHEAD {
            self.draw_ahead();
        }
        let factor = self.ahead[self.next];
        self.next += 1;
        mean * factor
    }

    /// Draws the picoseconds of many frames, whose sizes must not matter, and makes of each what a closure says.
    pub fn draw_many<T>(&mut self, into: &mut Vec<T>, make: impl Fn(&mut Self, f64) -> T) {
        if self.next == AHEAD {
            self.draw_ahead();
        }
        into.clear();
        let mean = self.per_frame_ps;
        for next in std::mem::replace(&mut self.next, AHEAD)..AHEAD {
            let factor = self.ahead[next];
            into.push(make(self, mean * factor));
        }
    }

    /// Whole picoseconds of work that was drawn, with the cost of its batch and its interruptions, on a unit that takes
    /// `slowness` times as long.
    #[inline]
    pub fn whole_ps(&mut self, drawn_ps: f64, slowness: f64) -> u64 {
        let takes = (drawn_ps + self.per_batch_ps) * slowness;
        // Through i64, which is one instruction; the check keeps work far below 2^63 ps.
        (takes + self.interruptions_ps(takes) + 0.5) as i64 as u64
    }

    /// Draws factors ahead: a loop of draws keeps the processor busy where one draw at a time makes it wait.
    #[inline(never)]
    fn draw_ahead(&mut self) {
        self.factor.fill(&mut self.rng, self.ahead.as_mut_slice());
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;
    use crate::scenario::{Activation, Route, RouteKind};

    fn task(variation: Variation) -> Task {
        Task {
            needs: vec![],
            per_frame_ps: 1000.0,
            per_byte_ps: 0.0,
            per_batch_ps: 0.0,
            variation,
            queue: 1,
            activation: Activation::Dedicated,
            batch: 1,
            parallel: Some(1),
            priority: 0,
            weight: 1.0,
            pin: vec![],
            thread: None,
            holds_back: false,
            copies: vec![],
            route: Route { kind: RouteKind::Single, to: vec![], weights: vec![], indirection: vec![] },
        }
    }

    #[test]
    fn every_variation_has_the_mean_and_squared_cv_that_it_names() {
        let cases = [
            (Variation::Deterministic, 0.0),
            (Variation::Exponential, 1.0),
            (Variation::Gamma { scv: 0.5 }, 0.5),
            (Variation::Gamma { scv: 2.0 }, 2.0),
            (Variation::Hyperexponential { scv: 4.0 }, 4.0),
            (Variation::Lognormal { scv: 0.7 }, 0.7),
            (Variation::Uniform { scv: 0.2 }, 0.2),
        ];
        for (variation, scv) in cases {
            let mut service = Service::new(&task(variation), stream(7, 0, "service", 0));
            let n = 400_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..n {
                let x = service.draw_ps(64) / 1000.0;
                sum += x;
                squares += x * x;
            }
            let mean = sum / f64::from(n);
            let got = squares / f64::from(n) / (mean * mean) - 1.0;
            assert!((mean - 1.0).abs() < 0.015, "{variation:?}: mean {mean}");
            assert!((got - scv).abs() < 0.06 * scv.max(0.1), "{variation:?}: scv {got}");
        }
    }
}
