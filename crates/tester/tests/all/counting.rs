//! Every frame is accounted for, on a wire and behind a device that injects faults.

use crate::bed::{Bed, MACS, all_sent, flow, flow_ipv6, one_trial, request, trial};
use routecast_tester::Device;
use serde_json::{Value, json};

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Sent and received, with nothing lost, twice, damaged or out of order.
#[track_caller]
fn assert_clean(stream: &Value, frames: u64) {
    let counts = ["intended_frames", "sent_frames", "received_frames"].map(|name| number(&stream[name]));
    assert_eq!(counts, [frames; 3], "{stream}");
    for name in ["unsent_frames", "lost_frames", "duplicated_frames", "corrupted_frames", "reordered_frames"] {
        assert_eq!(number(&stream[name]), 0, "{name}: {stream}");
    }
    assert_eq!(number(&stream["latency"]["count"]), frames);
}

/// Conservation: every sent frame is received or lost.
#[track_caller]
fn assert_conserved(stream: &Value) {
    let [sent, received, lost] = ["sent_frames", "received_frames", "lost_frames"].map(|name| number(&stream[name]));
    assert_eq!(sent, received + lost, "{stream}");
    let runs: u64 = stream["lost_runs"].as_array().unwrap().iter().map(|run| number(&run[1])).sum();
    assert!(runs == lost || stream["lost_runs_truncated"] == true, "{stream}");
}

#[test]
fn what_is_sent_over_a_plain_wire_is_received_and_the_kernel_agrees() {
    let bed = bed!(Bed::pair("plain"));
    let mut tester = bed.tester();
    for rate_pps in [500.0, 20_000.0, 400_000.0] {
        let before = bed.counter(1, "s0", "rx_packets");
        let outcome = trial(&mut tester, &request(&flow(false, 0), rate_pps, 0.2));
        assert_clean(&outcome["streams"][0], (rate_pps * 0.2) as u64);
        // Neighbour discovery of the kernel uses the same link.
        let ours = number(&outcome["streams"][0]["received_frames"]);
        let kernel_frames = &outcome["back_end"]["kernel_frames"];
        let kernel = bed.counter(1, "s0", "rx_packets") - before;
        for counted in [kernel, number(&kernel_frames[1]["received"]), number(&kernel_frames[0]["transmitted"])] {
            assert!((ours..=ours + 8).contains(&counted), "the kernel counted {counted}, the tester {ours}");
        }
        let achieved_pps = outcome["streams"][0]["achieved_pps"].as_f64().unwrap();
        // Other work on the machine may delay the first frames, by no more than the reported lateness.
        let late_s = outcome["streams"][0]["latest_s"].as_f64().unwrap();
        assert!((achieved_pps / rate_pps - 1.0).abs() < 1e-3 + late_s / 0.2, "{achieved_pps}, {late_s}");
    }
}

#[test]
fn frames_of_every_size_and_both_ip_versions_arrive_as_they_left() {
    let bed = bed!(Bed::chain("sizes"));
    let mut tester = bed.tester();
    for bytes in [64, 65, 128, 511, 1024, 1280, 1518] {
        for flow in [flow(true, 0), flow_ipv6(true, 0)] {
            if bytes < 84 && flow["source_address"].as_str().unwrap().contains(':') {
                continue;
            }
            let mut trial_request = request(&flow, 50_000.0, 0.04);
            trial_request["streams"][0]["sizes"][0]["bytes"] = json!(bytes);
            let stream = trial(&mut tester, &trial_request)["streams"][0].clone();
            assert_clean(&stream, 2_000);
            assert_eq!(number(&stream["received_bytes"]), 2_000 * bytes);
        }
    }
}

#[test]
fn frames_longer_than_a_page_go_through_a_socket_and_are_received_outside_the_driver() {
    let bed = bed!(Bed::pair("jumbo"));
    bed.exec(0, "ip link set g0 mtu 9000");
    bed.exec(1, "ip link set s0 mtu 9000");
    let mut tester = bed.tester();
    // veth runs XDP in the driver only for frames that fit a page.
    assert_eq!(tester.facts()["ports"][1]["receive"]["mode"], "generic");
    let mut trial_request = request(&flow(false, 0), 5_000.0, 0.1);
    trial_request["streams"][0]["sizes"][0]["bytes"] = json!(9_018);
    let outcome = trial(&mut tester, &trial_request);
    assert_clean(&outcome["streams"][0], 500);
    assert_eq!(number(&outcome["streams"][0]["received_bytes"]), 500 * 9_018);
    assert_eq!(outcome["back_end"]["senders"][0]["back_end"], "af_packet");
}

#[test]
fn a_mix_keeps_its_shares_and_flows_their_turns() {
    let bed = bed!(Bed::chain("mix"));
    let mut tester = bed.tester();
    // The simple IMIX: 7:4:1.
    let sizes = json!([{"bytes": 64, "weight": 7}, {"bytes": 594, "weight": 4}, {"bytes": 1518, "weight": 1}]);
    let flows: Vec<_> = (0..10).map(|nth| flow(true, nth)).collect();
    let mut trial_request = request(&flows[0], 60_000.0, 0.1);
    trial_request["streams"][0]["sizes"] = sizes;
    trial_request["streams"][0]["flows"] = json!(flows);
    let stream = trial(&mut tester, &trial_request)["streams"][0].clone();
    assert_clean(&stream, 6_000);
    assert_eq!(number(&stream["received_bytes"]), 500 * (7 * 64 + 4 * 594 + 1518));
    for flow in stream["flows"].as_array().unwrap() {
        assert_eq!((number(&flow["sent"]), number(&flow["received"])), (600, 600));
    }
}

#[test]
fn a_device_that_drops_every_1000th_frame_is_caught_at_exactly_these() {
    let bed = bed!(Bed::chain("drop"));
    let mut tester = bed.tester();
    let device = json!({"program": "fault", "interface": "d0", "netns": bed.netns(1), "drop_every": 1000});
    // A trial that had to be repeated finds a device that has counted nothing yet.
    let mut fault = None;
    let outcome = all_sent(|| {
        drop(fault.take());
        fault = Some(Device::attach(&device.to_string()).unwrap());
        one_trial(&mut tester, &request(&flow(true, 0), 100_000.0, 0.2))
    });
    let (mut fault, stream) = (fault.unwrap(), outcome["streams"][0].clone());
    let expected: Vec<_> = (1..=20).map(|nth| json!([nth * 1000 - 1, 1])).collect();
    assert_eq!(stream["lost_runs"], json!(expected));
    assert_eq!(number(&stream["lost_frames"]), 20);
    assert_conserved(&stream);
    assert_eq!(number(&fault.counters().unwrap()["dropped"]), 20);
    // CBR: frame 999 was due after 999 gaps of 10 us.
    assert!((stream["first_loss_s"].as_f64().unwrap() - 9.99e-3).abs() < 1e-9, "{stream}");
    assert!((stream["last_loss_s"].as_f64().unwrap() - 0.199_99).abs() < 1e-9, "{stream}");

    fault.set(&json!({"swallow": true}).to_string()).unwrap();
    let stream = trial(&mut tester, &request(&flow(true, 0), 100_000.0, 0.05))["streams"][0].clone();
    assert_eq!(stream["lost_runs"], json!([[0, 5000]]));
    assert_eq!((number(&stream["received_frames"]), &stream["latency"]), (0, &Value::Null));
}

#[test]
fn damaged_frames_are_counted_and_lost() {
    let bed = bed!(Bed::chain("corrupt"));
    let mut tester = bed.tester();
    let device = json!({"program": "fault", "interface": "d0", "netns": bed.netns(1), "corrupt_every": 100});
    for bytes in [64, 1518] {
        let mut trial_request = request(&flow(true, 0), 50_000.0, 0.1);
        trial_request["streams"][0]["sizes"][0]["bytes"] = json!(bytes);
        let outcome = all_sent(|| {
            let _fault = Device::attach(&device.to_string()).unwrap();
            one_trial(&mut tester, &trial_request)
        });
        let stream = &outcome["streams"][0];
        assert_eq!((number(&stream["corrupted_frames"]), number(&stream["lost_frames"])), (50, 50));
        assert_conserved(stream);
        assert_eq!(stream["lost_runs"][0], json!([99, 1]));
    }
}

/// VLAN, `QinQ`, VXLAN, GRE, and a tagged tunnel.
fn encapsulations() -> [Value; 5] {
    [
        json!({"vlan_ids": [10]}),
        json!({"vlan_ids": [100, 10]}),
        json!({"tunnel": {"kind": "vxlan", "vni": 42}}),
        json!({"tunnel": {"kind": "gre"}}),
        json!({"vlan_ids": [10], "tunnel": {"kind": "vxlan", "vni": 7}}),
    ]
}

#[test]
fn frames_with_tags_and_tunnels_are_counted_to_the_frame_and_the_byte_by_every_back_end() {
    let bed = bed!(Bed::pair("around"));
    // Room for two tags, beyond the one that the kernel grants.
    bed.exec(0, "ip link set g0 mtu 1508");
    bed.exec(1, "ip link set s0 mtu 1508");
    let mut tester = bed.tester();
    for encapsulation in encapsulations() {
        for flow in [flow(false, 0), flow_ipv6(false, 0)] {
            for bytes in [160, 1518] {
                // Below 1,000 frames a second another back end sends.
                for rate_pps in [50_000.0, 800.0] {
                    let mut trial_request = request(&flow, rate_pps, 0.05);
                    trial_request["streams"][0]["encapsulation"] = encapsulation.clone();
                    trial_request["streams"][0]["sizes"][0]["bytes"] = json!(bytes);
                    let stream = trial(&mut tester, &trial_request)["streams"][0].clone();
                    let frames = (rate_pps * 0.05) as u64;
                    assert_clean(&stream, frames);
                    assert_eq!(number(&stream["received_bytes"]), frames * bytes, "{encapsulation}");
                }
            }
        }
    }
}

#[test]
fn what_a_device_drops_and_damages_of_tagged_and_tunnelled_frames_is_found_exactly() {
    let bed = bed!(Bed::chain("wrong"));
    // A bridge forwards tagged frames unchanged; a device behind it injects faults.
    bed.exec(1, "ip link add br0 type bridge");
    for interface in ["d0", "d1"] {
        bed.exec(1, &format!("ip link set {interface} master br0"));
    }
    bed.exec(1, "ip link set br0 up");
    let mut tester = bed.tester();
    let device = json!({
        "program": "fault", "interface": "d0", "netns": bed.netns(1), "drop_every": 100, "corrupt_every": 70,
    });
    for encapsulation in encapsulations() {
        let mut trial_request = request(&flow(false, 0), 50_000.0, 0.1);
        trial_request["streams"][0]["encapsulation"] = encapsulation;
        trial_request["streams"][0]["sizes"][0]["bytes"] = json!(200);
        let outcome = all_sent(|| {
            let _fault = Device::attach(&device.to_string()).unwrap();
            one_trial(&mut tester, &trial_request)
        });
        let stream = &outcome["streams"][0];
        // Of 5,000 every 100th is dropped, and of the rest every 70th damaged: the 700th, 1,400th, … are dropped.
        assert_eq!((number(&stream["corrupted_frames"]), number(&stream["lost_frames"])), (71 - 7, 50 + 71 - 7));
        assert_conserved(stream);
    }
}

#[test]
fn a_device_that_cannot_take_live_frames_is_an_error_and_no_loss() {
    let bed = bed!(Bed::chain("napi"));
    let mut tester = bed.tester();
    bed.exec(1, "ethtool -K d0 gro off");
    let trial_request = request(&flow(true, 0), 10_000.0, 0.1).to_string();
    let refused = tester.trial(&trial_request, &|_| std::ops::ControlFlow::Continue(())).unwrap_err();
    assert!(refused.to_string().contains("NAPI"), "{refused}");
    bed.exec(1, "ethtool -K d0 gro on");
    assert_clean(&trial(&mut tester, &request(&flow(true, 0), 10_000.0, 0.1))["streams"][0], 1_000);
}

#[test]
fn a_device_that_takes_less_than_a_hundredth_of_the_frames_is_slow_and_not_unwired() {
    let bed = bed!(Bed::chain("slowest"));
    let mut tester = bed.tester();
    let device = json!({"program": "slow", "interface": "d0", "netns": bed.netns(1), "iterations": 300_000});
    let _slow = Device::attach(&device.to_string()).unwrap();
    bed.own_core(1, "d0", 1);
    // A tester that waits for its core sends too few frames to show it.
    let is_shown = (0..5).any(|_| {
        let outcome = one_trial(&mut tester, &request(&flow(true, 0), 1e6, 0.2));
        let stream = &outcome["streams"][0];
        let taken = number(&outcome["back_end"]["kernel_frames"][0]["transmitted"]);
        assert!(number(&stream["received_frames"]) <= taken);
        assert_conserved(stream);
        taken < number(&stream["sent_frames"]) / 100
    });
    assert!(is_shown, "the device took a hundredth of the frames each time");
}

#[test]
fn the_forwarder_in_xdp_routes_both_ip_versions_past_the_kernel() {
    let bed = bed!(Bed::chain("forward"));
    let mut tester = bed.tester();
    let device = json!({"program": "forward", "interface": "d0", "netns": bed.netns(1), "iterations": 10});
    let router = Device::attach(&device.to_string()).unwrap();
    // The last of a few trials, and what the router counted during it.
    let mut counted = |counter: &str, trial_request: &Value| {
        let mut frames = 0;
        let outcome = all_sent(|| {
            let before = number(&router.counters().unwrap()[counter]);
            let outcome = one_trial(&mut tester, trial_request);
            frames = number(&router.counters().unwrap()[counter]) - before;
            outcome
        });
        (outcome["streams"][0].clone(), frames)
    };
    for flow in [flow(true, 0), flow_ipv6(true, 0)] {
        let mut trial_request = request(&flow, 50_000.0, 0.1);
        trial_request["streams"][0]["sizes"][0]["bytes"] = json!(128);
        let (stream, forwarded) = counted("forwarded", &trial_request);
        assert_clean(&stream, 5_000);
        assert_eq!(forwarded, 5_000);
    }
    // Tags stay on the frames; the next hop is that of the datagram, or of the tunnel around it.
    for encapsulation in encapsulations() {
        let mut trial_request = request(&flow(true, 0), 50_000.0, 0.1);
        trial_request["streams"][0]["encapsulation"] = encapsulation;
        trial_request["streams"][0]["sizes"][0]["bytes"] = json!(200);
        let (stream, forwarded) = counted("forwarded", &trial_request);
        assert_clean(&stream, 5_000);
        assert_eq!((forwarded, number(&stream["received_bytes"])), (5_000, 5_000 * 200));
    }
    // An address without a host: the program passes the frame to the kernel, which has no route either.
    let mut nowhere = flow(true, 0);
    nowhere["destination_address"] = json!("198.18.77.1");
    let (stream, unrouted) = counted("no_route", &request(&nowhere, 20_000.0, 0.05));
    assert_eq!(number(&stream["lost_frames"]), 1_000);
    assert_eq!(unrouted, 1_000);
}

#[test]
fn what_a_device_sends_back_is_received_where_it_left() {
    let bed = bed!(Bed::chain("back"));
    let mut tester = bed.tester();
    let device = json!({"program": "fault", "interface": "d0", "netns": bed.netns(1), "reflect": true});
    let _fault = Device::attach(&device.to_string()).unwrap();
    let mut trial_request = request(&flow(true, 0), 50_000.0, 0.1);
    let outcome = trial(&mut tester, &trial_request);
    assert_eq!(number(&outcome["streams"][0]["lost_frames"]), 5_000);
    assert_eq!(number(&outcome["back_end"]["misrouted_frames"]), 5_000);
    trial_request["streams"][0]["to_port"] = json!(0);
    assert_clean(&trial(&mut tester, &trial_request)["streams"][0], 5_000);
}

#[test]
fn both_directions_are_sent_by_one_generator_and_counted_apart() {
    let bed = bed!(Bed::chain("both"));
    let mut tester = bed.tester();
    let back = json!({
        "source_mac": MACS[3], "destination_mac": MACS[2],
        "source_address": "198.19.1.2", "destination_address": "198.18.1.2", "source_port": 7, "destination_port": 9,
    });
    let mut trial_request = request(&flow(true, 0), 60_000.0, 0.1);
    let mut second = trial_request["streams"][0].clone();
    (second["port"], second["to_port"], second["rate_pps"]) = (json!(1), json!(0), json!(40_000.0));
    second["flows"] = json!([back]);
    trial_request["streams"].as_array_mut().unwrap().push(second);
    let outcome = trial(&mut tester, &trial_request);
    assert_clean(&outcome["streams"][0], 6_000);
    assert_clean(&outcome["streams"][1], 4_000);
    assert_eq!(outcome["back_end"]["senders"].as_array().unwrap().len(), 1);
}

#[test]
fn several_streams_of_one_port_have_their_own_numbers() {
    let bed = bed!(Bed::pair("streams"));
    let mut tester = bed.tester();
    let mut trial_request = request(&flow(false, 0), 30_000.0, 0.1);
    for (nth, rate_pps) in [(1, 20_000.0), (2, 10_000.0)] {
        let mut stream = trial_request["streams"][0].clone();
        (stream["rate_pps"], stream["flows"]) = (json!(rate_pps), json!([flow(false, nth)]));
        trial_request["streams"].as_array_mut().unwrap().push(stream);
    }
    let outcome = trial(&mut tester, &trial_request);
    for (nth, frames) in [3_000, 2_000, 1_000].into_iter().enumerate() {
        assert_clean(&outcome["streams"][nth], frames);
    }
}

#[test]
fn a_warm_up_is_sent_and_not_counted() {
    let bed = bed!(Bed::pair("warm"));
    let mut tester = bed.tester();
    let mut trial_request = request(&flow(false, 0), 50_000.0, 0.1);
    trial_request["warmup_s"] = json!(0.05);
    let outcome = trial(&mut tester, &trial_request);
    assert_clean(&outcome["streams"][0], 5_000);
    assert_eq!(number(&outcome["back_end"]["stale_frames"]), 2_500);
}

#[test]
fn a_step_changes_the_rate_when_it_should() {
    let bed = bed!(Bed::pair("step"));
    let mut tester = bed.tester();
    let mut trial_request = request(&flow(false, 0), 50_000.0, 0.2);
    trial_request["streams"][0]["steps"] = json!([{"at_s": 0.1, "rate_pps": 20_000.0}]);
    assert_clean(&trial(&mut tester, &trial_request)["streams"][0], 5_000 + 2_000);
}

#[test]
fn a_number_of_frames_leaves_as_a_burst() {
    let bed = bed!(Bed::pair("burst"));
    let mut tester = bed.tester();
    let mut trial_request = request(&flow(false, 0), 20_000.0, 0.2);
    trial_request["streams"][0]["schedule"] = json!({"kind": "bursts", "burst_frames": 100});
    trial_request["wire_bps"] = json!(1e9);
    let stream = trial(&mut tester, &trial_request)["streams"][0].clone();
    assert_clean(&stream, 4_000);
    // 40 bursts of 100 frames are due every 5 ms; the last one begins at 195 ms and takes 100 times 672 ns. No frame
    // leaves before it is due, or later than the tester reports.
    let [last_s, latest_s, achieved_pps] =
        ["last_sent_s", "latest_s", "achieved_pps"].map(|name| stream[name].as_f64().unwrap());
    let burst_s = 99.0 * 672e-9;
    assert!((0.195 + burst_s - 2e-9..0.195 + burst_s + latest_s + 2e-9).contains(&last_s), "{stream}");
    // The first and the last frame are late by 0 to `latest_s`; the planned rate has all frames of a burst due at its
    // begin.
    assert!((20_000.0 / achieved_pps - 1.0).abs() <= (burst_s + latest_s) / 0.195 + 1e-6, "{stream}");
    // Nothing comes between two bursts: a stall delays a burst, and so lengthens one gap as it shortens the next.
    assert!(stream["longest_gap_s"].as_f64().unwrap() > 4.5e-3, "{stream}");
}

#[test]
fn what_cannot_be_sent_in_time_is_unsent_and_not_lost() {
    let bed = bed!(Bed::pair("over"));
    let mut tester = bed.tester();
    let stream = trial(&mut tester, &request(&flow(false, 0), 50e6, 0.05))["streams"][0].clone();
    assert_eq!(number(&stream["intended_frames"]), 2_500_000);
    assert_eq!(number(&stream["unsent_frames"]) + number(&stream["sent_frames"]), 2_500_000);
    assert!(number(&stream["unsent_frames"]) > 0, "50 million frames a second are beyond any core");
    assert_conserved(&stream);
}

#[test]
fn an_overloaded_device_loses_frames_and_each_is_known() {
    let bed = bed!(Bed::chain("slow"));
    let mut tester = bed.tester();
    bed.own_core(1, "d0", 1);
    let device = json!({"program": "slow", "interface": "d0", "netns": bed.netns(1), "iterations": 20_000});
    let _slow = Device::attach(&device.to_string()).unwrap();
    bed.own_core(1, "d0", 1);
    let stream = trial(&mut tester, &request(&flow(true, 0), 400_000.0, 0.2))["streams"][0].clone();
    assert_conserved(&stream);
    assert!(number(&stream["lost_frames"]) > 0, "{stream}");
}
