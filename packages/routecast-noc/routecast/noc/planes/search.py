"""Routecast's allocation of whole flows to planes and, as far as :class:`Freedom` allows, to paths.

1. Aim: the splittable problem, a linear program, gives clocks of low power (:func:`targets`).
2. Round: each flow goes to the plane and path with its largest share; in further attempts it goes to a random one, by
   its shares.
3. Search: tabu search moves flows until the links keep to these clocks (:func:`tabu_search`); steepest descent on the
   true power ends each try (:func:`descend`). Li's allocations and each plane alone are tried too.
4. Tighten: from the best placement, aim at slightly slower clocks on one plane or on all, or trade one for another.
5. Free: beyond XY and YX, the best placement is tightened again with further paths: shortest paths, and paths that are
   short where full links count as long (:func:`light_paths`).

A stage ends after some failed tries, or near a power that whole flows need in any case (:mod:`.whole_flows`). Flows
stay whole, on a path each; the result is the best state seen: no move of a flow to another candidate of the last stage
improves it. By eq. 7.3 it is never worse than Li's three algorithms, except where the second plane is kept to YX.

Complexity: with F flows, L links, P planes and C candidates of T links in all, a step of the search is O(C + F +
T h/(P L)) array operations for paths of h links, and one of the descent O(T + F L); C is 2 P F for XY and YX, and at
most about ``most_paths`` times P F beyond. The linear programs have 2 P F columns. A mesh of 5 x 5 takes about a
second, one of 8 x 8 with a flow between every two routers about ten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

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
from routecast.noc.scaling import Scaling
from routecast.noc.topology import Floats, Ints, Topology, distances, grid_of
from routecast.progress import BoundProgress
from routecast.quantity.schema import value

__all__ = ["FlowShare", "Overloads", "Relaxation", "allocate", "light_paths"]

# Traffic below this part of a capacity is the solver's rounding.
_MIN_RATE = 1e-9


@value
class FlowShare:
    """The part of a flow that the relaxation gives to a candidate, in capacities of a link."""

    flow: int
    candidate: int
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Program:
    """min cost x, loads x <= limit, equal x = right, x >= 0; a column is the part of a flow on a candidate."""

    plane: Ints
    hop_flow: Floats
    loads: Any
    width: Floats
    equal: Any
    right: Floats

    def least_power(self, clocks: Floats) -> tuple[float, Floats] | None:
        """Return the least power at these clocks and its solution; None where they do not carry the traffic."""
        from scipy.optimize import linprog

        cost = self.hop_flow * clocks[self.plane] ** 2
        limit = np.repeat(clocks * self.width, self.loads.shape[0] // len(clocks))
        result = linprog(cost, A_ub=self.loads, b_ub=limit, A_eq=self.equal, b_eq=self.right, method="highs")
        return None if result.fun is None else (float(result.fun), np.asarray(result.x))

    def least_stretch(self, ratio: Floats) -> tuple[float, Floats]:
        """Return the least u for which the clocks u ratio carry the traffic, and its solution."""
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
    """The splittable problem: flows split over their candidates, at fixed clocks (eqs. 7.7-7.12 with alpha fixed).

    With b_p = 1/alpha_p given, least power is a linear program: a hop on plane p costs b_p^2, its links carry b_p.
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
        if _have_equal_paths(candidates):
            first = np.flatnonzero(candidates.plane == 0)
            merged = _program(candidates, np.ones(1), candidates.plane == 0)
            self._merged, part = merged.least_stretch(np.ones(1))
            flow = candidates.flow[first]
            # The last of a flow's columns by rising part is its largest.
            last = np.searchsorted(flow, np.arange(len(candidates.flows)), "right") - 1
            self._main = first[np.lexsort((part, flow))[last]]

    def least_stretch(self, ratio: Floats) -> float:
        """Return the least u for which the clocks b_p = u ratio_p carry the traffic.

        Planes with the same paths carry together as much as one plane as wide as all.
        """
        if self._merged is None:
            return self._program.least_stretch(ratio)[0]
        return self._merged / float(np.sum(ratio * self._program.width))

    def least_power(self, clocks: Floats) -> tuple[float, list[FlowShare]] | None:
        """Return the least power at the clocks b_p = 1/alpha_p with its shares; None where they do not carry it."""
        solved = self._program.least_power(clocks)
        if solved is None:
            return None
        power, part = solved
        flow = self._candidates.flow
        return power, [
            FlowShare(
                flow=int(flow[candidate]), candidate=candidate, rate=float(part[candidate] * self._rate[candidate])
            )
            for candidate in np.flatnonzero(part > _MIN_RATE).tolist()
        ]

    def filled_power(self, clocks: Floats) -> float:
        """Return the power of whole flows that fill the planes at these clocks: a quick estimate, not the least power.

        Large flows come first, each on the slowest plane with room, or else on the fastest, over its main path.
        """
        candidates, rates = self._candidates, self._candidates.flows.rate / UNIT
        limits = clocks * self._program.width
        loads = np.zeros((len(clocks), candidates.crosses.shape[1]))
        slow_first = np.argsort(clocks, kind="stable").tolist()
        power = 0.0
        for flow in np.argsort(-rates, kind="stable").tolist():
            rate, path = float(rates[flow]), candidates.paths[self._main[flow]]
            for plane in slow_first:
                if loads[plane, path].max() + rate <= limits[plane] + _MIN_RATE:
                    break
            loads[plane, path] += rate
            power += rate * len(path) * float(clocks[plane]) ** 2
        return power


def _have_equal_paths(candidates: Candidates) -> bool:
    """Return whether every flow has the same paths on all planes."""
    by_plane = [
        [candidates.paths[candidate] for candidate in np.flatnonzero(candidates.plane == plane)]
        for plane in range(candidates.plane_count)
    ]
    return all(paths == by_plane[0] for paths in by_plane[1:])


def _program(candidates: Candidates, widths: Floats, is_included: NDArray[np.bool_]) -> _Program:
    """Return the program over some of the candidates, which are on the first planes."""
    from scipy import sparse

    flows, chosen = candidates.flows, np.flatnonzero(is_included)
    count, link_count = len(chosen), candidates.crosses.shape[1]
    crosses, plane = candidates.crosses[chosen], candidates.plane[chosen]
    flow = candidates.flow[chosen]
    rate = flows.rate[flow] / UNIT
    column, link = np.nonzero(crosses)
    rows = plane[column] * link_count + link
    return _Program(
        plane=plane,
        hop_flow=rate * candidates.hops[chosen],
        loads=sparse.csr_matrix((rate[column], (rows, column)), shape=(len(widths) * link_count, count)),
        width=widths,
        equal=sparse.csr_matrix((np.ones(count), (flow, np.arange(count))), shape=(len(flows), count)),
        right=np.ones(len(flows)),
    )


# An improvement smaller than this part of the power is rounding.
_MIN_GAIN = 1e-9


def descend(state: FlowPlacement, moves: Neighbourhood) -> None:
    """Make the best move of one flow until no move lowers the power."""
    used = moves.used(state.choice)
    power = state.power()
    while len(state.choice):
        after = moves.power_after(state, used)
        best = int(np.argmin(after))
        if after[best] >= power * (1 - _MIN_GAIN):
            break
        flow = int(moves.candidates.flow[best])
        state.move(flow, best)
        used[flow] = moves.row(best)
        power = state.power()


# How much longer a full link is than an empty one, and the exponent of the load in between. A detour round a link takes
# two more links.
_LENGTH_FACTORS = (4.0, 1.0)
_LENGTH_EXPONENTS = (6.0, 2.0)


def light_paths(flows: Flows, loads: Floats, usable: NDArray[np.bool_]) -> list[list[Links]]:
    """Return paths for all flows that avoid the fullest links, one set for each law of the length of full links.

    ``loads``: of the links of a plane; ``usable``: shape (routers, links): whether traffic to a router may use a link.
    """
    relative = loads / max(float(loads.max(initial=0.0)), 1e-12)
    return [
        _shortest(flows, 1 + longer * relative**steepness, usable)
        for longer, steepness in zip(_LENGTH_FACTORS, _LENGTH_EXPONENTS, strict=True)
    ]


def _shortest(flows: Flows, length: Floats, usable: NDArray[np.bool_]) -> list[Links]:
    """Return the path of least length of each flow; lengths are positive."""
    grid = grid_of(flows.topology)
    distance = distances(flows.topology, length, usable)
    cost = np.where(np.pad(usable, ((0, 0), (0, 1))), np.append(length, np.inf), np.inf).T
    direction = np.argmin(cost[grid.leaving] + distance[grid.ahead], axis=0)
    next_link = grid.leaving[direction, np.arange(len(distance))[:, None]].tolist()
    ends = grid.target.tolist()
    paths: list[Links] = []
    for source, target in zip(flows.source.tolist(), flows.target.tolist(), strict=True):
        router, path = source, list[int]()
        while router != target:
            path.append(next_link[router][target])
            router = ends[path[-1]]
        paths.append(tuple(path))
    return paths


Target = tuple[float, Floats, list[FlowShare]]
"""Power of the splittable problem, the clocks 1/alpha of the planes, and the flows' shares at these clocks."""

# A plane's clock over the fastest plane's: from balance to concentration.
_RATIOS = (1.0, 0.85, 0.7, 0.55, 0.4)
# Multiples of the slowest clocks that carry the traffic, at which more flows fit on slow planes; for the best ratios.
_CLOCK_MARGINS = (1.04, 1.12)
_REFINED_RATIOS = 2
# Limit of the columns of all programs together; above it, the filled power chooses the ratios.
_MAX_COLUMNS = 32_000
_MAX_PROGRAMS = 16


def targets(
    relaxation: Relaxation,
    slowest: Floats,
    *,
    identical: bool,
    max_targets: int,
    on_program: Callable[[], None] = lambda: None,
) -> list[Target]:
    """Return clocks worth aiming at with their splittable optima, the one of least power first.

    For each ratio of the planes' clocks, the least power lies at the slowest clocks that carry the traffic or a little
    above.

    ``slowest``: 1/alpha_max of each plane; ``identical``: whether the planes are alike, so that their order does not
    matter; ``max_targets``: their maximum number; ``on_program``: is called after each program.
    """
    solutions: list[tuple[float, Floats, Floats, list[FlowShare]]] = []
    seen: set[tuple[float, ...]] = set()

    def solve(ratio: Floats, margin: float) -> None:
        # The solver's tolerance must not make the slowest clocks infeasible.
        clocks = np.clip(stretches[tuple(ratio)] * ratio * margin * (1 + 1e-7), slowest, 1.0)
        key = tuple(np.round(clocks, 6).tolist())
        if key in seen:
            return
        seen.add(key)
        solved = relaxation.least_power(clocks)
        on_program()
        if solved is not None:
            solutions.append((solved[0], ratio, clocks, solved[1]))

    ratios = _ratios(slowest, identical)
    stretches = {tuple(ratio): relaxation.least_stretch(ratio) for ratio in ratios}
    ratios = [ratio for ratio in ratios if np.isfinite(stretches[tuple(ratio)])]
    programs = int(np.clip(_MAX_COLUMNS // relaxation.columns, 2, min(len(ratios), _MAX_PROGRAMS)))
    if programs < len(ratios):
        ratios.sort(key=lambda ratio: relaxation.filled_power(np.clip(stretches[tuple(ratio)] * ratio, slowest, 1.0)))
    for ratio in ratios[:programs]:
        solve(ratio, 1.0)
    solutions.sort(key=lambda solution: solution[0])
    for _, ratio, _, _ in solutions[: _REFINED_RATIOS if programs == len(ratios) else 0]:
        for margin in _CLOCK_MARGINS:
            solve(ratio, margin)
    solutions.sort(key=lambda solution: solution[0])
    return [(power, clocks, shares) for power, _, clocks, shares in solutions[:max_targets]]


def _ratios(slowest: Floats, identical: bool) -> list[Floats]:
    """Return the ratios to try, the fastest plane at 1; with more than three planes, only two different clocks."""
    planes = len(slowest)
    if planes <= 3:
        grid = [np.array(ratios) for ratios in product(_RATIOS, repeat=planes) if max(ratios) == 1.0]
    else:
        grid = [np.array([1.0] * fast + [ratio] * (planes - fast)) for fast in range(1, planes) for ratio in _RATIOS]
    if identical:
        grid = [ratios for ratios in grid if np.all(np.diff(ratios) <= 0)]
    return list({tuple(np.maximum(ratios, slowest).tolist()): ratios for ratios in grid}.values())


class Overloads:
    """The sum of squared overloads above a target, each at its link's price, and its change by each single move.

    A move changes the loads of the few links on the old and the new path, and only candidates over these links are
    evaluated again: with T links on all C candidates and K links in all planes a step costs O(T h / K + C) for paths of
    h links, instead of O(T).

    ``state``: only :meth:`move` may move it from now on; ``target``: relative load of each plane's links above which
    they are overloaded. ``added``: shape (C,): what the links of each candidate add if its flow comes; on links of the
    flow's current path it is what leaving saves, so that ``added[candidate] - added[choice of its flow]`` is the change
    by a move.
    """

    def __init__(self, state: FlowPlacement, moves: Neighbourhood, target: Floats) -> None:
        self._state, self._moves = state, moves
        self._over = (state.loads / state.capacity[:, None] - target[:, None]).reshape(-1)
        self._used = moves.used(state.choice).reshape(-1)
        # The weight of each link's overload.
        self._price = np.ones(moves.cells)
        self._terms = self._terms_of(slice(None))
        self.added: Floats = np.add.reduceat(self._terms, moves.start)

    def move(self, flow: int, candidate: int, *, price_factor: float = 1.0) -> None:
        """Move a flow to another candidate, and multiply the prices of the links that are overloaded after the move."""
        moves, state = self._moves, self._state
        old = int(state.choice[flow])
        state.move(flow, candidate)
        left, entered = moves.cells_of(old), moves.cells_of(candidate)
        first = flow * moves.cells
        self._used[first + left] = False
        self._used[first + entered] = True
        # A link on both paths keeps its load up to rounding.
        self._over[left] -= moves.relative[old]
        self._over[entered] += moves.relative[candidate]
        cells = {*left.tolist(), *entered.tolist()}
        if price_factor != 1.0:
            over = np.flatnonzero(self._over > 1e-9)
            self._price[over] *= price_factor
            cells.update(over.tolist())
        entries = np.concatenate([moves.entries_of_cell[cell] for cell in sorted(cells)])
        terms = self._terms_of(entries)
        changes = terms - self._terms[entries]
        self.added += np.bincount(moves.candidate[entries], weights=changes, minlength=len(self.added))
        self._terms[entries] = terms

    def change(self) -> Floats:
        """Return the change of the sum of squared overloads by the move to each candidate, shape (C,)."""
        change: Floats = self.added - self.added[self._state.choice][self._moves.candidates.flow]
        return change

    def _terms_of(self, entries: Ints | slice) -> Floats:
        moves = self._moves
        over, step = self._over[moves.cell[entries]], moves.step[entries]
        is_used = self._used[moves.flow_cells[entries]]
        before = np.maximum(over, 0.0)
        after = np.maximum(np.where(is_used, over - step, over + step), 0.0)
        sign = np.where(is_used, -1.0, 1.0)
        terms: Floats = self._price[moves.cell[entries]] * sign * (after * after - before * before)
        return terms


# Steps for which a moved flow rests: the minimum, and the range of the random addition.
_REST_STEPS = (4, 12)
# Moves between two increases of the price of overloaded links, and the factor of an increase.
_PRICE_INTERVAL = 3
_LINK_PRICE_FACTOR = 1.2
# Factor by which the price of all overloads rises or falls at a step.
_OVERLOAD_PRICE_FACTOR = 1.15


def tabu_search(
    state: FlowPlacement, moves: Neighbourhood, target: Floats, *, steps: int, random: np.random.Generator
) -> Ints:
    """Return the choice of least true power that tabu search visits while it aims at given clocks.

    The power has plateaus: as long as one of several full links stays full, moves off the others do not lower it. With
    target clocks every overload counts, squared, beside the power that the flows would need at these clocks. Each step
    takes the best move of a flow that has not moved lately, even a bad one. The price of overloads rises while there
    are any and falls while there are none, so that the search crosses the limit of what the clocks carry again and
    again. Links that stay overloaded become more expensive, so that it leaves local minima.

    ``state``: where to begin; it is changed; ``target``: relative load that each plane's links should keep to, its
    1/alpha; ``steps``: number of moves; ``random``: draws how long flows rest.
    """
    candidates = moves.candidates
    best_power, best_choice = state.power(), state.choice.copy()
    if len(candidates.paths) == len(candidates.flows):
        return best_choice
    first = candidates.first[:-1]
    clocks = np.maximum(target, state.slowest)
    cost = moves.weight * clocks[candidates.plane] ** 2
    rest = random.integers(_REST_STEPS[0], _REST_STEPS[0] + _REST_STEPS[1], size=steps)
    rests_until = np.zeros(len(candidates.flows), dtype=np.int64)
    overloads = Overloads(state, moves, target)
    # A flow's overload counts like its power.
    price = float(cost.mean() / np.mean(moves.relative**2))
    for step in range(steps):
        total = cost + price * overloads.added
        current = total[state.choice]
        total[state.choice] = np.inf
        change = np.minimum.reduceat(total, first) - current
        change[rests_until > step] = np.inf
        flow = int(np.argmin(change))
        if not np.isfinite(change[flow]):
            continue
        start = candidates.first[flow]
        candidate = int(start + np.argmin(total[start : candidates.first[flow + 1]]))
        overloads.move(
            flow, candidate, price_factor=_LINK_PRICE_FACTOR if step % _PRICE_INTERVAL == _PRICE_INTERVAL - 1 else 1.0
        )
        rests_until[flow] = step + 1 + rest[step]
        power = state.power()
        if power < best_power:
            best_power, best_choice = power, state.choice.copy()
        is_overloaded = bool(np.any(state.bottlenecks() > target + 1e-9))
        price *= _OVERLOAD_PRICE_FACTOR if is_overloaded else 1 / _OVERLOAD_PRICE_FACTOR
    return best_choice


# Least number of moves of a tabu search, and flows for each further move.
_MIN_TRY_STEPS = 125
_FLOWS_PER_STEP = 8
# Least and greatest number of failed tries after which a stage ends: more for few flows, which are quick to search.
_PATIENCE = (12, 60)
_PATIENCE_FLOWS = 16_000
# Approximate limit of the candidates of the search beyond XY and YX.
_MAX_CANDIDATES = 40_000
# A placement within this relative distance of the bound ends the search.
_BOUND_TOLERANCE = 1e-3


def allocate(
    topology: Topology,
    demand: Floats,
    scalings: Sequence[Scaling],
    *,
    widths: Sequence[float] | None = None,
    freedom: Freedom = Freedom.MINIMAL,
    power: PlanePower | None = None,
    steps: int = 8000,
    most_paths: int = 24,
    seed: int = 1,
    on_progress: BoundProgress | None = None,
) -> Allocation:
    """Return the allocation of least power that the search finds.

    Ctrl-C ends the search with the best allocation so far, marked as cut, once the planes carry one.

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
        Choice of paths for a flow, in addition to its plane.
    power : PlanePower, optional
        The objective, such as a router's measured power with its idle part; eq. 7.3 by default. A plane that carries
        nothing has an entering rate of 0: give it the power of a sleeping plane.
    steps : int
        Maximum number of moves of the tabu search; the stage beyond XY and YX has as many again.
    most_paths : int
        Shortest paths offered to each flow on each plane beyond XY and YX; fewer where there are many flows.
    seed : int
        Seed of rounding and search; a seed gives the same allocation on any machine.
    on_progress : callable, optional
        Is called after each try and each linear program; the bound is for whole flows, 0 where unknown.

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
        no_flows = candidates_of(flows, [])
        return FlowPlacement(no_flows, scalings, width, no_flows.first[:-1]).allocation(policy, routings)
    bound = 0.0 if power is not None else whole_flow_bound(topology, demand, scalings, widths=widths)
    search = _PlacementSearch(flows, scalings, width, power, bound, seed, on_progress)
    is_interrupted = False
    try:
        _run_stages(search, demand, freedom, steps, most_paths)
    except KeyboardInterrupt:
        if search.best is None or not search.best.is_carried:
            raise
        is_interrupted = True
    assert search.best is not None
    _require_carried(search.best, freedom)
    return replace(search.best.allocation(policy, routings), is_interrupted=is_interrupted)


def _require_carried(placement: FlowPlacement, freedom: Freedom) -> None:
    """Raise RoutecastError if a link of the best placement is overloaded."""
    if placement.is_carried:
        return
    msg = (
        f"the search found no placement within the planes' capacity; the fullest link is loaded "
        f"{placement.bottlenecks().max():.4g} times its capacity: lower the load"
        + ("" if freedom is Freedom.ANY else f", or allow more than {freedom} paths")
    )
    raise RoutecastError(msg)


def _run_stages(search: _PlacementSearch, demand: Floats, freedom: Freedom, steps: int, most_paths: int) -> None:
    flows, widths = search.flows, search.widths
    topology, planes = flows.topology, range(len(widths))
    is_wide = freedom in (Freedom.MINIMAL, Freedom.ANY)
    ends = list(zip(flows.source.tolist(), flows.target.tolist(), strict=True))

    def paths_by_flow(allowed: Freedom, max_paths: int) -> list[list[list[Links]]]:
        return [
            [fixed_paths(topology, allowed, plane, *pair, max_paths=max_paths) for plane in planes] for pair in ends
        ]

    first = Freedom.DIMENSION_ORDER if is_wide else freedom
    candidates = candidates_of(flows, paths_by_flow(first, 2))
    search.use_candidates(candidates)
    if freedom is not Freedom.PLANE_ORDER:
        for allocate_li2012 in (four_phase, balance):
            allocation = allocate_li2012(topology, demand, search.scalings, widths=widths)
            search.consider(_choice_of(candidates, allocation))
    for plane in planes:
        search.consider(np.array([candidates.first_on(flow, plane) for flow in range(len(flows))]))
    if search.is_near:
        return
    slowest = np.array([scaling.slowest for scaling in search.scalings])
    identical = len({(scaling.alpha_max, width) for scaling, width in zip(search.scalings, widths, strict=True)}) == 1
    clock_targets = targets(
        Relaxation(candidates, widths), slowest, identical=identical, max_targets=6, on_program=search.report
    )
    search.aim(clock_targets, steps // 2)
    search.tighten(steps - steps // 2)
    if not is_wide or search.is_near:
        return
    most = int(np.clip(_MAX_CANDIDATES // (len(flows) * len(widths)), 2, most_paths))
    offered = [[dict.fromkeys(paths) for paths in by_plane] for by_plane in paths_by_flow(freedom, most)]
    assert search.best is not None
    for plane, loads in enumerate(search.best.loads / search.best.capacity[:, None]):
        for paths in light_paths(flows, loads, usable_links(topology, freedom)):
            for flow, path in enumerate(paths):
                offered[flow][plane].setdefault(path)
    search.use_candidates(candidates_of(flows, [[list(paths) for paths in by_plane] for by_plane in offered]))
    search.tighten(steps)


class _PlacementSearch:
    """A search for placements: the best so far, and the stages that improve it."""

    def __init__(
        self,
        flows: Flows,
        scalings: Sequence[Scaling],
        widths: tuple[float, ...],
        power: PlanePower | None,
        bound: float,
        seed: int,
        on_progress: BoundProgress | None,
    ) -> None:
        self.flows, self.scalings, self.widths = flows, scalings, widths
        self._objective, self._bound, self._on_progress = power, bound, on_progress
        self._random = np.random.default_rng(seed)
        self._try_steps = max(_MIN_TRY_STEPS, len(flows) // _FLOWS_PER_STEP)
        self._patience = int(np.clip(_PATIENCE_FLOWS // len(flows), *_PATIENCE))
        self.best: FlowPlacement | None = None
        self._power = np.inf

    @property
    def is_near(self) -> bool:
        """Whether the best placement reaches the bound."""
        return self._power <= self._bound * (1 + _BOUND_TOLERANCE)

    def use_candidates(self, candidates: Candidates) -> None:
        """Replace the candidates of the search; the new ones include those of the best placement."""
        self._candidates = candidates
        self._moves = Neighbourhood(candidates, self.widths)
        if self.best is not None:
            old = self.best.candidates
            choice = [
                _candidate_of_path(candidates, flow, int(old.plane[candidate]), old.paths[candidate])
                for flow, candidate in enumerate(self.best.choice.tolist())
            ]
            self.consider(np.array(choice), replace_best=True)

    def _placement(self, choice: Ints) -> FlowPlacement:
        return FlowPlacement(self._candidates, self.scalings, self.widths, choice, self._objective)

    def consider(self, choice: Ints, *, replace_best: bool = False) -> bool:
        """Descend from a choice and keep the result if it is the best; return whether it is."""
        state = self._placement(choice)
        descend(state, self._moves)
        power = state.power()
        is_better = power < self._power * (1 - 1e-12)
        if is_better or replace_best:
            self.best, self._power = state, power
        self.report()
        return is_better

    def report(self) -> None:
        """Report progress once the planes carry the best placement."""
        if self._on_progress is not None and self.best is not None and self.best.is_carried:
            self._on_progress(self._power, self._bound)

    def aim(self, clock_targets: Sequence[Target], steps: int) -> None:
        """Round each splittable optimum, first to the largest shares, then at random, and search at its clocks."""
        tries = max(len(clock_targets), steps // self._try_steps) if clock_targets else 0
        failures = 0
        for number in range(tries):
            _, clocks, shares = clock_targets[number % len(clock_targets)]
            state = self._placement(self._rounded(shares, at_random=number >= len(clock_targets)))
            failures = 0 if self._search(state, clocks, max(1, steps // tries)) else failures + 1
            if self.is_near or (number >= len(clock_targets) and failures >= self._patience // 2):
                return

    def tighten(self, steps: int) -> None:
        """Aim at clocks somewhat slower than the best placement's."""
        failures = 0
        for _ in range(steps // self._try_steps):
            if self.is_near or failures >= self._patience:
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
            state = self._placement(self.best.choice)
            failures = 0 if self._search(state, np.minimum(target, 1.0), self._try_steps) else failures + 1

    def _search(self, state: FlowPlacement, target: Floats, steps: int) -> bool:
        """Search from a state at target clocks; return whether it found a better placement than the best."""
        return self.consider(tabu_search(state, self._moves, target, steps=steps, random=self._random))

    def _rounded(self, shares: Sequence[FlowShare], *, at_random: bool) -> Ints:
        """Return whole flows at their largest shares, or at shares drawn in proportion."""
        choice = self._candidates.first[:-1].copy()
        score = np.full(len(choice), -np.inf)
        for share in shares:
            # The largest log(rate) + Gumbel noise is a draw in proportion to the rates.
            share_score = np.log(share.rate) + (self._random.gumbel() if at_random else 0.0)
            if share_score > score[share.flow]:
                score[share.flow] = share_score
                choice[share.flow] = share.candidate
        return choice


def _candidate_of_path(candidates: Candidates, flow: int, plane: int, path: Links) -> int:
    candidate = candidates.first_on(flow, plane)
    while candidates.paths[candidate] != path:
        candidate += 1
    return candidate


def _choice_of(candidates: Candidates, allocation: Allocation) -> Ints:
    flows = candidates.flows
    numbers = {pair: flow for flow, pair in enumerate(zip(flows.source.tolist(), flows.target.tolist(), strict=True))}
    choice = candidates.first[:-1].copy()
    for number, plane in enumerate(allocation.planes):
        for path in plane.routes.paths:
            # A rate that rounds to 0 is no flow here.
            flow = numbers.get((path.source, path.target))
            if flow is not None:
                choice[flow] = _candidate_of_path(candidates, flow, number, path.links)
    return choice
