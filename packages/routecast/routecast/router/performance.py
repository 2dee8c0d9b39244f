"""A router at another P-state: the frequency of a pool and its power at that frequency."""

from __future__ import annotations

import math
from dataclasses import replace

from routecast.errors import ModelProblem, Problem
from routecast.quantity import format_frequency
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.model import ResourcePool, RouterModel

__all__ = ["at_frequency"]

_SAME = 1e-9


def at_frequency(model: RouterModel, frequency_hz: float, pool: str | None = None) -> RouterModel:
    """Return the router with a pool at another of its P-states.

    The time of costs in cycles changes; the time of costs in seconds (memory, interrupts) does not, so the capacity
    grows less than the frequency (Bolla et al. 2009, figs. 3 and 4).

    Parameters
    ----------
    model : RouterModel
    frequency_hz : float
        Exact frequency of a P-state of the pool: the power between P-states is unknown.
    pool : str or None
        Name of the pool; None: the only pool that has P-states.

    Raises
    ------
    ModelProblem
        There is no such pool, or it has no such P-state; the message lists those that exist.

    Examples
    --------
    >>> from routecast.router import PerformanceState, PowerDraw, ServiceCost, multicore
    >>> slow = PerformanceState(frequency_hz=1e9, active_w=5.0, idle_w=2.0)
    >>> fast = PerformanceState(frequency_hz=3e9, active_w=12.0, idle_w=3.0)
    >>> power = PowerDraw(active_w=12.0, idle_w=3.0, performance=(slow, fast))
    >>> router = multicore(1, ServiceCost(per_packet_cycles=3000.0), frequency_hz=3e9, power=power)
    >>> at_frequency(router, 1e9).pool("cpu").power.active_w
    5.0
    """
    chosen = _pool(model, pool)
    assert chosen.power is not None
    for state in chosen.power.performance:
        if math.isclose(state.frequency_hz, frequency_hz, rel_tol=_SAME):
            power = replace(chosen.power, active_w=state.active_w, idle_w=state.idle_w)
            changed = replace(chosen, frequency_hz=state.frequency_hz, power=power)
            return replace(model, pools=tuple(changed if pool is chosen else pool for pool in model.pools))
    known = ", ".join(format_frequency(state.frequency_hz) for state in chosen.power.performance)
    got = f'got {format_frequency(frequency_hz)}: pool "{chosen.name}" has the P-states {known}'
    raise ModelProblem(f"router {model.name!r}", [Problem("frequency_hz", got)])


def _pool(model: RouterModel, name: str | None) -> ResourcePool:
    scaling = {pool.name: pool for pool in model.pools if pool.power is not None and pool.power.performance}
    if name is None and len(scaling) == 1:
        return next(iter(scaling.values()))
    if name is None:
        message = (
            f"is missing: {' and '.join(scaling)} have P-states; name one"
            if scaling
            else "no pool has P-states: give power.performance in the router"
        )
    elif name in scaling:
        return scaling[name]
    elif any(pool.name == name for pool in model.pools):
        message = f'"{name}" has no P-states: {did_you_mean("", scaling)}'
    else:
        message = f'"{name}" is no pool: {did_you_mean(name, scaling)}'
    raise ModelProblem(f"router {model.name!r}", [Problem("pool", message)])
