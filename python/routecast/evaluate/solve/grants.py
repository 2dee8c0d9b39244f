"""Time on shared units that threads get of what they want: by level, then fair by weight, with pins.

Threads that may use units of set A get time together at most |S| on every set S of units that no thread outside can
help with. As a thread works on one unit at a time but may change units at any instant, these bounds are also enough
(Hall's theorem, and McNaughton, Management Science 6(1), 1959, for turns without overlap): a fair division under pins
is water that rises for all threads of a level alike until a set S is full, whose threads then have what they get
(max-min fairness; Megiddo, Mathematical Programming 7, 1974).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve.flow import Vector

__all__ = ["Row", "Rows", "pin_sets", "rows_of", "surface"]

Index = NDArray[np.intp]
_MOST_SETS = 512
_EVEN = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A set of units and the threads that may use no other: ``members`` are ``(thread, units at once)``."""

    pool: int
    units: tuple[int, ...]
    members: tuple[tuple[int, float], ...]


def pin_sets(pins: Sequence[frozenset[int]]) -> tuple[list[frozenset[int]], bool]:
    """Return the sets of units that can be full at once: connected unions of pins; and whether these are all.

    A union of two pins without a common unit is full only where both are, so it says nothing new.
    """
    found = list(dict.fromkeys(pins))
    seen = set(found)
    kinds = tuple(found)
    position = 0
    while position < len(found):
        one = found[position]
        position += 1
        for other in kinds:
            both = one | other
            if one & other and both not in seen:
                if len(found) >= _MOST_SETS:
                    return found, False
                seen.add(both)
                found.append(both)
    return found, True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """All sets of units of a router, one a row: threads padded to one width, a thread of no demand as padding."""

    rows: tuple[Row, ...]
    member: Index
    """Shape (rows, width)."""
    at_once: Vector
    """Units that a grant takes, shape (rows, width)."""
    capacity: Vector
    threads: int

    def load(self, demand: Vector) -> Vector:
        """Units that all threads of a row want."""
        loads: Vector = (self.at_once * np.append(demand, 0.0)[self.member]).sum(axis=1)
        return loads

    def divide(self, demand: Vector, weight: Vector, level: Sequence[Index]) -> Vector:
        """Return what each thread gets of its demand (time per second on a unit).

        Parameters
        ----------
        demand, weight : array
            By thread.
        level : sequence of array
            Threads of each level, the most urgent first.
        """
        got = demand.copy()
        if not len(self.rows) or bool(np.all(self.load(demand) <= self.capacity * (1.0 + _EVEN))):
            return got
        rest = self.capacity.copy()
        for position, threads in enumerate(level):
            wanted = np.zeros(self.threads + 1)
            wanted[threads] = demand[threads]
            loads = (self.at_once * wanted[self.member]).sum(axis=1)
            if np.any(loads > rest * (1.0 + _EVEN)):
                got[threads] = self._fill(wanted, weight, rest)[threads]
                wanted[threads] = got[threads]
                loads = (self.at_once * wanted[self.member]).sum(axis=1)
            if position + 1 < len(level):
                rest = np.maximum(rest - loads, 0.0)
        return got

    def entitled(
        self, demand: Vector, granted: Vector, weight: Vector, level: Sequence[Index], most: Vector
    ) -> Vector:
        """Return what each thread would get if it wanted more than there is, and the others what they want.

        Row by row, and each row by itself: a thread that another row keeps short takes here what it gets.
        """
        entitled = np.append(most, 0.0)
        if not len(self.rows):
            return most
        rest = self.capacity.copy()
        for position, threads in enumerate(level):
            mine = np.zeros(self.threads + 1, dtype=bool)
            mine[threads] = True
            inside = mine[self.member]
            used = np.where(inside, np.append(granted, 0.0)[self.member], 0.0)
            loads = (self.at_once * used).sum(axis=1)
            full = loads >= rest * (1.0 - 1e-9)
            wanted = np.where(inside & full[:, None], np.append(demand, 0.0)[self.member], used)
            base = np.where(inside, np.append(weight, 0.0)[self.member], 0.0)
            heights = _surface_of_one(wanted, base, rest, self.at_once)
            np.minimum.at(entitled, self.member, np.where(inside, heights * base, np.inf))
            if position + 1 < len(level):
                rest = np.maximum(rest - loads, 0.0)
        whole: Vector = np.maximum(entitled[:-1], granted)
        return whole

    def _fill(self, wanted: Vector, weight: Vector, rest: Vector) -> Vector:
        weights = np.append(weight, 0.0)
        got = wanted.copy()
        open_ = wanted > 0.0
        loads = (self.at_once * wanted[self.member]).sum(axis=1)
        rows = np.flatnonzero(loads > rest * (1.0 + _EVEN))
        member, at_once, rest = self.member[rows], self.at_once[rows], rest[rows]
        while rows.size:
            rising = open_[member]
            heights = surface(
                np.where(rising, wanted[member], 0.0),
                np.where(rising, weights[member], 0.0),
                rest,
                at_once=at_once,
            )
            full = np.isfinite(heights)
            if not full.any():
                break
            lowest = np.full(self.threads + 1, np.inf)
            np.minimum.at(lowest, member, np.broadcast_to(heights[:, None], member.shape))
            first = full & np.all(~rising | (lowest[member] >= heights[:, None]), axis=1)
            done = np.zeros(self.threads + 1, dtype=bool)
            done[member[first][rising[first]]] = True
            got[done] = np.minimum(wanted[done], weights[done] * lowest[done])
            open_ &= ~done
            rest = np.maximum(rest - (at_once * np.where(done[member], got[member], 0.0)).sum(axis=1), 0.0)
            keep = full & ~first & open_[member].any(axis=1)
            rows, member, at_once, rest = rows[keep], member[keep], at_once[keep], rest[keep]
        return got


def rows_of(rows: Sequence[Row], most: Vector) -> Rows:
    """Gather the rows that can be full: whose threads could use more units at once than there are.

    Parameters
    ----------
    most : array
        By thread, grants that it may have at once.
    """
    kept = tuple(
        row
        for row in rows
        if sum(units * float(most[thread]) for thread, units in row.members) > len(row.units) + _EVEN
    )
    width = max((len(row.members) for row in kept), default=1)
    member = np.full((len(kept), width), len(most), dtype=np.intp)
    at_once = np.zeros((len(kept), width))
    for number, row in enumerate(kept):
        for column, (thread, units) in enumerate(row.members):
            member[number, column], at_once[number, column] = thread, units
    return Rows(
        rows=kept,
        member=member,
        at_once=at_once,
        capacity=np.array([float(len(row.units)) for row in kept]),
        threads=len(most),
    )


def surface(wanted: Vector, weight: Vector, capacity: Vector, *, at_once: Vector | float = 1.0) -> Vector:
    """Return how high water of the volume ``capacity`` stands in each row of vessels.

    Vessel ``j`` of row ``i`` has the base ``weight[i, j]`` and holds ``wanted[i, j]`` at most: the height θ solves
    ``Σ at_once·min(wanted, weight·θ) = capacity``. Infinite where all vessels are full before.
    """
    height = np.divide(wanted, weight, out=np.zeros_like(wanted), where=weight > 0.0)
    order = np.argsort(height, axis=1)
    height = np.take_along_axis(height, order, axis=1)
    volume = np.take_along_axis(np.where(weight > 0.0, wanted, 0.0) * at_once, order, axis=1)
    base = np.take_along_axis(weight * at_once, order, axis=1)
    below = np.cumsum(volume, axis=1) - volume
    wider = np.cumsum(base[:, ::-1], axis=1)[:, ::-1]
    filled = below + height * wider
    position = (filled < capacity[:, None]).sum(axis=1)
    last = wanted.shape[1] - 1
    at = np.minimum(position, last)
    rows = np.arange(len(capacity))
    rise = np.maximum(capacity - below[rows, at], 0.0) / np.maximum(wider[rows, at], 1e-300)
    heights: Vector = np.where(position > last, np.inf, rise)
    return heights


def _surface_of_one(wanted: Vector, weight: Vector, capacity: Vector, at_once: Vector) -> Vector:
    """Return how high water stands in each row when vessel ``j`` alone has no rim; shape as ``wanted``."""
    height = np.divide(wanted, weight, out=np.zeros_like(wanted), where=weight > 0.0)
    order = np.argsort(height, axis=1)
    step = np.take_along_axis(height, order, axis=1)
    volume = np.take_along_axis(np.where(weight > 0.0, wanted, 0.0) * at_once, order, axis=1)
    base = np.take_along_axis(weight * at_once, order, axis=1)
    below = np.cumsum(volume, axis=1) - volume
    wider = np.cumsum(base[:, ::-1], axis=1)[:, ::-1]
    filled = below + step * wider
    # Above its own rim, a vessel without one holds what rises over it besides.
    own, rim = (weight * at_once)[:, :, None], (np.where(weight > 0.0, wanted, 0.0) * at_once)[:, :, None]
    extra = np.maximum(own * step[:, None, :] - rim, 0.0)
    position = (filled[:, None, :] + extra < capacity[:, None, None]).sum(axis=2)
    last = wanted.shape[1] - 1
    at = np.minimum(position, last)
    rows = np.arange(len(capacity))[:, None]
    # Vessels from ``at`` on are open; where all are full, only the one without a rim is.
    full_below = np.where(position > last, below[rows, at] + volume[rows, at], below[rows, at])
    open_base = np.where(position > last, 0.0, wider[rows, at])
    beyond = step[rows, at] > height
    over = beyond | (position > last)
    level = (capacity[:, None] - full_below + np.where(over, rim[:, :, 0], 0.0)) / np.maximum(
        open_base + np.where(over, own[:, :, 0], 0.0), 1e-300
    )
    heights: Vector = np.maximum(level, 0.0)
    return heights
