//! Cases of lookups: tables of a few KiB, and new keys for each slice, so that no predictor learns them.

use std::hint::black_box;

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Case, SLICE_BATCHES, timed};
use crate::batch::{BATCH_FRAMES, Words};
use crate::error::Result;
use crate::memory::Pages;
use crate::operation::{acl_lookup, array_access, counter_update, ct_insertion, ht_lookup, lpm_lookup};
use crate::table::array::Array;
use crate::table::dir24_8::{Dir24, Route};
use crate::table::hash_table::HashTable;
use crate::table::tuple_space::{Rule, TupleSpace};

/// Bytes of a table: with keys and results it fits into 32 KiB.
const TABLE_BYTES: usize = 8192;

/// One value per frame of a slice.
type Slice<T> = [[T; BATCH_FRAMES]; SLICE_BATCHES];

pub(super) fn cases(cases: &mut Vec<Case>, seed: u64) -> Result<()> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    macro_rules! arrays {
        ($($w:literal)*) => { $(
            cases.push(array_access_case::<$w>(random.next_u64())?);
            cases.push(counter_update_case::<$w>(random.next_u64())?);
        )* };
    }
    arrays!(1 2 4 8);
    macro_rules! hash_tables {
        ($($n:literal $v:literal)*) => { $(
            for load_ratio in [0.25, 1.0] {
                cases.push(ht_lookup_case::<$n, $v>(random.next_u64(), load_ratio)?);
                cases.push(ct_insertion_case::<$n, $v>(random.next_u64(), load_ratio)?);
            }
        )* };
    }
    hash_tables!(1 1 1 2 1 3 1 5 1 7 2 1 2 2 2 4 2 6);
    for b in 1..=4 {
        cases.push(lpm_lookup_case(random.next_u64(), b)?);
    }
    for (rules, tuples) in [(16, 1), (128, 1), (64, 2), (64, 4), (64, 8), (128, 8), (64, 16), (128, 16)] {
        cases.push(acl_lookup_case(random.next_u64(), rules, tuples)?);
    }
    Ok(())
}

/// Keys that are the numbers from 0 on, scrambled.
fn key<const N: usize>(number: usize) -> [u64; N] {
    std::array::from_fn(|word| ((number * N + word) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16)
}

fn array_access_case<const W: usize>(seed: u64) -> Result<Case> {
    let max = TABLE_BYTES / (8 * W);
    let array = Array::<W>::new("an array of the probe", max, Pages::Normal)?;
    let mut indices = indices(seed, max);
    let mut entries: Words<W> = [[0; W]; BATCH_FRAMES];
    Ok(Case::new("array_access", &[("es", (8 * W) as f64), ("max", max as f64)], move || {
        let indices = indices();
        timed(|number| {
            array_access(&array, &indices[number], BATCH_FRAMES, &mut entries);
            black_box(&mut entries);
        })
    }))
}

fn counter_update_case<const W: usize>(seed: u64) -> Result<Case> {
    let max = TABLE_BYTES / (8 * W);
    let mut array = Array::<W>::new("an array of the probe", max, Pages::Normal)?;
    let mut indices = indices(seed, max);
    let amounts: Words<W> = [[1; W]; BATCH_FRAMES];
    Ok(Case::new("counter_update", &[("es", (8 * W) as f64), ("max", max as f64)], move || {
        let indices = indices();
        timed(|number| {
            let which = black_box(u32::MAX);
            counter_update(&mut array, &indices[number], black_box(&amounts), BATCH_FRAMES, which);
        })
    }))
}

/// Draws indices below `max` for a slice.
fn indices(seed: u64, max: usize) -> impl FnMut() -> Slice<u32> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    move || std::array::from_fn(|_| std::array::from_fn(|_| random.random_range(0..max as u32)))
}

/// A table of `TABLE_BYTES`, a share of its entries taken, and how many those are.
fn hash_table<const N: usize, const V: usize>(load_ratio: f64) -> Result<(HashTable<N, V>, usize)> {
    let slot_bytes = 8 * (N + V).next_power_of_two();
    let max = TABLE_BYTES / slot_bytes / 2;
    let mut table = HashTable::<N, V>::new("a table of the probe", max, Pages::Normal)?;
    let taken = (max as f64 * load_ratio) as usize;
    for number in 0..taken {
        table.insert(&key(number), &[1; V]);
    }
    Ok((table, taken))
}

fn parameters<const N: usize, const V: usize>(table: &HashTable<N, V>) -> [(&'static str, f64); 4] {
    let (entry_bytes, max) = (8 * (N + V), table.capacity());
    [("N", N as f64), ("HE", entry_bytes as f64), ("max", max as f64), ("p", table.collision_ratio())]
}

fn ht_lookup_case<const N: usize, const V: usize>(seed: u64, load_ratio: f64) -> Result<Case> {
    let (table, taken) = hash_table::<N, V>(load_ratio)?;
    let mut indices = indices(seed, taken);
    let mut values: Words<V> = [[0; V]; BATCH_FRAMES];
    Ok(Case::new("ht_lookup", &parameters(&table), move || {
        let keys: [Words<N>; SLICE_BATCHES] = indices().map(|batch| batch.map(|index| key(index as usize)));
        timed(|number| {
            black_box(ht_lookup(&table, &keys[number], BATCH_FRAMES, &mut values));
            black_box(&mut values);
        })
    }))
}

fn ct_insertion_case<const N: usize, const V: usize>(seed: u64, load_ratio: f64) -> Result<Case> {
    let (mut table, taken) = hash_table::<N, V>(load_ratio)?;
    let mut indices = indices(seed, taken);
    let values: Words<V> = [[2; V]; BATCH_FRAMES];
    Ok(Case::new("ct_insertion", &parameters(&table), move || {
        let keys: [Words<N>; SLICE_BATCHES] = indices().map(|batch| batch.map(|index| key(index as usize)));
        timed(|number| {
            let which = black_box(u32::MAX);
            black_box(ct_insertion(&mut table, &keys[number], black_box(&values), BATCH_FRAMES, which));
        })
    }))
}

/// Routes of `8·b` bits in 10.0.0.0/8; for 32 bits in eight networks of 24, so that the groups fit into the cache.
fn lpm_lookup_case(seed: u64, b: u8) -> Result<Case> {
    let most = if b == 1 { 1 } else { 256 };
    let routes: Vec<Route> = (0..most)
        .flat_map(|number: u32| {
            let prefix = 10 << 24 | if b == 2 { number << 16 } else { number << 8 };
            let network = Route { prefix, length: 8 * b.min(3), next_hop: number as u16 };
            let hosts = (0..256).filter(move |_| b == 4 && number < 8);
            let host = move |host| Route { prefix: prefix | host, length: 32, next_hop: host as u16 };
            std::iter::once(network).chain(hosts.map(host))
        })
        .collect();
    let table = Dir24::new("the routes of the probe", &routes, Pages::Huge)?;
    let mut indices = indices(seed, 2048);
    let mut next_hops = [0; BATCH_FRAMES];
    let parameters = [("b", f64::from(b)), ("es", 2.0), ("max", routes.len() as f64)];
    Ok(Case::new("lpm_lookup", &parameters, move || {
        // 2048 addresses: all hosts of 8 networks of 24; with b = 2 networks of 16 that lie 8 lines apart.
        let address = |index: u32| match b {
            2 => 10 << 24 | (index % 64) << 16,
            _ => 10 << 24 | index,
        };
        let fields: [Words<1>; SLICE_BATCHES] =
            indices().map(|batch| batch.map(|index| [u64::from(address(index).swap_bytes())]));
        timed(|number| {
            black_box(lpm_lookup(&table, &fields[number], 0, BATCH_FRAMES, &mut next_hops));
            black_box(&mut next_hops);
        })
    }))
}

/// Rules that each match one address of a source network and of a destination network of various lengths.
fn acl_lookup_case(seed: u64, rules: usize, tuples: usize) -> Result<Case> {
    let mask = |tuple: usize| {
        let bits = |length: usize| u64::from((u32::MAX << (32 - length)).swap_bytes());
        [bits(32 - tuple % 4) << 32, bits(32 - tuple / 4)]
    };
    // Bits of the rule's number above those that any mask leaves out.
    let spread = |number: usize| u64::from(((number as u32) << 8 | 0x0a00_0000).swap_bytes());
    let rule = |number: usize| Rule {
        value: [spread(number) << 32, spread(number)],
        mask: mask(number % tuples),
        priority: number as u32,
        action: number as u32 & 1,
    };
    let rules: Vec<Rule> = (0..rules).map(rule).collect();
    let space = TupleSpace::new("the rules of the probe", &rules, 0, Pages::Normal)?;
    let mut indices = indices(seed, rules.len());
    let mut actions = [0; BATCH_FRAMES];
    let parameters = [("rules", rules.len() as f64), ("tuples", tuples as f64), ("HE", 24.0)];
    Ok(Case::new("acl_lookup", &parameters, move || {
        let keys: [Words<2>; SLICE_BATCHES] = indices().map(|batch| batch.map(|index| rules[index as usize].value));
        timed(|number| {
            acl_lookup(&space, &keys[number], BATCH_FRAMES, &mut actions);
            black_box(&mut actions);
        })
    }))
}
