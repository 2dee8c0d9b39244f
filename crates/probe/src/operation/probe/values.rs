//! Cases of the operations on values, and of rings.

use std::hint::black_box;

use super::{Case, SLICE_BATCHES, timed};
use crate::batch::{BATCH_FRAMES, Words};
use crate::error::Result;
use crate::operation::{
    MICROSOFT_KEY, Toeplitz, assemble, check, crc_hash, decrease, dequeue, enqueue, increase, sum, toeplitz_hash,
};
use crate::table::ring::ring;

/// Items of the ring: twice what a slice moves.
const RING_ITEMS: usize = 2 * SLICE_BATCHES * BATCH_FRAMES;

pub(super) fn cases(cases: &mut Vec<Case>) -> Result<()> {
    macro_rules! push_each {
        ($make:ident: $($b:literal)*) => { $(cases.push($make::<$b>());)* };
    }
    macro_rules! push_each_with_words {
        ($make:ident: $($b:literal)*) => { $(cases.push($make::<$b, { usize::div_ceil($b, 8) }>());)* };
    }
    push_each!(increase_case: 1 2 4 8);
    push_each!(decrease_case: 1 2 4 8);
    push_each_with_words!(sum_case: 4 8 16 32 64);
    push_each!(check_case: 1 2 4 8);
    push_each_with_words!(assemble_case: 8 16 24 40 56);
    push_each_with_words!(crc_hash_case: 8 16 24 40 64);
    push_each_with_words!(toeplitz_hash_case: 4 8 12 24 36);
    for burst in [1, 2, 4, 8, 16, 32] {
        cases.push(enqueue_case(burst)?);
        cases.push(dequeue_case(burst)?);
    }
    Ok(())
}

fn values<const W: usize>() -> Words<W> {
    let word = |index: usize| (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    std::array::from_fn(|frame| std::array::from_fn(|within| word(frame * W + within)))
}

fn increase_case<const B: usize>() -> Case {
    let mut fields = values::<1>();
    Case::new("increase", &[("b", B as f64)], move || {
        timed(|_| {
            increase::<B, 1>(&mut fields, BATCH_FRAMES, 0, 1);
            black_box(&mut fields);
        })
    })
}

fn decrease_case<const B: usize>() -> Case {
    let mut fields = values::<1>();
    Case::new("decrease", &[("b", B as f64)], move || {
        timed(|_| {
            black_box(decrease::<B, 1>(&mut fields, BATCH_FRAMES, 0, 1));
            black_box(&mut fields);
        })
    })
}

fn sum_case<const B: usize, const W: usize>() -> Case {
    let (mut operands, others) = (values::<W>(), values::<W>());
    Case::new("sum", &[("b", B as f64)], move || {
        timed(|_| {
            sum(&mut operands, black_box(&others), BATCH_FRAMES);
            black_box(&mut operands);
        })
    })
}

fn check_case<const B: usize>() -> Case {
    let fields = values::<1>();
    let mask = u64::MAX >> (64 - 8 * B);
    Case::new("check", &[("b", B as f64)], move || {
        timed(|_| _ = black_box(check(black_box(&fields), BATCH_FRAMES, 0, mask, 7)))
    })
}

/// Each word from two fields, one of which moves: as headers are put together.
fn assemble_case<const B: usize, const W: usize>() -> Case {
    let (ones, others) = (values::<W>(), values::<1>());
    let mut headers = [[0; W]; BATCH_FRAMES];
    Case::new("assemble", &[("b", B as f64)], move || {
        timed(|_| {
            let (ones, others) = (black_box(&ones), black_box(&others));
            assemble(BATCH_FRAMES, &mut headers, |frame| {
                std::array::from_fn(|word| ones[frame][word] & 0xffff_ffff_ffff | others[frame][0] << 48)
            });
            black_box(&mut headers);
        })
    })
}

fn crc_hash_case<const B: usize, const W: usize>() -> Case {
    let keys = values::<W>();
    let mut hashes = [0; BATCH_FRAMES];
    Case::new("crc_hash", &[("b", B as f64)], move || {
        timed(|_| {
            crc_hash(black_box(&keys), BATCH_FRAMES, &mut hashes);
            black_box(&mut hashes);
        })
    })
}

fn toeplitz_hash_case<const B: usize, const W: usize>() -> Case {
    let toeplitz = Toeplitz::<B>::new(&MICROSOFT_KEY);
    let keys = values::<W>();
    let mut hashes = [0; BATCH_FRAMES];
    let case = Case::new("toeplitz_hash", &[("b", B as f64)], move || {
        timed(|_| {
            toeplitz_hash(&toeplitz, black_box(&keys), BATCH_FRAMES, &mut hashes);
            black_box(&mut hashes);
        })
    });
    // Its tables take 1 KiB per byte; processors have 32 KiB of first-level cache or more.
    Case { level: if B > 24 { "L2" } else { "L1" }, ..case }
}

fn enqueue_case(burst: usize) -> Result<Case> {
    let (mut producer, mut consumer) = ring(RING_ITEMS)?;
    let items = [1; BATCH_FRAMES];
    Ok(Case::new("enqueue", &[("burst", burst as f64)], move || {
        while dequeue(&mut consumer, &mut [0; BATCH_FRAMES]) > 0 {}
        timed(|_| {
            for burst in black_box(&items).chunks_exact(burst) {
                black_box(enqueue(&mut producer, burst));
            }
        })
    }))
}

fn dequeue_case(burst: usize) -> Result<Case> {
    let (mut producer, mut consumer) = ring(RING_ITEMS)?;
    let mut items = [1; BATCH_FRAMES];
    Ok(Case::new("dequeue", &[("burst", burst as f64)], move || {
        for _ in 0..SLICE_BATCHES {
            enqueue(&mut producer, &[1; BATCH_FRAMES]);
        }
        timed(|_| {
            for burst in items.chunks_exact_mut(burst) {
                black_box(dequeue(&mut consumer, burst));
            }
            black_box(&mut items);
        })
    }))
}
