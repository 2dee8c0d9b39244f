"""Sentences that warn of a calibration: rows that contradict each other or the laws, rates that nobody measured.

A wrong unit or row is apart from the other warnings, because no calibration survives it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from routecast.calibration._rate_draws import falls, useful_core_pps
from routecast.calibration.score import Prediction
from routecast.evaluate.points import Point

if TYPE_CHECKING:
    from routecast.calibration.fitted import FittedRouter

__all__ = ["contradictions_of", "fall_sentence", "hump_sentence", "warnings_of"]

_LEAP_RATIO = 2.0
"""Ratio of rates per core, or of longer to shorter frames, above which a unit or a row of the table is wrong."""
_WRONG_UNIT_RATIO = 5.0
"""Ratio of a row to what the others give, or of its repetitions, that no disturbance explains: bytes for bits are 8."""
_MIN_CORE_COUNTS = 3
_BEYOND_SD = 3.0
"""Standard deviations of a measurement beyond the measured rates beside it, from which a prediction is named."""
_LARGE_DISCREPANCY = 0.25
"""Scale from which a discrepancy is as large as the effect that a law explains."""


def warnings_of(router: FittedRouter) -> tuple[str, ...]:
    """Return sentences on points that contradict each other or every law."""
    sentences = [
        f"{_describe(prediction.point)} is treated as an outlier: "
        f"the other points give {prediction.throughput_pps / 1e6:.4g} Mpps; measure it again"
        for prediction in router.predict(router.outliers)
        if not _is_of_another_unit(prediction)
    ]
    others = [point for point in router.points if point not in router.outliers]
    sentences += [
        f"{_describe(prediction.point)} lies outside its own 95 % interval, "
        f"{prediction.low_pps / 1e6:.4g} to {prediction.high_pps / 1e6:.4g} Mpps"
        for prediction in router.predict(others)
        if not prediction.low_pps <= prediction.point.throughput_pps <= prediction.high_pps
    ]
    sentences += [
        f"{_describe(more)} is less than {_describe(fewer)}: with more cores it may fall further"
        for fewer, more in falls(others)
    ]
    sentences += router.contradictions
    sentences += router.caps.texts
    large_discrepancy_weight = sum(
        fitted_law.weight * float(np.mean(router.discrepancy.smooth[fitted_law.cells] >= _LARGE_DISCREPANCY))
        for fitted_law in router.fitted
    )
    if large_discrepancy_weight > 0.5 and len({point.working_cores for point in others}) >= _MIN_CORE_COUNTS:
        sentences.append("no law of contention fits the points: measure between them before you rely on a prediction")
    return tuple(sentences)


def contradictions_of(router: FittedRouter) -> tuple[str, ...]:
    """Return sentences on rows that cannot both be right: a wrong unit or row, which no calibration survives."""
    others = [point for point in router.points if point not in router.outliers]
    look = "look for a wrong unit or row"
    return (
        *(f"{_describe(more)} contradicts {_describe(few)}: {why}; {look}" for few, more, why in _leaps(others)),
        *(
            f"{_describe(high)} contradicts {_describe(low)} under the same conditions: {look}"
            for low, high in router.spreads
            if high.throughput_pps > _WRONG_UNIT_RATIO * low.throughput_pps
        ),
        *(
            f"{_describe(prediction.point)} contradicts the other rows, which give "
            f"{prediction.throughput_pps / 1e6:.4g} Mpps there: {look}"
            for prediction in router.predict(router.outliers)
            if _is_of_another_unit(prediction)
        ),
    )


def hump_sentence(prediction: Prediction, calibrated: Sequence[Point], noise_ratio: float) -> str | None:
    """Return a sentence if a prediction leaves the range of the measured rates beside it."""
    point, rate_pps = prediction.point, prediction.throughput_pps
    own = [p for p in calibrated if p.frame_bytes == point.frame_bytes]
    fewer = [p for p in own if p.working_cores < point.working_cores]
    more = [p for p in own if p.working_cores > point.working_cores]
    if not fewer or not more:
        return None
    ends = max(fewer, key=lambda p: p.working_cores), min(more, key=lambda p: p.working_cores)
    low, high = sorted(p.throughput_pps for p in ends)
    beyond = math.exp(_BEYOND_SD * noise_ratio)
    if low / beyond <= rate_pps <= high * beyond:
        return None
    which = "above" if rate_pps > high else "below"
    return (
        f"{_cores(point)} are predicted with {rate_pps / 1e6:.4g} Mpps, {which} the measured rates of "
        f"{_cores(ends[0])} and {_cores(ends[1])}, {ends[0].throughput_pps / 1e6:.4g} and "
        f"{ends[1].throughput_pps / 1e6:.4g} Mpps: nobody measured that; measure there"
    )


def fall_sentence(largest: Point, calibrated: Point, chance: float, *, is_locked: bool) -> str:
    """Return that more cores may forward less, and the cause; ``is_locked``: whether a law with a collapse fits."""
    cause = "a lock or a queue" if is_locked else "a cache or a bus"
    queue_hint = ", or set shared_queue = no if each core has its own queues" if is_locked else ""
    return (
        f"{_cores(largest)} may forward less than {_cores(calibrated)} do, with a chance of {chance:.0%}: {cause} "
        f"that all cores share can slow them down; measure between them{queue_hint}"
    )


def _is_of_another_unit(prediction: Prediction) -> bool:
    """Whether a measured rate is so far off its prediction that its unit or its row is wrong."""
    times = prediction.point.throughput_pps / prediction.throughput_pps
    return max(times, 1.0 / times) > _WRONG_UNIT_RATIO


def _leaps(points: Sequence[Point]) -> Iterator[tuple[Point, Point, str]]:
    """Yield pairs of points with contradictory rates, and the reason."""
    for few, more in itertools.pairwise(sorted(points, key=lambda p: (p.frame_bytes, p.working_cores))):
        core_ratio = useful_core_pps(more) / useful_core_pps(few)
        if few.frame_bytes == more.frame_bytes and core_ratio > _LEAP_RATIO:
            yield few, more, f"each core would forward {core_ratio:.3g} times as much"
    for short, long in itertools.pairwise(sorted(points, key=lambda p: (p.working_cores, p.frame_bytes))):
        times = long.throughput_pps / short.throughput_pps
        if short.working_cores == long.working_cores and times > _LEAP_RATIO:
            yield (short, long, f"the rate of longer frames would be {times:.3g} times as high")


def _describe(point: Point) -> str:
    return f"the rate of {_cores(point)} at {point.frame_bytes:g} B ({point.throughput_pps / 1e6:.4g} Mpps)"


def _cores(point: Point) -> str:
    return f"{point.working_cores} core{'s' if point.working_cores > 1 else ''}"
