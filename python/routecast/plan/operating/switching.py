"""When to switch: the cheapest path through the settings of a day, with a price and a least time between switchings.

::

    step        0     1     2     3   …    a step costs its energy in the setting,
    setting A   ●─────●     ○     ●        a change of the setting costs its own,
                      └─────┐     │        and after one the setting stays for
    setting B   ○     ○     ●─────┘        the dwell at least: hysteresis
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["cheapest_path", "lazy_cheapest_path", "path_cost", "switchings"]

Costs = NDArray[np.float64]


def cheapest_path(costs: Costs, *, switch_cost: float, dwell_steps: int = 1) -> tuple[int, ...]:
    """Return the setting of each step whose costs add up to the least; empty if every path costs infinitely much.

    Dynamic programming over settings and the steps since the last switching; the first setting may be left at once,
    as it may have stood long before.

    Parameters
    ----------
    costs : array, steps x settings
        Cost of each setting in each step; infinite where it cannot be used.
    switch_cost : float
        Cost of each change of the setting, in the unit of ``costs``.
    dwell_steps : int
        Steps for which a setting stays at least once it was switched to, unless the horizon ends.

    Examples
    --------
    >>> cheapest_path(np.array([[1.0, 3.0], [5.0, 3.0], [1.0, 3.0]]), switch_cost=0.0)
    (0, 1, 0)
    >>> cheapest_path(np.array([[1.0, 3.0], [5.0, 3.0], [1.0, 3.0]]), switch_cost=1.5)
    (0, 0, 0)
    """
    steps, settings = costs.shape
    dwell = max(dwell_steps, 1)
    # Row a: in the setting for a + 1 steps since it was switched to; the last row: for as long as the dwell or longer.
    total = np.full((dwell, settings), math.inf)
    total[-1] = costs[0]
    came_from = np.zeros((steps, dwell, settings, 2), dtype=np.int64)
    everyone = np.arange(settings)
    for step in range(1, steps):
        after = np.full((dwell, settings), math.inf)
        free = total[-1]
        first = int(np.argmin(free))
        others = np.where(everyone == first, math.inf, free)
        second = int(np.argmin(others))
        source = np.where(everyone == first, second, first)
        switched = np.where(everyone == first, others[second], free[first]) + switch_cost
        stayed = total[-1].copy()
        age = np.full(settings, dwell - 1)
        if dwell > 1:
            older = total[-2] < stayed
            stayed = np.where(older, total[-2], stayed)
            age = np.where(older, dwell - 2, age)
            after[1 : dwell - 1] = total[: dwell - 2]
            for row in range(1, dwell - 1):
                came_from[step, row] = np.stack([np.full(settings, row - 1), everyone], axis=1)
        after[-1] = stayed
        came_from[step, -1] = np.stack([age, everyone], axis=1)
        better = switched < after[0]
        after[0] = np.where(better, switched, after[0])
        arrival = np.stack([np.full(settings, dwell - 1), source], axis=1)
        came_from[step, 0] = np.where(better[:, None], arrival, came_from[step, 0])
        total = after + costs[step]
    row, setting = (int(one) for one in np.unravel_index(int(np.argmin(total)), total.shape))
    if not math.isfinite(total[row, setting]):
        return ()
    path = [setting]
    for step in range(steps - 1, 0, -1):
        row, setting = (int(one) for one in came_from[step, row, setting])
        path.append(setting)
    return tuple(reversed(path))


def lazy_cheapest_path(
    bounds: Costs,
    evaluate: Callable[[Sequence[tuple[int, int]]], Sequence[float]],
    *,
    switch_cost: float,
    dwell_steps: int = 1,
) -> tuple[tuple[int, ...], Costs]:
    """Return the cheapest path and the costs known at its end, where a cost is dear to find out and a bound is cheap.

    The cheapest path by bounds is evaluated; what it costs replaces the bounds, until a path is cheapest that was
    evaluated all along. No other can then be cheaper, since bounds only rise (LazySP: Dellin and Srinivasa, ICAPS
    2016).

    Parameters
    ----------
    bounds : array, steps x settings
        Lower bounds of the costs; infinite where a setting cannot be used.
    evaluate : callable
        Costs at places (step, setting), infinite where the setting cannot be used after all.
    switch_cost, dwell_steps
        As of :func:`cheapest_path`.
    """
    costs = bounds.copy()
    known = ~np.isfinite(bounds)
    while True:
        path = cheapest_path(costs, switch_cost=switch_cost, dwell_steps=dwell_steps)
        asked = [(step, setting) for step, setting in enumerate(path) if not known[step, setting]]
        if not asked:
            return path, costs
        for (step, setting), cost in zip(asked, evaluate(asked), strict=True):
            costs[step, setting] = cost
            known[step, setting] = True


def path_cost(costs: Costs, path: Sequence[int], *, switch_cost: float) -> float:
    """Return what a path costs, its switchings included."""
    steps = math.fsum(float(costs[step, setting]) for step, setting in enumerate(path))
    return steps + switch_cost * switchings(path)


def switchings(path: Sequence[int]) -> int:
    """Return how often a path changes its setting."""
    return sum(before != after for before, after in itertools.pairwise(path))
