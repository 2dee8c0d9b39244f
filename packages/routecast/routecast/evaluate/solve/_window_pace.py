"""Pace of windows: that of the busiest station that a window has for itself by frame size, and what makes it vary.

However many frames are inside, no more pass than the busiest station serves: ``c / D`` for c servers and a demand of D
seconds a frame (the asymptotic bound of Denning & Buzen, ACM Computing Surveys 10(3), 1978). The rate of a window in
the fluid state is that at its mean arriving rate, at which its station may idle; in a burst of a trace it does not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.fluid import Fluid

__all__ = ["is_held_up", "known_paces", "roughest_scv", "station_pace_s"]

Floats = NDArray[np.float64]


def station_pace_s(fluid: Fluid, number: int, sizes: NDArray[np.uint32], frames_by_size: NDArray[np.int64]) -> Floats:
    """Return the least mean time between two frames at the busiest own station of a window, by frame size, s.

    ``number``: the window; ``sizes``, ``frames_by_size``: frame sizes and how many frames have each. All are 0 where a
    window shares each of its stations with others.
    """
    windows = fluid.windows
    assert windows is not None
    by_size = np.zeros(len(sizes))
    if not len(windows.servers):
        return by_size
    is_own = ((windows.visits > 0.0).sum(axis=0) == 1) & (windows.visits[number] > 0.0)
    is_own &= np.array(windows.inner) < 0
    demand_s = np.where(is_own, windows.demand_s[number] / windows.servers, 0.0)
    station = int(np.argmax(demand_s))
    if demand_s[station] <= 0.0:
        return by_size
    rates = fluid.rates.sum(axis=1)
    for index in windows.tasks[number]:
        task, cost = fluid.graph.tasks[index], fluid.costs[index]
        if windows.station.get(index) != station:
            continue
        frequency_hz = fluid.model.pool(task.needs[0].pool).frequency_hz if task.needs else None
        times_s = [
            task.service.mean_s(float(size), frequency_hz=frequency_hz, batch_frames=max(cost.batch_frames, 1))
            for size in sizes
        ]
        by_size += np.array(times_s) * float(rates[index])
    mean = float(np.average(by_size, weights=frames_by_size))
    return by_size * (demand_s[station] / mean) if mean > 0.0 else by_size


def is_held_up(fluid: Fluid) -> bool:
    """Whether interruptions or highly variable services delay units inside windows."""
    windows = fluid.windows
    assert windows is not None
    services = [fluid.graph.tasks[inside].service for inside in windows.inside]
    is_interrupted = any(pool.interruptions is not None for pool in fluid.model.pools)
    return is_interrupted or any(service.squared_cv > 1.0 for service in services)


def roughest_scv(fluid: Fluid) -> float:
    """Return the greatest squared variation of the services inside windows."""
    windows = fluid.windows
    assert windows is not None
    return max((fluid.graph.tasks[inside].service.squared_cv for inside in windows.inside), default=0.0)


def known_paces(fluid: Fluid) -> tuple[Vector, Vector] | None:
    """Return bounds of the pace of each window; None where it is itself an approximation.

    Constant services without delays follow a pattern, if no queue inside a window is too short for its frames: of
    120 random routers (dpdk, IXP2850, smartnic and slices examples with other services, rings and loads) 87 losses
    are known by it, and none was outside its range (docs/validation.md).
    """
    windows, tasks = fluid.windows, fluid.graph.tasks
    assert windows is not None
    if is_held_up(fluid) or float(windows.scv.max(initial=0.0)) > 0.0:
        return None
    for inside, units in zip(windows.tasks, windows.units.tolist(), strict=True):
        for index in inside.difference(windows.enter):
            if tasks[index].queue_frames + (1 if tasks[index].needs else tasks[index].parallel) < units:
                return None
    return windows.paces(fluid.rates.sum(axis=1)[list(windows.enter)])
