//! The receiving program, given frames one by one in any order: `BPF_PROG_TEST_RUN` without live frames.

use super::*;
use crate::frame::{Signature, Template, pattern_sum};
use crate::request::{Encapsulation, Flow as Addresses, Tunnel};
use crate::sys::{capabilities, test_run};

const TRIAL: u8 = 5;
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;

/// The receiver without an interface; `None`, said aloud, where programs cannot be loaded.
fn sink(frames: u64, flows: u32, check_below: u32) -> Option<Sink> {
    let missing = capabilities::missing(false);
    if !missing.is_empty() || crate::programs::OBJECTS.is_empty() {
        eprintln!("SKIPPED: needs {missing:?} and eBPF programs");
        return None;
    }
    let interface = Interface {
        name: "none".to_owned(),
        index: 0,
        driver: String::new(),
        mtu: 1500,
        running: true,
        receive_queues: 1,
    };
    let (loaded, maps) = Sink::load(Room { words: 1 << 10, flows: 16 }, false).unwrap();
    let mut sink = Sink {
        interface,
        netns: None,
        mode: Mode::Driver,
        several: false,
        expected: Vec::new(),
        check_below,
        maps,
        loaded,
    };
    sink.reset(TRIAL, &[Expected { stream: 3, frames, flows }]).unwrap();
    Some(sink)
}

fn template(ipv6: bool, flow: u16, encapsulation: &Encapsulation) -> Template {
    let [source, destination] = if ipv6 { ["2001:2:0:1::2", "2001:2:0:8001::2"] } else { ["198.18.1.2", "198.19.1.2"] };
    let addresses = Addresses {
        source_mac: "02:00:00:00:01:02".to_owned(),
        destination_mac: "02:00:00:00:01:01".to_owned(),
        source_address: source.to_owned(),
        destination_address: destination.to_owned(),
        source_port: 1024 + flow,
        destination_port: 7,
    };
    Template::new(&addresses, flow, encapsulation).unwrap()
}

fn frame(ipv6: bool, bytes: u16, flow: u16, sequence: u32) -> Vec<u8> {
    encapsulated(ipv6, bytes, flow, sequence, &Encapsulation::default())
}

fn encapsulated(ipv6: bool, bytes: u16, flow: u16, sequence: u32, encapsulation: &Encapsulation) -> Vec<u8> {
    let mut frame = vec![0; usize::from(bytes) - 4];
    let sent_ns = crate::sys::clock::monotonic_ns();
    let signature = Signature { sequence, sent_ns, flow, trial: TRIAL, stream: 3 };
    let template = template(ipv6, flow, encapsulation);
    template.write(&mut frame, pattern_sum(bytes, template.head_bytes()), signature);
    frame
}

impl Sink {
    fn give(&mut self, frame: &[u8]) -> u32 {
        self.loaded.with_fd(|fd| test_run::once(fd, frame)).unwrap().unwrap()
    }

    fn counted(&mut self) -> Received {
        self.collect().unwrap().streams.remove(0)
    }
}

#[test]
fn copies_and_late_arrivals_are_told_from_first_ones() {
    let Some(mut sink) = sink(100, 2, u32::MAX) else { return };
    // Flow 0: 0, 2, 1 (late), 2 (copy), 4; flow 1: 3, and 1 is a copy whatever its flow says.
    for (flow, sequence) in [(0, 0), (0, 2), (0, 1), (0, 2), (1, 3), (1, 1), (0, 4)] {
        assert_eq!(sink.give(&frame(false, 64, flow, sequence)), XDP_DROP);
    }
    let counted = sink.counted();
    assert_eq!((counted.frames, counted.duplicated, counted.reordered, counted.corrupted), (5, 2, 1, 0));
    assert_eq!((counted.bitmap[0], counted.flows), (0b1_1111, vec![4, 1]));
    assert_eq!((counted.latency.count, counted.bytes), (5, 5 * 64));
    // Only 4 arrived directly after the frame before it; copies do not come between.
    assert_eq!(counted.ipdv.count, 1);
}

#[test]
fn any_changed_octet_makes_a_frame_corrupted_or_foreign_and_never_received() {
    let Some(mut sink) = sink(1000, 1, u32::MAX) else { return };
    for ipv6 in [false, true] {
        for bytes in [84_u16, 85, 200, 1518] {
            let intact = frame(ipv6, bytes, 0, 1);
            for at in 12..intact.len() {
                // No checksum covers an IPv6 header's traffic class, flow label and hop limit.
                if ipv6 && ((14..18).contains(&at) || at == 21) {
                    continue;
                }
                let mut changed = intact.clone();
                changed[at] ^= 0x04;
                let _ = sink.give(&changed);
                assert_eq!(sink.counted().frames, 0, "octet {at} of {bytes} B");
            }
            let mut cut = intact.clone();
            cut.pop();
            let _ = sink.give(&cut);
            assert_eq!(sink.counted().frames, 0);
        }
    }
    assert!(sink.counted().corrupted > 1000);
}

/// No tags, one, two; no tunnel, VXLAN, GRE; each with each.
fn encapsulations() -> Vec<Encapsulation> {
    let tunnels = [
        None,
        Some(Tunnel::Vxlan { vni: 0x00ab_cdef, destination_address: None }),
        Some(Tunnel::Gre { destination_address: None }),
    ];
    let tags: [&[u16]; 3] = [&[], &[10], &[100, 10]];
    let with_vlans =
        |tunnel: &Option<Tunnel>| tags.map(|ids| Encapsulation { vlan_ids: ids.to_vec(), tunnel: tunnel.clone() });
    tunnels.iter().flat_map(with_vlans).collect()
}

#[test]
fn frames_with_tags_and_tunnels_are_counted_whatever_their_length_and_a_changed_octet_is_found() {
    for check_below in [0, u32::MAX] {
        let Some(mut sink) = sink(50_000, 1, check_below) else { return };
        let mut sequence = 0;
        for encapsulation in encapsulations() {
            for ipv6 in [false, true] {
                let template = template(ipv6, 0, &encapsulation);
                let least = template.smallest_frame_bytes();
                for bytes in (least..least + 40).chain([512, 1518]) {
                    let intact = encapsulated(ipv6, bytes, 0, sequence, &encapsulation);
                    assert_eq!(sink.give(&intact), XDP_DROP, "{encapsulation:?} IPv6 {ipv6} {bytes} B");
                    sequence += 1;
                    if bytes == least {
                        let mut changed = encapsulated(ipv6, bytes, 0, sequence, &encapsulation);
                        // The last octet before the signature is the UDP checksum's.
                        changed[template.head_bytes() - 1] ^= 0x20;
                        let _ = sink.give(&changed);
                    }
                }
            }
        }
        let counted = sink.counted();
        assert_eq!((counted.frames, counted.duplicated), (u64::from(sequence), 0));
        assert_eq!(counted.corrupted, 18);
    }
}

#[test]
fn headers_around_a_datagram_are_checked_too() {
    let Some(mut sink) = sink(100, 1, u32::MAX) else { return };
    let vxlan = Tunnel::Vxlan { vni: 7, destination_address: None };
    let encapsulation = Encapsulation { vlan_ids: vec![], tunnel: Some(vxlan) };
    // Total length and checksum of the outer IPv4 header, length of the outer UDP header.
    for at in [16, 24, 38] {
        let mut wrong = encapsulated(false, 200, 0, 1, &encapsulation);
        wrong[at] ^= 0x01;
        assert_eq!(sink.give(&wrong), XDP_DROP);
    }
    assert_eq!((sink.counted().frames, sink.counted().corrupted), (0, 3));
}

#[test]
fn frames_of_every_length_are_intact_whether_the_pattern_is_read_or_believed() {
    for check_below in [0, u32::MAX] {
        let Some(mut sink) = sink(5000, 1, check_below) else { return };
        let mut sequence = 0;
        for ipv6 in [false, true] {
            for bytes in (if ipv6 { 84 } else { 64 })..=1518 {
                assert_eq!(sink.give(&frame(ipv6, bytes, 0, sequence)), XDP_DROP);
                sequence += 1;
            }
        }
        let counted = sink.counted();
        assert_eq!((counted.frames, counted.corrupted), (u64::from(sequence), 0));
    }
}

#[test]
fn without_reading_the_pattern_headers_and_signature_are_still_checked() {
    let Some(mut sink) = sink(1000, 1, 0) else { return };
    let intact = frame(false, 1518, 0, 1);
    for at in 12..60 {
        let mut changed = intact.clone();
        changed[at] ^= 0x04;
        let _ = sink.give(&changed);
        assert_eq!(sink.counted().frames, 0, "octet {at}");
    }
    assert_eq!(sink.give(&intact), XDP_DROP);
    assert_eq!(sink.counted().frames, 1);
}

#[test]
fn what_is_not_of_this_trial_is_not_counted_as_it() {
    let Some(mut sink) = sink(10, 1, u32::MAX) else { return };
    let intact = frame(false, 64, 0, 1);
    let mut arp = intact.clone();
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    assert_eq!(sink.give(&arp), XDP_PASS);
    let signature = 42;
    for (at, change) in [(signature + 16, 1), (signature + 17, 1)] {
        let mut other = intact.clone();
        other[at] ^= change;
        assert_eq!(sink.give(&other), XDP_DROP);
    }
    // A number beyond the last one, a flow beyond the last one.
    assert_eq!(sink.give(&frame(false, 64, 0, 10)), XDP_DROP);
    assert_eq!(sink.give(&frame(false, 64, 1, 1)), XDP_DROP);
    let report = sink.collect().unwrap();
    assert_eq!((report.foreign, report.stale, report.misrouted), (1, 1, 1));
    assert_eq!((report.streams[0].frames, report.streams[0].corrupted), (0, 2));
}

#[test]
fn a_reset_forgets_everything() {
    let Some(mut sink) = sink(100, 1, u32::MAX) else { return };
    assert_eq!(sink.give(&frame(false, 64, 0, 7)), XDP_DROP);
    assert_eq!(sink.seen().unwrap(), 1);
    sink.reset(TRIAL, &[Expected { stream: 3, frames: 100, flows: 1 }]).unwrap();
    assert_eq!(sink.seen().unwrap(), 0);
    let counted = sink.counted();
    assert_eq!((counted.frames, counted.bitmap[0], counted.latency.count), (0, 0, 0));
    assert!(counted.latency.histogram.is_empty());
}

#[test]
fn frames_count_in_the_part_in_which_they_arrive() {
    let Some(mut sink) = sink(1000, 1, u32::MAX) else { return };
    let now = crate::sys::clock::monotonic_ns;
    // Parts of 1 ms, of which 50 are over; the last frames arrive after all parts.
    let grid = Grid::new(now() - 50_000_000, 1.0);
    sink.begins(grid).unwrap();
    let (mut least, mut most) = (vec![0_u64; parts::ROOM], vec![0_u64; parts::ROOM]);
    for sequence in 0..200 {
        let before = grid.part(now());
        assert_eq!(sink.give(&frame(false, 64, 0, sequence)), XDP_DROP);
        let after = grid.part(now());
        most[before..=after].iter_mut().for_each(|count| *count += 1);
        least[before] += u64::from(before == after);
        if sequence % 10 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    let counted = sink.counted();
    assert_eq!((counted.parts.len(), counted.parts.iter().sum::<u64>()), (parts::ROOM, 200));
    for (part, &count) in counted.parts.iter().enumerate() {
        assert!((least[part]..=most[part]).contains(&count), "part {part}: {count}");
    }
    sink.reset(TRIAL, &[Expected { stream: 3, frames: 1000, flows: 1 }]).unwrap();
    sink.begins(Grid::new(now() - 60_000_000_000, 1.0)).unwrap();
    assert_eq!(sink.give(&frame(false, 64, 0, 1)), XDP_DROP);
    assert_eq!(sink.counted().parts[parts::ROOM - 1], 1);
}
