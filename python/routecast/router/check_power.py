"""Whether the power states of a pool make sense."""

from __future__ import annotations

import math
from collections.abc import Callable

from routecast.quantity import format_duration, format_frequency, format_power
from routecast.router.check_numbers import FREQUENCIES_HZ, duration, not_negative, within
from routecast.router.power_draw import PowerDraw, SleepState

__all__ = ["check_power"]

Add = Callable[[str, str], None]

_RESERVED = ("active", "idle", "waking", "base")


def check_power(place: str, draw: PowerDraw, frequency_hz: float | None, add: Add) -> None:
    """Report powers that are negative or upside down, states out of order, and P-states of a pool without a clock."""
    for name in ("active_w", "idle_w", "base_w"):
        not_negative(f"{place}.{name}", getattr(draw, name), add)
    if draw.idle_w > draw.active_w:
        got = (
            f"got {format_power(draw.idle_w)}, more than the {format_power(draw.active_w)} of a unit at work"
        )
        add(f"{place}.idle_w", f"{got}: give at most that")
    if not draw.scope.strip():
        add(f"{place}.scope", "is empty: say what the figures cover, such as package, server or wall")
    names: set[str] = set()
    before: SleepState | None = None
    for index, state in enumerate(draw.sleep):
        _check_sleep(f"{place}.sleep[{index}]", state, before, draw, add)
        if state.name in names:
            add(f"{place}.sleep[{index}].name", f'"{state.name}" is given twice: states need different names')
        names.add(state.name)
        before = state
    _check_performance(f"{place}.performance", draw, frequency_hz, add)


def _check_sleep(place: str, state: SleepState, before: SleepState | None, draw: PowerDraw, add: Add) -> None:
    if not state.name.strip():
        add(f"{place}.name", "is empty: sleep states need a name, such as C1")
    elif state.name in _RESERVED:
        add(f"{place}.name", f'"{state.name}" is the name of another state: call it C1, C6 or the like')
    for name in ("power_w", "wake_energy_j"):
        not_negative(f"{place}.{name}", getattr(state, name), add)
    for name in ("exit_s", "after_s"):
        duration(f"{place}.{name}", getattr(state, name), add)
    if state.power_w > draw.idle_w:
        got = f"got {format_power(state.power_w)}, more than the {format_power(draw.idle_w)} of an idle unit"
        add(f"{place}.power_w", f"{got}: sleep saves power; give at most that, or leave the state out")
    if before is None:
        return
    if state.after_s <= before.after_s:
        got = f"got {format_duration(state.after_s)} after {format_duration(before.after_s)}"
        add(f"{place}.after_s", f"{got}: states go from light to deep sleep, in rising idle time")
    if state.power_w > before.power_w:
        got = f"got {format_power(state.power_w)}, more than in {before.name}, which is entered before it"
        add(f"{place}.power_w", f"{got}: a deeper sleep draws at most as much")


def _check_performance(place: str, draw: PowerDraw, frequency_hz: float | None, add: Add) -> None:
    if draw.performance and frequency_hz is None:
        add(place, "is given, but the pool has no frequency: give the one that it runs at")
    before_hz = 0.0
    for index, state in enumerate(draw.performance):
        at = f"{place}[{index}]"
        right = within(f"{at}.frequency_hz", state.frequency_hz, FREQUENCIES_HZ, "a frequency", "Hz", add)
        if right and state.frequency_hz <= before_hz:
            got = f"got {format_frequency(state.frequency_hz)} after {format_frequency(before_hz)}"
            add(f"{at}.frequency_hz", f"{got}: P-states go in rising frequency")
        before_hz = state.frequency_hz
        for name in ("active_w", "idle_w"):
            not_negative(f"{at}.{name}", getattr(state, name), add)
        if state.idle_w > state.active_w:
            got = f"got {format_power(state.idle_w)}, more than the {format_power(state.active_w)} of a unit at work"
            add(f"{at}.idle_w", f"{got}: give at most that")
        deepest = max(draw.sleep, key=lambda one: one.power_w, default=None)
        if deepest is not None and deepest.power_w > state.idle_w:
            got = f"got {format_power(state.idle_w)}, less than the {format_power(deepest.power_w)} asleep in"
            add(
                f"{at}.idle_w", f"{got} {deepest.name}: an idle unit draws at least as much as a sleeping one"
            )
        same = frequency_hz is not None and math.isclose(state.frequency_hz, frequency_hz, rel_tol=1e-9)
        if same and (state.active_w, state.idle_w) != (draw.active_w, draw.idle_w):
            add(at, "is the P-state that the pool runs at, but has other watts: give both the same")
        if state.voltage_v is not None and not (math.isfinite(state.voltage_v) and state.voltage_v > 0.0):
            add(f"{at}.voltage_v", f"got {state.voltage_v}: a voltage is a finite number > 0")
