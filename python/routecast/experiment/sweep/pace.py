"""How long a sweep still takes, from how it has gone lately."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

__all__ = ["Pace", "remaining"]

LOOKS_BACK_S = 60.0
"""Runs of a design differ, as does what else the machine does: what is long past tells little."""

TELLS_AFTER_S = 2.0
"""Before, the start of the workers would be taken for the pace."""


class Pace:
    """The pace of a sweep.

    Parameters
    ----------
    clock : callable
        Seconds.

    Examples
    --------
    >>> clock = iter([0.0, 10.0]).__next__
    >>> pace = Pace(clock)
    >>> pace.left_s(0, 100), pace.left_s(20, 100)
    (None, 40.0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._past: deque[tuple[float, int]] = deque()

    def left_s(self, done: int, total: int) -> float | None:
        """Return how long what is left takes at the pace of the last minute; None while nobody knows.

        Parameters
        ----------
        done : int
            How many runs are done now.
        total : int
            Of how many.
        """
        now = self._clock()
        self._past.append((now, done))
        while len(self._past) > 2 and now - self._past[1][0] > LOOKS_BACK_S:
            self._past.popleft()
        then, before = self._past[0]
        if now - then < TELLS_AFTER_S or done == before:
            return None
        return (total - done) * (now - then) / (done - before)


def remaining(time_s: float) -> str:
    """Write a time that is left for people.

    Examples
    --------
    >>> remaining(7.2), remaining(130), remaining(7500), remaining(3e5)
    ('8 s left', '3 min left', '2 h 5 min left', '3 d 12 h left')
    """
    seconds = int(-(-time_s // 1))
    if seconds < 60:
        return f"{seconds} s left"
    minutes = -(-seconds // 60)
    if minutes < 60:
        return f"{minutes} min left"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min left"
    hours = -(-seconds // 3600)
    return f"{hours // 24} d {hours % 24} h left"
