//! Switches and the router, packet by packet, with etherparse as the oracle.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::bench::{Input, all_functions, frame_of, payload, small, through};
use etherparse::{Ethernet2Header, Ipv4Header, Ipv4HeaderSlice, SlicedPacket};
use routecast_probe::function::{FLOOD, route};
use routecast_probe::traffic::mac;

#[test]
fn every_function_forwards_its_own_frames_of_every_size() {
    for (twin, mut function) in all_functions() {
        let smallest = usize::from(twin.smallest_frame_bytes);
        let inputs: Vec<_> = (0..1000)
            .map(|flow| frame_of(function.as_ref(), flow, smallest + (flow as usize * 7) % (1519 - smallest)))
            .map(|(frame, port)| Input::new(frame, port))
            .collect();
        let output = through(function.as_mut(), &inputs);
        assert_eq!(output.tally.forwarded, 1000, "{} {}: {:?}", twin.function, twin.direction, output.tally.drops);
        assert!(output.frames.iter().all(Option::is_some));
        assert!(output.frames.iter().flatten().all(|(frame, _)| frame.len() >= 60));
    }
}

#[test]
fn frames_of_a_run_are_what_they_say() {
    for (twin, function) in all_functions() {
        if !["ipv4_router", "nat44", "l4_balancer"].contains(&twin.function) {
            continue;
        }
        for flow in 0..100 {
            let (frame, _) = frame_of(function.as_ref(), flow, 64 + flow as usize);
            let packet = SlicedPacket::from_ethernet(&frame).unwrap();
            let Some(etherparse::NetSlice::Ipv4(ip)) = packet.net else { panic!("no IPv4") };
            assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
            let Some(etherparse::TransportSlice::Udp(udp)) = packet.transport else { panic!("no UDP") };
            let right = udp.to_header().calc_checksum_ipv4(&ip.header().to_header(), udp.payload()).unwrap();
            assert_eq!(udp.checksum(), right);
        }
    }
}

#[test]
fn a_switch_sends_to_the_port_of_the_destination_and_changes_nothing() {
    let mut switch = small("l2_switch", None, 500);
    let mut inputs: Vec<_> = (0..500)
        .map(|flow| {
            let (mut frame, port) = frame_of(switch.as_ref(), flow, 64);
            payload(&mut frame, 14);
            Input::new(frame, port)
        })
        .collect();
    // A frame's port is that of its source, so the switch must send to a station by the port that it sends from.
    let mut ports = HashMap::new();
    for input in &inputs {
        let header = Ethernet2Header::from_slice(&input.frame).unwrap().0;
        ports.insert(header.source, input.port);
    }
    let mut stranger = inputs[0].clone();
    stranger.frame[..6].copy_from_slice(&[2, 9, 9, 9, 9, 9]);
    inputs.insert(7, stranger);
    let output = through(switch.as_mut(), &inputs);
    assert_eq!((output.tally.forwarded, output.dropped("no_entry")), (500, 1));
    assert!(output.frames[7].is_none());
    for (input, out) in inputs.iter().zip(&output.frames) {
        let Some((frame, port)) = out else { continue };
        assert_eq!(frame, &input.frame);
        assert_eq!(ports[&Ethernet2Header::from_slice(frame).unwrap().0.destination], *port);
    }
}

/// A frame with a VLAN tag.
fn tagged(to: [u8; 6], from: [u8; 6], vlan: u16) -> Vec<u8> {
    let mut frame = [&to[..], &from[..], &[0x81, 0], &vlan.to_be_bytes(), &[8, 0]].concat();
    frame.resize(60, 0);
    frame
}

#[test]
fn learned_addresses_are_found_afterwards_in_their_vlan_only() {
    // 100 stations known, so 100 entries taken: a table for 200 has room for 100 more.
    let mut switch = small("learning_switch", None, 100);
    let (known, _) = frame_of(switch.as_ref(), 0, 64);
    let known: [u8; 6] = known[6..12].try_into().unwrap();
    let vlan = {
        let (frame, _) = frame_of(switch.as_ref(), 0, 64);
        u16::from_be_bytes([frame[14], frame[15]])
    };
    let port_of = |switch: &mut Box<_>, frame: Vec<u8>, port| {
        let switch: &mut Box<dyn routecast_probe::function::NetworkFunction> = switch;
        let output = through(switch.as_mut(), &[Input::new(frame, port)]);
        output.frames[0].as_ref().map(|&(_, port)| port)
    };
    // A station that moves to port 77 is found there, with the priority bits of the tag passed over.
    assert_ne!(port_of(&mut switch, tagged(known, [2, 0, 0, 0, 0, 1], vlan), 3), Some(77));
    assert_eq!(port_of(&mut switch, tagged([2; 6], known, vlan), 77), Some(FLOOD));
    assert_eq!(port_of(&mut switch, tagged(known, known, vlan | 0xe000), 77), Some(77));
    // In another VLAN nobody knows it.
    assert_eq!(port_of(&mut switch, tagged(known, known, vlan ^ 1), 5), Some(FLOOD));
    assert_eq!(port_of(&mut switch, tagged(known, known, vlan), 77), Some(77));
    // A full table forgets nobody, and floods to strangers.
    let strangers: Vec<_> = (0..1000).map(|n| Input::new(tagged(known, mac((1 << 45) + n), vlan), 9)).collect();
    assert_eq!(through(switch.as_mut(), &strangers).tally.forwarded, 1000);
    assert_eq!(port_of(&mut switch, tagged(known, [2, 0, 0, 0, 0, 1], vlan), 3), Some(77));
    // Group addresses are no sources; frames without a tag are not for this switch.
    let bad = [tagged(known, [0xff; 6], vlan), vec![0; 60]].map(|frame| Input::new(frame, 1));
    let output = through(switch.as_mut(), &bad);
    assert_eq!((output.dropped("bad_header"), output.dropped("wrong_protocol")), (1, 1));
}

#[test]
fn an_mpls_switch_swaps_labels_one_to_one_and_takes_a_hop_off() {
    let mut switch = small("mpls_switch", None, 300);
    let inputs: Vec<_> = (0..300)
        .map(|flow| {
            let (mut frame, port) = frame_of(switch.as_ref(), flow, 100);
            frame[16] |= (flow as u8 & 7) << 1; // traffic class
            frame[17] = 2 + (flow as u8 & 0x7f);
            payload(&mut frame, 18);
            Input::new(frame, port)
        })
        .collect();
    let output = through(switch.as_mut(), &inputs);
    assert_eq!(output.tally.forwarded, 300);
    let mut labels = HashSet::new();
    for (input, out) in inputs.iter().zip(&output.frames) {
        let (frame, _) = out.as_ref().unwrap();
        let entry = |frame: &[u8]| u32::from_be_bytes(frame[14..18].try_into().unwrap());
        let (old, new) = (entry(&input.frame), entry(frame));
        assert_eq!(new & 0xfff, (old & 0xfff) - 1, "class and bottom as before, one hop less");
        assert!(labels.insert(new >> 12));
        assert_eq!(frame[18..], input.frame[18..]);
        assert_eq!(frame[12..14], [0x88, 0x47]);
        assert_eq!(frame[6..12], input.frame[..6], "from the switch that it was sent to");
    }
    let mut expired = inputs[0].clone();
    expired.frame[17] = 1;
    let mut unknown = inputs[1].clone();
    unknown.frame[12] = 8;
    let output = through(switch.as_mut(), &[expired, unknown]);
    assert_eq!((output.dropped("time_to_live"), output.dropped("wrong_protocol")), (1, 1));
}

#[test]
fn a_router_sends_to_the_longest_prefix_with_one_hop_less_and_a_right_checksum() {
    const ROUTES: u64 = 2000;
    let mut router = small("ipv4_router", None, ROUTES);
    let prefixes: Vec<_> = (0..ROUTES).map(|number| route(number, 2000, false, 42)).collect();
    let inputs: Vec<_> = (0..2 * ROUTES)
        .map(|flow| {
            let (mut frame, port) = frame_of(router.as_ref(), flow, 64 + flow as usize % 1400);
            payload(&mut frame, 34);
            Input::new(frame, port)
        })
        .collect();
    let output = through(router.as_mut(), &inputs);
    assert_eq!(output.tally.forwarded, 2 * ROUTES);
    let mut hops = BTreeMap::new();
    for (input, out) in inputs.iter().zip(&output.frames) {
        let (frame, _) = out.as_ref().unwrap();
        let (mut expected, _) = Ipv4Header::from_slice(&input.frame[14..]).unwrap();
        expected.time_to_live -= 1;
        expected.header_checksum = expected.calc_header_checksum();
        let (header, _) = Ipv4Header::from_slice(&frame[14..]).unwrap();
        assert_eq!(header, expected);
        assert_eq!(frame[34..], input.frame[34..]);
        assert_eq!(frame[12..14], [8, 0]);
        assert_eq!(frame[6..12], input.frame[..6], "from the router that it was sent to");
        // The longest of all prefixes that match; a linear search is the oracle.
        let address = u32::from_be_bytes(header.destination);
        let matches = prefixes.iter().filter(|route| (address ^ route.prefix) >> (32 - u32::from(route.length)) == 0);
        let best = matches.max_by_key(|route| route.length).unwrap();
        let to: [u8; 6] = frame[..6].try_into().unwrap();
        assert_eq!(*hops.entry(best.next_hop).or_insert(to), to);
    }
    let addresses: HashSet<_> = hops.values().collect();
    assert_eq!(addresses.len(), hops.len(), "each next hop has an address of its own");
}

#[test]
fn a_router_drops_what_rfc_1812_says_and_says_why() {
    let mut router = small("ipv4_router", None, 100);
    let (good, port) = frame_of(router.as_ref(), 1, 100);
    let with = |change: &dyn Fn(&mut Vec<u8>), right_checksum: bool| {
        let mut frame = good.clone();
        change(&mut frame);
        if right_checksum {
            let mut header = Ipv4HeaderSlice::from_slice(&frame[14..]).unwrap().to_header();
            header.header_checksum = header.calc_header_checksum();
            header.write(&mut &mut frame[14..]).unwrap();
        }
        Input::new(frame, port)
    };
    let cases: [(&str, Input); 9] = [
        ("bad_checksum", with(&|frame| frame[15] ^= 4, false)),
        ("time_to_live", with(&|frame| frame[22] = 1, true)),
        ("time_to_live", with(&|frame| frame[22] = 0, true)),
        ("bad_header", with(&|frame| frame[14] = 0x65, false)),
        ("bad_header", with(&|frame| frame[14] = 0x44, false)),
        ("bad_header", with(&|frame| frame[16..18].copy_from_slice(&[0, 19]), false)),
        ("too_short", with(&|frame| frame[16..18].copy_from_slice(&[0, 83]), false)),
        ("wrong_protocol", with(&|frame| frame[12] = 0x86, false)),
        ("no_entry", with(&|frame| frame[30..34].copy_from_slice(&[240, 0, 0, 1]), true)),
    ];
    for (reason, input) in cases {
        let output = through(router.as_mut(), &[input]);
        assert_eq!((output.tally.forwarded, output.dropped(reason)), (0, 1), "{reason}: {:?}", output.tally);
    }
    let output = through(router.as_mut(), &[with(&|frame| frame.truncate(33), false), Input::new(good.clone(), 0)]);
    assert_eq!((output.tally.forwarded, output.dropped("too_short")), (1, 1));

    // Options are part of what the checksum covers; the packet goes on with them.
    let mut header = Ipv4HeaderSlice::from_slice(&good[14..]).unwrap().to_header();
    header.options = [1u8, 1, 1, 0].into();
    header.header_checksum = header.calc_header_checksum();
    let mut frame = good.clone();
    header.write(&mut &mut frame[14..]).unwrap();
    let output = through(router.as_mut(), &[Input::new(frame.clone(), 0)]);
    let (header, _) = Ipv4Header::from_slice(&output.frames[0].as_ref().unwrap().0[14..]).unwrap();
    assert_eq!(header.header_checksum, header.calc_header_checksum());
    frame[34] = 7;
    assert_eq!(through(router.as_mut(), &[Input::new(frame, 0)]).dropped("bad_checksum"), 1);
}
