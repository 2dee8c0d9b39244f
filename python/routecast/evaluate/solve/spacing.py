"""How far apart frames are that one link or one server let through: what is spaced enough waits for nothing.

A link lets frames follow each other no closer than they last on it (S1), a server of constant times no closer than
those. While all that happens to them is a constant
delay, their least gap stays, even over parallel stations that delay alike. A station whose longest service is shorter
than that gap has no queue, whatever the arrival process: two frames never meet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from routecast.evaluate.queueing.general import ServiceMix
from routecast.evaluate.queueing.markov import Queue

__all__ = ["NobodyMeets", "Spacing", "common_spacing", "spacing_of_link"]

_ROUNDING = 1.0 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Spacing:
    """Frames of one link or server, delayed by a constant time since then.

    Parameters
    ----------
    origin : int
        Number of the port that they came in by; ``-1 - index`` for the task unit that served them last, one by one.
    least_s : float
        No two frames come closer to each other.
    delay_s : float
        Since the origin, the same for all frames.
    """

    origin: int
    least_s: float
    delay_s: float = 0.0

    def fits(self, longest_s: float) -> bool:
        """Whether a service or transmission of at most ``longest_s`` is over before the next frame comes."""
        return longest_s <= self.least_s * _ROUNDING

    def later(self, delay_s: float) -> Spacing:
        """Return the same frames after another constant delay."""
        return replace(self, delay_s=self.delay_s + delay_s)


def spacing_of_link(port: int, wire_s: Sequence[float], even_gap_s: float | None) -> Spacing:
    """Return the spacing behind a link with frames of these durations; ``even_gap_s`` is the gap of a constant rate.

    Equal gaps stay equal only where the longest frame fits into one.
    """
    least_s = min(wire_s)
    if even_gap_s is not None and max(wire_s) <= even_gap_s * _ROUNDING:
        least_s = even_gap_s
    return Spacing(origin=port, least_s=least_s)


def common_spacing(streams: Sequence[tuple[Spacing, ...]]) -> tuple[Spacing, ...]:
    """Return what is known of streams that meet again, by origin; nothing where one is disturbed or delays differ."""
    found: dict[int, Spacing] = {}
    for spacings in streams:
        if not spacings:
            return ()
        for one in spacings:
            first = found.setdefault(one.origin, one)
            if not math.isclose(one.delay_s, first.delay_s, rel_tol=1e-9, abs_tol=1e-15):
                return ()
    return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class NobodyMeets(Queue):
    """Frames that come further apart than any service lasts: nobody waits. Exact, for every arrival process."""

    service: ServiceMix

    @property
    def method(self) -> str:
        """What makes it exact."""
        return "no waiting, as links space frames further apart than a service lasts"

    @property
    def loss_ratio(self) -> float:
        """Zero."""
        return 0.0

    @property
    def waiting_mean_s(self) -> float:
        """Zero."""
        return 0.0

    @property
    def sojourn_mean_s(self) -> float:
        """Mean service time."""
        return self.service.mean_s

    def waiting_tail(self, time_s: float) -> float:
        """Nobody waits."""
        return 1.0 if time_s < 0.0 else 0.0

    def sojourn_tail(self, time_s: float) -> float:
        """Share of the frames whose service is longer."""
        pairs = zip(self.service.shares, self.service.times_s, strict=True)
        return math.fsum(share for share, one in pairs if one > time_s)
