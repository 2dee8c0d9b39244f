"""Steepest descent over single moves, on the true power."""

from __future__ import annotations

import numpy as np

from routecast.noc.planes.neighbourhood import Neighbourhood
from routecast.noc.planes.placement import Placement

__all__ = ["descend"]

# An improvement smaller than this part of the power is rounding.
_SMALLEST = 1e-9


def descend(state: Placement, around: Neighbourhood) -> int:
    """Make the best move of one flow until none lowers the power; return the number of moves."""
    moves = 0
    used = around.used(state.choice)
    power = state.power()
    while len(state.choice):
        after = around.power_after(state, used)
        best = int(np.argmin(after))
        if after[best] >= power * (1 - _SMALLEST):
            break
        flow = int(around.candidates.flow[best])
        state.move(flow, best)
        used[flow] = around.row(best)
        power = state.power()
        moves += 1
    return moves
