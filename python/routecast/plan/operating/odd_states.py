"""Power states that no machine is likely to have: watts or times that may have been exchanged."""

from __future__ import annotations

from itertools import pairwise

from routecast.quantity import format_duration, format_frequency, format_power
from routecast.router.power_draw import PowerDraw

__all__ = ["odd_states"]


def odd_states(pool: str, power: PowerDraw) -> list[str]:
    """Return a note for each P-state and C-state that is worse than the next one in what it should be better in.

    A lower clock should not draw more than a higher one, and a deeper sleep should not take less time to leave than
    the one before it. (A deeper sleep that draws more is refused where files are read.) Such states are not wrong in
    themselves: they are tried like the others.
    """
    notes = []
    states = sorted(power.performance, key=lambda one: one.frequency_hz)
    for slow, fast in pairwise(states):
        for name, slow_w, fast_w in (
            ("active", slow.active_w, fast.active_w),
            ("idle", slow.idle_w, fast.idle_w),
        ):
            if slow_w > fast_w:
                clocks = f"{format_frequency(slow.frequency_hz)} is slower than {format_frequency(fast.frequency_hz)}"
                notes.append(
                    f'pool "{pool}": {clocks} and draws more when {name}, {format_power(slow_w)} against '
                    f"{format_power(fast_w)}; look whether the watts are exchanged"
                )
    for light, deep in pairwise(power.sleep):
        if deep.exit_s < light.exit_s:
            notes.append(
                f'pool "{pool}": {deep.name} is deeper than {light.name} and is left sooner, in '
                f"{format_duration(deep.exit_s)} against {format_duration(light.exit_s)}; look whether the times are "
                "exchanged"
            )
    return notes
