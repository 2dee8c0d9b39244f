//! Gateway, translator, firewall and balancer, packet by packet, with etherparse as the oracle.

use std::collections::HashSet;

use crate::bench::{Input, checksum, frame_of, payload, small, through};
use etherparse::{Ipv4Header, NetSlice, PacketBuilder, SingleVlanHeader, SlicedPacket, TransportSlice};
use routecast_probe::function::NetworkFunction;

/// An IPv4 header whose checksum is right.
fn ipv4(bytes: &[u8]) -> Ipv4Header {
    let (header, _) = Ipv4Header::from_slice(bytes).unwrap();
    assert_eq!(header.header_checksum, header.calc_header_checksum());
    header
}

/// The header that a router makes of another: one hop less.
fn after_a_hop(mut header: Ipv4Header) -> Ipv4Header {
    header.time_to_live -= 1;
    header.header_checksum = header.calc_header_checksum();
    header
}

#[test]
fn the_gateway_wraps_what_subscribers_send() {
    let mut gateway = small("bng", Some("access"), 200);
    for bytes in [64, 65, 300, 1518] {
        let inputs: Vec<_> = (0..200)
            .map(|flow| {
                let (mut frame, port) = frame_of(gateway.as_ref(), flow, bytes);
                payload(&mut frame, 42);
                Input::new(frame, port)
            })
            .collect();
        let output = through(gateway.as_mut(), &inputs);
        assert_eq!(output.tally.forwarded, 200);
        let mut keys = HashSet::new();
        for (input, out) in inputs.iter().zip(&output.frames) {
            let (frame, _) = out.as_ref().unwrap();
            assert_eq!(frame.len(), input.frame.len() + 28, "22 bytes off, 50 on (fig. 7)");
            assert_eq!(frame[12..14], [0x88, 0x47]);
            assert_eq!(frame[16] & 1, 1, "bottom of the label stack");
            let outer = ipv4(&frame[18..]);
            assert_eq!(usize::from(outer.total_len), frame.len() - 18);
            assert_eq!(outer.protocol.0, 47);
            assert_eq!(frame[38..42], [0xa0, 0, 8, 0], "checksum and key present, IPv4 within (RFC 2784, RFC 2890)");
            assert_eq!(checksum(&frame[38..]), 0);
            assert!(keys.insert(frame[46..50].to_vec()), "each subscriber has a key of its own");
            assert_eq!(ipv4(&frame[50..]), after_a_hop(ipv4(&input.frame[22..])));
            assert_eq!(frame[70..], input.frame[42..]);
        }
    }
}

#[test]
fn padding_does_not_go_through_the_tunnel() {
    let mut gateway = small("bng", Some("access"), 10);
    let (frame, port) = frame_of(gateway.as_ref(), 3, 64);
    let mut header = ipv4(&frame[22..]);
    header.total_len = 21;
    header.header_checksum = header.calc_header_checksum();
    let mut short = frame;
    header.write(&mut &mut short[22..]).unwrap();
    short[42] = 0x99;
    let output = through(gateway.as_mut(), &[Input::new(short, port)]);
    let (frame, _) = output.frames[0].as_ref().unwrap();
    assert_eq!(frame.len(), 50 + 21);
    assert_eq!(checksum(&frame[38..]), 0);
    assert_eq!(frame[70], 0x99);
}

#[test]
fn the_gateway_unwraps_what_comes_for_subscribers() {
    let mut access = small("bng", Some("access"), 200);
    let mut core = small("bng", Some("core"), 200);
    for bytes in [74, 78, 92, 93, 500, 1518] {
        let inputs: Vec<_> = (0..200)
            .map(|flow| {
                let (mut frame, port) = frame_of(core.as_ref(), flow, bytes);
                assert_eq!(checksum(&frame[38..]), 0, "the frames of a run have right GRE checksums");
                payload(&mut frame, 70);
                Input::new(frame, port)
            })
            .collect();
        let output = through(core.as_mut(), &inputs);
        assert_eq!(output.tally.forwarded, 200, "{:?}", output.tally);
        for (flow, (input, out)) in inputs.iter().zip(&output.frames).enumerate() {
            let (frame, port) = out.as_ref().unwrap();
            let inner = input.frame.len() - 50;
            assert_eq!(frame.len(), (22 + inner).max(60));
            assert!(frame[22 + inner..].iter().all(|&byte| byte == 0), "padding tells nothing of other frames");
            assert_eq!(ipv4(&frame[22..]), after_a_hop(ipv4(&input.frame[50..])));
            assert_eq!(frame[42..22 + inner], input.frame[70..]);
            // What the subscriber sends shows who it is: tags, address, MAC address and port.
            let (sent, from) = frame_of(access.as_ref(), flow as u64, 64);
            assert_eq!(frame[..6], sent[6..12]);
            assert_eq!(*port, from);
            assert_eq!(frame[12..22], sent[12..22]);
            let (outer, rest) = SingleVlanHeader::from_slice(&frame[14..]).unwrap();
            let (tag, _) = SingleVlanHeader::from_slice(rest).unwrap();
            assert_eq!((outer.ether_type.0, tag.ether_type.0), (0x8100, 0x0800));
            assert_eq!(ipv4(&frame[22..]).destination, ipv4(&sent[22..]).source);
        }
        // And it takes the same way: what the core sent back is accepted as a subscriber's tags.
        let back: Vec<_> = (0..200).map(|flow| frame_of(access.as_ref(), flow, 64)).collect();
        let back: Vec<_> = back.into_iter().map(|(frame, port)| Input::new(frame, port)).collect();
        assert_eq!(through(access.as_mut(), &back).tally.forwarded, 200);
    }
}

#[test]
fn the_gateway_drops_strangers_and_says_why() {
    let mut access = small("bng", Some("access"), 50);
    let (good, port) = frame_of(access.as_ref(), 1, 100);
    let mut core = small("bng", Some("core"), 50);
    let (tunnelled, _) = frame_of(core.as_ref(), 1, 100);
    let assert_drop = |gateway: &mut dyn NetworkFunction, frame: &[u8], change: &dyn Fn(&mut [u8]), reason: &str| {
        let mut frame = frame.to_vec();
        change(&mut frame);
        let output = through(gateway, &[Input::new(frame, port)]);
        assert_eq!((output.tally.forwarded, output.dropped(reason)), (0, 1), "{reason} {:?}", output.tally);
    };
    assert_drop(access.as_mut(), &good, &|frame| frame[15] ^= 0xff, "no_entry");
    assert_drop(access.as_mut(), &good, &|frame| frame[38] = 250, "no_entry");
    assert_drop(access.as_mut(), &good, &|frame| frame[12] = 0x81, "wrong_protocol");
    assert_drop(access.as_mut(), &good, &|frame| frame[22] = 0x46 ^ 0x20, "bad_header");
    assert_drop(access.as_mut(), &good, &|frame| frame[24] = 9, "too_short");
    assert_drop(access.as_mut(), &good, &|frame| frame[30] = 1, "time_to_live");
    assert_drop(core.as_mut(), &tunnelled, &|frame| frame[38] = 0x20, "wrong_protocol");
    assert_drop(core.as_mut(), &tunnelled, &|frame| frame[27] = 17, "wrong_protocol");
    assert_drop(core.as_mut(), &tunnelled, &|frame| frame[16] &= !1, "wrong_protocol");
    assert_drop(core.as_mut(), &tunnelled, &|frame| frame[46] ^= 0xff, "no_entry");
    assert_drop(core.as_mut(), &tunnelled, &|frame| frame[66] ^= 0xff, "no_entry");
    assert_drop(core.as_mut(), &tunnelled, &|frame| frame[58] = 1, "time_to_live");
    assert_drop(core.as_mut(), &tunnelled, &|frame| frame[20..22].copy_from_slice(&[0, 60]), "too_long");
}

/// Addresses, ports and checksum of a UDP or TCP packet whose checksums are right.
fn transport(frame: &[u8]) -> (Ipv4Header, u16, u16, u16) {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(NetSlice::Ipv4(ip)) = packet.net else { panic!("no IPv4") };
    let header = ipv4(ip.header().slice());
    match packet.transport.unwrap() {
        TransportSlice::Udp(udp) => {
            let right = udp.to_header().calc_checksum_ipv4(&header, udp.payload()).unwrap();
            assert!(udp.checksum() == 0 || udp.checksum() == right, "{} {right}", udp.checksum());
            (header, udp.source_port(), udp.destination_port(), udp.checksum())
        }
        TransportSlice::Tcp(tcp) => {
            let right = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload()).unwrap();
            assert_eq!(tcp.checksum(), right);
            (header, tcp.source_port(), tcp.destination_port(), tcp.checksum())
        }
        _ => panic!("neither UDP nor TCP"),
    }
}

#[test]
fn a_translator_gives_each_session_an_address_and_port_and_right_checksums() {
    let mut nat = small("nat44", None, 1000);
    let inputs: Vec<_> = (0..1000)
        .map(|flow| {
            let (frame, port) = frame_of(nat.as_ref(), flow, 64 + flow as usize);
            let (header, from, to, _) = transport(&frame);
            // A payload, with the checksum that etherparse gives it; every tenth without.
            let size = frame.len() - 42;
            let builder = PacketBuilder::ethernet2([1; 6], [2; 6])
                .ipv4(header.source, header.destination, 2 + (flow % 60) as u8)
                .udp(from, to);
            let mut built = Vec::new();
            let text: Vec<u8> = (0..size).map(|index| (index as u64 * 31 + flow) as u8).collect();
            builder.write(&mut built, &text).unwrap();
            if flow % 10 == 0 {
                built[40..42].fill(0);
            }
            Input::new(built, port)
        })
        .collect();
    let output = through(nat.as_mut(), &inputs);
    assert_eq!(output.tally.forwarded, 1000, "{:?}", output.tally);
    let mut seen = HashSet::new();
    for (flow, (input, out)) in inputs.iter().zip(&output.frames).enumerate() {
        let (frame, _) = out.as_ref().unwrap();
        let (before, _, to, _) = transport(&input.frame);
        let (after, port, destination_port, sum) = transport(frame);
        assert_eq!(sum == 0, flow % 10 == 0, "no checksum stays none (RFC 768)");
        assert!(seen.insert((after.source, port)), "two sessions with one outside address and port");
        assert_eq!((destination_port, after.destination), (to, before.destination));
        let mut expected = before;
        expected.source = after.source;
        assert_eq!(after, after_a_hop(expected));
        assert_eq!(frame[42..], input.frame[42..]);
        assert!(port >= 1024);
    }
}

#[test]
fn a_translator_drops_fragments_options_and_strangers() {
    let mut nat = small("nat44", None, 10);
    let (good, _) = frame_of(nat.as_ref(), 1, 100);
    let mut assert_drop = |change: &dyn Fn(&mut [u8]), reason: &str| {
        let mut frame = good.clone();
        change(&mut frame);
        let output = through(nat.as_mut(), &[Input::new(frame, 0)]);
        assert_eq!((output.tally.forwarded, output.dropped(reason)), (0, 1), "{reason} {:?}", output.tally);
    };
    assert_drop(&|frame| frame[20] |= 0x20, "wrong_protocol"); // more fragments
    assert_drop(&|frame| frame[21] = 3, "wrong_protocol"); // not the first one
    assert_drop(&|frame| frame[14] = 0x46, "wrong_protocol");
    assert_drop(&|frame| frame[23] = 1, "wrong_protocol"); // ICMP
    assert_drop(&|frame| frame[16..18].copy_from_slice(&[0, 27]), "too_short");
    assert_drop(&|frame| frame[34] ^= 0xff, "no_entry");
    assert_drop(&|frame| frame[23] = 6, "no_entry"); // the same five-tuple but for the protocol
    assert_drop(&|frame| frame[22] = 1, "time_to_live");
}

#[test]
fn a_balancer_keeps_a_connection_at_its_backend_and_checksums_right() {
    let mut balancer = small("l4_balancer", None, 100);
    let inputs: Vec<_> = (0..2000)
        .map(|flow| {
            let (frame, port) = frame_of(balancer.as_ref(), flow, 90);
            let (header, from, to, _) = transport(&frame);
            let builder = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4(header.source, header.destination, 64);
            let mut built = Vec::new();
            if flow % 2 == 0 {
                builder.udp(from, to).write(&mut built, b"a datagram").unwrap();
            } else {
                builder.tcp(from, to, 1, 1000).write(&mut built, b"a segment").unwrap();
            }
            Input::new(built, port)
        })
        .collect();
    let (first, again) = (through(balancer.as_mut(), &inputs), through(balancer.as_mut(), &inputs));
    assert_eq!(first.frames, again.frames);
    let mut backends = HashSet::new();
    for (input, out) in inputs.iter().zip(&first.frames) {
        let (before, from, to, _) = transport(&input.frame);
        let (after, from_now, to_now, _) = transport(&out.as_ref().unwrap().0);
        assert_eq!(
            (before.source, from, to, before.time_to_live),
            (after.source, from_now, to_now, after.time_to_live)
        );
        backends.insert(after.destination);
    }
    // 2000 connections on 100 backends: one without any has probability 100 · 0.99^2000 = 2e-7.
    assert_eq!(backends.len(), 100);
    let mut stranger = inputs[0].clone();
    stranger.frame[33] ^= 1;
    assert_eq!(through(balancer.as_mut(), &[stranger]).dropped("no_entry"), 1);
}

#[test]
fn a_firewall_lets_through_what_a_rule_permits_and_denies_the_rest() {
    let mut firewall = small("acl_firewall", None, 100);
    let inputs: Vec<_> = (0..500).map(|flow| frame_of(firewall.as_ref(), flow, 64)).collect();
    let inputs: Vec<_> = inputs.into_iter().map(|(frame, port)| Input::new(frame, port)).collect();
    let output = through(firewall.as_mut(), &inputs);
    assert_eq!(output.tally.forwarded, 500);
    for (input, out) in inputs.iter().zip(&output.frames) {
        assert_eq!(out.as_ref().unwrap().0, input.frame);
    }
    let strangers: Vec<_> = inputs
        .iter()
        .cloned()
        .map(|mut input| {
            input.frame[26] = 11; // rules are about sources in 10.0.0.0/8
            input
        })
        .collect();
    assert_eq!(through(firewall.as_mut(), &strangers).dropped("denied"), 500);
}
