//! Packets per CPU second on the benchmark workloads W1 (also with links behind the cores), W3, W6 and W8:
//! `cargo run --release --example speed -- W1 10000000`, `W1-links`, `NAPI`.
//!
//! W8: seven blocks of a network processor, each with an engine of 8 threads, five phases of work and four memory waits.
//!
//! W6: a frame passes ten threads on the way in and again on the way back, 20 visits, on four cores under Linux.

#[path = "../tests/all/scenarios/mod.rs"]
mod scenarios;

use routecast_sim::scenario::{Activation, Model, Policy, Route, RouteKind, Scenario, Target, Task, Variation};
use scenarios::{US, on, poisson, pool, port, seconds, task, to};

/// CPU time of this thread in seconds: the machine may be busy with other things.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this example needs Linux");
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).expect("nanoseconds come first") * 1e-9
}

fn w6(frames: f64, share: f64) -> Scenario {
    let (visits, threads, work_us, cores) = (20, 10, 0.1, 4);
    let unit = |n: usize| {
        let next = if n + 1 == visits { Target::Port(0) } else { Target::Task(n + 1) };
        let activation = Activation::Thread { budget: 64, cost_ps: US, wakeup: None, exhaustive: false };
        let thread = Some(n.min(visits - 1 - n) % threads);
        let work = task(work_us * US, Variation::Deterministic, 512, to(next));
        on(Task { activation, thread, holds_back: true, ..work }, 0)
    };
    let policy = Policy::Linux { quantum_ps: 3000.0 * US, wakeup_granularity_ps: 1000.0 * US };
    let rate_pps = share * cores as f64 / (visits as f64 * work_us) * 1e6;
    let pools = vec![pool(cores, policy)];
    let mut out = port(Some(0));
    out.tx_ring = 512;
    let model = Model { ports: vec![out], tasks: (0..visits).map(unit).collect(), pools };
    Scenario { model, load: poisson(rate_pps), run: seconds(frames / rate_pps, 5) }
}

fn w8(frames: f64, share: f64) -> Scenario {
    let (blocks, threads, waits, phase_us, access_us, latency_us) = (7, 8, 4, 0.02, 0.005, 0.2);
    let mut tasks = Vec::new();
    // Pool 0 is the memory; each block has its engine and its threads.
    for block in 0..blocks {
        let (engine, first) = (1 + 2 * block, tasks.len());
        let last = first + 1 + 3 * waits;
        let fixed = |us: f64, queue: usize, next: usize| task(us * US, Variation::Deterministic, queue, next_of(next));
        let shared = |us: f64, pool: usize, next: usize| Task { parallel: None, ..on(fixed(us, 512, next), pool) };
        let mut door = Task { parallel: None, ..on(fixed(0.0, 64, first + 1), engine + 1) };
        door.needs[0].until = Some(last);
        tasks.push(door);
        for wait in 0..waits {
            let n = first + 1 + 3 * wait;
            tasks.push(shared(phase_us, engine, n + 1));
            tasks.push(shared(access_us, 0, n + 2));
            tasks.push(Task { parallel: Some(1 << 16), ..fixed(latency_us, 1, n + 3) });
        }
        let out = block + 1 == blocks;
        let next = if out { to(Target::Port(0)) } else { next_of(last + 1) };
        tasks.push(Task { route: next, ..shared(phase_us, engine, 0) });
    }
    let engines = (0..blocks).flat_map(|_| [pool(1, Policy::Fifo), pool(threads, Policy::Fifo)]);
    let pools = std::iter::once(pool(1, Policy::Fifo)).chain(engines).collect();
    // What limits: the accesses to the memory, 28 of a frame.
    let rate_pps = share * 1e6 / (f64::from(28) * access_us);
    Scenario {
        model: Model { ports: vec![port(Some(0))], tasks, pools },
        load: poisson(rate_pps),
        run: seconds(frames / rate_pps, 5),
    }
}

/// W1 with the links behind the cores: flows of one port leave by the other.
fn w1_with_links(frames: f64) -> Scenario {
    let mut scenario = scenarios::w1(frames);
    for core in &mut scenario.model.tasks[1..] {
        core.route =
            Route { kind: RouteKind::Egress, to: vec![Target::Port(0), Target::Port(1)], ..core.route.clone() };
    }
    for (number, flow) in scenario.load.flows.iter_mut().enumerate() {
        flow.egress = usize::from(number < 50);
    }
    scenario
}

/// Four queues with NAPI: polls of 64, an interrupt of 1 us, 0.5 us a frame and 0.3 ns a byte, IMIX, load 0.7.
fn napi(frames: f64) -> Scenario {
    let mut scenario = scenarios::w1(frames);
    for core in &mut scenario.model.tasks[1..] {
        (core.per_frame_ps, core.per_byte_ps, core.batch) = (0.5 * US, 300.0, 64);
        let (cost_ps, moderation_ps, linger_ps) = (US, 0.0, 0.0);
        core.activation =
            Activation::Interrupt { budget: 64, cost_ps, moderation_ps, wakeup: None, exhaustive: false, linger_ps };
    }
    for source in &mut scenario.load.sources {
        (source.process, source.rate_pps) = (routecast_sim::scenario::Process::Poisson, 2.25e6);
    }
    scenario.load.sizes = [vec![64; 7], vec![594; 4], vec![1518]].concat();
    scenario.load.random_sizes = true;
    scenario.run = seconds(frames / 4.5e6, 1);
    scenario
}

fn next_of(task: usize) -> Route {
    to(Target::Task(task))
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let workload = arguments.next().unwrap_or_else(|| "W1".into());
    let frames: f64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1e7);
    let mut scenario = match &workload[..2] {
        "W1" if workload.ends_with("-links") => w1_with_links(frames),
        "W1" => scenarios::w1(frames),
        "NA" => napi(frames),
        "W8" => w8(frames, 0.8),
        "W6" => w6(frames, if workload.ends_with("-overload") { 2.0 } else { 0.5 }),
        _ => scenarios::w3(frames),
    };
    if workload.ends_with("-events") {
        scenario.run.path = routecast_sim::scenario::Path::Events;
    }
    let begin = cpu_s();
    let outcome = routecast_sim::simulate(&scenario, &scenarios::go).expect("the workload is valid");
    let cpu_s = cpu_s() - begin;
    println!(
        "{workload}: {:.2} M packets/s, forwarded {:.4} per us, loss {:.4}, mean latency {:.5} us, p99 {:.4} us",
        outcome.offered_frames as f64 / cpu_s / 1e6,
        outcome.forwarded_pps.value / 1e6,
        outcome.loss_ratio.value,
        outcome.latency.mean_s * 1e6,
        outcome.latency.p99_s * 1e6,
    );
}
