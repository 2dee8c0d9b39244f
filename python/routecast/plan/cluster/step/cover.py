"""Cheapest machines for every load at once: a bounded knapsack cover over capacities in a common quantum.

One table answers all loads of a day, because the cheapest cover of x quanta is known for every x on the way to the
largest. Machines of a group enter in parcels of 1, 2, 4, … so that a group of N costs about log2 N passes.

::

    g(x) = min over parcels taken of Σ cost, with Σ weight >= x
    g(x) := min( g(x), cost + g(max(x − weight, 0)) )      parcel by parcel
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

__all__ = [
    "MAX_CELLS",
    "Floats",
    "Ints",
    "common_quantum",
    "cover_costs",
    "cover_counts",
    "parcels",
    "parcels_taken",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_CELLS = 400_000
"""Longest table: beyond it the capacities have no quantum of use and a step is solved as an integer program."""

_ROUND = 1e-9


def common_quantum(capacities_bps: Sequence[float], peak_bps: float) -> float | None:
    """Return the largest quantum that all capacities are multiples of, None if it is too fine for a table.

    Parameters
    ----------
    capacities_bps : sequence of float
        R_k; whole multiples of 1 bit/s, as all that people write in Mbit/s or Gbit/s is.
    peak_bps : float
        The largest load.
    """
    whole = [round(capacity_bps) for capacity_bps in capacities_bps]
    if any(abs(n - c) > _ROUND * c or n == 0 for n, c in zip(whole, capacities_bps, strict=True)):
        return None
    quantum = math.gcd(*whole)
    return float(quantum) if peak_bps / quantum <= MAX_CELLS else None


def parcels(limit: int) -> Iterator[int]:
    """Yield sizes 1, 2, 4, … and a rest that sum to ``limit``: their subsets give every number from 0 to it."""
    size = 1
    while limit > 0:
        yield min(size, limit)
        limit -= size
        size *= 2


def cover_costs(
    weights: Ints, costs: Floats, limits: Ints, cells: int, start: Floats | None = None
) -> Floats:
    """Return g(x) for x = 0..``cells``: least cost of machines of at least x quanta, inf where there is none.

    Parameters
    ----------
    weights, costs, limits : arrays of shape (groups,)
        Quanta of capacity, cost and greatest number of each group's machines.
    cells : int
        The largest x wanted.
    start : array of shape (cells + 1,), optional
        g of machines that were put in before; not changed.
    """
    if start is None:
        table = np.full(cells + 1, np.inf)
        table[0] = 0.0
    else:
        table = start.copy()
    for weight, cost, limit in zip(weights.tolist(), costs.tolist(), limits.tolist(), strict=True):
        for size in parcels(limit):
            _put(table, size * weight, size * cost)
    return table


def _put(table: Floats, weight: int, cost: float) -> None:
    """Let one parcel be taken or left; the right sides are copies, so no parcel is taken twice."""
    if weight < table.size:
        through = table[: table.size - weight] + cost
        np.minimum(table[weight:], through, out=table[weight:])
        np.minimum(table[1:weight], table[0] + cost, out=table[1:weight])
    else:
        np.minimum(table[1:], table[0] + cost, out=table[1:])


def cover_counts(weights: Ints, costs: Floats, limits: Ints, needs: Ints) -> Ints:
    """Return the machines behind ``cover_costs`` at each need, shape (needs, groups).

    Every need must be coverable.
    """
    return parcels_taken(_put, range(limits.size), weights, costs, limits, needs)


def parcels_taken(
    put: Callable[[Floats, int, float], None],
    order: Iterable[int],
    weights: Ints,
    costs: Floats,
    limits: Ints,
    needs: Ints,
) -> Ints:
    """Return the machines that a table was lowered by at each need, shape (needs, groups).

    Parameters
    ----------
    put : callable
        Lowers a table, in place, by one parcel of a weight and a cost.
    order : iterable of int
        The groups as they are put in.
    weights, costs, limits
        As for :func:`cover_costs`.
    needs : array
        In quanta; each must be met with these machines.
    """
    table = np.full(int(needs.max(initial=0)) + 1, np.inf)
    table[0] = 0.0
    taken: list[tuple[int, int, npt.NDArray[np.bool_]]] = []
    for group in order:
        for size in parcels(int(limits[group])):
            before = table.copy()
            put(table, size * int(weights[group]), size * float(costs[group]))
            taken.append((group, size, table < before))
    counts = np.zeros((needs.size, limits.size), dtype=np.int64)
    left = needs.copy()
    for group, size, better in reversed(taken):
        here = better[left]
        counts[here, group] += size
        left[here] = np.maximum(left[here] - size * weights[group], 0)
    return counts
