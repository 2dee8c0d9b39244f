//! Managers, policies and activations (S4-S6) against what queueing theory and arithmetic say of them.

use crate::scenarios::{US, exit, go, on, poisson, pool, port, seconds, task};
use routecast_sim::scenario::{
    Activation, Flow, Load, Model, Need, Policy, Process, Route, RouteKind, Scenario, Source, Target, Task, Variation,
};
use routecast_sim::{Outcome, SimError, simulate};

/// Two task units, fed flow by flow from one port, on one pool of one unit.
fn pair(policy: Policy, mut units: [Task; 2], rate_pps: f64, shares: [f64; 2], duration_s: f64) -> Scenario {
    for unit in &mut units {
        *unit = on(unit.clone(), 0);
    }
    let [first, second] = units;
    let split = Route {
        kind: RouteKind::PerFlow,
        to: vec![Target::Task(1), Target::Task(2)],
        weights: vec![],
        indirection: vec![],
    };
    Scenario {
        model: Model {
            ports: vec![port(Some(0))],
            tasks: vec![task(0.0, Variation::Deterministic, 1, split), first, second],
            pools: vec![pool(1, policy)],
        },
        load: Load {
            sources: vec![Source { port: 0, rate_pps, process: Process::Poisson, flows: vec![0, 1], steps: vec![] }],
            flows: shares.iter().map(|&weight| Flow { hash: 0, egress: 0, weight }).collect(),
            sizes: vec![64],
            random_sizes: false,
        },
        run: seconds(duration_s, 9),
    }
}

fn exponential(mean_us: f64) -> Task {
    task(mean_us * US, Variation::Exponential, 1 << 20, exit())
}

fn fixed(us: f64, queue: usize) -> Task {
    task(us * US, Variation::Deterministic, queue, exit())
}

fn run(scenario: &Scenario) -> Outcome {
    simulate(scenario, &go).expect("the scenario is valid")
}

fn wait_s(outcome: &Outcome, node: usize, rate_pps: f64) -> f64 {
    outcome.nodes[node].waiting_frames / rate_pps
}

fn near(got: f64, theory: f64, tolerance: f64) {
    assert!((got / theory - 1.0).abs() < tolerance, "got {got}, theory {theory}");
}

#[test]
fn non_preemptive_priority_waits_as_cobham_says() {
    // Cobham 1954: W1 = R/(1 − ρ1), W2 = R/((1 − ρ1)(1 − ρ)), R = λ E[x²]/2 = ρ x for exponential x.
    let urgent = Task { priority: 1, ..exponential(1.0) };
    let outcome = run(&pair(Policy::Priority, [urgent, exponential(1.0)], 0.8e6, [0.3, 0.5], 4.0));
    near(wait_s(&outcome, 1, 0.3e6), 0.8e-6 / 0.7, 0.03);
    near(wait_s(&outcome, 2, 0.5e6), 0.8e-6 / (0.7 * 0.2), 0.05);
}

#[test]
fn preemption_hides_the_lower_class_from_the_higher() {
    // The higher class sees an M/M/1 of its own; the lower one's sojourn is x/(1 − ρ1) + R/((1 − ρ1)(1 − ρ)).
    let urgent = Task { priority: 1, ..exponential(1.0) };
    let outcome = run(&pair(Policy::Preemptive, [urgent, exponential(1.0)], 0.8e6, [0.3, 0.5], 4.0));
    near(wait_s(&outcome, 1, 0.3e6), 0.3e-6 / 0.7, 0.03);
    let mean = (0.3 * (1.0 / 0.7) + 0.5 * (1.0 / 0.7 + 0.8 / (0.7 * 0.2))) / 0.8 * 1e-6;
    near(outcome.latency.mean_s, mean, 0.05);
}

#[test]
fn fair_shares_follow_the_weights_under_overload() {
    let unit = |weight| Task { weight, batch: 64, ..fixed(1.0, 256) };
    let outcome = run(&pair(Policy::Fair { slice_ps: 10.0 * US }, [unit(3.0), unit(1.0)], 4e6, [1.0, 1.0], 0.2));
    near(outcome.nodes[1].working_units, 0.75, 0.02);
    near(outcome.nodes[2].working_units, 0.25, 0.02);
    near(outcome.forwarded_pps.value, 1e6, 0.01);
}

#[test]
fn round_robin_shares_time_and_not_frames() {
    let unit = |us| Task { batch: 1000, ..fixed(us, 2000) };
    let outcome =
        run(&pair(Policy::RoundRobin { quantum_ps: 20.0 * US }, [unit(1.0), unit(3.0)], 4e6, [1.0, 1.0], 0.2));
    near(outcome.nodes[1].working_units, 0.5, 0.02);
    near(outcome.forwarded_pps.value, 0.5e6 + 0.5e6 / 3.0, 0.02);
}

#[test]
fn fifo_serves_requests_in_turn_and_switching_costs_time() {
    // One request each at a time: the two alternate, and every frame pays one switch.
    let mut scenario = pair(Policy::Fifo, [fixed(1.0, 64), fixed(1.0, 64)], 4e6, [1.0, 1.0], 0.1);
    scenario.model.pools[0].switch_ps = 0.25 * US;
    let outcome = run(&scenario);
    near(outcome.forwarded_pps.value, 1e6 / 1.25, 0.005);
    near(outcome.nodes[1].working_units, 0.5, 0.005);
}

#[test]
fn a_thread_stays_where_it_was_and_pays_where_it_cannot() {
    let mut scenario = pair(Policy::Fifo, [fixed(1.0, 64), fixed(5.0, 64)], 4e6, [1.0, 1.0], 0.1);
    scenario.model.pools[0] = pool(2, Policy::Fifo);
    scenario.model.pools[0].migration_ps = US;
    // Each keeps its own unit: nobody migrates.
    near(run(&scenario).forwarded_pps.value, 1e6 + 0.2e6, 0.005);
    // Three threads on two units: some migrate, so less is done.
    let third = scenario.model.tasks[1].clone();
    scenario.model.tasks.push(third);
    scenario.model.tasks[0].route.to.push(Target::Task(3));
    scenario.load.flows.push(Flow { hash: 0, egress: 0, weight: 1.0 });
    scenario.load.sources[0].flows.push(2);
    let with = run(&scenario).forwarded_pps.value;
    scenario.model.pools[0].migration_ps = 0.0;
    assert!(with < 0.95 * run(&scenario).forwarded_pps.value);
}

#[test]
fn needs_in_opposite_order_do_not_deadlock() {
    let mut scenario = pair(Policy::Fifo, [fixed(1.0, 64), fixed(1.0, 64)], 4e6, [1.0, 1.0], 0.05);
    scenario.model.pools.push(pool(1, Policy::Fifo));
    scenario.model.tasks[1].needs =
        vec![Need { pool: 0, units: 1, until: None }, Need { pool: 1, units: 1, until: None }];
    scenario.model.tasks[2].needs =
        vec![Need { pool: 1, units: 1, until: None }, Need { pool: 0, units: 1, until: None }];
    near(run(&scenario).forwarded_pps.value, 1e6, 0.005);
}

#[test]
fn busy_units_slow_each_other_down_by_the_contention_table() {
    let mut scenario = pair(Policy::Fifo, [fixed(1.0, 64), fixed(1.0, 64)], 8e6, [1.0, 1.0], 0.05);
    scenario.model.pools[0] = pool(2, Policy::Fifo);
    scenario.model.pools[0].contention = vec![1.0, 1.25];
    near(run(&scenario).forwarded_pps.value, 2e6 / 1.25, 0.005);
}

#[test]
fn a_batch_shares_its_fixed_cost() {
    // 32 frames of 0.1 us and 1.6 us per batch: 32 / 4.8 us.
    let mut unit = Task { batch: 32, per_batch_ps: 1.6 * US, ..fixed(0.1, 512) };
    unit = on(unit, 0);
    let scenario = Scenario {
        model: Model { ports: vec![port(Some(0))], tasks: vec![unit], pools: vec![pool(1, Policy::Fifo)] },
        load: poisson(20e6),
        run: seconds(0.02, 1),
    };
    near(run(&scenario).forwarded_pps.value, 32.0 / 4.8e-6, 0.005);
}

fn napi(rate_pps: f64, process: Process, moderation_us: f64) -> Outcome {
    let activation = Activation::Interrupt {
        budget: 64,
        cost_ps: 2.0 * US,
        moderation_ps: moderation_us * US,
        wakeup: None,
        exhaustive: false,
        linger_ps: 0.0,
    };
    let unit = on(Task { activation, ..fixed(1.0, 512) }, 0);
    let mut load = poisson(rate_pps);
    load.sources[0].process = process;
    run(&Scenario {
        model: Model { ports: vec![port(Some(0))], tasks: vec![unit], pools: vec![pool(1, Policy::Fifo)] },
        load,
        run: seconds(0.1, 1),
    })
}

#[test]
fn a_rare_frame_pays_for_its_interrupt_and_a_flood_does_not() {
    let rare = napi(1e4, Process::Cbr { phase: 0.0 }, 0.0);
    near(rare.latency.mean_s, 3e-6, 1e-3);
    near(rare.nodes[0].working_units, 1e4 * 3e-6, 0.01);
    // Under overload no poll comes back short, so there is no further interrupt.
    let flood = napi(3e6, Process::Cbr { phase: 0.0 }, 0.0);
    near(flood.forwarded_pps.value, 1e6, 1e-3);
}

#[test]
fn moderation_bounds_the_rate_of_interrupts() {
    // 50 us between interrupts and 0.1 frames per us: 5 frames an interrupt, so 2 us of cost for 5 us of work.
    let outcome = napi(1e5, Process::Cbr { phase: 0.0 }, 50.0);
    near(outcome.nodes[0].working_units, 0.1 + 2.0 / 50.0, 0.03);
    assert!(outcome.latency.max_s > 40e-6 && outcome.latency.max_s < 60e-6, "{}", outcome.latency.max_s);
}

#[test]
fn a_polling_unit_serves_like_a_dedicated_one_and_shares_by_quantum() {
    let unit = |activation| Task { activation, ..fixed(1.0, 64) };
    let alone = |activation| {
        let model = Model {
            ports: vec![port(Some(0))],
            tasks: vec![on(unit(activation), 0)],
            pools: vec![pool(1, Policy::Fifo)],
        };
        run(&Scenario { model, load: poisson(0.7e6), run: seconds(0.2, 4) })
    };
    let (polling, dedicated) = (alone(Activation::Polling), alone(Activation::Dedicated));
    assert!((polling.latency.mean_s - dedicated.latency.mean_s).abs() < 1e-15);
    // Two pollers on one unit: each spins half of the time, even where only one of them has work.
    let both = pair(
        Policy::RoundRobin { quantum_ps: 10.0 * US },
        [unit(Activation::Polling), unit(Activation::Polling)],
        3e6,
        [0.999, 0.001],
        0.1,
    );
    near(run(&both).nodes[1].working_units, 0.5, 0.03);
}

#[test]
fn messages_tell_the_story_of_a_revoke() {
    let urgent = Task { priority: 1, ..fixed(1.0, 8) };
    let mut scenario = pair(Policy::Preemptive, [urgent, fixed(10.0, 8)], 1.0, [1.0, 1.0], 1e-3);
    scenario.load.sources[0].process =
        Process::Trace { time_ps: vec![1_000_000, 3_000_000], bytes: vec![64, 64], flow: vec![1, 0] };
    scenario.run.message_limit = 100;
    scenario.run.record_frames = true;
    let outcome = run(&scenario);
    let story: Vec<(&str, u32)> = outcome.messages.iter().map(|row| (row.kind, row.task)).collect();
    let expected = [("REQ", 2), ("REP", 2), ("REQ", 1), ("REV", 2), ("REP", 1), ("REL", 1), ("REP", 2), ("REL", 2)];
    assert_eq!(story, expected);
    // 10 us of work begun at 1 us, interrupted for 1 us.
    let ends: Vec<u64> = outcome.fates.iter().map(|fate| fate.end_ps).collect();
    assert_eq!(ends, [12_000_000, 4_000_000]);
}

#[test]
fn tail_drop_keeps_the_oldest_and_work_spent_stays_spent() {
    // S7: a full second queue drops what the first stage has already worked on.
    let mut first = fixed(1.0, 4);
    first.route = crate::scenarios::to(Target::Task(1));
    let scenario = Scenario {
        model: Model { ports: vec![port(Some(0))], tasks: vec![first, fixed(2.0, 4)], pools: vec![] },
        load: poisson(3e6),
        run: seconds(0.05, 2),
    };
    let outcome = run(&scenario);
    near(outcome.forwarded_pps.value, 0.5e6, 0.01);
    near(outcome.nodes[0].working_units, 1.0, 0.01);
    near(outcome.nodes[1].dropped_pps, 0.5e6, 0.02);
}

#[test]
fn a_cycle_a_wrong_index_and_a_short_trial_are_refused_in_words() {
    let mut scenario = pair(Policy::Fifo, [fixed(1.0, 4), fixed(1.0, 4)], 1e6, [1.0, 1.0], 0.01);
    scenario.model.tasks[1].route = crate::scenarios::to(Target::Task(2));
    scenario.model.tasks[2].route = crate::scenarios::to(Target::Task(1));
    assert!(matches!(simulate(&scenario, &go), Err(SimError::Cycle { .. })));
    scenario.model.tasks[2].route = crate::scenarios::to(Target::Task(9));
    assert!(simulate(&scenario, &go).unwrap_err().to_string().contains("index 9 is out of range: there are 3"));
    scenario.model.tasks[2].route = exit();
    scenario.run.need_steady_state = true;
    scenario.run.duration_ps = 10_000_000;
    assert!(matches!(simulate(&scenario, &go), Err(SimError::Transient { .. })));
}
