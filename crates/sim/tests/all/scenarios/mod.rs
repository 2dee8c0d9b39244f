//! Scenarios that several tests use.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::ops::ControlFlow;

use routecast_sim::scenario::{
    Activation, Flow, Load, Model, Need, Path, Policy, Pool, Port, Process, Route, RouteKind, Run, Scenario, Source,
    Target, Task, Variation,
};
use routecast_sim::{Outcome, simulate};

/// One microsecond in picoseconds.
pub const US: f64 = 1e6;

pub fn go(_: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub fn exit() -> Route {
    Route { kind: RouteKind::Single, to: vec![], weights: vec![], indirection: vec![] }
}

pub fn to(target: Target) -> Route {
    Route { kind: RouteKind::Single, to: vec![target], weights: vec![], indirection: vec![] }
}

pub fn task(per_frame_ps: f64, variation: Variation, queue: usize, route: Route) -> Task {
    Task {
        needs: vec![],
        per_frame_ps,
        per_byte_ps: 0.0,
        per_batch_ps: 0.0,
        variation,
        queue,
        activation: Activation::Dedicated,
        batch: 1,
        parallel: Some(1),
        priority: 0,
        weight: 1.0,
        pin: vec![],
        thread: None,
        holds_back: false,
        copies: vec![],
        route,
    }
}

pub fn pool(units: usize, policy: Policy) -> Pool {
    Pool {
        speed: vec![1.0; units],
        policy,
        switch_ps: 0.0,
        migration_ps: 0.0,
        contention: vec![],
        interruptions: None,
        sleep: vec![],
    }
}

pub fn on(mut task: Task, pool: usize) -> Task {
    task.needs.push(Need { pool, units: 1, until: None });
    task
}

pub fn port(entry: Option<usize>) -> Port {
    Port { link_bps: 1e15, tx_ring: 1 << 20, entry }
}

pub fn poisson(rate_pps: f64) -> Load {
    Load {
        sources: vec![Source { port: 0, rate_pps, process: Process::Poisson, flows: vec![0], steps: vec![] }],
        flows: vec![Flow { hash: 0, egress: 0, weight: 1.0 }],
        sizes: vec![64],
        random_sizes: false,
    }
}

pub fn seconds(duration_s: f64, seed: u64) -> Run {
    Run {
        duration_ps: (duration_s * 1e12) as u64,
        seed,
        replication: 0,
        path: Path::Auto,
        record_frames: false,
        record_from_ps: None,
        per_flow: false,
        over_time: false,
        whole: false,
        begin: None,
        keep_end: false,
        events: vec![],
        message_limit: 0,
        need_steady_state: false,
    }
}

/// One task unit in front of everything, fed by one port.
pub fn station(task: Task, load: Load, run: Run) -> Scenario {
    Scenario { model: Model { ports: vec![port(Some(0))], tasks: vec![task], pools: vec![] }, load, run }
}

/// W1: 4 cores of 1 us, 100 CBR flows over 4 queues of 512 frames, load 1.2; two ports, staggered.
pub fn w1(frames: f64) -> Scenario {
    let mut tasks = vec![task(
        0.0,
        Variation::Deterministic,
        512,
        Route { kind: RouteKind::Rss, to: (1..5).map(Target::Task).collect(), weights: vec![], indirection: vec![] },
    )];
    for core in 0..4 {
        let mut unit = on(task(US, Variation::Deterministic, 512, exit()), 0);
        unit.pin = vec![core];
        tasks.push(unit);
    }
    let source = |p: u32| Source {
        port: p as usize,
        rate_pps: 2.4e6,
        process: Process::Cbr { phase: f64::from(p) / 2.0 },
        flows: (50 * p..50 * p + 50).collect(),
        steps: vec![],
    };
    Scenario {
        model: Model { ports: vec![port(Some(0)), port(Some(0))], tasks, pools: vec![pool(4, Policy::Fifo)] },
        load: Load {
            sources: vec![source(0), source(1)],
            flows: (0..100).map(|hash| Flow { hash, egress: 0, weight: 1.0 }).collect(),
            sizes: vec![64],
            random_sizes: false,
        },
        run: seconds(frames / 4.8e6, 1),
    }
}

/// W3: NIC, bus, 4 cores with a common queue, the same bus, NIC; Poisson, bottleneck at 0.8; all exponential.
pub fn w3(frames: f64) -> Scenario {
    let huge = 1 << 24;
    let exp = Variation::Exponential;
    let mut cpu = on(task(1.0 * US, exp, huge, to(Target::Task(3))), 1);
    cpu.parallel = Some(4);
    // Every frame asks for the bus by itself: one FIFO queue for both crossings.
    let bus = |next| Task { parallel: None, ..on(task(0.1 * US, exp, huge, to(Target::Task(next))), 0) };
    let tasks =
        vec![task(0.15 * US, exp, huge, to(Target::Task(1))), bus(2), cpu, bus(4), task(0.15 * US, exp, huge, exit())];
    Scenario {
        model: Model { ports: vec![port(Some(0))], tasks, pools: vec![pool(1, Policy::Fifo), pool(4, Policy::Fifo)] },
        load: poisson(3.2e6),
        run: seconds(frames / 3.2e6, 42),
    }
}

/// Frames take units of a pool along here, up to the task unit `until`.
pub fn door(pool: usize, units: usize, until: usize, queue: usize, next: Route) -> Task {
    let mut door = Task { parallel: None, ..task(0.0, Variation::Deterministic, queue, next) };
    door.needs = vec![Need { pool, units, until: Some(until) }];
    door
}

/// The outcome with the fate of every frame, by one of the two parts of the engine.
pub fn traced(scenario: &Scenario, path: Path) -> Outcome {
    let mut scenario = scenario.clone();
    (scenario.run.path, scenario.run.record_frames, scenario.run.per_flow) = (path, true, true);
    simulate(&scenario, &go).expect("the scenario is valid")
}

/// Number of a frame, when it left or was dropped, and where it was dropped.
pub type End = (u64, u64, Option<u32>);

/// How every frame ended, by its number.
pub fn ends(outcome: &Outcome) -> Vec<End> {
    let mut ends: Vec<End> = outcome.fates.iter().map(|fate| (fate.seq, fate.end_ps, fate.dropped_at)).collect();
    ends.sort_unstable();
    ends
}
