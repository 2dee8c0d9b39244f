"""Our own allocation of whole flows to planes, with as much freedom in their paths as is allowed.

1. Aim: the splittable problem (a linear program) says at which clocks little power is needed (:mod:`.targets`).
2. Round: each flow goes whole to the plane and path that carry most of it there; again at random, by its shares.
3. Keep: tabu search moves flows until the links keep to these clocks (:mod:`.tabu`); steepest descent on the true
   power ends each try (:mod:`.descent`). The thesis' allocations and each plane alone, the others asleep, are tried
   too; before paths beyond XY and YX, these two alone.
4. Tighten: from the best, somewhat slower clocks are aimed at, on one plane or all, or one faster for another slower.

Flows stay whole, on one path each, and the best state that was seen is returned: no move of one flow to another of its
places improves it, and by eq. 7.3 it is never worse than the thesis' three algorithms, except where the second plane
is kept to YX, which has no place for theirs.

Complexity: with F flows, L links, P planes and places of T links in all, a step of the search is O(T + F) array
operations and the descent's O(T + F L); T is about 2 P F h for XY and YX with paths of h links, and at most
``most_paths`` times P F h beyond. The linear programs have P R L columns for R routers. On a mesh of 5 x 5 with 600
flows everything takes about 2 s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.planes.candidates import Candidates, Links, candidates_of
from routecast.noc.planes.descent import descend
from routecast.noc.planes.flows import Flows, flows_of
from routecast.noc.planes.freedom import Freedom, fixed_paths, usable_links
from routecast.noc.planes.model import Allocation
from routecast.noc.planes.neighbourhood import Neighbourhood
from routecast.noc.planes.placement import Placement, PlanePower, checked_widths
from routecast.noc.planes.relaxation import ByPlace, ByTarget, Relaxation, Share
from routecast.noc.planes.tabu import tabu_search
from routecast.noc.planes.targets import Target, targets
from routecast.noc.planes.thesis import balance, four_phase
from routecast.noc.power.scaling import Scaling
from routecast.noc.topology import Topology

__all__ = ["allocate"]

# Moves of one tabu search before its result is judged.
_STEPS_AT_ONCE = 125


def allocate(
    topology: Topology,
    demand: NDArray[np.float64],
    scalings: Sequence[Scaling],
    *,
    widths: Sequence[float] | None = None,
    freedom: Freedom = Freedom.MINIMAL,
    power: PlanePower | None = None,
    steps: int = 6000,
    most_paths: int = 24,
    seed: int = 1,
) -> Allocation:
    """Return the allocation of least power that the search finds.

    Parameters
    ----------
    topology : Topology
        The grid of every plane.
    demand : array, shape (routers, routers)
        In capacities of a link of the first plane at full clock.
    scalings : sequence of Scaling
        One for each plane, at least two.
    widths : sequence of float, optional
        Capacity of each plane's links relative to the first one's.
    freedom : Freedom
        What may be chosen for a flow beside its plane.
    power : PlanePower, optional
        What is to be least, such as a router's measured power with its idle part; eq. 7.3 unless said. A plane that
        carries nothing has an entering rate of 0: give it the power that sleep takes.
    steps : int
        Moves of the tabu search in all.
    most_paths : int
        Shortest paths offered to each flow on each plane, beside those of the splittable optimum.
    seed : int
        Of rounding and search: one seed, one answer.

    Raises
    ------
    RoutecastError
        Less than two planes, a demand that does not fit the topology or is negative, or one that no placement found
        carries.
    """
    width = checked_widths(scalings, widths)
    flows = flows_of(topology, demand)
    planes = range(len(width))
    slowest = np.array([scaling.slowest for scaling in scalings])
    identical = len({(one.alpha_max, wide) for one, wide in zip(scalings, width, strict=True)}) == 1
    ends = list(zip(flows.source.tolist(), flows.target.tolist(), strict=True))
    offered = [
        [dict.fromkeys(fixed_paths(topology, freedom, plane, *pair, most=most_paths)) for plane in planes]
        for pair in ends
    ]
    policy = f"search, {freedom.value.replace('_', ' ')}"
    routings = [freedom.routing(plane) for plane in planes]
    if not len(flows):
        nothing = candidates_of(flows, [])
        return Placement(nothing, scalings, width, nothing.first[:-1]).allocation(policy, routings)
    aims = targets(_relaxation(flows, offered, freedom, width), slowest, identical=identical, most=6)
    for _, _, shares in aims:
        for share in shares:
            offered[share.flow][share.plane].setdefault(share.path)
    candidates = candidates_of(flows, [[list(paths) for paths in one] for one in offered])
    search = _Search(candidates, scalings, width, power, seed)
    if freedom is not Freedom.PLANE_ORDER:
        for printed in (four_phase, balance):
            search.consider(_choice_of(candidates, printed(topology, demand, scalings, widths=width)))
    if freedom in (Freedom.MINIMAL, Freedom.ANY):
        fewer = allocate(
            topology,
            demand,
            scalings,
            widths=widths,
            freedom=Freedom.DIMENSION_ORDER,
            power=power,
            steps=steps,
            seed=seed,
        )
        search.consider(_choice_of(candidates, fewer))
    for plane in planes:
        search.consider(np.array([candidates.place(flow, plane) for flow in range(len(flows))]))
    search.aim(aims, steps // 2)
    search.tighten(steps - steps // 2)
    if np.any(search.best.bottlenecks() > 1 + 1e-9):
        msg = (
            f"the search found no placement within the planes' capacity; the fullest link is loaded "
            f"{search.best.bottlenecks().max():.4g} times: lower the load, or allow more than {freedom} paths"
        )
        raise RoutecastError(msg)
    return search.best.allocation(policy, routings)


class _Search:
    """The best placement so far, and ways to a better one."""

    def __init__(
        self,
        candidates: Candidates,
        scalings: Sequence[Scaling],
        widths: tuple[float, ...],
        power: PlanePower | None,
        seed: int,
    ) -> None:
        self.candidates = candidates
        self.around = Neighbourhood(candidates, widths)
        self.random = np.random.default_rng(seed)
        self._given = scalings, widths
        self._power = power
        self.best: Placement = self._new(candidates.first[:-1])
        self.power = np.inf

    def _new(self, choice: NDArray[np.int64]) -> Placement:
        return Placement(self.candidates, *self._given, choice, self._power)

    def consider(self, choice: NDArray[np.int64]) -> None:
        """Descend from a choice and keep the result if it is the best."""
        state = self._new(choice)
        descend(state, self.around)
        power = state.power()
        if power < self.power * (1 - 1e-12):
            self.best, self.power = state, power

    def aim(self, aims: Sequence[Target], steps: int) -> None:
        """Round each splittable optimum, once by the largest share and else at random, and search at its clocks."""
        tries = max(len(aims), steps // _STEPS_AT_ONCE)
        for number in range(tries if aims else 0):
            _, clocks, shares = aims[number % len(aims)]
            state = self._new(self._rounded(shares, by_chance=number >= len(aims)))
            _, choice = tabu_search(
                state, self.around, clocks, steps=max(1, steps // tries), random=self.random
            )
            self.consider(choice)

    def tighten(self, steps: int) -> None:
        """Aim at clocks somewhat slower than the best placement's."""
        for _ in range(steps // _STEPS_AT_ONCE):
            target = self.best.bottlenecks()
            change = 10 ** self.random.uniform(-3, -1, size=len(target))
            kind, plane = self.random.integers(3), self.random.integers(len(target))
            if kind == 0:
                target *= 1 - change[0]
            else:
                target[plane] *= 1 - change[0]
                if kind == 1:
                    other = (plane + 1 + self.random.integers(len(target) - 1)) % len(target)
                    target[other] *= 1 + change[1]
            state = self._new(self.best.choice)
            _, choice = tabu_search(
                state, self.around, np.minimum(target, 1.0), steps=_STEPS_AT_ONCE, random=self.random
            )
            self.consider(choice)

    def _rounded(self, shares: Sequence[Share], *, by_chance: bool) -> NDArray[np.int64]:
        """Return whole flows at their largest shares, or at shares drawn in proportion."""
        choice = self.candidates.first[:-1].copy()
        score = np.full(len(choice), -np.inf)
        for share in shares:
            # The largest log(rate) + Gumbel noise is a draw in proportion to the rates.
            mine = np.log(share.rate) + (self.random.gumbel() if by_chance else 0.0)
            if mine > score[share.flow]:
                score[share.flow] = mine
                choice[share.flow] = _place(self.candidates, share.flow, share.plane, share.path)
        return choice


def _relaxation(
    flows: Flows, offered: Sequence[Sequence[Iterable[Links]]], freedom: Freedom, widths: tuple[float, ...]
) -> Relaxation:
    if freedom in (Freedom.MINIMAL, Freedom.ANY):
        return ByTarget(flows, usable_links(flows.topology, freedom), widths)
    return ByPlace(candidates_of(flows, [[list(paths) for paths in one] for one in offered]), widths)


def _place(candidates: Candidates, flow: int, plane: int, path: Links) -> int:
    place = candidates.place(flow, plane)
    while candidates.paths[place] != path:
        place += 1
    return place


def _choice_of(candidates: Candidates, allocation: Allocation) -> NDArray[np.int64]:
    flows = candidates.flows
    number = {
        pair: n for n, pair in enumerate(zip(flows.source.tolist(), flows.target.tolist(), strict=True))
    }
    choice = candidates.first[:-1].copy()
    for plane, one in enumerate(allocation.planes):
        for path in one.routes.paths:
            flow = number[path.source, path.target]
            choice[flow] = _place(candidates, flow, plane, path.links)
    return choice
