"""What single moves do to the overloads over given clocks, kept up to date from move to move.

A move changes the loads of the few links on the old and the new path. Only places over these links look different
afterwards, so that with T links on all C places and K links in the grid's planes a step costs O(T h / K + C) for
paths of h links, instead of O(T).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes.neighbourhood import Neighbourhood
from routecast.noc.planes.placement import Placement

__all__ = ["Overloads"]

Floats = NDArray[np.float64]


class Overloads:
    """The sum of squared overloads over a target, each at its link's price, and what each single move changes of it.

    Parameters
    ----------
    state : Placement
        Moved by :meth:`move` alone from now on.
    around : Neighbourhood
    target : array, shape (planes,)
        Relative load of a plane's links from which on it is an overload.

    Attributes
    ----------
    come : array, shape (C,)
        What the links of each place add if its flow comes there. Where a link is on the flow's path of now it is what
        leaving saves instead, so that ``come[place] - come[choice of its flow]`` is what the move changes.
    """

    def __init__(self, state: Placement, around: Neighbourhood, target: Floats) -> None:
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
