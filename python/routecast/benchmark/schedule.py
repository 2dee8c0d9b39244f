"""How long a benchmark takes: before it starts, from its profile; while it runs, from what it has done."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from routecast.benchmark.procedures import PROCEDURES
from routecast.benchmark.profile import Profile
from routecast.benchmark.streams import Stream
from routecast.quantity import format_duration
from routecast.quantity.schema import value

__all__ = ["Clock", "Expected", "expected"]

TRIAL_OVERHEAD_S = 0.12
"""What a trial on the wire takes beyond its phases: arming, reading counters."""


@value
class Expected:
    """Expected trials and seconds of one stage on the wire."""

    trials: int
    seconds: float


def expected(profile: Profile, procedure: str) -> Expected:
    """Return how many trials one stage is expected to take, and how long they are with their phases.

    Searches depend on what they find: their trials are those of a router with some loss in the middle of the range.
    """
    trials, traffic_s = PROCEDURES[procedure].trials(profile)
    phases = profile.trial.before + profile.trial.residual + profile.trial.settle + TRIAL_OVERHEAD_S
    return Expected(trials=trials, seconds=traffic_s + trials * phases)


@dataclass(slots=True)
class Clock:
    """Progress of a run in expected seconds, and the time that is left.

    Parameters
    ----------
    stages : sequence of (stream, frame_bytes, procedure)
        What will be run, in this order.
    profile : Profile
    report : callable or None
        Told (done, total, what) after every trial, in expected seconds.
    """

    stages: Sequence[tuple[Stream, int, str]]
    profile: Profile
    report: Callable[[int, int, str], None] | None = None
    _done_s: float = 0.0
    _in_stage_s: float = 0.0
    _stage_s: float = 0.0
    _known_s: float = 0.0
    _started: float = field(default_factory=time.monotonic)
    _what: str = ""

    @property
    def total_s(self) -> float:
        """Expected seconds of the whole run on the wire."""
        return sum(expected(self.profile, procedure).seconds for _, _, procedure in self.stages)

    @property
    def trials(self) -> int:
        """Expected trials of the whole run."""
        return sum(expected(self.profile, procedure).trials for _, _, procedure in self.stages)

    def begin(self, stream: Stream, frame_bytes: int, procedure: str) -> None:
        """Note that a stage begins."""
        self._stage_s = expected(self.profile, procedure).seconds
        self._in_stage_s = 0.0
        self._what = f"{procedure.replace('_', ' ')}, {frame_bytes} B, {stream.name}"
        self._tell()

    def trial(self, seconds: float, is_known: bool) -> None:
        """Note that a trial has ended; ``is_known`` if it comes from a run before."""
        trial = self.profile.trial
        whole_s = seconds + trial.before + trial.residual + trial.settle + TRIAL_OVERHEAD_S
        self._in_stage_s += whole_s
        if is_known:
            self._known_s += whole_s
        self._tell()

    def end(self) -> None:
        """Note that the stage has ended."""
        self._done_s += self._stage_s
        self._stage_s = self._in_stage_s = 0.0
        self._tell()

    @property
    def left_s(self) -> float:
        """Seconds that are expected to be left, by the pace so far; NaN before there is one."""
        done = self._done_s + min(self._in_stage_s, self._stage_s)
        own = done - min(self._known_s, done)
        if own <= 0.0:
            return math.nan
        return (self.total_s - done) * (time.monotonic() - self._started) / own

    def _tell(self) -> None:
        if self.report is None:
            return
        done = self._done_s + min(self._in_stage_s, self._stage_s)
        left_s = self.left_s
        left = f", {format_duration(round(left_s))} left" if math.isfinite(left_s) and left_s >= 1.0 else ""
        self.report(round(done), max(round(self.total_s), 1), f"{self._what}{left}")
