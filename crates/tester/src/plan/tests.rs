use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const SECOND: f64 = 1e9 * TICKS_PER_NS as f64;

fn flows(count: usize) -> Value {
    let flow = |nth: usize| {
        json!({"source_mac": "02:00:00:00:01:02", "destination_mac": "02:00:00:00:01:01",
               "source_address": "198.18.1.2", "destination_address": "198.19.1.2",
               "source_port": 1024 + nth, "destination_port": 7})
    };
    (0..count).map(flow).collect()
}

fn stream(rate_pps: f64, more: &Value) -> Value {
    let mut stream =
        json!({"port": 0, "to_port": 1, "rate_pps": rate_pps, "sizes": [{"bytes": 64}], "flows": flows(1)});
    for (key, value) in more.as_object().unwrap() {
        stream[key] = value.clone();
    }
    stream
}

fn request(duration_s: f64, wire_bps: Option<f64>, streams: &[Value]) -> Request {
    let text = json!({"duration_s": duration_s, "wire_bps": wire_bps, "seed": 1, "streams": streams}).to_string();
    Request::parse(&text, 2).unwrap()
}

fn plan_of(request: &Request, index: usize) -> Result<Plan> {
    Plan::new(request, index, &Templates::new(&request.streams[index].flows, &request.streams[index].encapsulation)?)
}

fn plan(duration_s: f64, wire_bps: Option<f64>, rate_pps: f64, more: &Value) -> Plan {
    plan_of(&request(duration_s, wire_bps, &[stream(rate_pps, more)]), 0).unwrap()
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / SECOND
}

/// The gaps of the table are what a BPF program adds up: the mean rate must not drift.
#[test]
fn the_rate_of_a_constant_bit_rate_is_exact_from_1_pps_to_15_mpps() {
    for rate_pps in [1.0, 3.0, 999.0, 123_456.789, 1e6, 3_333_333.0, 14_880_952.38, 15e6] {
        let plan = plan(1.0, None, rate_pps, &json!({}));
        let gaps: u64 = plan.slots().iter().map(|slot| slot.gap).sum();
        let mean_pps = plan.cycle() as f64 / seconds(gaps);
        assert!((mean_pps / rate_pps - 1.0).abs() < 1e-8, "{rate_pps}: {mean_pps}");
        assert_eq!(plan.frames(), rate_pps.ceil() as u64);
    }
}

#[test]
fn the_gaps_of_a_constant_bit_rate_differ_by_no_more_than_a_tick() {
    let plan = plan(1.0, None, 14_880_952.38, &json!({}));
    let gaps = || plan.slots().iter().map(|slot| slot.gap);
    assert!(gaps().max().unwrap() - gaps().min().unwrap() <= 1);
}

/// 16 frames of 64 B at 10 Gbit/s: 67.2 ns apart (RFC 2544 sec. 20: 14 880 952 pps), then a pause.
#[test]
fn a_burst_leaves_at_the_rate_of_the_link_and_the_mean_rate_is_kept() {
    let plan = plan(0.016, Some(1e10), 1e5, &json!({"schedule": {"kind": "bursts", "burst_frames": 16}}));
    let leaves: Vec<f64> = Merge::new(&[&plan]).map(|due| seconds(due.leave)).collect();
    assert_eq!((leaves.len(), plan.frames()), (1600, 1600));
    for (nth, leave) in leaves.iter().enumerate() {
        let expected = (nth / 16) as f64 * 16e-5 + (nth % 16) as f64 * 67.2e-9;
        assert!((leave - expected).abs() < 1e-11, "frame {nth}: {leave} {expected}");
    }
}

/// Bursts of two sizes that fit the link: no frame waits for another burst.
#[test]
fn the_frames_of_a_burst_leave_one_after_another() {
    let sizes = json!([{"bytes": 64, "weight": 2}, {"bytes": 1518, "weight": 1}]);
    for (burst_frames, warmup_s) in [(1, 0.0), (2, 0.001), (5, 0.0), (12, 0.000_3)] {
        let more = json!({"sizes": sizes, "schedule": {"kind": "bursts", "burst_frames": burst_frames}});
        let mut request = request(0.004, Some(1e10), &[stream(1e5, &more)]);
        request.warmup_s = warmup_s;
        let plan = plan_of(&request, 0).unwrap();
        let leaves: Vec<u64> = Merge::new(&[&plan]).map(|due| due.leave).collect();
        assert_eq!((0..leaves.len() as u64).map(|frame| plan.leave(frame)).collect::<Vec<_>>(), leaves);
    }
}

#[test]
fn a_single_burst_is_as_long_as_it_is_asked_for() {
    let frames = 20_000_000;
    let burst = json!({"schedule": {"kind": "bursts", "burst_frames": frames}, "frames": frames});
    let plan = plan(0.1, Some(1e10), 14e6, &burst);
    assert_eq!((plan.frames(), plan.cycle(), plan.due(frames - 1)), (frames, 1, 0));
    assert!((seconds(plan.link_ticks()) - frames as f64 * 67.2e-9).abs() < 1e-6);
    assert!((seconds(plan.leave(frames - 1)) - (frames - 1) as f64 * 67.2e-9).abs() < 1e-6);
    let last = Merge::new(&[&plan]).take(1_000_000).last().unwrap();
    // The link's time of a frame is a whole number of ticks: at most 1 / 4404019 less.
    assert!((seconds(last.leave) / (999_999.0 * 67.2e-9) - 1.0).abs() < 1e-6);
}

/// Kolmogorov and Smirnov's distance of 65536 draws from their law is 1.63 / sqrt(n) = 0.0064 in 1 of 100 samples.
#[test]
fn poisson_gaps_are_exponential_and_their_mean_is_exact() {
    let plan = plan(1.0, None, 1e6, &json!({"schedule": {"kind": "poisson"}}));
    let mut gaps: Vec<f64> = plan.slots().iter().map(|slot| seconds(slot.gap) * 1e6).collect();
    assert!((gaps.iter().sum::<f64>() / gaps.len() as f64 - 1.0).abs() < 1e-9);
    gaps.sort_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let distance = gaps.iter().enumerate().map(|(nth, gap)| (1.0 - (-gap).exp() - nth as f64 / count).abs());
    assert!(distance.fold(0.0, f64::max) < 0.0064);
    // The index of dispersion of a Poisson process is 1 (Cox and Lewis 1966): 16384 windows of 4 mean gaps.
    let mut counts = vec![0.0_f64; 16_384];
    for frame in 0..65_536 {
        let window = (seconds(plan.due(frame)) * 1e6 / 4.0) as usize;
        counts[window.min(16_383)] += 1.0;
    }
    let variance = counts.iter().map(|count| (count - 4.0).powi(2)).sum::<f64>() / counts.len() as f64;
    assert!((variance / 4.0 - 1.0).abs() < 0.05, "{variance}");
}

#[test]
fn another_seed_gives_other_poisson_gaps_of_the_same_mean() {
    let mut request = request(0.1, None, &[stream(1e5, &json!({"schedule": {"kind": "poisson"}}))]);
    let first = plan_of(&request, 0).unwrap();
    request.seed = 2;
    let second = plan_of(&request, 0).unwrap();
    assert_ne!(first.slots(), second.slots());
    assert_eq!(first.slots(), plan_of(&Request { seed: 1, ..request }, 0).unwrap().slots());
}

/// 7:4:1 is the simple IMIX of 64, 594 and 1518 B; each of the 4 flows must get that mix, not a part of it.
#[test]
fn every_flow_gets_every_size_in_proportion_and_neighbours_differ() {
    let sizes = json!([{"bytes": 64, "weight": 7}, {"bytes": 594, "weight": 4}, {"bytes": 1518, "weight": 1}]);
    let plan = plan(0.48, None, 1e3, &json!({"sizes": sizes, "flows": flows(4)}));
    assert_eq!((plan.frames(), plan.frames_of_flows(478)), (480, vec![120, 120, 119, 119]));
    for flow in 0..4 {
        let count =
            |bytes| (0..480).filter(|&frame| (plan.slot(frame).flow, plan.slot(frame).bytes) == (flow, bytes)).count();
        assert_eq!([64, 594, 1518].map(count), [70, 40, 10]);
    }
    let run = (0..480).map(|frame| plan.slot(frame).bytes).collect::<Vec<_>>();
    assert!(run.chunk_by(|a, b| a == b).all(|same| same.len() <= 4), "{run:?}");
}

#[test]
fn weights_are_taken_as_they_are_meant() {
    assert_eq!(cycle_of(&[1.0]), [1]);
    assert_eq!(cycle_of(&[0.5, 0.25, 0.25]), [2, 1, 1]);
    assert_eq!(cycle_of(&[58.33, 33.33, 8.33]), [2389, 1365, 341], "shares of 4096 for want of a common measure");
    assert_eq!(cycle_of(&[1.0, 0.0, 1e-9]), [4096, 0, 1], "whatever has a weight occurs");
}

fn cycle_of(weights: &[f64]) -> Vec<u64> {
    super::cycle::integer_ratio(weights)
}

/// RFC 2544 sec. 26.5: the rate is halved in mid-trial.
#[test]
fn a_step_changes_the_rate_at_its_time() {
    let plan =
        plan(1.0, None, 1e4, &json!({"steps": [{"at_s": 0.25, "rate_pps": 5e3}, {"at_s": 0.75, "rate_pps": 2e4}]}));
    assert_eq!(plan.frames(), 2500 + 2500 + 5000);
    let due = |frame| seconds(plan.due(frame));
    assert_eq!([due(2499), due(2500), due(2501)], [0.2499, 0.25, 0.2502]);
    assert!(
        (due(4999) - 0.7498).abs() < 1e-12 && (due(5000) - 0.75).abs() < 1e-12 && (due(5001) - 0.75005).abs() < 1e-12
    );
}

#[test]
fn a_rate_of_0_is_a_pause() {
    let plan = plan(0.3, None, 1e4, &json!({"steps": [{"at_s": 0.1, "rate_pps": 0}, {"at_s": 0.2, "rate_pps": 1e4}]}));
    assert_eq!((plan.frames(), plan.segments().len()), (2000, 2));
    assert!((seconds(plan.due(999)) - 0.0999).abs() < 1e-12 && (seconds(plan.due(1000)) - 0.2).abs() < 1e-12);
}

#[test]
fn a_warm_up_comes_before_and_the_trial_begins_on_time() {
    let mut request = request(0.1, None, &[stream(3e3, &json!({}))]);
    request.warmup_s = 0.05 + 1e-4;
    let plan = plan_of(&request, 0).unwrap();
    assert_eq!((plan.warmup_frames(), plan.frames()), (151, 300));
    assert_eq!(plan.due(151), plan.start());
    assert!((seconds(plan.start()) - 0.0501).abs() < 1e-12);
}

/// 10 Mbit/s carry 14 880.95 frames of 64 B a second (RFC 2544 sec. 20: 14880).
#[test]
fn what_the_link_does_not_carry_is_intended_but_not_planned() {
    let slow = plan(1.0, Some(1e7), 2e4, &json!({}));
    assert_eq!((slow.intended_frames(), slow.frames()), (20_000, 14_881));
    let streams = [stream(1e4, &json!({})), stream(2e4, &json!({}))];
    let request = request(1.0, Some(1e7), &streams);
    let plans = [plan_of(&request, 0).unwrap(), plan_of(&request, 1).unwrap()];
    assert_eq!(plans.each_ref().map(Plan::frames), [4961, 9921], "one third and two thirds of the link");
    let last = Merge::new(&[&plans[0], &plans[1]]).last().unwrap();
    assert!(seconds(last.leave) < 1.0 + 2.0 * 67.2e-6);
}

#[test]
fn streams_of_a_port_leave_in_the_order_of_their_due_times() {
    let request =
        request(0.01, Some(1e9), &[stream(7e4, &json!({})), stream(1e5, &json!({})), stream(3e3, &json!({}))]);
    let plans: Vec<Plan> = (0..3).map(|index| plan_of(&request, index).unwrap()).collect();
    let merged: Vec<Due> = Merge::new(&plans.iter().collect::<Vec<_>>()).collect();
    assert_eq!(merged.len(), 700 + 1000 + 30);
    let spaced = merged.windows(2).all(|pair| pair[1].leave - pair[0].leave >= plans[0].wire().unwrap().ticks(64));
    assert!(spaced, "two frames overlap on the link");
    for due in &merged {
        assert!(due.leave >= plans[due.plan].due(due.frame));
    }
}

#[test]
fn a_request_that_cannot_be_planned_is_refused_with_its_place() {
    let cases = [
        (json!({"sizes": [{"bytes": 63}]}), "streams[0].sizes[0].bytes: got 63; 64 to 16384"),
        (json!({"sizes": [{"bytes": 64}, {"bytes": 16_385}]}), "streams[0].sizes[1].bytes: got 16385; "),
        (json!({"sizes": [{"bytes": 64, "weight": 0}]}), "streams[0].sizes[0].weight: got 0; "),
        (json!({"sizes": [{"bytes": 64, "weight": -1}]}), "streams[0].sizes[0].weight: got -1; "),
        (json!({"schedule": {"kind": "bursts", "burst_frames": 0}}), "streams[0].schedule.burst_frames: got 0; "),
        (json!({"steps": [{"at_s": 0.2, "rate_pps": 1}, {"at_s": 0.1, "rate_pps": 1}]}), "streams[0].steps[1].at_s: "),
        (json!({"steps": [{"at_s": 0.2, "rate_pps": -1}]}), "streams[0].steps[0].rate_pps: got -1; "),
        (json!({"frames": 1_000_000_000}), "streams[0].frames: got 1000000000; as many as are sent within a day"),
        (
            json!({"frames": 5_000_000_000_u64, "rate_pps": 1e7}),
            "streams[0].frames: got 5000000000; at most 4294967295",
        ),
        (
            json!({"frames": 10, "rate_pps": 1.0, "steps": [{"at_s": 0.5, "rate_pps": 0}]}),
            "streams[0].frames: got 1; as many",
        ),
    ];
    for (more, begins) in cases {
        let message = plan_of(&request(1.0, None, &[stream(1e3, &more)]), 0).unwrap_err().to_string();
        assert!(message.starts_with(begins), "{message}");
    }
}

fn schedules() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"kind": "cbr"})),
        Just(json!({"kind": "poisson"})),
        (1_u32..200).prop_map(|burst_frames| json!({"kind": "bursts", "burst_frames": burst_frames})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Walking the tables, as the BPF program does, and asking for a frame by its number give the same schedule.
    #[test]
    fn a_schedule_is_ordered_complete_and_the_same_both_ways(
        rate_pps in 100.0..3e5, step_pps in 100.0..3e5, at_s in 0.001..0.02, warmup_s in 0.0..0.01,
        schedule in schedules(), weights in prop::collection::vec(0.1..9.0, 1..4), flow_count in 1_usize..6,
        wire in prop::option::of(1e7..1e9),
    ) {
        let sizes: Value = weights.iter().zip([64, 594, 1518]).map(|(w, bytes)| json!({"bytes": bytes, "weight": w})).collect();
        let more = json!({"schedule": schedule, "steps": [{"at_s": at_s, "rate_pps": step_pps}], "sizes": sizes,
                          "flows": flows(flow_count)});
        let mut request = request(0.02, wire, &[stream(rate_pps, &more)]);
        request.warmup_s = warmup_s;
        let plan = plan_of(&request, 0).unwrap();
        let mut last = 0;
        let mut count = 0;
        for (nth, due) in Merge::new(&[&plan]).enumerate() {
            prop_assert_eq!(due.frame, nth as u64);
            prop_assert_eq!(due.slot, plan.slot(due.frame));
            prop_assert!(due.leave >= last && due.leave >= plan.due(due.frame), "{:?}", due);
            prop_assert_eq!(usize::from(due.slot.flow), if due.frame < plan.warmup_frames() {
                nth % flow_count
            } else {
                (nth - plan.warmup_frames() as usize) % flow_count
            });
            prop_assert!(wire.is_some() || due.leave - plan.due(due.frame) == 0);
            (last, count) = (due.leave, count + 1);
        }
        prop_assert_eq!(count, plan.warmup_frames() + plan.frames());
        prop_assert!(plan.frames() <= plan.intended_frames());
        if plan.frames() > 0 {
            prop_assert!(plan.due(plan.warmup_frames()) >= plan.start());
            prop_assert!(plan.due(plan.warmup_frames() + plan.frames() - 1) <= plan.end());
        }
    }
}

/// Each frame of a recording is due where it stands in it, stretched to the rate, and then the recording begins anew.
#[test]
fn a_recording_is_sent_as_it_was_and_again() {
    let recording = json!({"kind": "recorded", "places": [0.0, 0.5, 0.5, 3.5], "bytes": [64, 1518, 64, 570], "flows": [2, 0, 2, 1]});
    let more = json!({"schedule": recording, "flows": flows(3), "sizes": [{"bytes": 554}]});
    let plan = plan(0.009, None, 1000.0, &more);
    assert_eq!((plan.cycle(), plan.frames()), (4, 11));
    for frame in 0..plan.frames() {
        let (turn, place) = (frame / 4, [0.0, 0.5, 0.5, 3.5][(frame % 4) as usize]);
        let due_s = seconds(plan.due(frame));
        assert!((due_s - (turn as f64 * 4.0 + place) / 1000.0).abs() < 1e-12, "{frame}: {due_s}");
        let slot = plan.slot(frame);
        assert_eq!(slot.bytes, [64, 1518, 64, 570][(frame % 4) as usize]);
        assert_eq!(slot.flow, [2, 0, 2, 1][(frame % 4) as usize]);
    }
    assert_eq!(plan.frames_of_flows(11), [3, 2, 6]);
}

#[test]
fn a_recording_that_cannot_be_is_refused_with_its_place() {
    let cases = [
        (json!({"places": [], "bytes": [], "flows": []}), "schedule.places: got 0 places"),
        (json!({"places": [0.0], "bytes": [64, 64], "flows": [0]}), "schedule.places: got 1 places, 2 sizes, 1 flows"),
        (json!({"places": [0.0, 0.5, 0.4], "bytes": [64, 64, 64], "flows": [0, 0, 0]}), "schedule.places[2]: got 0.4"),
        (json!({"places": [0.0, 2.0], "bytes": [64, 64], "flows": [0, 0]}), "schedule.places[1]: got 2"),
        (json!({"places": [0.0], "bytes": [63], "flows": [0]}), "schedule.bytes[0]: got 63"),
        (json!({"places": [0.0], "bytes": [64], "flows": [1]}), "schedule.flows[0]: got 1"),
    ];
    for (mut recording, message) in cases {
        recording["kind"] = json!("recorded");
        let request = request(1.0, None, &[stream(1000.0, &json!({"schedule": recording}))]);
        let refused = plan_of(&request, 0).unwrap_err().to_string();
        assert!(refused.contains(message), "{refused}");
    }
}
