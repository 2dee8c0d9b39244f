use super::link::{Addresses, Direction, Link, Tuple};
use super::*;

fn pcap(link: u32, packets: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link] {
        file.extend(u32::to_le_bytes(word));
    }
    for (second, microsecond, bytes) in packets {
        for word in [*second, *microsecond, bytes.len() as u32, bytes.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(*bytes);
    }
    file
}

fn parsed(file: &[u8], options: Options) -> Parsed<Recording> {
    of(&mut Window::new(Box::new(file), &|| true), options)
}

fn message(file: &[u8]) -> String {
    match parsed(file, Options::default()) {
        Err(Fault::Wrong(message)) => message,
        other => panic!("{other:?}"),
    }
}

/// A packet of UDP from port 7 to a port, from 10.0.0.1 to 10.0.0.2.
fn udp(port: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 7];
    packet.extend(port.to_be_bytes());
    packet.extend([0, 8, 0, 0]);
    packet
}

fn after(header: &[u8], packet: &[u8]) -> Vec<u8> {
    [&[0; 12], header, packet].concat()
}

fn tuple(port: u16) -> Tuple {
    let [high, low] = port.to_be_bytes();
    Tuple { addresses: Addresses::V4([10, 0, 0, 1, 10, 0, 0, 2]), protocol: 17, ports: Some([0, 7, high, low]) }
}

#[test]
fn outer_tags_are_passed_and_labels_pppoe_and_old_tags_stop_a_card() {
    let cases: [(&[u8], std::result::Result<Tuple, Obstacle>); 6] = [
        (&[0x08, 0x00], Ok(tuple(9))),
        (&[0x81, 0x00, 0, 5, 0x08, 0x00], Ok(tuple(9))),
        (&[0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 6, 0x08, 0x00], Ok(tuple(9))),
        (&[0x91, 0x00, 0, 5, 0x81, 0x00, 0, 6, 0x08, 0x00], Err(Obstacle::OldTag)),
        (&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], Err(Obstacle::Mpls)),
        (&[0x88, 0x64, 0x11, 0, 0, 1, 0, 30, 0x00, 0x21], Err(Obstacle::Pppoe)),
    ];
    for (header, outer) in cases {
        let bytes = after(header, &udp(9));
        assert_eq!(found(Link(1), &bytes, false, false).flow, outer, "{header:x?}");
        assert_eq!(found(Link(1), &bytes, false, true).flow, Ok(tuple(9)), "{header:x?}");
    }
}

#[test]
fn tunnels_have_an_outer_and_an_inner_flow() {
    let ethernet = after(&[0x08, 0x00], &udp(9));
    let vxlan = [&udp(4789)[..], &[8, 0, 0, 0, 0, 0, 1, 0], &ethernet].concat();
    let gtp = [&udp(2152)[..], &[0x34, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0], &udp(9)].concat();
    let mut gre = udp(0);
    gre[9] = 47;
    gre.truncate(20);
    gre.extend([0x20, 0, 0x08, 0x00, 0, 0, 0, 1]);
    gre.extend(udp(9));
    for packet in [vxlan, gtp, gre] {
        let bytes = after(&[0x08, 0x00], &packet);
        assert_ne!(found(Link(1), &bytes, false, false).flow, Ok(tuple(9)));
        assert_eq!(found(Link(1), &bytes, false, true).flow, Ok(tuple(9)));
        let cut = &bytes[..bytes.len() - 20];
        assert_eq!(found(Link(1), cut, true, true).flow, Err(Obstacle::Cut));
    }
}

#[test]
fn a_packet_that_is_cut_before_its_ports_is_not_hashed_and_a_fragment_by_its_addresses() {
    let mut bytes = after(&[0x08, 0x00], &udp(9));
    assert_eq!(found(Link(1), &bytes[..36], true, false).flow, Err(Obstacle::Cut));
    assert_eq!(found(Link(1), &bytes[..20], true, false).flow, Err(Obstacle::Cut));
    bytes[20] = 0x20;
    let fragment = found(Link(1), &bytes, false, false);
    assert_eq!(fragment.flow, Ok(Tuple { ports: None, ..tuple(9) }));
    assert!(fragment.is_fragment);
}

#[test]
fn packets_out_of_order_are_sorted_from_the_earliest_and_counted() {
    let packet = after(&[0x08, 0x00], &udp(9));
    let read = parsed(&pcap(1, &[(9, 5, &packet), (9, 1, &packet), (9, 9, &packet)]), Options::default()).unwrap();
    assert_eq!(read.time_s.len(), 3);
    assert_eq!(read.time_s[0], 0.0);
    assert!((read.time_s[1] - 4e-6).abs() < 1e-15 && (read.time_s[2] - 8e-6).abs() < 1e-15);
    assert!(read.counts.contains(&("out_of_order", 1)));
}

#[test]
fn a_capture_that_ends_in_its_last_packet_keeps_the_others_and_says_so() {
    let packet = after(&[0x08, 0x00], &udp(9));
    let file = pcap(1, &[(1, 0, &packet), (2, 0, &packet)]);
    let read = parsed(&file[..file.len() - 1], Options::default()).unwrap();
    assert_eq!(read.frame_bytes, [64]);
    assert!(read.notes[0].starts_with("The file ends within packet 2"), "{:?}", read.notes);
    assert!(message(&file[..50]).contains("ends within its first packet"));
}

#[test]
fn refusals_name_the_packet_the_cause_and_a_remedy() {
    let wifi = message(&pcap(127, &[(1, 0, &[0; 60])]));
    assert!(wifi.starts_with("packet 1 is of link type 127: 802.11 (Wi-Fi) with a radiotap header"), "{wifi}");
    assert!(message(b"").contains("is empty"));
    assert!(message(b"snoop\0\0\0").contains("editcap"));
    assert!(message(&pcap(1, &[])).contains("no packet"));
}

#[test]
fn directions_are_those_of_the_cooked_header() {
    assert_eq!(Link(113).direction(&[0, 4]), Direction::Out);
    assert_eq!(Link(276).direction(&[0; 20]), Direction::In);
    assert_eq!(Link(1).direction(&[0, 4]), Direction::Unknown);
}

#[test]
fn reading_ends_when_it_is_told_to() {
    let file = pcap(1, &[(1, 0, &[0; 60])]);
    let result = of(&mut Window::new(Box::new(&file[..]), &|| false), Options::default());
    assert_eq!(result.unwrap_err(), Fault::Interrupted);
}
