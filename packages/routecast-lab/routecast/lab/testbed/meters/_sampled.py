"""A meter that samples its source in a thread of its own.

A counter of energy must be read before it wraps, a sensor of power often enough to follow it. Each kind of source turns
two samples into mean power::

    counter   E0 ───── E1 ───── E2        power of a span = (E1 − E0) / (t1 − t0), exact
    watts     P0 ───── P1 ───── P2        power of a span = (P0 + P1) / 2, a straight line between samples
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from routecast.errors import EnvironmentProblem, ModelProblem, Problem
from routecast.lab.testbed.meters._meter import PeriodicThread, PowerReading, PowerSpan, Zone, reading_of

_MAX_LISTED_FAILURES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Values of a source at an instant by zone, without the zones that could not be read."""

    at_s: float
    values: Mapping[str, float]


class Source(Protocol):
    """The values behind a sampled meter: a gauge of watts or a counter of energy."""

    name: str
    scope: str
    """What the sum of the counted zones covers."""
    zones: Sequence[Zone]
    """The zones; known once the source is open."""
    quantum_j: float = math.nan
    """Smallest step of the sum's energy; NaN if unknown."""
    is_gauge: bool = True
    """Whether values are watts, so that their extremes are the smallest and largest power."""

    def open(self) -> None:
        """Open the source. Raises EnvironmentProblem: nothing can be read."""
        return

    def read(self) -> Mapping[str, float]:
        """Return the value of each zone. Raises EnvironmentProblem: it cannot be read."""
        ...

    def power_w(self, zone: str, before: Sample, after: Sample) -> float:
        """Return the mean power of a zone between two samples; for a gauge, the mean of both."""
        return 0.5 * (before.values[zone] + after.values[zone])

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Return notes on the reading."""
        return ()

    def close(self) -> None:
        """Release the resources of :meth:`open`."""
        return


class SampledMeter:
    """A :class:`~routecast.lab.testbed.meters.PowerMeter` over a source.

    ``interval_s`` is the time between samples; if infinite, only :meth:`start`, :meth:`sample` and :meth:`stop`
    take samples. ``clock`` returns seconds; trials use ``time.monotonic``. Raises ModelProblem: it is not > 0.
    """

    def __init__(self, source: Source, *, interval_s: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        if not interval_s > 0.0:
            raise ModelProblem(source.name, [Problem("interval", f"got {interval_s} s: a time > 0 s")])
        self.source = source
        self.name, self.scope = source.name, source.scope
        self.interval_s = interval_s
        self._clock = clock
        self._samples: list[Sample] = []
        self._failures: list[str] = []
        self._lock = threading.Lock()
        self._thread = PeriodicThread(self.sample, interval_s)

    def start(self) -> None:
        """Take the first sample and continue in the background.

        Raises EnvironmentProblem: the source cannot be read.
        """
        if self._thread.is_running:
            raise EnvironmentProblem(f"power meter {self.name}: runs already")
        self._samples, self._failures = [], []
        self.source.open()
        try:
            self._take_sample()
        except BaseException:
            self.source.close()
            raise
        self._thread.start(f"power meter {self.name}")

    def sample(self) -> None:
        """Take a sample now; a failure becomes a note."""
        try:
            self._take_sample()
        except EnvironmentProblem as problem:
            with self._lock:
                self._failures.append(str(problem))

    def stop(self) -> PowerReading:
        """Take the last sample and return the reading."""
        self._thread.stop()
        failures = len(self._failures)
        self.sample()
        # The interval ends with the last sample, or now if that failed.
        end_s = self._clock() if len(self._failures) > failures else self._samples[-1].at_s
        self.source.close()
        spans, notes = self._spans()
        return reading_of(
            spans,
            [(self._samples[0].at_s, end_s)],
            meter=self.name,
            scope=self.scope,
            zones=self.source.zones,
            quantum_j=self.source.quantum_j,
            notes=notes,
        )

    def latest_w(self) -> float:
        """Return the power between the two newest samples; a gauge needs only one."""
        with self._lock:
            samples = self._samples[-2:]
        counted = [zone.name for zone in self.source.zones if zone.is_counted]
        if samples and self.source.is_gauge:
            return math.fsum(samples[-1].values.get(name, math.nan) for name in counted)
        if len(samples) < 2 or any(name not in sample.values for sample in samples for name in counted):
            return math.nan
        return math.fsum(self.source.power_w(name, *samples) for name in counted)

    def _take_sample(self) -> None:
        begin_s = self._clock()
        values = self.source.read()
        # A slow answer was true at some time between request and answer.
        at_s = 0.5 * (begin_s + self._clock())
        with self._lock:
            if not self._samples or at_s > self._samples[-1].at_s:
                self._samples.append(Sample(at_s=at_s, values=values))

    def _spans(self) -> tuple[list[PowerSpan], list[str]]:
        names = [zone.name for zone in self.source.zones]
        counted = [zone.name for zone in self.source.zones if zone.is_counted]
        complete = [sample for sample in self._samples if all(name in sample.values for name in counted)]
        spans = []
        for before, after in pairwise(complete):
            zones_w = {
                name: self.source.power_w(name, before, after)
                for name in names
                if name in before.values and name in after.values
            }
            total_w = math.fsum(zones_w[name] for name in counted)
            extremes_w = [total_w]
            if self.source.is_gauge:
                extremes_w = [math.fsum(sample.values[name] for name in counted) for sample in (before, after)]
            spans.append(
                PowerSpan(
                    from_s=before.at_s, to_s=after.at_s, zones_w=zones_w, low_w=min(extremes_w), high_w=max(extremes_w)
                )
            )
        return spans, [*self.source.notes(self._samples), *self._vanished_zone_notes(), *self._failure_notes(complete)]

    def _vanished_zone_notes(self) -> list[str]:
        notes = []
        for zone in self.source.zones:
            read_at_s = [sample.at_s for sample in self._samples if zone.name in sample.values]
            if not read_at_s or read_at_s[-1] == self._samples[-1].at_s:
                continue
            after_s = read_at_s[-1] - self._samples[0].at_s
            message = f"zone {zone.name} could not be read any more {after_s:.3g} s after the start"
            notes.append(f"{message}: the figures end there" if zone.is_counted else message)
        return notes

    def _failure_notes(self, complete: Sequence[Sample]) -> list[str]:
        if not self._failures:
            return []
        total = len(self._failures) + len(self._samples)
        reasons = list(dict.fromkeys(self._failures))[:_MAX_LISTED_FAILURES]
        note = f"{len(self._failures)} of {total} readings failed: {'; '.join(reasons)}"
        return [note] if len(complete) > 1 else [f"{note}; what is left is too little for a mean power"]
