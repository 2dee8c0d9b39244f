"""The forward model of calibration: maximum throughputs for many parameter sets at once.

The bottleneck law of :func:`saturate` is vectorised over J parameter sets and n points; a test checks that both agree.

Parameters, in this order, as natural logarithms: ``T_c`` (seconds per frame), ``B = 64·T_d/T_c`` (cost of 64 more
bytes relative to the cost of a frame), the law's shapes, and :data:`DEVICE_SHAPES`: the cost of polling a further queue
(not a logarithm), the cost of a frame that leaves by another core's ring, the factor of the NICs' nominal packet rate,
and the limit by the bus of a fast link.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibration.score import Limit
from routecast.contention import Law, Shape
from routecast.evaluate.points import Point
from routecast.load.offered import line_rate_pps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = [
    "BYTE_SHAPE",
    "DEVICE_SHAPES",
    "POLL_SHAPE",
    "REFERENCE_BYTES",
    "Conditions",
    "busy_rate",
    "cap_pps",
    "flow_groups",
    "log_cap",
    "log_throughput",
    "saturate",
]


_BISECTIONS = 40
_BUSY_TOLERANCE = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturated:
    """Throughput under overload, busy cores on average, and the limiting resource.

    It follows from cores, links and cards together (bottleneck law, Meyer et al. 2014 eq. 1 per flow).

    ::

        port 0 ═ flows 0, 2, … ═╗  each offers its share of all links, as far as its own link carries it
        port 1 ═ flows 1, 3, … ═╩═► core of the flow, at most 1/x(k̄) frames/s, k̄ = busy cores on average

    The load is what all links together carry, spread evenly over the flows (Meyer 2014, sec. VI-A: 20 Gbit/s by F
    flows). A flow gets ``min(its share, its part of its link, rate of its core)``: of three flows on two links, two
    share one link, and the third offers two thirds of the other. Contention makes a core slower the more other cores
    are busy, and a core whose flow is limited by its link is busy only part of the time, so the rate solves ``k̄ = Σ
    min(1, share·x(k̄))``. The sum has one solution because both sides are monotone, and a few steps of bisection find
    it.
    """

    throughput_pps: float
    busy_cores: float
    limit: Limit


def flow_groups(point: Point) -> tuple[tuple[int, float], ...]:
    """Return the working cores as groups ``(cores, frames per second offered to each core)``.

    Crafted flows (no more flows than cores) have equal shares of the rate of all links, enter port ``i mod ports`` and
    share its link evenly. More flows than cores, or an unknown number, spread evenly over the cores.
    """
    if point.link_bps is None:
        return ((point.working_cores, math.inf),)
    line_pps = line_rate_pps(point.link_bps, point.frame_bytes)
    if point.flows is None or point.flows > point.cores:
        return ((point.cores, point.line_rate_pps / point.cores),)
    share_pps = point.line_rate_pps / point.flows
    groups: dict[int, int] = {}
    for port in range(min(point.ports, point.flows)):
        on_port = len(range(port, point.flows, point.ports))
        groups[on_port] = groups.get(on_port, 0) + on_port
    return tuple((cores, min(share_pps, line_pps / on_port)) for on_port, cores in sorted(groups.items()))


def saturate(point: Point, *, core_pps: Callable[[float], float]) -> Saturated:
    """Return the throughput at a point's conditions.

    ``core_pps``: rate of one core, frames/s, as a function of the mean number of busy cores.
    """
    groups = flow_groups(point)

    def busy(k: float) -> float:
        rate = core_pps(k)
        return sum(cores * min(1.0, offered / rate) for cores, offered in groups)

    k = float(point.working_cores)
    if busy(k) < k * _BUSY_TOLERANCE:
        low, high = 0.0, k
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if busy(middle) > middle else (low, middle)
        k = 0.5 * (low + high)
    rate = core_pps(k)
    total = sum(cores * min(offered, rate) for cores, offered in groups)
    by_link = [offered <= rate for _, offered in groups]
    limit: Limit = "cpu"
    if all(by_link):
        limit = "link"
    elif any(by_link):
        limit = "link and cpu"
    if point.nic_cap_pps is not None and point.nic_cap_pps < total:
        total, limit = point.nic_cap_pps, "nic"
    return Saturated(throughput_pps=total, busy_cores=k, limit=limit)


REFERENCE_BYTES = 64.0
COMMON_PARAMETERS = 2

BYTE_SHAPE = Shape(name="byte_share", mean=-4.5, sd=2.0, meaning="64·T_d/T_c")
"""Prior of B: from nothing (zero-copy forwarding touches one cache line of a frame) to a copy of each byte at memory
speed (0.1-0.4 ns per byte against 50-500 ns per frame is a B of 0.01-0.5)."""

NIC_SHAPE = Shape(name="nic_factor", mean=0.0, sd=0.01, meaning="real over nominal packet rate of the NICs")
"""Nominal packet rates of cards are given to about 1 %."""

POLL_SHAPE = Shape(name="poll", mean=0.0, sd=0.05, scale="linear", meaning="cost of polling a further queue")
"""Prior of the share by which the cost of a frame grows with each further queue that its core polls
(:mod:`routecast.evaluate.points`): a few percent either way."""

BUS_SHAPE = Shape(name="bus", mean=0.1, sd=0.06, meaning="bytes of frames that a bus moves, over its links' rate")
DESCRIPTORS_SHAPE = Shape(name="descriptors", mean=5.0, sd=0.5, unit="B", meaning="further bytes on the bus per frame")
"""A card of more than 40 Gbit/s a port takes nearly all that its bus moves. PCIe of the generation that suits it (3.0
for 100 Gbit/s on 16 lanes, 4.0 for 200) has 1.26 times its rate; headers of 24 B for payloads of 128 or 256 B leave
1.06 to 1.15; descriptors, completions and requests are 24 to 88 B each (Neugebauer et al. 2018, SIGCOMM, sec. 3).
The prior is computed, but in sight of the frames of PacketMill."""

FOREIGN_SHAPE = Shape(name="foreign", mean=-1.6, sd=0.8, meaning="cost of a ring of another core, in frames")
"""A lock and its cache lines are some 100 ns away, a fifth of what a kernel takes for a frame."""

DEVICE_SHAPES = (POLL_SHAPE, FOREIGN_SHAPE, NIC_SHAPE, BUS_SHAPE, DESCRIPTORS_SHAPE)

_FORWARD_BISECTIONS = 24
_NO_LIMIT = 1e300
_FAST_LINK_BPS = 40e9
_UNLIMITED_RATIO = 0.7
"""Share of the rate of links and cards below which they do not limit a router."""
_UNLIMITED_LOG = 30.0
"""Logarithm of a factor on the rate of cores with which cores never limit the throughput."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions of n points as arrays: crafted flows make at most two groups of cores with equal shares."""

    cores: Floats
    frame_bytes: Floats
    group_cores: Floats
    group_offered_pps: Floats
    nic_cap_pps: Floats
    further_queues: Floats
    foreign_ratio: Floats
    useful_ratio: Floats
    bus_byte_per_s: Floats

    @classmethod
    def of(cls, points: Sequence[Point]) -> Conditions:
        """Collect the conditions of points."""
        groups = [flow_groups(point) for point in points]
        group_count = max(map(len, groups), default=1)
        cores = np.zeros((len(points), group_count))
        offered = np.full((len(points), group_count), _NO_LIMIT)
        for row, group in enumerate(groups):
            for column, (count, pps) in enumerate(group):
                cores[row, column] = count
                offered[row, column] = pps if math.isfinite(pps) else _NO_LIMIT
        return cls(
            cores=np.array([float(point.working_cores) for point in points]),
            frame_bytes=np.array([point.frame_bytes for point in points]),
            group_cores=cores,
            group_offered_pps=offered,
            nic_cap_pps=np.array([_NO_LIMIT if p.nic_cap_pps is None else p.nic_cap_pps for p in points]),
            further_queues=np.array([p.layout.further_queues(p.working_cores, p.ports) for p in points]),
            foreign_ratio=np.array([p.layout.foreign_ratio(p.working_cores) for p in points]),
            useful_ratio=np.array([p.layout.useful_ratio(p.working_cores) for p in points]),
            bus_byte_per_s=np.array([_bus_byte_per_s(point) for point in points]),
        )

    def touched(self, law: Law) -> NDArray[np.bool_]:
        """Whether each parameter of a law, (d,), can change a rate at these conditions.

        Queues, rings, cards and buses that are not there leave those of the devices without effect.
        """
        has_bus = bool((self.bus_byte_per_s < _NO_LIMIT).any())
        devices = {
            POLL_SHAPE: bool(self.further_queues.any()),
            FOREIGN_SHAPE: bool(self.foreign_ratio.any()),
            NIC_SHAPE: bool((self.nic_cap_pps < _NO_LIMIT).any()),
            BUS_SHAPE: has_bus,
            DESCRIPTORS_SHAPE: has_bus,
        }
        return np.array([True] * (COMMON_PARAMETERS + len(law.shapes)) + [devices[shape] for shape in DEVICE_SHAPES])

    @classmethod
    def of_measured(cls, points: Sequence[Point]) -> Conditions:
        """Collect the conditions of measured points, without links and cards that are far faster than measured rates.

        Only cores can have limited such a rate. A law that exceeds it must therefore not be capped by a link.
        """
        measured = cls.of(points)
        is_core_limited = np.array(
            [len(flow_groups(p)) == 1 and p.throughput_pps < _UNLIMITED_RATIO * cap_pps(p) for p in points], dtype=bool
        )
        return replace(
            measured,
            group_offered_pps=np.where(is_core_limited[:, None], _NO_LIMIT, measured.group_offered_pps),
            nic_cap_pps=np.where(is_core_limited, _NO_LIMIT, measured.nic_cap_pps),
        )


def cap_pps(point: Point) -> float:
    """Return the rate of the links or cards at a point, frames/s."""
    return min(point.line_rate_pps, point.nic_cap_pps or math.inf)


def _bus_byte_per_s(point: Point) -> float:
    """Return the rate of the busy ports if a bus may limit them, or a value without limit for slow links."""
    if point.link_bps is None or point.link_bps <= _FAST_LINK_BPS:
        return _NO_LIMIT
    return point.busy_ports * point.link_bps / 8.0


def busy_rate(law: Law, theta: Floats, busy: Floats, frame_bytes: Floats) -> Floats:
    """Return the rate of one core while ``busy`` cores work, frames/s: (J, d) and (J or 1, n) to (J, n)."""
    values = law_values(law, theta)
    k = np.maximum(busy, 1.0)
    per_packet_s = np.exp(theta[:, :1])
    bytes_share = np.exp(theta[:, 1:2]) * frame_bytes / REFERENCE_BYTES
    rate: Floats = law.growth(k, values) / k / (per_packet_s * (1.0 + bytes_share))
    return rate


def law_values(law: Law, theta: Floats) -> Floats:
    """Return the physical values of a law's shapes, (J, number of shapes)."""
    raw = theta[:, COMMON_PARAMETERS : COMMON_PARAMETERS + len(law.shapes)]
    if not law.shapes:
        return raw
    values = np.stack([shape.value(raw[:, column]) for column, shape in enumerate(law.shapes)], axis=1)
    rates = np.array([shape.in_frames_per_s for shape in law.shapes])
    core_s = np.exp(theta[:, :1]) * (1.0 + np.exp(theta[:, 1:2]))
    scaled: Floats = values * np.where(rates, core_s, 1.0)
    return scaled


def log_cap(law: Law, theta: Floats, conditions: Conditions) -> Floats:
    """Return the natural logarithm of the limit by links and cards, (J, d) parameters to (J, n)."""
    return log_throughput(
        law, theta, conditions, discrepancy=np.full((len(theta), len(conditions.cores)), _UNLIMITED_LOG)
    )


def log_throughput(law: Law, theta: Floats, conditions: Conditions, *, discrepancy: Floats | None = None) -> Floats:
    """Return the natural logarithm of maximum throughputs, (J, d) parameters to (J, n).

    ``discrepancy`` (J, n) is that of the cores from the law; it leaves the limits by links and cards as they are.
    """
    c = conditions
    k = c.cores[None]
    poll, foreign, nic, bus, descriptors = (theta[:, column, None] for column in range(-len(DEVICE_SHAPES), 0))
    relative_rate = c.useful_ratio / (1.0 + poll * c.further_queues + np.exp(foreign) * c.foreign_ratio)
    if discrepancy is not None:
        relative_rate = relative_rate * np.exp(discrepancy)
    rate = relative_rate * busy_rate(law, theta, k, c.frame_bytes)
    link_limited = (c.group_offered_pps[None] < rate[:, :, None]) & (c.group_cores[None] > 0)
    core_limited = ~link_limited & (c.group_cores[None] > 0)
    # Where links limit all flows, cores do not matter. Where they limit some, partly idle cores speed up the others.
    is_mixed = (link_limited.any(axis=2) & core_limited.any(axis=2)).any(axis=0)
    if is_mixed.any():
        sub_cores, sub_offered = c.group_cores[is_mixed], c.group_offered_pps[is_mixed]
        high = np.repeat(k[:, is_mixed], len(theta), axis=0)
        low = np.zeros_like(high)
        for _ in range(_FORWARD_BISECTIONS):
            middle = 0.5 * (low + high)
            sub_rate = relative_rate[:, is_mixed] * busy_rate(law, theta, middle, c.frame_bytes[is_mixed])
            busy = (sub_cores * np.minimum(1.0, sub_offered / sub_rate[:, :, None])).sum(axis=2)
            is_below = busy > middle
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        rate[:, is_mixed] = relative_rate[:, is_mixed] * busy_rate(
            law, theta, 0.5 * (low + high), c.frame_bytes[is_mixed]
        )
    total = (c.group_cores * np.minimum(c.group_offered_pps, rate[:, :, None])).sum(axis=2)
    bus_pps = c.bus_byte_per_s * np.exp(bus) / (c.frame_bytes + np.exp(descriptors))
    total = np.minimum(total, np.minimum(c.nic_cap_pps * np.exp(nic), bus_pps))
    result: Floats = np.log(total)
    return result
