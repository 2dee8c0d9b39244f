"""The streams of an offered load, in the form of the tester's requests: ports, rates, schedules, addresses."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

import numpy as np

from routecast.errors import ModelProblem, Problem
from routecast.lab.testbed._encapsulation import Encapsulation
from routecast.lab.testbed.bed import TesterPort
from routecast.load.arrivals import Arrivals
from routecast.load.flows import Flow
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, line_rate_pps
from routecast.load.trace import RecordedFrames
from routecast.quantity.schema import field, value

__all__ = ["Addressing", "Streams", "learning_streams", "min_test_frame_bytes", "streams_of"]

UDP_ECHO_PORT = 7
"""RFC 2544 appendix C.2.1: test frames are UDP echo requests."""

_DISCARD_PORT = 9
_SOURCE_PORT = 0xC020
_SOURCE_PORTS = (1024, 65_535)
_DESTINATION_PORTS = (1, 49_151)
_MIN_TEST_FRAME_BYTES: Mapping[int, int] = {4: 64, 6: 84}
"""Ethernet, IP and UDP headers, the 18-byte signature and the FCS; for IPv4 14 + 20 + 8 + 18 + 4."""

_FRAME_WITHOUT_PACKET_BYTES = 18
_MAX_STREAMS = 16
_MAX_FLOWS = 65_536
_MAX_TURNS = 4_096
_MAX_RECORDED_FRAMES = 2**22


@value
class Addressing:
    """Addresses, tags and tunnel of frames."""

    layer: Literal[2, 3] = field(
        "3: frames go to the MAC address of the device, which routes; 2: to that of the tester's other port", default=3
    )
    version: Literal[4, 6] = field("Version of IP", default=4)
    networks: int = field(
        "Destination networks, chosen at random for each flow (RFC 2544 sec. 12); 1: that of the link", default=1
    )
    seed: int = field("Seed of ports and destinations", default=1)
    encapsulation: Encapsulation = field("VLAN tags and tunnel of every frame", default=Encapsulation())
    broadcast_ratio: float = field(
        "Share of broadcast frames in the load (RFC 2544 sec. 11.1); they are counted apart from the test frames",
        default=0.0,
    )
    are_learnt: bool = field("Whether the device learns the destination networks from its neighbour", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """The streams of a load, in the form of the tester's requests.

    ``intended_pps`` is the rate of each stream in the load, ``sent_pps`` its rate on the wire. The ``broadcast``
    streams have no receiver.
    """

    streams: tuple[Mapping[str, Any], ...]
    intended_pps: tuple[float, ...]
    sent_pps: tuple[float, ...]
    notes: tuple[str, ...] = ()
    broadcast: tuple[Mapping[str, Any], ...] = ()


def streams_of(load: OfferedLoad, ports: Sequence[TesterPort], addressing: Addressing) -> Streams:
    """Return the streams of a load: one for each pair of ports that its flows join.

    A single flow is the UDP echo request of RFC 2544; several flows have pseudo-random ports (RFC 4814 sec. 4.5). A
    port carries at most its line rate (S1), so that the offered load may be lower than the intended load.

    Raises ModelProblem: the bed cannot send this load; with all reasons.
    """
    problems = [*_port_problems(load, ports), *_arrival_problems(load.arrivals)]
    if not problems:
        problems += _frame_problems(load.frames, ports, addressing)
    if problems:
        raise ModelProblem("offered load", problems)
    flow_numbers: dict[tuple[int, int], list[int]] = {}
    trace = load.arrivals.trace
    flows = load.flows.flows if trace is None else [replace(flow, weight=1.0) for flow in load.flows.flows]
    for number, flow in enumerate(flows):
        flow_numbers.setdefault((flow.ingress, flow.egress), []).append(number)
    flows_by_pair = {pair: [flows[number] for number in pair_numbers] for pair, pair_numbers in flow_numbers.items()}
    if len(flows_by_pair) > _MAX_STREAMS:
        message = f"join {len(flows_by_pair)} pairs of ports: at most {_MAX_STREAMS}"
        raise ModelProblem("offered load", [Problem("flows", message)])
    recordings = (
        {pair: _recorded_schedule(trace, pair_numbers) for pair, pair_numbers in flow_numbers.items()} if trace else {}
    )
    shares = {pair: math.fsum(flow.weight for flow in flows) for pair, flows in flows_by_pair.items()}
    shares |= {pair: share for pair, (_, share) in recordings.items()}
    total = math.fsum(shares.values())
    notes: list[str] = []
    rate_factors = _rate_factors(load, ports, {pair: share / total for pair, share in shares.items()}, notes)
    sizes = [{"bytes": size, "weight": share} for size, share in load.frames.share_by_bytes.items()]
    if trace is not None:
        notes.append("times, sizes and flows are those of the recording; addresses and contents are the tester's")
    if not load.frames.is_fixed and load.frames.order == "sequence":
        notes.append("frame sizes keep their shares of the sequence, not their order")
    streams, intended_pps, sent_pps = [], [], []
    is_many = len(load.flows.flows) > 1
    for pair, flows in flows_by_pair.items():
        share = shares[pair] / total * (1.0 - addressing.broadcast_ratio)
        intended_pps.append(load.rate_pps * share)
        sent_pps.append(load.rate_pps * share * rate_factors[pair[0]])
        streams.append(
            {
                "port": pair[0],
                "to_port": pair[1],
                "rate_pps": sent_pps[-1],
                "schedule": recordings[pair][0] if trace is not None else _schedule(load.arrivals, notes),
                "steps": [
                    {"at_s": step.at_s, "rate_pps": min(step.rate_pps * share, _line_rate(load, ports[pair[0]]))}
                    for step in load.steps
                ],
                "sizes": sizes,
                "flows": _flows(flows, ports[pair[0]], ports[pair[1]], addressing, is_many=is_many, notes=notes),
                "encapsulation": addressing.encapsulation.request(),
            }
        )
    return Streams(
        streams=tuple(streams),
        intended_pps=tuple(intended_pps),
        sent_pps=tuple(sent_pps),
        notes=tuple(dict.fromkeys(notes)),
        broadcast=tuple(_broadcast(stream, ports, addressing) for stream in streams if addressing.broadcast_ratio),
    )


def _broadcast(stream: Mapping[str, Any], ports: Sequence[TesterPort], addressing: Addressing) -> Mapping[str, Any]:
    """Return the broadcast frames of a stream: at equal gaps, to an address that no router forwards."""
    sender = ports[stream["port"]]
    factor = addressing.broadcast_ratio / (1.0 - addressing.broadcast_ratio)
    is_ipv6 = addressing.version == 6
    flow = {
        "source_mac": sender.mac,
        "destination_mac": "ff:ff:ff:ff:ff:ff",
        "source_address": sender.ipv6 if is_ipv6 else sender.ipv4,
        "destination_address": "ff02::1" if is_ipv6 else "255.255.255.255",
        "source_port": _SOURCE_PORT,
        "destination_port": _DISCARD_PORT,
    }
    return {
        **stream,
        "rate_pps": factor * stream["rate_pps"],
        "schedule": {"kind": "cbr"},
        "steps": [{**step, "rate_pps": factor * step["rate_pps"]} for step in stream["steps"]],
        "flows": [flow],
    }


def learning_streams(streams: Streams, ports: Sequence[TesterPort], *, frames: int, rate_pps: float) -> list[Any]:
    """Return learning frames (RFC 2544 sec. 23 b): a few from each receiving port to its sender."""
    pairs = dict.fromkeys((stream["to_port"], stream["port"]) for stream in streams.streams)
    learning = []
    for sender, receiver in pairs:
        forward = next(
            stream for stream in streams.streams if (stream["to_port"], stream["port"]) == (sender, receiver)
        )
        flow = forward["flows"][0]
        is_routed = flow["destination_mac"] == ports[receiver].device_mac
        learning.append(
            {
                "port": sender,
                "to_port": receiver,
                "rate_pps": rate_pps,
                "frames": frames,
                "sizes": [{"bytes": forward["sizes"][0]["bytes"], "weight": 1.0}],
                "encapsulation": forward["encapsulation"],
                "flows": [
                    {
                        "source_mac": ports[sender].mac,
                        "destination_mac": ports[sender].device_mac if is_routed else ports[receiver].mac,
                        "source_address": ports[sender].ipv6 if ":" in flow["source_address"] else ports[sender].ipv4,
                        "destination_address": flow["source_address"],
                        "source_port": _SOURCE_PORT,
                        "destination_port": UDP_ECHO_PORT,
                    }
                ],
            }
        )
    return learning


def _port_problems(load: OfferedLoad, ports: Sequence[TesterPort]) -> list[Problem]:
    problems = []
    last = max(max(flow.ingress, flow.egress) for flow in load.flows.flows)
    if last >= len(ports):
        problems.append(Problem("flows", f"name port {last}: the bed has {len(ports)}, numbered from 0"))
    if any(flow.ingress == flow.egress for flow in load.flows.flows):
        problems.append(Problem("flows", "leave by the port they enter by: give them another egress"))
    if len(load.flows.flows) > _MAX_FLOWS:
        problems.append(Problem("flows", f"are {len(load.flows.flows):,}: the tester sends at most {_MAX_FLOWS:,}"))
    return problems


def _arrival_problems(arrivals: Arrivals) -> list[Problem]:
    if arrivals.trace is None:
        return []
    if math.isnan(arrivals.trace.rate_pps):
        return [Problem("arrivals", "a recording of one instant has no rate: give one with frames at two times")]
    if len(arrivals.trace) > _MAX_RECORDED_FRAMES:
        message = f"a recording of {len(arrivals.trace):,} frames: the tester holds {_MAX_RECORDED_FRAMES:,}"
        return [Problem("arrivals", f"{message}; give a part of it")]
    return []


def _recorded_schedule(trace: RecordedFrames, flows: Sequence[int]) -> tuple[dict[str, Any], float]:
    """Return the schedule of the recorded frames of some flows, and their share of all frames.

    ``places`` are times in units of the mean gap of the stream; a mean gap follows the last frame, so that the
    recording can repeat.
    """
    chosen = np.flatnonzero(np.isin(trace.flow, flows))
    share = len(chosen) / len(trace)
    last_place = math.nextafter(len(chosen), 0.0)
    schedule = {
        "kind": "recorded",
        "places": np.minimum(trace.time_s[chosen] * trace.rate_pps * share, last_place).tolist(),
        "bytes": trace.frame_bytes[chosen].tolist(),
        "flows": np.searchsorted(flows, trace.flow[chosen]).tolist(),
    }
    return schedule, share


def min_test_frame_bytes(version: Literal[4, 6], encapsulation: Encapsulation) -> int:
    """Return the size of the smallest test frame: headers, tags and tunnel, signature, FCS."""
    return _MIN_TEST_FRAME_BYTES[version] + encapsulation.added_bytes(version)


def _frame_problems(frames: FrameMix, ports: Sequence[TesterPort], addressing: Addressing) -> list[Problem]:
    problems = []
    smallest, largest = min(frames.sequence_bytes), max(frames.sequence_bytes)
    encapsulation = addressing.encapsulation
    minimum = min_test_frame_bytes(addressing.version, encapsulation)
    if smallest < minimum:
        within = f" in {encapsulation.title}" if encapsulation.title else ""
        message = f"{smallest} B: the smallest IPv{addressing.version} test frame{within} has {minimum} B"
        problems.append(Problem("frames", f"{message} (headers, signature, FCS)"))
    for port in ports:
        packet_bytes = largest - _FRAME_WITHOUT_PACKET_BYTES - encapsulation.tags_bytes
        if packet_bytes > port.mtu:
            message = (
                f"{largest} B hold an IP packet of {packet_bytes} B, port {port.name} ({port.interface}) has an MTU of"
            )
            problems.append(Problem("frames", f"{message} {port.mtu} B: send smaller frames or raise the MTU"))
    if addressing.version == 6 and not all(port.ipv6 for port in ports):
        problems.append(Problem("ipv6", "the bed has no IPv6 addresses: set ipv6 = true, or give each port one"))
    return problems


def _line_rate(load: OfferedLoad, port: TesterPort) -> float:
    return line_rate_pps(port.wire_bps, load.frames.mean_bytes)


def _rate_factors(
    load: OfferedLoad, ports: Sequence[TesterPort], shares: Mapping[tuple[int, int], float], notes: list[str]
) -> dict[int, float]:
    """Return the factor by which each sending port lowers its intended rate: line rate / intended rate, at most 1."""
    rate_factors = {}
    for number in {pair[0] for pair in shares}:
        rate = load.rate_pps * math.fsum(share for pair, share in shares.items() if pair[0] == number)
        line = _line_rate(load, ports[number])
        rate_factors[number] = min(line / rate, 1.0)
        if rate > line * (1.0 + 1e-9):
            message = f"port {ports[number].name} offers its line rate of {line:,.0f} frames/s"
            notes.append(f"{message}: the intended load of {rate:,.0f} frames/s is above it")
    return rate_factors


def _schedule(arrivals: Arrivals, notes: list[str]) -> dict[str, Any]:
    if arrivals.kind == "poisson":
        return {"kind": "poisson"}
    if arrivals.kind == "bursts":
        return {"kind": "bursts", "burst_frames": round(arrivals.burst_frames)}
    if arrivals.kind == "on_off":
        burst = max(round(arrivals.burst_frames), 1)
        notes.append(f"bursts have {burst} frames each at the rate of the wire, at equal distances")
        return {"kind": "bursts", "burst_frames": burst}
    return {"kind": "cbr"}


def _flows(
    flows: Sequence[Flow],
    sender: TesterPort,
    receiver: TesterPort,
    addressing: Addressing,
    *,
    is_many: bool,
    notes: list[str],
) -> list[dict[str, Any]]:
    """Return the addresses of a stream's flows in sending order; a flow of twice the weight is listed twice."""
    is_routed = addressing.layer == 3
    source = sender.ipv6 if addressing.version == 6 else sender.ipv4
    random = Random(f"addresses/{addressing.seed}/{sender.name}/{receiver.name}")
    targets = _destinations(receiver, addressing)
    flow_list = []
    repeats = _repeats([flow.weight for flow in flows], notes)
    turns = max(math.ceil(len(targets) / len(flows)), 1)
    if turns > 1:
        notes.append(f"{len(flows)} flows are sent to {len(targets)} networks in turn (RFC 2544 sec. 12)")
    order = list(range(len(targets)))
    random.shuffle(order)
    for turn in range(turns):
        for number, repeat in enumerate(repeats):
            ports = (
                (random.randint(*_SOURCE_PORTS), random.randint(*_DESTINATION_PORTS))
                if is_many or len(targets) > 1
                else (_SOURCE_PORT, UDP_ECHO_PORT)
            )
            entry = {
                "source_mac": sender.mac,
                "destination_mac": sender.device_mac if is_routed else receiver.mac,
                "source_address": source,
                "destination_address": targets[order[(turn * len(repeats) + number) % len(targets)]],
                "source_port": ports[0],
                "destination_port": ports[1],
            }
            flow_list += [entry] * repeat
    return flow_list[:_MAX_FLOWS]


def _destinations(receiver: TesterPort, addressing: Addressing) -> list[str]:
    """Return a host of each destination network; the tester's own port is first, or last if routes are learnt."""
    port_host = receiver.ipv6 if addressing.version == 6 else receiver.ipv4
    networks_behind = receiver.networks_ipv6 if addressing.version == 6 else receiver.networks_ipv4
    if addressing.networks > 1 + len(networks_behind):
        message = f"{addressing.networks} networks: port {receiver.name} has {1 + len(networks_behind)}"
        raise ModelProblem("offered load", [Problem("networks", f"{message}; give more in the test bed's file")])
    network_hosts = [str(ipaddress.ip_network(text)[2]) for text in networks_behind[: addressing.networks]]
    networks = [*network_hosts, port_host] if addressing.are_learnt else [port_host, *network_hosts]
    return networks[: addressing.networks]


def _repeats(weights: Sequence[float], notes: list[str]) -> list[int]:
    """Return how often each flow is listed, in proportion to its weight."""
    minimum = min(weights)
    if max(weights) == minimum:
        return [1] * len(weights)
    for scale in range(1, 101):
        repeats = [round(weight / minimum * scale) for weight in weights]
        if all(
            abs(repeat - weight / minimum * scale) < 1e-6 * repeat
            for repeat, weight in zip(repeats, weights, strict=True)
        ):
            break
    else:
        scale = 10
        repeats = [max(round(weight / minimum * scale), 1) for weight in weights]
        notes.append("shares of flows are kept within a few per cent: their ratios are not whole numbers")
    if sum(repeats) > _MAX_TURNS:
        message = f"the shares of the flows need {sum(repeats):,} turns: at most {_MAX_TURNS:,}"
        raise ModelProblem("offered load", [Problem("flows", f"{message}; give weights of smaller ratios")])
    return repeats
