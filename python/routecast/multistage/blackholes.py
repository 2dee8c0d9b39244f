"""Partial black holes: back-end routers that answer, but lack a route or a neighbour that the others have.

What a router drops is no fault by itself: who sends packets with a time to live of 1 makes it drop them all. So drops
only call for a look, and what decides is whether the router's addresses, routes and neighbours are those of the others.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from routecast.errors import EnvironmentProblem

__all__ = ["LOOKS_EVERY_S", "Suspects"]

LOOKS_EVERY_S = 1.0
"""Frames sent and returned are looked at so often, s."""
_LEAST_FRAMES = 100
_DROPS_RATIO = 0.02
_TIMES = 2
"""So many looks in a row have to find it another: neighbours are told to one router after the other."""
_COMPARED_WITH = 3
_LONGEST_REST = 15
"""Looks without a comparison, at most, where comparisons find nothing: a flood of what is rightly dropped may go on."""


class Suspects:
    """Who drops much of what it is sent, and differs from the others.

    Parameters
    ----------
    digest : callable
        Of the addresses, routes and neighbours of a back-end router, by its name.
    """

    def __init__(self, digest: Callable[[str], str]) -> None:
        self._digest = digest
        self._counts: Mapping[str, tuple[int, int]] = {}
        self._times: dict[str, int] = {}
        self._thread: threading.Thread | None = None
        self._rest = self._rests = 0

    def differs(self, name: str) -> bool:
        """Return whether a back-end router is known to lack what the others have."""
        return self._times.get(name, 0) >= _TIMES

    def look(self, counts: Mapping[str, tuple[int, int]]) -> None:
        """Look at the frames sent to each and returned by each, and compare who drops with others, beside all else.

        It is called each :data:`LOOKS_EVERY_S`.
        """
        before, self._counts = self._counts, dict(counts)
        self._times = {name: times for name, times in self._times.items() if name in counts}
        if self._thread is not None and self._thread.is_alive():
            return
        suspects = [name for name, now in counts.items() if self._drops(before.get(name), now) or self.differs(name)]
        if not suspects:
            self._rests = 0
        elif self._rest:
            self._rest -= 1
        else:
            others = [name for name in counts if name not in suspects][:_COMPARED_WITH]
            self._thread = threading.Thread(target=self._compare, args=(suspects, others), daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until what was begun has been compared."""
        if self._thread is not None:
            self._thread.join()

    @staticmethod
    def _drops(before: tuple[int, int] | None, now: tuple[int, int]) -> bool:
        if before is None:
            return False
        sent, returned = now[0] - before[0], now[1] - before[1]
        return sent >= _LEAST_FRAMES and sent - returned > _DROPS_RATIO * sent

    def _compare(self, suspects: Iterable[str], others: Iterable[str]) -> None:
        try:
            known = [self._digest(name) for name in others]
            digests = {name: self._digest(name) for name in suspects}
        except EnvironmentProblem:
            return  # one of them has just been taken out
        # Where all drop, the most common is what it should be, if it is common at all.
        common, times = Counter(known or digests.values()).most_common(1)[0]
        if not known and 2 * times <= len(digests):
            return
        for name, digest in digests.items():
            self._times[name] = self._times.get(name, 0) + 1 if digest != common else 0
        self._rests = 0 if any(self._times.values()) else min(2 * self._rests + 1, _LONGEST_REST)
        self._rest = self._rests
