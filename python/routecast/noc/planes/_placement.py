"""The state that allocations work on: every flow at one place, with all link loads kept up to date."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.noc.planes.candidates import UNIT, Candidates
from routecast.noc.planes.model import Allocation, Plane
from routecast.noc.power.scaling import Scaling
from routecast.noc.routing.model import Path, Routes

Floats = NDArray[np.float64]
PlanePower = Callable[[int, Floats, Floats, Floats], Floats]
"""Power of a plane: its number, its rate times hops, the rate that enters it, its relative bottleneck load.

The last three are arrays of one shape, and so is the answer. Routers receive what enters and what comes over links:
rate times hops and entering rate together.
"""

# Power of an overload, per capacity above 1: more than any mesh burns, so that no search trades capacity for power.
_OVERLOAD = 1e9


def plane_power(
    weight: NDArray[np.float64] | float, bottleneck: NDArray[np.float64] | float, slowest: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Return the power of planes of ``weight`` (rate times hops) and relative bottleneck load (eq. 7.3).

    Over capacity, where no clock helps, a steep penalty takes its place, so that a search leaves there.
    """
    relative = np.asarray(bottleneck)
    return np.asarray(weight * np.clip(relative, slowest, 1.0) ** 2 + _penalty(relative), dtype=np.float64)


def _penalty(relative: NDArray[np.float64]) -> NDArray[np.float64]:
    return _OVERLOAD * np.maximum(relative - 1.0 - 1e-9, 0.0)


def checked_widths(scalings: Sequence[Scaling], widths: Sequence[float] | None) -> tuple[float, ...]:
    """Return the width of each plane, 1 where none is said.

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
    """Every flow at one of its places; moves cost O(path length), a bottleneck O(links).

    ``scalings``: one for each plane; ``widths``: capacity of each plane's links relative to the first one's;
    ``choice``: the place of each flow; ``power``: what a plane burns, in any unit; eq. 7.3 unless said. ``loads``: in
    parts of a capacity of the first plane (:data:`~routecast.noc.planes.candidates.UNIT`); ``weight``: rate times hops
    of each plane, Li's W, in the same parts; ``entering``: rate of each plane's flows, in the same parts.
    """

    def __init__(
        self,
        candidates: Candidates,
        scalings: Sequence[Scaling],
        widths: Sequence[float],
        choice: NDArray[np.int64],
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

    def plane_of(self, flow: int) -> int:
        """Return the plane that a flow is on."""
        return int(self.candidates.plane[self.choice[flow]])

    def on_plane(self, plane: int) -> NDArray[np.bool_]:
        """Return which flows are on a plane, shape (flows,)."""
        return np.equal(self.candidates.plane[self.choice], plane)

    def move(self, flow: int, place: int) -> None:
        """Put a flow at another of its places."""
        old, rate = self.choice[flow], self.candidates.flows.rate[flow]
        for where, change in ((old, -rate), (place, rate)):
            path = self.candidates.paths[where]
            plane = self.candidates.plane[where]
            self.loads[plane, path] += change
            self.weight[plane] += change * len(path)
            self.entering[plane] += change
        self.choice[flow] = place

    def bottleneck(self, plane: int) -> float:
        """Return the largest load of a plane's links relative to their capacity: Li's BL."""
        return float(self.loads[plane].max(initial=0) / self.capacity[plane])

    def bottleneck_with(self, flow: int, place: int) -> float:
        """Return the bottleneck of the place's plane if the flow, which is elsewhere, came there too."""
        plane = self.candidates.plane[place]
        path = list(self.candidates.paths[place])
        met = self.loads[plane, path].max(initial=0) + self.candidates.flows.rate[flow]
        return float(max(met, self.loads[plane].max(initial=0)) / self.capacity[plane])

    def bottleneck_without(self, flow: int) -> float:
        """Return the bottleneck of a flow's plane if the flow left it."""
        place = self.choice[flow]
        plane = self.candidates.plane[place]
        left = self.loads[plane] - self.candidates.crosses[place] * self.candidates.flows.rate[flow]
        return float(left.max(initial=0) / self.capacity[plane])

    def power_of(self, plane: int, weight: Floats, entering: Floats, bottleneck: Floats) -> Floats:
        """Return the power of a plane if it had these weights, entering rates and bottlenecks, elementwise."""
        if self._power is None:
            return plane_power(weight, bottleneck, self.slowest[plane])
        return self._power(plane, weight, entering, np.minimum(bottleneck, 1.0)) + _penalty(bottleneck)

    def bottlenecks(self) -> NDArray[np.float64]:
        """Return the largest relative load of each plane, shape (planes,)."""
        relative: NDArray[np.float64] = self.loads.max(axis=1, initial=0) / self.capacity
        return relative

    @property
    def is_carried(self) -> bool:
        """Whether no link is over its capacity."""
        return bool(np.all(self.bottlenecks() <= 1 + 1e-9))

    def power(self) -> float:
        """Return the power of all planes (eq. 7.3); a steep penalty where a link is over capacity."""
        weight, entering, bottleneck = self.weight / UNIT, self.entering / UNIT, self.bottlenecks()
        if self._power is None:
            return float(plane_power(weight, bottleneck, self.slowest).sum())
        alone = [slice(plane, plane + 1) for plane in range(len(self.widths))]
        return float(
            sum(self.power_of(plane, weight[at], entering[at], bottleneck[at])[0] for plane, at in enumerate(alone))
        )

    def allocation(self, policy: str, routings: Sequence[str]) -> Allocation:
        """Return the state as an allocation; ``routings`` names the routing of each plane."""
        flows = self.candidates.flows
        demand = [np.zeros_like(flows.demand) for _ in self.widths]
        paths: list[list[Path]] = [[] for _ in self.widths]
        for source, target, place in zip(
            flows.source.tolist(), flows.target.tolist(), self.choice.tolist(), strict=True
        ):
            plane = int(self.candidates.plane[place])
            links = self.candidates.paths[place]
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
    """The places of all flows laid out link by link.

    Every single move of a placement at once, and what it does to the power.

    A move takes one flow to another of its places. All C places are looked at in O(P) array operations, where P is the
    sum of their path lengths (a few microseconds per thousand), instead of one by one.

    ``widths``: of each plane's links.
    """

    def __init__(self, candidates: Candidates, widths: tuple[float, ...]) -> None:
        self.candidates = candidates
        links = candidates.crosses.shape[1]
        hops = candidates.hops
        width = np.array(widths)[candidates.plane]
        self.rate = candidates.flows.rate[candidates.flow] / UNIT
        self.weight = self.rate * hops
        self.relative = self.rate / width
        # One entry per link of each place, place by place; `cell` is the link on the place's plane.
        self.start = np.concatenate([[0], np.cumsum(hops)[:-1]])
        self.of = np.repeat(np.arange(len(hops)), hops)
        link = np.concatenate([np.array(path, dtype=np.int64) for path in candidates.paths])
        self.cell = candidates.plane[self.of] * links + link
        self.step = self.relative[self.of]
        self.flow_cells = candidates.flow[self.of] * (len(widths) * links) + self.cell
        self.cells = len(widths) * links
        self.links = links
        self._end = self.start + hops
        by_cell = np.argsort(self.cell, kind="stable")
        # The entries of each cell.
        self.at_cell = np.split(by_cell, np.searchsorted(self.cell[by_cell], np.arange(1, self.cells)))

    def cells_of(self, place: int) -> NDArray[np.int64]:
        """Return the cells that a place crosses, in the order of its path."""
        cells: NDArray[np.int64] = self.cell[self.start[place] : self._end[place]]
        return cells

    def row(self, place: int) -> NDArray[np.bool_]:
        """Return the cells that a place crosses, shape (cells,)."""
        row = np.zeros(self.cells, dtype=np.bool_)
        first = self.candidates.plane[place] * self.links
        row[first : first + self.links] = self.candidates.crosses[place] > 0
        return row

    def used(self, choice: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the cells that each flow crosses, shape (flows, cells)."""
        candidates = self.candidates
        used = np.zeros((len(choice), self.cells // self.links, self.links), dtype=np.bool_)
        used[np.arange(len(choice)), candidates.plane[choice]] = candidates.crosses[choice] > 0
        return used.reshape(len(choice), self.cells)

    def power_after(self, state: FlowPlacement, used: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the power after the move to each place, shape (C,); O(C planes + flows cells)."""
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
        flat = loads.reshape(-1)[self.cell]
        both = used.reshape(-1)[self.flow_cells]
        met = np.maximum.reduceat(flat + np.where(both, 0.0, self.step), self.start)
        same = candidates.plane == own_plane[candidates.flow]
        weight, entering = state.weight / UNIT, state.entering / UNIT
        own_weight = self.weight[state.choice][candidates.flow]
        total = np.zeros(len(candidates.paths))
        for plane in range(planes):
            here = candidates.plane == plane
            from_here = own_plane[candidates.flow] == plane
            moved = weight[plane] + here * self.weight - from_here * own_weight
            rate = entering[plane] + here * self.rate - from_here * self.rate
            worst = np.where(
                here,
                np.maximum(met, np.where(same, left, bottleneck[plane])),
                np.where(from_here, left, bottleneck[plane]),
            )
            total += state.power_of(plane, moved, rate, worst)
        return total
