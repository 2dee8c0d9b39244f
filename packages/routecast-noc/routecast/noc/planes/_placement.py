"""The state of an allocation: every flow on one of its candidates, with all link loads up to date."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.planes.candidates import UNIT, Candidates
from routecast.noc.planes.model import Allocation, Plane
from routecast.noc.routing.model import Path, Routes
from routecast.noc.scaling import Scaling
from routecast.noc.topology import Floats, Ints

__all__ = ["FlowPlacement", "Neighbourhood", "PlanePower", "checked_widths", "plane_power"]

PlanePower = Callable[[int, Floats, Floats, Floats], Floats]
"""Power of a plane from its number, its rate times hops, its entering rate and its relative bottleneck load.

The last three and the result are arrays of one shape. Routers receive the sum of rate times hops and entering rate.
"""

# Power of an overload, per capacity above 1: more than any mesh draws, so that no search trades capacity for power.
_OVERLOAD_PENALTY = 1e9


def plane_power(weight: Floats | float, bottleneck: Floats | float, slowest: Floats | float) -> Floats:
    """Return the power of planes of ``weight`` (rate times hops) and relative bottleneck load (eq. 7.3).

    A steep penalty is added over capacity, where no clock helps, so that a search turns back.
    """
    relative = np.asarray(bottleneck)
    return np.asarray(weight * np.clip(relative, slowest, 1.0) ** 2 + _penalty(relative), dtype=np.float64)


def _penalty(relative: Floats) -> Floats:
    return _OVERLOAD_PENALTY * np.maximum(relative - 1.0 - 1e-9, 0.0)


def checked_widths(scalings: Sequence[Scaling], widths: Sequence[float] | None) -> tuple[float, ...]:
    """Return the width of each plane, 1 by default.

    Raises RoutecastError: less than two planes, not one width for each, or a width that is not positive.
    """
    if len(scalings) < 2:
        msg = f"{len(scalings)} plane: an allocation needs at least 2; give one scaling for each"
        raise RoutecastError(msg)
    if widths is None:
        return (1.0,) * len(scalings)
    if len(widths) != len(scalings) or not all(width > 0 for width in widths):
        msg = f"widths {tuple(widths)} for {len(scalings)} planes: give one positive width for each"
        raise RoutecastError(msg)
    return tuple(float(width) for width in widths)


class FlowPlacement:
    """Every flow on one of its candidates; a move costs O(path length), a bottleneck O(links).

    ``scalings``: of each plane; ``widths``: capacity of each plane's links relative to the first plane's; ``choice``:
    the candidate of each flow; ``power``: of a plane in any unit, eq. 7.3 by default. ``loads``: of the links in parts
    of a capacity of the first plane (:data:`~routecast.noc.planes.candidates.UNIT`); ``weight`` and ``entering``: rate
    times hops (Li's W) and rate of each plane's flows, in the same parts.
    """

    def __init__(
        self,
        candidates: Candidates,
        scalings: Sequence[Scaling],
        widths: Sequence[float],
        choice: Ints,
        power: PlanePower | None = None,
    ) -> None:
        self.candidates = candidates
        self.scalings = tuple(scalings)
        self.widths = tuple(widths)
        self.capacity = np.array(widths) * UNIT
        self.slowest = np.array([scaling.slowest for scaling in scalings])
        self.choice = choice.copy()
        self._power = power
        rate = candidates.flows.rate
        self.loads = np.zeros((len(self.widths), candidates.crosses.shape[1]), dtype=np.int64)
        np.add.at(self.loads, candidates.plane[choice], candidates.crosses[choice] * rate[:, None])
        self.weight = np.sum(self.loads, axis=1)
        self.entering = np.zeros(len(self.widths), dtype=np.int64)
        np.add.at(self.entering, candidates.plane[choice], rate)

    def on_plane(self, plane: int) -> NDArray[np.bool_]:
        """Return which flows are on a plane, shape (flows,)."""
        return np.equal(self.candidates.plane[self.choice], plane)

    def move(self, flow: int, candidate: int) -> None:
        """Move a flow to another of its candidates."""
        rate = self.candidates.flows.rate[flow]
        for changed, change in ((self.choice[flow], -rate), (candidate, rate)):
            path = self.candidates.paths[changed]
            plane = self.candidates.plane[changed]
            self.loads[plane, path] += change
            self.weight[plane] += change * len(path)
            self.entering[plane] += change
        self.choice[flow] = candidate

    def bottleneck_with(self, flow: int, candidate: int) -> float:
        """Return the bottleneck load of the candidate's plane if the flow moved there from another plane."""
        plane = self.candidates.plane[candidate]
        path = list(self.candidates.paths[candidate])
        on_path = self.loads[plane, path].max(initial=0) + self.candidates.flows.rate[flow]
        return float(max(on_path, self.loads[plane].max(initial=0)) / self.capacity[plane])

    def bottleneck_without(self, flow: int) -> float:
        """Return the bottleneck load of a flow's plane if the flow left it."""
        candidate = self.choice[flow]
        plane = self.candidates.plane[candidate]
        left = self.loads[plane] - self.candidates.crosses[candidate] * self.candidates.flows.rate[flow]
        return float(left.max(initial=0) / self.capacity[plane])

    def power_of(self, plane: int, weight: Floats, entering: Floats, bottleneck: Floats) -> Floats:
        """Return the power of a plane at these weights, entering rates and bottleneck loads, elementwise."""
        if self._power is None:
            return plane_power(weight, bottleneck, self.slowest[plane])
        return self._power(plane, weight, entering, np.minimum(bottleneck, 1.0)) + _penalty(bottleneck)

    def bottlenecks(self) -> Floats:
        """Return the largest relative link load of each plane, Li's BL, shape (planes,)."""
        relative: Floats = self.loads.max(axis=1, initial=0) / self.capacity
        return relative

    @property
    def is_carried(self) -> bool:
        """Whether every link is within its capacity."""
        return bool(np.all(self.bottlenecks() <= 1 + 1e-9))

    def power(self) -> float:
        """Return the power of all planes (eq. 7.3); a steep penalty where a link is over capacity."""
        weight, entering, bottleneck = self.weight / UNIT, self.entering / UNIT, self.bottlenecks()
        if self._power is None:
            return float(plane_power(weight, bottleneck, self.slowest).sum())
        columns = zip(weight[:, None], entering[:, None], bottleneck[:, None], strict=True)
        return float(sum(self.power_of(plane, *column)[0] for plane, column in enumerate(columns)))

    def allocation(self, policy: str, routings: Sequence[str]) -> Allocation:
        """Return the state as an allocation; ``routings`` names the routing of each plane."""
        flows = self.candidates.flows
        demand = [np.zeros_like(flows.demand) for _ in self.widths]
        paths: list[list[Path]] = [[] for _ in self.widths]
        for source, target, candidate in zip(
            flows.source.tolist(), flows.target.tolist(), self.choice.tolist(), strict=True
        ):
            plane = int(self.candidates.plane[candidate])
            links = self.candidates.paths[candidate]
            demand[plane][source, target] = flows.demand[source, target]
            paths[plane].append(Path(source=source, target=target, links=links, layers=(0,) * len(links), share=1.0))
        return Allocation(
            policy=policy,
            planes=tuple(
                Plane(
                    demand=demand[plane],
                    routes=Routes(policy=routing, topology=flows.topology, paths=tuple(paths[plane])),
                    scaling=self.scalings[plane],
                    width=self.widths[plane],
                )
                for plane, routing in enumerate(routings)
            ),
        )


class Neighbourhood:
    """All single moves of a placement at once: the C candidates laid out link by link.

    A cell is a link of a plane, an entry a link of a candidate. Array operations over all T entries take a few
    microseconds per thousand. ``widths``: of each plane's links.

    ``start``: shape (C,): first entry of each candidate; ``candidate``, ``cell``, ``step``: shape (T,): candidate,
    cell and relative rate of each entry; ``flow_cells``: shape (T,): index of flow and cell in :meth:`used`, flattened;
    ``entries_of_cell``: the entries of each cell; ``rate``, ``weight`` and ``relative``: shape (C,): rate of the flow,
    rate times hops, and rate relative to the plane's width.
    """

    def __init__(self, candidates: Candidates, widths: tuple[float, ...]) -> None:
        self.candidates = candidates
        links = candidates.crosses.shape[1]
        hops = candidates.hops
        width = np.array(widths)[candidates.plane]
        self.rate = candidates.flows.rate[candidates.flow] / UNIT
        self.weight = self.rate * hops
        self.relative = self.rate / width
        self.start = np.concatenate([[0], np.cumsum(hops)[:-1]])
        self.candidate = np.repeat(np.arange(len(hops)), hops)
        link = np.concatenate([np.array(path, dtype=np.int64) for path in candidates.paths])
        self.cell = candidates.plane[self.candidate] * links + link
        self.step = self.relative[self.candidate]
        self.flow_cells = candidates.flow[self.candidate] * (len(widths) * links) + self.cell
        self.cells = len(widths) * links
        self.links = links
        self._end = self.start + hops
        by_cell = np.argsort(self.cell, kind="stable")
        self.entries_of_cell = np.split(by_cell, np.searchsorted(self.cell[by_cell], np.arange(1, self.cells)))

    def cells_of(self, candidate: int) -> Ints:
        """Return the cells that a candidate crosses, in the order of its path."""
        cells: Ints = self.cell[self.start[candidate] : self._end[candidate]]
        return cells

    def row(self, candidate: int) -> NDArray[np.bool_]:
        """Return whether a candidate crosses each cell, shape (cells,)."""
        row = np.zeros(self.cells, dtype=np.bool_)
        row[self.cells_of(candidate)] = True
        return row

    def used(self, choice: Ints) -> NDArray[np.bool_]:
        """Return whether each flow crosses each cell, shape (flows, cells)."""
        candidates = self.candidates
        used = np.zeros((len(choice), self.cells // self.links, self.links), dtype=np.bool_)
        used[np.arange(len(choice)), candidates.plane[choice]] = candidates.crosses[choice] > 0
        return used.reshape(len(choice), self.cells)

    def power_after(self, state: FlowPlacement, used: NDArray[np.bool_]) -> Floats:
        """Return the power after the move to each candidate, shape (C,); O(C planes + flows cells)."""
        candidates, planes = self.candidates, len(state.widths)
        loads = state.loads / state.capacity[:, None]
        bottleneck = loads.max(axis=1)
        own_plane = candidates.plane[state.choice]
        own_rate = self.relative[state.choice]
        # Only a flow through a fullest link can lower its plane's bottleneck by leaving.
        fullest = loads.reshape(-1) == bottleneck.repeat(self.links)
        through = np.flatnonzero(used[:, fullest].any(axis=1))
        leaving = candidates.crosses[state.choice[through]] * own_rate[through, None]
        without = bottleneck[own_plane]
        without[through] = (loads[own_plane[through]] - leaving).max(axis=1)
        left = without[candidates.flow]
        added = np.where(used.reshape(-1)[self.flow_cells], 0.0, self.step)
        on_path = np.maximum.reduceat(loads.reshape(-1)[self.cell] + added, self.start)
        is_same_plane = candidates.plane == own_plane[candidates.flow]
        weight, entering = state.weight / UNIT, state.entering / UNIT
        own_weight = self.weight[state.choice][candidates.flow]
        total = np.zeros(len(candidates.paths))
        for plane in range(planes):
            comes = candidates.plane == plane
            leaves = own_plane[candidates.flow] == plane
            new_weight = weight[plane] + comes * self.weight - leaves * own_weight
            rate = entering[plane] + comes * self.rate - leaves * self.rate
            worst = np.where(
                comes,
                np.maximum(on_path, np.where(is_same_plane, left, bottleneck[plane])),
                np.where(leaves, left, bottleneck[plane]),
            )
            total += state.power_of(plane, new_weight, rate, worst)
        return total
