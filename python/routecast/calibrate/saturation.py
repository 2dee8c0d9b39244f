"""Throughput under overload: cores, links and cards together (bottleneck law, paper 000 eq. 1 per flow).

::

    port 0 ═ flows 0, 2, … ═╗  each offers its share of all links, as far as its own link carries it
    port 1 ═ flows 1, 3, … ═╩═► core of the flow, at most 1/x(k̄) frames/s, k̄ = busy cores on average

The load is what all links together carry, spread evenly over the flows (paper 000, sec. VI-A: 20 Gbit/s by F flows). A
flow gets ``min(its share, its part of its link, rate of its core)``: of three flows on two links, two share one link,
and the third offers two thirds of the other. Contention makes a core slower the more other cores are busy,
and a core whose flow is limited by its link is busy only part of the time, so the rate solves ``k̄ = Σ min(1,
share·x(k̄))``. The sum has one solution because both sides are monotone, and a few steps of bisection find it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from routecast.calibrate.points import Point
from routecast.calibrate.prediction import Limit
from routecast.load.offered import line_rate_pps

__all__ = ["Saturated", "flow_groups", "saturate"]

_BISECTIONS = 40
_BINDS = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturated:
    """Throughput under overload, busy cores on average, and the limiting resource."""

    throughput_pps: float
    busy_cores: float
    limit: Limit


def flow_groups(point: Point) -> tuple[tuple[int, float], ...]:
    """Return ``(cores, frames per second offered to each)`` for the working cores.

    Crafted flows (no more flows than cores) each offer the same part of what all links carry, enter port ``i mod
    ports`` and share its link evenly. More flows than cores, or none named, spread evenly over the cores.
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


def saturate(point: Point, *, core_pps: Callable[[float], float], shared_pps: float = math.inf) -> Saturated:
    """Solve the throughput at a point's conditions.

    Parameters
    ----------
    point : Point
    core_pps : callable
        Frames per second that one core serves while so many cores (a fraction counts) are busy.
    shared_pps : float
        A limit common to all cores.
    """
    groups = flow_groups(point)

    def busy(k: float) -> float:
        rate = core_pps(k)
        return sum(cores * min(1.0, offered / rate) for cores, offered in groups)

    k = float(point.working_cores)
    if busy(k) < k * _BINDS:
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
    if shared_pps < total:
        total, limit = shared_pps, "shared"
    return Saturated(throughput_pps=total, busy_cores=k, limit=limit)
