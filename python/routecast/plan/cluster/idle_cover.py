"""Cheapest machines whose power rises with their load, for all loads at once.

The load goes to the least slope first, so all machines but one are full: with the groups in order of slope, those
before group m are full, one machine of m takes the rest, the others of m are full too.

::

    f(T) = min over m, x of  F_m(x) + idle_m + slope_m (T − x),    T − R_m <= x <= T

F_m(x) is the least power of full machines of exactly x, from the groups before m and all but one of m.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from routecast.plan.cluster.cover import Floats, Ints, parcels

__all__ = ["idle_cover_costs", "idle_cover_counts"]


def _put(table: Floats, weight: int, cost: float) -> None:
    if weight < table.size:
        np.minimum(table[weight:], table[:-weight] + cost, out=table[weight:])


def _last_machines(
    weights: Ints, full: Floats, slopes: Floats, limits: Ints, cells: int
) -> Iterator[tuple[int, Floats]]:
    """Yield each group m that there is a machine of, with F_m."""
    table = np.full(cells + 1, np.inf)
    table[0] = 0.0
    for group in np.argsort(slopes, kind="stable").tolist():
        limit = int(limits[group])
        if limit == 0:
            continue
        for size in parcels(limit - 1):
            _put(table, size * int(weights[group]), size * float(full[group]))
        yield group, table
        _put(table, int(weights[group]), float(full[group]))


def _best(
    weights: Ints, idle: Floats, slopes: Floats, limits: Ints, loads: Floats
) -> tuple[Floats, Ints, Ints]:
    """Return cost, last group and quanta on full machines of every load; loads in quanta, slopes per quantum."""
    full = idle + slopes * weights
    cells = int(np.floor(loads.max(initial=0.0) + 1e-9))
    cost = np.where(loads > 0.0, np.inf, 0.0)
    last = np.full(loads.size, -1, dtype=np.int64)
    at = np.zeros(loads.size, dtype=np.int64)
    above = np.floor(loads + 1e-9).astype(np.int64)
    for group, table in _last_machines(weights, full, slopes, limits, cells):
        reduced = table - slopes[group] * np.arange(cells + 1)
        below = np.maximum(np.ceil(loads - weights[group] - 1e-9).astype(np.int64), 0)
        for number in np.flatnonzero(loads > 0.0).tolist():
            window = reduced[below[number] : above[number] + 1]
            here = int(np.argmin(window))
            value = float(window[here]) + idle[group] + slopes[group] * loads[number]
            if value < cost[number]:
                cost[number], last[number], at[number] = value, group, below[number] + here
    return cost, last, at


def idle_cover_costs(weights: Ints, idle: Floats, slopes: Floats, limits: Ints, loads: Floats) -> Floats:
    """Return the least power of every load, inf where the machines do not carry it.

    Parameters
    ----------
    weights : array of shape (groups,)
        Capacities in quanta.
    idle, slopes : arrays of shape (groups,)
        Power without load, and power for each quantum of load.
    limits : array of shape (groups,)
    loads : array
        In quanta, not necessarily whole.
    """
    return _best(weights, idle, slopes, limits, loads)[0]


def idle_cover_counts(weights: Ints, idle: Floats, slopes: Floats, limits: Ints, loads: Floats) -> Ints:
    """Return the machines behind ``idle_cover_costs``, shape (loads, groups)."""
    _, last, at = _best(weights, idle, slopes, limits, loads)
    counts = np.zeros((loads.size, limits.size), dtype=np.int64)
    order = np.argsort(slopes, kind="stable").tolist()
    full = idle + slopes * weights
    for group in sorted(set(last[last >= 0].tolist())):
        rows = np.flatnonzero(last == group)
        bounds = np.zeros_like(limits)
        for before in order[: order.index(group)]:
            bounds[before] = limits[before]
        bounds[group] = limits[group] - 1
        counts[rows] = _exact_counts(weights, full, bounds, at[rows], order)
        counts[rows, group] += 1
    return counts


def _exact_counts(weights: Ints, full: Floats, limits: Ints, targets: Ints, order: list[int]) -> Ints:
    table = np.full(int(targets.max(initial=0)) + 1, np.inf)
    table[0] = 0.0
    taken: list[tuple[int, int, npt.NDArray[np.bool_]]] = []
    for group in order:
        for size in parcels(int(limits[group])):
            before = table.copy()
            _put(table, size * int(weights[group]), size * float(full[group]))
            taken.append((group, size, table < before))
    counts = np.zeros((targets.size, limits.size), dtype=np.int64)
    left = targets.copy()
    for group, size, better in reversed(taken):
        here = better[left]
        counts[here, group] += size
        left[here] -= size * weights[group]
    return counts
