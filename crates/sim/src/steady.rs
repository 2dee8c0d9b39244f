//! The end of the transient (MSER-5, and a test that there is one) and intervals of means (batch means), semantics S10.

/// Result of the MSER rule on a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncation {
    /// The number of leading values to leave out.
    After(usize),
    /// The best cut lies in the second half: the series has not settled.
    NotSettled,
}

/// MSER-5 (White 1997): the cut that minimises the squared standard error of the mean of what is left, over a series
/// of means of five.
///
/// The earliest cut within a tenth of the least error is taken: the cut of least error itself would leave out a
/// beginning that happens to be high in a series without a transient, and so bias its mean. Only the first half is
/// eligible; the least error at its very end says that the series has not settled.
#[must_use]
pub fn mser5(series: &[f64]) -> Truncation {
    let means: Vec<f64> = series.chunks_exact(5).map(|five| five.iter().sum::<f64>() / 5.0).collect();
    if means.len() < 4 {
        return Truncation::After(0);
    }
    let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
    let offset = means[means.len() - 1];
    let half = means.len() / 2;
    let mut errors = vec![0.0; half + 1];
    for (cut, &mean) in means.iter().enumerate().rev() {
        let value = mean - offset;
        sum += value;
        squares += value * value;
        n += 1.0;
        if cut <= half {
            // Differences below the resolution of the sums count as none.
            let spread = (squares - sum * sum / n).max(0.0);
            let noise = 1e-12 * (squares + offset * offset * n);
            errors[cut] = if spread <= noise { 0.0 } else { spread } / (n * n);
        }
    }
    let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
    if errors.iter().position(|&error| error <= least) == Some(half) {
        return Truncation::NotSettled;
    }
    Truncation::After(5 * errors.iter().position(|&error| error <= 1.1 * least).unwrap_or(0))
}

/// Parts of a series whose ranks are compared.
const RANKED: usize = 100;
/// Share of the greatest possible difference between two means of ranks from which on they count as apart.
const APART: f64 = 0.9;
/// The fewest independent parts from which a series can be called steady.
const FEWEST_RANKED: f64 = 5.0;

/// The end of the transient of a series that may have none: the cut of [`mser5`], if the values that it leaves out
/// differ from the rest.
///
/// MSER alone leaves out a burst that happens to stand at the beginning, and so biases the mean low: with service times
/// of squared coefficient of variation 10 by 3 to 9 %. The test compares *ranks* of a hundred means. A burst is high
/// but short; a transient is on one side of the rest all along. Ranks of neighbours are alike, so that k of them count as
/// `k (1 - r) / (1 + r)`, r their lag-1 autocorrelation; two means of ranks are compared by Student's t at the 1 % level.
///
/// A trial begins empty: a beginning that lies below nearly all of the rest is cut however much the rest resembles itself.
///
/// Where MSER finds no end and the second half is one slow movement, there is nothing to compare with: it has not settled.
#[must_use]
pub fn transient(series: &[f64]) -> Truncation {
    let truncation = mser5(series);
    let cut = match truncation {
        Truncation::After(0) => return truncation,
        Truncation::After(cut) => cut,
        Truncation::NotSettled => series.len() / 2,
    };
    let size = (series.len() / RANKED).max(1);
    let means: Vec<f64> = series.chunks_exact(size).map(|part| part.iter().sum::<f64>() / size as f64).collect();
    let ranks = ranks(&means);
    let (head, rest) = ranks.split_at((cut + size / 2).div_euclid(size).clamp(1, ranks.len() - 1));
    let difference = (mean(head) - mean(rest)).abs();
    if mean(head) < mean(rest) && difference > APART * ranks.len() as f64 / 2.0 {
        return truncation;
    }
    let level = mean(rest);
    let residuals: Vec<f64> = rest.iter().map(|rank| rank - level).collect();
    let squares: f64 = residuals.iter().map(|value| value * value).sum();
    if squares == 0.0 {
        return if difference > 0.0 { truncation } else { Truncation::After(0) };
    }
    let count = rest.len() as f64;
    let r = unbiased(autocorrelation(&residuals), count).clamp(0.0, 0.95);
    let alike = (1.0 + r) / (1.0 - r);
    if truncation == Truncation::NotSettled && count / alike < FEWEST_RANKED {
        return truncation;
    }
    let error = (squares / (count - 1.0) * alike * (1.0 / head.len() as f64 + 1.0 / count)).sqrt();
    let degrees = (count / alike - 1.0).max(1.0) as usize;
    if difference > student_t_99(degrees) * error { truncation } else { Truncation::After(0) }
}

/// Ranks from 1 on; equals share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0.0;
    for equals in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let count = equals.len() as f64;
        for &index in equals {
            ranks[index] = before + f64::midpoint(count, 1.0);
        }
        before += count;
    }
    ranks
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Lag-1 autocorrelation of values whose mean is 0.
fn autocorrelation(values: &[f64]) -> f64 {
    let squares: f64 = values.iter().map(|value| value * value).sum();
    values.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares
}

/// An autocorrelation of so many values without its bias (Marriott and Pope 1954, *Biometrika* 41, 390-402).
fn unbiased(r: f64, count: f64) -> f64 {
    r + (1.0 + 4.0 * r) / count
}

/// The fewest batches.
const FEWEST_BATCHES: usize = 19;
/// The fewest frames (or other counted items) of a batch, on average.
const FEWEST_IN_A_BATCH: f64 = 4.0;
/// The fewest independent batches from which an interval is computed.
const FEWEST_WORTH: f64 = 5.0;
/// Greatest lag-1 autocorrelation that passes for none, in standard errors: the 5 % level of one side.
const ALIKE: f64 = 1.645;
/// How skewness widens an interval: see [`ratio_half_width`].
const SKEWED: f64 = 280.0;
/// The largest factor of that widening.
const MOST_WIDENED: f64 = 6.0;

/// Half-width of the 95 % interval of the ratio of two sums over one series: of latencies over frames, say. NaN where the
/// series is too short to tell.
///
/// The batches double until the autocorrelation of neighbours passes for none. From what is left of it, k batches count
/// as `n = k (1 - r) / (1 + r)`. The residuals `above - ratio * below` of the batches, and not their ratios, give the
/// variance: batches with many frames have long latencies.
///
/// A mean of skewed batches misses low: bursts that are rare are missing, and then the spread looks small too. Johnson's
/// *t* (1978, *J. Am. Stat. Assoc.* 73, 536-544), on which N-Skart rests (Tafazzoli and Wilson 2011, *IIE Trans.* 43,
/// 110-128), moves and bends the interval by `b = skewness / (6 sqrt(n))`. Its arms cross where b passes 0.08, as it does
/// with lognormal service times, so Student's half-width is multiplied by `exp(280 b^2)`, 6 at most, on either side:
/// 1.03 for b = 0.01, 2 for 0.05. The number is found by simulation (`benches/coverage.py`).
#[must_use]
pub fn ratio_half_width(above: &[f64], below: &[f64]) -> f64 {
    let total_below: f64 = below.iter().sum();
    if total_below <= 0.0 {
        return f64::NAN;
    }
    let ratio = above.iter().sum::<f64>() / total_below;
    let mut size = 1;
    loop {
        let count = above.len() / size;
        if count < FEWEST_BATCHES {
            return f64::NAN;
        }
        let first = above.len() - count * size;
        let is_last = count / 2 < FEWEST_BATCHES;
        let residuals: Vec<f64> = (above[first..].chunks_exact(size).zip(below[first..].chunks_exact(size)))
            .map(|(above, below)| above.iter().sum::<f64>() - ratio * below.iter().sum::<f64>())
            .collect();
        let n = count as f64;
        let middle = mean(&residuals);
        let apart: Vec<f64> = residuals.iter().map(|value| value - middle).collect();
        let mean_below = below[first..].iter().sum::<f64>() / n;
        let squares: f64 = apart.iter().map(|value| value * value).sum();
        let resolution = 1e-9 * ratio.abs() * mean_below;
        if apart.iter().all(|value| value.abs() <= resolution) {
            return 0.0;
        }
        let r = autocorrelation(&apart);
        if !is_last && (r.abs() * n.sqrt() > ALIKE || total_below / n < FEWEST_IN_A_BATCH) {
            size *= 2;
            continue;
        }
        let r = unbiased(r, n).clamp(0.0, 0.9);
        let worth = n * (1.0 - r) / (1.0 + r);
        if worth < FEWEST_WORTH {
            return f64::NAN;
        }
        let variance = squares / (n - 1.0);
        let cubes: f64 = apart.iter().map(|value| value.powi(3)).sum();
        let skewness = n / ((n - 1.0) * (n - 2.0)) * cubes / variance.powf(1.5);
        let bend = skewness.max(0.0) / (6.0 * worth.sqrt());
        let widened = (SKEWED * bend * bend).exp().min(MOST_WIDENED);
        return widened * student_t((worth - 1.0) as usize) * (variance / worth).sqrt() / mean_below;
    }
}

/// Half-width of the 95 % interval of a mean from (nearly) independent values of it.
#[must_use]
pub fn half_width(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() < 2 {
        return f64::NAN;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    student_t(values.len() - 1) * (variance / n).sqrt()
}

/// Two-sided 95 % quantile of Student's t.
#[must_use]
pub fn student_t(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match degrees {
        0 => f64::NAN,
        d if d <= 30 => TABLE[d - 1],
        // Cornish-Fisher expansion of the quantile, good to 1e-4 beyond 30 degrees.
        d => 1.959_964 + 2.372_27 / d as f64 + 2.822_5 / (d as f64).powi(2),
    }
}

/// Two-sided 99 % quantile of Student's t.
fn student_t_99(degrees: usize) -> f64 {
    const TABLE: [f64; 30] = [
        63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
        2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
    ];
    match degrees {
        0 => f64::NAN,
        d if d <= 30 => TABLE[d - 1],
        d => 2.575_829 + 4.916_7 / d as f64 + 8.834 / (d as f64).powi(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transient_is_cut_off_where_it_ends() {
        let mut series: Vec<f64> = (0..100).map(|i| 10.0 - 0.1 * f64::from(i)).collect();
        series.extend((0..900).map(|i| if i % 2 == 0 { 0.1 } else { -0.1 }));
        match mser5(&series) {
            Truncation::After(cut) => assert!((80..=105).contains(&cut), "{cut}"),
            Truncation::NotSettled => panic!("it settles"),
        }
    }

    #[test]
    fn a_constant_series_loses_nothing_and_a_ramp_never_settles() {
        assert_eq!(mser5(&[3.0; 1000]), Truncation::After(0));
        let ramp: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(mser5(&ramp), Truncation::NotSettled);
    }

    #[test]
    fn student_t_joins_its_table_smoothly() {
        // Abramowitz and Stegun, table 26.10: t(40) = 2.021, t(60) = 2.000, t(120) = 1.980.
        for (degrees, value) in [(30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980)] {
            assert!((student_t(degrees) - value).abs() < 1e-3, "{degrees}");
        }
    }

    /// Waiting times of M/G/1 with lognormal service (squared coefficient of variation 10, load 0.7), by Lindley's
    /// recursion: thousand sums over fifty frames each.
    fn lognormal_queue(seed: u64) -> Vec<f64> {
        use rand::SeedableRng;
        use rand_distr::{Distribution, Exp, LogNormal};
        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
        let spread = 11.0_f64.ln();
        let service = LogNormal::new(-spread / 2.0, spread.sqrt()).unwrap();
        let gap = Exp::new(0.7).unwrap();
        let mut wait = 0.0_f64;
        let sums = (0..1000).map(|_| {
            (0..50)
                .map(|_| {
                    wait = (wait + service.sample(&mut random) - gap.sample(&mut random)).max(0.0);
                    wait
                })
                .sum()
        });
        sums.collect()
    }

    /// Pollaczek and Khinchine: W = rho (1 + 10) / (2 (1 - rho)).
    const LOGNORMAL_WAIT: f64 = 0.7 * 11.0 / 0.6;

    #[test]
    fn a_burst_at_the_beginning_is_no_transient() {
        let mut series = vec![1.0; 1000];
        for (index, value) in series.iter_mut().enumerate() {
            *value += 0.1 * (index as f64 * 2.399_963).sin();
        }
        series[..55].iter_mut().step_by(11).for_each(|value| *value = 30.0);
        assert!(matches!(mser5(&series), Truncation::After(cut) if cut > 0));
        assert_eq!(transient(&series), Truncation::After(0));
    }

    #[test]
    fn a_transient_is_found_where_there_is_one() {
        let mut series: Vec<f64> = (0..100).map(|i| 10.0 - 0.1 * f64::from(i)).collect();
        series.extend((0..900).map(|i| if i % 2 == 0 { 0.1 } else { -0.1 }));
        assert!(matches!(transient(&series), Truncation::After(cut) if (80..=105).contains(&cut)));
        assert_eq!(transient(&[3.0; 1000]), Truncation::After(0));
        let ramp: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(transient(&ramp), Truncation::NotSettled);
    }

    #[test]
    fn a_queue_that_fills_is_cut_though_it_then_moves_slowly() {
        let series: Vec<f64> =
            (0..1000).map(|i| f64::from(i.min(120)) / 120.0 * (100.0 + 5.0 * (f64::from(i) / 90.0).sin())).collect();
        assert!(matches!(transient(&series), Truncation::After(cut) if cut >= 80), "{:?}", transient(&series));
    }

    #[test]
    fn skewed_queues_are_seldom_cut_and_their_intervals_hold_the_mean() {
        let ones = vec![50.0; 1000];
        let (mut cut, mut held) = (0, 0);
        for seed in 0..200 {
            let sums = lognormal_queue(seed);
            cut += usize::from(transient(&sums) != Truncation::After(0));
            let mean = sums.iter().sum::<f64>() / 50_000.0;
            held += usize::from((mean - LOGNORMAL_WAIT).abs() <= ratio_half_width(&sums, &ones));
        }
        assert!(cut <= 10, "{cut}");
        assert!((184..=196).contains(&held), "{held}");
    }

    #[test]
    fn what_moves_slowly_has_no_interval_and_what_is_constant_a_narrow_one() {
        let ramp: Vec<f64> = (0..1000).map(f64::from).collect();
        assert!(ratio_half_width(&ramp, &[1.0; 1000]).is_nan());
        assert_eq!(ratio_half_width(&[3.0; 1000], &[1.0; 1000]), 0.0);
        assert!(ratio_half_width(&[], &[]).is_nan());
    }

    #[test]
    fn independent_values_have_the_interval_of_student() {
        use rand::{RngExt, SeedableRng};
        let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(1);
        let values: Vec<f64> = (0..1000).map(|_| random.random()).collect();
        let ratio = ratio_half_width(&values, &[10.0; 1000]) / (half_width(&values) / 10.0);
        assert!((0.9..1.3).contains(&ratio), "{ratio}");
    }
}
