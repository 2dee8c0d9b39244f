"""Small ranges of clocks, in which less power than wanted is not ruled out yet."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.noc.optimum.arcs import Floats

__all__ = ["Cells", "Symmetry"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Boxes of clocks b = 1/alpha.

    Attributes
    ----------
    lower, upper
        Shape (cells, planes): their least and greatest clocks; equal for a plane without scaling.
    proven
        Shape (cells,): no clocks in the cell need less power.
    """

    lower: Floats
    upper: Floats
    proven: Floats

    def where(self, held: NDArray[np.bool_]) -> Cells:
        """Return some of them."""
        return Cells(lower=self.lower[held], upper=self.upper[held], proven=self.proven[held])

    def halves(self) -> Cells:
        """Return twice as many, each cut across its longest side."""
        rows = np.arange(self.proven.size)
        side = np.argmax(self.upper / self.lower, axis=1)
        middle = (self.lower[rows, side] + self.upper[rows, side]) / 2.0
        upper, lower = self.upper.copy(), self.lower.copy()
        upper[rows, side], lower[rows, side] = middle, middle
        return Cells(
            lower=np.concatenate([self.lower, lower]),
            upper=np.concatenate([upper, self.upper]),
            proven=np.concatenate([self.proven, self.proven]),
        )

    @property
    def middles(self) -> Floats:
        """The clocks halfway, shape (cells, planes)."""
        return (self.lower + self.upper) / 2.0

    @property
    def least(self) -> float:
        """The least that is proven for any of them; inf without cells."""
        return float(self.proven.min(initial=math.inf))


@dataclass(frozen=True, slots=True, kw_only=True)
class Symmetry:
    """Pairs (p, q), p < q in order, of equal planes: p runs at least as fast as q without loss of generality."""

    pairs: tuple[tuple[int, int], ...]

    def keeps(self, order: tuple[int, ...]) -> bool:
        """Return whether planes may stand in this order, fastest first."""
        return all(order.index(fast) < order.index(slow) for fast, slow in self.pairs)

    def ordered(self, cells: Cells) -> Cells:
        """Return the parts of the cells that have such clocks."""
        lower, upper = cells.lower.copy(), cells.upper.copy()
        for fast, slow in self.pairs:
            upper[:, slow] = np.minimum(upper[:, slow], upper[:, fast])
        for fast, slow in reversed(self.pairs):
            lower[:, fast] = np.maximum(lower[:, fast], lower[:, slow])
        parts = Cells(lower=lower, upper=upper, proven=cells.proven)
        held: NDArray[np.bool_] = np.all(lower <= upper, axis=1)
        return parts.where(held)
