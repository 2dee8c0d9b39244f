"""Rows of latency in a table of measured points: what trials at a share of the forwarding rate, or at any rate, took.

Each trial is a row of its own: rows of equal conditions and load are repeats, whose spread is the noise of the curve
that :mod:`routecast.calibration.latency` fits, and a disturbed trial is left out of it alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from routecast.errors import QuantityProblem
from routecast.evaluate.points import LATENCY_STATISTICS, Point, PointLatency
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Delay, Trial
from routecast.lab.benchmark._hdr import classes_of_hdr
from routecast.lab.testbed.checks import disturbances
from routecast.load.arrivals import Arrivals
from routecast.load.offered import OfferedLoad
from routecast.quantity import parse_ratio

__all__ = ["LATENCY_COLUMNS", "LatencyShares", "latency_of", "latency_row"]

LATENCY_COLUMNS: Final = (
    *(f"latency_{statistic}_us" for statistic in LATENCY_STATISTICS),
    *("latency_load_pps", "latency_arrivals", "latency_samples"),
)
"""Columns of the rows that are written here; a table without such rows has none of them."""

_LEAST_LOAD_PPS: Final = 10.0
"""Least load of a row, as a table of points has it."""
_MOST_RATIO: Final = 10.0
_TAIL: Final = 0.95
_WORDS: Final = {
    **{word: word for word in ("cbr", "poisson", "on_off", "trace")},
    Arrivals.cbr().text: "cbr",
    Arrivals.poisson().text: "poisson",
    "the arrivals of the trace": "trace",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyShares:
    """Shares of the maximum forwarding rate at which the latency is measured, each ``repeats`` times."""

    ratios: tuple[float, ...]
    repeats: int = 3

    @classmethod
    def parse(cls, text: str, *, repeats: int = 3) -> LatencyShares:
        """Read shares of a rate, such as ``"10%,90%"``.

        Raises QuantityProblem: there is no share, or one is no number of more than 0 and at most 10 (1,000 %).

        Examples
        --------
        >>> LatencyShares.parse("10%, 0.9, 150%").ratios
        (0.1, 0.9, 1.5)
        """
        ratios = tuple(parse_ratio(part.strip(), beyond_one=True) for part in text.split(",") if part.strip())
        if not ratios or max(ratios) > _MOST_RATIO:
            raise QuantityProblem(text, f'"{text[:60]}": give shares of the rate up to 1000 %, such as 10%,90%')
        return cls(ratios=tuple(dict.fromkeys(ratios)), repeats=repeats)

    def trials(
        self, evaluator: Evaluator, load: OfferedLoad, capacity_pps: float, duration_s: float
    ) -> Iterator[tuple[float, Trial]]:
        """Offer each share of ``capacity_pps`` for ``duration_s`` and yield it with its trial, repeat by repeat.

        All shares are offered once before any is repeated, so that what comes and goes on the machine shows in the
        spread of the repeats.
        """
        for _ in range(self.repeats):
            for ratio in self.ratios:
                yield ratio, evaluator.trial(load.at(ratio * capacity_pps), duration_s)


def latency_of(trial: Trial) -> PointLatency | None:
    """Return the latency of a trial at the load that was offered; None where it has none, or its load is not known.

    The 95th percentile and the number of frames that were timed come from the histogram, where the trial has it.
    """
    delay = trial.latency
    if delay is None or not _LEAST_LOAD_PPS <= trial.offered_pps < math.inf:
        return None
    p95_s, samples = _of_histogram(delay)
    times = {name: getattr(delay, f"{name}_s", p95_s) for name in LATENCY_STATISTICS}
    # The quantiles of a histogram are the upper ends of its classes, and may exceed the greatest time.
    known: dict[str, Any] = {
        f"{name}_s": min(seconds, times["max"]) if math.isfinite(times["max"]) else seconds
        for name, seconds in times.items()
        if math.isfinite(seconds) and seconds > 0.0
    }
    if not known:
        return None
    return PointLatency(
        load_pps=trial.offered_pps,
        arrivals=_WORDS.get(trial.arrivals, "on_off" if trial.arrivals.startswith("bursts of") else ""),
        samples=samples,
        **known,
    )


def latency_row(point: Point, trial: Trial) -> Point | None:
    """Return the row of a valid trial's latency under the conditions of a point, without a rate; None without latency.

    It has the mark of what disturbed the trial, and never calibrates the rate.
    """
    latency = latency_of(trial) if trial.is_valid else None
    if latency is None:
        return None
    return replace(
        point,
        throughput_pps=math.nan,
        calibrate=False,
        rate_kind=point.rate_kind or "overload",
        disturbed="; ".join(disturbances(trial)),
        standard_error_ratio=None,
        latency=latency,
    )


def _of_histogram(delay: Delay) -> tuple[float, int | None]:
    """Return the 95th percentile in seconds, by the ratio to the median, and the number of frames that were timed."""
    classes: Sequence[tuple[int, int, int]] = classes_of_hdr(delay.hdr_base64) or () if delay.hdr_base64 else ()
    total = sum(count for *_, count in classes)
    if not total:
        return math.nan, None

    def at(ratio: float) -> int:
        passed = 0
        for _, most, count in classes:
            passed += count
            if passed >= ratio * total:
                return most
        return classes[-1][1]

    middle = at(0.5)
    if not (middle > 0 and delay.p50_s > 0.0):
        return math.nan, total
    p95_s = delay.p50_s * at(_TAIL) / middle
    # Both ends may be rounded otherwise.
    p95_s = max(p95_s, delay.p50_s)
    return (min(p95_s, delay.p99_s) if math.isfinite(delay.p99_s) else p95_s), total
