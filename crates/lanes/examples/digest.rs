//! What lanes count, as one number: a library of a processor, or of WebAssembly, whose numbers are to be equal.
//!
//! ```sh
//! cargo build --release -p routecast-lanes --example digest
//! RUSTFLAGS=-Ctarget-feature=+simd128 cargo build --release -p routecast-lanes --no-default-features --example digest \
//!     --target wasm32-unknown-unknown
//! ```

#![expect(unsafe_code, reason = "an exported name")]

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;

use routecast_lanes::law::Law;
use routecast_lanes::router::{
    Arrivals, Core, Interruptions, Interrupts, Kind, Link, Next, Polls, Program, RandomTime, Recording, Router, Sleep,
    Source,
};
use routecast_lanes::segments::{Cut, run};
use routecast_lanes::vectors::Vectors;

/// Numbers from a seed (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % count
    }

    /// From 1 to 2 times a number, in 64 steps.
    fn about(&mut self, least: f64) -> f64 {
        least * (1.0 + self.below(64) as f64 / 64.0)
    }
}

fn arrivals(numbers: &mut Numbers, rate_pps: f64) -> Arrivals {
    match numbers.below(5) {
        0 => Arrivals::Poisson,
        1 => Arrivals::Even { phase: 0.25 },
        2 => Arrivals::OnOff { burst_frames: 6.0, peak_ratio: 3.0 },
        3 => Arrivals::Bursts { frames: 9 },
        _ => {
            let gap_ps = 1e12 / rate_pps;
            let at_ps = (0..4000_u32).map(|frame| (gap_ps * f64::from(frame - frame % 3)) as u64).collect();
            Arrivals::Recorded(Arc::new(Recording::new(at_ps, (0..4000).map(|frame| frame % 2).collect(), 2)))
        }
    }
}

/// A router of every part that lanes have.
fn router(seed: u64) -> Router {
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let laws = [Law::Constant, Law::Exponential, Law::of_survival(|x| (1.0 - 0.5 * x).clamp(0.0, 1.0))];
    let law = laws[numbers.below(3) as usize].clone();
    let polls = (numbers.below(2) == 0).then(|| Polls {
        batch: 1 + numbers.below(20) as u32,
        cost_ps: 2e5,
        interrupts: (numbers.below(2) == 0).then(|| Interrupts {
            cost_ps: 1e6,
            moderation_ps: numbers.about(4e6),
            exhaustive: numbers.below(2) == 0,
            wakeup: None,
            linger_ps: if numbers.below(2) == 0 { 3e6 } else { 0.0 },
        }),
    });
    let sleep = if polls.is_some() && numbers.below(2) == 0 {
        vec![Sleep { after_ps: 2e6, exit_ps: 1e6 }, Sleep { after_ps: 9e6, exit_ps: 4e6 }]
    } else {
        vec![]
    };
    let is_team = polls.is_none();
    let cores = 1 + numbers.below(3) as usize;
    let core = |number: usize, numbers: &mut Numbers| Core {
        queue: 4 + numbers.below(30) as u32,
        servers: if is_team && number < 2 { 2 } else { 1 },
        shares: (is_team && number == 1).then_some(0),
        law: 0,
        contends: true,
        polls: true,
        is_struck: !is_team,
    };
    let kinds: Vec<Kind> = (0..4)
        .map(|number| Kind {
            bytes: 64 << number,
            wire_ps: 5e4,
            core: number % cores,
            work_ps: numbers.about(5e5),
            next: (number == 0).then_some(Next { kind: 2, dealer: Some(0) }),
            link: (numbers.below(2) == 0).then_some(0),
            transmission_ps: 3e5,
        })
        .collect();
    let source = |numbers: &mut Numbers| {
        let rate_pps = numbers.about(3e5) * cores as f64;
        let arrivals = arrivals(numbers, rate_pps);
        let places = if arrivals == Arrivals::Poisson { 1 } else { 2 };
        Source { rate_pps, steps: vec![], arrivals, kinds: vec![vec![(0, 1.0), (1, 2.0)]; places] }
    };
    Router {
        tick_ps: Router::usual_tick_ps(&kinds),
        sources: vec![source(&mut numbers), source(&mut numbers)],
        turns: 1,
        cores: (0..cores).map(|number| core(number, &mut numbers)).collect(),
        laws: vec![law.clone()],
        polls,
        sleep,
        interruptions: (numbers.below(2) == 0)
            .then_some(Interruptions { rate_hz: 2e4, duration: RandomTime { mean_ps: 2e6, law } }),
        contention: if numbers.below(2) == 0 { vec![1.0, 1.125, 1.25] } else { vec![] },
        links: vec![Link { queue: 8 }],
        dealers: vec![2],
        kinds,
    }
}

/// A digest of what a router of a seed counts in `segments` segments; lanes one by one, or the widest that there are.
///
/// # Panics
///
/// Never: the routers fit, and nobody stops them.
#[unsafe(no_mangle)]
pub extern "C" fn digest(seed: u32, is_wide: u32, segments: u32, windows: u32) -> u64 {
    let program = Program::new(&router(u64::from(seed)), u64::from(seed), 0).expect("it fits");
    let count = u64::from(windows);
    let cut = Cut {
        begin: None,
        windows: (0..=count).map(|window| window * 600_000).collect(),
        part_of: (0..windows as usize).map(|window| window / 3).collect(),
        segments: segments as usize,
        warm_up: 400_000,
        vectors: if is_wide == 0 { Vectors::Plain } else { Vectors::widest() },
        turns: None,
    };
    let outcome = run(&program, &cut, &|_| ControlFlow::Continue(())).expect("it fits").expect("nobody stops it");
    let mut text = String::new();
    write!(text, "{:?} {:?} {:?}", outcome.windows, outcome.end, outcome.parts).expect("there is memory");
    // Fowler, Noll and Vo's 64-bit hash.
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Lanes of the widest vectors that there are.
#[unsafe(no_mangle)]
pub extern "C" fn lanes() -> u32 {
    Vectors::widest().lanes() as u32
}
