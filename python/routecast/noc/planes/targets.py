"""Which clocks to aim at: those at which the splittable problem needs little power."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from routecast.noc.planes.relaxation import Relaxation, Share

__all__ = ["Target", "targets"]

Target = tuple[float, NDArray[np.float64], list[Share]]
"""Power of the splittable problem, the clocks 1/alpha of the planes, and the flows' shares there."""

# How a plane's clock stands to the fastest plane's: from balance to concentration.
_RATIOS = (1.0, 0.85, 0.7, 0.55, 0.4)
# Faster than the slowest clocks that carry the traffic, so that more of it fits on slow planes; for the best ratios.
_ROOM = (1.04, 1.12)
_BEST = 2
# Of all programs; where there are more, ratios are judged by the flows that fill the planes one by one.
_COLUMNS = 32_000
_MOST_PROGRAMS = 16


def targets(
    relaxation: Relaxation,
    slowest: NDArray[np.float64],
    *,
    identical: bool,
    most: int,
    tell: Callable[[], None] = lambda: None,
) -> list[Target]:
    """Return clocks worth aiming at with their splittable optima, the one of least power first.

    For each ratio among the planes' clocks, the slowest clocks that carry the traffic are the border; the least power
    lies on it or a little faster.

    Parameters
    ----------
    relaxation : Relaxation
    slowest : array, shape (planes,)
        1/alpha_max of each plane.
    identical : bool
        Whether the planes are alike, so that their order says nothing.
    most : int
        How many to return.
    tell : callable
        Is called after each program.
    """
    found: list[tuple[float, NDArray[np.float64], NDArray[np.float64], list[Share]]] = []
    seen: set[tuple[float, ...]] = set()

    def solve(ratio: NDArray[np.float64], room: float) -> None:
        # The solver's tolerance must not make the border infeasible.
        clocks = np.clip(stretches[tuple(ratio)] * ratio * room * (1 + 1e-7), slowest, 1.0)
        key = tuple(np.round(clocks, 6).tolist())
        if key in seen:
            return
        seen.add(key)
        solved = relaxation.least_power(clocks)
        tell()
        if solved is not None:
            found.append((solved[0], ratio, clocks, solved[1]))

    ratios = _ratios(len(slowest), slowest, identical)
    stretches = {tuple(ratio): relaxation.least_stretch(ratio) for ratio in ratios}
    ratios = [ratio for ratio in ratios if np.isfinite(stretches[tuple(ratio)])]
    programs = int(np.clip(_COLUMNS // relaxation.columns, 2, min(len(ratios), _MOST_PROGRAMS)))
    if programs < len(ratios):
        ratios.sort(
            key=lambda ratio: relaxation.filled_power(np.clip(stretches[tuple(ratio)] * ratio, slowest, 1.0))
        )
    for ratio in ratios[:programs]:
        solve(ratio, 1.0)
    found.sort(key=lambda one: one[0])
    for _, ratio, _, _ in found[: _BEST if programs == len(ratios) else 0]:
        for room in _ROOM:
            solve(ratio, room)
    found.sort(key=lambda one: one[0])
    return [(power, clocks, shares) for power, _, clocks, shares in found[:most]]


def _ratios(planes: int, slowest: NDArray[np.float64], identical: bool) -> list[NDArray[np.float64]]:
    """Return the ratios to try, the fastest plane at 1; with more than three planes, only two different clocks."""
    if planes <= 3:
        grid = [np.array(one) for one in product(_RATIOS, repeat=planes) if max(one) == 1.0]
    else:
        grid = [
            np.array([1.0] * fast + [ratio] * (planes - fast))
            for fast in range(1, planes)
            for ratio in _RATIOS
        ]
    if identical:
        grid = [one for one in grid if np.all(np.diff(one) <= 0)]
    return list({tuple(np.maximum(one, slowest).tolist()): one for one in grid}.values())
