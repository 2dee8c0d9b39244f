//! The outcome of a stream from the counts of its sender and its receiver.

use crate::histogram::Distribution;
use crate::outcome::{FlowOutcome, StreamOutcome};
use crate::plan::{Plan, TICKS_PER_NS};
use crate::port::{Received, Sent};

/// Runs of sequence numbers below `sent` whose bits are not set.
struct LostRuns {
    runs: Vec<(u64, u64)>,
    truncated: bool,
    first: Option<u64>,
    last: Option<u64>,
    lost: u64,
}

fn lost_runs(bitmap: &[u64], sent: u64, most: usize) -> LostRuns {
    let mut losses = LostRuns { runs: Vec::new(), truncated: false, first: None, last: None, lost: 0 };
    let mut run: Option<(u64, u64)> = None;
    let close = |run: &mut Option<(u64, u64)>, losses: &mut LostRuns| {
        if let Some((first, count)) = run.take() {
            losses.first.get_or_insert(first);
            losses.last = Some(first + count - 1);
            losses.lost += count;
            if losses.runs.len() < most {
                losses.runs.push((first, count));
            } else {
                losses.truncated = true;
            }
        }
    };
    for base in (0..sent).step_by(64) {
        let bits = sent.saturating_sub(base).min(64);
        let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        let mut missing = !bitmap.get((base / 64) as usize).copied().unwrap_or(0) & mask;
        if missing == 0 {
            close(&mut run, &mut losses);
            continue;
        }
        let mut at = 0;
        while at < bits {
            let here = missing & 1 == 1;
            let length =
                u64::from(if here { missing.trailing_ones() } else { missing.trailing_zeros() }).min(bits - at);
            if here {
                let (_, count) = run.get_or_insert((base + at, 0));
                *count += length;
            } else {
                close(&mut run, &mut losses);
            }
            missing = missing.checked_shr(length as u32).unwrap_or(0);
            at += length;
        }
    }
    close(&mut run, &mut losses);
    losses
}

/// The plan's rate, slowed as the time from the first to the last sent frame was longer than planned. A quotient of
/// frames and that time would be wrong for bursts: the last burst ends before the next would begin.
fn achieved_pps(plan: &Plan, sent: &Sent, duration_s: f64) -> f64 {
    if sent.frames == 0 {
        return 0.0;
    }
    let first = plan.warmup_frames();
    let planned_ns = (plan.leave(first + sent.frames - 1) - plan.leave(first)) as f64 / TICKS_PER_NS as f64;
    // A burst that left in one call has one time stamp.
    let took_ns = (sent.last_ns - sent.first_ns) as f64;
    let planned_pps = plan.frames() as f64 / duration_s;
    if planned_ns > 0.0 && took_ns > 0.0 { planned_pps * planned_ns / took_ns } else { planned_pps }
}

/// The outcome of one stream; `start_ns` is the start of its plan.
pub fn summarise(plan: &Plan, sent: &Sent, received: &Received, start_ns: u64, most_runs: usize) -> StreamOutcome {
    let begin_ns = start_ns + plan.start() / TICKS_PER_NS;
    let since = |time_ns: u64| (time_ns as f64 - begin_ns as f64) / 1e9;
    let lost = lost_runs(&received.bitmap, sent.frames, most_runs);
    let due_s =
        |sequence: u64| (plan.due(plan.warmup_frames() + sequence) - plan.start()) as f64 / TICKS_PER_NS as f64 / 1e9;
    let duration_s = (plan.end() - plan.start()) as f64 / TICKS_PER_NS as f64 / 1e9;
    let sent_of_flows = plan.frames_of_flows(sent.frames);
    StreamOutcome {
        intended_frames: plan.intended_frames(),
        sent_frames: sent.frames,
        unsent_frames: plan.intended_frames().saturating_sub(sent.frames),
        received_frames: received.frames,
        lost_frames: lost.lost,
        duplicated_frames: received.duplicated,
        reordered_frames: received.reordered,
        corrupted_frames: received.corrupted,
        lost_runs: lost.runs,
        lost_runs_truncated: lost.truncated,
        first_loss_s: lost.first.map(due_s),
        last_loss_s: lost.last.map(due_s),
        longest_gap_s: received.longest_gap_ns as f64 / 1e9,
        longest_gap_at_s: if received.longest_gap_ns > 0 { since(received.longest_gap_at_ns) } else { 0.0 },
        first_sent_s: if sent.frames > 0 { since(sent.first_ns) } else { 0.0 },
        last_sent_s: if sent.frames > 0 { since(sent.last_ns) } else { 0.0 },
        intended_pps: plan.intended_frames() as f64 / duration_s,
        achieved_pps: achieved_pps(plan, sent, duration_s),
        late_frames: sent.late_frames,
        latest_s: sent.latest_ns as f64 / 1e9,
        received_bytes: received.bytes,
        latency: Distribution::of(&received.latency),
        ipdv: Distribution::of(&received.ipdv),
        flows: sent_of_flows
            .iter()
            .zip(received.flows.iter().chain(std::iter::repeat(&0)))
            .map(|(&sent, &received)| FlowOutcome { sent, received })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use serde_json::json;

    use super::{achieved_pps, lost_runs};
    use crate::frame::Templates;
    use crate::plan::{Merge, Plan, TICKS_PER_NS};
    use crate::port::Sent;
    use crate::request::Request;

    fn bitmap(received: &[bool]) -> Vec<u64> {
        let word = |bits: &[bool]| bits.iter().enumerate().fold(0, |word, (nth, &bit)| word | u64::from(bit) << nth);
        received.chunks(64).map(word).collect()
    }

    proptest! {
        /// Against counting them one by one.
        #[test]
        fn runs_are_what_is_missing(received in prop::collection::vec(prop::bool::weighted(0.7), 0..400)) {
            let mut expected: Vec<(u64, u64)> = Vec::new();
            for (nth, _) in (0_u64..).zip(&received).filter(|&(_, &received)| !received) {
                match expected.last_mut() {
                    Some((first, count)) if *first + *count == nth => *count += 1,
                    _ => expected.push((nth, 1)),
                }
            }
            let losses = lost_runs(&bitmap(&received), received.len() as u64, usize::MAX);
            prop_assert_eq!(losses.lost, expected.iter().map(|run| run.1).sum::<u64>());
            prop_assert_eq!(losses.first, expected.first().map(|run| run.0));
            prop_assert_eq!(losses.last, expected.last().map(|run| run.0 + run.1 - 1));
            prop_assert_eq!(losses.runs, expected);
            prop_assert!(!losses.truncated);
        }
    }

    /// A sender that keeps the plan achieves its rate, also if the trial ends with a burst that the link spaces.
    #[test]
    fn a_sender_on_time_achieves_the_rate_of_the_plan() {
        for (burst_frames, wire_bps) in [(1, Some(1e9)), (16, Some(1e9)), (16, None)] {
            let flow = json!({"source_mac": "02:00:00:00:01:02", "destination_mac": "02:00:00:00:01:01",
                "source_address": "198.18.1.2", "destination_address": "198.19.1.2", "source_port": 1024,
                "destination_port": 7});
            let text = json!({"duration_s": 0.03, "wire_bps": wire_bps, "seed": 1, "streams": [{"port": 0, "to_port": 1,
                "rate_pps": 2e4, "sizes": [{"bytes": 64}], "flows": [flow],
                "schedule": {"kind": "bursts", "burst_frames": burst_frames}}]});
            let request = Request::parse(&text.to_string(), 2).unwrap();
            let stream = &request.streams[0];
            let plan = Plan::new(&request, 0, &Templates::new(&stream.flows, &stream.encapsulation).unwrap()).unwrap();
            let leaves: Vec<u64> = Merge::new(&[&plan]).map(|due| due.leave / TICKS_PER_NS).collect();
            let sent = Sent {
                frames: plan.frames(),
                first_ns: leaves[0],
                last_ns: *leaves.last().unwrap(),
                ..Sent::default()
            };
            // Whole nanoseconds of 30 ms.
            let rate_pps = plan.frames() as f64 / 0.03;
            assert!((achieved_pps(&plan, &sent, 0.03) / rate_pps - 1.0).abs() < 1e-7, "bursts of {burst_frames}");
        }
    }

    #[test]
    fn long_runs_cross_words_and_a_short_list_says_so() {
        let mut received = vec![true; 1000];
        received[60..700].fill(false);
        received[900] = false;
        let losses = lost_runs(&bitmap(&received), 1000, 1);
        assert_eq!((losses.runs, losses.truncated, losses.lost), (vec![(60, 640)], true, 641));
        assert_eq!(lost_runs(&[], 100, 10).runs, [(0, 100)]);
    }
}
