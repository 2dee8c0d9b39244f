//! Outages, changes of routes, copies: what they must do to the frames, counted by hand.

use crate::scenarios::{US, exit, go, on, poisson, pool, port, seconds, station, task, to};
use proptest::prelude::*;
use routecast_sim::scenario::{
    Activation, Event, Flow, Load, Model, Path, Policy, Process, Route, RouteKind, Scenario, Source, Target, Task,
    Variation,
};
use routecast_sim::{Outcome, simulate};

const FIXED: Variation = Variation::Deterministic;

fn even(rate_pps: f64) -> Load {
    Load {
        sources: vec![Source {
            port: 0,
            rate_pps,
            process: Process::Cbr { phase: 0.0 },
            flows: vec![0],
            steps: vec![],
        }],
        ..poisson(rate_pps)
    }
}

fn outage(task: usize, from_us: f64, until_us: f64) -> Event {
    Event::Outage { task, from_ps: from_us * US, until_ps: Some(until_us * US) }
}

fn reroute(task: usize, at_us: f64, route: Route) -> Event {
    Event::Reroute { task, at_ps: at_us * US, route, copies: vec![] }
}

/// Frames of one part or several parts of a trial.
fn frames(outcome: &Outcome, duration_s: f64, pick: fn(&routecast_sim::outcome::Moment) -> f64) -> f64 {
    outcome.over_time.iter().map(pick).sum::<f64>() * duration_s / outcome.over_time.len() as f64
}

/// The frames that a node worked on, where each takes 1 us.
fn served(outcome: &Outcome, node: usize) -> f64 {
    outcome.nodes[node].working_units * outcome.measured_s * 1e6
}

fn same_frame_by_frame(scenario: &Scenario) -> Outcome {
    let [auto, events] = [Path::Auto, Path::Events].map(|path| {
        let mut scenario = scenario.clone();
        (scenario.run.path, scenario.run.record_frames, scenario.run.per_flow) = (path, true, true);
        simulate(&scenario, &go).expect("the scenario is valid")
    });
    let key = |outcome: &Outcome| {
        outcome.fates.iter().map(|f| (f.seq, f.arrival_ps, f.end_ps, f.dropped_at)).collect::<Vec<_>>()
    };
    assert_eq!(key(&auto), key(&events));
    for (a, b) in auto.nodes.iter().zip(&events.nodes) {
        assert!((a.working_units - b.working_units).abs() < 1e-6, "{} {}", a.working_units, b.working_units);
        assert!((a.copied_pps - b.copied_pps).abs() < 1e-3 && (a.copies_lost_pps - b.copies_lost_pps).abs() < 1e-3);
    }
    auto
}

#[test]
fn an_outage_loses_what_comes_meanwhile_and_what_is_in_service() {
    // A frame every 2 us, 1 us of work. From 2000.5 us on: the frame of 2000 us is in service; 2002, …, 5000 us come.
    let mut scenario = station(task(US, FIXED, 64, exit()), even(0.5e6), seconds(0.01, 1));
    scenario.run.events = vec![outage(0, 2000.5, 5000.5)];
    let outcome = same_frame_by_frame(&scenario);
    assert_eq!((outcome.offered_frames, outcome.dropped_frames), (5000, 1501));
    assert_eq!((outcome.first_loss_s, outcome.last_loss_s), (Some(2000e-6), Some(5000e-6)));
    // Half of the work on the frame in service was done.
    assert!((served(&outcome, 0) - 3499.5).abs() < 1e-6, "{}", served(&outcome, 0));
    // Parts of 10 us: five frames each, before, during and after.
    let part = |n: usize| (outcome.over_time[n].forwarded_pps * 1e-5, outcome.over_time[n].dropped_pps * 1e-5);
    for (n, expected) in [(100, (5.0, 0.0)), (300, (0.0, 5.0)), (501, (5.0, 0.0)), (999, (5.0, 0.0))] {
        let (forwarded, dropped) = part(n);
        assert!((forwarded - expected.0).abs() < 1e-9 && (dropped - expected.1).abs() < 1e-9, "part {n}");
    }
    // All of the trial counts, and there is no interval of what is no steady state.
    assert!((outcome.measured_s - 0.01).abs() < 1e-15 && outcome.forwarded_pps.half_width.is_nan());
}

#[test]
fn the_instants_of_an_outage_are_exact() {
    // The frame that comes right at its beginning is lost, the one right at its end is not.
    let mut scenario = station(task(US, FIXED, 64, exit()), even(0.5e6), seconds(0.01, 1));
    scenario.run.events = vec![outage(0, 2000.0, 3000.0)];
    assert_eq!(same_frame_by_frame(&scenario).dropped_frames, 500);
}

#[test]
fn a_full_queue_is_lost_with_an_outage() {
    // 2 Mpps at 1 Mpps: the queue of 64 is full. 64 and the one in service, and 2000 that come within 1 ms.
    let mut scenario = station(task(US, FIXED, 64, exit()), even(2e6), seconds(0.01, 1));
    let without = simulate(&scenario, &go).unwrap().dropped_frames;
    scenario.run.events = vec![outage(0, 5000.25, 6000.25)];
    let with = same_frame_by_frame(&scenario);
    // Without it 1000 of the 2000 would have been served; afterwards the queue takes 65 without loss once more.
    assert_eq!(with.dropped_frames, without + 1000);
    assert_eq!(with.in_flight_frames, 65);
}

#[test]
fn an_outage_that_does_not_end_and_outages_that_overlap() {
    let mut scenario = station(task(US, FIXED, 64, exit()), even(0.5e6), seconds(0.01, 1));
    scenario.run.events = vec![Event::Outage { task: 0, from_ps: 8000.5 * US, until_ps: None }];
    assert_eq!(same_frame_by_frame(&scenario).forwarded_frames, 4000);
    scenario.run.events = vec![outage(0, 1000.5, 3000.5), outage(0, 2001.5, 4001.5), outage(0, 4001.5, 5001.5)];
    // From 1000.5 to 5001.5 us: the frame in service and those of 1002, …, 5000 us.
    assert_eq!(same_frame_by_frame(&scenario).dropped_frames, 2001);
}

/// Two task units of 1 us share one unit, each with its own half of the frames.
fn shared(policy: Policy, rate_pps: f64, activation: &Activation) -> Scenario {
    let half = Route {
        kind: RouteKind::RoundRobin,
        to: vec![Target::Task(1), Target::Task(2)],
        weights: vec![],
        indirection: vec![],
    };
    let core = |priority| Task { priority, activation: activation.clone(), ..on(task(US, FIXED, 64, exit()), 0) };
    Scenario {
        model: Model {
            ports: vec![port(Some(0))],
            tasks: vec![task(0.0, FIXED, 64, half), core(0), core(1)],
            pools: vec![pool(1, policy)],
        },
        load: even(rate_pps),
        run: seconds(0.01, 1),
    }
}

#[test]
fn a_task_unit_that_is_down_leaves_its_units_to_others() {
    // 1.6 Mpps for one unit of 1 Mpps: it is always busy. While the first is down, the second is served in full.
    let mut scenario = shared(Policy::Fifo, 1.6e6, &Activation::Dedicated);
    scenario.run.events = vec![outage(1, 4000.0, 8000.0)];
    let outcome = same_frame_by_frame(&scenario);
    let served_of_second: f64 =
        outcome.over_time[450..750].iter().map(|moment| moment.forwarded_pps).sum::<f64>() / 300.0;
    assert!((served_of_second / 0.8e6 - 1.0).abs() < 0.01, "{served_of_second}");
    let before: f64 = outcome.over_time[100..350].iter().map(|moment| moment.forwarded_pps).sum::<f64>() / 250.0;
    assert!((before / 1e6 - 1.0).abs() < 0.01, "{before}");
}

#[test]
fn a_route_changes_at_its_instant() {
    // A frame every 2 us: those of 0, …, 3998 us go to the first task unit, those of 4000 us and later to the second.
    let mut scenario = Scenario {
        model: Model {
            ports: vec![port(Some(0)), port(None)],
            tasks: vec![
                task(0.0, FIXED, 8, to(Target::Task(1))),
                task(US, FIXED, 64, to(Target::Port(0))),
                task(US, FIXED, 64, to(Target::Port(1))),
            ],
            pools: vec![],
        },
        load: even(0.5e6),
        run: seconds(0.01, 1),
    };
    scenario.run.events = vec![reroute(0, 4000.0, to(Target::Task(2)))];
    let outcome = same_frame_by_frame(&scenario);
    assert!((served(&outcome, 1) - 2000.0).abs() < 1e-6, "{}", served(&outcome, 1));
    assert!((served(&outcome, 2) - 3000.0).abs() < 1e-6, "{}", served(&outcome, 2));
    assert_eq!((outcome.offered_frames, outcome.dropped_frames), (5000, 0));
    // There and back again: 2000 frames of 4 ms.
    scenario.run.events.push(reroute(0, 8000.0, to(Target::Task(1))));
    let outcome = same_frame_by_frame(&scenario);
    assert!((served(&outcome, 2) - 2000.0).abs() < 1e-6, "{}", served(&outcome, 2));
}

#[test]
fn routes_must_not_make_a_circle_together() {
    let mut scenario = station(task(US, FIXED, 64, to(Target::Task(1))), even(0.5e6), seconds(0.01, 1));
    scenario.model.tasks.push(task(US, FIXED, 64, exit()));
    scenario.run.events = vec![reroute(1, 4000.0, to(Target::Task(0)))];
    assert!(simulate(&scenario, &go).unwrap_err().to_string().contains("cycle"));
}

#[test]
fn events_outside_the_trial_and_of_unknown_task_units_are_refused() {
    let refused = |event: Event| {
        let mut scenario = station(task(US, FIXED, 64, exit()), even(0.5e6), seconds(0.01, 1));
        scenario.run.events = vec![event];
        simulate(&scenario, &go).unwrap_err().to_string()
    };
    assert!(refused(outage(3, 1.0, 2.0)).contains("run.events[0].task"));
    assert!(refused(outage(0, 10_000.0, 20_000.0)).contains("within the trial"));
    assert!(refused(outage(0, 5.0, 5.0)).contains("later than from_ps"));
    assert!(refused(reroute(0, -1.0, exit())).contains("within the trial"));
    assert!(refused(reroute(0, 1.0, to(Target::Task(9)))).contains("route.to"));
}

/// A hub of 0.2 us that sends copies to a task unit of its own unit.
fn hub(rate_pps: f64, copy_us: f64) -> Scenario {
    let mut scenario = station(task(0.2 * US, FIXED, 64, to(Target::Port(0))), even(rate_pps), seconds(0.01, 1));
    scenario.model.tasks.push(task(copy_us * US, FIXED, 16, exit()));
    scenario.model.tasks[0].copies = vec![1];
    scenario
}

#[test]
fn copies_load_their_task_unit_and_change_nothing_else() {
    let scenario = hub(0.8e6, 0.5);
    let mut alone = scenario.clone();
    alone.model.tasks[0].copies.clear();
    let (with, without) = (same_frame_by_frame(&scenario), same_frame_by_frame(&alone));
    let ends = |outcome: &Outcome| outcome.fates.iter().map(|fate| (fate.seq, fate.end_ps)).collect::<Vec<_>>();
    assert_eq!(ends(&with), ends(&without));
    assert_eq!(with.latency.mean_s.to_bits(), without.latency.mean_s.to_bits());
    assert_eq!((with.offered_frames, with.in_flight_frames), (without.offered_frames, without.in_flight_frames));
    assert_eq!((with.dropped_frames, with.flows[0].forwarded_pps), (0, without.flows[0].forwarded_pps));
    assert!((with.nodes[1].working_units - 0.8 * 0.5).abs() < 1e-4, "{}", with.nodes[1].working_units);
    assert!((with.nodes[1].copied_pps / 0.8e6 - 1.0).abs() < 1e-3);
    assert_eq!(without.nodes[1].working_units, 0.0);
}

#[test]
fn copies_that_find_no_room_are_lost_and_are_no_dropped_frames() {
    // 1.6 Mpps at 0.5 Mpps.
    let outcome = same_frame_by_frame(&hub(1.6e6, 2.0));
    assert_eq!(outcome.dropped_frames, 0);
    assert!((outcome.nodes[1].copied_pps / 0.5e6 - 1.0).abs() < 1e-3, "{}", outcome.nodes[1].copied_pps);
    assert!((outcome.nodes[1].copies_lost_pps / 1.1e6 - 1.0).abs() < 1e-3, "{}", outcome.nodes[1].copies_lost_pps);
}

#[test]
fn a_hub_floods_to_all_but_the_one_that_gets_the_frame() {
    // Two of three frames go to the first task unit, one to the second; copies of each go to the other one.
    let flood = Route {
        kind: RouteKind::ByEgress,
        to: vec![Target::Task(1), Target::Task(2)],
        weights: vec![],
        indirection: vec![],
    };
    let mut scenario = station(task(0.0, FIXED, 8, flood), even(0.3e6), seconds(0.01, 1));
    scenario.model.ports.push(port(None));
    scenario.model.tasks.push(task(US, FIXED, 64, to(Target::Port(0))));
    scenario.model.tasks.push(task(US, FIXED, 64, to(Target::Port(1))));
    scenario.model.tasks[0].copies = vec![1, 2];
    scenario.load.flows = [0, 0, 1].map(|egress| Flow { hash: 0, egress, weight: 1.0 }).to_vec();
    scenario.load.sources[0].flows = vec![0, 1, 2];
    let outcome = same_frame_by_frame(&scenario);
    for node in [1, 2] {
        assert!((outcome.nodes[node].working_units - 0.3).abs() < 1e-3, "{}", outcome.nodes[node].working_units);
    }
    assert!((outcome.nodes[1].copied_pps / 0.1e6 - 1.0).abs() < 2e-3);
    assert!((outcome.nodes[2].copied_pps / 0.2e6 - 1.0).abs() < 2e-3);
    assert_eq!((outcome.offered_frames, outcome.forwarded_frames + outcome.in_flight_frames), (3000, 3000));
}

#[test]
fn copies_may_go_back_to_task_units_before() {
    // A frame crosses the hub, a machine, the hub again; the second crossing floods to the machine.
    let mut scenario = station(task(0.1 * US, FIXED, 64, to(Target::Task(1))), even(0.5e6), seconds(0.01, 1));
    scenario.model.tasks.push(task(0.5 * US, FIXED, 64, to(Target::Task(2))));
    scenario.model.tasks.push(Task { copies: vec![1], ..task(0.1 * US, FIXED, 64, to(Target::Port(0))) });
    let outcome = same_frame_by_frame(&scenario);
    assert!((outcome.nodes[1].working_units - 0.5).abs() < 1e-3, "{}", outcome.nodes[1].working_units);
    assert!((outcome.forwarded_pps.value / 0.5e6 - 1.0).abs() < 1e-3);
}

/// A virtual machine: its backend, a thread that waits for room in the guest; the guest's receive and send sides, one
/// thread; a softirq above them. One pool under Linux's schedulers.
fn machine(units: usize, polling: bool, exhaustive: bool, rate_pps: f64) -> Scenario {
    let thread = || {
        if polling {
            return Activation::Polling;
        }
        Activation::Thread { budget: 4, cost_ps: 0.2 * US, wakeup: None, exhaustive }
    };
    let softirq = Activation::Interrupt {
        budget: 4,
        cost_ps: 0.1 * US,
        moderation_ps: 0.0,
        wakeup: None,
        exhaustive: true,
        linger_ps: 0.0,
    };
    let on_cpu = |cost_us: f64, activation, next| Task { activation, ..on(task(cost_us * US, FIXED, 6, to(next)), 0) };
    let tasks = vec![
        Task { priority: 9, ..on_cpu(0.2, softirq, Target::Task(1)) },
        Task { holds_back: true, ..on_cpu(0.5, thread(), Target::Task(2)) },
        Task { thread: Some(0), ..on_cpu(0.3, thread(), Target::Task(3)) },
        Task { thread: Some(0), holds_back: true, ..on_cpu(0.4, thread(), Target::Port(0)) },
    ];
    let policy = Policy::Linux { quantum_ps: 10.0 * US, wakeup_granularity_ps: 2.0 * US };
    let mut out = port(Some(0));
    (out.tx_ring, out.link_bps) = (3, 1e9);
    Scenario {
        model: Model { ports: vec![out], tasks, pools: vec![pool(units, policy)] },
        load: poisson(rate_pps),
        run: seconds(1e-3, 1),
    }
}

#[test]
fn a_task_unit_of_a_thread_fails_alone() {
    // The guest cannot send for 4 ms, but goes on to receive: the frames end at the send queue, which is down.
    let mut scenario = machine(4, false, false, 0.2e6);
    scenario.run = seconds(0.01, 1);
    scenario.run.events = vec![outage(3, 3000.0, 7000.0)];
    let outcome = same_frame_by_frame(&scenario);
    let part = |from: usize, to: usize, pick: fn(&routecast_sim::outcome::Moment) -> f64| {
        outcome.over_time[from..to].iter().map(pick).sum::<f64>() / (to - from) as f64
    };
    assert_eq!(part(310, 700, |moment| moment.forwarded_pps), 0.0);
    let offered = part(300, 700, |moment| moment.offered_pps);
    assert!((part(300, 700, |moment| moment.dropped_pps) / offered - 1.0).abs() < 0.01);
    assert!((part(710, 1000, |moment| moment.forwarded_pps) / 0.2e6 - 1.0).abs() < 0.1);
    // Work of the receive side: all frames of 10 ms; of the send side: 6 ms of them.
    let per_frame = |node: usize, cost_us: f64| outcome.nodes[node].working_units * 0.01 / (cost_us * 1e-6);
    assert!(per_frame(2, 0.3) >= outcome.offered_frames as f64);
    assert!(per_frame(3, 0.4) < 0.8 * outcome.offered_frames as f64);
    assert_eq!(outcome.nodes[2].dropped_pps, 0.0);
}

#[test]
fn nobody_waits_for_room_at_a_task_unit_that_is_down_and_everybody_does_again_afterwards() {
    // The guest is down for good: its backend drops there what it took, and its own queue never fills.
    let mut scenario = machine(4, false, false, 1e6);
    scenario.run.events = [2, 3].map(|task| Event::Outage { task, from_ps: 0.0, until_ps: None }).to_vec();
    let outcome = same_frame_by_frame(&scenario);
    assert_eq!((outcome.forwarded_frames, outcome.nodes[1].dropped_pps), (0, 0.0));
    assert!(outcome.nodes[2].dropped_pps > 0.9e6);
    // It holds back again afterwards: a guest of 1.4 Mpps that gets 1.9 Mpps drops nothing, its backend does.
    scenario = machine(4, false, false, 1.9e6);
    scenario.model.ports[0].link_bps = 1e12;
    scenario.run.events = vec![outage(2, 100.0, 200.0), outage(3, 100.0, 200.0)];
    let outcome = same_frame_by_frame(&scenario);
    assert!(outcome.nodes[1].dropped_pps > 0.1e6);
    let lost_at_guest = outcome.nodes[2].dropped_pps * 1e-3;
    assert!((lost_at_guest / 190.0 - 1.0).abs() < 0.25, "{lost_at_guest}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn whatever_happens_to_whatever_task_unit_both_ways_agree_and_no_frame_is_lost_from_sight(
        policy in prop::sample::select(vec![
            Policy::Fifo, Policy::Priority, Policy::Preemptive,
            Policy::RoundRobin { quantum_ps: 3.5 * US }, Policy::Fair { slice_ps: 2.5 * US },
        ]),
        kind in 0_usize..4,
        batch in 1_usize..4,
        units in 1_usize..3,
        rate_pps in 0.1e6_f64..4e6,
        outages in prop::collection::vec((0_usize..3, 0.0_f64..290.0, 1.0_f64..150.0), 0..4),
        reroutes in prop::collection::vec((0_usize..3, 0.0_f64..290.0, 0_usize..3), 0..3),
        copies in prop::collection::vec(1_usize..3, 0..2),
        switch_us in 0.0_f64..0.4,
    ) {
        let interrupt = |linger_us: f64| Activation::Interrupt {
            budget: 4, cost_ps: 0.3 * US, moderation_ps: 5.0 * US, wakeup: None, exhaustive: batch == 2,
            linger_ps: linger_us * US,
        };
        let activation = [Activation::Dedicated, Activation::Polling, interrupt(0.0), interrupt(3.0)][kind].clone();
        let mut scenario = shared(policy, rate_pps, &activation);
        scenario.model.pools[0].speed = vec![1.0; units];
        scenario.model.pools[0].switch_ps = switch_us * US;
        for core in &mut scenario.model.tasks[1..] {
            (core.queue, core.batch) = (5, batch);
        }
        scenario.model.tasks[0].copies = copies;
        scenario.model.ports[0].link_bps = 1e10;
        scenario.run.duration_ps = (300.0 * US) as u64;
        scenario.run.per_flow = true;
        scenario.run.events = outages.iter().map(|&(task, from, lasts)| outage(task, from, from + lasts)).collect();
        for (task, at, way) in reroutes {
            // Task units lead on to later ones only.
            let ways = [exit(), to(Target::Port(0)), to(if task < 2 { Target::Task(2) } else { Target::Port(0) })];
            scenario.run.events.push(reroute(task, at, ways[way].clone()));
        }
        let outcome = same_frame_by_frame(&scenario);
        if !scenario.run.events.is_empty() {
            let counts = [
                (frames(&outcome, 300e-6, |moment| moment.offered_pps), outcome.offered_frames),
                (frames(&outcome, 300e-6, |moment| moment.forwarded_pps), outcome.forwarded_frames),
                (frames(&outcome, 300e-6, |moment| moment.dropped_pps), outcome.dropped_frames),
            ];
            for (over_time, counted) in counts {
                prop_assert!((over_time - counted as f64).abs() < 1e-6 * (1.0 + over_time), "{over_time} {counted}");
            }
        }
    }

    #[test]
    fn whatever_happens_to_threads_that_wait_for_room_no_frame_and_no_promise_is_lost_from_sight(
        units in 1_usize..5,
        polling: bool,
        exhaustive: bool,
        rate_pps in 0.1e6_f64..4e6,
        outages in prop::collection::vec((0_usize..4, 0.0_f64..290.0, 1.0_f64..150.0), 0..5),
        reroutes in prop::collection::vec((0_usize..4, 0.0_f64..290.0, 0_usize..3), 0..4),
        copies in prop::collection::vec(0_usize..4, 0..2),
        copier in 0_usize..4,
    ) {
        let mut scenario = machine(if polling { units.max(3) } else { units }, polling, exhaustive, rate_pps);
        scenario.model.tasks[copier].copies = copies;
        scenario.run.duration_ps = (300.0 * US) as u64;
        scenario.run.per_flow = true;
        scenario.run.events = outages.iter().map(|&(task, from, lasts)| outage(task, from, from + lasts)).collect();
        for (task, at, way) in reroutes {
            let ways = [exit(), to(Target::Port(0)), to(if task < 3 { Target::Task(3) } else { Target::Port(0) })];
            scenario.run.events.push(reroute(task, at, ways[way].clone()));
        }
        let outcome = same_frame_by_frame(&scenario);
        let accounted = outcome.forwarded_frames + outcome.dropped_frames + outcome.in_flight_frames;
        prop_assert_eq!(outcome.offered_frames, accounted);
        prop_assert!(outcome.in_flight_frames < 60);
    }
}
