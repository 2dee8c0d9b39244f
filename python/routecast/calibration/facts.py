"""Facts about a router that no rate reveals, and their effect on a prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from routecast.calibration._fit import FittedRouter, fit
from routecast.calibration.priors import Priors
from routecast.evaluate.points import Point
from routecast.quantity.schema import field, value

__all__ = ["OpenFact", "open_facts", "with_shared_queue"]

Interval = tuple[float, float]
_SHARED_QUEUE = "do several cores use one queue under a lock (column shared_queue, yes or no)?"
_ANSWERS = {"no": False, "yes": True}
_WORTH_ASKING = 0.1
"""An answer that changes the logarithm of an interval's width by less is not worth a question."""


@value
class OpenFact:
    """A fact that the points leave open, and the 95 % interval of a rate without and with each answer to it."""

    name: str = field("Column of a table of points that states it")
    question: str = field("Question to the user")
    cores: int = field("Number of cores whose rate is compared")
    interval_pps: Interval = field("While the fact is not stated, frames/s")
    intervals_pps: Mapping[str, Interval] = field("Intervals by value of the column, frames/s")

    @property
    def text(self) -> str:
        """The question, and both answers."""
        count = f"{self.cores} core{'s' if self.cores != 1 else ''}"
        answers = "; ".join(f"{self.name} = {answer}: {_words(ends)}" for answer, ends in self.intervals_pps.items())
        return f"{self.question} Not stated, {count} forward {_words(self.interval_pps)}; {answers}"


def open_facts(
    fitted: FittedRouter, points: Sequence[Point], *, noise_ratio: float | None = None, priors: Priors | None = None
) -> tuple[OpenFact, ...]:
    """Return the facts that would change the interval of the point with the most cores.

    ``noise_ratio`` and ``priors`` are those of the :func:`routecast.calibration.fit` that returned ``fitted``.
    """
    point = max(points, key=lambda each: each.cores, default=None)
    if point is None or any(each.layout.shared_queue is not None for each in fitted.points):
        return ()
    intervals = {
        answer: _interval(_refitted(fitted, is_shared, noise_ratio, priors), point)
        for answer, is_shared in _ANSWERS.items()
    }
    now = _interval(fitted, point)
    if all(abs(_width(ends) / _width(now) - 1.0) < _WORTH_ASKING for ends in intervals.values()):
        return ()
    return (
        OpenFact(
            name="shared_queue", question=_SHARED_QUEUE, cores=point.cores, interval_pps=now, intervals_pps=intervals
        ),
    )


def _refitted(fitted: FittedRouter, is_shared: bool, noise_ratio: float | None, priors: Priors | None) -> FittedRouter:
    made = fit(with_shared_queue(fitted.points, is_shared), noise_ratio=noise_ratio, priors=priors)
    return replace(made, carry=fitted.carry)


def with_shared_queue(points: Sequence[Point], is_shared: bool) -> list[Point]:
    """Return the points with a statement on whether the cores share a queue."""
    return [replace(point, layout=replace(point.layout, shared_queue=is_shared)) for point in points]


def _interval(fitted: FittedRouter, point: Point) -> Interval:
    (made,) = fitted.predict([point])
    return made.low_pps, made.high_pps


def _width(ends: Interval) -> float:
    return math.log(ends[1] / ends[0])


def _words(ends: Interval) -> str:
    return f"{ends[0] / 1e6:.4g} to {ends[1] / 1e6:.4g} Mpps"
