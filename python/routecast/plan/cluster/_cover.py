"""Cheapest machines for every load at once: a bounded knapsack cover over capacities in a common quantum.

One table answers all loads of a day, because the cheapest cover of x quanta is known for every x on the way to the
largest. Machines of a group enter in parcels of 1, 2, 4, …, so a group of N costs about log2 N passes.

::

    g(x) = min over parcels taken of Σ cost, with Σ weight >= x
    g(x) := min( g(x), cost + g(max(x − weight, 0)) )      parcel by parcel
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

from routecast.quantity.schema import value

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_CELLS = 400_000
"""The longest table; with a finer quantum a step is solved as an integer program."""

_ROUND = 1e-9


def common_quantum(capacities_bps: Sequence[float], peak_bps: float) -> float | None:
    """Return the largest quantum of which all capacities are multiples, bit/s; None if it is too fine for a table.

    Capacities must be whole multiples of 1 bit/s.
    """
    rounded = [round(capacity_bps) for capacity_bps in capacities_bps]
    if any(abs(n - c) > _ROUND * c or n == 0 for n, c in zip(rounded, capacities_bps, strict=True)):
        return None
    quantum = math.gcd(*rounded)
    return float(quantum) if peak_bps / quantum <= MAX_CELLS else None


def parcels(limit: int) -> Iterator[int]:
    """Yield sizes 1, 2, 4, … and a rest that sum to ``limit``: their subsets give every number from 0 to it."""
    size = 1
    while limit > 0:
        yield min(size, limit)
        limit -= size
        size *= 2


def cover_costs(weights: Ints, costs: Floats, limits: Ints, cells: int, start: Floats | None = None) -> Floats:
    """Return g(x) for x = 0..``cells``: the least cost of machines of at least x quanta, inf where there are none.

    ``weights``, ``costs`` and ``limits``, shape (groups,), are each group's quanta, cost and number of machines;
    ``start`` is g of the machines that are already in.
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
    """Allow one parcel more; the right sides are copies, so no parcel is taken twice."""
    if weight < table.size:
        through = table[: table.size - weight] + cost
        np.minimum(table[weight:], through, out=table[weight:])
        np.minimum(table[1:weight], table[0] + cost, out=table[1:weight])
    else:
        np.minimum(table[1:], table[0] + cost, out=table[1:])


def cover_counts(weights: Ints, costs: Floats, limits: Ints, needs: Ints) -> Ints:
    """Return the machines of ``cover_costs`` at each need, shape (needs, groups); every need must be coverable."""
    return parcels_taken(_put, range(limits.size), weights, costs, limits, needs)


def parcels_taken(
    put: Callable[[Floats, int, float], None],
    order: Iterable[int],
    weights: Ints,
    costs: Floats,
    limits: Ints,
    needs: Ints,
) -> Ints:
    """Return the machines that lower a table at each need, shape (needs, groups); every need must be coverable.

    ``put`` allows one parcel of a weight and a cost more in a table, in place; ``order`` is the order of the groups.
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


def put_exactly(table: Floats, weight: int, cost: float) -> None:
    """Allow one parcel more, for machines of exactly x quanta; the right side is a copy.

    Cheapest machines whose power rises with their load, for all loads at once.

    The load goes to the least slope first, so all machines but one are full: with the groups in order of slope, those
    before group m are full, one machine of m takes the rest, the others of m are full too.

    ::

        f(T) = min over m, x of  F_m(x) + idle_m + slope_m (T − x),    T − R_m <= x <= T

    F_m(x) is the least power of full machines of exactly x, from the groups before m and all but one of m.
    """
    if weight < table.size:
        np.minimum(table[weight:], table[:-weight] + cost, out=table[weight:])


def _last_machines(
    weights: Ints, full: Floats, slopes: Floats, limits: Ints, cells: int
) -> Iterator[tuple[int, Floats]]:
    """Yield each group m that has a machine, with F_m."""
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

    ``weights`` are capacities in quanta, ``idle`` is the power without load, ``slopes`` the power for each quantum of
    load, each of shape (groups,); ``loads`` are in quanta, not necessarily whole.
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


def _last_machine_of(weights: Ints, idle: Floats, slopes: Floats, limits: Ints, loads: Floats) -> tuple[Ints, Ints]:
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
    """Return the machines of ``idle_cover_costs``, shape (loads, groups)."""
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


# Cheapest machines that carry a load even without the ``spare`` largest of them, for all loads at once.
#
# The machines that are on, sorted by capacity, are a base that carries the load alone and ``spare`` others, each at
# least as large as any of the base. The others are not needed for the load, so they are the cheapest of that size. Each
# largest group g of the base is tried with each number of its machines among the others: groups × (spare + 1) tables.
@value
class _Split:
    before: Ints
    group: int
    same: int
    others: Ints
    cost: float

    def base_limits(self, limits: Ints) -> Ints:
        """Return how many machines of each group the base may have."""
        base = np.zeros_like(limits)
        base[self.before] = limits[self.before]
        base[self.group] = limits[self.group] - self.same
        return base


def _splits(weights: Ints, costs: Floats, limits: Ints, spare: int) -> Iterator[_Split]:
    order = np.argsort(weights, kind="stable")
    order = order[limits[order] > 0]
    for rank, group in enumerate(order.tolist()):
        larger = order[rank + 1 :]
        cheapest_first = larger[np.argsort(costs[larger], kind="stable")]
        for same in range(min(spare, int(limits[group])) + 1):
            others = np.zeros_like(limits)
            others[group] = same
            missing = spare - same
            for other in cheapest_first.tolist():
                others[other] = min(missing, int(limits[other]))
                missing -= int(others[other])
            if not missing:
                yield _Split(before=order[:rank], group=group, same=same, others=others, cost=float(costs @ others))


def spare_cover_costs(weights: Ints, costs: Floats, limits: Ints, cells: int, spare: int) -> Floats:
    """Return for x = 0..``cells`` the least cost of machines of at least x quanta without the ``spare`` largest."""
    best = np.full(cells + 1, np.inf)
    none = np.zeros_like(limits)
    smaller = cover_costs(weights, costs, none, cells)
    inside = 0
    for split in _splits(weights, costs, limits, spare):
        # The table of the groups before the largest one is grown once and shared by its splits.
        for group in split.before[inside:].tolist():
            smaller = _with(weights, costs, smaller, group, int(limits[group]))
        inside = len(split.before)
        table = _with(weights, costs, smaller, split.group, int(limits[split.group]) - split.same)
        np.minimum(best, table + split.cost, out=best)
    best[0] = 0.0
    return best


def _with(weights: Ints, costs: Floats, table: Floats, group: int, limit: int) -> Floats:
    own = slice(group, group + 1)
    return cover_costs(weights[own], costs[own], np.array([limit]), table.size - 1, start=table)


def spare_cover_counts(weights: Ints, costs: Floats, limits: Ints, needs: Ints, spare: int) -> Ints:
    """Return the machines of ``spare_cover_costs`` at each need, shape (needs, groups)."""
    cells = int(needs.max(initial=0))
    best = np.full(needs.size, np.inf)
    counts = np.zeros((needs.size, limits.size), dtype=np.int64)
    for split in _splits(weights, costs, limits, spare):
        base_limits = split.base_limits(limits)
        cost = cover_costs(weights, costs, base_limits, cells)[needs] + split.cost
        better = (cost < best) & (needs > 0)
        if better.any():
            counts[better] = split.others + cover_counts(weights, costs, base_limits, needs[better])
            best[better] = cost[better]
    return counts


_BLOCK = 1_000_000
"""Sums that are computed together."""


@value
class _Case:
    """A choice of others, the group that is neither full nor idle, and how many machines of it are idle.

    Cheapest machines with spares whose power rises with their load, for all loads at once.

    The machines that are on are a base that carries the load T alone and ``spare`` others, each at least as large as
    any of the base. Every choice of others is tried. All machines share the load, the least slope first: with the
    groups in order of slope, those before group m are full, m takes the rest, those after m are idle. The base's z on
    full machines then determines the rest, so the two parts are separate tables::

        f(T) = min over others, m, z of  F_m(z) + slope_m (T − O_m − z) + E_m(T − z − …),   0 <= T − O_m − z <= R_m

    F_m(z) is the least power of full base machines of exactly z, E_m(d) the least idle power of machines after m that
    together route d, and O_m is what the others before m route.

    ``full`` is F over the machines of ``full_limits``, ``idle`` E over those of ``idle_limits``; ``fixed`` is the power
    of all other machines without the rest of the load, of which ``base`` are in the base and route ``base_cells``.
    """

    others: Ints
    others_full: int
    group: int
    base: int
    base_cells: int
    width: int
    fixed: float
    full: Floats
    full_limits: Ints
    idle: Floats
    idle_limits: Ints


def _others(limits: Ints, spare: int) -> Iterator[Ints]:
    groups = np.flatnonzero(limits).tolist()
    for chosen in combinations_with_replacement(groups, spare):
        others = np.bincount(chosen, minlength=limits.size).astype(np.int64)
        if (others <= limits).all():
            yield others


def _grown(table: Floats, weight: int, cost: float, limit: int) -> Floats:
    """Return a copy of F with up to ``limit`` more full machines."""
    table = table.copy()
    for size in parcels(limit):
        put_exactly(table, size * weight, size * cost)
    return table


def _cases(weights: Ints, idle: Floats, slopes: Floats, limits: Ints, cells: int, others: Ints) -> Iterator[_Case]:
    """Yield the cases of one choice of others."""
    bounds = np.where(weights <= weights[others > 0].min(), limits - others, 0)
    order = [group for group in np.argsort(slopes, kind="stable").tolist() if bounds[group] or others[group]]
    standby = np.full(min(int(weights @ others), cells) + 2, np.inf)
    standby[0] = 0.0
    after: dict[int, Floats] = {}
    for group in reversed(order):
        after[group] = standby
        own = slice(group, group + 1)
        standby = cover_costs(weights[own], idle[own], bounds[own], standby.size - 1, start=standby)
    table = np.full(cells + 1, np.inf)
    table[0] = 0.0
    others_full = 0
    fixed = float(idle @ others)
    full_limits, idle_limits = np.zeros_like(bounds), bounds.copy()
    for group in order:
        if others_full > cells:
            return
        weight, bound, spares = int(weights[group]), int(bounds[group]), int(others[group])
        full_w = float(idle[group] + slopes[group] * weight)
        idle_limits[group] = 0
        # (machines of the group that are not full, how many are full at most, the greatest load of the former)
        beside = [
            (extra + 1, bound - 1 - extra, weight)
            for extra in range(min(bound - 1, math.ceil(others_full / weight)) + 1 if bound else 0)
        ]
        if spares:
            beside.append((0, bound, spares * weight))
        for machines, most_full, width in beside:
            full_limits[group] = most_full
            yield _Case(
                others=others,
                others_full=others_full,
                group=group,
                base=machines,
                base_cells=machines * weight,
                width=width,
                fixed=fixed + machines * float(idle[group]),
                full=_grown(table, weight, full_w, most_full),
                full_limits=full_limits.copy(),
                idle=after[group],
                idle_limits=idle_limits.copy(),
            )
        full_limits[group] = bound
        table = _grown(table, weight, full_w, bound)
        others_full += spares * weight
        fixed += float(slopes[group]) * weight * spares


@dataclass(frozen=True, slots=True)
class _BestCases:
    """The best case of every load, with z and the quanta of idle machines."""

    cost: Floats
    case: Ints
    full: Ints
    idle: Ints
    cases: list[_Case]


def _best_cases(
    weights: Ints,
    idle: Floats,
    slopes: Floats,
    limits: Ints,
    loads: Floats,
    spare: int,
    pause: Callable[[], None] | None,
) -> _BestCases:
    quanta = np.floor(loads + 1e-9).astype(np.int64)
    fractions = np.ceil(loads * (1.0 - 1e-12)).astype(np.int64) - quanta
    cost = np.where(loads > 0.0, np.inf, 0.0)
    case_of = np.full(loads.size, -1, dtype=np.int64)
    full_of, idle_of = np.zeros_like(case_of), np.zeros_like(case_of)
    kept: list[_Case] = []
    for others in _others(limits, spare):
        for case in _cases(weights, idle, slopes, limits, int(quanta.max(initial=0)), others):
            if pause is not None:
                pause()
            slope = float(slopes[case.group])
            better_somewhere = False
            for fraction in (0, 1):
                # z falls short of the load by 0 to `width` quanta, one less if the load has a fraction of a quantum.
                most_short = min(case.width - fraction, case.full.size - 1 - case.others_full)
                short = np.arange(most_short + 1)
                lacking = np.maximum(case.others_full + short + fraction - case.base_cells, 0)
                last = case.idle[lacking]
                known = np.flatnonzero(np.isfinite(last))
                if not known.size:
                    continue
                short, last = short[: known[-1] + 1], last[: known[-1] + 1]
                reduced = np.concatenate([np.full(short.size, np.inf), case.full - slope * np.arange(case.full.size)])
                windows = np.lib.stride_tricks.sliding_window_view(reduced, short.size)
                rows = np.flatnonzero((loads > 0.0) & (fractions == fraction) & (quanta >= case.others_full))
                for begin in range(0, rows.size, max(_BLOCK // short.size, 1)):
                    block = rows[begin : begin + max(_BLOCK // short.size, 1)]
                    top = quanta[block] - case.others_full
                    sums = windows[top + 1] + last[::-1]
                    at = np.argmin(sums, axis=1)
                    value = sums[np.arange(block.size), at] + case.fixed + slope * (loads[block] - case.others_full)
                    better = value < cost[block]
                    if better.any():
                        better_somewhere = True
                        here, gap = block[better], short.size - 1 - at[better]
                        cost[here] = value[better]
                        case_of[here] = len(kept)
                        full_of[here] = top[better] - gap
                        idle_of[here] = lacking[gap]
            if better_somewhere:
                kept.append(case)
    return _BestCases(cost, case_of, full_of, idle_of, kept)


def idle_spare_costs(
    weights: Ints,
    idle: Floats,
    slopes: Floats,
    limits: Ints,
    loads: Floats,
    spare: int,
    pause: Callable[[], None] | None = None,
) -> Floats:
    """Return the least power of every load, inf where the machines do not carry it, ``spare`` machines kept.

    The arrays are those of ``idle_cover_costs``; ``pause`` is called now and then and may raise.
    """
    return _best_cases(weights, idle, slopes, limits, loads, spare, pause).cost


def idle_spare_counts(
    weights: Ints,
    idle: Floats,
    slopes: Floats,
    limits: Ints,
    loads: Floats,
    spare: int,
    pause: Callable[[], None] | None = None,
) -> Ints:
    """Return the machines of ``idle_spare_costs``, shape (loads, groups)."""
    best = _best_cases(weights, idle, slopes, limits, loads, spare, pause)
    counts = np.zeros((loads.size, limits.size), dtype=np.int64)
    order = np.argsort(slopes, kind="stable").tolist()
    for number in sorted(set(best.case[best.case >= 0].tolist())):
        case = best.cases[number]
        rows = np.flatnonzero(best.case == number)
        full = parcels_taken(put_exactly, order, weights, idle + slopes * weights, case.full_limits, best.full[rows])
        standby = cover_counts(weights, idle, case.idle_limits, best.idle[rows])
        counts[rows] = full + standby + case.others
        counts[rows, case.group] += case.base
    return counts
