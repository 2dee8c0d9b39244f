"""Frames of a trace that wait for interrupts, which keep a least distance, and for the polls that these start.

::

    frames      |  | ||    |  |    |||  |
    interrupts  ^          ^            ^      the first at once, each later one a moderation after the one before
    served      |          |||||        |||||  a session: frames that come while it lasts need no interrupt

What comes between two interrupts is handed on together: it wakes the next thread of a machine once, and what came after
the last interrupt of a trace is still in the ring when the trace ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve._cost import Cost
from routecast.evaluate.solve.fluid import Fluid

__all__ = ["noticed_at", "polled"]

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


def polled(
    fluid: Fluid, index: int, at: Instants, work: Instants, *, room: int, wakeup_s: float, span: tuple[int, int]
) -> tuple[Instants, Instants, int]:
    """Return when the polls of a task unit start and end the service of each frame, and its work in a span of time, ps.

    ``at``, ``work``: arrivals in order and services, ps; ``room``: frames that may wait; ``wakeup_s``: time before a
    poll starts; ``span``: begin and end, ps. Frames that are lost start at 2^64 - 1.
    """
    from routecast import _core  # the compiled part is loaded where it is used

    cost, task = fluid.costs[index], fluid.graph.tasks[index]
    mean_factor = float(fluid.factor[index])
    times_s = (cost.moderation_s, wakeup_s, cost.linger_s)
    moderation, wakeup, linger = (round(time_s * _PS) for time_s in times_s)
    interrupt, batch = (round(time_s * mean_factor * _PS) for time_s in (cost.interrupt_s, cost.batch_s))
    polls_frames = task.activation.budget_frames if task.activation.kind == "interrupt" else cost.batch_frames
    polls = (polls_frames, interrupt, batch, moderation, wakeup, linger)
    busy_ps = 0
    packed_starts = packed_ends = b""
    for until, sign in zip(span, (-1, 1), strict=True):
        if not until:
            continue
        packed_starts, packed_ends, worked_ps, _ = _core.polled_starts(
            at.tobytes(),
            work.tobytes(),
            room,
            until,
            polls,
            exhaustive=cost.exhaustive,
            sleep_ps=[(round(after_s * _PS), round(exit_s * _PS)) for after_s, exit_s in cost.sleep_states],
        )
        busy_ps += sign * worked_ps
    return np.frombuffer(packed_starts, np.uint64), np.frombuffer(packed_ends, np.uint64), busy_ps
