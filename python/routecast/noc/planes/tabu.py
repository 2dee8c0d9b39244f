"""Tabu search for a placement that keeps to given clocks at little power.

The power has plateaus: as long as one of several full links stays, no move off the others is seen. With the clocks
given as targets, every overload counts, squared, beside the power that the flows would need at these clocks. Each
step takes the best move of a flow that has not moved lately, even a bad one. The price of overloads rises while there
are some and falls while there are none, so that the search swings about the border of what the clocks carry. Links that
stay overloaded come to count more than others, so that it does not swing about one valley.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes.neighbourhood import Neighbourhood
from routecast.noc.planes.overloads import Overloads
from routecast.noc.planes.placement import Placement

__all__ = ["tabu_search"]

# Steps for which a flow stays where it was put: at least, and up to so many more.
_REST = (4, 12)
# By how much, and after how many moves each time, links count more that are overloaded then.
_DEARER = 1.2
_EVERY = 3
# How fast the price of overloads moves.
_PRICE_STEP = 1.15


def tabu_search(
    state: Placement,
    around: Neighbourhood,
    target: NDArray[np.float64],
    *,
    steps: int,
    random: np.random.Generator,
) -> tuple[float, NDArray[np.int64]]:
    """Return the least true power that was passed, and the choice that has it; the state ends elsewhere.

    Parameters
    ----------
    state : Placement
        Where to begin; changed.
    around : Neighbourhood
    target : array, shape (planes,)
        Relative load that each plane's links should keep to: its 1/alpha.
    steps : int
        Moves to make.
    random : numpy.random.Generator
        Of the rest that flows have.
    """
    candidates = around.candidates
    best_power, best_choice = state.power(), state.choice.copy()
    if len(candidates.paths) == len(candidates.flows):
        return best_power, best_choice
    first = candidates.first[:-1]
    clocks = np.maximum(target, state.slowest)
    cost = around.weight * clocks[candidates.plane] ** 2
    rest = random.integers(_REST[0], _REST[0] + _REST[1], size=steps)
    until = np.zeros(len(candidates.flows), dtype=np.int64)
    overloads = Overloads(state, around, target)
    # So dear that a flow's overload counts like its power.
    price = float(cost.mean() / np.mean(around.relative**2))
    for step in range(steps):
        total = cost + price * overloads.come
        now = total[state.choice]
        total[state.choice] = np.inf
        change = np.minimum.reduceat(total, first) - now
        change[until > step] = np.inf
        flow = int(np.argmin(change))
        if not np.isfinite(change[flow]):
            continue
        start = candidates.first[flow]
        place = int(start + np.argmin(total[start : candidates.first[flow + 1]]))
        overloads.move(flow, place, dearer=_DEARER if step % _EVERY == _EVERY - 1 else 1.0)
        until[flow] = step + 1 + rest[step]
        power = state.power()
        if power < best_power:
            best_power, best_choice = power, state.choice.copy()
        over = bool(np.any(state.bottlenecks() > target + 1e-9))
        price *= _PRICE_STEP if over else 1 / _PRICE_STEP
    return best_power, best_choice
