"""Cheapest machines with spares whose power rises with their load, for all loads at once.

The machines that are on are a base that carries the load T alone and ``spare`` others, each at least as large as any of
the base. The others are tried out. All machines share the load, the least slope first: with the groups in order of
slope, those before group m are full, m takes the rest, those after m idle and stand by. What the base lacks beside its
z on full machines is then known, so the two parts are tables of their own::

    f(T) = min over others, m, z of  F_m(z) + slope_m (T − O_m − z) + E_m(T − z − …),   0 <= T − O_m − z <= R_m

F_m(z) is the least power of full base machines of exactly z, E_m(d) the least idle power of machines after m that
together route d, and O_m is what the others before m route.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from routecast.plan.cluster.step.cover import Floats, Ints, cover_costs, cover_counts, parcels, parcels_taken
from routecast.plan.cluster.step.idle_cover import put_exactly

__all__ = ["idle_spare_costs", "idle_spare_counts"]

_BLOCK = 1_000_000
"""Sums that are looked at together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """Which others there are, which group is neither full nor idle, and how many of it stand by.

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
    """Return a copy of F with up to ``limit`` full machines more."""
    table = table.copy()
    for size in parcels(limit):
        put_exactly(table, size * weight, size * cost)
    return table


def _cases(
    weights: Ints, idle: Floats, slopes: Floats, limits: Ints, cells: int, others: Ints
) -> Iterator[_Case]:
    """Yield the cases of one choice of others."""
    bounds = np.where(weights <= weights[others > 0].min(), limits - others, 0)
    order = [group for group in np.argsort(slopes, kind="stable").tolist() if bounds[group] or others[group]]
    standby = np.full(min(int(weights @ others), cells) + 2, np.inf)
    standby[0] = 0.0
    after: dict[int, Floats] = {}
    for group in reversed(order):
        after[group] = standby
        one = slice(group, group + 1)
        standby = cover_costs(weights[one], idle[one], bounds[one], standby.size - 1, start=standby)
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
        # (machines of the group beside the full ones, how many of those may be full, what the rest may come to)
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
class _Found:
    """The best case of every load, with z and what idle machines must route."""

    cost: Floats
    case: Ints
    full: Ints
    idle: Ints
    cases: list[_Case]


def _find(
    weights: Ints,
    idle: Floats,
    slopes: Floats,
    limits: Ints,
    loads: Floats,
    spare: int,
    pause: Callable[[], None] | None,
) -> _Found:
    whole = np.floor(loads + 1e-9).astype(np.int64)
    parts = np.ceil(loads * (1.0 - 1e-12)).astype(np.int64) - whole
    cost = np.where(loads > 0.0, np.inf, 0.0)
    case_of = np.full(loads.size, -1, dtype=np.int64)
    full_of, idle_of = np.zeros_like(case_of), np.zeros_like(case_of)
    kept: list[_Case] = []
    for others in _others(limits, spare):
        for case in _cases(weights, idle, slopes, limits, int(whole.max(initial=0)), others):
            if pause is not None:
                pause()
            slope = float(slopes[case.group])
            better_somewhere = False
            for part in (0, 1):
                # z falls short of the load by from 0 to `width`: of a load with a part of a quantum, one less whole.
                most_short = min(case.width - part, case.full.size - 1 - case.others_full)
                short = np.arange(most_short + 1)
                lacking = np.maximum(case.others_full + short + part - case.base_cells, 0)
                last = case.idle[lacking]
                known = np.flatnonzero(np.isfinite(last))
                if not known.size:
                    continue
                short, last = short[: known[-1] + 1], last[: known[-1] + 1]
                reduced = np.concatenate(
                    [np.full(short.size, np.inf), case.full - slope * np.arange(case.full.size)]
                )
                windows = np.lib.stride_tricks.sliding_window_view(reduced, short.size)
                rows = np.flatnonzero((loads > 0.0) & (parts == part) & (whole >= case.others_full))
                for begin in range(0, rows.size, max(_BLOCK // short.size, 1)):
                    block = rows[begin : begin + max(_BLOCK // short.size, 1)]
                    top = whole[block] - case.others_full
                    sums = windows[top + 1] + last[::-1]
                    at = np.argmin(sums, axis=1)
                    value = (
                        sums[np.arange(block.size), at]
                        + case.fixed
                        + slope * (loads[block] - case.others_full)
                    )
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
    return _Found(cost, case_of, full_of, idle_of, kept)


def idle_spare_costs(
    weights: Ints,
    idle: Floats,
    slopes: Floats,
    limits: Ints,
    loads: Floats,
    spare: int,
    pause: Callable[[], None] | None = None,
) -> Floats:
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
    spare : int
        Machines that may fail, at least 1.
    pause : callable, optional
        Called now and then; may raise.
    """
    return _find(weights, idle, slopes, limits, loads, spare, pause).cost


def idle_spare_counts(
    weights: Ints,
    idle: Floats,
    slopes: Floats,
    limits: Ints,
    loads: Floats,
    spare: int,
    pause: Callable[[], None] | None = None,
) -> Ints:
    """Return the machines behind ``idle_spare_costs``, shape (loads, groups)."""
    found = _find(weights, idle, slopes, limits, loads, spare, pause)
    counts = np.zeros((loads.size, limits.size), dtype=np.int64)
    order = np.argsort(slopes, kind="stable").tolist()
    for number in sorted(set(found.case[found.case >= 0].tolist())):
        case = found.cases[number]
        rows = np.flatnonzero(found.case == number)
        full = parcels_taken(
            put_exactly, order, weights, idle + slopes * weights, case.full_limits, found.full[rows]
        )
        standby = cover_counts(weights, idle, case.idle_limits, found.idle[rows])
        counts[rows] = full + standby + case.others
        counts[rows, case.group] += case.base
    return counts
