//! Laws of a random factor of mean 1, as integers: a function of one exponential.
//!
//! With E exponential, `Q(1 - exp(-E))` has the quantile function Q. It is kept as a table over E, 32 places for each
//! power of two, linear between them, so that both ends of a law are as fine as its middle.

use crate::draw::{UNIT_BITS, exponential};
use crate::words::Word;

/// Fraction bits of a table's values: factors up to 1,024.
const TABLE_BITS: u32 = 22;
/// Places for each power of two.
const PLACES_BITS: u32 = 5;
/// The least exponential that is told apart is 2^-12, below which one in 4,096 lies.
const LEAST_BITS: u32 = 15;
const PLACES: usize = ((32 - LEAST_BITS) as usize) << PLACES_BITS;

/// A random factor of mean 1.
#[derive(Debug, Clone, PartialEq)]
pub enum Law {
    /// Always 1.
    Constant,
    /// Exponential.
    Exponential,
    /// Any other.
    Table(Table),
}

/// A quantile function over an exponential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    knots: Vec<u32>,
}

impl Law {
    /// The law whose survival function is `survival`, scaled to mean 1.
    ///
    /// `survival` falls from 1 to 0 over the positive numbers.
    #[must_use]
    pub fn of_survival(survival: impl Fn(f64) -> f64) -> Self {
        let mut low = 0.0;
        let values: Vec<f64> = (0..=PLACES)
            .map(|place| {
                low = quantile(&survival, instant(place), low);
                low
            })
            .collect();
        let scale = f64::from(1_u32 << TABLE_BITS) / moments(&values).0;
        let knots = values.iter().map(|value| (value * scale).round().min(f64::from(u32::MAX)) as u32).collect();
        Self::Table(Table { knots })
    }

    /// Mean and squared coefficient of variation, as the integers have them.
    #[must_use]
    pub fn moments(&self) -> (f64, f64) {
        match self {
            Self::Constant => (1.0, 0.0),
            Self::Exponential => (1.0, 1.0),
            Self::Table(table) => {
                let unit = f64::from(1_u32 << TABLE_BITS);
                let values: Vec<f64> = table.knots.iter().map(|&knot| f64::from(knot) / unit).collect();
                let (mean, square) = moments(&values);
                (mean, square / (mean * mean) - 1.0)
            }
        }
    }

    /// The largest factor that is drawn.
    #[must_use]
    pub fn largest(&self) -> f64 {
        f64::from(self.factor(0_u32)) / f64::from(self.bits()).exp2()
    }

    /// Fraction bits of [`Law::factor`].
    #[must_use]
    pub fn bits(&self) -> u32 {
        match self {
            Self::Constant | Self::Exponential => UNIT_BITS,
            Self::Table(_) => TABLE_BITS,
        }
    }

    /// The factor of a random word, [`Law::bits`] fraction bits.
    #[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
    #[inline(always)]
    #[must_use]
    pub fn factor<W: Word>(&self, word: W) -> W {
        match self {
            Self::Constant => W::all(1 << UNIT_BITS),
            Self::Exponential => exponential(word),
            Self::Table(table) => table.factor(exponential(word)),
        }
    }
}

impl Table {
    #[expect(clippy::inline_always, reason = "part of the step, in a function that enables the vectors")]
    #[inline(always)]
    fn factor<W: Word>(&self, exponential: W) -> W {
        let least = W::all(1 << LEAST_BITS);
        let value = exponential.below(least).choose(least, exponential);
        let zeros = value.leading_zeros();
        let leading = value.left_by(zeros);
        let octave = W::all(31 - LEAST_BITS).minus(zeros);
        let place = octave.left(PLACES_BITS).plus(leading.left(1).right(32 - PLACES_BITS));
        let fraction = leading.left(1 + PLACES_BITS);
        let (low, high) = (place.look_up(&self.knots), place.plus(W::all(1)).look_up(&self.knots));
        low.plus(fraction.times_high(high.minus(low)))
    }
}

/// The exponential of a place of the table.
fn instant(place: usize) -> f64 {
    let (octave, within) = (place >> PLACES_BITS, place & ((1 << PLACES_BITS) - 1));
    let base = f64::from(LEAST_BITS as i32 - UNIT_BITS as i32 + octave as i32).exp2();
    base * (1.0 + within as f64 / f64::from(1 << PLACES_BITS))
}

/// The value that is exceeded with probability exp(-`exponential`), by bisection from `low` on.
fn quantile(survival: &impl Fn(f64) -> f64, exponential: f64, low: f64) -> f64 {
    let goal = (-exponential).exp();
    let (mut low, mut high) = (low, low.max(1e-12) * 2.0);
    while survival(high) > goal && high < 1e12 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if survival(middle) > goal {
            low = middle;
        } else {
            high = middle;
        }
        if high - low < 1e-13 * high {
            break;
        }
    }
    0.5 * (low + high)
}

/// First and second moment of a table that is linear between its places, over an exponential.
fn moments(values: &[f64]) -> (f64, f64) {
    let first = instant(0);
    // Below the first place its own value counts.
    let below = 1.0 - (-first).exp();
    let (mut mean, mut square) = (values[0] * below, values[0] * values[0] * below);
    for (place, pair) in values.windows(2).enumerate() {
        let (from, to) = (instant(place), instant(place + 1));
        let slope = (pair[1] - pair[0]) / (to - from);
        let (start, end) = ((-from).exp(), (-to).exp());
        // By parts: the integral of g exp(-E) is g(from) exp(-from) - g(to) exp(-to) + that of g' exp(-E).
        let ramp = pair[0] * start - pair[1] * end + slope * (start - end);
        mean += ramp;
        square += pair[0] * pair[0] * start - pair[1] * pair[1] * end + 2.0 * slope * ramp;
    }
    (mean, square)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::{Key, Purpose, threefry};

    /// Factors from consecutive ticks.
    fn drawn(law: &Law, count: u32) -> Vec<f64> {
        let unit = f64::from(law.bits()).exp2();
        let key = Key::new(11, 0, Purpose::Service);
        (0..count)
            .map(|tick| {
                let [word, _] = threefry(key, [tick, 0]);
                f64::from(law.factor(word)) / unit
            })
            .collect()
    }

    fn erlang(phases: u32) -> Law {
        Law::of_survival(|x| {
            let (mut term, mut sum) = ((-x).exp(), 0.0);
            for phase in 1..=phases {
                sum += term;
                term *= x / f64::from(phase);
            }
            sum
        })
    }

    /// Lomax's law, whose tail is heavy: `(1 + x)^-shape`, scv `shape / (shape - 2)`.
    fn lomax(shape: f64) -> Law {
        Law::of_survival(|x| (1.0 + x).powf(-shape))
    }

    #[test]
    fn a_table_has_the_mean_and_the_variance_of_its_law() {
        for (law, scv) in
            [(erlang(1), 1.0), (erlang(4), 0.25), (lomax(6.0), 1.5), (Law::of_survival(uniform), 1.0 / 3.0)]
        {
            let (mean, got) = law.moments();
            assert!((mean - 1.0).abs() < 1e-6, "{mean}");
            assert!((got / scv - 1.0).abs() < 4e-3, "{got} for {scv}");
        }
    }

    fn uniform(x: f64) -> f64 {
        (1.0 - x).clamp(0.0, 1.0)
    }

    #[test]
    fn what_is_drawn_has_mean_variance_tail_and_no_correlation() {
        let count = 1_000_000;
        for (law, scv, tail) in [
            (Law::Exponential, 1.0, (-5.0_f64).exp()),
            (erlang(4), 0.25, 0.0),
            (Law::of_survival(uniform), 1.0 / 3.0, 0.0),
        ] {
            let values = drawn(&law, count);
            let n = f64::from(count);
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            assert!((mean - 1.0).abs() < 4.0 * (scv / n).sqrt() + 1e-6, "{mean}");
            assert!((variance / scv - 1.0).abs() < 0.01, "{variance} for {scv}");
            if law == Law::Exponential {
                let beyond = values.iter().filter(|&&x| x > 5.0).count() as f64 / n;
                assert!((beyond / tail - 1.0).abs() < 4.0 / (tail * n).sqrt(), "{beyond} for {tail}");
            }
            for lag in [1, 2, 3, 7, 64, 1000, 65_536] {
                let pairs = values.len() - lag;
                let sum: f64 = (0..pairs).map(|i| (values[i] - mean) * (values[i + lag] - mean)).sum();
                let correlation = sum / pairs as f64 / variance;
                assert!(correlation.abs() < 4.0 / (pairs as f64).sqrt(), "lag {lag}: {correlation}");
            }
        }
    }
}
