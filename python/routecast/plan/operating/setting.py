"""Setting: one way to run a router, and the router run so."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from routecast.quantity import format_duration, format_frequency
from routecast.quantity.schema import field, value
from routecast.router.model import ActivationKind, PowerDraw, ResourcePool, RouterModel, SleepState, TaskUnit

__all__ = ["AS_GIVEN", "ActivationChoice", "Setting", "parked_name", "parked_power_w", "set_up"]

ActivationChoice = Literal["as given", "dedicated", "polling", "interrupt"]

AS_GIVEN: ActivationChoice = "as given"
"""The activation of each task unit stays as the file has it."""


@value
class Setting:
    """What is chosen: how many cores work, at which clock, how deep they may sleep, and what makes them work."""

    cores: int = field(
        "Units of the forwarding pool that work; the others are parked in the deepest state that the pool has"
    )
    frequency_hz: float | None = field(
        "Clock of the pool, Hz; None where the file gives none to choose from", default=None
    )
    sleep: str = field("Deepest C-state that working cores may enter when idle; empty: none", default="")
    activation: ActivationChoice = field("Of the task units on the pool", default=AS_GIVEN)
    linger_s: float = field(
        "Of interrupt activation: time of polling on before interrupts are enabled again, s; more than 0 is adaptive",
        default=0.0,
    )

    @property
    def mode(self) -> str:
        """The activation in one word: ``polling``, ``interrupt``, ``adaptive``, …"""
        return "adaptive" if self.activation == "interrupt" and self.linger_s > 0.0 else self.activation

    def __str__(self) -> str:
        parts = [f"{self.cores} core{'s' if self.cores > 1 else ''}"]
        if self.frequency_hz is not None:
            parts.append(format_frequency(self.frequency_hz))
        parts.append(f"sleep to {self.sleep}" if self.sleep else "no sleep")
        if self.activation != AS_GIVEN:
            linger = f" {format_duration(self.linger_s)}" if self.mode == "adaptive" else ""
            parts.append(self.mode + linger)
        return ", ".join(parts)


def parked_name(pool: str) -> str:
    """Return the name of the pool of the units of ``pool`` that are parked."""
    return f"{pool} parked"


def set_up(model: RouterModel, pool: str, setting: Setting, *, units: int) -> RouterModel:
    """Return a router that is run as a setting says, except for the number of cores, which ``model`` has already.

    Parameters
    ----------
    model : RouterModel
        Its pool ``pool`` has ``setting.cores`` units.
    pool : str
        The forwarding pool.
    setting : Setting
    units : int
        Units of the pool in the machine; those beyond ``setting.cores`` stand in a pool of their own without work.

    Raises
    ------
    routecast.errors.ModelProblem
        The router cannot be run so, e.g. because polling task units would hold units that others need.
    """
    if setting.frequency_hz is not None:
        from routecast.router.performance import at_frequency

        model = at_frequency(model, setting.frequency_hz, pool=pool)
    pools: list[ResourcePool] = []
    for one in model.pools:
        if one.name != pool or one.power is None:
            pools.append(one)
            continue
        pools.append(replace(one, power=replace(one.power, sleep=_allowed(one.power, setting.sleep))))
        if units > one.units:
            parked_w = parked_power_w(one.power)
            draw = PowerDraw(active_w=parked_w, idle_w=parked_w, scope=one.power.scope)
            pools.append(ResourcePool(name=parked_name(pool), units=units - one.units, power=draw))
    tasks = tuple(_activated(task, pool, setting) for task in model.tasks)
    return replace(model, pools=tuple(pools), tasks=tasks)


def parked_power_w(power: PowerDraw) -> float:
    """Return what a parked unit draws: the least of any state without work."""
    idle = [power.idle_w, *(state.idle_w for state in power.performance)]
    return min([*idle, *(state.power_w for state in power.sleep)])


def _allowed(power: PowerDraw, deepest: str) -> tuple[SleepState, ...]:
    names = [state.name for state in power.sleep]
    return power.sleep[: names.index(deepest) + 1] if deepest else ()


def _activated(task: TaskUnit, pool: str, setting: Setting) -> TaskUnit:
    if setting.activation == AS_GIVEN or all(need.pool != pool for need in task.needs):
        return task
    given = task.activation
    if setting.activation == "interrupt":
        return replace(task, activation=replace(given, kind="interrupt", linger_s=setting.linger_s))
    # Wake-ups and lingering are of interrupts alone.
    kind: ActivationKind = "polling" if setting.activation == "polling" else "dedicated"
    return replace(task, activation=replace(given, kind=kind, linger_s=0.0, wakeup=None))
