"""Test streams: their protocol, flows and frames, their loads, and the maximum rate of the medium."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from routecast.load.arrivals import Arrivals
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, RateStep, line_rate_pps
from routecast.quantity.schema import field, value

__all__ = [
    "BROADCAST",
    "BROADCAST_RATIO",
    "MANAGEMENT",
    "MIN_IPV6_BYTES",
    "ROUTING_UPDATES",
    "SECTIONS",
    "Stream",
    "StreamProfile",
    "load_of",
    "mix_refused",
    "mixed",
    "sending_ports",
    "stream_of",
    "theoretical_pps",
]

MIN_IPV6_BYTES = 84
"""Smallest frame of RFC 8219 sec. 5.1.1, instead of 64 bytes: the IPv6 header is 20 bytes longer."""

BROADCAST = "1 % broadcast frames"
"""Modifier: every 100th frame is a broadcast frame (RFC 2544 sec. 11.1)."""

BROADCAST_RATIO = 0.01

MANAGEMENT = "a management query each second"
"""Modifier: the device answers an SNMP query each second (sec. 11.2)."""

ROUTING_UPDATES = "a routing update each second"
"""Modifier: a neighbour changes a route of the device each second (sec. 11.3)."""

SECTIONS: Mapping[str, str] = MappingProxyType({BROADCAST: "11.1", MANAGEMENT: "11.2", ROUTING_UPDATES: "11.3"})
"""Section of RFC 2544 of each modifier that sends frames beside the test stream."""

_QUIET_PPS = 1e-6


@value
class Stream:
    """One kind of test stream; ``name`` identifies it in rows."""

    name: str = field('``"IPv4"``, ``"IPv6 bidirectional"``, ``"IPv4, 256 networks"``, ``"IPv4, 25 filters"``.')
    protocol: Literal["IPv4", "IPv6"] = field(
        "Protocol under UDP (RFC 2544 appendix C.2.6.4: UDP echo requests; RFC 4814: ports of several flows).",
        default="IPv4",
    )
    bidirectional: bool = field("RFC 2544 sec. 14: both ways at the same rate.", default=False)
    networks: int = field("Destination networks (sec. 12): 1, or 256.", default=1)
    modifier: str = field(
        'Sec. 11: ``""`` for none, ``"1 filter"``, ``"25 filters"``, ``"1 % broadcast frames"``, '
        '``"a management query each second"``, ``"a routing update each second"``.',
        default="",
    )
    burst_frames: int = field("Sec. 21: frames of a repeated burst at the least gap; 1 is a steady load.", default=1)
    mix: str = field('A mix of frame sizes (RFC 6985): ``"IMIX"``; ``""`` for fixed sizes.', default="")

    @property
    def frames(self) -> FrameMix | None:
        """The mix of frame sizes; None for fixed sizes."""
        return FrameMix.parse(self.mix) if self.mix else None

    @property
    def name_without_mix(self) -> str:
        """Name of the same stream with fixed sizes."""
        return self.name.removesuffix(f", {self.mix}") if self.mix else self.name


@value
class StreamProfile:
    """``[[stream]]``: a kind of test stream."""

    protocol: Literal["IPv4", "IPv6"] = "IPv4"
    bidirectional: bool = field("Sec. 14.", default=False)
    networks: Annotated[int, Field(ge=1, le=256, strict=True)] = field(
        "Destination networks; sec. 12 wants 1, then 256.", default=1
    )
    burst_frames: Annotated[int, Field(ge=1, le=100_000, strict=True)] = field(
        "Frames of a repeated burst; sec. 21 wants 16, 64, 256, 1024. 1 is a steady load.",
        default=1,
        key="burst_frames",
    )
    filters: Annotated[int, Field(ge=0, le=1000, strict=True)] = field(
        "Rules of the packet filter; sec. 11.4 wants 1, then 25.", default=0
    )
    broadcast: bool = field("Sec. 11.1: every 100th frame is a broadcast frame.", default=False)

    management: bool = field("Sec. 11.2: the device answers an SNMP query each second.", default=False)
    routing_updates: bool = field("Sec. 11.3: a neighbour changes a route of the device each second.", default=False)

    def __post_init__(self) -> None:
        if len(_modifiers(self)) > 1:
            raise ValueError(f"{' and '.join(_modifiers(self))} are separate conditions: give each its own stream")


def stream_of(profile: StreamProfile) -> Stream:
    """Return the stream of a profile, with its name in tables."""
    modifier = "".join(_modifiers(profile))
    parts = (
        profile.protocol,
        profile.bidirectional and "both ways",
        profile.networks > 1 and f"{profile.networks} networks",
        profile.burst_frames > 1 and f"bursts of {profile.burst_frames}",
        modifier,
    )
    return Stream(
        name=", ".join(part for part in parts if part),
        protocol=profile.protocol,
        bidirectional=profile.bidirectional,
        networks=profile.networks,
        modifier=modifier,
        burst_frames=profile.burst_frames,
    )


def mixed(stream: Stream, mix: str) -> Stream:
    """Return a stream with a mix of frame sizes instead of fixed ones.

    Examples
    --------
    >>> mixed(Stream(name="IPv4"), "IMIX").name
    'IPv4, IMIX'
    """
    return replace(stream, name=f"{stream.name}, {mix}", mix=mix)


def mix_refused(stream: Stream, least_bytes: int, frame: str = "") -> str:
    """Return the reason that a mix has frames below ``least_bytes``, the smallest test frame; empty if it has none.

    RFC 8219 replaces fixed sizes that are too small for IPv6, but a mix would become another mix.
    """
    frames = stream.frames
    if frames is None or min(frames.sequence_bytes) >= least_bytes:
        return ""
    smallest = min(frames.sequence_bytes)
    table = ", ".join(f"{frames.sequence_bytes.count(size)}x{max(size, least_bytes)}" for size in frames.share_by_bytes)
    return (
        f"{stream.mix} has frames of {smallest} B: the smallest {frame or stream.protocol} test frame has "
        f'{least_bytes} B; give a mix of larger frames, such as "{table}"'
    )


def _modifiers(profile: StreamProfile) -> list[str]:
    filters = f"{profile.filters} filter{'s' if profile.filters > 1 else ''}"
    modifiers = {
        filters: profile.filters > 0,
        BROADCAST: profile.broadcast,
        MANAGEMENT: profile.management,
        ROUTING_UPDATES: profile.routing_updates,
    }
    return [name for name, is_on in modifiers.items() if is_on]


def sending_ports(stream: Stream) -> int:
    """Return the number of sending ports, the factor between the load of a port and of all ports (RFC 9971)."""
    return 2 if stream.bidirectional else 1


def theoretical_pps(stream: Stream, frame_bytes: float, link_bps: tuple[float, ...]) -> float:
    """Return the theoretical maximum rate of the medium, all sending ports together (RFC 2544 sec. 20).

    The slower of the two links decides, as sec. 20 asks for media of different speed. The mean size of a mix counts.
    """
    return sending_ports(stream) * line_rate_pps(min(link_bps[:2]), frame_bytes)


def load_of(
    stream: Stream, frame_bytes: float, rate_pps: float, *, flows: int = 1, steps: tuple[RateStep, ...] = ()
) -> OfferedLoad:
    """Return the load of a stream at a rate over all its ports, steady or in bursts (RFC 2544 sec. 21).

    ``flows``: flows in each direction, by random addresses and UDP ports (RFC 4814); 1 is one pair of addresses. A
    stream over several networks has at least a flow for each.
    """
    return OfferedLoad(
        rate_pps=rate_pps,
        frames=stream.frames or FrameMix.fixed(round(frame_bytes)),
        flows=_flows(stream, max(flows, stream.networks)),
        arrivals=Arrivals.bursts(stream.burst_frames) if stream.burst_frames > 1 else Arrivals.cbr(),
        steps=steps,
    )


def quiet_after(at_s: float) -> RateStep:
    """Return the step after which a trial sends no more frames."""
    return RateStep(at_s=at_s, rate_pps=_QUIET_PPS)


def _flows(stream: Stream, count: int) -> FlowSet:
    flows: tuple[Flow, ...]
    if count == 1:
        flows = (Flow(rss_hash=0, ingress=0, egress=1),)
        if stream.bidirectional:
            flows += (Flow(rss_hash=1, ingress=1, egress=0),)
    else:
        # Random flows alternate between both directions, so a direction has every second flow.
        drawn = FlowSet.random(2 * count).flows
        flows = drawn if stream.bidirectional else drawn[0::2]
    return FlowSet(name=stream.name, flows=flows)
