//! The counts over time agree with the totals of the trial, for each receiving back end.

use std::cell::RefCell;
use std::ops::ControlFlow;

use crate::bed::{Bed, all_sent, flow, request, trial};
use routecast_tester::parts::PARTS;
use routecast_tester::{Device, Tester};
use serde_json::{Value, json};

fn counts(over_time: &Value, name: &str) -> Vec<u64> {
    let counts = over_time[name].as_array().unwrap_or_else(|| panic!("no {name}: {over_time}"));
    counts.iter().map(|count| count.as_u64().unwrap()).collect()
}

/// Every frame is in one part: the sums are the counts of the whole trial.
#[track_caller]
fn assert_parts_add_up(outcome: &Value) -> [Vec<u64>; 3] {
    let over_time = &outcome["over_time"];
    let counts_of_parts = ["sent_frames", "received_frames", "lost_frames"].map(|name| counts(over_time, name));
    let after = over_time["received_after_frames"].as_u64().unwrap();
    for ((name, parts), more) in
        ["sent_frames", "received_frames", "lost_frames"].iter().zip(&counts_of_parts).zip([0, after, 0])
    {
        let streams = outcome["streams"].as_array().unwrap();
        let of_trial: u64 = streams.iter().map(|stream| stream[name].as_u64().unwrap()).sum();
        assert_eq!(parts.len(), PARTS);
        assert_eq!(parts.iter().sum::<u64>() + more, of_trial, "{name}");
    }
    counts_of_parts
}

#[test]
fn the_parts_of_a_trial_add_up_to_it_in_xdp_and_through_a_ring() {
    let bed = bed!(Bed::pair("parts"));
    for (send, receive) in [("live", "xdp"), ("af_packet", "af_packet")] {
        let config = json!({
            "ports": [
                {"name": "gen", "interface": "g0", "netns": bed.netns(0), "send": send},
                {"name": "sink", "interface": "s0", "netns": bed.netns(1), "receive": receive},
            ],
            "send_cpu": 0,
        });
        let mut tester = Tester::open(&config.to_string()).unwrap();
        let mut trial_request = request(&flow(false, 0), 100_000.0, 0.2);
        trial_request["warmup_s"] = json!(0.02);
        assert_eq!(trial(&mut tester, &trial_request)["over_time"], Value::Null, "nobody asked");
        trial_request["over_time"] = json!(true);
        trial_request["streams"][0]["steps"] = json!([{"at_s": 0.1, "rate_pps": 50_000.0}]);
        let mut second = trial_request["streams"][0].clone();
        (second["flows"], second["steps"]) = (json!([flow(false, 1)]), json!([]));
        trial_request["streams"].as_array_mut().unwrap().push(second);
        let outcome = trial(&mut tester, &trial_request);
        let [sent, _, lost] = assert_parts_add_up(&outcome);
        // Parts of 0.2 ms: 20 frames of the first stream and then 10, 20 of the second.
        assert_eq!(sent, [vec![40; PARTS / 2], vec![30; PARTS / 2]].concat(), "{receive}");
        assert_eq!(lost, [0; PARTS], "{receive}");
        assert!((outcome["over_time"]["part_s"].as_f64().unwrap() - 0.2e-3).abs() < 1e-12);
    }
}

#[test]
fn a_device_that_stops_during_a_trial_forwards_nothing_in_later_parts() {
    let bed = bed!(Bed::chain("stops"));
    let mut tester = bed.tester();
    let device = json!({"program": "fault", "interface": "d0", "netns": bed.netns(1)});
    let fault = RefCell::new(Device::attach(&device.to_string()).unwrap());
    // Half a second: the kernel stops real-time threads that run for nearly a second.
    let mut trial_request = request(&flow(true, 0), 100_000.0, 0.5);
    trial_request["over_time"] = json!(true);
    let outcome = all_sent(|| {
        fault.borrow_mut().set(&json!({"swallow": false}).to_string()).unwrap();
        // The instant of the half may be late: the checks start at the first lost frame.
        let outcome = tester.trial(&trial_request.to_string(), &|share| {
            if share > 0.4 {
                fault.borrow_mut().set(&json!({"swallow": true}).to_string()).unwrap();
            }
            ControlFlow::Continue(())
        });
        serde_json::to_value(outcome.unwrap()).unwrap()
    });
    let [sent, received, lost] = assert_parts_add_up(&outcome);
    let stream = &outcome["streams"][0];
    let [first, length] = [0, 1].map(|at| stream["lost_runs"][0][at].as_u64().unwrap());
    assert_eq!(first + length, 50_000, "it did not start again: {stream}");
    let part = (first / 50) as usize;
    assert_eq!(sent, [50; PARTS]);
    assert_eq!(lost[..part].iter().sum::<u64>(), 0);
    assert_eq!(lost[part..].iter().sum::<u64>(), length);
    // A forwarder that was behind by more than a tenth of the trial would have lost frames before.
    assert_eq!(received[..(part + PARTS / 10).min(PARTS)].iter().sum::<u64>(), first);
}
