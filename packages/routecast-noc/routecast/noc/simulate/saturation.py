"""Saturation of a fabric: the largest load that it carries, and its throughput at overload."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from routecast.errors import ModelProblem, Problem
from routecast.noc.simulate._design import SimulationPhases
from routecast.noc.simulate._fabric import Fabric
from routecast.noc.simulate._result import MeanEstimate, Simulated, busiest_channel
from routecast.noc.simulate._simulator import simulate, sweep
from routecast.progress import ShareProgress
from routecast.quantity.schema import field, value

__all__ = ["Saturation", "overload_throughput", "saturation"]

# Parts into which a round of the search cuts the bracket; the loads between them are simulated at once.
_BRACKET_PARTS = 5
# Load of the busiest link or node at overload.
_OVERLOAD = 2.0


@value
class Saturation:
    """The largest load that a fabric carries, between two loads."""

    flits_node_cycle: float = field(
        "The largest load that is carried, in flits of the first plane per node and cycle of the nodes"
    )
    factor: float = field("The same as a multiple of the fabric's traffic")
    saturated_factor: float = field(
        "The least multiple that is not carried; at most where the busiest link or node is full, or nodes create a "
        "packet in every cycle"
    )
    simulated: tuple[Simulated, ...] = field("Every load of the search, in rising order")


def saturation(
    fabric: Fabric,
    run: SimulationPhases | None = None,
    *,
    tolerance: float = 0.02,
    on_progress: ShareProgress | None = None,
) -> Saturation:
    """Find the largest load that a fabric carries, by bisection.

    A load is carried if it shows no sign of saturation (:attr:`Simulated.is_saturated`): all packets arrive, and
    neither queues nor latencies grow. Unfair routers saturate for some nodes first, so that this is at most the
    throughput at overload (:func:`overload_throughput`), and less where traffic is uneven.

    Parameters
    ----------
    fabric : Fabric
        Its traffic is scaled, its clocks stay.
    run : SimulationPhases, optional
        Longer runs detect smaller overloads.
    tolerance : float
        The search ends when the bracket is this narrow, relative to its upper end.
    on_progress : callable, optional
        Is called with the finished share of each round.

    Raises
    ------
    ModelProblem
        As :func:`routecast.noc.simulate.simulate`; no traffic; or a tolerance out of range.
    """
    if not 1e-4 <= tolerance < 1:
        problem = Problem("tolerance", f"got {tolerance:g}: from 0.0001 to below 1")
        raise ModelProblem("network on chip", [problem])
    low, high = 0.0, min(_full_factor(fabric), _max_creation_factor(fabric))
    results: dict[float, Simulated] = {}
    while high - low > tolerance * high:
        factors = np.linspace(low, high, _BRACKET_PARTS + 1)[1:-1].tolist()
        results |= dict(zip(factors, sweep(fabric, factors, run, on_progress=on_progress), strict=True))
        high = min((factor for factor in factors if results[factor].is_saturated), default=high)
        low = max((factor for factor in factors if factor < high), default=low)
    return Saturation(
        flits_node_cycle=low * fabric.offered_flits_node_cycle,
        factor=low,
        saturated_factor=high,
        simulated=tuple(results[factor] for factor in sorted(results)),
    )


def overload_throughput(
    fabric: Fabric, run: SimulationPhases | None = None, *, on_progress: ShareProgress | None = None
) -> MeanEstimate:
    """Return the throughput at twice the load of a full link or node, in flits per node and node cycle.

    Where a node cannot create that many packets, the load is that of a packet in every cycle of a node. It is the mean
    over nodes: flows that meet no full link still arrive, so that under uneven traffic this is more than the load at
    which latency becomes unbounded (:func:`saturation`).

    Raises ModelProblem: as :func:`routecast.noc.simulate.simulate`, or no traffic.
    """
    # Latency is not needed, so that nothing is drained.
    run = replace(run or SimulationPhases(), drain_cycles=0)
    factor = min(_OVERLOAD * _full_factor(fabric), _max_creation_factor(fabric))
    return simulate(fabric.scaled(factor), run, on_progress=on_progress).accepted_flits_node_cycle


def _full_factor(fabric: Fabric) -> float:
    """Return the factor at which the first link, or channel of a node, is always busy."""
    max_load = max(busiest_channel(fabric, plane).load for plane in fabric.planes)
    if not max_load > 0:
        raise ModelProblem("network on chip", [Problem("demand", "nothing is sent: there is nothing to scale")])
    return 1 / max_load


def _max_creation_factor(fabric: Fabric) -> float:
    """Return the factor at which the first node creates a packet in every cycle in which it is on."""
    max_rate = max(float(plane.demand.sum(axis=1).max(initial=0.0)) for plane in fabric.planes)
    # A margin for rounding, so that no probability is above 1.
    return fabric.packets.mean_flits * fabric.injection.on_share / max_rate * (1 - 1e-12)
