from __future__ import annotations

import ipaddress

import pytest
from testbed_fakes import port

from routecast.errors import ModelProblem, QuantityProblem
from routecast.lab.testbed._encapsulation import Encapsulation, parse_encapsulation
from routecast.lab.testbed.addresses import port_addresses
from routecast.lab.testbed.streams import Addressing, learning_streams, streams_of
from routecast.load.arrivals import Arrivals
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, RateStep
from routecast.load.trace import RecordedFrames

PORTS = (port("gen", 0), port("sink", 1))
ONE = FlowSet(name="1 flow", flows=(Flow(rss_hash=0),))


def load(**values: object) -> OfferedLoad:
    return OfferedLoad(**{"rate_pps": 1e5, "flows": ONE, **values})  # type: ignore[arg-type]  # values are a load's


def test_one_flow_is_the_udp_echo_request_of_rfc2544_to_the_routers_port() -> None:
    (stream,) = streams_of(load(), PORTS, Addressing()).streams
    (flow,) = stream["flows"]
    assert (stream["port"], stream["to_port"], stream["rate_pps"]) == (0, 1, 1e5)
    assert flow["destination_port"] == 7  # RFC 2544 appendix C.2.1
    assert flow["destination_mac"] == PORTS[0].device_mac
    assert (flow["source_address"], flow["destination_address"]) == ("198.18.1.2", "198.19.1.2")


def test_a_bridge_is_sent_frames_for_the_far_port() -> None:
    (stream,) = streams_of(load(), PORTS, Addressing(layer=2)).streams
    assert stream["flows"][0]["destination_mac"] == PORTS[1].mac


def test_ports_of_many_flows_are_pseudo_random_in_the_ranges_of_rfc4814_and_follow_the_seed() -> None:
    flows = FlowSet(name="1000 flows", flows=(Flow(rss_hash=0),) * 1000)
    (stream,) = streams_of(load(flows=flows), PORTS, Addressing(seed=3)).streams
    assert all(1024 <= flow["source_port"] <= 65535 for flow in stream["flows"])
    assert all(1 <= flow["destination_port"] <= 49151 for flow in stream["flows"])
    assert len({(flow["source_port"], flow["destination_port"]) for flow in stream["flows"]}) > 990
    again = streams_of(load(flows=flows), PORTS, Addressing(seed=3)).streams[0]
    other = streams_of(load(flows=flows), PORTS, Addressing(seed=4)).streams[0]
    assert again["flows"] == stream["flows"] != other["flows"]


def test_flows_both_ways_are_two_streams_that_share_the_load_by_weight() -> None:
    flows = FlowSet(name="3", flows=(Flow(rss_hash=0, weight=3.0), Flow(rss_hash=1, ingress=1, egress=0)))
    result = streams_of(load(flows=flows), PORTS, Addressing())
    assert [(stream["port"], stream["to_port"], stream["rate_pps"]) for stream in result.streams] == [
        (0, 1, 75e3),
        (1, 0, 25e3),
    ]
    assert sum(result.intended_pps) == pytest.approx(1e5)


def test_a_flow_of_thrice_the_weight_stands_thrice_in_the_turn() -> None:
    flows = FlowSet(name="2", flows=(Flow(rss_hash=0, weight=3.0), Flow(rss_hash=1, weight=1.0)))
    (stream,) = streams_of(load(flows=flows), PORTS, Addressing()).streams
    ports = [flow["source_port"] for flow in stream["flows"]]
    assert sorted(ports.count(number) for number in set(ports)) == [1, 3]


def test_256_networks_get_frames_each_one_host_of_its_own() -> None:
    sides = [port_addresses(side) for side in (0, 1)]
    ports = [port(name, side, networks_ipv4=sides[side].networks_ipv4) for side, name in enumerate(("gen", "sink"))]
    (stream,) = streams_of(load(), ports, Addressing(networks=256)).streams
    networks = {ipaddress.ip_network(f"{flow['destination_address']}/24", strict=False) for flow in stream["flows"]}
    assert len(networks) == 256  # RFC 2544 sec. 12
    assert all(network.subnet_of(ipaddress.ip_network("198.19.0.0/16")) for network in networks)


def test_one_frame_in_a_hundred_is_a_broadcast_frame_that_nobody_awaits() -> None:
    result = streams_of(load(rate_pps=1e6), PORTS, Addressing(broadcast_ratio=0.01))
    (stream,), (broadcast,) = result.streams, result.broadcast
    assert (stream["rate_pps"], broadcast["rate_pps"]) == (pytest.approx(0.99e6), pytest.approx(0.01e6))
    assert result.intended_pps == (pytest.approx(0.99e6),)
    (flow,) = broadcast["flows"]
    assert (flow["destination_mac"], flow["destination_address"]) == ("ff:ff:ff:ff:ff:ff", "255.255.255.255")
    assert stream["flows"][0]["destination_mac"] == PORTS[0].device_mac
    assert streams_of(load(), PORTS, Addressing()).broadcast == ()


def test_more_networks_than_the_bed_has_are_refused() -> None:
    with pytest.raises(ModelProblem, match="has 4"):
        streams_of(load(), PORTS, Addressing(networks=5))


def test_a_port_offers_at_most_its_line_rate() -> None:
    result = streams_of(load(rate_pps=20e6), PORTS, Addressing())
    assert result.streams[0]["rate_pps"] == pytest.approx(14_880_952, abs=1)  # RFC 2544 sec. 20, 10 Gbit/s, 64 B
    assert result.intended_pps == (20e6,)
    assert "line rate" in result.notes[0]


def test_a_change_of_the_rate_is_a_step_of_every_stream() -> None:
    (stream,) = streams_of(load(steps=(RateStep(at_s=0.2, rate_pps=5e4),)), PORTS, Addressing()).streams
    assert stream["steps"] == [{"at_s": 0.2, "rate_pps": 5e4}]


def test_arrivals_become_schedules() -> None:
    poisson = streams_of(load(arrivals=Arrivals.poisson()), PORTS, Addressing()).streams[0]
    bursts = streams_of(load(arrivals=Arrivals.on_off(burst_frames=16, peak_ratio=4)), PORTS, Addressing()).streams[0]
    assert poisson["schedule"] == {"kind": "poisson"}
    assert bursts["schedule"] == {"kind": "bursts", "burst_frames": 16}  # RFC 2544 sec. 21


@pytest.mark.parametrize(
    ("values", "version", "words"),
    [
        ({"frames": FrameMix.fixed(9000)}, 4, "MTU of 1500 B"),
        ({"frames": FrameMix.fixed(64)}, 6, "84 B"),
        ({"flows": FlowSet(name="x", flows=(Flow(rss_hash=0, egress=2),))}, 4, "port 2"),
        ({"flows": FlowSet(name="x", flows=(Flow(rss_hash=0, egress=0),))}, 4, "egress"),
    ],
)
def test_a_load_that_the_bed_cannot_send_is_refused(values: dict[str, object], version: int, words: str) -> None:
    with pytest.raises(ModelProblem, match=words):
        streams_of(load(**values), PORTS, Addressing(version=version))  # type: ignore[arg-type]  # 4 or 6


@pytest.mark.parametrize(
    ("text", "least_bytes", "most_bytes"),
    [
        # 64 B and 84 B hold the signature; 4 B a tag (IEEE 802.1Q), 24 B GRE over IPv4 (RFC 2784: 20 + 4), 50 B VXLAN
        # over IPv4 (RFC 7348: 20 + 8 + 8 + 14), 20 B more over IPv6. An MTU counts the packet, not the tags.
        ("vlan:10", (68, 88), 1522),
        ("vlan:100.10", (72, 92), 1526),
        ("gre", (88, 128), 1518),
        ("vxlan:42", (114, 154), 1518),
        ("vlan:10+vxlan:42", (118, 158), 1522),
    ],
)
def test_frames_have_room_for_tags_and_tunnel_and_fit_the_mtu(
    text: str, least_bytes: tuple[int, int], most_bytes: int
) -> None:
    encapsulation = parse_encapsulation(text)
    assert str(encapsulation) == text
    for version, least in zip((4, 6), least_bytes, strict=True):
        addressing = Addressing(version=version, encapsulation=encapsulation)  # type: ignore[arg-type]  # 4 or 6
        for size in (least, most_bytes):
            (stream,) = streams_of(load(frames=FrameMix.fixed(size)), PORTS, addressing).streams
            assert stream["encapsulation"] == encapsulation.request()
        for size in (least - 1, most_bytes + 1):
            with pytest.raises(ModelProblem, match=f"{size} B"):
                streams_of(load(frames=FrameMix.fixed(size)), PORTS, addressing)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "vlan",
        "vlan:0",
        "vlan:4095",
        "vlan:1.2.3",
        "vxlan",
        "vxlan:16777216",
        "gre:1",
        "gre+vlan:1",
        "gre+gre",
        "mpls",
    ],
)
def test_an_encapsulation_that_is_none_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(QuantityProblem, match=r"vlan:OUTER\.INNER.*1 to 4094.*0 to 16777215"):
        parse_encapsulation(text)


def test_a_recording_is_divided_among_the_pairs_of_its_flows_with_its_times_sizes_and_flows() -> None:
    recorded = Arrivals.recorded(RecordedFrames.of((5.0, 5.1, 5.2, 5.4, 5.6), (64, 128, 64, 512, 64), (0, 1, 2, 0, 1)))
    flows = FlowSet(
        name="4",
        flows=(Flow(rss_hash=0, weight=9.0), Flow(rss_hash=1, ingress=1, egress=0), Flow(rss_hash=2), Flow(rss_hash=3)),
    )
    result = streams_of(load(rate_pps=99.0, flows=flows, arrivals=recorded), PORTS, Addressing())
    forward, backward = result.streams
    # Four gaps in 0.6 s; three frames of five go there.
    assert result.intended_pps == pytest.approx((4.0, 8 / 3))
    assert forward["schedule"]["bytes"] == [64, 64, 512]
    assert forward["schedule"]["flows"] == [0, 1, 0]
    assert [place / 4.0 for place in forward["schedule"]["places"]] == pytest.approx([0.0, 0.2, 0.4])
    assert backward["schedule"]["bytes"] == [128, 64]
    assert [place / (8 / 3) for place in backward["schedule"]["places"]] == pytest.approx([0.1, 0.6])
    assert len(forward["flows"]) == 2  # no frame is of the fourth


def test_a_recording_of_one_instant_is_refused() -> None:
    recorded = Arrivals.recorded(RecordedFrames.of((1.0,), (64,), (0,)))
    with pytest.raises(ModelProblem, match="frames at two times"):
        streams_of(load(arrivals=recorded), PORTS, Addressing())


def test_learning_frames_have_the_encapsulation_of_the_stream() -> None:
    encapsulation = Encapsulation(vlan_ids=(10,), tunnel="vxlan", vni=42)
    streams = streams_of(load(frames=FrameMix.fixed(128)), PORTS, Addressing(encapsulation=encapsulation))
    (learning,) = learning_streams(streams, PORTS, frames=4, rate_pps=1e3)
    assert learning["encapsulation"] == {"vlan_ids": [10], "tunnel": {"kind": "vxlan", "vni": 42}}


def test_learning_frames_come_from_the_port_that_receives() -> None:
    streams = streams_of(load(), PORTS, Addressing(layer=2))
    (learning,) = learning_streams(streams, PORTS, frames=4, rate_pps=1e3)
    assert (learning["port"], learning["to_port"], learning["frames"]) == (1, 0, 4)
    assert learning["flows"][0]["source_mac"] == PORTS[1].mac
    assert learning["flows"][0]["destination_mac"] == PORTS[0].mac
