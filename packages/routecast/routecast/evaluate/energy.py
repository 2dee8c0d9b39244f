"""Energy of a trial: power times time, by pool and state of its units (semantics S11).

Both evaluators find the mean number of units of a pool in each state; this module turns it into joules and watts::

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
        # The rounding error of sums that should cancel is not an idle unit.
        return rest if rest > _ROUNDING * self.pool.units else 0.0


def energy_of(states: Iterable[UnitStates], duration_s: float) -> dict[str, dict[str, float]]:
    """Return the energy by pool and state over a trial, J, without pools that have no power states.

    The states are ``active``, ``idle`` and the names of the sleep states. A pool with sleep states also has ``waking``:
    units that leave a sleep state, at active power, and the additional energy of wake-ups. A pool that draws power
    independent of its units has ``base``.
    """
    energy: dict[str, dict[str, float]] = {}
    for activity in states:
        power = activity.pool.power
        if power is None:
            continue
        by_state = {
            "active": power.active_w * activity.active_units * duration_s,
            "idle": power.idle_w * activity.idle_units * duration_s,
        }
        for state, units in zip(power.sleep, activity.asleep_units, strict=True):
            by_state[state.name] = state.power_w * units * duration_s
        if power.sleep:
            wake_up_w = math.fsum(
                state.wake_energy_j * rate for state, rate in zip(power.sleep, activity.wakes_per_s, strict=True)
            )
            by_state["waking"] = (power.active_w * activity.waking_units + wake_up_w) * duration_s
        if power.base_w:
            by_state["base"] = power.base_w * duration_s
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
    """Return notes on the scope of a model's power; empty for a model without power states."""
    scopes = _scopes(model)
    if not scopes:
        return ()
    notes = []
    if len(scopes) > 1:
        notes.append(f"the watts add up figures of different scopes: {', '.join(scopes)}")
    unpowered = [f'"{pool.name}"' for pool in model.pools if pool.power is None]
    if unpowered:
        notes.append(f"the watts leave out what has no power states: {', '.join(unpowered)}")
    return tuple(notes)


def _scopes(model: RouterModel) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pool.power.scope for pool in model.pools if pool.power is not None))
