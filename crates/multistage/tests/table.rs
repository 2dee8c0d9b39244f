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

/// The choices of every row, for each of the 256 sets of eight members; a set's bits are its members.
fn tables_of_all_sets(weights: &[f64; 8], seed: u64) -> Vec<Table> {
    let tables_of = |sets: std::ops::Range<usize>| -> Vec<Table> {
        let of_set = |set: usize| {
            let all = members(weights);
            let members: Vec<_> = all.into_iter().filter(|member| set >> member.number & 1 == 1).collect();
            Table::new(&members, seed)
        };
        sets.map(of_set).collect()
    };
    let (first, second) = std::thread::scope(|threads| {
        let half = threads.spawn(|| tables_of(0..128));
        let second = tables_of(128..256);
        (half.join().expect("the first half"), second)
    });
    first.into_iter().chain(second).collect()
}

/// Checks each row at each of the 65,280 transitions between two different sets of eight members; returns how many
/// owners were compared.
fn check_all_transitions(weights: &[f64; 8], seed: u64) -> u64 {
    let tables = tables_of_all_sets(weights, seed);
    assert!(tables[0].rows.iter().all(|&row| row == u64::MAX), "without members no row has an owner");
    for (set, table) in tables.iter().enumerate().skip(1) {
        let count = set.count_ones() as usize;
        for (row, choices) in table.rows.iter().enumerate() {
            let choices = choices.to_le_bytes();
            let all = choices[..count].iter().fold(0, |bits, &number| bits | 1_usize << (number & 63));
            let is_whole = all == set && choices[count..].iter().all(|&number| number == NOBODY);
            assert!(is_whole, "row {row} of set {set:08b}: {choices:?}");
        }
    }
    // The owner as a bit, as in the sets; 0 for nobody.
    let owner_bit = |choices: &u64| 1_u8.checked_shl(u32::from(choices.to_le_bytes()[0])).unwrap_or(0);
    let owners: Vec<Vec<u8>> = tables.iter().map(|table| table.rows.iter().map(owner_bit).collect()).collect();
    for (set, table) in tables.iter().enumerate().skip(1) {
        for (row, choices) in table.rows.iter().enumerate() {
            let choices = choices.to_le_bytes();
            let second = 1_u8.checked_shl(u32::from(choices[1])).unwrap_or(0);
            let heir = owners[set & !(1 << choices[0])][row];
            assert_eq!(second, heir, "row {row} of set {set:08b}: the second choice and the owner without the first");
        }
    }
    let check = |before: u8| {
        let mut compared = 0;
        for after in (0..=255).filter(|&after| after != before) {
            let (stay, join) = (before & after, after & !before);
            // Who may own a row of this owner after the change: it or one that joins; an heir, if it left.
            let heirs_of = |old: u8| if old & stay == 0 { after } else { old | join };
            let (old, new) = (&owners[usize::from(before)], &owners[usize::from(after)]);
            let is_wrong = |(&old, &new): (&u8, &u8)| if after == 0 { new != 0 } else { new & heirs_of(old) == 0 };
            let wrong = old.iter().zip(new).fold(0, |wrong, owners| wrong | u8::from(is_wrong(owners)));
            assert_eq!(wrong, 0, "from {before:08b} to {after:08b}: row {:?}", old.iter().zip(new).position(is_wrong));
            compared += old.len() as u64;
        }
        compared
    };
    std::thread::scope(|threads| {
        let half = threads.spawn(|| (0..128).map(check).sum::<u64>());
        let second: u64 = (128..=255).map(check).sum();
        second + half.join().expect("the first half")
    })
}

#[test]
fn no_row_of_any_change_among_eight_members_is_without_an_owner_or_moves_without_need() {
    let transitions = 256 * 255;
    assert_eq!(check_all_transitions(&[1.0; 8], 1), transitions * ROWS as u64);
}

#[test]
fn the_same_holds_for_members_of_different_weights() {
    check_all_transitions(&[0.25, 0.5, 1.0, 1.0, 1.5, 2.0, 3.0, 8.0], 20_260_101);
}
