"""Facts about a router that measured rates do not reveal, and their effect on a prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from routecast.calibration._fit import FittedRouter, fit
from routecast.calibration.priors import Priors
from routecast.evaluate.points import Point
from routecast.quantity.schema import field, value

__all__ = ["OpenFact", "open_facts", "refitted", "with_shared_queue"]

Interval = tuple[float, float]
_SHARED_QUEUE = "do several cores use one queue under a lock (column shared_queue, yes or no)?"
_ANSWERS = {"no": False, "yes": True}
_MIN_WIDTH_CHANGE = 0.1
"""Relative change of an interval's logarithmic width from which a question is worth asking."""


@value
class OpenFact:
    """A fact that the points leave open, with the 95 % interval of a rate without it and for each answer."""

    name: str = field("Column of a table of points for the fact")
    question: str = field("Question to the user")
    cores: int = field("Number of cores whose rate is compared")
    interval_pps: Interval = field("Interval without the fact, frames/s")
    intervals_pps: Mapping[str, Interval] = field("Interval for each value of the column, frames/s")

    @property
    def text(self) -> str:
        """The question, and both answers."""
        count = f"{self.cores} core{'s' if self.cores != 1 else ''}"
        answers = "; ".join(
            f"{self.name} = {answer}: {_format_interval(ends)}" for answer, ends in self.intervals_pps.items()
        )
        return f"{self.question} Not stated, {count} forward {_format_interval(self.interval_pps)}; {answers}"


def open_facts(
    fitted: FittedRouter,
    points: Sequence[Point],
    *,
    noise_ratio: float | None = None,
    priors: Priors | None = None,
    refits: Mapping[str, FittedRouter] | None = None,
) -> tuple[OpenFact, ...]:
    """Return the open facts that would change the interval of the point with the most cores.

    ``noise_ratio`` and ``priors`` are those of the :func:`routecast.calibration.fit` that returned ``fitted``;
    ``refits``: what :func:`refitted` returns for them, if it is known.
    """
    point = max(points, key=lambda point: point.cores, default=None)
    if point is None or not is_open(fitted):
        return ()
    if refits is None:
        refits = refitted(fitted, noise_ratio=noise_ratio, priors=priors)
    intervals = {answer: _interval(refit, point) for answer, refit in refits.items()}
    present = _interval(fitted, point)
    if all(abs(_log_width(ends) / _log_width(present) - 1.0) < _MIN_WIDTH_CHANGE for ends in intervals.values()):
        return ()
    return (
        OpenFact(
            name="shared_queue",
            question=_SHARED_QUEUE,
            cores=point.cores,
            interval_pps=present,
            intervals_pps=intervals,
        ),
    )


def is_open(fitted: FittedRouter) -> bool:
    """Whether the points leave a fact open."""
    return all(point.layout.shared_queue is None for point in fitted.points)


def refitted(
    fitted: FittedRouter, *, noise_ratio: float | None = None, priors: Priors | None = None
) -> dict[str, FittedRouter]:
    """Return the calibration for each answer to the open fact; none if no fact is open."""
    if not is_open(fitted):
        return {}
    answers = {
        answer: fit(with_shared_queue(fitted.points, is_shared), noise_ratio=noise_ratio, priors=priors)
        for answer, is_shared in _ANSWERS.items()
    }
    return {answer: replace(refit, carry=fitted.carry) for answer, refit in answers.items()}


def with_shared_queue(points: Sequence[Point], is_shared: bool) -> list[Point]:
    """Return the points with a statement on whether the cores share a queue."""
    return [replace(point, layout=replace(point.layout, shared_queue=is_shared)) for point in points]


def _interval(fitted: FittedRouter, point: Point) -> Interval:
    (prediction,) = fitted.predict([point])
    return prediction.low_pps, prediction.high_pps


def _log_width(ends: Interval) -> float:
    return math.log(ends[1] / ends[0])


def _format_interval(ends: Interval) -> str:
    return f"{ends[0] / 1e6:.4g} to {ends[1] / 1e6:.4g} Mpps"
