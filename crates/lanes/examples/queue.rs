//! M/M/1/50 in lanes: loss beside theory, seams, and frames a CPU second.
//!
//! ```sh
//! cargo run --release -p routecast-lanes --example queue -- 0.9 1e9
//! ```

use std::ops::ControlFlow;
use std::time::Instant;

use routecast_lanes::law::Law;
use routecast_lanes::router::{Arrivals, Core, Kind, Program, Router, Source};
use routecast_lanes::segments::{Cut, run};
use routecast_lanes::vectors::Vectors;

const PLACES: i32 = 50;

fn main() {
    let numbers: Vec<f64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [load, frames] = [numbers.first().copied().unwrap_or(0.9), numbers.get(1).copied().unwrap_or(1e8)];
    let kind = Kind { bytes: 64, wire_ps: 0.0, core: 0, work_ps: 1e6, next: None, link: None, transmission_ps: 0.0 };
    let router = Router {
        tick_ps: Router::usual_tick_ps(&[kind]),
        sources: vec![Source {
            rate_pps: load * 1e6,
            steps: vec![],
            arrivals: Arrivals::Poisson,
            kinds: vec![vec![(0, 1.0)]],
        }],
        turns: 1,
        kinds: vec![kind],
        cores: vec![Core {
            queue: PLACES as u32 - 1,
            servers: 1,
            shares: None,
            law: 0,
            contends: true,
            polls: true,
            is_struck: true,
        }],
        laws: vec![Law::Exponential],
        polls: None,
        sleep: vec![],
        interruptions: None,
        contention: vec![],
        links: vec![],
        dealers: vec![],
    };
    let program = Program::new(&router, 1, 0).expect("the router fits");
    let ticks = (frames / load * 1000.0) as u64;
    let windows = 1000;
    let only = numbers.get(2).map(|&place| place as usize);
    let known = Vectors::known().into_iter().enumerate();
    for (_, vectors) in known.filter(|(place, vectors)| vectors.is_here() && only.is_none_or(|only| only == *place)) {
        let cut = Cut {
            begin: None,
            windows: (0..=windows).map(|window| ticks * window / windows).collect(),
            part_of: (0..windows as usize).map(|window| window * 20 / windows as usize).collect(),
            segments: vectors.lanes(),
            warm_up: 20_000_000,
            vectors,
            turns: None,
        };
        let start = Instant::now();
        let outcome = run(&program, &cut, &|_| ControlFlow::Continue(())).expect("it runs").expect("nobody stops it");
        let seconds = start.elapsed().as_secs_f64();
        let offered: u64 = outcome.windows.iter().map(|window| window.offered[0]).sum();
        let dropped: u64 = outcome.windows.iter().map(|window| window.lost[0]).sum();
        let sojourn: u64 = outcome.windows.iter().map(|window| window.latency_ticks).sum();
        let forwarded: u64 = outcome.windows.iter().map(|window| window.forwarded).sum();
        let exact = if load == 1.0 {
            1.0 / f64::from(PLACES + 1)
        } else {
            (1.0 - load) * load.powi(PLACES) / (1.0 - load.powi(PLACES + 1))
        };
        let loss = dropped as f64 / offered as f64;
        println!(
            "{vectors:?}: {offered} frames, loss {loss:.5e} ({:+.3} % of theory), mean {:.4} us, seams {} + {} of {}, \
             {:.1} million frames a second",
            100.0 * (loss / exact - 1.0),
            sojourn as f64 / forwarded as f64 / 1000.0,
            outcome.seams.at_once,
            outcome.seams.repaired,
            outcome.seams.all,
            offered as f64 / seconds / 1e6,
        );
    }
}
