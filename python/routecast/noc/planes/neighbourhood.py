"""Every single move of a placement at once, and what it does to the power.

A move takes one flow to another of its places. All C places are looked at in O(P) array operations, where P is the
sum of their path lengths (a few microseconds per thousand), instead of one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes.candidates import Candidates
from routecast.noc.planes.flows import UNIT
from routecast.noc.planes.placement import Placement

__all__ = ["Neighbourhood"]


class Neighbourhood:
    """The places of all flows laid out link by link.

    Parameters
    ----------
    candidates : Candidates
    widths : sequence of float
        Of each plane's links.
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

    def power_after(self, state: Placement, used: NDArray[np.bool_]) -> NDArray[np.float64]:
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
