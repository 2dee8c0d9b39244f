//! Random times of wake-ups and interruptions.

use rand::RngExt as _;

use crate::random::Stream;
use crate::scenario::RandomTime;
use crate::service::Factor;

/// Draws times of one law from a stream of their own.
#[derive(Debug)]
pub struct Times {
    law: Law,
    rng: Stream,
}

#[derive(Debug)]
enum Law {
    Mean { mean_ps: f64, factor: Factor },
    Quantiles(Box<[f64]>),
}

impl Times {
    /// Times of a checked law.
    #[must_use]
    pub fn new(time: &RandomTime, rng: Stream) -> Self {
        let law = match time {
            RandomTime::Mean { mean_ps, variation } => Law::Mean { mean_ps: *mean_ps, factor: Factor::of(*variation) },
            RandomTime::Quantiles { quantiles_ps } => Law::Quantiles(quantiles_ps.as_slice().into()),
        };
        Self { law, rng }
    }

    /// Draws a time, picoseconds.
    pub fn draw_ps(&mut self) -> f64 {
        match &self.law {
            Law::Mean { mean_ps, factor } => {
                let mut factors = [1.0];
                factor.fill(&mut self.rng, &mut factors);
                mean_ps * factors[0]
            }
            Law::Quantiles(table) => between(table, self.rng.random()),
        }
    }
}

/// The value at probability `p` of a table of equally likely quantiles, 0 first and 1 last, linear between them.
fn between(table: &[f64], p: f64) -> f64 {
    let last = table.len() - 1;
    if last == 0 {
        return table[0];
    }
    let position = p * last as f64;
    let low = (position as usize).min(last - 1);
    table[low] + (position - low as f64) * (table[low + 1] - table[low])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;
    use crate::scenario::Variation;

    fn draw(time: &RandomTime, count: usize) -> Vec<f64> {
        let mut times = Times::new(time, stream(3, 0, "times", 0));
        let mut drawn: Vec<f64> = (0..count).map(|_| times.draw_ps()).collect();
        drawn.sort_by(f64::total_cmp);
        drawn
    }

    #[test]
    fn a_table_is_drawn_with_its_own_quantiles() {
        let table = vec![10.0, 12.0, 20.0, 21.0, 500.0];
        let drawn = draw(&RandomTime::Quantiles { quantiles_ps: table.clone() }, 200_000);
        for p in [0.05, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.99] {
            let (got, want) = (drawn[(p * drawn.len() as f64) as usize], between(&table, p));
            // The density between two quantiles is 0.25 over their distance: an error of 0.004 in probability.
            let widest = 0.004 / 0.25 * table.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
            assert!((got - want).abs() < if p < 0.7 { 0.2 } else { widest }, "{p}: {got} for {want}");
        }
        assert!(drawn[0] >= 10.0 && drawn[drawn.len() - 1] <= 500.0);
        assert_eq!(draw(&RandomTime::Quantiles { quantiles_ps: vec![7.0] }, 2), [7.0, 7.0]);
    }

    #[test]
    fn a_mean_is_drawn_with_its_variation() {
        let drawn = draw(&RandomTime::Mean { mean_ps: 50.0, variation: Variation::Gamma { scv: 0.5 } }, 200_000);
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let scv = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64 / mean.powi(2);
        assert!((mean - 50.0).abs() < 0.5 && (scv - 0.5).abs() < 0.02, "{mean} {scv}");
    }
}
