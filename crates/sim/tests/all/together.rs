//! Threads, room ahead, softirqs, outages, changes of routes and copies, all in one router: whatever happens, no frame
//! is lost from sight, nobody works more than there are units, and a router that nothing comes to any more runs empty.

use crate::scenarios::{US, exit, go, on, pool, port, seconds, task, to};
use proptest::prelude::*;
use routecast_sim::scenario::{
    Activation, Event, Flow, Load, Model, Path, Policy, Process, Route, Scenario, Source, Target, Task, Variation,
};
use routecast_sim::{Outcome, simulate};

/// Frames come in the first part of a trial only.
const LOADED_US: f64 = 200.0;
const WHOLE_US: f64 = 4000.0;

/// What is drawn for one task unit.
#[derive(Debug, Clone)]
struct Draw {
    kind: usize,
    thread: usize,
    holds_back: bool,
    exhaustive: bool,
    pinned: bool,
    priority: i32,
    queue: usize,
    budget: usize,
    cost_us: f64,
    next: usize,
    copies_to: Option<usize>,
}

fn draw() -> impl Strategy<Value = Draw> {
    let mechanism = (0_usize..4, 0_usize..3, any::<bool>(), any::<bool>(), any::<bool>(), 0_i32..3);
    let size = (1_usize..9, 1_usize..6, prop::sample::select(vec![0.0, 0.1, 0.5, 1.0, 1.7]));
    let way = (0_usize..3, prop::option::weighted(0.2, 0_usize..8));
    (mechanism, size, way).prop_map(
        |((kind, thread, holds_back, exhaustive, pinned, priority), (queue, budget, cost_us), (next, copies_to))| {
            Draw { kind, thread, holds_back, exhaustive, pinned, priority, queue, budget, cost_us, next, copies_to }
        },
    )
}

/// A way on from a task unit: to one of the next two, or out.
fn way(from: usize, tasks: usize, choice: usize) -> Route {
    match from + 1 + choice {
        next if next < tasks => to(Target::Task(next)),
        _ if choice == 2 => exit(),
        _ => to(Target::Port(0)),
    }
}

/// Threads of kinds 0 and 1 share one of two threads or stand alone; 2 is a softirq, 3 a poller of priority 0, which
/// all others may revoke or share with.
fn unit(n: usize, draws: &[Draw], units: usize) -> Task {
    let own = &draws[n];
    // Task units of a thread agree in what the first of them says.
    let is_shared = own.kind < 2 && own.thread < 2;
    let first = draws.iter().find(|other| is_shared && other.kind < 2 && other.thread == own.thread).unwrap_or(own);
    let (budget, cost_ps, exhaustive) = (own.budget, 0.2 * US, own.exhaustive);
    let activation = match own.kind {
        0 | 1 => Activation::Thread { budget, cost_ps, wakeup: None, exhaustive },
        2 => Activation::Interrupt { budget, cost_ps, moderation_ps: 0.0, wakeup: None, exhaustive, linger_ps: 0.0 },
        _ => Activation::Polling,
    };
    let variation = if own.exhaustive { Variation::Deterministic } else { Variation::Exponential };
    Task {
        activation,
        batch: own.budget,
        priority: match own.kind {
            2 => 9,
            3 => 0,
            _ => first.priority,
        },
        pin: if first.pinned { vec![first.queue % units] } else { vec![] },
        thread: is_shared.then_some(own.thread),
        holds_back: own.holds_back && own.kind != 2,
        copies: own.copies_to.map(|copy| copy % draws.len()).into_iter().collect(),
        ..on(task(own.cost_us * US, variation, own.queue, way(n, draws.len(), own.next)), 0)
    }
}

fn scenario(draws: &[Draw], units: usize, frames: usize, switch_us: f64) -> Scenario {
    let mut out = port(Some(0));
    (out.tx_ring, out.link_bps) = (3, 1e9);
    let linux = Policy::Linux { quantum_ps: 10.0 * US, wakeup_granularity_ps: 2.0 * US };
    let mut shared = pool(units, linux);
    (shared.switch_ps, shared.migration_ps) = (switch_us * US, 0.5 * switch_us * US);
    let gap_ps = LOADED_US * US / frames as f64;
    // One alone, then three at one instant, so that much happens at once.
    let at = |n: usize| (n - (n % 4).saturating_sub(1)) as f64 * gap_ps;
    let process = Process::Trace {
        time_ps: (0..frames).map(|n| at(n) as u64).collect(),
        bytes: (0..frames).map(|n| [64, 1518, 594][n % 3]).collect(),
        flow: (0..frames).map(|n| n as u32 % 3).collect(),
    };
    let source = Source { port: 0, rate_pps: 1e12 / gap_ps, process, flows: vec![0, 1, 2], steps: vec![] };
    let flow = |hash| Flow { hash, egress: 0, weight: 1.0 };
    Scenario {
        model: Model {
            ports: vec![out],
            tasks: (0..draws.len()).map(|n| unit(n, draws, units)).collect(),
            pools: vec![shared],
        },
        load: Load { sources: vec![source], flows: (0..3).map(flow).collect(), sizes: vec![64], random_sizes: false },
        run: seconds(WHOLE_US * 1e-6, 3),
    }
}

fn run(scenario: &Scenario, path: Path) -> Outcome {
    let mut scenario = scenario.clone();
    (scenario.run.path, scenario.run.record_frames, scenario.run.per_flow) = (path, true, true);
    simulate(&scenario, &go).expect("the scenario is valid")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn whatever_happens_all_at_once_frames_are_conserved_units_suffice_and_the_router_runs_empty(
        draws in prop::collection::vec(draw(), 2..8),
        units in 1_usize..5,
        frames in 1_usize..400,
        switch_us in prop::sample::select(vec![0.0, 0.3]),
        outages in prop::collection::vec((0_usize..8, 0.0_f64..LOADED_US, 0.5_f64..100.0), 0..4),
        reroutes in prop::collection::vec((0_usize..8, 0.0_f64..LOADED_US, 0_usize..3, 0_usize..8), 0..3),
    ) {
        let mut scenario = scenario(&draws, units, frames, switch_us);
        let tasks = draws.len();
        for (task, from_us, lasts_us) in outages {
            let until_ps = Some((from_us + lasts_us) * US);
            scenario.run.events.push(Event::Outage { task: task % tasks, from_ps: from_us * US, until_ps });
        }
        for (task, at_us, choice, copy) in reroutes {
            let (task, copies) = (task % tasks, if copy < tasks { vec![copy] } else { vec![] });
            scenario.run.events.push(Event::Reroute { task, at_ps: at_us * US, route: way(task, tasks, choice), copies });
        }
        let outcome = run(&scenario, Path::Auto);
        // S12, frame by frame: each has one fate.
        prop_assert_eq!(outcome.in_flight_frames, 0);
        prop_assert_eq!(outcome.offered_frames, frames as u64);
        prop_assert_eq!(outcome.forwarded_frames + outcome.dropped_frames, frames as u64);
        let mut numbers: Vec<u64> = outcome.fates.iter().map(|fate| fate.seq).collect();
        numbers.sort_unstable();
        prop_assert!(numbers.iter().copied().eq(0..frames as u64));
        for fate in &outcome.fates {
            prop_assert!(fate.end_ps >= fate.arrival_ps);
        }
        // Nobody works with more units than there are.
        let held: f64 = outcome.nodes[..tasks].iter().map(|node| node.working_units + node.spinning_units).sum();
        prop_assert!(held <= units as f64 * (1.0 + 1e-9), "{held} of {units}");
        prop_assert!(outcome.nodes[tasks].working_units <= 1.0 + 1e-9);
        // And by events for every node it is the same.
        let events = run(&scenario, Path::Events);
        let ends = |outcome: &Outcome| {
            let mut ends: Vec<_> = outcome.fates.iter().map(|f| (f.seq, f.end_ps, f.dropped_at)).collect();
            ends.sort_unstable();
            ends
        };
        prop_assert_eq!(ends(&outcome), ends(&events));
    }
}
