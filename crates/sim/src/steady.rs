//! Where the transient ends (MSER-5) and how sure a mean is (batch means), semantics S10.

/// Result of the MSER rule on a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncation {
    /// Leave out so many leading values.
    After(usize),
    /// The best cut lies in the second half: the series has not settled.
    NotSettled,
}

/// MSER-5 (White 1997): the cut that minimises the squared standard error of the mean of what is left, over a series
/// of means of five.
///
/// Of all cuts that come within a tenth of the least error the earliest is taken: the least one itself would leave out
/// what happens to be high at the beginning of a series that has no transient, and so bias its mean. Only the first
/// half is eligible; the least error at its very end says that the series has not settled.
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
}
