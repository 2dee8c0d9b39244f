//! Recursion and events are two ways to compute the same thing: they must agree frame by frame.

use crate::scenarios::{US, exit, go, on, pool, port, seconds, task, to, w1, w3};
use proptest::prelude::*;
use routecast_sim::scenario::{
    Activation, Flow, Interruptions, Load, Model, Path, Policy, Process, RandomTime, Route, RouteKind, Scenario,
    Source, Target, Task, Variation,
};
use routecast_sim::{Outcome, simulate};
use std::collections::BTreeMap;

fn fates(scenario: &Scenario, path: Path) -> Outcome {
    let mut scenario = scenario.clone();
    scenario.run.path = path;
    scenario.run.record_frames = true;
    scenario.run.record_from_ps = Some(0);
    simulate(&scenario, &go).expect("the scenario is valid")
}

/// The way of each frame that was forwarded: nodes with arrival and begin of service, one after the other.
fn ways(outcome: &Outcome) -> BTreeMap<u64, Vec<(u64, u64, u32)>> {
    let mut ways: BTreeMap<u64, Vec<(u64, u64, u32)>> =
        outcome.fates.iter().filter(|fate| fate.dropped_at.is_none()).map(|fate| (fate.seq, Vec::new())).collect();
    for hop in &outcome.hops {
        if let Some(way) = ways.get_mut(&hop.seq) {
            way.push((hop.at_ps, hop.start_ps, hop.node));
        }
    }
    for fate in outcome.fates.iter().filter(|fate| fate.dropped_at.is_none()) {
        let way = ways.get_mut(&fate.seq).expect("every frame has a way");
        way.sort_unstable();
        assert_eq!(way[0].0, fate.arrival_ps, "the way begins where the frame comes in");
        assert!(way.iter().all(|&(at, start, _)| at <= start && start <= fate.end_ps));
        assert!(way.windows(2).all(|two| two[0].1 <= two[1].0), "served at one node before the next");
    }
    ways
}

#[test]
fn what_is_kept_begins_at_the_instant_that_is_asked_for() {
    let mut scenario = w1(1_000.0);
    scenario.run.record_frames = true;
    let full = fates(&scenario, Path::Events);
    let from_ps = scenario.run.duration_ps / 2;
    scenario.run.record_from_ps = Some(from_ps);
    (scenario.run.path, scenario.run.message_limit) = (Path::Events, 1_000_000);
    let half = simulate(&scenario, &go).expect("the scenario is valid");
    assert!(!half.hops.is_empty() && half.hops.iter().all(|hop| hop.start_ps >= from_ps));
    assert_eq!(half.hops.len(), full.hops.iter().filter(|hop| hop.start_ps >= from_ps).count());
    assert_eq!(half.fates.len(), full.fates.iter().filter(|fate| fate.end_ps >= from_ps).count());
    assert!(half.messages.iter().all(|message| message.at_s >= from_ps as f64 * 1e-12));
    assert_eq!(half.forwarded_frames, full.forwarded_frames);
}

fn agree(scenario: &Scenario, path: Path) {
    let (outcome, reference) = (fates(scenario, path), fates(scenario, Path::Events));
    assert_eq!(outcome.fates.len(), reference.fates.len());
    for (a, b) in outcome.fates.iter().zip(&reference.fates) {
        assert_eq!((a.seq, a.arrival_ps, a.end_ps, a.dropped_at), (b.seq, b.arrival_ps, b.end_ps, b.dropped_at));
    }
    assert_eq!(ways(&outcome), ways(&reference));
    assert!(reference.nodes.iter().any(|node| node.by_events));
    assert!((outcome.latency.mean_s - reference.latency.mean_s).abs() <= 1e-12 * outcome.latency.mean_s.abs());
    assert!((outcome.waiting.mean_s - reference.waiting.mean_s).abs() <= 1e-12 * outcome.waiting.mean_s.abs());
    for (a, b) in outcome.nodes.iter().zip(&reference.nodes) {
        assert!((a.working_units - b.working_units).abs() < 1e-6, "{} {}", a.working_units, b.working_units);
        assert!((a.dropped_pps - b.dropped_pps).abs() < 1e-3);
        assert_eq!((a.interrupts_per_s, a.spinning_units), (b.interrupts_per_s, b.spinning_units));
    }
}

#[test]
fn the_overloaded_multicore_router_is_the_same_both_ways() {
    agree(&w1(40_000.0), Path::Recursion);
}

#[test]
fn a_bus_that_frames_cross_twice_is_the_same_both_ways() {
    let mut scenario = w3(20_000.0);
    for unit in &mut scenario.model.tasks {
        unit.queue = 2000;
    }
    agree(&scenario, Path::Auto);
}

/// Two ports, a distributor, stations in parallel and in series with ties on purpose, ports out.
fn mesh(sizes: &[u32], works_us: [u32; 4], queue: usize, load: f64, variation: Variation, poisson: bool) -> Scenario {
    let route = |kind, to: Vec<Target>| Route { kind, weights: vec![1.0; to.len()], to, indirection: vec![] };
    let work = |us: u32| f64::from(us) * US;
    let mut tasks: Vec<Task> = vec![
        task(
            0.0,
            Variation::Deterministic,
            8,
            route(RouteKind::Rss, vec![Target::Task(1), Target::Task(2), Target::Task(3)]),
        ),
        on(task(work(works_us[0]), variation, queue, to(Target::Task(4))), 0),
        on(task(work(works_us[1]), variation, queue, to(Target::Task(4))), 0),
        on(
            task(work(works_us[2]), variation, queue, route(RouteKind::Random, vec![Target::Task(4), Target::Port(0)])),
            0,
        ),
        on(
            task(work(works_us[3]), variation, queue, route(RouteKind::Egress, vec![Target::Port(0), Target::Port(1)])),
            1,
        ),
    ];
    for (core, unit) in tasks[1..4].iter_mut().enumerate() {
        unit.pin = vec![core];
        unit.per_byte_ps = 100.0;
    }
    tasks[4].parallel = Some(2);
    let mut ports = vec![port(Some(0)), port(Some(0))];
    for port in &mut ports {
        port.link_bps = 1e9;
        port.tx_ring = 4;
    }
    let source = |p: u32| Source {
        port: p as usize,
        rate_pps: load * 1e6,
        process: if poisson { Process::Poisson } else { Process::Cbr { phase: 0.0 } },
        flows: (5 * p..5 * p + 5).collect(),
        steps: vec![],
    };
    Scenario {
        model: Model { ports, tasks, pools: vec![pool(3, Policy::Fifo), pool(2, Policy::Fifo)] },
        load: Load {
            sources: vec![source(0), source(1)],
            flows: (0..10).map(|i| Flow { hash: 7 * i, egress: (i as usize + 1) % 2, weight: 1.0 }).collect(),
            sizes: sizes.to_vec(),
            random_sizes: false,
        },
        run: seconds(2e-3, 11),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_feed_forward_graph_of_stations_is_the_same_both_ways(
        sizes in prop::collection::vec(prop::sample::select(vec![64_u32, 128, 594, 1518]), 1..5),
        works_us in prop::array::uniform4(0_u32..4),
        queue in 1_usize..20,
        load in 0.05_f64..1.5,
        random in 0_usize..3,
        poisson: bool,
    ) {
        let variation = [Variation::Deterministic, Variation::Exponential, Variation::Gamma { scv: 0.4 }][random];
        agree(&mesh(&sizes, works_us, queue, load, variation, poisson), Path::Recursion);
    }
}

#[test]
fn one_seed_gives_one_trace_and_another_seed_another() {
    let ends = |seed| {
        let mut scenario = w3(5_000.0);
        scenario.run.seed = seed;
        fates(&scenario, Path::Auto).fates.iter().map(|fate| fate.end_ps).collect::<Vec<_>>()
    };
    assert_eq!(ends(3), ends(3));
    assert_ne!(ends(3), ends(4));
}

#[test]
fn a_part_added_elsewhere_leaves_the_arrivals_alone() {
    // S8: named streams. A station behind the router must not disturb what comes in.
    // Those of the first 2,000 frames: of the last ones some are still inside at the end, and how many may differ.
    let arrivals = |scenario: &Scenario| {
        fates(scenario, Path::Auto).fates.iter().take(2000).map(|fate| fate.arrival_ps).collect::<Vec<_>>()
    };
    let plain = w3(3_000.0);
    let mut longer = plain.clone();
    longer.model.tasks[4].route = to(Target::Task(5));
    longer.model.tasks.push(task(0.1 * US, Variation::Exponential, 1000, exit()));
    assert_eq!(arrivals(&plain), arrivals(&longer));
}

#[test]
fn recursion_is_refused_where_units_are_shared() {
    let mut scenario = w3(1_000.0);
    scenario.run.path = Path::Recursion;
    assert!(simulate(&scenario, &go).unwrap_err().to_string().contains("shares a unit"));
}

/// Several ports, and queues by RSS behind which frames leave: what is counted in columns where no frame is kept.
fn rss(
    ports: usize,
    variation: Variation,
    sizes: &[u32],
    queue: usize,
    load: f64,
    frames: f64,
    even: bool,
) -> Scenario {
    let mut scenario = w1(frames);
    let cores: Vec<usize> = (1..5).collect();
    for &core in &cores {
        let unit = &mut scenario.model.tasks[core];
        (unit.variation, unit.queue, unit.per_byte_ps) = (variation, queue, if sizes.len() > 1 { 300.0 } else { 0.0 });
    }
    let rate_pps = load * 4e6 / ports as f64;
    scenario.model.ports = vec![port(Some(0)); ports];
    scenario.load.sources = (0..ports)
        .map(|p| Source {
            port: p,
            rate_pps,
            process: if even { Process::Cbr { phase: p as f64 / 3.0 } } else { Process::Poisson },
            flows: (0..100).filter(|flow| flow % ports as u32 == p as u32).collect(),
            steps: vec![],
        })
        .collect();
    scenario.load.sizes = sizes.to_vec();
    scenario.load.random_sizes = true;
    scenario.run = seconds(frames / (load * 4e6), 3);
    scenario
}

/// Sends what the cores have served on: to links, or to two units and then to links.
fn go_on(scenario: &mut Scenario, queue: usize, middle_us: Option<f64>, variation: Variation) {
    let (ports, cores) = (scenario.model.ports.len(), scenario.model.tasks.len());
    let out = || Route {
        kind: RouteKind::Egress,
        to: (0..ports).map(Target::Port).collect(),
        weights: vec![],
        indirection: vec![],
    };
    for port in &mut scenario.model.ports {
        (port.link_bps, port.tx_ring) = (1e9, queue.max(1));
    }
    for (number, flow) in scenario.load.flows.iter_mut().enumerate() {
        flow.egress = number / 7 % ports;
    }
    let route = match middle_us {
        None => out(),
        Some(us) => {
            for _ in 0..2 {
                scenario.model.tasks.push(Task { queue, ..task(us * US, variation, queue, out()) });
            }
            Route { kind: RouteKind::PerFlow, to: vec![Target::Task(cores), Target::Task(cores + 1)], ..out() }
        }
    };
    for core in &mut scenario.model.tasks[1..cores] {
        core.route = route.clone();
    }
}

fn agrees_with_frames_one_by_one(mut scenario: Scenario) -> Result<(), TestCaseError> {
    scenario.run.path = Path::Recursion;
    let columns = simulate(&scenario, &go).expect("the scenario is valid");
    scenario.run.per_flow = true;
    let mut kept = simulate(&scenario, &go).expect("the scenario is valid");
    prop_assert!(columns.flows.is_empty() && !kept.flows.is_empty());
    kept.flows.clear();
    prop_assert_eq!(format!("{columns:?}"), format!("{kept:?}"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn frames_in_columns_leave_as_those_that_are_kept_one_by_one(
        ports in 1_usize..4,
        variation in prop::sample::select(vec![
            Variation::Deterministic, Variation::Exponential, Variation::Lognormal { scv: 4.0 },
        ]),
        sizes in prop::sample::select(vec![vec![64], vec![64, 594, 1518]]),
        queue in prop::sample::select(vec![0_usize, 1, 7, 512]),
        load in 0.3..1.6,
        frames in prop::sample::select(vec![50.0, 3e3, 1e5]),
        even in any::<bool>(),
    ) {
        agrees_with_frames_one_by_one(rss(ports, variation, &sizes, queue, load, frames, even))?;
    }

    #[test]
    fn frames_go_from_column_to_column_as_one_by_one(
        ports in 1_usize..4,
        variation in prop::sample::select(vec![Variation::Deterministic, Variation::Exponential]),
        sizes in prop::sample::select(vec![vec![64], vec![64, 594, 1518]]),
        queue in prop::sample::select(vec![0_usize, 1, 7, 512]),
        // At these loads many frames come, and are done, at one instant.
        load in prop::sample::select(vec![0.4, 0.5, 0.8, 0.937, 1.0, 1.6]),
        frames in prop::sample::select(vec![50.0, 3e3, 3e4]),
        even in any::<bool>(),
        middle_us in prop::sample::select(vec![None, Some(0.0), Some(0.25), Some(0.5), Some(0.7)]),
        // Of works that differ so widely, one in twenty takes no time at all.
        middle in prop::sample::select(vec![Variation::Deterministic, Variation::Lognormal { scv: 1e6 }]),
    ) {
        let mut scenario = rss(ports, variation, &sizes, queue, load, frames, even);
        for source in &mut scenario.load.sources {
            if let Process::Cbr { phase } = &mut source.process {
                *phase = 0.0;
            }
        }
        go_on(&mut scenario, queue, middle_us, middle);
        agrees_with_frames_one_by_one(scenario)?;
    }
}

/// Ways to take frames in polls.
fn polls() -> impl Strategy<Value = (Activation, usize)> {
    let batches = prop::sample::select(vec![1_usize, 3, 64]);
    let interrupts = (
        prop::sample::select(vec![0.0, 0.3, 1.0]),
        prop::sample::select(vec![0.0, 2.0, 20.0]),
        prop::sample::select(vec![None, Some(0.0), Some(1.5)]),
        any::<bool>(),
        prop::sample::select(vec![0.0, 0.0, 1.0, 5.0]),
    );
    (batches, prop::option::of(interrupts), any::<bool>()).prop_map(|(batch, interrupts, spins)| {
        let Some((cost, moderation, wakeup, exhaustive, linger)) = interrupts else {
            return (if spins { Activation::Polling } else { Activation::Dedicated }, batch.max(2));
        };
        let wakeup = wakeup.map(|us| RandomTime::Mean { mean_ps: us * US, variation: Variation::Exponential });
        let (cost_ps, moderation_ps, linger_ps) = (cost * US, moderation * US, linger * US);
        (Activation::Interrupt { budget: batch, cost_ps, moderation_ps, wakeup, exhaustive, linger_ps }, 1)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_task_unit_that_polls_alone_needs_no_events(
        (activation, batch) in polls(),
        ports in 1_usize..4,
        variation in prop::sample::select(vec![Variation::Deterministic, Variation::Exponential]),
        sizes in prop::sample::select(vec![vec![64], vec![64, 594, 1518]]),
        queue in prop::sample::select(vec![1_usize, 7, 512]),
        // At these loads many frames come, and are done, at one instant.
        load in prop::sample::select(vec![0.1, 0.4, 0.5, 0.8, 1.0, 1.6]),
        frames in prop::sample::select(vec![50.0, 3e3, 1e4]),
        even in any::<bool>(),
        per_batch_us in prop::sample::select(vec![0.0, 0.5]),
        speed in prop::sample::select(vec![1.0, 1.7]),
        interrupted in any::<bool>(),
        middle_us in prop::sample::select(vec![None, Some(None), Some(Some(0.0)), Some(Some(0.25))]),
    ) {
        let mut scenario = rss(ports, variation, &sizes, queue, load, frames, even);
        for core in &mut scenario.model.tasks[1..5] {
            (core.activation, core.batch, core.per_batch_ps) = (activation.clone(), batch, per_batch_us * US);
        }
        let cpu = &mut scenario.model.pools[0];
        cpu.speed = vec![speed; 4];
        let duration = RandomTime::Mean { mean_ps: 3.0 * US, variation: Variation::Exponential };
        cpu.interruptions = interrupted.then_some(Interruptions { rate_hz: 1e4, duration });
        if let Some(middle_us) = middle_us {
            go_on(&mut scenario, queue, middle_us, variation);
        }
        agree(&scenario, Path::Recursion);
        let polls = |path| fates(&scenario, path).nodes[1..5].iter().map(|core| core.polls_per_s).collect::<Vec<_>>();
        prop_assert_eq!(polls(Path::Recursion), polls(Path::Events));
        agrees_with_frames_one_by_one(scenario)?;
    }
}

/// Eighty cores at one link: more than are merged at once.
#[test]
fn a_link_behind_very_many_cores_sends_what_it_sends_frame_by_frame() {
    for cores in [3, 17, 64, 80] {
        let mut scenario = rss(2, Variation::Exponential, &[64], 7, 0.9, 2e4, false);
        scenario.model.tasks.truncate(1);
        scenario.model.tasks[0].route.to = (1..=cores).map(Target::Task).collect();
        scenario.model.pools = vec![pool(cores, Policy::Fifo)];
        for core in 0..cores {
            let mut unit = on(task(US, Variation::Exponential, 7, exit()), 0);
            unit.pin = vec![core];
            scenario.model.tasks.push(unit);
        }
        go_on(&mut scenario, 512, None, Variation::Deterministic);
        agrees_with_frames_one_by_one(scenario).expect("both ways give the same");
    }
}
