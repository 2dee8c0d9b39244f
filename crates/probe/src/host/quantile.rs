//! Robust statistics of slices of time.

/// The quantile of a sample at `probability` (0 to 1), the lower neighbour where it falls between two; NaN of nothing.
#[must_use]
pub fn quantile(sample: &mut [f64], probability: f64) -> f64 {
    if sample.is_empty() {
        return f64::NAN;
    }
    let index = ((sample.len() - 1) as f64 * probability) as usize;
    *sample.select_nth_unstable_by(index, f64::total_cmp).1
}

/// The middle of a sample; NaN of nothing.
#[must_use]
pub fn median(sample: &[f64]) -> f64 {
    quantile(&mut sample.to_vec(), 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_members_of_the_sample() {
        let mut sample = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(quantile(&mut sample, 0.0), 1.0);
        assert_eq!(quantile(&mut sample, 0.25), 2.0);
        assert_eq!(quantile(&mut sample, 1.0), 5.0);
        assert_eq!(median(&sample), 3.0);
        assert!(median(&[]).is_nan());
    }
}
