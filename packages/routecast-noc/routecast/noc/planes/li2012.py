"""Li's allocations of whole flows to planes: 2P-BALANCE, 2P-MINI and 2P-4PHASE (sec. 7.3.2, Algorithms 1-3).

All flows start on plane 1, the master; each algorithm moves some of them to the others, the slaves. BL is the
bottleneck load of a plane, BF the flows that contribute to its bottleneck links. Where Li (2012) leaves details open,
this module reads them so (:class:`Interpretation` has the alternatives):

* Ties of ``arg max lambda``: the first flow by source, then by target. That matters: all flows to a hot spot have one
  rate, and at load 1 on 5 x 5 the order among them moves 2P-MINI's gain from 4.2 (shortest first) to 4.9 (longest).
* BF where several links have the largest load: the flows through any of them.
* W: "W_1 = W_1 - lambda_max" of Algorithm 3 against "W_i = sum of lambda h" in the text: rate times hops, as the
  power of eq. 7.3 needs it.
* S_1 after a successful move (line 14): all of BF again, with the flows tried before in vain. Flows only leave the
  master, so the loop ends.
* M is never defined: the flows on the master outside BF when the second loop begins, as phase P4 says.
* Values that differ by rounding alone are equal, so that a demand at another scale is allocated alike.
* alpha = mu / BL is kept within [1, alpha_max].
* "After running our 4PHASE algorithm, there is not possible to move a single traffic flow to decrease the whole chip
  power" does not hold of the printed loops, which run once; :attr:`Interpretation.repeated` runs them until nothing
  moves.

Beyond Li (2012): more than two planes (a flow goes to the slave with the least bottleneck in BALANCE, to the first
slave with room in MINI, to the slave of the least power in 4PHASE) and unequal ones (BL is relative to a plane's
width, and each slave has its own alpha_max). Planes are tried in the order given, so the master should be the
strongest.

Complexity for F flows, L links and paths of h links: BL is looked up in O(L) and BF in O(F) for each bottleneck link,
so that BALANCE and MINI cost O(F (L + F)) and 4PHASE O(F^2 (L + F)) in the worst case, F times less where few moves
succeed; with a heap of link loads Li (2012) has O(F log L) and O(F h log L).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes._placement import FlowPlacement, checked_widths, plane_power
from routecast.noc.planes.candidates import Candidates, candidates_of, dimension_order, flows_of, routed
from routecast.noc.planes.model import Allocation
from routecast.noc.routing.model import Routes
from routecast.noc.scaling import Scaling
from routecast.noc.topology import Floats, Ints, Topology
from routecast.quantity.schema import field, value

__all__ = ["AS_PRINTED", "Interpretation", "Tie", "balance", "four_phase", "mini"]

# Smaller relative differences are rounding: 3 * 1/9 of a link is as much as 1/3.
_ROUNDING = 1e-9
# The demand is scaled so that its sum is between half of this and this: rounding then does not depend on its scale.
_MAX_SUM = 2.0**15


class Tie(StrEnum):
    """Which of several equally large flows moves first."""

    FIRST = "first"
    LAST = "last"
    LONGEST = "longest"
    SHORTEST = "shortest"


@value
class Interpretation:
    """How to read the algorithms where their text is open."""

    tie: Tie = field("Order of equally large flows", default=Tie.FIRST)
    through_all: bool = field("BF is the flows through every bottleneck link, not through any", default=False)
    weight_without_hops: bool = field(
        "W changes by the rate alone, as Algorithm 3 prints it (its start value is rate times hops)", default=False
    )
    everything_in_m: bool = field("M holds all flows on the master, not only those outside BF", default=False)
    repeated: bool = field("The loops of phases P3 and P4 run again until neither moves a flow", default=False)


AS_PRINTED = Interpretation()


def balance(
    topology: Topology,
    demand: Floats,
    scalings: Sequence[Scaling],
    *,
    routes: Sequence[Routes] | None = None,
    widths: Sequence[float] | None = None,
    interpretation: Interpretation = AS_PRINTED,
) -> Allocation:
    """Return the allocation of 2P-BALANCE (Algorithm 1): bottleneck flows move while the slave has less.

    Parameters
    ----------
    topology : Topology
        The grid of every plane.
    demand : array, shape (routers, routers)
        In capacities of a link of the first plane at full clock.
    scalings : sequence of Scaling
        One for each plane, the master first.
    routes : sequence of Routes, optional
        One unsplit routing for each plane; XY where absent.
    widths : sequence of float, optional
        Capacity of each plane's links relative to the first one's.
    interpretation : Interpretation
        How to read the algorithm where its text is open.

    Raises
    ------
    RoutecastError
        Less than two planes, a demand that does not fit the topology or is negative, a routing that splits flows.
    """
    state, routings = _all_on_master(topology, demand, scalings, routes, widths)
    _balance(state, interpretation)
    return state.allocation("2P-BALANCE", routings)


def mini(
    topology: Topology,
    demand: Floats,
    scalings: Sequence[Scaling],
    *,
    routes: Sequence[Routes] | None = None,
    widths: Sequence[float] | None = None,
    interpretation: Interpretation = AS_PRINTED,
) -> Allocation:
    """Return the allocation of 2P-MINI (Algorithm 2): every slave is filled up to its slowest clock.

    Parameters and Raises as in :func:`balance`.
    """
    state, routings = _all_on_master(topology, demand, scalings, routes, widths)
    _mini(state, interpretation)
    return state.allocation("2P-MINI", routings)


def four_phase(
    topology: Topology,
    demand: Floats,
    scalings: Sequence[Scaling],
    *,
    routes: Sequence[Routes] | None = None,
    widths: Sequence[float] | None = None,
    interpretation: Interpretation = AS_PRINTED,
) -> Allocation:
    """Return the allocation of 2P-4PHASE (Algorithm 3): 2P-MINI, then moves that do not raise the power.

    Parameters and Raises as in :func:`balance`.
    """
    state, routings = _all_on_master(topology, demand, scalings, routes, widths)
    _mini(state, interpretation)
    _move_by_power(state, interpretation)
    return state.allocation("2P-4PHASE", routings)


def _all_on_master(
    topology: Topology,
    demand: Floats,
    scalings: Sequence[Scaling],
    routes: Sequence[Routes] | None,
    widths: Sequence[float] | None,
) -> tuple[FlowPlacement, tuple[str, ...]]:
    width = checked_widths(scalings, widths)
    unscaled = flows_of(topology, demand)
    # A power of two, so that scaling rounds nothing.
    scale = 2.0 ** math.floor(math.log2(_MAX_SUM / unscaled.demand.sum())) if unscaled.demand.any() else 1.0
    flows = replace(flows_of(topology, unscaled.demand * scale), demand=unscaled.demand)
    if routes is None:
        ends = zip(flows.source.tolist(), flows.target.tolist(), strict=True)
        candidates = candidates_of(flows, [[[dimension_order(topology, *pair)]] * len(width) for pair in ends])
        names: tuple[str, ...] = ("xy",) * len(width)
    else:
        candidates = routed(flows, routes)
        names = tuple(route.policy for route in routes)
    state = FlowPlacement(candidates, scalings, width, candidates.first[:-1].copy())
    state.capacity = state.capacity * scale
    return state, names


def _order(candidates: Candidates, tie: Tie) -> Ints:
    """Return the flows from the largest to the smallest."""
    number = np.arange(len(candidates.flows))
    rate = _levels(candidates.flows.rate)
    hops = candidates.hops[candidates.first[:-1]]
    keys = {Tie.FIRST: number, Tie.LAST: -number, Tie.LONGEST: -hops, Tie.SHORTEST: hops}
    return np.lexsort((number, keys[tie], -rate))


def _levels(rates: Ints) -> Ints:
    """Return the number of different rates below each rate, up to rounding."""
    order = np.argsort(rates, kind="stable")
    rising = rates[order].astype(np.float64)
    levels = np.zeros(len(rates), dtype=np.int64)
    levels[order[1:]] = np.cumsum(rising[1:] > rising[:-1] * (1.0 + _ROUNDING))
    return levels


def _bottleneck_flows(state: FlowPlacement, interpretation: Interpretation) -> NDArray[np.bool_]:
    """Return BF of the master, shape (flows,)."""
    loads = state.loads[0]
    is_bottleneck = loads >= loads.max(initial=0) * (1.0 - _ROUNDING)
    crosses = state.candidates.crosses[np.ix_(state.choice, np.flatnonzero(is_bottleneck))] > 0
    through = np.all(crosses, axis=1) if interpretation.through_all else np.any(crosses, axis=1)
    return np.asarray(through & state.on_plane(0), dtype=np.bool_)


def _first_included(order: Ints, is_included: NDArray[np.bool_]) -> int | None:
    included = order[is_included[order]]
    return int(included[0]) if len(included) else None


def _slave_candidates(state: FlowPlacement, flow: int) -> range:
    """Return the candidates of a flow on the slaves."""
    return range(int(state.candidates.first[flow]) + 1, int(state.candidates.first[flow + 1]))


def _attempt_bottleneck_flows(
    state: FlowPlacement, interpretation: Interpretation, attempt: Callable[[int], None]
) -> NDArray[np.bool_]:
    """Attempt each flow of BF once (lines 2-9 of Algorithms 1 and 2); return which flows were not attempted."""
    order = _order(state.candidates, interpretation.tie)
    left = np.ones(len(order), dtype=np.bool_)
    while (flow := _first_included(order, _bottleneck_flows(state, interpretation) & left)) is not None:
        attempt(flow)
        left[flow] = False
    return left


def _balance(state: FlowPlacement, interpretation: Interpretation) -> None:
    def attempt(flow: int) -> None:
        loads = {candidate: state.bottleneck_with(flow, candidate) for candidate in _slave_candidates(state, flow)}
        least = min(loads.values())
        if state.bottleneck_without(flow) >= least * (1.0 - _ROUNDING):
            state.move(flow, next(candidate for candidate, load in loads.items() if load <= least * (1.0 + _ROUNDING)))

    _attempt_bottleneck_flows(state, interpretation, attempt)


def _mini(state: FlowPlacement, interpretation: Interpretation) -> None:
    def attempt(flow: int) -> None:
        for candidate in _slave_candidates(state, flow):
            limit = state.slowest[state.candidates.plane[candidate]]
            if state.bottleneck_with(flow, candidate) <= limit * (1.0 + _ROUNDING):
                state.move(flow, candidate)
                return

    left = _attempt_bottleneck_flows(state, interpretation, attempt)
    for flow in _order(state.candidates, interpretation.tie).tolist():
        if left[flow]:
            attempt(flow)


def _move_by_power(state: FlowPlacement, interpretation: Interpretation) -> None:
    """Run phases P3 and P4 (Algorithm 3, lines 2-29)."""
    order = _order(state.candidates, interpretation.tie)
    # The algorithm's W; with hops it equals that of the state.
    weight = state.weight.copy()
    unit = state.capacity[0] / state.widths[0]

    def total_power() -> float:
        return float(plane_power(weight / unit, state.bottlenecks(), state.slowest).sum())

    def shift(flow: int, candidate: int) -> None:
        rate = state.candidates.flows.rate[flow]
        for changed, change in ((state.choice[flow], -rate), (candidate, rate)):
            hops = 1 if interpretation.weight_without_hops else len(state.candidates.paths[changed])
            weight[state.candidates.plane[changed]] += change * hops
        state.move(flow, candidate)

    def attempt(flow: int) -> bool:
        before, home = total_power(), int(state.choice[flow])
        best: tuple[float, int] | None = None
        for candidate in _slave_candidates(state, flow):
            shift(flow, candidate)
            after = total_power()
            if after <= before * (1.0 + _ROUNDING) and (best is None or after < best[0] * (1.0 - _ROUNDING)):
                best = after, candidate
            shift(flow, home)
        if best is not None:
            shift(flow, best[1])
        return best is not None

    moved = True
    while moved:
        moved = False
        left = _bottleneck_flows(state, interpretation)
        while (flow := _first_included(order, left)) is not None:
            if attempt(flow):
                moved = True
                left = _bottleneck_flows(state, interpretation)
            else:
                left[flow] = False
        rest = state.on_plane(0)
        if not interpretation.everything_in_m:
            rest &= ~_bottleneck_flows(state, interpretation)
        for flow in order[rest[order]].tolist():
            moved = attempt(flow) or moved
        moved = moved and interpretation.repeated
