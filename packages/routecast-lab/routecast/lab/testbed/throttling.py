"""Real-time throttling: the kernel stops threads of a real-time class that never sleep for a part of each second.

``kernel.sched_rt_runtime_us`` of ``kernel.sched_rt_period_us`` is the time that such threads get on a core (sched(7)).
A device or a generator that polls without a pause uses it up, and stands still until the period ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from routecast.quantity.schema import field, value

__all__ = ["RealTimeThrottle"]

_SETTINGS = Path("/proc/sys/kernel")
_DEFAULT_PERIOD_US = 1_000_000
_SPARING_RATIO = 0.9
_LEAST_RATIO, _MOST_RATIO = 0.8, 1.1
"""Stalls that the throttle explains, over its longest: a period may end early or late in it."""


@value
class RealTimeThrottle:
    """The limit of the time that threads of a real-time class get on a core."""

    runtime_us: int = field("Time that they get in each period, us")
    period_us: int = field("Length of a period, us", default=_DEFAULT_PERIOD_US)

    @classmethod
    def of_machine(cls, settings: Path = _SETTINGS) -> Self | None:
        """Return the throttle of this machine; None if it has none, or does not tell."""
        numbers = []
        for name in ("sched_rt_runtime_us", "sched_rt_period_us"):
            try:
                numbers.append(int((settings / name).read_text(encoding="utf-8")))
            except (OSError, ValueError):
                return None
        runtime_us, period_us = numbers
        return cls(runtime_us=runtime_us, period_us=period_us) if 0 <= runtime_us < period_us else None

    @property
    def longest_stall_s(self) -> float:
        """Longest time for which a thread stands still."""
        return 1e-6 * (self.period_us - self.runtime_us)

    @property
    def longest_trial_s(self) -> float:
        """Longest trial that leaves its threads time to spare, if they keep a real-time class for it alone."""
        return _SPARING_RATIO * 1e-6 * self.runtime_us

    @property
    def text(self) -> str:
        """What it is, with its setting.

        Examples
        --------
        >>> RealTimeThrottle(runtime_us=950_000).text.partition(": ")[0]
        'real-time throttling (kernel.sched_rt_runtime_us = 950000'
        """
        period = "second" if self.period_us == _DEFAULT_PERIOD_US else f"{1e-3 * self.period_us:g} ms"
        return (
            f"real-time throttling (kernel.sched_rt_runtime_us = {self.runtime_us}: a thread of a real-time class "
            f"stands still for up to {1e3 * self.longest_stall_s:g} ms of each {period})"
        )

    def explains(self, stall_s: float) -> bool:
        """Whether a stall is as long as the throttle makes them.

        Examples
        --------
        >>> throttle = RealTimeThrottle(runtime_us=950_000)
        >>> [throttle.explains(stall_s) for stall_s in (2e-3, 46e-3, 0.2)]
        [False, True, False]
        """
        return _LEAST_RATIO * self.longest_stall_s <= stall_s <= _MOST_RATIO * self.longest_stall_s
