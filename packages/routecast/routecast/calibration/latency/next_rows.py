"""The latency rows to measure next: near the load of a target, then in overload.

Of each question, the latency at the load of the target and that of a full ring, the row is chosen after which the
expected 95 % interval is narrowest. As for rates (:mod:`routecast.calibration.next_points`), joint draws of the curve
are weighted by what each possible row would show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from routecast.calibration.counts import cores
from routecast.calibration.fitted import CONFIDENCE_RATIO, FittedRouter, at_cores
from routecast.calibration.latency.curve import Curve, LatencyRow, fit_curve
from routecast.calibration.latency.measured import chances_of_counts, measured_latency
from routecast.calibration.latency.prior import STATISTICS, Statistic, prior_of
from routecast.calibration.next_points import describe_precision, rank
from routecast.errors import QuantityProblem
from routecast.evaluate.plain import plain
from routecast.evaluate.points import Point
from routecast.evaluate.targets import Target as Bound
from routecast.quantity import format_pps

__all__ = ["LatencyAdvice", "NextLatency", "advise_latency"]

Floats = NDArray[np.float64]

_LOADS: Final = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)
_IN_OVERLOAD: Final = 1.2
_FULL_RING: Final = 3.0
"""Shares of the capacity: of a row in overload, and of a ring that is full for certain."""
_SAME_LOAD: Final = 0.03
_DRAWS: Final = 2000
_WORTH: Final = 0.9
"""Expected interval over the present one, as logarithms, below which a row is worth its time."""
_AS_FACTOR: Final = math.log(4.0)
_UNMEASURED: Final = LatencyRow(load_ratio=1e-4, latency_s=9e-6, noise_ratio=0.8)
"""What is known without any row: a fixed path of 9 us, times or over five with 95 %. It takes 4 us with one card and
evenly spaced frames, and 20 us with two devices in series (TinyNF, CSIT 17.01)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextLatency:
    """A load at which to measure a latency, and the width of the interval of ``subject``, ln, before and after it."""

    subject: str
    cores: int
    load_pps: float
    load_ratio: float
    width_before: float
    width_after: float

    def __str__(self) -> str:
        return (
            f"at {format_pps(self.load_pps)} with {cores(self.cores)} ({self.load_ratio:.0%} of the capacity): "
            f"{self.subject} is then expected to be known within {_precision(self.width_after)}, now "
            f"within {_precision(self.width_before)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyAdvice:
    """The rows to measure for a bound on a latency at a rate, in their order.

    ``cores`` are the fewest that meet rate and bound with a probability of 95 %, or else those that meet them most
    probably; ``load_ratio`` is their load at the rate, as a share of the capacity. ``has_rows``: whether a row of the
    statistic is there.
    """

    bound: Bound
    cores: int
    rate_pps: float
    load_ratio: float
    has_rows: bool
    rows: tuple[NextLatency, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to measure, and why."""
        if self.load_ratio >= 1.0:
            return (f"no row of latency is named: {format_pps(self.rate_pps)} are more than {cores(self.cores)} carry",)
        if not self.rows:
            load = f"{format_pps(self.rate_pps)} with {cores(self.cores)}"
            return (f"no further row narrows the {self.bound.quantity} at {load} by a tenth",)
        words = ("measure the", "then the")
        return tuple(f"{word} {self.bound.quantity} {row}" for word, row in zip(words, self.rows, strict=False))

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "bound": str(self.bound),
            **plain(
                {
                    "cores": self.cores,
                    "rate_pps": self.rate_pps,
                    "load_ratio": self.load_ratio,
                    "has_rows": self.has_rows,
                    "next": self.rows,
                }
            ),
            "sentences": list(self.sentences),
        }


def advise_latency(
    fitted: FittedRouter,
    points: Sequence[Point],
    conditions: Point,
    bound: Bound,
    rate_pps: float,
    *,
    counts: Sequence[int],
    most_cores: int,
) -> LatencyAdvice:
    """Return the latency rows that narrow a latency at a rate most.

    Parameters
    ----------
    fitted : FittedRouter
    points : sequence of Point
        All rows of the series; those with a latency are used.
    conditions : Point
        Frames and links of the rate.
    bound : routecast.evaluate.targets.Target
        On a latency.
    rate_pps : float
    counts : sequence of int
        Numbers of cores that may meet rate and bound.
    most_cores : int
        Largest number of cores that can be measured. A row has the same share of the capacity with fewer cores.

    Raises
    ------
    routecast.errors.QuantityProblem
        The quantity of the bound is never predicted.
    """
    statistic = next((name for name in STATISTICS if name == bound.quantity), None)
    if statistic is None:
        message = f"no row predicts the {bound.quantity} of others: bound one of {', '.join(STATISTICS)}"
        raise QuantityProblem(str(bound), message)
    measured = measured_latency(fitted, points, conditions, statistic)
    capacities_pps = fitted.joint_rates_pps([at_cores(conditions, count) for count in counts])
    chances = (
        chances_of_counts(
            [measured.with_cores(count) for count in counts], capacities_pps, rate_pps, rate_pps, bound.limit
        )
        if measured is not None
        else (capacities_pps >= rate_pps).mean(axis=0)
    )
    enough = np.flatnonzero(chances >= CONFIDENCE_RATIO)
    chosen = int(enough[0]) if len(enough) else int(np.lexsort((np.median(capacities_pps, 0), chances))[-1])
    measured_cores = min(counts[chosen], most_cores)
    chosen_pps = float(np.median(capacities_pps[:, chosen]))
    measured_pps = chosen_pps
    if measured_cores != counts[chosen]:
        measured_pps = float(np.median(fitted.joint_rates_pps([at_cores(conditions, measured_cores)])))
    load_ratio = rate_pps / chosen_pps
    curve = _unmeasured(fitted, statistic) if measured is None else measured.with_cores(counts[chosen]).curve
    done = [] if measured is None else [row.load_ratio for row in measured.rows]
    subjects = (
        (f"the {bound.quantity} of the target", load_ratio),
        (f"the {bound.quantity} of a full ring", _FULL_RING),
    )
    return LatencyAdvice(
        bound=bound,
        cores=counts[chosen],
        rate_pps=rate_pps,
        load_ratio=load_ratio,
        has_rows=measured is not None,
        rows=tuple(
            NextLatency(
                subject=subject,
                cores=measured_cores,
                load_pps=load * measured_pps,
                load_ratio=load,
                width_before=before,
                width_after=after,
            )
            for subject, load, before, after in (_chosen(curve, subjects, done) if load_ratio < 1.0 else ())
        ),
    )


def _chosen(
    curve: Curve, subjects: Sequence[tuple[str, float]], done: Sequence[float]
) -> Iterator[tuple[str, float, float, float]]:
    """Yield for each subject the load of its best row, and the widths before and after, where a row is worth it."""
    measured = list(done)
    for subject, target in subjects:
        possible = [*_LOADS, _IN_OVERLOAD, *([target] if target < 1.0 else [])]
        loads = sorted(load for load in set(possible) if all(abs(load - other) > _SAME_LOAD for other in measured))
        drawn = curve.joint_draws(np.array([*loads, target]), _DRAWS)
        best = _best(loads, drawn, curve.prior_noise)
        if best is not None and best[2] < _WORTH * best[1]:
            measured.append(best[0])
            yield subject, *best


def _best(loads: Sequence[float], drawn: Floats, noise_ratio: float) -> tuple[float, float, float] | None:
    numbered = [Point(cores=number, frame_bytes=64.0, throughput_pps=math.nan) for number in range(1, len(loads) + 1)]
    for row in rank(numbered, drawn[:, :-1], drawn[:, -1:], 1, noise_ratio=noise_ratio):
        return loads[row.point.cores - 1], row.width_before, row.width_after
    return None


def _unmeasured(fitted: FittedRouter, statistic: Statistic) -> Curve:
    return fit_curve([_UNMEASURED], prior_of(statistic), frame_s=fitted.frame_s)


def _precision(log_width: float) -> str:
    """Write half an interval: in percent, or as a factor where it is wide."""
    return describe_precision(log_width) if log_width < _AS_FACTOR else f"a factor of {math.exp(0.5 * log_width):.2g}"
