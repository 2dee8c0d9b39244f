//! Packets per CPU second on the benchmark workloads W1, W3 and W6: `cargo run --release --example speed -- W1 10000000`.
//!
//! W6: a frame passes ten threads on the way in and again on the way back, 20 visits, on four cores under Linux.

#[path = "../tests/scenarios/mod.rs"]
mod scenarios;

use routecast_sim::scenario::{Activation, Model, Policy, Scenario, Target, Task, Variation};
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

fn main() {
    let mut arguments = std::env::args().skip(1);
    let workload = arguments.next().unwrap_or_else(|| "W1".into());
    let frames: f64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1e7);
    let mut scenario = match &workload[..2] {
        "W1" => scenarios::w1(frames),
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
        "{workload}: {:.1} M packets/s, forwarded {:.4} per us, loss {:.4}, mean latency {:.5} us, p99 {:.4} us",
        outcome.offered_frames as f64 / cpu_s / 1e6,
        outcome.forwarded_pps.value / 1e6,
        outcome.loss_ratio.value,
        outcome.latency.mean_s * 1e6,
        outcome.latency.p99_s * 1e6,
    );
}
