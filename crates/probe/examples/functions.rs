//! Frames per second of a function by the size of its table: in the second-level cache, the third, and memory.
//!
//! ```text
//! cargo run --release -p routecast-probe --example functions -- l2_switch [direction [seconds]]
//! ```

use routecast_probe::error::Result;
use routecast_probe::function::twin;
use routecast_probe::run::{RunRequest, run};

/// Entries of the main table.
const SIZES: [(&str, u64); 5] = [("tiny", 64), ("L1", 512), ("L2", 16_384), ("L3", 524_288), ("DRAM", 8_388_608)];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let function = arguments.next().unwrap_or_else(|| "l2_switch".to_owned());
    let direction = arguments.next().filter(|direction| direction != "-");
    let duration_s = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0.5);
    let twin = twin(&function, direction.as_deref())?;
    let table = twin.tables.iter().find(|table| table.name == twin.flows_of).map_or(1, |table| table.most);
    println!(
        "{function} {}: table {}\n{:>6} {:>9} {:>7} {:>9} {:>9} {:>9} {:>8} {:>7} {:>9}",
        twin.direction,
        twin.flows_of,
        "size",
        "entries",
        "Mpps",
        "ns/packet",
        "p25",
        "cycles",
        "hand ns",
        "ratio",
        "lookup ns"
    );
    for (size, entries) in SIZES.into_iter().filter(|&(_, entries)| entries <= table) {
        let mut request = RunRequest::new(&function);
        request.direction.clone_from(&direction);
        request.duration_s = duration_s;
        request.frame_bytes = request.frame_bytes.max(twin.smallest_frame_bytes);
        request.hand_loop = true;
        request.tables.insert(twin.flows_of.to_owned(), entries);
        if function == "nat44" {
            request.tables.insert("counters".to_owned(), entries);
        } else if function == "l4_balancer" {
            request.tables.insert("maglev".to_owned(), 65_537);
        } else if function == "bng" {
            request.tables.insert("qinq".to_owned(), entries);
        }
        let outcome = run(&request, &mut |_| true)?;
        let frames = request.frames_in_flight as f64;
        let hand = outcome.hand_loop.unwrap_or_default();
        println!(
            "{size:>6} {entries:>9} {:>7.2} {:>9.2} {:>9.2} {:>9.1} {:>8.2} {:>7.2} {:>9.2}  {:?} {:?} {}",
            outcome.pps / 1e6,
            outcome.pass_s.median * 1e9 / frames,
            outcome.pass_s.p25 * 1e9 / frames,
            outcome.cycles_per_packet,
            hand.ns_per_packet,
            hand.ratio,
            hand.lookup_ns,
            outcome.dropped,
            outcome.collision_ratio,
            outcome.pages
        );
    }
    Ok(())
}
