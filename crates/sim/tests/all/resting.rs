//! What units do without work: sleep, waking, lingering polls (S6, S11), against theory and bookkeeping.

use crate::scenarios::{US, exit, go, on, poisson, pool, port, seconds, task};
use proptest::prelude::*;
use routecast_sim::scenario::{
    Activation, Flow, Load, Model, Policy, Pool, Process, RandomTime, Route, RouteKind, Scenario, Sleep, Source,
    Target, Task, Variation,
};
use routecast_sim::{Outcome, simulate};

fn near(got: f64, theory: f64, tolerance: f64) {
    assert!((got / theory - 1.0).abs() < tolerance, "got {got}, theory {theory}");
}

fn sleeping(units: usize, policy: Policy, states_us: &[(f64, f64)]) -> Pool {
    let sleep = states_us.iter().map(|&(after, exit)| Sleep { after_ps: after * US, exit_ps: exit * US }).collect();
    Pool { sleep, ..pool(units, policy) }
}

fn interrupts(linger_us: f64, cost_us: f64) -> Activation {
    Activation::Interrupt {
        budget: 1 << 16,
        cost_ps: cost_us * US,
        moderation_ps: 0.0,
        wakeup: None,
        exhaustive: false,
        linger_ps: linger_us * US,
    }
}

/// One task unit of 1 us on one unit.
fn alone(activation: Activation, states_us: &[(f64, f64)], rate_pps: f64, duration_s: f64) -> Outcome {
    let unit = on(Task { activation, ..task(US, Variation::Deterministic, 1 << 16, exit()) }, 0);
    let model =
        Model { ports: vec![port(Some(0))], tasks: vec![unit], pools: vec![sleeping(1, Policy::Fifo, states_us)] };
    simulate(&Scenario { model, load: poisson(rate_pps), run: seconds(duration_s, 5) }, &go).expect("valid")
}

#[test]
fn a_core_that_sleeps_at_once_waits_as_welch_says() {
    // M/G/1 with set-up D (Welch 1964): W = W0 + (2D + λD²)/(2(1 + λD)); W0 = ρx/(2(1 − ρ)) for constant x.
    for (rate_pps, exit_s) in [(0.1e6, 5e-6), (0.5e6, 5e-6), (0.5e6, 40e-6)] {
        let outcome = alone(Activation::Dedicated, &[(0.0, exit_s * 1e6)], rate_pps, 4.0);
        let without = rate_pps * 1e-6 * 1e-6 / (2.0 * (1.0 - rate_pps * 1e-6));
        let set_up = (2.0 * exit_s + rate_pps * exit_s * exit_s) / (2.0 * (1.0 + rate_pps * exit_s));
        near(outcome.waiting.mean_s, without + set_up, 0.02);
    }
}

#[test]
fn a_poll_finds_what_came_during_its_interrupt() {
    // S6: every 3 us a frame, interrupts of 4 us, services of 1 us. A poll of two (at 0 and 3) lasts from 4 to 6; the
    // frame of 6 comes at its end, after it, and raises the next interrupt: 5 and 3 us, again and again.
    let mut load = poisson(1e6 / 3.0);
    load.sources[0].process = Process::Cbr { phase: 0.0 };
    let unit = on(Task { activation: interrupts(0.0, 4.0), ..task(US, Variation::Deterministic, 64, exit()) }, 0);
    let model = Model { ports: vec![port(Some(0))], tasks: vec![unit], pools: vec![sleeping(1, Policy::Fifo, &[])] };
    let outcome = simulate(&Scenario { model, load, run: seconds(0.3, 5) }, &go).expect("valid");
    near(outcome.latency.mean_s, 4e-6, 1e-4);
    near(outcome.latency.p99_s, 5e-6, 1e-2);
    near(outcome.nodes[0].interrupts_per_s, 1.0 / 6e-6, 1e-3);
}

#[test]
fn gated_polls_wait_as_their_cycles_say() {
    // Poisson arrivals λ, constant services b, interrupts C. A poll of n frames takes nb; a frames come during it, and
    // the next poll has a + 1{a = 0} + (those of C). Its generating function N is, with g(z) = e^{−λb(1 − z)},
    // N(z) = e^{−λC(1 − z)} (N(g(z)) − (1 − z) N(g(0))), which gives P(a = 0) = N(g(0)) by repeated insertion.
    for (rate_pps, cost_s) in [(0.1e6_f64, 4e-6), (0.3e6, 4e-6), (0.7e6, 4e-6), (0.5e6, 0.5e-6)] {
        let service_s = 1e-6;
        let (load, during): (f64, f64) = (rate_pps * service_s, rate_pps * cost_s);
        let (mut z, mut factor, mut taken) = ((-load).exp(), 1.0, 0.0);
        for _ in 0..10_000 {
            factor *= (-during * (1.0 - z)).exp();
            taken += factor * (1.0 - z);
            z = (-load * (1.0 - z)).exp();
        }
        let no_frame = factor / (1.0 + taken);
        let frames = (during + no_frame) / (1.0 - load);
        // a is Poisson(λbn); second moments of a, then of n, whose second factor solves a linear equation.
        let found = load * frames + no_frame;
        let squares =
            (load * frames + no_frame + 2.0 * found * during + during + during * during) / (1.0 - load * load);
        let polls_s2 = squares * service_s * service_s;
        let waits_s = rate_pps * (polls_s2 * (1.0 + load) / 2.0 + cost_s * frames * service_s)
            + no_frame * cost_s
            + rate_pps * cost_s * (cost_s * (1.0 + load) / 2.0 + found * service_s);
        let outcome = alone(interrupts(0.0, cost_s * 1e6), &[], rate_pps, 4.0);
        near(outcome.waiting.mean_s, waits_s / frames, 0.01);
    }
}

#[test]
fn idle_times_of_random_arrivals_fall_asleep_exponentially() {
    // Idle times are exponential of rate λ: a share e^{−λa} of them outlasts a, and so does that share of idle time.
    let (rate_pps, shallow_us, deep_us) = (0.02e6, 10.0, 60.0);
    let outcome = alone(Activation::Dedicated, &[(shallow_us, 0.0), (deep_us, 0.0)], rate_pps, 20.0);
    let idle = 1.0 - rate_pps * 1e-6;
    let beyond = |after_us: f64| (-rate_pps * after_us * 1e-6).exp();
    let rest = &outcome.pools[0];
    near(rest.asleep_units[0], idle * (beyond(shallow_us) - beyond(deep_us)), 0.02);
    near(rest.asleep_units[1], idle * beyond(deep_us), 0.02);
    // Each frame that finds the core idle wakes it.
    near(rest.wakes_per_s[1], rate_pps * idle * beyond(deep_us), 0.02);
}

#[test]
fn frames_find_a_waking_unit_and_wait_for_the_rest_of_it() {
    // Every 100 us a frame; asleep after 20 us; 30 us to wake: 31 us of latency, 69 us idle, of which 49 us asleep.
    let mut scenario = Scenario {
        model: Model {
            ports: vec![port(Some(0))],
            tasks: vec![on(task(US, Variation::Deterministic, 16, exit()), 0)],
            pools: vec![sleeping(1, Policy::Fifo, &[(20.0, 30.0)])],
        },
        load: poisson(1e4),
        run: seconds(0.1, 1),
    };
    scenario.load.sources[0].process = Process::Cbr { phase: 0.0 };
    let outcome = simulate(&scenario, &go).expect("valid");
    near(outcome.latency.mean_s, 31e-6, 1e-9);
    near(outcome.pools[0].waking_units, 0.30, 1e-9);
    near(outcome.pools[0].asleep_units[0], 0.49, 1e-9);
    near(outcome.pools[0].wakes_per_s[0], 1e4, 1e-9);
}

#[test]
fn lingering_saves_the_interrupts_of_short_idle_times() {
    // An idle time outlasts the lingering with probability e^{−λL}; only then there is an interrupt. Without batch
    // costs a cycle is (1/λ + e^{−λL}·h)/(1 − ρ) (regenerative argument, M/G/1 with set-up h).
    let (rate_pps, linger_us, cost_us) = (0.1e6, 10.0, 2.0);
    let outcome = alone(interrupts(linger_us, cost_us), &[], rate_pps, 4.0);
    let outlasts = (-rate_pps * linger_us * 1e-6_f64).exp();
    let cycle_s = (1.0 / rate_pps + outlasts * cost_us * 1e-6) / (1.0 - rate_pps * 1e-6);
    near(outcome.nodes[0].interrupts_per_s, outlasts / cycle_s, 0.02);
    near(outcome.nodes[0].spinning_units, (1.0 - outlasts) / rate_pps / cycle_s, 0.02);
    near(outcome.nodes[0].working_units, rate_pps * 1e-6 + outlasts * cost_us * 1e-6 / cycle_s, 0.02);
}

#[test]
fn a_task_unit_that_lingers_gives_its_unit_up_at_once() {
    // Two task units on one unit, one frame each every 200 us, 100 us apart: the other one lingers for 1 s and yet
    // nobody waits for it.
    let unit = || on(Task { activation: interrupts(1e6, 0.0), ..task(US, Variation::Deterministic, 16, exit()) }, 0);
    let split = Route { kind: RouteKind::PerFlow, to: vec![Target::Task(1), Target::Task(2)], ..exit() };
    let source = |p: usize| Source {
        port: p,
        rate_pps: 5e3,
        process: Process::Cbr { phase: p as f64 / 2.0 },
        flows: vec![p as u32],
        steps: vec![],
    };
    let scenario = Scenario {
        model: Model {
            ports: vec![port(Some(0)), port(Some(0))],
            tasks: vec![task(0.0, Variation::Deterministic, 1, split), unit(), unit()],
            pools: vec![sleeping(1, Policy::Fifo, &[(0.0, 50.0)])],
        },
        load: Load {
            sources: vec![source(0), source(1)],
            flows: vec![Flow { hash: 0, egress: 0, weight: 1.0 }; 2],
            sizes: vec![64],
            random_sizes: false,
        },
        run: seconds(0.1, 1),
    };
    let outcome = simulate(&scenario, &go).expect("valid");
    near(outcome.latency.mean_s, 1e-6, 1e-9);
    near(outcome.nodes[1].spinning_units + outcome.nodes[2].spinning_units, 1.0 - 1e4 * 1e-6, 1e-6);
    assert!(outcome.pools[0].wakes_per_s[0] == 0.0, "a unit in a lingering poll does not sleep");
}

fn activation() -> impl Strategy<Value = Activation> {
    let wakeup = prop_oneof![
        Just(None),
        (0.1..20.0).prop_map(|us| Some(RandomTime::Mean { mean_ps: us * US, variation: Variation::Exponential })),
    ];
    prop_oneof![
        Just(Activation::Dedicated),
        (1_usize..8, 0.0..3.0, 0.0..20.0, 0.0..30.0, any::<bool>(), wakeup).prop_map(
            |(budget, cost, moderation, linger, exhaustive, wakeup)| Activation::Interrupt {
                budget,
                cost_ps: cost * US,
                moderation_ps: moderation * US,
                wakeup,
                exhaustive,
                linger_ps: if linger < 10.0 { 0.0 } else { (linger - 10.0) * US },
            }
        ),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Fifo),
        Just(Policy::Priority),
        Just(Policy::Preemptive),
        (0.5..20.0).prop_map(|us| Policy::RoundRobin { quantum_ps: us * US }),
        (0.5..20.0).prop_map(|us| Policy::Fair { slice_ps: us * US }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_unit_is_in_one_state_at_any_time(
        activations in [activation(), activation()],
        policy in policy(),
        units in 1_usize..4,
        parallel in 1_usize..3,
        exit_us in 0.0..30.0,
        rate_pps in 1e4..2e6,
        seed in any::<u64>(),
    ) {
        // Where sleep begins at once no unit is idle, so work, spinning, waking and sleep fill the time to the picosecond.
        let split = Route { kind: RouteKind::PerFlow, to: vec![Target::Task(1), Target::Task(2)], ..exit() };
        let mut tasks = vec![task(0.0, Variation::Deterministic, 1, split)];
        for (i, activation) in activations.into_iter().enumerate() {
            let parallel = if activation == Activation::Dedicated { parallel.min(units) } else { 1 };
            let unit = Task { activation, parallel: Some(parallel), priority: i as i32,
                ..task(US, Variation::Exponential, 64, exit()) };
            tasks.push(on(unit, 0));
        }
        let mut run = seconds(0.002, seed);
        run.need_steady_state = false;
        let scenario = Scenario {
            model: Model { ports: vec![port(Some(0))], tasks, pools: vec![sleeping(units, policy, &[(0.0, exit_us)])] },
            load: Load {
                sources: vec![Source { port: 0, rate_pps, process: Process::Poisson, flows: vec![0, 1], steps: vec![] }],
                flows: vec![Flow { hash: 0, egress: 0, weight: 1.0 }; 2],
                sizes: vec![64],
                random_sizes: false,
            },
            run,
        };
        let outcome = simulate(&scenario, &go).expect("valid");
        let rest = &outcome.pools[0];
        let held: f64 = outcome.nodes[1..3].iter().map(|node| node.working_units + node.spinning_units).sum();
        let all = held + rest.waking_units + rest.asleep_units[0];
        prop_assert!((all - units as f64).abs() < 1e-9, "{all} of {units} units: {held} held, {rest:?}");
        let again = simulate(&scenario, &go).expect("valid");
        prop_assert_eq!(format!("{outcome:?}"), format!("{again:?}"));
    }
}
