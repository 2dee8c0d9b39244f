//! The simulator against queueing theory: exact results, over random parameters.
//!
//! Each figure must lie inside the simulation's own 95 % interval at about 95 % of the parameter sets. Of `n` sets,
//! fewer than `0.95 n − 2.33 sqrt(0.95·0.05·n)` hits has a chance of 1 %, and that is where the test fails: for 50
//! sets below 44, and where `ROUTECAST_THOROUGH` is set (`make test-thorough`) for 200 sets below 183.

use crate::scenarios::{US, exit, go, on, poisson, pool, port, seconds, station, task, to};
use rand::{RngExt as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use routecast_sim::replicate::{Plan, replicate};
use routecast_sim::scenario::{Load, Model, Policy, Run, Scenario, Target, Task, Variation};
use routecast_sim::{Outcome, simulate};

const HUGE: usize = 1 << 22;

fn run(scenario: &Scenario) -> Outcome {
    let plan = Plan { replications: 5, target_relative_half_width: None, most: 5 };
    replicate(scenario, plan, &go).expect("the scenario is valid")
}

/// Counts the sets whose theoretical value lies inside the interval of the simulated one.
fn hits(mut inside: impl FnMut(&mut Xoshiro256PlusPlus, u64) -> bool) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(20_14);
    let sets: u64 = if std::env::var_os("ROUTECAST_THOROUGH").is_some() { 200 } else { 50 };
    let n = sets as f64;
    let least = (0.95 * n - 2.33 * (0.95 * 0.05 * n).sqrt()).ceil() as usize;
    let count = (0..sets).filter(|&set| inside(&mut rng, set)).count();
    println!("inside the 95 % interval at {count} of {sets} parameter sets");
    assert!(count >= least, "inside at {count} of {sets}, at least {least} are due");
}

fn waiting_near(outcome: &Outcome, theory_s: f64) -> bool {
    (outcome.waiting.mean_s - theory_s).abs() <= outcome.waiting_half_width_s
}

fn frames(count: f64, rate_pps: f64, seed: u64) -> Run {
    seconds(count / rate_pps, seed)
}

fn single(variation: Variation, queue: usize, rate_pps: f64, count: f64, seed: u64) -> Scenario {
    station(task(US, variation, queue, exit()), poisson(rate_pps), frames(count, rate_pps, seed))
}

#[test]
fn m_m_1_waits_as_long_as_theory_says() {
    hits(|rng, seed| {
        let rho: f64 = rng.random_range(0.1..0.9);
        let outcome = run(&single(Variation::Exponential, HUGE, rho * 1e6, 120_000.0, seed));
        waiting_near(&outcome, rho / (1.0 - rho) * 1e-6)
    });
}

#[test]
fn m_d_1_waits_as_long_as_pollaczek_and_khinchine_say() {
    hits(|rng, seed| {
        let rho: f64 = rng.random_range(0.1..0.9);
        let outcome = run(&single(Variation::Deterministic, HUGE, rho * 1e6, 120_000.0, seed));
        waiting_near(&outcome, rho / (2.0 * (1.0 - rho)) * 1e-6)
    });
}

#[test]
fn m_g_1_waits_as_long_as_pollaczek_and_khinchine_say() {
    hits(|rng, seed| {
        let rho: f64 = rng.random_range(0.1..0.85);
        let (variation, scv) = match rng.random_range(0..4) {
            0 => (Variation::Gamma { scv: 0.5 }, 0.5),
            1 => (Variation::Uniform { scv: 0.25 }, 0.25),
            2 => (Variation::Hyperexponential { scv: 3.0 }, 3.0),
            _ => (Variation::Lognormal { scv: 1.5 }, 1.5),
        };
        let outcome = run(&single(variation, HUGE, rho * 1e6, 160_000.0, seed));
        waiting_near(&outcome, rho * (1.0 + scv) / (2.0 * (1.0 - rho)) * 1e-6)
    });
}

#[test]
fn m_m_1_k_loses_what_theory_says() {
    hits(|rng, seed| {
        let rho: f64 = rng.random_range(0.5..1.5);
        let queue = rng.random_range(1..20_usize);
        let outcome = run(&single(Variation::Exponential, queue, rho * 1e6, 80_000.0, seed));
        // K = queue + 1 places: p_K = (1 − ρ) ρ^K / (1 − ρ^(K+1)).
        let k = queue as i32 + 1;
        let loss = (1.0 - rho) * rho.powi(k) / (1.0 - rho.powi(k + 1));
        (outcome.loss_ratio.value - loss).abs() <= outcome.loss_ratio.half_width
    });
}

#[test]
fn m_m_c_waits_as_long_as_erlang_says() {
    hits(|rng, seed| {
        let servers = rng.random_range(2..9_usize);
        let rho: f64 = rng.random_range(0.3..0.9);
        let rate_pps = rho * servers as f64 * 1e6;
        let unit = Task { parallel: Some(servers), ..on(task(US, Variation::Exponential, HUGE, exit()), 0) };
        let scenario = Scenario {
            model: Model { ports: vec![port(Some(0))], tasks: vec![unit], pools: vec![pool(servers, Policy::Fifo)] },
            load: poisson(rate_pps),
            run: frames(120_000.0, rate_pps, seed),
        };
        // Erlang C by its recursion over the number of servers.
        let a = rho * servers as f64;
        let blocking = (1..=servers).fold(1.0, |b, n| a * b / (n as f64 + a * b));
        let queued = blocking / (1.0 - rho * (1.0 - blocking));
        waiting_near(&run(&scenario), queued / (servers as f64 * (1.0 - rho)) * 1e-6)
    });
}

#[test]
fn a_tandem_jackson_network_waits_as_long_as_its_queues_alone() {
    hits(|rng, seed| {
        let works: Vec<f64> = (0..3).map(|_| rng.random_range(0.2..0.85)).collect();
        let tasks = (0..3)
            .map(|i| {
                let route = if i < 2 { to(Target::Task(i + 1)) } else { exit() };
                task(works[i] * US, Variation::Exponential, HUGE, route)
            })
            .collect();
        let scenario = Scenario {
            model: Model { ports: vec![port(Some(0))], tasks, pools: vec![] },
            load: poisson(1e6),
            run: frames(120_000.0, 1e6, seed),
        };
        let theory: f64 = works.iter().map(|rho| rho * rho / (1.0 - rho)).sum();
        waiting_near(&run(&scenario), theory * 1e-6)
    });
}

#[test]
fn percentiles_of_the_m_m_1_sojourn_time_are_exponential() {
    let rho: f64 = 0.7;
    let outcome = simulate(&single(Variation::Exponential, HUGE, rho * 1e6, 4e6, 5), &go).expect("valid");
    for (got, p) in [(outcome.latency.p50_s, 0.5_f64), (outcome.latency.p90_s, 0.9), (outcome.latency.p99_s, 0.99)] {
        let theory = -(1.0 - p).ln() / (1.0 - rho) * 1e-6;
        assert!((got / theory - 1.0).abs() < 0.03, "p{p}: {got} against {theory}");
    }
}

#[test]
fn littles_law_and_the_utilisation_law_hold() {
    let mut load: Load = poisson(0.6e6);
    load.sizes = vec![64, 1518];
    let outcome =
        simulate(&station(task(US, Variation::Exponential, HUGE, exit()), load, seconds(1.0, 3)), &go).expect("valid");
    let node = &outcome.nodes[0];
    assert!((node.working_units / (outcome.offered_pps * 1e-6) - 1.0).abs() < 0.01, "ρ = λ x");
    assert!((node.waiting_frames / (outcome.offered_pps * outcome.waiting.mean_s) - 1.0).abs() < 0.01, "L = λ W");
}
