"""Our own allocation of whole flows to planes, with as much freedom in their paths as is allowed.

1. Aim: the splittable problem (a linear program) says at which clocks little power is needed (:mod:`.targets`).
2. Round: each flow goes whole to the plane and path that carry most of it there; again at random, by its shares.
3. Keep: tabu search moves flows until the links keep to these clocks (:mod:`.tabu`); steepest descent on the true
   power ends each try (:mod:`.descent`). Li's allocations and each plane alone, the others asleep, are tried
   too.
4. Tighten: from the best, somewhat slower clocks are aimed at, on one plane or all, or one faster for another slower.
5. Free: beyond XY and YX, what was found with these two is tightened once more with further paths: shortest ones, and
   those that are short where full links are long (:mod:`.detours`).

A stage ends after so many tries in vain, or near a power that whole flows need in any case (:mod:`.whole_flows`).

Flows stay whole, on one path each, and the best state that was seen is returned: no move of one flow to another of its
places in the last stage improves it. By eq. 7.3 it is never worse than Li's three algorithms, except where the
second plane is kept to YX, which has no place for theirs.

Complexity: with F flows, L links, P planes and C places of T links in all, a step of the search is O(C + F + T h/(P L))
array operations for paths of h links and the descent's O(T + F L); C is 2 P F for XY and YX, and at most about
``most_paths`` times P F beyond. The linear programs have 2 P F columns; there are fewer of them where there are many
flows. A mesh of 5 x 5 takes about a second, one of 8 x 8 with a flow between every two routers about ten.

The splittable optimum at fixed clocks, from which whole flows are rounded (eqs. 7.7-7.12 with alpha fixed).

With b_p = 1/alpha_p given, least power is a linear program: the hop-flow of plane p costs b_p^2, its links carry b_p.
Its variables are the parts of the flows at their places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.planes._placement import FlowPlacement, Neighbourhood, PlanePower, checked_widths
from routecast.noc.planes.candidates import (
    UNIT,
    Candidates,
    Flows,
    Freedom,
    Links,
    candidates_of,
    fixed_paths,
    flows_of,
    usable_links,
)
from routecast.noc.planes.li2012 import balance, four_phase
from routecast.noc.planes.model import Allocation
from routecast.noc.planes.whole_flows import whole_flow_bound
from routecast.noc.power.scaling import Scaling
from routecast.noc.topology import Topology, links
from routecast.quantity.schema import value

__all__ = ["Overloads", "Relaxation", "Share", "allocate", "light_paths"]

# Traffic below this part of a capacity is the solver's rounding.
_NOTHING = 1e-9


@value
class Share:
    """Part of a flow that the relaxation puts at a place."""

    flow: int
    place: int
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Program:
    """min cost x, loads x <= limit, equal x = right, x >= 0; `plane` is the one that a column loads, or -1."""

    plane: NDArray[np.int64]
    hop_flow: NDArray[np.float64]
    loads: Any
    width: NDArray[np.float64]
    equal: Any
    right: NDArray[np.float64]

    def least_power(self, clocks: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]] | None:
        """Return the least power at these clocks and its columns; None where they do not carry the traffic."""
        from scipy.optimize import linprog

        cost = self.hop_flow * clocks[self.plane] ** 2
        limit = np.repeat(clocks * self.width, self.loads.shape[0] // len(clocks))
        result = linprog(cost, A_ub=self.loads, b_ub=limit, A_eq=self.equal, b_eq=self.right, method="highs")
        return None if result.fun is None else (float(result.fun), np.asarray(result.x))

    def least_stretch(self, ratio: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return the least u for which the clocks u ratio carry the traffic, and the columns that do."""
        from scipy import sparse
        from scipy.optimize import linprog

        rows, columns = self.loads.shape
        limit = np.repeat(ratio * self.width, rows // len(ratio))
        result = linprog(
            np.concatenate([np.zeros(columns), [1.0]]),
            A_ub=sparse.hstack([self.loads, sparse.csr_matrix(-limit[:, None])], format="csr"),
            b_ub=np.zeros(rows),
            A_eq=sparse.hstack([self.equal, sparse.csr_matrix((self.equal.shape[0], 1))], format="csr"),
            b_eq=self.right,
            method="highs",
        )
        if result.fun is None:
            return np.inf, np.zeros(columns)
        return float(result.fun), np.asarray(result.x)[:columns]


class Relaxation:
    """The splittable problem: flows split over their places.

    ``widths``: of each plane's links.
    """

    def __init__(self, candidates: Candidates, widths: Sequence[float]) -> None:
        self._candidates = candidates
        self._rate = candidates.flows.rate[candidates.flow] / UNIT
        self._program = _program(candidates, np.asarray(widths), np.ones(len(candidates.paths), dtype=bool))
        self.columns = len(candidates.paths)
        self._merged: float | None = None
        # The path of each flow that carries most of it.
        self._main = candidates.first[:-1]
        if _is_alike(candidates):
            first = np.flatnonzero(candidates.plane == 0)
            merged = _program(candidates, np.ones(1), candidates.plane == 0)
            self._merged, part = merged.least_stretch(np.ones(1))
            flow = candidates.flow[first]
            # The last of a flow's columns by rising part is its largest.
            self._main = first[
                np.lexsort((part, flow))[np.searchsorted(flow, np.arange(len(candidates.flows)), "right") - 1]
            ]

    def least_stretch(self, ratio: NDArray[np.float64]) -> float:
        """Return the least u for which the clocks b_p = u ratio_p carry the traffic.

        Planes with the same paths carry together what one plane as wide as all does, each its part.
        """
        if self._merged is None:
            return self._program.least_stretch(ratio)[0]
        return self._merged / float(np.sum(ratio * self._program.width))

    def least_power(self, clocks: NDArray[np.float64]) -> tuple[float, list[Share]] | None:
        """Return the least power at the clocks b_p = 1/alpha_p with its shares; None where they do not carry it."""
        solved = self._program.least_power(clocks)
        if solved is None:
            return None
        power, part = solved
        flow = self._candidates.flow
        return power, [
            Share(flow=int(flow[link]), place=link, rate=float(part[link] * self._rate[link]))
            for link in np.flatnonzero(part > _NOTHING).tolist()
        ]

    def filled_power(self, clocks: NDArray[np.float64]) -> float:
        """Return the power at the clocks of whole flows that fill the planes one by one: quick, and not the least.

        Large flows come first, each on the slowest plane with room, or else on the fastest, over the path that fills
        one plane alone least.
        """
        candidates, rates = self._candidates, self._candidates.flows.rate / UNIT
        limits = clocks * self._program.width
        loads = np.zeros((len(clocks), candidates.crosses.shape[1]))
        slow_first = np.argsort(clocks, kind="stable").tolist()
        power = 0.0
        for flow in np.argsort(-rates, kind="stable").tolist():
            rate, path = float(rates[flow]), candidates.paths[self._main[flow]]
            for plane in slow_first:
                if loads[plane, path].max() + rate <= limits[plane] + _NOTHING:
                    break
            loads[plane, path] += rate
            power += rate * len(path) * float(clocks[plane]) ** 2
        return power


def _is_alike(candidates: Candidates) -> bool:
    """Return whether every flow has the same paths on all planes."""
    planes = candidates.plane_count
    on = [np.flatnonzero(candidates.plane == plane) for plane in range(planes)]
    return all(
        len(here) == len(on[0])
        and all(candidates.paths[load] == candidates.paths[other] for load, other in zip(on[0], here, strict=True))
        for here in on[1:]
    )


def _program(candidates: Candidates, widths: NDArray[np.float64], among: NDArray[np.bool_]) -> _Program:
    """Return the program over some of the places, which are on the first planes."""
    from scipy import sparse

    flows, chosen = candidates.flows, np.flatnonzero(among)
    count, link_count = len(chosen), candidates.crosses.shape[1]
    crosses, plane = candidates.crosses[chosen], candidates.plane[chosen]
    rate = flows.rate[candidates.flow[chosen]] / UNIT
    place, link = np.nonzero(crosses)
    rows = plane[place] * link_count + link
    columns = np.arange(count)
    return _Program(
        plane=plane,
        hop_flow=rate * candidates.hops[chosen],
        loads=sparse.csr_matrix((rate[place], (rows, place)), shape=(len(widths) * link_count, count)),
        width=widths,
        equal=sparse.csr_matrix((np.ones(count), (candidates.flow[chosen], columns)), shape=(len(flows), count)),
        right=np.ones(len(flows)),
    )


# An improvement smaller than this part of the power is rounding.
_SMALLEST = 1e-9


def descend(state: FlowPlacement, around: Neighbourhood) -> int:
    """Make the best move of one flow until none lowers the power; return the number of moves."""
    moves = 0
    used = around.used(state.choice)
    power = state.power()
    while len(state.choice):
        after = around.power_after(state, used)
        best = int(np.argmin(after))
        if after[best] >= power * (1 - _SMALLEST):
            break
        flow = int(around.candidates.flow[best])
        state.move(flow, best)
        used[flow] = around.row(best)
        power = state.power()
        moves += 1
    return moves


# How much longer than an empty link a full one is, and the power of its load by which it is. A way round a link takes
# two more.
_LONGER = (4.0, 1.0)
_STEEPNESS = (6.0, 2.0)


def light_paths(flows: Flows, loads: NDArray[np.float64], usable: NDArray[np.bool_]) -> list[list[Links]]:
    """Return paths for all flows that avoid the fullest links, once for each idea of how long these are.

    ``loads``: what the links of a plane carry; ``usable``: which links traffic to a router may use.
    """
    relative = loads / max(float(loads.max(initial=0.0)), 1e-12)
    return [
        _shortest(flows, 1 + longer * relative**steepness, usable)
        for longer, steepness in zip(_LONGER, _STEEPNESS, strict=True)
    ]


def _shortest(flows: Flows, length: NDArray[np.float64], usable: NDArray[np.bool_]) -> list[Links]:
    """Return the path of least length of each flow; lengths are positive."""
    topology = flows.topology
    target = np.array([link.target for link in links(topology)])
    leaving = _leaving(topology)
    routers = topology.router_count
    # One more column for the link that is not there.
    cost = np.where(np.pad(usable, ((0, 0), (0, 1))), np.append(length, np.inf), np.inf)
    to = np.append(target, 0)
    distance = np.where(np.eye(routers, dtype=np.bool_), 0.0, np.inf)
    while True:
        through = cost[:, leaving] + distance[:, to[leaving]]
        new = np.minimum(distance, through.min(axis=2))
        if np.array_equal(new, distance):
            break
        distance = new
    next_link = leaving[np.arange(routers), np.argmin(through, axis=2)]
    paths: list[Links] = []
    step, ahead = next_link.tolist(), target.tolist()
    for source, end in zip(flows.source.tolist(), flows.target.tolist(), strict=True):
        router, path = source, list[int]()
        while router != end:
            path.append(step[end][router])
            router = ahead[path[-1]]
        paths.append(tuple(path))
    return paths


def _leaving(topology: Topology) -> NDArray[np.int64]:
    """Return the links that leave each router, shape (routers, most), filled with the number after the last link."""
    every = links(topology)
    out: list[list[int]] = [[] for _ in range(topology.router_count)]
    for number, link in enumerate(every):
        out[link.source].append(number)
    most = max(len(link) for link in out)
    return np.array([link + [len(every)] * (most - len(link)) for link in out], dtype=np.int64)


Target = tuple[float, NDArray[np.float64], list[Share]]
"""Power of the splittable problem, the clocks 1/alpha of the planes, and the flows' shares there."""

# How a plane's clock stands to the fastest plane's: from balance to concentration.
_RATIOS = (1.0, 0.85, 0.7, 0.55, 0.4)
# Faster than the slowest clocks that carry the traffic, so that more of it fits on slow planes; for the best ratios.
_ROOM = (1.04, 1.12)
_BEST = 2
# Of all programs; where there are more, ratios are judged by the flows that fill the planes one by one.
_COLUMNS = 32_000
_MOST_PROGRAMS = 16


def targets(
    relaxation: Relaxation,
    slowest: NDArray[np.float64],
    *,
    identical: bool,
    most: int,
    tell: Callable[[], None] = lambda: None,
) -> list[Target]:
    """Return clocks worth aiming at with their splittable optima, the one of least power first.

    For each ratio among the planes' clocks, the slowest clocks that carry the traffic are the border; the least power
    lies on it or a little faster.

    ``slowest``: 1/alpha_max of each plane; ``identical``: whether the planes are alike, so that their order says
    nothing; ``most``: how many to return; ``tell``: is called after each program.
    """
    moves: list[tuple[float, NDArray[np.float64], NDArray[np.float64], list[Share]]] = []
    seen: set[tuple[float, ...]] = set()

    def solve(ratio: NDArray[np.float64], room: float) -> None:
        # The solver's tolerance must not make the border infeasible.
        clocks = np.clip(stretches[tuple(ratio)] * ratio * room * (1 + 1e-7), slowest, 1.0)
        key = tuple(np.round(clocks, 6).tolist())
        if key in seen:
            return
        seen.add(key)
        solved = relaxation.least_power(clocks)
        tell()
        if solved is not None:
            moves.append((solved[0], ratio, clocks, solved[1]))

    ratios = _ratios(len(slowest), slowest, identical)
    stretches = {tuple(ratio): relaxation.least_stretch(ratio) for ratio in ratios}
    ratios = [ratio for ratio in ratios if np.isfinite(stretches[tuple(ratio)])]
    programs = int(np.clip(_COLUMNS // relaxation.columns, 2, min(len(ratios), _MOST_PROGRAMS)))
    if programs < len(ratios):
        ratios.sort(key=lambda ratio: relaxation.filled_power(np.clip(stretches[tuple(ratio)] * ratio, slowest, 1.0)))
    for ratio in ratios[:programs]:
        solve(ratio, 1.0)
    moves.sort(key=lambda move: move[0])
    for _, ratio, _, _ in moves[: _BEST if programs == len(ratios) else 0]:
        for room in _ROOM:
            solve(ratio, room)
    moves.sort(key=lambda move: move[0])
    return [(power, clocks, shares) for power, _, clocks, shares in moves[:most]]


def _ratios(planes: int, slowest: NDArray[np.float64], identical: bool) -> list[NDArray[np.float64]]:
    """Return the ratios to try, the fastest plane at 1; with more than three planes, only two different clocks."""
    if planes <= 3:
        grid = [np.array(ratios) for ratios in product(_RATIOS, repeat=planes) if max(ratios) == 1.0]
    else:
        grid = [np.array([1.0] * fast + [ratio] * (planes - fast)) for fast in range(1, planes) for ratio in _RATIOS]
    if identical:
        grid = [ratios for ratios in grid if np.all(np.diff(ratios) <= 0)]
    return list({tuple(np.maximum(ratios, slowest).tolist()): ratios for ratios in grid}.values())


Floats = NDArray[np.float64]


class Overloads:
    """The sum of squared overloads over a target, each at its link's price, and what each single move changes of it.

    What single moves do to the overloads over given clocks, kept up to date from move to move.

    A move changes the loads of the few links on the old and the new path. Only places over these links look different
    afterwards, so that with T links on all C places and K links in the grid's planes a step costs O(T h / K + C) for
    paths of h links, instead of O(T).

    ``state``: moved by :meth:`move` alone from now on; ``target``: relative load of a plane's links from which on it is
    an overload. ``come``: what the links of each place add if its flow comes there. Where a link is on the flow's path
    of now it is what leaving saves instead, so that ``come[place] - come[choice of its flow]`` is what the move
    changes.
    """

    def __init__(self, state: FlowPlacement, around: Neighbourhood, target: Floats) -> None:
        self._state, self._around = state, around
        self._over = (state.loads / state.capacity[:, None] - target[:, None]).reshape(-1)
        self._used = around.used(state.choice).reshape(-1)
        # How much each link's overload counts.
        self._price = np.ones(around.cells)
        self._terms = self._terms_of(slice(None))
        self.come: Floats = np.add.reduceat(self._terms, around.start)

    def move(self, flow: int, place: int, *, dearer: float = 1.0) -> None:
        """Put a flow at another of its places, and let the overloads that there are count so many times more."""
        around, state = self._around, self._state
        old = int(state.choice[flow])
        state.move(flow, place)
        left, met = around.cells_of(old), around.cells_of(place)
        first = flow * around.cells
        self._used[first + left] = False
        self._used[first + met] = True
        self._over[left] -= around.relative[old]
        self._over[met] += around.relative[place]
        # A link on both paths keeps its load, and up to rounding that is what the two lines above give it.
        cells = {*left.tolist(), *met.tolist()}
        if dearer != 1.0:
            over = np.flatnonzero(self._over > 1e-9)
            self._price[over] *= dearer
            cells.update(over.tolist())
        at = np.concatenate([around.at_cell[cell] for cell in sorted(cells)])
        terms = self._terms_of(at)
        self.come += np.bincount(around.of[at], weights=terms - self._terms[at], minlength=len(self.come))
        self._terms[at] = terms

    def change(self) -> Floats:
        """Return by how much the move to each place changes the sum of squared overloads, shape (C,)."""
        of = self._around.candidates.flow
        change: Floats = self.come - self.come[self._state.choice][of]
        return change

    def _terms_of(self, at: NDArray[np.int64] | slice) -> Floats:
        around = self._around
        over, step = self._over[around.cell[at]], around.step[at]
        both = self._used[around.flow_cells[at]]
        now = np.maximum(over, 0.0)
        then = np.maximum(np.where(both, over - step, over + step), 0.0)
        terms: Floats = self._price[around.cell[at]] * np.where(both, -1.0, 1.0) * (then * then - now * now)
        return terms


# Steps for which a flow stays where it was put: at least, and up to so many more.
_REST = (4, 12)
# By how much, and after how many moves each time, links count more that are overloaded then.
_DEARER = 1.2
_EVERY = 3
# How fast the price of overloads moves.
_PRICE_STEP = 1.15


def tabu_search(
    state: FlowPlacement, around: Neighbourhood, target: NDArray[np.float64], *, steps: int, random: np.random.Generator
) -> tuple[float, NDArray[np.int64]]:
    """Return the least true power that was passed, and the choice that has it; the state ends elsewhere.

    Tabu search for a placement that keeps to given clocks at little power.

    The power has plateaus: as long as one of several full links stays, no move off the others is seen. With the clocks
    given as targets, every overload counts, squared, beside the power that the flows would need at these clocks. Each
    step takes the best move of a flow that has not moved lately, even a bad one. The price of overloads rises while
    there are some and falls while there are none, so that the search swings about the border of what the clocks carry.
    Links that stay overloaded come to count more than others, so that it does not swing about one valley.

    ``state``: where to begin; changed; ``target``: relative load that each plane's links should keep to: its 1/alpha;
    ``steps``: moves to make; ``random``: of the rest that flows have.
    """
    candidates = around.candidates
    best_power, best_choice = state.power(), state.choice.copy()
    if len(candidates.paths) == len(candidates.flows):
        return best_power, best_choice
    first = candidates.first[:-1]
    clocks = np.maximum(target, state.slowest)
    cost = around.weight * clocks[candidates.plane] ** 2
    rest = random.integers(_REST[0], _REST[0] + _REST[1], size=steps)
    until = np.zeros(len(candidates.flows), dtype=np.int64)
    overloads = Overloads(state, around, target)
    # So dear that a flow's overload counts like its power.
    price = float(cost.mean() / np.mean(around.relative**2))
    for step in range(steps):
        total = cost + price * overloads.come
        now = total[state.choice]
        total[state.choice] = np.inf
        change = np.minimum.reduceat(total, first) - now
        change[until > step] = np.inf
        flow = int(np.argmin(change))
        if not np.isfinite(change[flow]):
            continue
        start = candidates.first[flow]
        place = int(start + np.argmin(total[start : candidates.first[flow + 1]]))
        overloads.move(flow, place, dearer=_DEARER if step % _EVERY == _EVERY - 1 else 1.0)
        until[flow] = step + 1 + rest[step]
        power = state.power()
        if power < best_power:
            best_power, best_choice = power, state.choice.copy()
        over = bool(np.any(state.bottlenecks() > target + 1e-9))
        price *= _PRICE_STEP if over else 1 / _PRICE_STEP
    return best_power, best_choice


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
        return FlowPlacement(nothing, scalings, width, nothing.first[:-1]).allocation(policy, routings)
    bound = 0.0 if power is not None else whole_flow_bound(topology, demand, scalings, widths=widths)
    search = _PlacementSearch(flows, scalings, width, power, bound, seed, progress)
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


def _run(search: _PlacementSearch, demand: NDArray[np.float64], freedom: Freedom, steps: int, most_paths: int) -> None:
    """Run all stages of a search."""
    flows, widths = search.flows, search.widths
    topology, planes = flows.topology, range(len(widths))
    is_wide = freedom in (Freedom.MINIMAL, Freedom.ANY)
    ends = list(zip(flows.source.tolist(), flows.target.tolist(), strict=True))

    def offered(allowed: Freedom, most: int) -> list[list[list[Links]]]:
        return [[fixed_paths(topology, allowed, plane, *pair, most=most) for plane in planes] for pair in ends]

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
    identical = len({(scaling.alpha_max, wide) for scaling, wide in zip(search.scalings, widths, strict=True)}) == 1
    aims = targets(Relaxation(candidates, widths), slowest, identical=identical, most=6, tell=search.tell)
    search.aim(aims, steps // 2)
    search.tighten(steps - steps // 2)
    if not is_wide or search.is_near:
        return
    most = int(np.clip(_MOST_PLACES // (len(flows) * len(widths)), 2, most_paths))
    more = [[dict.fromkeys(paths) for paths in candidate] for candidate in offered(freedom, most)]
    assert search.best is not None
    for plane, loads in enumerate(search.best.loads / search.best.capacity[:, None]):
        for paths in light_paths(flows, loads, usable_links(topology, freedom)):
            for flow, path in enumerate(paths):
                more[flow][plane].setdefault(path)
    search.among(candidates_of(flows, [[list(paths) for paths in candidate] for candidate in more]))
    search.tighten(steps)


class _PlacementSearch:
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
        self.best: FlowPlacement | None = None
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

    def _new(self, choice: NDArray[np.int64]) -> FlowPlacement:
        return FlowPlacement(self._candidates, self.scalings, self.widths, choice, self._objective)

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

    def _walk(self, state: FlowPlacement, target: NDArray[np.float64], steps: int) -> bool:
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
    number = {pair: n for n, pair in enumerate(zip(flows.source.tolist(), flows.target.tolist(), strict=True))}
    choice = candidates.first[:-1].copy()
    for plane, width in enumerate(allocation.planes):
        for path in width.routes.paths:
            # A rate that rounds to nothing is no flow here.
            flow = number.get((path.source, path.target))
            if flow is not None:
                choice[flow] = _place(candidates, flow, plane, path.links)
    return choice
