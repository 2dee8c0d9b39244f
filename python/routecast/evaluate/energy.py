"""Energy of a trial: power times time, by pool and state of its units (semantics S11).

Both evaluators find out how many units of a pool are in which state; here this becomes joules and watts::

    units x time = active + idle + asleep in each state + waking
    energy       = base + sum over the states of power x time + wake-ups x energy of one
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from routecast.evaluate.trial import TrialPower
from routecast.quantity.schema import field, value
from routecast.router.model import ResourcePool, RouterModel

__all__ = ["UnitStates", "energy_of", "power_notes", "power_of"]

_ROUNDING = 1e-12
_FROM_MODEL = "power states of the model's pools"


@value
class UnitStates:
    """Mean number of units of a pool in each state; the rest is idle."""

    pool: ResourcePool
    active_units: float = field("Units at work, or in a poll that finds nothing")
    asleep_units: tuple[float, ...] = field(
        "Sleeping units by sleep state of the pool; empty without sleep states", default=()
    )
    waking_units: float = 0.0
    wakes_per_s: tuple[float, ...] = field("Wake-ups per second from each sleep state", default=())

    @property
    def idle_units(self) -> float:
        """Units that neither work nor sleep."""
        busy = self.active_units + self.waking_units + math.fsum(self.asleep_units)
        rest = self.pool.units - busy
        # What is left of sums that should cancel is no idle unit.
        return rest if rest > _ROUNDING * self.pool.units else 0.0


def energy_of(states: Iterable[UnitStates], duration_s: float) -> dict[str, dict[str, float]]:
    """Return the energy by pool and state over a trial, J; pools without power states are left out.

    The states are ``active``, ``idle``, the names of the sleep states, and where there are such states ``waking``
    (units on their way out of sleep, at active power, and what wake-ups cost beyond that); ``base`` where the pool
    draws power independent of its units.
    """
    energy: dict[str, dict[str, float]] = {}
    for activity in states:
        draw = activity.pool.power
        if draw is None:
            continue
        by_state = {
            "active": draw.active_w * activity.active_units * duration_s,
            "idle": draw.idle_w * activity.idle_units * duration_s,
        }
        for state, units in zip(draw.sleep, activity.asleep_units, strict=True):
            by_state[state.name] = state.power_w * units * duration_s
        if draw.sleep:
            entering_w = math.fsum(
                state.wake_energy_j * rate for state, rate in zip(draw.sleep, activity.wakes_per_s, strict=True)
            )
            by_state["waking"] = (draw.active_w * activity.waking_units + entering_w) * duration_s
        if draw.base_w:
            by_state["base"] = draw.base_w * duration_s
        energy[activity.pool.name] = by_state
    return energy


def power_of(
    model: RouterModel,
    energy_j: Mapping[str, Mapping[str, float]],
    *,
    duration_s: float,
    forwarded_pps: float,
    l2_bps: float,
) -> TrialPower | None:
    """Return power, energy per frame and per bit from the energies of a trial; None without power states."""
    if not energy_j:
        return None
    total_j = math.fsum(joules for states in energy_j.values() for joules in states.values())
    mean_w = total_j / duration_s
    return TrialPower(
        mean_w=mean_w,
        scope=" + ".join(_scopes(model)),
        energy_j=total_j,
        packet_j=mean_w / forwarded_pps if forwarded_pps > 0.0 else math.nan,
        bit_j=mean_w / l2_bps if l2_bps > 0.0 else math.nan,
        source=_FROM_MODEL,
    )


def power_notes(model: RouterModel) -> tuple[str, ...]:
    """Return notes on the scope of a model's power; none for a model without power states."""
    scopes = _scopes(model)
    if not scopes:
        return ()
    notes = []
    if len(scopes) > 1:
        notes.append(f"the watts add up figures of different scopes: {', '.join(scopes)}")
    without = [f'"{pool.name}"' for pool in model.pools if pool.power is None]
    if without:
        notes.append(f"the watts leave out what has no power states: {', '.join(without)}")
    return tuple(notes)


def _scopes(model: RouterModel) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pool.power.scope for pool in model.pools if pool.power is not None))
