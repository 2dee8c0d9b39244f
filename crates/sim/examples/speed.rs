//! Packets per CPU second on the benchmark workloads W1 and W3: `cargo run --release --example speed -- W1 10000000`.

#[path = "../tests/scenarios/mod.rs"]
mod scenarios;

/// CPU time of this thread in seconds: the machine may be busy with other things.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this example needs Linux");
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).expect("nanoseconds come first") * 1e-9
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let workload = arguments.next().unwrap_or_else(|| "W1".into());
    let frames: f64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1e7);
    let mut scenario = if workload.starts_with("W1") { scenarios::w1(frames) } else { scenarios::w3(frames) };
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
