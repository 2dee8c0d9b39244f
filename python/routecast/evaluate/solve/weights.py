"""What each thread gets of full units against others of its level: its weight, or how long its turns are."""

from __future__ import annotations

import numpy as np

from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.machine import Machine

__all__ = ["weights"]

_AS_LONG_AS_IT_LIKES = 1e15


def weights(machine: Machine, work_s: Vector, wanted: Vector, demand: Vector) -> Vector:
    """Return each thread's weight: what it gets of full units, against others of its level.

    Under a fair policy this is its own. Where grants go round it is the length of its turns. A real-time thread of
    Linux runs until it has nothing left to do: what its queues hold, and what comes meanwhile, so
    ``Σ queue·work/(1 - load)``; one that never runs out leaves nothing to its equals. What comes only while others
    of its level work does not come meanwhile. NAPI gives its unit back after each budget, so its equals have turns.

    Parameters
    ----------
    work_s : array
        Seconds per frame by node.
    wanted : array
        Frames per second that each node would serve.
    demand : array
        Units that each thread wants.
    """
    weight = machine.weight
    turns = np.isnan(weight)
    if not turns.any():
        return weight
    real_time = machine.real_time
    backlog_s = machine.by(machine.queue_frames * work_s)
    meanwhile = machine.by(np.where(machine.fed_within, 0.0, wanted * work_s)) / machine.most
    longest = backlog_s / np.maximum(1.0 - meanwhile, 1e-12)
    turn_s = np.minimum(machine.by(machine.turn_frames * work_s), machine.quantum_s) * machine.most
    chosen = np.where(real_time, np.minimum(longest, _AS_LONG_AS_IT_LIKES), turn_s)
    return np.where(turns, np.maximum(chosen, 1e-300), weight)
