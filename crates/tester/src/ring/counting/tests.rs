use proptest::prelude::*;

use super::*;
use crate::frame::{Template, WARM_UP, pattern_sum};
use crate::request::{Encapsulation, Flow};

const TRIAL: u8 = 3;

fn frame(sequence: u32, flow: u16, trial: u8, stream: u8) -> Vec<u8> {
    let addresses = Flow {
        source_mac: "02:00:00:00:01:02".into(),
        destination_mac: "02:00:00:00:01:01".into(),
        source_address: "198.18.1.2".into(),
        destination_address: "198.19.1.2".into(),
        source_port: 1024,
        destination_port: 7,
    };
    let mut frame = vec![0; 124];
    let signature = Signature { sequence, sent_ns: 1_000 * u64::from(sequence), flow, trial, stream };
    Template::new(&addresses, flow, &Encapsulation::default()).unwrap().write(
        &mut frame,
        pattern_sum(128, 42),
        signature,
    );
    frame
}

fn counting(frames: u64) -> Counting {
    Counting::new(TRIAL, &[Expected { stream: 5, frames, flows: 2 }])
}

#[test]
fn lost_duplicated_reordered_and_corrupted_frames_are_told_apart() {
    let mut counting = counting(100);
    let mut corrupted = frame(7, 1, TRIAL, 5);
    corrupted[100] ^= 1;
    // Of flow 0 (even) and flow 1 (odd); 2 comes late, 3 twice, 6 not at all, 7 damaged.
    for sequence in [0, 1, 4, 3, 3, 2, 5] {
        counting.frame(&frame(sequence, sequence as u16 % 2, TRIAL, 5), 1_000 * u64::from(sequence) + 250);
    }
    counting.frame(&corrupted, 10_000);
    let report = counting.report();
    let stream = &report.streams[0];
    assert_eq!((stream.frames, stream.duplicated, stream.reordered, stream.corrupted), (6, 1, 1, 1));
    assert_eq!((stream.bitmap.as_slice(), stream.flows.as_slice()), (&[0b11_1111, 0][..], &[3, 3][..]));
    assert_eq!(
        (stream.bytes, stream.latency.count, stream.latency.min_ns, stream.latency.max_ns),
        (6 * 128, 6, 250, 250)
    );
    assert_eq!((stream.ipdv.count, stream.ipdv.max_ns), (1, 0), "only 0 and 1 came one after the other");
}

#[test]
fn frames_of_others_of_other_trials_and_for_other_ports_do_not_count() {
    let mut counting = counting(100);
    counting.frame(&[0; 60], 0);
    counting.frame(&frame(0, 0, TRIAL - 1, 5), 0);
    counting.frame(&frame(0, 0, TRIAL | WARM_UP, 5), 0);
    counting.frame(&frame(0, 0, TRIAL, 4), 0);
    // Beyond the trial's frames and flows: the signature is damaged, however right the checksum is.
    counting.frame(&frame(100, 0, TRIAL, 5), 0);
    counting.frame(&frame(0, 2, TRIAL, 5), 0);
    let report = counting.report();
    assert_eq!((report.foreign, report.stale, report.misrouted), (1, 2, 1));
    assert_eq!((report.streams[0].frames, report.streams[0].corrupted), (0, 2));
}

#[test]
fn the_longest_gap_is_found_where_it_begins() {
    let mut counting = counting(10);
    for (sequence, at_ns) in [(0, 5_000), (1, 6_000), (4, 9_500), (5, 10_000)] {
        counting.frame(&frame(sequence, 0, TRIAL, 5), at_ns);
    }
    let stream = &counting.report().streams[0];
    assert_eq!((stream.first_ns, stream.last_ns), (5_000, 10_000));
    assert_eq!((stream.longest_gap_ns, stream.longest_gap_at_ns), (3_500, 6_000));
}

proptest! {
    /// Whatever arrives: every frame is counted once, and the bitmap agrees with the count.
    #[test]
    fn every_frame_is_counted_once(arrivals in prop::collection::vec((0_u32..80, 0_u16..3, 0_usize..130, 0_u8..3), 0..200)) {
        let mut counting = counting(64);
        for &(sequence, flow, at, wrong) in &arrivals {
            let mut octets = frame(sequence, flow, TRIAL, 5);
            if wrong == 2 {
                octets.truncate(at);
            }
            counting.frame(&octets, 0);
        }
        let report = counting.report();
        let stream = &report.streams[0];
        prop_assert_eq!(
            stream.frames + stream.duplicated + stream.corrupted + report.foreign + report.stale + report.misrouted,
            arrivals.len() as u64
        );
        let set: u32 = stream.bitmap.iter().map(|word| word.count_ones()).sum();
        prop_assert_eq!((u64::from(set), stream.flows.iter().sum::<u64>()), (stream.frames, stream.frames));
    }
}
