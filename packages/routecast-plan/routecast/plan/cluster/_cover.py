"""The cheapest machines for all loads at once: bounded knapsack covers over capacities in a common quantum.

One table answers all loads of a day, because it holds the cheapest cover of every x up to the largest load. Machines of
a group enter in parcels of 1, 2, 4, …, so a group of N machines takes about log2 N passes::

    g(x) = min over the parcels taken of Σ cost, with Σ weight >= x
    g(x) := min( g(x), cost + g(max(x − weight, 0)) )      parcel by parcel

Where the power of machines rises with their load (``idle_cover_*``), the load fills the machines of least slope first,
so all machines but one are full. With the groups in order of slope, the machines before group m are full, one machine
of m takes the rest of the load, and the other machines of m are full too::

    f(T) = min over m, x of  F_m(x) + idle_m + slope_m (T − x),    T − R_m <= x <= T

F_m(x) is the least power of full machines of exactly x quanta, from the groups before m and all but one of m.

With spares (``spare_cover_*``), the machines that are on, sorted by capacity, are a base that carries the load alone
and ``spare`` others, each at least as large as every machine of the base. The others are the cheapest of that size,
because the load does not need them. Each group is tried as the largest of the base, with each number of its machines
among the others: groups × (spare + 1) tables.

With both (``idle_spare_*``), every choice of others is tried. All machines share the load, the least slope first: the
machines before group m are full, m takes the rest, those after m are idle. The base's z quanta on full machines then
determine the rest, so the two parts are separate tables::

    f(T) = min over others, m, z of  F_m(z) + slope_m (T − O_m − z) + E_m(T − z − …),   0 <= T − O_m − z <= R_m

F_m(z) is the least power of full base machines of exactly z, E_m(d) the least idle power of machines after m that can
carry d together, and O_m is the load that the others before m carry.
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
"""The greatest length of a table; with a finer quantum, integer programs solve the steps."""

_ROUNDING = 1e-9


def common_quantum(capacities_bps: Sequence[float], peak_bps: float) -> float | None:
    """Return the largest quantum of which all capacities are multiples, bit/s; None if it is too fine for a table.

    Capacities must be whole multiples of 1 bit/s.
    """
    rounded = [round(capacity_bps) for capacity_bps in capacities_bps]
    if any(abs(n - c) > _ROUNDING * c or n == 0 for n, c in zip(rounded, capacities_bps, strict=True)):
        return None
    quantum = math.gcd(*rounded)
    return float(quantum) if peak_bps / quantum <= MAX_CELLS else None


def parcels(limit: int) -> Iterator[int]:
    """Yield sizes 1, 2, 4, … and a rest that sum to ``limit``; their subsets give every number from 0 to ``limit``."""
    size = 1
    while limit > 0:
        yield min(size, limit)
        limit -= size
        size *= 2


def _empty_table(size: int) -> Floats:
    """Return the table of no machines: 0 quanta cost nothing, and no more can be had."""
    table = np.full(size, np.inf)
    table[0] = 0.0
    return table


def cover_costs(weights: Ints, costs: Floats, limits: Ints, cells: int, start: Floats | None = None) -> Floats:
    """Return g(x), x = 0..``cells``: the least cost of machines of at least x quanta, inf where no machines have them.

    ``weights``, ``costs`` and ``limits``, shape (groups,), are the quanta, cost and number of machines of each group;
    ``start`` is the table of machines already included.
    """
    table = _empty_table(cells + 1) if start is None else start.copy()
    for weight, cost, limit in zip(weights.tolist(), costs.tolist(), limits.tolist(), strict=True):
        for size in parcels(limit):
            _add_parcel(table, size * weight, size * cost)
    return table


def _add_parcel(table: Floats, weight: int, cost: float) -> None:
    """Include a parcel in a table of at least x quanta; the right sides are copies, so no parcel is taken twice."""
    if weight < table.size:
        through = table[: table.size - weight] + cost
        np.minimum(table[weight:], through, out=table[weight:])
        np.minimum(table[1:weight], table[0] + cost, out=table[1:weight])
    else:
        np.minimum(table[1:], table[0] + cost, out=table[1:])


def cover_counts(weights: Ints, costs: Floats, limits: Ints, needs: Ints) -> Ints:
    """Return the machines of ``cover_costs`` for each need, shape (needs, groups); every need must have a cover."""
    return parcels_taken(_add_parcel, range(limits.size), weights, costs, limits, needs)


def parcels_taken(
    add_parcel: Callable[[Floats, int, float], None],
    order: Iterable[int],
    weights: Ints,
    costs: Floats,
    limits: Ints,
    needs: Ints,
) -> Ints:
    """Return the machines behind the value of a table at each need, shape (needs, groups); every need has a cover.

    ``add_parcel`` includes a parcel of a weight and a cost in a table, in place; ``order`` is the order of the groups.
    """
    table = _empty_table(int(needs.max(initial=0)) + 1)
    taken: list[tuple[int, int, npt.NDArray[np.bool_]]] = []
    for group in order:
        for size in parcels(int(limits[group])):
            before = table.copy()
            add_parcel(table, size * int(weights[group]), size * float(costs[group]))
            taken.append((group, size, table < before))
    counts = np.zeros((needs.size, limits.size), dtype=np.int64)
    left = needs.copy()
    for group, size, better in reversed(taken):
        is_taken = better[left]
        counts[is_taken, group] += size
        left[is_taken] = np.maximum(left[is_taken] - size * weights[group], 0)
    return counts


def add_exact_parcel(table: Floats, weight: int, cost: float) -> None:
    """Include a parcel in a table of exactly x quanta; the right side is a copy, so no parcel is taken twice."""
    if weight < table.size:
        np.minimum(table[weight:], table[:-weight] + cost, out=table[weight:])


def _last_machines(
    weights: Ints, full: Floats, slopes: Floats, limits: Ints, cells: int
) -> Iterator[tuple[int, Floats]]:
    """Yield each group m that has machines, with F_m."""
    table = _empty_table(cells + 1)
    for group in np.argsort(slopes, kind="stable").tolist():
        limit = int(limits[group])
        if limit == 0:
            continue
        for size in parcels(limit - 1):
            add_exact_parcel(table, size * int(weights[group]), size * float(full[group]))
        yield group, table
        add_exact_parcel(table, int(weights[group]), float(full[group]))


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
    """Return the least and greatest x to which a machine of ``weight`` quanta can add the rest of each load."""
    last = np.floor(loads + 1e-9).astype(np.int64)
    return np.minimum(np.ceil(loads - weight - 1e-9).astype(np.int64), last), last


def idle_cover_costs(weights: Ints, idle: Floats, slopes: Floats, limits: Ints, loads: Floats) -> Floats:
    """Return the least power for every load, inf where the machines do not carry it.

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
    """Return for every load the group of the machine that is not full, and the quanta on full machines."""
    cells = int(np.floor(loads.max(initial=0.0) + 1e-9))
    cost = np.where(loads > 0.0, np.inf, 0.0)
    group_of = np.full(loads.size, -1, dtype=np.int64)
    quanta_of = np.zeros(loads.size, dtype=np.int64)
    for group, table in _last_machines(weights, idle + slopes * weights, slopes, limits, cells):
        reduced = table - slopes[group] * np.arange(cells + 1)
        first, last = _windows(loads, int(weights[group]))
        first = np.maximum(first, 0)
        for number in np.flatnonzero(loads > 0.0).tolist():
            full_quanta = int(first[number] + np.argmin(reduced[first[number] : last[number] + 1]))
            value = float(reduced[full_quanta] + idle[group] + slopes[group] * loads[number])
            if value < cost[number]:
                cost[number], group_of[number], quanta_of[number] = value, group, full_quanta
    return group_of, quanta_of


def idle_cover_counts(weights: Ints, idle: Floats, slopes: Floats, limits: Ints, loads: Floats) -> Ints:
    """Return the machines of ``idle_cover_costs``, shape (loads, groups)."""
    last_group, full_quanta = _last_machine_of(weights, idle, slopes, limits, loads)
    counts = np.zeros((loads.size, limits.size), dtype=np.int64)
    order = np.argsort(slopes, kind="stable").tolist()
    full = idle + slopes * weights
    for group in sorted(set(last_group[last_group >= 0].tolist())):
        rows = np.flatnonzero(last_group == group)
        bounds = np.zeros_like(limits)
        for before in order[: order.index(group)]:
            bounds[before] = limits[before]
        bounds[group] = limits[group] - 1
        counts[rows] = parcels_taken(add_exact_parcel, order, weights, full, bounds, full_quanta[rows])
        counts[rows, group] += 1
    return counts


@value
class _Split:
    """A choice of the spare machines: ``others`` by group, ``from_group`` of them from the base's largest ``group``."""

    smaller_groups: Ints
    group: int
    from_group: int
    others: Ints
    cost: float

    def base_limits(self, limits: Ints) -> Ints:
        """Return the greatest number of machines of each group in the base, shape (groups,)."""
        base = np.zeros_like(limits)
        base[self.smaller_groups] = limits[self.smaller_groups]
        base[self.group] = limits[self.group] - self.from_group
        return base


def _splits(weights: Ints, costs: Floats, limits: Ints, spare: int) -> Iterator[_Split]:
    order = np.argsort(weights, kind="stable")
    order = order[limits[order] > 0]
    for rank, group in enumerate(order.tolist()):
        larger = order[rank + 1 :]
        cheapest_first = larger[np.argsort(costs[larger], kind="stable")]
        for from_group in range(min(spare, int(limits[group])) + 1):
            others = np.zeros_like(limits)
            others[group] = from_group
            missing = spare - from_group
            for other in cheapest_first.tolist():
                others[other] = min(missing, int(limits[other]))
                missing -= int(others[other])
            if not missing:
                yield _Split(
                    smaller_groups=order[:rank],
                    group=group,
                    from_group=from_group,
                    others=others,
                    cost=float(costs @ others),
                )


def spare_cover_costs(weights: Ints, costs: Floats, limits: Ints, cells: int, spare: int) -> Floats:
    """Return the least cost of machines of at least x quanta without the ``spare`` largest, x = 0..``cells``."""
    best = np.full(cells + 1, np.inf)
    smaller = _empty_table(cells + 1)
    included = 0
    for split in _splits(weights, costs, limits, spare):
        # The splits with the same largest group share the table of the smaller groups.
        for group in split.smaller_groups[included:].tolist():
            smaller = _with_group(weights, costs, smaller, group, int(limits[group]))
        included = len(split.smaller_groups)
        table = _with_group(weights, costs, smaller, split.group, int(limits[split.group]) - split.from_group)
        np.minimum(best, table + split.cost, out=best)
    best[0] = 0.0
    return best


def _with_group(weights: Ints, costs: Floats, table: Floats, group: int, limit: int) -> Floats:
    return cover_costs(weights[[group]], costs[[group]], np.array([limit]), table.size - 1, start=table)


def spare_cover_counts(weights: Ints, costs: Floats, limits: Ints, needs: Ints, spare: int) -> Ints:
    """Return the machines of ``spare_cover_costs`` for each need, shape (needs, groups)."""
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
"""Number of sums computed together."""


@value
class _PartialLoad:
    """A choice of others, the group m that is partly loaded, and the number of its base machines that are not full.

    The others before m carry ``others_cells`` quanta. The base has ``base`` machines of m that are not full, of
    ``base_cells`` quanta; all machines of m that are not full carry at most ``width`` quanta. ``full`` is F_m over the
    machines of ``full_limits``, ``idle`` is E_m over those of ``idle_limits``, and ``fixed`` is the power of all other
    machines without the rest of the load.
    """

    others: Ints
    others_cells: int
    group: int
    base: int
    base_cells: int
    width: int
    fixed: float
    full: Floats
    full_limits: Ints
    idle: Floats
    idle_limits: Ints


def _choices_of_others(limits: Ints, spare: int) -> Iterator[Ints]:
    groups = np.flatnonzero(limits).tolist()
    for chosen in combinations_with_replacement(groups, spare):
        others = np.bincount(chosen, minlength=limits.size).astype(np.int64)
        if (others <= limits).all():
            yield others


def _with_more_machines(table: Floats, weight: int, cost: float, limit: int) -> Floats:
    """Return a copy of a table of exactly x quanta with up to ``limit`` more machines."""
    table = table.copy()
    for size in parcels(limit):
        add_exact_parcel(table, size * weight, size * cost)
    return table


def _partial_loads(
    weights: Ints, idle: Floats, slopes: Floats, limits: Ints, cells: int, others: Ints
) -> Iterator[_PartialLoad]:
    """Yield the partial loads of one choice of others."""
    bounds = np.where(weights <= weights[others > 0].min(), limits - others, 0)
    order = [group for group in np.argsort(slopes, kind="stable").tolist() if bounds[group] or others[group]]
    standby = _empty_table(min(int(weights @ others), cells) + 2)
    after: dict[int, Floats] = {}
    for group in reversed(order):
        after[group] = standby
        standby = _with_group(weights, idle, standby, group, int(bounds[group]))
    table = _empty_table(cells + 1)
    others_cells = 0
    fixed = float(idle @ others)
    full_limits, idle_limits = np.zeros_like(bounds), bounds.copy()
    for group in order:
        if others_cells > cells:
            return
        weight, bound, spares = int(weights[group]), int(bounds[group]), int(others[group])
        full_w = float(idle[group] + slopes[group] * weight)
        idle_limits[group] = 0
        # (machines of the group that are not full, the most that are full, the greatest load of the former)
        partial_counts = [
            (extra + 1, bound - 1 - extra, weight)
            for extra in range(min(bound - 1, math.ceil(others_cells / weight)) + 1 if bound else 0)
        ]
        if spares:
            partial_counts.append((0, bound, spares * weight))
        for machines, max_full, width in partial_counts:
            full_limits[group] = max_full
            yield _PartialLoad(
                others=others,
                others_cells=others_cells,
                group=group,
                base=machines,
                base_cells=machines * weight,
                width=width,
                fixed=fixed + machines * float(idle[group]),
                full=_with_more_machines(table, weight, full_w, max_full),
                full_limits=full_limits.copy(),
                idle=after[group],
                idle_limits=idle_limits.copy(),
            )
        full_limits[group] = bound
        table = _with_more_machines(table, weight, full_w, bound)
        others_cells += spares * weight
        fixed += float(slopes[group]) * weight * spares


@dataclass(frozen=True, slots=True)
class _BestPartialLoads:
    """The best partial load for every load, as a number in ``cases``, with z and the quanta of idle machines."""

    cost: Floats
    case: Ints
    full: Ints
    idle: Ints
    cases: list[_PartialLoad]


def _best_partial_loads(
    weights: Ints,
    idle: Floats,
    slopes: Floats,
    limits: Ints,
    loads: Floats,
    spare: int,
    pause: Callable[[], None] | None,
) -> _BestPartialLoads:
    quanta = np.floor(loads + 1e-9).astype(np.int64)
    fractions = np.ceil(loads * (1.0 - 1e-12)).astype(np.int64) - quanta
    cost = np.where(loads > 0.0, np.inf, 0.0)
    case_of = np.full(loads.size, -1, dtype=np.int64)
    full_of, idle_of = np.zeros_like(case_of), np.zeros_like(case_of)
    best_cases: list[_PartialLoad] = []
    for others in _choices_of_others(limits, spare):
        for case in _partial_loads(weights, idle, slopes, limits, int(quanta.max(initial=0)), others):
            if pause is not None:
                pause()
            slope = float(slopes[case.group])
            is_best_somewhere = False
            for fraction in (0, 1):
                # z falls short of the load by 0 to `width` quanta, one less if the load has a fraction of a quantum.
                max_shortfall = min(case.width - fraction, case.full.size - 1 - case.others_cells)
                shortfall = np.arange(max_shortfall + 1)
                lacking = np.maximum(case.others_cells + shortfall + fraction - case.base_cells, 0)
                idle_w = case.idle[lacking]
                finite = np.flatnonzero(np.isfinite(idle_w))
                if not finite.size:
                    continue
                shortfall, idle_w = shortfall[: finite[-1] + 1], idle_w[: finite[-1] + 1]
                reduced = np.concatenate(
                    [np.full(shortfall.size, np.inf), case.full - slope * np.arange(case.full.size)]
                )
                windows = np.lib.stride_tricks.sliding_window_view(reduced, shortfall.size)
                rows = np.flatnonzero((loads > 0.0) & (fractions == fraction) & (quanta >= case.others_cells))
                for begin in range(0, rows.size, max(_BLOCK // shortfall.size, 1)):
                    block = rows[begin : begin + max(_BLOCK // shortfall.size, 1)]
                    top = quanta[block] - case.others_cells
                    sums = windows[top + 1] + idle_w[::-1]
                    column = np.argmin(sums, axis=1)
                    value = (
                        sums[np.arange(block.size), column] + case.fixed + slope * (loads[block] - case.others_cells)
                    )
                    better = value < cost[block]
                    if better.any():
                        is_best_somewhere = True
                        improved_loads, gap = block[better], shortfall.size - 1 - column[better]
                        cost[improved_loads] = value[better]
                        case_of[improved_loads] = len(best_cases)
                        full_of[improved_loads] = top[better] - gap
                        idle_of[improved_loads] = lacking[gap]
            if is_best_somewhere:
                best_cases.append(case)
    return _BestPartialLoads(cost, case_of, full_of, idle_of, best_cases)


def idle_spare_costs(
    weights: Ints,
    idle: Floats,
    slopes: Floats,
    limits: Ints,
    loads: Floats,
    spare: int,
    pause: Callable[[], None] | None = None,
) -> Floats:
    """Return the least power for every load without the ``spare`` largest machines, inf where no machines carry it.

    The arrays are those of ``idle_cover_costs``; ``pause`` is called for each case and may raise.
    """
    return _best_partial_loads(weights, idle, slopes, limits, loads, spare, pause).cost


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
    best = _best_partial_loads(weights, idle, slopes, limits, loads, spare, pause)
    counts = np.zeros((loads.size, limits.size), dtype=np.int64)
    order = np.argsort(slopes, kind="stable").tolist()
    for number in sorted(set(best.case[best.case >= 0].tolist())):
        case = best.cases[number]
        rows = np.flatnonzero(best.case == number)
        full = parcels_taken(
            add_exact_parcel, order, weights, idle + slopes * weights, case.full_limits, best.full[rows]
        )
        standby = cover_counts(weights, idle, case.idle_limits, best.idle[rows])
        counts[rows] = full + standby + case.others
        counts[rows, case.group] += case.base
    return counts
