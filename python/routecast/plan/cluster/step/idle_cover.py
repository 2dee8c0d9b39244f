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

from routecast.plan.cluster.step.cover import Floats, Ints, parcels, parcels_taken

__all__ = ["idle_cover_costs", "idle_cover_counts", "put_exactly"]


def put_exactly(table: Floats, weight: int, cost: float) -> None:
    """Let one parcel be taken or left, for exactly so many quanta; what it adds to is a copy."""
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
            put_exactly(table, size * int(weights[group]), size * float(full[group]))
        yield group, table
        put_exactly(table, int(weights[group]), float(full[group]))


def _window_minima(values: Floats, first: Ints, last: Ints, width: int) -> Floats:
    """Return min(values[first..last]) for windows of ``width`` or ``width`` + 1; values before the first are inf."""
    padded = np.concatenate([np.full(width + 1, np.inf), values])
    span = 1
    while 2 * span <= width:
        padded = np.minimum(padded[: padded.size - span], padded[span:])
        span *= 2
    begin = first + width + 1
    return np.asarray(np.minimum(padded[begin], padded[last + width + 1 - (span - 1)]), dtype=np.float64)


def _windows(loads: Floats, weight: int) -> tuple[Ints, Ints]:
    """Return the first and last x that a machine of ``weight`` quanta can complete to each load; x may be below 0."""
    last = np.floor(loads + 1e-9).astype(np.int64)
    return np.minimum(np.ceil(loads - weight - 1e-9).astype(np.int64), last), last


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
    cells = int(np.floor(loads.max(initial=0.0) + 1e-9))
    quanta = np.arange(cells + 1)
    cost = np.where(loads > 0.0, np.inf, 0.0)
    for group, table in _last_machines(weights, idle + slopes * weights, slopes, limits, cells):
        weight = int(weights[group])
        first, last = _windows(loads, weight)
        width = min(weight, cells + 1)
        least = _window_minima(table - slopes[group] * quanta, np.maximum(first, last - width), last, width)
        np.minimum(cost, least + idle[group] + slopes[group] * loads, out=cost)
    return np.where(loads > 0.0, cost, 0.0)


def _last_machine_of(
    weights: Ints, idle: Floats, slopes: Floats, limits: Ints, loads: Floats
) -> tuple[Ints, Ints]:
    """Return the group of the machine that is not full, and the quanta on full machines, of every load."""
    cells = int(np.floor(loads.max(initial=0.0) + 1e-9))
    cost = np.where(loads > 0.0, np.inf, 0.0)
    group_of = np.full(loads.size, -1, dtype=np.int64)
    quanta_of = np.zeros(loads.size, dtype=np.int64)
    for group, table in _last_machines(weights, idle + slopes * weights, slopes, limits, cells):
        reduced = table - slopes[group] * np.arange(cells + 1)
        first, last = _windows(loads, int(weights[group]))
        first = np.maximum(first, 0)
        for number in np.flatnonzero(loads > 0.0).tolist():
            here = int(first[number] + np.argmin(reduced[first[number] : last[number] + 1]))
            value = float(reduced[here] + idle[group] + slopes[group] * loads[number])
            if value < cost[number]:
                cost[number], group_of[number], quanta_of[number] = value, group, here
    return group_of, quanta_of


def idle_cover_counts(weights: Ints, idle: Floats, slopes: Floats, limits: Ints, loads: Floats) -> Ints:
    """Return the machines behind ``idle_cover_costs``, shape (loads, groups)."""
    last, at = _last_machine_of(weights, idle, slopes, limits, loads)
    counts = np.zeros((loads.size, limits.size), dtype=np.int64)
    order = np.argsort(slopes, kind="stable").tolist()
    full = idle + slopes * weights
    for group in sorted(set(last[last >= 0].tolist())):
        rows = np.flatnonzero(last == group)
        bounds = np.zeros_like(limits)
        for before in order[: order.index(group)]:
            bounds[before] = limits[before]
        bounds[group] = limits[group] - 1
        counts[rows] = parcels_taken(put_exactly, order, weights, full, bounds, at[rows])
        counts[rows, group] += 1
    return counts
