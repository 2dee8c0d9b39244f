//! What becomes of each flow, and routes that ask where a flow leaves by.

use crate::scenarios::{US, exit, go, on, pool, port, seconds, task, to, w1};
use proptest::prelude::*;
use routecast_sim::scenario::{
    Flow, Load, Model, Path, Policy, Process, Route, RouteKind, Scenario, Source, Target, Task, Variation,
};
use routecast_sim::simulate;

/// Two task units of 1 us in front of two ports, behind a distributor; flows of the given way out, on one source.
fn fork(kind: RouteKind, egress: &[usize], rate_pps: f64, queue: usize) -> Scenario {
    let branches = vec![Target::Task(1), Target::Task(2)];
    let distribute = Route { kind, to: branches, weights: vec![], indirection: vec![] };
    let core = |next| on(task(US, Variation::Deterministic, queue, to(Target::Port(next))), next);
    let tasks: Vec<Task> = vec![task(0.0, Variation::Deterministic, 8, distribute), core(0), core(1)];
    let fifo = pool(1, Policy::Fifo);
    Scenario {
        model: Model { ports: vec![port(Some(0)), port(None)], tasks, pools: vec![fifo.clone(), fifo] },
        load: Load {
            sources: vec![Source {
                port: 0,
                rate_pps,
                process: Process::Cbr { phase: 0.0 },
                flows: (0..egress.len() as u32).collect(),
                steps: vec![],
            }],
            flows: egress.iter().map(|&egress| Flow { hash: 0, egress, weight: 1.0 }).collect(),
            sizes: vec![64],
            random_sizes: false,
        },
        run: {
            let mut run = seconds(0.01, 1);
            run.per_flow = true;
            run
        },
    }
}

#[test]
fn a_flow_is_served_by_the_task_unit_of_the_port_that_it_leaves_by() {
    // Three of four frames leave by port 1: 0.3 and 0.1 Mpps of 1 us.
    for path in [Path::Auto, Path::Recursion, Path::Events] {
        let mut scenario = fork(RouteKind::ByEgress, &[1, 0, 1, 1], 0.4e6, 64);
        scenario.run.path = path;
        let outcome = simulate(&scenario, &go).unwrap();
        assert!((outcome.nodes[1].working_units - 0.1).abs() < 1e-3);
        assert!((outcome.nodes[2].working_units - 0.3).abs() < 1e-3);
        assert_eq!(outcome.dropped_frames, 0);
    }
}

#[test]
fn a_route_by_egress_wants_a_target_for_each_port() {
    let mut scenario = fork(RouteKind::ByEgress, &[0], 1e5, 64);
    scenario.model.tasks[0].route.to.pop();
    assert!(simulate(&scenario, &go).unwrap_err().to_string().contains("one target per port"));
}

#[test]
fn only_the_flows_of_the_full_task_unit_lose_frames() {
    // 1.8 Mpps of six flows in turn: five for the second task unit, which can do 1 Mpps of its 1.5.
    let outcome = simulate(&fork(RouteKind::ByEgress, &[1, 1, 0, 1, 1, 1], 1.8e6, 64), &go).unwrap();
    for (flow, counts) in outcome.flows.iter().enumerate() {
        assert!((counts.offered_pps / 0.3e6 - 1.0).abs() < 1e-3, "flow {flow}: {counts:?}");
    }
    assert_eq!(outcome.flows[2].dropped_pps, 0.0);
    let busy: f64 = [0, 1, 3, 4, 5].map(|flow| outcome.flows[flow].forwarded_pps).iter().sum();
    assert!((busy / 1e6 - 1.0).abs() < 1e-3, "{busy}");
}

#[test]
fn both_ways_to_compute_count_the_same_frames_of_each_flow_and_flows_add_up_to_all() {
    let flows = |path| {
        let mut scenario = w1(40_000.0);
        (scenario.run.path, scenario.run.per_flow) = (path, true);
        let outcome = simulate(&scenario, &go).unwrap();
        let sum = |pick: fn(&routecast_sim::outcome::FlowOutcome) -> f64| outcome.flows.iter().map(pick).sum::<f64>();
        assert!((sum(|flow| flow.forwarded_pps) / outcome.forwarded_pps.value - 1.0).abs() < 1e-12);
        assert!((sum(|flow| flow.offered_pps) / outcome.offered_pps - 1.0).abs() < 1e-12);
        let dropped: f64 = outcome.nodes.iter().map(|node| node.dropped_pps).sum();
        assert!((sum(|flow| flow.dropped_pps) / dropped - 1.0).abs() < 1e-12);
        outcome.flows.iter().map(|flow| (flow.offered_pps, flow.forwarded_pps, flow.dropped_pps)).collect::<Vec<_>>()
    };
    assert_eq!(flows(Path::Recursion), flows(Path::Events));
    assert_eq!(flows(Path::Auto).len(), 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    // The simulator itself insists on S12 for each flow (it panics); the cases lead it to odd corners.
    #[test]
    fn no_frame_of_any_flow_is_lost_from_sight(
        egress in prop::collection::vec(0_usize..2, 1..6),
        rate_pps in 1e5_f64..3e6,
        queue in 1_usize..6,
        duration_us in 3.0_f64..60.0,
        kind in prop::sample::select(vec![RouteKind::ByEgress, RouteKind::PerFlow, RouteKind::RoundRobin]),
        events: bool,
    ) {
        let mut scenario = fork(kind, &egress, rate_pps, queue);
        scenario.run.duration_ps = (duration_us * US) as u64;
        scenario.model.tasks[2].route = exit();
        scenario.model.ports[0].link_bps = 1e9;
        if events {
            scenario.run.path = Path::Events;
        }
        let outcome = simulate(&scenario, &go).unwrap();
        let seconds = outcome.measured_s;
        let offered: f64 = outcome.flows.iter().map(|flow| flow.offered_pps * seconds).sum();
        prop_assert!((offered - outcome.offered_frames as f64).abs() < 1e-6 * offered.max(1.0));
    }
}
