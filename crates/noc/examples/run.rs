//! Runs a scenario from a JSON file and prints its outcome and the flit-hops per second of processor time, for
//! profiling.

use std::ops::ControlFlow;

use routecast_noc::{Scenario, simulate};

/// Processor time of this thread, which other work on the machine does not change.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this example needs Linux");
    text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).expect("nanoseconds come first") * 1e-9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("give the JSON file of a scenario")?;
    let scenario: Scenario = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let begin = cpu_s();
    let outcome = simulate(&scenario, &|_| ControlFlow::Continue(()))?;
    let taken = cpu_s() - begin;
    let (latency, hops) = (outcome.packet_latency.mean, outcome.flit_hops);
    println!("{} cycles, latency {latency:.3}, {hops} flit-hops", outcome.cycles);
    println!("{taken:.3} s, {:.2} million flit-hops/s", hops as f64 / taken / 1e6);
    Ok(())
}
