use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::*;
use crate::request::Tunnel;

fn flow(ipv6: bool) -> request::Flow {
    let [source, destination] = if ipv6 { ["2001:2:0:1::2", "2001:2:0:8001::2"] } else { ["198.18.1.2", "198.19.1.2"] };
    request::Flow {
        source_mac: "02:00:00:00:01:02".into(),
        destination_mac: "02:00:00:00:01:01".into(),
        source_address: source.into(),
        destination_address: destination.into(),
        source_port: 49_152,
        destination_port: 7,
    }
}

fn smallest(ipv6: bool) -> u16 {
    Template::new(&flow(ipv6), 0, &Encapsulation::default()).unwrap().smallest_frame_bytes()
}

fn built(ipv6: bool, frame_bytes: u16, signature: Signature) -> Vec<u8> {
    let mut frame = vec![0xee; frame_bytes as usize - FCS_BYTES];
    let template = Template::new(&flow(ipv6), signature.flow, &Encapsulation::default()).unwrap();
    template.write(&mut frame, pattern_sum(frame_bytes, template.head_bytes()), signature);
    frame
}

fn signatures() -> impl Strategy<Value = Signature> {
    (any::<u32>(), any::<u64>(), any::<u16>(), any::<u8>(), any::<u8>())
        .prop_map(|(sequence, sent_ns, flow, trial, stream)| Signature { sequence, sent_ns, flow, trial, stream })
}

proptest! {
    /// etherparse computes lengths and checksums in its own way; both must agree.
    #[test]
    fn another_library_finds_every_field_and_both_checksums_right(
        ipv6: bool, extra in 0_u16..9_200, signature in signatures(),
    ) {
        let frame_bytes = smallest(ipv6) + extra;
        let frame = built(ipv6, frame_bytes, signature);
        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("no UDP") };
        let header = udp.to_header();
        prop_assert_eq!((header.source_port, header.destination_port), (49_152, 7));
        let checksum = match packet.net {
            Some(NetSlice::Ipv4(ip)) => {
                let ip = ip.header().to_header();
                prop_assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                prop_assert_eq!(usize::from(ip.total_len), frame.len() - 14);
                header.calc_checksum_ipv4(&ip, udp.payload()).unwrap()
            }
            Some(NetSlice::Ipv6(ip)) => {
                let ip = ip.header().to_header();
                prop_assert_eq!(usize::from(ip.payload_length), frame.len() - 54);
                header.calc_checksum_ipv6(&ip, udp.payload()).unwrap()
            }
            _ => panic!("no IP"),
        };
        prop_assert_eq!(header.checksum, checksum);
        prop_assert_eq!(usize::from(header.length), udp.payload().len() + 8);
        prop_assert_eq!(Signature::read(udp.payload()), Some(signature));
        prop_assert_eq!(verify(&frame), Verdict::Intact(signature));
    }

    #[test]
    fn any_octets_are_judged_without_a_panic(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = verify(&octets);
    }

    /// A test frame whose headers lie reaches deeper into the parser than noise does.
    #[test]
    fn a_frame_with_lying_headers_is_never_intact(
        ipv6: bool, extra in 0_u16..300, signature in signatures(), at in 12_usize..380, wrong in 1_u8..,
    ) {
        let mut frame = built(ipv6, smallest(ipv6) + extra, signature);
        let at = 12 + (at - 12) % (frame.len() - 12);
        frame[at] ^= wrong;
        // No checksum covers an IPv6 header's traffic class, flow label and hop limit.
        let free = ipv6 && (at == 14 && wrong < 16 || (15..18).contains(&at) || at == 21);
        prop_assert_eq!(matches!(verify(&frame), Verdict::Intact(_)), free);
    }

    #[test]
    fn a_truncated_or_lengthened_frame_is_never_intact(
        ipv6: bool, extra in 0_u16..300, signature in signatures(), length in 0_usize..400,
    ) {
        let mut frame = built(ipv6, smallest(ipv6) + extra, signature);
        let full_length = frame.len();
        frame.resize(length, 0);
        prop_assert_eq!(matches!(verify(&frame), Verdict::Intact(_)), length == full_length);
    }
}

fn encapsulations() -> impl Strategy<Value = Encapsulation> {
    let tunnel = prop_oneof![
        Just(None),
        (0_u32..1 << 24).prop_map(|vni| Some(Tunnel::Vxlan { vni, destination_address: None })),
        Just(Some(Tunnel::Gre { destination_address: None })),
    ];
    (prop::collection::vec(1_u16..4095, 0..3), tunnel).prop_map(|(vlan_ids, tunnel)| Encapsulation { vlan_ids, tunnel })
}

proptest! {
    /// etherparse reads tags, the outer headers and, from where ours says that it begins, the datagram.
    #[test]
    fn another_library_finds_tags_and_outer_headers_right(
        ipv6: bool, encapsulation in encapsulations(), extra in 0_u16..2_000, signature in signatures(),
    ) {
        let template = Template::new(&flow(ipv6), signature.flow, &encapsulation).unwrap();
        let frame_bytes = template.smallest_frame_bytes() + extra;
        let mut frame = vec![0xee; frame_bytes as usize - FCS_BYTES];
        template.write(&mut frame, pattern_sum(frame_bytes, template.head_bytes()), signature);
        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        let ids: Vec<u16> = packet.vlan_ids().iter().map(|id| id.value()).collect();
        prop_assert_eq!(&ids, &encapsulation.vlan_ids);
        let outer = 14 + 4 * ids.len();
        match &packet.net {
            Some(NetSlice::Ipv4(ip)) => {
                let ip = ip.header().to_header();
                prop_assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                prop_assert_eq!(usize::from(ip.total_len), frame.len() - outer);
            }
            Some(NetSlice::Ipv6(ip)) => {
                prop_assert_eq!(usize::from(ip.header().payload_length()), frame.len() - outer - 40);
            }
            _ => panic!("no IP"),
        }
        if let (Some(Tunnel::Vxlan { vni, .. }), Some(TransportSlice::Udp(udp))) =
            (&encapsulation.tunnel, &packet.transport)
        {
            prop_assert_eq!((udp.destination_port(), udp.checksum()), (4789, 0));
            prop_assert_eq!(usize::from(udp.length()), udp.payload().len() + 8);
            prop_assert_eq!(&udp.payload()[4..7], &vni.to_be_bytes()[1..]);
            let inner = SlicedPacket::from_ethernet(&udp.payload()[8..]).unwrap();
            prop_assert!(matches!(inner.transport, Some(TransportSlice::Udp(_))));
        }
        let inner = SlicedPacket::from_ip(&frame[template.datagram()..]).unwrap();
        let Some(TransportSlice::Udp(udp)) = inner.transport else { panic!("no UDP") };
        prop_assert_eq!(Signature::read(udp.payload()), Some(signature));
        prop_assert_eq!(verify(&frame), Verdict::Intact(signature));
        prop_assert_eq!(super::signature(&frame), Some(signature));
    }

    /// What a tunnel's headers say of their lengths and checksums is checked, what is beyond any checksum is not.
    #[test]
    fn a_frame_in_a_tunnel_with_lying_lengths_is_never_intact(
        ipv6: bool, vxlan: bool, signature in signatures(), wrong in 1_u8..,
    ) {
        let tunnel = if vxlan {
            Tunnel::Vxlan { vni: 5, destination_address: None }
        } else {
            Tunnel::Gre { destination_address: None }
        };
        let encapsulation = Encapsulation { vlan_ids: vec![10], tunnel: Some(tunnel) };
        let template = Template::new(&flow(ipv6), signature.flow, &encapsulation).unwrap();
        let mut frame = vec![0; 300];
        template.write(&mut frame, pattern_sum(304, template.head_bytes()), signature);
        for at in if ipv6 { [22, 23] } else { [20, 21] } {
            let mut lying = frame.clone();
            lying[at] ^= wrong;
            prop_assert!(!matches!(verify(&lying), Verdict::Intact(_)));
        }
    }
}

#[test]
fn wrong_identifiers_and_outer_addresses_are_refused() {
    let refused = |encapsulation: &str| {
        let encapsulation = serde_json::from_str(encapsulation).unwrap();
        Template::new(&flow(false), 0, &encapsulation).unwrap_err().to_string()
    };
    let cases = [
        (r#"{"vlan_ids": [0]}"#, "encapsulation.vlan_ids[0]: got 0; "),
        (r#"{"vlan_ids": [10, 4095]}"#, "encapsulation.vlan_ids[1]: got 4095; "),
        (r#"{"vlan_ids": [1, 2, 3]}"#, "encapsulation.vlan_ids: got 3; "),
        (r#"{"tunnel": {"kind": "vxlan", "vni": 16777216}}"#, "encapsulation.tunnel.vni: got 16777216; "),
        (
            r#"{"tunnel": {"kind": "gre", "destination_address": "2001:2::1"}}"#,
            "encapsulation.tunnel.destination_address: got 2001:2::1; ",
        ),
    ];
    for (encapsulation, message) in cases {
        assert!(refused(encapsulation).starts_with(message), "{}", refused(encapsulation));
    }
}

#[test]
fn a_frame_that_was_routed_and_tagged_is_intact() {
    let signature = Signature { sequence: 1, sent_ns: 2, flow: 3, trial: 4, stream: 5 };
    let mut frame = built(false, 128, signature);
    frame[..12].fill(0xab);
    // A router counts the TTL down and mends the checksum (RFC 1624).
    frame[22] -= 1;
    let checksum = u32::from(u16::from_be_bytes([frame[24], frame[25]])) + 0x0100;
    frame[24..26].copy_from_slice(&fold(checksum).to_be_bytes());
    frame.splice(12..12, [0x81, 0x00, 0x00, 0x64]);
    assert_eq!(verify(&frame), Verdict::Intact(signature));
}

#[test]
fn a_checksum_of_zero_is_sent_as_all_ones() {
    let zero = (0..=u16::MAX).find_map(|low| {
        let signature = Signature { sequence: u32::from(low), sent_ns: 0, flow: 0, trial: 1, stream: 0 };
        let frame = built(false, 64, signature);
        (frame[40..42] == [0xff, 0xff]).then_some(frame)
    });
    assert!(matches!(verify(&zero.unwrap()), Verdict::Intact(_)));
}

#[test]
fn the_smallest_frames_are_64_and_with_ipv6_84_octets() {
    assert_eq!((smallest(false), smallest(true)), (64, 84));
}

#[test]
fn an_ethernet_address_is_read_or_refused() {
    assert_eq!(mac("02:00:00:00:01:fE"), Some([2, 0, 0, 0, 1, 0xfe]));
    for wrong in ["", "02:00:00:00:01", "02:00:00:00:01:02:03", "2:0:0:0:1:2", "02:00:00:00:01:0g", "+2:00:00:00:01:02"]
    {
        assert_eq!(mac(wrong), None, "{wrong}");
    }
}

#[test]
fn a_flow_between_two_ip_versions_is_refused() {
    let mixed = request::Flow { destination_address: "2001:2::1".into(), ..flow(false) };
    let message = Template::new(&mixed, 3, &Encapsulation::default()).unwrap_err().to_string();
    assert!(message.starts_with("flows[3].destination_address: got 2001:2::1; "), "{message}");
}
