"""Frames of a trace that wait for the interrupt of a thread, because interrupts keep a least distance.

::

    frames      |  | ||    |  |    |||  |
    interrupts  ^          ^            ^      the first at once, each later one a moderation after the one before
    served      |          |||||        |||||  a session: frames that come while it lasts need no interrupt

What comes between two interrupts is handed on together: it wakes the next thread once, and what came after the last
interrupt of a trace is still in the ring when the trace ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve._cost import Cost

__all__ = ["noticed_at"]

_PS = 1e12
Instants = NDArray[np.uint64]


def noticed_at(at: Instants, service_s: NDArray[np.float64], cost: Cost, *, budget_frames: int) -> Instants:
    """Return when the thread of an interrupt knows of each frame: at its session's start, or as the frame arrives.

    ``at``: arrivals in order, ps; ``service_s``: time that the thread takes for each frame, s.
    """
    if not len(at):
        return at
    from routecast import _core  # the compiled part is loaded where it is used

    costs_s = (cost.interrupt_s, cost.batch_s, cost.moderation_s)
    interrupt, batch, moderation = (round(cost_s * _PS) for cost_s in costs_s)
    packed_starts, packed_ends, _, _ = _core.polled_starts(
        at.tobytes(),
        np.rint(service_s * _PS).astype(np.uint64).tobytes(),
        len(at),
        int(at[-1]),
        (budget_frames, interrupt, batch, moderation, 0, 0),
        exhaustive=cost.exhaustive,
        sleep_ps=[],
    )
    starts, ends = np.frombuffer(packed_starts, np.uint64), np.frombuffer(packed_ends, np.uint64)
    is_first = np.ones(len(at), bool)
    np.greater(starts[1:], ends[:-1] + np.uint64(batch), out=is_first[1:])
    session = np.maximum.accumulate(np.where(is_first, np.arange(len(at)), 0))
    return np.maximum(at, starts[session])
