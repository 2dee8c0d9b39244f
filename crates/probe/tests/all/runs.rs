//! Runs as a whole: conservation, seeds, paces, loops by hand, interruptions.

use crate::bench::{frame_of, small};
use routecast_probe::batch::{Buffer, Fault};
use routecast_probe::operation::Descriptor;
use routecast_probe::run::{RunOutcome, RunRequest, Tally, pass, run};
use serde_json::json;

fn outcome(request: serde_json::Value) -> RunOutcome {
    let request: RunRequest = serde_json::from_value(request).unwrap();
    run(&request, &mut |_| true).unwrap()
}

/// The first processor that the tests may run on.
fn core() -> usize {
    routecast_probe::host::cpu::allowed().unwrap()[0]
}

const FUNCTIONS: [(&str, &str, &str); 9] = [
    ("l2_switch", "forward", "mac"),
    ("learning_switch", "forward", "mac"),
    ("mpls_switch", "forward", "label"),
    ("bng", "access", "qinq"),
    ("bng", "core", "cpe"),
    ("ipv4_router", "forward", "fib"),
    ("nat44", "forward", "sessions"),
    ("acl_firewall", "forward", "rules"),
    ("l4_balancer", "forward", "backends"),
];

#[test]
fn a_count_of_packets_is_kept_and_one_seed_gives_the_same_counts_twice() {
    for (function, direction, table) in FUNCTIONS {
        let request = json!({
            "function": function, "direction": direction, "tables": {table: 1000}, "packets": 9001, "seed": 7,
            "mix": [[96, 7], [570, 4], [1518, 1]], "popularity": "zipf", "exponent": 1.1, "cores": [core()],
            "pages": "normal"
        });
        let (first, second) = (outcome(request.clone()), outcome(request));
        assert_eq!(first.offered, 9001, "{function}");
        assert_eq!(first.offered, first.forwarded + first.dropped.values().sum::<u64>());
        assert_eq!((first.forwarded, &first.dropped), (second.forwarded, &second.dropped));
        assert_eq!(first.collision_ratio, second.collision_ratio);
        assert!(first.table_bytes.values().all(|&bytes| bytes > 0));
    }
}

#[test]
fn flat_out_and_paced_runs_conserve_frames() {
    let flat = json!({"function": "l2_switch", "tables": {"mac": 100}, "duration_s": 0.02, "cores": [core()]});
    let flat = outcome(flat);
    assert_eq!(flat.offered, flat.forwarded);
    assert!(flat.passes >= 5 && flat.pps > 0.0 && flat.cycles_per_packet > 0.0 && flat.latency.is_none());
    assert!(flat.pass_s.min <= flat.pass_s.p25 && flat.pass_s.p25 <= flat.pass_s.median);

    // 20 ms at 1 Mpps are 20 000 frames, to the frame.
    let paced = json!({"function": "l2_switch", "tables": {"mac": 100}, "duration_s": 0.02, "offered_pps": 1e6,
                       "cores": [core()]});
    let paced = outcome(paced);
    assert_eq!(paced.offered, 20_000);
    assert_eq!(paced.offered, paced.forwarded + paced.dropped.values().sum::<u64>());
    let latency = paced.latency.unwrap();
    assert_eq!(latency.count, paced.forwarded);
    assert!(latency.min_s <= latency.p50_s && latency.p50_s <= latency.p99_s && !latency.hdr_base64.is_empty());

    // 10 Tpps is more than any core can do: the queue overflows.
    let flood = json!({"function": "l2_switch", "tables": {"mac": 100}, "duration_s": 1e-6, "offered_pps": 1e12,
                       "cores": [core()], "queue_frames": 64});
    let flood = outcome(flood);
    assert_eq!(flood.offered, 1_000_000);
    assert_eq!(flood.offered, flood.forwarded + flood.dropped["queue"]);
    assert!(flood.dropped["queue"] > 900_000);
}

#[test]
fn who_asks_to_stop_stops_the_run() {
    let request = json!({"function": "l2_switch", "tables": {"mac": 100}, "duration_s": 3600, "cores": [core()]});
    let request: RunRequest = serde_json::from_value(request).unwrap();
    let mut reports = 0;
    let error = run(&request, &mut |share| {
        reports += 1;
        assert!((0.0..=1.0).contains(&share));
        reports < 3
    });
    assert_eq!(error.unwrap_err().kind(), "interrupted");
}

#[test]
fn loops_by_hand_do_the_same_to_every_byte() {
    for name in ["l2_switch", "mpls_switch", "ipv4_router", "nat44"] {
        let mut function = small(name, None, 300);
        let mut buffers = vec![Buffer::default(); 1000];
        let mut incoming = Vec::new();
        for (number, buffer) in buffers.iter_mut().enumerate() {
            let bytes = 64 + number % 1000;
            let (mut frame, port) = frame_of(function.as_ref(), number as u64, bytes);
            // Some are wrong: key, hop or checksum, type.
            match number % 10 {
                3 => frame[30] ^= 0x55,
                5 => frame[12] ^= 1,
                7 => frame[if name == "mpls_switch" { 17 } else { 22 }] = 1,
                _ => {}
            }
            buffer.bytes[128..128 + frame.len()].copy_from_slice(&frame);
            incoming.push(Descriptor { buffer: number as u16, start: 128, length: bytes as u16, port });
        }
        let mut by_hand = buffers.clone();
        let mut outgoing = vec![Descriptor::default(); 1001];
        let hand = function.by_hand().unwrap();
        let keys: Vec<_> = (0..300).map(|flow| hand.key(flow)).collect();
        assert_eq!(hand.lookups(&keys), 300, "{name}");
        let sent = hand.pass(&mut by_hand, &incoming, &mut outgoing);

        let mut staged = vec![[Descriptor::default(); 32]; 32];
        let mut tally = Tally::default();
        pass(function.as_mut(), &mut buffers, &incoming, 0, &mut staged, &mut tally);
        assert_eq!(tally.forwarded, sent as u64, "{name} {:?}", tally.drops);
        for descriptor in &outgoing[..sent] {
            let number = usize::from(descriptor.buffer);
            assert_eq!(buffers[number].bytes, by_hand[number].bytes, "{name}, frame {number}");
        }
        assert!(name == "l2_switch" || tally.drops[Fault::WrongProtocol as usize] == 100);
    }
}
