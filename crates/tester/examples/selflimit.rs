//! What the tester itself can do on a veth pair: frames of 64 B with time stamps, sent as fast as possible.
//!
//! `cargo run --release --example selflimit` (as root) makes two namespaces, measures and removes them.

#[path = "../tests/all/bed/mod.rs"]
mod bed;

use bed::{Bed, flow, one_trial, request};

fn measure(bed: &Bed, what: &str, bytes: u32) {
    let mut tester = bed.tester();
    if what == "other core" {
        bed.own_core(1, "s0", 1);
    }
    let mut best = (0.0_f64, 0.0_f64, serde_json::Value::Null);
    for _ in 0..5 {
        let mut trial_request = request(&flow(false, 0), 20e6, 0.4);
        trial_request["streams"][0]["sizes"][0]["bytes"] = bytes.into();
        let outcome = one_trial(&mut tester, &trial_request);
        let stream = &outcome["streams"][0];
        let span_s = stream["last_sent_s"].as_f64().unwrap() - stream["first_sent_s"].as_f64().unwrap();
        let received_pps = stream["received_frames"].as_f64().unwrap() / span_s;
        if received_pps > best.0 {
            best = (received_pps, stream["sent_frames"].as_f64().unwrap() / span_s, stream["latency"].clone());
        }
    }
    println!(
        "{bytes:5} B, receiver on the {what}: sent {:.2} Mpps, received {:.2} Mpps; latency min {:.2} p50 {:.2} us",
        best.1 / 1e6,
        best.0 / 1e6,
        best.2["min_s"].as_f64().unwrap() * 1e6,
        best.2["p50_s"].as_f64().unwrap() * 1e6,
    );
}

fn main() {
    if let Some(why) = bed::obstacle() {
        eprintln!("cannot measure: {why}");
        std::process::exit(3);
    }
    let bed = Bed::pair("limit");
    for bytes in [64, 512, 1518] {
        measure(&bed, "same core", bytes);
    }
    for bytes in [64, 512, 1518] {
        measure(&bed, "other core", bytes);
    }
}
