"""Where a fabric saturates: the largest load that it carries, and what it carries of far too much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routecast.errors import ModelProblem, Problem
from routecast.noc.simulate._fabric import Fabric
from routecast.noc.simulate._result import MeanEstimate, Simulated, busiest
from routecast.noc.simulate._run import SimulationPhases
from routecast.noc.simulate._simulator import Progress, simulate, sweep
from routecast.quantity.schema import field, value

__all__ = ["Saturation", "overload_throughput", "saturation"]

_PARTS = 5
"""A round cuts the bracket into so many parts, whose ends are simulated side by side."""

_GROSS = 2.0


@value
class Saturation:
    """The largest load that a fabric carries, between two loads."""

    flits_node_cycle: float = field(
        "The largest offered load that was carried, in flits of the first plane per node and cycle of the nodes"
    )
    factor: float = field("The same as a multiple of the fabric's traffic")
    saturated_factor: float = field(
        "The least multiple that was not carried. The search begins where the busiest link or node is full, or "
        "nodes make a packet in every cycle; if all below is carried, it is that"
    )
    simulated: tuple[Simulated, ...] = field("Every load that was tried, in rising order")


def saturation(
    fabric: Fabric, run: SimulationPhases | None = None, *, tolerance: float = 0.02, progress: Progress | None = None
) -> Saturation:
    """Find the largest load that a fabric carries, by bisection.

    A load is carried if it shows no sign of saturation (:attr:`Simulated.is_saturated`): what is made arrives, and
    neither queues nor latencies grow. Unfair routers saturate for some nodes first, so that this is at most the
    throughput at overload (:func:`overload_throughput`), and less where traffic is uneven.

    ``fabric``: its traffic is scaled, its clocks stay; ``run``: longer runs see smaller overloads; ``tolerance``: where
    the search ends: width of the bracket over its upper end; ``progress``: told the finished share of each round.
    Raises ModelProblem: as :func:`routecast.noc.simulate.simulate`; no traffic; or a tolerance out of range.
    """
    if not 1e-4 <= tolerance < 1:
        problem = Problem("tolerance", f"got {tolerance:g}: from 0.0001 to below 1")
        raise ModelProblem("network on chip", [problem])
    low, high = 0.0, min(_full(fabric), _most_made(fabric))
    tried: dict[float, Simulated] = {}
    while high - low > tolerance * high:
        factors = np.linspace(low, high, _PARTS + 1)[1:-1].tolist()
        tried |= dict(zip(factors, sweep(fabric, factors, run, progress=progress), strict=True))
        high = min((factor for factor in factors if tried[factor].is_saturated), default=high)
        low = max((factor for factor in factors if factor < high), default=low)
    return Saturation(
        flits_node_cycle=low * fabric.offered_flits_node_cycle,
        factor=low,
        saturated_factor=high,
        simulated=tuple(tried[factor] for factor in sorted(tried)),
    )


def overload_throughput(
    fabric: Fabric, run: SimulationPhases | None = None, *, progress: Progress | None = None
) -> MeanEstimate:
    """Return what a fabric accepts of twice what its busiest link or node carries, in flits per node and node cycle.

    Or of as much as nodes make, which is a packet in a cycle, where that is less. The mean over nodes: flows that meet
    no full link still get all of theirs through, so that under uneven traffic this is more than the load at which
    latency becomes unbounded (:func:`saturation`).

    Raises ModelProblem: as :func:`routecast.noc.simulate.simulate`, or no traffic.
    """
    # What is measured has long left when the queues are empty: nobody asks for its latency.
    run = replace(run or SimulationPhases(), drain_cycles=0)
    factor = min(_GROSS * _full(fabric), _most_made(fabric))
    return simulate(fabric.scaled(factor), run, progress=progress).accepted_flits_node_cycle


def _full(fabric: Fabric) -> float:
    """Return the factor at which the first link, or channel of a node, of some plane is always busy."""
    most = max(busiest(fabric, plane).load for plane in fabric.planes)
    if not most > 0:
        raise ModelProblem("network on chip", [Problem("demand", "nothing is sent: there is nothing to scale")])
    return 1 / most


def _most_made(fabric: Fabric) -> float:
    """Return the factor at which the first node makes a packet in every cycle in which it is on."""
    most = max(float(plane.demand.sum(axis=1).max(initial=0.0)) for plane in fabric.planes)
    # A margin of rounding, so that the trial of a packet has a probability of at most 1.
    return fabric.packets.mean_flits * fabric.injection.on_share / most * (1 - 1e-12)
