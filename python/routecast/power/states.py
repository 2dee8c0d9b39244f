"""P-states and C-states: dynamic power over voltage and clock, and what sleeping saves over idle periods.

Sleep follows :class:`~routecast.router.model.PowerDraw`: an idle unit enters state after state as its idle period
lasts; the work that ends the period then waits ``exit_s`` at active power, and ``wake_energy_j`` is paid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from routecast.errors import ModelProblem, Problem
from routecast.quantity.schema import field, value
from routecast.router.model import PerformanceState, PowerDraw, SleepState

__all__ = ["IdlePeriods", "IdleSpent", "break_even_s", "dynamic_power_w", "idle_spent", "state_at"]


def dynamic_power_w(capacitance_f: float, voltage_v: float, frequency_hz: float) -> float:
    """Return C V^2 f, the power of switching gates (activity counted in C); leakage is not in it.

    Examples
    --------
    >>> dynamic_power_w(10e-9, 1.0, 3e9)
    30.0
    """
    return capacitance_f * voltage_v**2 * frequency_hz


def state_at(known: PerformanceState, frequency_hz: float, voltage_v: float) -> PerformanceState:
    """Return the P-state at another clock and voltage: active minus idle power scales with V^2 f, idle power stays.

    Only voltages that are given are used: none is guessed.

    Raises
    ------
    routecast.errors.ModelProblem
        The voltage of the known state is not given.
    """
    if known.voltage_v is None:
        message = f"the state at {known.frequency_hz / 1e9:g} GHz has none, and V^2 f needs both"
        raise ModelProblem("P-state", [Problem("voltage_v", message)])
    scale = (voltage_v / known.voltage_v) ** 2 * frequency_hz / known.frequency_hz
    return PerformanceState(
        frequency_hz=frequency_hz,
        active_w=known.idle_w + (known.active_w - known.idle_w) * scale,
        idle_w=known.idle_w,
        voltage_v=voltage_v,
    )


def break_even_s(state: SleepState, draw: PowerDraw) -> float:
    """Return the least idle period for which a state saves energy against staying idle.

    ``after_s + (exit_s · P_active + E_wake) / (P_idle - P_state)``; infinite where the state draws no less than idle.
    """
    saved_w = draw.idle_w - state.power_w
    cost_j = state.exit_s * draw.active_w + state.wake_energy_j
    return state.after_s + cost_j / saved_w if saved_w > 0.0 else math.inf


@value
class IdlePeriods:
    """How long periods without work last."""

    mean_s: float
    # Exponential between Poisson arrivals, constant between frames of a constant rate.
    kind: Literal["exponential", "constant"] = "exponential"

    def longer_than(self, time_s: float) -> float:
        """Return the probability that a period lasts longer."""
        if self.kind == "exponential":
            return math.exp(-time_s / self.mean_s)
        return float(self.mean_s > time_s)

    def within_s(self, begin_s: float, end_s: float) -> float:
        """Return the mean time that a period spends between two of its ages: the integral of the survival function."""
        if self.kind == "exponential":
            return self.mean_s * (self.longer_than(begin_s) - self.longer_than(end_s))
        return max(min(self.mean_s, end_s) - begin_s, 0.0)


@value
class IdleSpent:
    """What an idle period costs on average."""

    energy_j: float = field("From the end of work until the unit works again, waking included")
    asleep_w: float = field("Mean power while there is no work: ``energy_j`` without waking, over the mean period")
    wake_s: float = field("Mean time that the work which ends a period waits for the unit to wake")
    mean_w: float = field("``energy_j`` over the period and the wake-up together")
    time_s: dict[str, float] = field("Mean time in each state, ``idle`` first")


def idle_spent(draw: PowerDraw, periods: IdlePeriods, *, allowed: Sequence[str] | None = None) -> IdleSpent:
    """Return what idle periods cost with the sleep states of a unit.

    Parameters
    ----------
    draw : PowerDraw
    periods : IdlePeriods
    allowed : sequence of str or None
        Names of the states that may be entered; None for all, empty for none.
    """
    states = [one for one in draw.sleep if allowed is None or one.name in allowed]
    ends = [*(one.after_s for one in states), math.inf]
    times = {"idle": periods.within_s(0.0, ends[0])}
    asleep_j = times["idle"] * draw.idle_w
    wake_s = wake_j = 0.0
    for state, begin, end in zip(states, ends, ends[1:], strict=False):
        times[state.name] = periods.within_s(begin, end)
        asleep_j += times[state.name] * state.power_w
        woken = periods.longer_than(begin) - periods.longer_than(end)
        wake_s += woken * state.exit_s
        wake_j += woken * (state.exit_s * draw.active_w + state.wake_energy_j)
    return IdleSpent(
        energy_j=asleep_j + wake_j,
        asleep_w=asleep_j / periods.mean_s,
        wake_s=wake_s,
        mean_w=(asleep_j + wake_j) / (periods.mean_s + wake_s),
        time_s=times,
    )
