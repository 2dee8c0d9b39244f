//! Threads that share units under Linux's schedulers, turn among queues and wait for room, against what theory,
//! arithmetic and conservation say of them.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::scenarios::{US, exit, go, on, pool, port, seconds, task, to};
use proptest::prelude::*;
use routecast_sim::scenario::{
    Activation, Flow, Load, Model, Policy, Process, RandomTime, Route, RouteKind, Scenario, Source, Target, Task,
    Variation,
};
use routecast_sim::{Outcome, simulate};

const LINUX: Policy = Policy::Linux { quantum_ps: 100.0 * US, wakeup_granularity_ps: 20.0 * US };

fn thread(budget: usize) -> Activation {
    Activation::Thread { budget, cost_ps: 0.0, wakeup: None, exhaustive: false }
}

fn fixed(us: f64, queue: usize, route: Route) -> Task {
    on(Task { activation: thread(64), ..task(us * US, Variation::Deterministic, queue, route) }, 0)
}

fn exponential(us: f64, priority: i32) -> Task {
    let work = task(us * US, Variation::Exponential, 1 << 20, exit());
    on(Task { activation: thread(64), priority, ..work }, 0)
}

/// Task units fed flow by flow from one port.
fn beside(units: Vec<Task>, rates_pps: &[f64], policy: Policy, cores: usize, duration_s: f64) -> Scenario {
    let split = Route {
        kind: RouteKind::PerFlow,
        to: (1..=rates_pps.len()).map(Target::Task).collect(),
        weights: vec![],
        indirection: vec![],
    };
    let mut tasks = vec![task(0.0, Variation::Deterministic, 1, split)];
    tasks.extend(units);
    let flows = 0..rates_pps.len() as u32;
    Scenario {
        model: Model { ports: vec![port(Some(0))], tasks, pools: vec![pool(cores, policy)] },
        load: Load {
            sources: vec![Source {
                port: 0,
                rate_pps: rates_pps.iter().sum(),
                process: Process::Poisson,
                flows: flows.collect(),
                steps: vec![],
            }],
            flows: rates_pps.iter().map(|&weight| Flow { hash: 0, egress: 0, weight }).collect(),
            sizes: vec![64],
            random_sizes: false,
        },
        run: seconds(duration_s, 9),
    }
}

fn run(scenario: &Scenario) -> Outcome {
    let outcome = simulate(scenario, &go).expect("the scenario is valid");
    let all = outcome.forwarded_frames + outcome.dropped_frames + outcome.in_flight_frames;
    assert_eq!(outcome.offered_frames, all);
    outcome
}

fn near(got: f64, want: f64, tolerance: f64) {
    assert!((got / want - 1.0).abs() < tolerance, "got {got}, want {want}");
}

fn busy(outcome: &Outcome, node: usize) -> f64 {
    outcome.nodes[node].working_units
}

#[test]
fn threads_of_equal_weight_get_equal_time_and_others_by_their_weights() {
    for (weight, share) in [(1.0, 0.5), (3.0, 0.75)] {
        let first = Task { weight, ..fixed(1.0, 256, exit()) };
        let outcome = run(&beside(vec![first, fixed(3.0, 256, exit())], &[2e6, 2e6], LINUX, 1, 0.5));
        near(busy(&outcome, 1), share, 0.02);
        near(busy(&outcome, 2), 1.0 - share, 0.02);
    }
}

#[test]
fn real_time_starves_fair_threads_and_leaves_them_what_it_does_not_use() {
    for (rate_pps, left) in [(0.7e6, 0.3), (2e6, 0.0)] {
        let urgent = Task { priority: 1, ..fixed(1.0, 256, exit()) };
        let outcome = run(&beside(vec![urgent, fixed(1.0, 256, exit())], &[rate_pps, 2e6], LINUX, 1, 0.2));
        assert!((busy(&outcome, 2) - left).abs() < 0.01, "{}", busy(&outcome, 2));
        near(busy(&outcome, 1), rate_pps.min(1e6) / 1e6, 0.01);
    }
}

#[test]
fn real_time_priorities_wait_as_preemptive_resume_says() {
    // Avi-Itzhak and Naor 1963: the sojourn of class k is x/(1 − s_{k−1}) + R_k/((1 − s_{k−1})(1 − s_k)), where s_k is
    // the load of classes up to k and R_k = Σ λ_i E[x²]/2 over them, with exponential work ρ_i x.
    let rates = [0.3e6, 0.2e6, 0.3e6];
    let units = vec![exponential(1.0, 3), exponential(1.0, 2), exponential(1.0, 0)];
    let outcome = run(&beside(units, &rates, LINUX, 1, 8.0));
    let sojourn = |before: f64, with: f64| 1.0 / (1.0 - before) + with / ((1.0 - before) * (1.0 - with));
    let by_class = [sojourn(0.0, 0.3), sojourn(0.3, 0.5), sojourn(0.5, 0.8)];
    let mean = rates.iter().zip(by_class).map(|(rate, class)| rate * class).sum::<f64>() / 0.8e6;
    near(outcome.latency.mean_s, mean * 1e-6, 0.03);
    // The highest class sees an M/M/1 of its own.
    near(outcome.nodes[1].waiting_frames / rates[0], 0.3e-6 / 0.7, 0.03);
}

/// One thread that receives and sends, 1 us and 2 us a frame.
fn rx_and_tx(rate_pps: f64, cost_us: f64) -> Scenario {
    let rx = Task { thread: Some(0), ..fixed(1.0, 256, to(Target::Task(2))) };
    let tx = Task { thread: Some(0), ..fixed(2.0, 256, exit()) };
    let mut scenario = beside(vec![rx, tx], &[rate_pps], LINUX, 1, 0.2);
    for unit in &mut scenario.model.tasks[1..] {
        unit.activation = Activation::Thread { budget: 64, cost_ps: cost_us * US, wakeup: None, exhaustive: false };
    }
    scenario
}

#[test]
fn a_thread_that_receives_and_sends_forwards_no_less_in_deeper_overload() {
    for rate_pps in [0.4e6, 1e6, 4e6] {
        let outcome = run(&rx_and_tx(rate_pps, 0.0));
        near(outcome.forwarded_pps.value, 1e6 / 3.0, 0.01);
        assert_eq!(outcome.nodes[2].dropped_pps, 0.0);
    }
    // Below its capacity it loses nothing.
    near(run(&rx_and_tx(0.3e6, 0.0)).forwarded_pps.value, 0.3e6, 0.02);
}

#[test]
fn a_busy_thread_is_woken_by_nobody() {
    let overload = run(&rx_and_tx(1e6, 5.0));
    assert!(overload.nodes[1].interrupts_per_s < 100.0, "{}", overload.nodes[1].interrupts_per_s);
    // In an idle one each frame wakes the thread: 5 us, then 1 us and 2 us.
    let mut scenario = rx_and_tx(1e3, 5.0);
    scenario.load.sources[0].process = Process::Cbr { phase: 0.5 };
    let idle = run(&scenario);
    near(idle.nodes[1].interrupts_per_s, 1e3, 0.01);
    assert_eq!(idle.nodes[2].interrupts_per_s, 0.0);
    near(idle.latency.mean_s, 8e-6, 1e-3);
    near(busy(&idle, 1), 6e-3, 0.01);
}

#[test]
fn switching_costs_between_threads_and_not_within_one() {
    let mut scenario = rx_and_tx(1e6, 0.0);
    scenario.model.pools[0].switch_ps = 10.0 * US;
    near(run(&scenario).forwarded_pps.value, 1e6 / 3.0, 0.01);
    // Two threads in overload: each slice of 100 us brings one switch of 10 us, which takes part of it.
    let mut scenario = beside(vec![fixed(1.0, 256, exit()), fixed(1.0, 256, exit())], &[2e6, 2e6], LINUX, 1, 0.5);
    scenario.model.pools[0].switch_ps = 10.0 * US;
    near(run(&scenario).forwarded_pps.value, 0.9e6, 0.02);
}

#[test]
fn a_softirq_borrows_its_unit_without_a_switch_there_or_back() {
    let softirq = Activation::Interrupt {
        budget: 64,
        cost_ps: 0.0,
        moderation_ps: 0.0,
        wakeup: None,
        exhaustive: false,
        linger_ps: 0.0,
    };
    let urgent = |activation| Task { priority: 99, activation, ..fixed(1.0, 256, exit()) };
    let left = |activation| {
        let mut scenario = beside(vec![urgent(activation), fixed(1.0, 256, exit())], &[1e5, 2e6], LINUX, 1, 0.2);
        scenario.model.pools[0].switch_ps = 2.0 * US;
        let outcome = run(&scenario);
        (outcome.forwarded_pps.value - 1e5) / 1e6
    };
    near(left(softirq), 0.9, 0.005);
    // A thread switches there and back in each busy cycle. It is idle and switched away (1 − ρ)/(1 + λD) of the time,
    // where D = 2 us is the switch before the first frame of a cycle, and each arrival then begins a cycle.
    let cycles = 0.1 * 0.9 / 1.2;
    near(left(thread(64)), 0.9 - cycles * 4.0, 0.01);
}

#[test]
fn the_thread_that_a_softirq_interrupted_goes_on_unless_another_is_far_behind() {
    let softirq = Activation::Interrupt {
        budget: 64,
        cost_ps: 0.0,
        moderation_ps: 0.0,
        wakeup: None,
        exhaustive: false,
        linger_ps: 0.0,
    };
    let urgent = Task { priority: 99, activation: softirq, ..fixed(1.0, 256, exit()) };
    let units = vec![urgent, fixed(1.0, 256, exit()), fixed(1.0, 256, exit())];
    let mut scenario = beside(units, &[1e5, 2e6, 2e6], LINUX, 1, 0.2);
    scenario.model.pools[0].switch_ps = 2.0 * US;
    let outcome = run(&scenario);
    // A thread goes on until it is ahead by more than the granularity of 20 us, as the other was when it took over: one
    // switch of 2 us in 40 us at most. To turn to the least served after each softirq would cost one in 10 us.
    let left = (outcome.forwarded_pps.value - 1e5) / 1e6;
    assert!(left > 0.9 * (1.0 - 2.0 / 40.0) - 0.003, "{left}");
    near(busy(&outcome, 2), busy(&outcome, 3), 0.02);
}

#[test]
fn a_poller_that_serves_several_queues_shares_its_unit_among_them_batch_by_batch() {
    let unit = |us| Task { thread: Some(0), batch: 32, activation: Activation::Polling, ..fixed(us, 256, exit()) };
    let outcome = run(&beside(vec![unit(1.0), unit(3.0)], &[2e6, 2e6], Policy::Fifo, 1, 0.2));
    // Equal batches: equal rates.
    near(busy(&outcome, 1), 0.25, 0.01);
    near(busy(&outcome, 2), 0.75, 0.01);
    let idle = run(&beside(vec![unit(1.0), unit(3.0)], &[1e5, 1e5], Policy::Fifo, 1, 0.2));
    near(idle.nodes[1].spinning_units + idle.nodes[2].spinning_units + busy(&idle, 1) + busy(&idle, 2), 1.0, 1e-3);
}

#[test]
fn a_thread_that_holds_back_drops_before_the_ring_and_not_behind_it() {
    let chain = |holds_back| {
        let rx = Task { holds_back, ..fixed(0.5, 128, to(Target::Task(2))) };
        let mut guest = fixed(1.0, 64, exit());
        guest.needs[0].pool = 1;
        let mut scenario = beside(vec![rx, guest], &[1.5e6], LINUX, 1, 0.1);
        scenario.model.pools.push(pool(1, LINUX));
        run(&scenario)
    };
    let (held, tail) = (chain(true), chain(false));
    assert_eq!(held.nodes[2].dropped_pps, 0.0);
    near(held.nodes[1].dropped_pps, 0.5e6, 0.02);
    near(held.forwarded_pps.value, 1e6, 0.005);
    assert!(tail.nodes[2].dropped_pps > 0.4e6);
    assert_eq!(tail.nodes[1].dropped_pps, 0.0);
}

#[test]
fn holding_back_saves_the_work_of_frames_that_would_be_dropped_later() {
    // One processor for a receiving thread, a guest and a sending thread: what the first does for frames that are then
    // dropped is lost to the others.
    let router = |holds_back: bool, rate_pps: f64| {
        let units = vec![
            Task { holds_back, ..fixed(1.0, 256, to(Target::Task(2))) },
            Task { holds_back, ..fixed(2.0, 64, to(Target::Task(3))) },
            fixed(1.0, 64, exit()),
        ];
        run(&beside(units, &[rate_pps], LINUX, 1, 0.2)).forwarded_pps.value
    };
    let (held, tail) = (router(true, 1.5e6), router(false, 1.5e6));
    near(held, 0.25e6, 0.03);
    assert!(tail < 0.9 * held, "{tail} {held}");
    near(router(true, 0.2e6), 0.2e6, 0.02);
}

#[test]
fn a_sleeper_waits_for_its_wake_up_and_revokes_whoever_is_ahead() {
    // A rare frame for a thread beside one in overload: revoked at once, for the other is far ahead.
    let unit = || fixed(1.0, 256, exit());
    let mut scenario = beside(vec![unit(), unit()], &[2e6, 1e3], LINUX, 1, 0.2);
    let wait_s = |scenario: &Scenario| run(scenario).nodes[2].waiting_frames / 1e3;
    let quick = wait_s(&scenario);
    assert!(quick < 1e-6, "{quick}");
    let wakeup = RandomTime::Mean { mean_ps: 7.0 * US, variation: Variation::Deterministic };
    scenario.model.tasks[2].activation =
        Activation::Thread { budget: 64, cost_ps: 0.0, wakeup: Some(wakeup), exhaustive: false };
    near(wait_s(&scenario), quick + 7e-6, 0.05);
    // Without wake-up revokes it waits for the end of a slice.
    scenario.model.pools[0].policy = Policy::Linux { quantum_ps: 100.0 * US, wakeup_granularity_ps: 1e12 };
    assert!(wait_s(&scenario) > quick + 40e-6);
}

#[test]
fn what_was_revoked_goes_on_at_another_unit_that_is_free() {
    let urgent = Task { priority: 1, pin: vec![0], ..fixed(1.0, 256, exit()) };
    let mut scenario = beside(vec![urgent, fixed(1.0, 256, exit())], &[1e4, 2e6], LINUX, 2, 0.1);
    scenario.model.pools[0].migration_ps = 50.0 * US;
    scenario.run.message_limit = 1000;
    scenario.run.record_frames = true;
    let outcome = run(&scenario);
    // It began at unit 0, where it slept before, and was revoked there once; since then it is at unit 1.
    let own: Vec<_> = outcome.messages.iter().filter(|message| message.task == 2).collect();
    let revoked = own.iter().position(|message| message.kind == "REV").expect("it was at unit 0 at first");
    let (before, after) = (own[revoked], own[revoked + 1]);
    assert_eq!((before.unit, after.kind, after.unit), (Some(0), "REP", Some(1)));
    assert_eq!(before.at_s, after.at_s);
    assert!(own[revoked + 1..].iter().all(|message| message.kind != "REV"));
    near(busy(&outcome, 2), 1.0, 0.01);
}

/// Receiving and sending threads round guests, as a small virtual router, out of whatever numbers come.
#[expect(clippy::too_many_arguments, reason = "each is one thing in which routers differ")]
fn any_router(
    works: &[u8],
    queues: &[u8],
    priorities: &[u8],
    budget: usize,
    cores: usize,
    flags: u8,
    rate_pps: f64,
    seed: u64,
) -> Scenario {
    let unit = |n: usize, route: Route| Task {
        activation: Activation::Thread {
            budget,
            cost_ps: f64::from(flags & 1) * US,
            wakeup: (flags & 2 != 0)
                .then_some(RandomTime::Mean { mean_ps: 3.0 * US, variation: Variation::Exponential }),
            exhaustive: flags & 4 != 0,
        },
        priority: i32::from(priorities[n % priorities.len()]),
        holds_back: flags & 8 != 0 && !route.to.is_empty(),
        ..fixed(f64::from(works[n]) * 0.25, usize::from(queues[n]), route)
    };
    let mut units = vec![
        unit(0, to(Target::Task(2))),
        unit(1, to(Target::Task(3))),
        unit(2, to(Target::Task(4))),
        unit(3, to(Target::Port(0))),
    ];
    if flags & 16 != 0 {
        // The first and the last are one vhost thread; so are the two between.
        for (n, number) in [(0, 0), (3, 0), (1, 1), (2, 1)] {
            units[n].thread = Some(number);
            units[n].priority = i32::from(priorities[number % priorities.len()]);
        }
    }
    if flags & 32 != 0 {
        units[0].pin = vec![0];
        units[3].pin = vec![0];
    }
    let mut scenario = beside(units, &[rate_pps], LINUX, cores, 2e-3);
    scenario.model.pools[0].switch_ps = f64::from(flags & 64) / 64.0 * US;
    scenario.model.pools[0].migration_ps = f64::from(flags & 64) / 32.0 * US;
    scenario.model.ports[0].link_bps = 1e9;
    scenario.model.ports[0].tx_ring = 8;
    scenario.run.seed = seed;
    scenario
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_frame_is_lost_count_of_and_no_unit_works_more_than_always(
        works in prop::collection::vec(0_u8..12, 4),
        queues in prop::collection::vec(1_u8..40, 4),
        priorities in prop::collection::vec(0_u8..3, 1..4),
        budget in 1_usize..70,
        cores in 1_usize..4,
        flags: u8,
        rate_pps in 1e5_f64..4e6,
        seed: u64,
    ) {
        let scenario = any_router(&works, &queues, &priorities, budget, cores, flags & 127, rate_pps, seed);
        let outcome = run(&scenario);
        let working: f64 = outcome.nodes[..5].iter().map(|node| node.working_units).sum();
        prop_assert!(working <= cores as f64 + 1e-9, "{working}");
        if flags & 8 != 0 {
            for behind in 2..6 {
                prop_assert_eq!(outcome.nodes[behind].dropped_pps, 0.0);
            }
        }
        let again = run(&scenario);
        prop_assert_eq!(outcome.latency.mean_s.to_bits(), again.latency.mean_s.to_bits());
    }

    #[test]
    fn nothing_that_waits_for_room_is_forgotten(
        works in prop::collection::vec(0_u8..12, 4),
        queues in prop::collection::vec(1_u8..6, 4),
        priorities in prop::collection::vec(0_u8..3, 1..4),
        budget in 1_usize..10,
        cores in 1_usize..4,
        flags: u8,
        frames in 1_usize..60,
    ) {
        // A burst, then silence: whatever was not dropped must have come out.
        let mut scenario = any_router(&works, &queues, &priorities, budget, cores, (flags & 127) | 8, 1e6, 3);
        scenario.load.sources[0].process = Process::Trace {
            time_ps: (0..frames as u64).map(|n| 1_000_000 + n * 300_000).collect(),
            bytes: vec![64; frames],
            flow: vec![0; frames],
        };
        prop_assert_eq!(run(&scenario).in_flight_frames, 0);
    }
}

#[test]
fn a_run_can_be_stopped_between_two_arrivals() {
    // Two threads that are cut every nanosecond have some 2e8 events in the second between the first arrivals and the end.
    let tiny = Policy::Linux { quantum_ps: 1e3, wakeup_granularity_ps: 0.0 };
    let scenario = beside(vec![fixed(1e6, 4, exit()), fixed(1e6, 4, exit())], &[2.0, 2.0], tiny, 1, 3.0);
    let reports = AtomicU32::new(0);
    let stop = |_: f64| {
        let number = reports.fetch_add(1, Ordering::Relaxed) + 1;
        if number == 3 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    };
    assert!(simulate(&scenario, &stop).is_err());
    assert_eq!(reports.load(Ordering::Relaxed), 3);
}

#[test]
fn work_that_no_clock_can_count_never_ends() {
    for policy in [LINUX, Policy::Fifo] {
        let endless = fixed(1e16, 4, exit());
        let outcome = run(&beside(vec![endless.clone(), fixed(1.0, 4, exit())], &[1e4, 1e4], policy, 2, 0.02));
        near(busy(&outcome, 1), 1.0, 0.05);
        assert!(outcome.nodes[1].dropped_pps > 9e3);
    }
}
