"""Cycles of a server: how long it works, spins, sleeps and wakes between one beginning of work and the next.

::

    last frame ── linger ──► released ── after ──► asleep ── frame ──► (wake-up) ──► waking ──► interrupt, work …
    |<------------------------- idle time ------------------------>|<------ set-up ------>|<-- busy period -->|

With Poisson arrivals the idle time is exponential whatever happened before, so the chances of lingering to the end
(``e^{-λ·linger}``) and of being found in a sleep state follow at once; with equal gaps it is a known length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

__all__ = ["Cycle", "Rested", "rest_at_random", "rest_of"]

Rest = Sequence[tuple[float, float]]

_WARM_UP = 16
_AVERAGED = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Rested:
    """What a server does between the end of its work and the next one, on average over idle times.

    Parameters
    ----------
    released : float
        Chance that it gives its unit back: the idle time outlasts the lingering.
    spin_s : float
        Lingering, polling without frames.
    asleep_s : tuple of float
        By sleep state.
    chances : tuple of float
        Chance to be woken from each sleep state.
    exit_s : float
        Mean time to get out of sleep.
    """

    released: float = 1.0
    spin_s: float = 0.0
    asleep_s: tuple[float, ...] = ()
    chances: tuple[float, ...] = ()
    exit_s: float = 0.0

    def or_else(self, other: Rested, *, chance: float) -> Rested:
        """Return the mean of this and, with a chance, the other."""

        def mean(mine: float, theirs: float) -> float:
            return (1.0 - chance) * mine + chance * theirs

        return Rested(
            released=mean(self.released, other.released),
            spin_s=mean(self.spin_s, other.spin_s),
            asleep_s=tuple(map(mean, self.asleep_s, other.asleep_s)),
            chances=tuple(map(mean, self.chances, other.chances)),
            exit_s=mean(self.exit_s, other.exit_s),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """Means of a cycle: its length, work (interrupts included), interrupts, polls, and idle times as ``rested``.

    ``polls`` are those that found frames, NaN where they are not known; ``idles`` is the chance of an idle time.
    """

    cycle_s: float
    work_s: float
    interrupts: float = 0.0
    polls: float = math.nan
    idles: float = 0.0
    rested: Rested = Rested()

    @property
    def used(self) -> float:
        """Share of the time that the server works."""
        return min(self.work_s / self.cycle_s, 1.0)

    def share(self, time_s: float) -> float:
        """Share of the time that something takes which happens in every idle time; also a rate, for a count."""
        return self.idles * time_s / self.cycle_s

    def at_equal_gaps(self, rest: Rest) -> Cycle:
        """Return the mean of cycles like this one, whose idle times are known: waking up shortens the next one."""
        spare_s, late_s = self.cycle_s - self.work_s, 0.0
        cycles = []
        for _ in range(_WARM_UP + _AVERAGED):
            away = rest_of(max(spare_s - late_s, 0.0), rest=rest)
            late_s = max(late_s - spare_s, 0.0) + away.exit_s
            cycles.append(replace(self, idles=1.0, rested=away))
        return Cycle.mean_of(cycles[_WARM_UP:])

    @staticmethod
    def mean_of(cycles: Sequence[Cycle]) -> Cycle:
        """Return the mean of cycles that follow each other in turn."""
        if len(cycles) == 1:
            return cycles[0]

        def mean(pick: Callable[[Cycle], float]) -> float:
            return math.fsum(pick(cycle) for cycle in cycles) / len(cycles)

        def by_state(rows: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
            return tuple(math.fsum(column) / len(rows) for column in zip(*rows, strict=True))

        return Cycle(
            cycle_s=mean(lambda one: one.cycle_s),
            work_s=mean(lambda one: one.work_s),
            interrupts=mean(lambda one: one.interrupts),
            polls=mean(lambda one: one.polls),
            idles=1.0,
            rested=Rested(
                released=mean(lambda one: one.rested.released),
                spin_s=mean(lambda one: one.rested.spin_s),
                asleep_s=by_state([one.rested.asleep_s for one in cycles]),
                chances=by_state([one.rested.chances for one in cycles]),
                exit_s=mean(lambda one: one.rested.exit_s),
            ),
        )


def rest_at_random(
    rate_pps: float, *, linger_s: float = 0.0, sleep_s: float = 0.0, rest: Rest = ()
) -> Rested:
    """Return what a server does in idle times that Poisson arrivals end.

    Released with probability ``p = e^{-λ·linger}``, it idles on for an exponential time and, its unit still untouched,
    for the wake-up ``w`` of its task unit: ``P(idle >= a) = e^{-λ(a - w)+}``, and on average ``(w - a)+ + e^{-λ(a -
    w)+}/λ`` of it comes after a.
    """
    released = math.exp(-rate_pps * linger_s)
    beyond = [math.exp(-rate_pps * max(after_s - sleep_s, 0.0)) for after_s, _ in rest] + [0.0]
    later_s = [
        max(sleep_s - after_s, 0.0) + chance / rate_pps
        for (after_s, _), chance in zip(rest, beyond[:-1], strict=True)
    ] + [0.0]
    chances = tuple(released * (beyond[i] - beyond[i + 1]) for i in range(len(rest)))
    return Rested(
        released=released,
        spin_s=(1.0 - released) / rate_pps,
        asleep_s=tuple(released * (later_s[i] - later_s[i + 1]) for i in range(len(rest))),
        chances=chances,
        exit_s=math.fsum(chance * exit_s for chance, (_, exit_s) in zip(chances, rest, strict=True)),
    )


def rest_of(idle_s: float, *, linger_s: float = 0.0, sleep_s: float = 0.0, rest: Rest = ()) -> Rested:
    """Return what a server does in an idle time of a known length."""
    if idle_s < linger_s:
        return Rested(released=0.0, spin_s=idle_s, asleep_s=(0.0,) * len(rest), chances=(0.0,) * len(rest))
    left_s = idle_s - linger_s + sleep_s
    bounds = [min(after_s, left_s) for after_s, _ in rest] + [left_s]
    deepest = max(
        (i for i, (after_s, _) in enumerate(rest) if after_s <= left_s and left_s > 0.0), default=-1
    )
    return Rested(
        released=1.0,
        spin_s=linger_s,
        asleep_s=tuple(bounds[i + 1] - bounds[i] for i in range(len(rest))),
        chances=tuple(float(i == deepest) for i in range(len(rest))),
        exit_s=rest[deepest][1] if deepest >= 0 else 0.0,
    )
