//! Invariants of a table of rows, for any members.

use proptest::prelude::*;
use routecast_multistage::table::{CHOICES, NOBODY, ROWS, Table, Weight};

fn members(weights: &[f64]) -> Vec<Weight> {
    (0_u8..).zip(weights).map(|(number, &weight)| Weight { number, weight }).collect()
}

/// Five standard deviations of the share of rows that is `share` in the mean.
fn spread(share: f64) -> f64 {
    5.0 * (share * (1.0 - share) / ROWS as f64).sqrt()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn a_member_that_goes_or_comes_moves_its_own_rows_and_no_others(
        weights in prop::collection::vec(0.2_f64..5.0, 2..12), seed: u64, which: prop::sample::Index
    ) {
        let all = members(&weights);
        let gone = which.index(all.len());
        let rest: Vec<_> = all.iter().copied().filter(|member| usize::from(member.number) != gone).collect();
        let (with, without) = (Table::new(&all, seed), Table::new(&rest, seed));
        for row in 0..ROWS {
            if usize::from(with.owner(row)) == gone {
                // Its rows go to their second choice, as they do after a failure.
                prop_assert_eq!(without.owner(row), with.rows[row].to_le_bytes()[1]);
            } else {
                prop_assert_eq!(without.owner(row), with.owner(row));
            }
        }
        let share = weights[gone] / weights.iter().sum::<f64>();
        prop_assert!((without.moved_from(&with) - share).abs() <= spread(share));
    }

    #[test]
    fn members_own_rows_in_proportion_to_their_weights(
        weights in prop::collection::vec(0.1_f64..10.0, 1..20), seed: u64
    ) {
        let shares = Table::new(&members(&weights), seed).shares();
        let total: f64 = weights.iter().sum();
        for (share, weight) in shares.iter().zip(&weights) {
            prop_assert!((share - weight / total).abs() <= spread(weight / total));
        }
    }

    #[test]
    fn order_and_members_of_no_weight_do_not_matter(
        weights in prop::collection::vec(0.1_f64..10.0, 1..10), seed: u64
    ) {
        let all = members(&weights);
        let mut other: Vec<_> = all.iter().rev().copied().collect();
        other.push(Weight { number: 63, weight: 0.0 });
        prop_assert_eq!(Table::new(&all, seed).digest(), Table::new(&other, seed).digest());
    }

    #[test]
    fn a_member_that_weighs_more_takes_rows_and_gives_none(
        weights in prop::collection::vec(0.2_f64..5.0, 2..10), seed: u64, by in 1.1_f64..3.0
    ) {
        let before = members(&weights);
        let mut after = before.clone();
        after[0].weight *= by;
        let (before, after) = (Table::new(&before, seed), Table::new(&after, seed));
        for row in 0..ROWS {
            prop_assert!(after.owner(row) == before.owner(row) || after.owner(row) == 0);
        }
    }
}

#[test]
fn with_equal_weights_at_most_one_nth_and_a_hundredth_of_the_rows_move() {
    for count in [2_u8, 3, 4, 8, 16, 33, 64] {
        let all: Vec<_> = (0..count).map(|number| Weight { number, weight: 1.0 }).collect();
        let (with, without) = (Table::new(&all, 1), Table::new(&all[1..], 1));
        assert!(without.moved_from(&with) <= 1.0 / f64::from(count) + 0.01, "{count} members");
    }
}

#[test]
fn the_choices_of_a_row_are_different_members_and_then_nobody() {
    let table = Table::new(&members(&[1.0, 2.0, 3.0]), 5);
    for row in &table.rows {
        let choices = row.to_le_bytes();
        let mut first: Vec<_> = choices[..3].to_vec();
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2]);
        assert_eq!(choices[3..], [NOBODY; CHOICES - 3]);
    }
    assert!(Table::new(&[], 5).rows.iter().all(|&row| row == u64::MAX));
}
