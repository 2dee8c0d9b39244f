"""Answers of a cluster by trying everything, straight from the definitions; for a few small groups only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from hypothesis import strategies as st

from routecast.plan.cluster.model import ClusterProblem, MachineGroup

Counts = tuple[int, ...]


def survives(problem: ClusterProblem, counts: Counts, load_bps: float) -> bool:
    """Whether every choice of ``spare`` machines can fail and the others still route the load."""
    machines = [group.capacity_bps for group, count in zip(problem.groups, counts, strict=True) for _ in range(count)]
    if load_bps == 0.0:
        return True
    if len(machines) < problem.spare:
        return False
    return all(
        sum(machines) - sum(lost) >= load_bps * (1.0 - 1e-12)
        for lost in itertools.combinations(machines, problem.spare)
    )


def watts(problem: ClusterProblem, counts: Counts, load_bps: float) -> float:
    """Power of machines that are on, each bit on the machine that asks the least for it."""
    total = 0.0
    left = load_bps
    machines = []
    for group, count in zip(problem.groups, counts, strict=True):
        idle_w = group.power_w if group.idle_w is None else group.idle_w
        total += idle_w * count
        machines += [((group.power_w - idle_w) / group.capacity_bps, group.capacity_bps)] * count
    for slope, capacity_bps in sorted(machines):
        share = min(left, capacity_bps)
        total += slope * share
        left -= share
    return total


def at_most(problem: ClusterProblem) -> Counts:
    """So many machines of each group that more are of no use."""
    peak_bps = max(problem.traffic_bps)
    useful = [math.ceil(peak_bps / group.capacity_bps) + problem.spare for group in problem.groups]
    return tuple(
        n if group.available is None else min(n, group.available)
        for n, group in zip(useful, problem.groups, strict=True)
    )


def subsets(limits: Counts) -> Iterator[Counts]:
    """All numbers of machines up to the limits."""
    return itertools.product(*(range(limit + 1) for limit in limits))


def least_watts(problem: ClusterProblem, fleet: Counts, load_bps: float) -> float:
    """Least power of a fleet at a load; inf if it does not carry it."""
    return min(
        (watts(problem, n, load_bps) for n in subsets(fleet) if survives(problem, n, load_bps)), default=math.inf
    )


def joules(problem: ClusterProblem, fleet: Counts) -> float:
    """Least energy of a fleet over the steps."""
    return sum(least_watts(problem, fleet, load_bps) for load_bps in problem.traffic_bps) * problem.step_s


def price(problem: ClusterProblem, fleet: Counts) -> float:
    """Price of a fleet."""
    return sum(group.price * count for group, count in zip(problem.groups, fleet, strict=True))


def best_fleet(problem: ClusterProblem) -> tuple[float, float]:
    """Least energy within the budget and the least price at that energy; inf if there is no fleet."""
    results = [
        (joules(problem, fleet), price(problem, fleet))
        for fleet in subsets(at_most(problem))
        if problem.budget is None or price(problem, fleet) <= problem.budget
    ]
    least_j = min((energy_j for energy_j, _ in results), default=math.inf)
    if math.isinf(least_j):
        return (math.inf, math.inf)
    return (least_j, min(cost for energy_j, cost in results if energy_j <= least_j * (1.0 + 1e-9)))


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    largest_group: int = 3,
    steps: int = 4,
    beyond: bool = True,
    spares: tuple[int, int] = (0, 1),
    idles: bool = False,
) -> ClusterProblem:
    """Small clusters; ``beyond`` Li (2012): idle power (``idles``: of all, drawn), limited numbers, spares."""
    groups = []
    for number in range(draw(st.integers(2, largest_group))):
        power_w = float(draw(st.integers(20, 60)))
        groups.append(
            MachineGroup(
                name=f"group {number}",
                capacity_bps=draw(st.integers(3, 9)) * 1e9,
                power_w=power_w,
                price=float(draw(st.integers(10, 40))),
                idle_w=float(draw(st.integers(0, int(power_w))))
                if idles
                else draw(st.none() | st.just(round(power_w * 0.6)))
                if beyond
                else None,
                available=draw(st.none() | st.integers(1, 3)) if beyond else None,
            )
        )
    traffic = draw(st.lists(st.integers(0, 140), min_size=2, max_size=steps).map(tuple))
    return ClusterProblem(
        groups=tuple(groups),
        traffic_bps=tuple(load * 1e8 for load in traffic),
        step_s=300.0,
        budget=draw(st.none() | st.integers(40, 140).map(float)),
        spare=draw(st.integers(*spares)) if beyond else 0,
    )
