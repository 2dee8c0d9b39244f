"""A range of clocks, and what is proven about the power in it.

At clocks b the power is ``cost(b, b^2)`` (:mod:`routecast.noc.optimum.costs`), where ``cost(b, c)`` falls and is
convex in b and grows and is concave in c. In a box of clocks from l to u it is therefore nowhere below its
interpolation over the corners of the box of costs,

    cost(b, b^2) >= sum over corners k of  share_k(b^2) * cost(b, c_k),

with share_k the product over planes of (b^2 - l^2) / (u^2 - l^2), or of one less that; and each ``cost(., c_k)`` is
bounded by tangents. In a cell from a to z within the box, monotonicity gives

    cost(b, b^2) >= cost(z, a^2) >= sum over corners k of  share_k(a^2) * (best tangent of corner k at z).

Cells are made as small as it needs, without another linear program; the box is split where the interpolation itself
is too low.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.noc.optimum.arcs import Floats
from routecast.noc.optimum.costs import Pricing

__all__ = ["Box", "Cells", "Symmetry"]

# So many that to go on without another linear program would take longer than the program.
_MOST_CELLS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Parts of a box in which less power than wanted is not ruled out yet.

    Attributes
    ----------
    lower, upper
        Shape (cells, planes): their least and greatest clocks.
    proven
        Shape (cells,): no clocks in the cell need less power.
    """

    lower: Floats
    upper: Floats
    proven: Floats

    def within(self, lower: Floats, upper: Floats) -> Cells:
        """Return their parts in a smaller box."""
        low, high = np.maximum(self.lower, lower), np.minimum(self.upper, upper)
        # A plane without scaling has cells without width.
        held = ((low < high) | (lower == upper)).all(axis=1)
        return Cells(lower=low[held], upper=high[held], proven=self.proven[held])

    def where(self, held: NDArray[np.bool_]) -> Cells:
        """Return some of them."""
        return Cells(lower=self.lower[held], upper=self.upper[held], proven=self.proven[held])

    def halves(self) -> Cells:
        """Return twice as many, each cut across its longest side."""
        rows = np.arange(self.proven.size)
        side = np.argmax(np.log(self.upper / self.lower), axis=1)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Symmetry:
    """Pairs (p, q) of equal planes, of which p runs at least as fast as q without loss of generality."""

    pairs: tuple[tuple[int, int], ...]

    def keeps(self, cells: Cells) -> NDArray[np.bool_]:
        """Return which cells have clocks in that order, shape (cells,)."""
        kept = np.ones(cells.proven.size, dtype=np.bool_)
        for fast, slow in self.pairs:
            kept &= cells.upper[:, fast] >= cells.lower[:, slow]
        return kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Box:
    """A range of clocks over whose corners costs are interpolated.

    Attributes
    ----------
    lower, upper
        Shape (planes,): the least and greatest clocks; equal for a plane without scaling.
    cells
        What is left of it.
    """

    lower: Floats
    upper: Floats
    cells: Cells

    @classmethod
    def whole(cls, lower: Floats, upper: Floats) -> Box:
        """Return a box of which nothing is ruled out."""
        cells = Cells(lower=lower[None], upper=upper[None], proven=np.zeros(1))
        return cls(lower=lower, upper=upper, cells=cells)

    @property
    def proven(self) -> float:
        """No clocks in what is left need less power."""
        return float(self.cells.proven.min(initial=math.inf))

    @property
    def corners(self) -> tuple[Floats, ...]:
        """The costs of a flit-hop at its corners, each of shape (planes,)."""
        sides = [
            (low,) if low == high else (low, high) for low, high in zip(self.lower, self.upper, strict=True)
        ]
        return tuple(np.array(clocks) ** 2 for clocks in itertools.product(*sides))

    def floor(self, pricing: Pricing, slow: Floats, fast: Floats) -> Floats:
        """Return what is proven for cells from ``slow`` to ``fast``, each of shape (cells, planes).

        With ``slow`` equal to ``fast``, what is proven at those clocks.
        """
        low, high = self.lower**2, self.upper**2
        spread = np.where(high > low, high - low, 1.0)
        above = np.clip((slow**2 - low) / spread, 0.0, 1.0)
        is_fixed = low == high
        total = np.zeros(len(slow))
        for costs in self.corners:
            share = np.where(costs > low, above, 1.0 - above)
            total += np.where(is_fixed, 1.0, share).prod(axis=1) * pricing.bounds(costs).at(fast)
        return total

    def narrowed(self, pricing: Pricing, target: float, symmetry: Symmetry) -> tuple[Box, float]:
        """Rule out cells that need at least ``target`` power, smaller and smaller ones, until a bad one shows.

        Returns
        -------
        Box
            With what is left: nothing, or cells of which one at least has less than ``target`` proven halfway.
        float
            The least power that is proven for what has been ruled out; inf where nothing was.
        """
        cells, least = self.cells, math.inf
        while cells.proven.size:
            cells = cells.where(symmetry.keeps(cells))
            proven = np.maximum(cells.proven, self.floor(pricing, cells.lower, cells.upper))
            is_out = proven >= target
            least = min(least, float(proven[is_out].min(initial=math.inf)))
            cells = Cells(lower=cells.lower, upper=cells.upper, proven=proven).where(~is_out)
            halfway = self.floor(pricing, cells.middles, cells.middles)
            if (halfway < target).any() or cells.proven.size > _MOST_CELLS:
                break
            cells = cells.halves()
        return Box(lower=self.lower, upper=self.upper, cells=cells), least

    def worst(self, pricing: Pricing) -> Floats:
        """Return the clocks, halfway in a cell, for which least is proven."""
        middles = self.cells.middles
        clocks: Floats = middles[self.floor(pricing, middles, middles).argmin()]
        return clocks

    def halves(self) -> tuple[Box, Box]:
        """Return the box cut across its longest side, with the cells of each half."""
        side = int(np.argmax(np.log(self.upper / self.lower)))
        middle = float(np.sqrt(self.lower[side] * self.upper[side]))
        upper, lower = self.upper.copy(), self.lower.copy()
        upper[side], lower[side] = middle, middle
        return (
            Box(lower=self.lower, upper=upper, cells=self.cells.within(self.lower, upper)),
            Box(lower=lower, upper=self.upper, cells=self.cells.within(lower, self.upper)),
        )
