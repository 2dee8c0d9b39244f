"""Our own allocation of whole flows to planes, with as much freedom in their paths as is allowed.

1. Aim: the splittable problem (a linear program) says at which clocks little power is needed (:mod:`.targets`).
2. Round: each flow goes whole to the plane and path that carry most of it there; again at random, by its shares.
3. Keep: tabu search moves flows until the links keep to these clocks (:mod:`.tabu`); steepest descent on the true
   power ends each try (:mod:`.descent`). The thesis' allocations and each plane alone, the others asleep, are tried
   too.
4. Tighten: from the best, somewhat slower clocks are aimed at, on one plane or all, or one faster for another slower.
5. Free: beyond XY and YX, what was found with these two is tightened once more with further paths: shortest ones, and
   those that are short where full links are long (:mod:`.detours`).

A stage ends after so many tries in vain, or near a power that whole flows need in any case (:mod:`.whole_flows`).

Flows stay whole, on one path each, and the best state that was seen is returned: no move of one flow to another of its
places in the last stage improves it. By eq. 7.3 it is never worse than the thesis' three algorithms, except where the
second plane is kept to YX, which has no place for theirs.

Complexity: with F flows, L links, P planes and C places of T links in all, a step of the search is O(C + F + T h/(P L))
array operations for paths of h links and the descent's O(T + F L); C is 2 P F for XY and YX, and at most about
``most_paths`` times P F beyond. The linear programs have 2 P F columns; there are fewer of them where there are many
flows. A mesh of 5 x 5 takes about a second, one of 8 x 8 with a flow between every two routers about ten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.planes.candidates import Candidates, Links, candidates_of
from routecast.noc.planes.descent import descend
from routecast.noc.planes.detours import light_paths
from routecast.noc.planes.flows import Flows, flows_of
from routecast.noc.planes.freedom import Freedom, fixed_paths, usable_links
from routecast.noc.planes.model import Allocation
from routecast.noc.planes.neighbourhood import Neighbourhood
from routecast.noc.planes.placement import Placement, PlanePower, checked_widths
from routecast.noc.planes.relaxation import Relaxation, Share
from routecast.noc.planes.tabu import tabu_search
from routecast.noc.planes.targets import Target, targets
from routecast.noc.planes.thesis import balance, four_phase
from routecast.noc.planes.whole_flows import whole_flow_bound
from routecast.noc.power.scaling import Scaling
from routecast.noc.topology import Topology

__all__ = ["Progress", "allocate"]

Progress: TypeAlias = Callable[[float, float], None]
"""Told the least power found, and what no allocation of whole flows is below; 0 where nothing is known."""

# Moves of one tabu search before its result is judged: so many, or one for so many flows.
_STEPS_AT_ONCE = 125
_FLOWS_A_STEP = 8
# Tries in vain after which a stage ends: few flows are quickly searched and are moved by rare trades.
_PATIENCE = (12, 60)
_PATIENCE_FLOWS = 16_000
# Places that the search has beyond XY and YX, about.
_MOST_PLACES = 40_000
# This near to the bound nothing is left to find.
_NEAR = 1e-3


def allocate(
    topology: Topology,
    demand: NDArray[np.float64],
    scalings: Sequence[Scaling],
    *,
    widths: Sequence[float] | None = None,
    freedom: Freedom = Freedom.MINIMAL,
    power: PlanePower | None = None,
    steps: int = 8000,
    most_paths: int = 24,
    seed: int = 1,
    progress: Progress | None = None,
) -> Allocation:
    """Return the allocation of least power that the search finds.

    Ctrl-C ends it with the best allocation until then, marked so, once there is one that the planes carry.

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
        Moves of the tabu search at most; as many again with paths beyond XY and YX.
    most_paths : int
        Shortest paths offered to each flow on each plane beyond XY and YX; fewer where there are many flows.
    seed : int
        Of rounding and search: one seed, one answer, however fast the machine.
    progress : callable, optional
        Is called after each try and each linear program.

    Raises
    ------
    RoutecastError
        Less than two planes, a demand that does not fit the topology or is negative, or one that no placement found
        carries.
    KeyboardInterrupt
        Ctrl-C before there is an allocation that the planes carry.
    """
    width = checked_widths(scalings, widths)
    flows = flows_of(topology, demand)
    policy = f"search, {freedom.value.replace('_', ' ')}"
    routings = [freedom.routing(plane) for plane in range(len(width))]
    if not len(flows):
        nothing = candidates_of(flows, [])
        return Placement(nothing, scalings, width, nothing.first[:-1]).allocation(policy, routings)
    bound = 0.0 if power is not None else whole_flow_bound(topology, demand, scalings, widths=widths)
    search = _Search(flows, scalings, width, power, bound, seed, progress)
    is_cut = False
    try:
        _run(search, demand, freedom, steps, most_paths)
    except KeyboardInterrupt:
        if search.best is None or not search.best.is_carried:
            raise
        is_cut = True
    assert search.best is not None
    if not search.best.is_carried:
        msg = (
            f"the search found no placement within the planes' capacity; the fullest link is loaded "
            f"{search.best.bottlenecks().max():.4g} times: lower the load"
            + ("" if freedom is Freedom.ANY else f", or allow more than {freedom} paths")
        )
        raise RoutecastError(msg)
    return replace(search.best.allocation(policy, routings), is_cut=is_cut)


def _run(search: _Search, demand: NDArray[np.float64], freedom: Freedom, steps: int, most_paths: int) -> None:
    """Run all stages of a search."""
    flows, widths = search.flows, search.widths
    topology, planes = flows.topology, range(len(widths))
    is_wide = freedom in (Freedom.MINIMAL, Freedom.ANY)
    ends = list(zip(flows.source.tolist(), flows.target.tolist(), strict=True))

    def offered(allowed: Freedom, most: int) -> list[list[list[Links]]]:
        return [
            [fixed_paths(topology, allowed, plane, *pair, most=most) for plane in planes] for pair in ends
        ]

    first = Freedom.DIMENSION_ORDER if is_wide else freedom
    candidates = candidates_of(flows, offered(first, 2))
    search.among(candidates)
    if freedom is not Freedom.PLANE_ORDER:
        for printed in (four_phase, balance):
            allocation = printed(topology, demand, search.scalings, widths=widths)
            search.consider(_choice_of(candidates, allocation))
    for plane in planes:
        search.consider(np.array([candidates.place(flow, plane) for flow in range(len(flows))]))
    if search.is_near:
        return
    slowest = np.array([scaling.slowest for scaling in search.scalings])
    identical = len({(one.alpha_max, wide) for one, wide in zip(search.scalings, widths, strict=True)}) == 1
    aims = targets(Relaxation(candidates, widths), slowest, identical=identical, most=6, tell=search.tell)
    search.aim(aims, steps // 2)
    search.tighten(steps - steps // 2)
    if not is_wide or search.is_near:
        return
    most = int(np.clip(_MOST_PLACES // (len(flows) * len(widths)), 2, most_paths))
    more = [[dict.fromkeys(paths) for paths in one] for one in offered(freedom, most)]
    assert search.best is not None
    for plane, loads in enumerate(search.best.loads / search.best.capacity[:, None]):
        for paths in light_paths(flows, loads, usable_links(topology, freedom)):
            for flow, path in enumerate(paths):
                more[flow][plane].setdefault(path)
    search.among(candidates_of(flows, [[list(paths) for paths in one] for one in more]))
    search.tighten(steps)


class _Search:
    """The best placement so far, and ways to a better one."""

    def __init__(
        self,
        flows: Flows,
        scalings: Sequence[Scaling],
        widths: tuple[float, ...],
        power: PlanePower | None,
        bound: float,
        seed: int,
        progress: Progress | None,
    ) -> None:
        self.flows, self.scalings, self.widths = flows, scalings, widths
        self._objective, self._bound, self._progress = power, bound, progress
        self._random = np.random.default_rng(seed)
        self._steps_at_once = max(_STEPS_AT_ONCE, len(flows) // _FLOWS_A_STEP)
        self._patience = int(np.clip(_PATIENCE_FLOWS // len(flows), *_PATIENCE))
        self.best: Placement | None = None
        self._power = np.inf

    @property
    def is_near(self) -> bool:
        """Whether the best is as good as anything."""
        return self._power <= self._bound * (1 + _NEAR)

    def among(self, candidates: Candidates) -> None:
        """Search among these places from now on; they have to include those of the best placement."""
        self._candidates = candidates
        self._around = Neighbourhood(candidates, self.widths)
        if self.best is not None:
            best = self.best
            self.consider(_choice(candidates, best.candidates, best.choice), anyway=True)

    def _new(self, choice: NDArray[np.int64]) -> Placement:
        return Placement(self._candidates, self.scalings, self.widths, choice, self._objective)

    def consider(self, choice: NDArray[np.int64], *, anyway: bool = False) -> bool:
        """Descend from a choice and keep the result if it is the best; return whether it is."""
        state = self._new(choice)
        descend(state, self._around)
        power = state.power()
        is_better = power < self._power * (1 - 1e-12)
        if is_better or anyway:
            self.best, self._power = state, power
        self.tell()
        return is_better

    def tell(self) -> None:
        """Tell the progress, once the planes carry the best."""
        if self._progress is not None and self.best is not None and self.best.is_carried:
            self._progress(self._power, self._bound)

    def aim(self, aims: Sequence[Target], steps: int) -> None:
        """Round each splittable optimum, once by the largest share and else at random, and search at its clocks."""
        tries = max(len(aims), steps // self._steps_at_once) if aims else 0
        in_vain = 0
        for number in range(tries):
            _, clocks, shares = aims[number % len(aims)]
            state = self._new(self._rounded(shares, by_chance=number >= len(aims)))
            in_vain = 0 if self._walk(state, clocks, max(1, steps // tries)) else in_vain + 1
            if self.is_near or (number >= len(aims) and in_vain >= self._patience // 2):
                return

    def tighten(self, steps: int) -> None:
        """Aim at clocks somewhat slower than the best placement's."""
        in_vain = 0
        for _ in range(steps // self._steps_at_once):
            if self.is_near or in_vain >= self._patience:
                return
            assert self.best is not None
            target = self.best.bottlenecks()
            change = 10 ** self._random.uniform(-3, -1, size=len(target))
            kind, plane = self._random.integers(3), self._random.integers(len(target))
            if kind == 0:
                target *= 1 - change[0]
            else:
                target[plane] *= 1 - change[0]
                if kind == 1:
                    other = (plane + 1 + self._random.integers(len(target) - 1)) % len(target)
                    target[other] *= 1 + change[1]
            state = self._new(self.best.choice)
            in_vain = 0 if self._walk(state, np.minimum(target, 1.0), self._steps_at_once) else in_vain + 1

    def _walk(self, state: Placement, target: NDArray[np.float64], steps: int) -> bool:
        """Search from a state at clocks; return whether that led to a better placement than the best."""
        _, choice = tabu_search(state, self._around, target, steps=steps, random=self._random)
        return self.consider(choice)

    def _rounded(self, shares: Sequence[Share], *, by_chance: bool) -> NDArray[np.int64]:
        """Return whole flows at their largest shares, or at shares drawn in proportion."""
        choice = self._candidates.first[:-1].copy()
        score = np.full(len(choice), -np.inf)
        for share in shares:
            # The largest log(rate) + Gumbel noise is a draw in proportion to the rates.
            mine = np.log(share.rate) + (self._random.gumbel() if by_chance else 0.0)
            if mine > score[share.flow]:
                score[share.flow] = mine
                choice[share.flow] = share.place
        return choice


def _place(candidates: Candidates, flow: int, plane: int, path: Links) -> int:
    place = candidates.place(flow, plane)
    while candidates.paths[place] != path:
        place += 1
    return place


def _choice(candidates: Candidates, before: Candidates, choice: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a choice among other places of the same flows."""
    return np.array(
        [
            _place(candidates, flow, int(before.plane[place]), before.paths[place])
            for flow, place in enumerate(choice.tolist())
        ]
    )


def _choice_of(candidates: Candidates, allocation: Allocation) -> NDArray[np.int64]:
    flows = candidates.flows
    number = {
        pair: n for n, pair in enumerate(zip(flows.source.tolist(), flows.target.tolist(), strict=True))
    }
    choice = candidates.first[:-1].copy()
    for plane, one in enumerate(allocation.planes):
        for path in one.routes.paths:
            # A rate that rounds to nothing is no flow here.
            flow = number.get((path.source, path.target))
            if flow is not None:
                choice[flow] = _place(candidates, flow, plane, path.links)
    return choice
