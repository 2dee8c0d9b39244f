"""Looks that go on: each is learnt from, alarms start and end, and a look that fails ends nothing but itself."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from routecast.errors import EnvironmentProblem, FileProblem
from routecast.evaluate.plain import plain
from routecast.lab.watch._alarm import Alarm, Verdict
from routecast.lab.watch._day import DailyPeak, DayMemory, FullDate, Growth, LossAtPeak
from routecast.lab.watch._saturation import Saturation
from routecast.lab.watch._watcher import Watched
from routecast.quantity import format_pps, format_ratio

__all__ = ["AlarmNow", "LookRound", "Rounds", "repeated"]

_CLOCK: Final = "%Y-%m-%d %H:%M:%S"
_FAILED: Final = "the look failed"
_NO_SATURATION: Final = Saturation(reason=_FAILED)
_NO_PEAK: Final = DailyPeak(reason=_FAILED)
_NO_LOSS: Final = LossAtPeak(reason=_FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmNow:
    """An alarm after a look. One that has started goes on until a look says that all is fine."""

    alarm: Alarm
    verdict: Verdict
    is_firing: bool
    has_changed: bool

    def __str__(self) -> str:
        state = ("starts" if self.has_changed else "goes on") if self.is_firing else "ends"
        return f"alarm {state}: {self.alarm}: {self.verdict.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookRound:
    """A look and what was known after it; without ``watched`` it failed, and ``problem`` says why.

    ``saturation``: that of the look, or else that of all looks before; ``warnings``: what else went wrong.
    """

    at: datetime
    interface: str
    watched: Watched | None = None
    problem: str = ""
    saturation: Saturation = _NO_SATURATION
    peak: DailyPeak = _NO_PEAK
    loss_at_peak: LossAtPeak = _NO_LOSS
    full: FullDate | None = None
    alarms: tuple[AlarmNow, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data: that of the look, and what was learnt; what is not known is null, with a reason."""
        at = self.at.isoformat(timespec="seconds")
        if self.watched is None:
            return {"at": at, "interface": self.interface, "problem": self.problem, "warnings": list(self.warnings)}
        learnt: dict[str, Any] = {
            "at": at,
            "known_saturation": self.saturation,
            "daily_peak": self.peak,
            "loss_at_peak": self.loss_at_peak,
            "full_on": self.full.to_json() if self.full else None,
            "alarms": [
                {
                    "alarm": str(now.alarm),
                    "state": now.verdict.state,
                    "is_firing": now.is_firing,
                    "text": now.verdict.text,
                }
                for now in self.alarms
            ],
            "warnings": list(self.warnings),
        }
        return {**self.watched.to_json(), **plain(learnt)}

    def describe(self) -> str:
        """Return a line."""
        at = self.at.strftime(_CLOCK)
        if self.watched is None:
            return f"{at}  no look: {self.problem}"
        watched = self.watched
        parts = [format_pps(watched.rate_pps)]
        if math.isfinite(watched.busy_ratio):
            parts.append(f"busy {format_ratio(watched.busy_ratio)}")
        if self.saturation.reason:
            parts.append("saturation not known")
        else:
            low, high = map(format_pps, self.saturation.interval_pps)
            earlier = " as looks before saw it" if watched.saturation.reason else ""
            parts.append(f"saturates at {format_pps(self.saturation.pps)} ({low} to {high}){earlier}")
            if watched.rate_pps > 0.0:
                parts.append(f"headroom {format_ratio(self.saturation.pps / watched.rate_pps - 1.0)}")
        parts.append(f"lost {sum(watched.lost.values())}")
        if not self.loss_at_peak.reason:
            parts.append(f"P(loss at daily peak) {format_ratio(self.loss_at_peak.ratio)}")
        return f"{at}  {', '.join(parts)}"

    def learnt_lines(self) -> tuple[tuple[str, str], ...]:
        """Return what was learnt as names and texts, for a screen."""
        peak, loss = self.peak, self.loss_at_peak
        lines = [
            ("daily peak", f"not known: {peak.reason}" if peak.reason else f"{format_pps(peak.pps)} ({peak.source})"),
            (
                "loss at it",
                f"not known: {loss.reason}" if loss.reason else f"with a probability of {_share(loss.ratio)}",
            ),
        ]
        if self.full is not None:
            lines.append(("full on", describe_date(self.full)))
        return tuple(lines)


def describe_date(full: FullDate) -> str:
    """Return a date with its interval, or why there is none."""
    if full.day is None:
        earliest = f"; at the earliest on {full.low} (95 %)" if full.low else ""
        return f"not known: {full.reason}{earliest}" if not full.low else f"{full.reason}{earliest}"
    return f"{full.day} (95 %: {full.low} to {full.high or 'later than in 100 years'})"


class Rounds:
    """What is kept from look to look.

    ``state``: file that the memory is saved to after each look. A look that cannot be saved is a warning.
    """

    def __init__(
        self,
        memory: DayMemory,
        *,
        alarms: Sequence[Alarm] = (),
        growth: Growth | None = None,
        state: Path | None = None,
    ) -> None:
        self.memory = memory
        self.looks = self.failed_looks = 0
        self.lost: dict[str, int] = {}
        self._alarms, self._growth, self._state = alarms, growth, state
        self._is_firing = [False] * len(alarms)

    def add(self, watched: Watched, at: datetime) -> LookRound:
        """Learn from a look."""
        self.looks += 1
        for place, count in watched.lost.items():
            self.lost[place] = self.lost.get(place, 0) + count
        memory = self.memory
        memory.add(watched.rate_pps, watched.saturation, at)
        remembered, loss_at_peak = memory.saturation(at), memory.probability_of_loss_at_peak(at)
        saturation = watched.saturation
        if saturation.reason and not remembered.reason:
            saturation = remembered
        return LookRound(
            at=at,
            interface=memory.interface,
            watched=watched,
            saturation=saturation,
            peak=memory.peak(at),
            loss_at_peak=loss_at_peak,
            full=memory.full_on(self._growth, at) if self._growth is not None else None,
            alarms=tuple(
                self._judged(number, alarm.judge(watched, remembered, loss_at_peak))
                for number, alarm in enumerate(self._alarms)
            ),
            warnings=self._saved(),
        )

    def fail(self, problem: Exception, at: datetime) -> LookRound:
        """Count a look that failed; alarms stay as they are."""
        self.failed_looks += 1
        return LookRound(at=at, interface=self.memory.interface, problem=str(problem))

    @property
    def firing(self) -> tuple[Alarm, ...]:
        """The alarms that have started and not ended."""
        return tuple(alarm for alarm, is_firing in zip(self._alarms, self._is_firing, strict=True) if is_firing)

    def summary(self) -> str:
        """Return a line on all looks."""
        parts = [f"{self.looks} look{'' if self.looks == 1 else 's'}"]
        if self.failed_looks:
            parts.append(f"{self.failed_looks} failed")
        lost = ", ".join(f"{count} at the {place}" for place, count in self.lost.items())
        parts.append(f"lost during them: {lost or 'nothing'}")
        if self.firing:
            parts.append(f"alarm: {'; '.join(map(str, self.firing))}")
        return ", ".join(parts)

    def _judged(self, number: int, verdict: Verdict) -> AlarmNow:
        before = self._is_firing[number]
        now = verdict.state == "fires" or (before and verdict.state != "fine")
        self._is_firing[number] = now
        return AlarmNow(alarm=self._alarms[number], verdict=verdict, is_firing=now, has_changed=now is not before)

    def _saved(self) -> tuple[str, ...]:
        if self._state is None:
            return ()
        try:
            self.memory.save(self._state)
        except FileProblem as problem:
            return (str(problem),)
        return ()


def repeated(
    look: Callable[[], Watched],
    rounds: Rounds,
    *,
    every_s: float,
    count: int | None = None,
    now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    clock_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[LookRound]:
    """Look again and again, at multiples of a time after the first look; a look that lasts longer leaves some out.

    Parameters
    ----------
    look : callable
        Returns a look.
    rounds : Rounds
        Learns from it.
    every_s : float
        Time from the begin of a look to that of the next, s.
    count : int or None
        Looks, those that fail included; None: without end.
    now, clock_s, sleep : callable
        The local time, a clock that nobody sets, s, and a pause of a time, s.

    Raises
    ------
    RoutecastError, OSError
        The first look failed. A later one that fails is a round without a look.
    """
    begin_s, turn, number = clock_s(), 0, 0
    while True:
        try:
            watched = look()
        except (EnvironmentProblem, OSError) as problem:
            if number == 0:
                raise
            yield rounds.fail(problem, now())
        else:
            yield rounds.add(watched, now())
        number += 1
        if count is not None and number >= count:
            return
        passed_s = clock_s() - begin_s
        turn = max(turn + 1, math.ceil(passed_s / every_s))
        sleep(max(0.0, begin_s + turn * every_s - clock_s()))


def _share(ratio: float) -> str:
    return format_ratio(ratio) if ratio >= 1e-6 else "less than 0.0001 %"
