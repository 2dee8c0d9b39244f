//! The hash table against a map, the Poisson distribution and keys that differ in few bits.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::batch::{BATCH_FRAMES, Words};
use crate::operation::{ct_insertion, ht_lookup};

fn key<const N: usize>(number: u64) -> [u64; N] {
    std::array::from_fn(|word| number.wrapping_mul(0x2545_f491_4f6c_dd1d).rotate_left(17 * word as u32))
}

/// Inserts the same keys into the table in batches and into a map, then looks up keys that are present and absent.
fn follows_a_map<const N: usize, const V: usize>(numbers: &[u64], capacity: usize) {
    let mut table = HashTable::<N, V>::new("a test", capacity, Pages::Normal).unwrap();
    let mut map = HashMap::new();
    for (time, batch) in numbers.chunks(BATCH_FRAMES).enumerate() {
        let mut keys: Words<N> = [[EMPTY; N]; BATCH_FRAMES];
        let mut values: Words<V> = [[0; V]; BATCH_FRAMES];
        let mut refused = 0;
        for (frame, &number) in batch.iter().enumerate() {
            keys[frame] = key(number);
            values[frame] = std::array::from_fn(|word| (32 * time + frame + word) as u64);
            if map.len() < capacity || map.contains_key(&keys[frame]) {
                map.insert(keys[frame], values[frame]);
            } else {
                refused |= 1 << frame;
            }
        }
        assert_eq!(ct_insertion(&mut table, &keys, &values, batch.len(), u32::MAX), refused);
    }
    assert_eq!(table.len(), map.len());
    for numbers in [numbers, &numbers.iter().map(|number| number ^ 1 << 40).collect::<Vec<_>>()] {
        for batch in numbers.chunks(BATCH_FRAMES) {
            let mut keys: Words<N> = [[EMPTY; N]; BATCH_FRAMES];
            for (key_of, &number) in keys.iter_mut().zip(batch) {
                *key_of = key(number);
            }
            let mut values: Words<V> = [[0; V]; BATCH_FRAMES];
            let hits = ht_lookup(&table, &keys, batch.len(), &mut values);
            for frame in 0..batch.len() {
                let there = (hits >> frame & 1 == 1).then_some(values[frame]);
                assert_eq!(there, map.get(&keys[frame]).copied());
                assert_eq!(table.get(&keys[frame]), there);
            }
            assert_eq!(u64::from(hits) >> batch.len(), 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_hash_table_holds_what_a_map_holds(
        numbers in prop::collection::vec(0u64..150, 0..300),
        capacity in 1usize..200,
    ) {
        follows_a_map::<1, 1>(&numbers, capacity);
        follows_a_map::<1, 2>(&numbers, capacity);
        follows_a_map::<1, 7>(&numbers, capacity);
        follows_a_map::<2, 1>(&numbers, capacity);
        follows_a_map::<2, 2>(&numbers, capacity);
        follows_a_map::<2, 5>(&numbers, capacity);
        follows_a_map::<3, 1>(&numbers, capacity);
    }
}

#[test]
fn the_reserved_key_is_refused_and_never_found() {
    let mut table = HashTable::<2, 2>::new("a test", 64, Pages::Normal).unwrap();
    for number in 0..64 {
        assert!(table.insert(&key(number), &[number; 2]));
    }
    assert!(!table.insert(&[EMPTY, 5], &[1; 2]));
    let mut values = [[0; 2]; BATCH_FRAMES];
    for second in [EMPTY, 0, 5] {
        assert_eq!(table.get(&[EMPTY, second]), None);
        assert_eq!(ht_lookup(&table, &[[EMPTY, second]; BATCH_FRAMES], BATCH_FRAMES, &mut values), 0);
    }
    assert_eq!(table.len(), 64);
}

#[test]
fn frames_that_are_not_asked_for_are_not_inserted() {
    let mut table = HashTable::<1, 1>::new("a test", 100, Pages::Normal).unwrap();
    let keys: Words<1> = std::array::from_fn(|frame| key(frame as u64));
    assert_eq!(ct_insertion(&mut table, &keys, &[[3]; BATCH_FRAMES], 8, 0b1010_1010), 0);
    assert_eq!(table.len(), 4);
    assert_eq!(ct_insertion(&mut table, &keys, &[[4]; BATCH_FRAMES], 8, 0b0000_0110), 0);
    let values: Vec<_> = keys.iter().take(8).map(|key| table.get(key)).collect();
    assert_eq!(values, [None, Some([4]), Some([4]), Some([3]), None, Some([3]), None, Some([3])]);
}

/// Keys spread over lines like a Poisson process of `a` per line: the share that finds its line of `s` slots full
/// is `E[max(X - s, 0)] / a`, as long as few are pushed into further lines.
#[test]
fn collisions_are_as_rare_as_the_poisson_distribution_says() {
    let poisson = |a: f64, s: u32| {
        let mut term = (-a).exp();
        let mut excess = 0.0;
        for x in 1..60u32 {
            term *= a / f64::from(x);
            excess += f64::from(x.saturating_sub(s)) * term;
        }
        excess / a
    };
    let mut table = HashTable::<1, 1>::new("a test", 200_000, Pages::Normal).unwrap();
    for number in 0..200_000 {
        assert!(table.insert(&key(number), &[number]));
    }
    let ratio = table.collision_ratio();
    // What is pushed on takes slots of the next line, so there are a few more than in separate lines.
    let least = poisson(2.0, 4);
    assert!((least..1.5 * least).contains(&ratio), "{ratio} against {least}");
    table.clear();
    for number in 0..50_000 {
        assert!(table.insert(&key(number), &[number]));
    }
    let (ratio, least) = (table.collision_ratio(), poisson(0.5, 4));
    assert!((0.5 * least..2.0 * least).contains(&ratio), "{ratio} against {least}");
}

/// Real keys differ in few bits: addresses that count up in network order, flows between neighbours.
#[test]
fn keys_that_count_up_anywhere_spread_as_random_ones_do() {
    let kinds: [fn(u64) -> [u64; 2]; 8] = [
        |number| [number, 0],
        |number| [number.swap_bytes() >> 16, 0],
        |number| [number << 12, 0],
        |number| [number << 40, 7],
        |number| [number << 32, number],
        |number| [0x0600, number.swap_bytes() >> 32],
        |number| [number << 32, (number & 0xff) << 48],
        |number| [(number >> 8) << 48, (number & 0xff).swap_bytes()],
    ];
    for (kind, key) in kinds.into_iter().enumerate() {
        for lines in [1 << 10, 10_007, 1 << 15] {
            let entries = 2 * lines as u64;
            let mut counts = vec![0u32; lines];
            for number in 0..entries {
                counts[Slots::<2, 1>::line(&key(number), lines)] += 1;
            }
            // Variance over mean of a Poisson distribution: 1, within sqrt(2 / lines).
            let squares: f64 = counts.iter().map(|&count| (f64::from(count) - 2.0).powi(2)).sum();
            let dispersion = squares / entries as f64;
            assert!(dispersion < 1.5, "kind {kind}, {lines} lines: {dispersion}");
        }
    }
}

#[test]
fn a_table_of_no_entries_is_refused() {
    assert_eq!(HashTable::<1, 1>::new("table mac", 0, Pages::Huge).unwrap_err().kind(), "request");
    assert_eq!(HashTable::<1, 1>::new("table mac", 1 << 34, Pages::Huge).unwrap_err().kind(), "request");
}
