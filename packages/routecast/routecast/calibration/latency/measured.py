"""The latency of a router whose table has latency rows: one curve, drawn with the capacity of the same calibration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as plain_field
from itertools import pairwise
from statistics import stdev
from typing import Final

import numpy as np
from numpy.typing import NDArray

from routecast.calibration.counts import cores
from routecast.calibration.fitted import FittedRouter, at_cores
from routecast.calibration.latency.carried import SizedLatency, byte_time, noise_of_cores
from routecast.calibration.latency.curve import Curve, LatencyRow, fit_curve, mixture_quantiles
from routecast.calibration.latency.prior import STATISTICS, Statistic, prior_of
from routecast.errors import QuantityProblem
from routecast.evaluate.points import Point, RateKind
from routecast.quantity import format_duration
from routecast.quantity.comparison import LEVELS, Intervals

__all__ = ["LatencyAt", "MeasuredLatency", "chances_of_counts", "disturbed_rows", "load_pps_of", "measured_latency"]

Floats = NDArray[np.float64]

_BEYOND: Final = 0.95
"""Above this share of the capacity nothing is stated without a row there: a few percent of load move it tenfold."""
_SAME_SIZE: Final = 0.02
_SAME_LOAD: Final = 0.01
"""Rows of equal conditions whose loads differ by no more, relative to each other, are repeats."""
_IN_SERIES: Final = math.log(1.3)
"""Widening of a quantile of several devices in series, of which an equal share is taken as that of one of them.

Of two independent exponential delays, half the p99 of the sum is 0.72 times the p99 of one of them.
"""
_LOWER: Final[Mapping[str, tuple[Statistic, ...]]] = {"p95": ("p50",), "p99": ("p50", "p95")}
"""Quantiles below a quantile."""
_LEAST_LOAD: Final = 1e-4
_ONE_LOAD: Final = 0.03
_KNEE: Final = 0.8
_CONTRADICTS: Final = math.log(2.0)
_GRID: Final = 33
_CAPACITIES: Final = 10
_IN_OVERLOAD: Final = 3.0
_LEAST_WEIGHT: Final = 1e-5
_STATED: Final = 0.95
_UNKNOWN: Final = (math.nan, math.nan)
_PROBABILITIES: Final = (0.5, *(0.5 * (1.0 + sign * level) for level in LEVELS for sign in (-1.0, 1.0)))
"""Of the median, then of the lower and the upper end of each interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyAt:
    """A latency at a load, s, with its intervals by coverage probability.

    ``statistic`` is one of a row, also one that is never predicted. Where nothing is stated, the latency is NaN and
    ``reason`` says why; beyond the rows ``ring_s`` has what a full ring would take, with its 95 % interval.
    """

    statistic: str
    load_ratio: float
    latency_s: float = math.nan
    intervals: Intervals = plain_field(default_factory=dict)
    reason: str = ""
    ring_s: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    """Lower end, median and upper end."""

    @property
    def low_s(self) -> float:
        """Lower end of the 95 % interval; NaN without one."""
        return self.intervals.get(_STATED, _UNKNOWN)[0]

    @property
    def high_s(self) -> float:
        """Upper end of the 95 % interval; NaN without one."""
        return self.intervals.get(_STATED, _UNKNOWN)[1]


@dataclass(frozen=True, slots=True)
class MeasuredLatency:
    """The curve of one statistic of a calibrated router, from the latency rows of its table."""

    fitted: FittedRouter
    statistic: Statistic
    conditions: Point
    curve: Curve
    rows: tuple[LatencyRow, ...]
    points: tuple[Point, ...]
    """The points that the rows are of."""
    table: tuple[Point, ...]
    """All points that were given."""
    lower: tuple[Curve, ...] = ()
    """Curves of lower quantiles, which no latency of this one is below."""

    @property
    def _curves(self) -> tuple[Curve, ...]:
        return (self.curve, *self.lower)

    @property
    def highest_load_ratio(self) -> float:
        """The greatest load of a row, as a share of the capacity."""
        return max(row.load_ratio for row in self.rows)

    @property
    def highest_stated_ratio(self) -> float:
        """The greatest share of the capacity at which a latency is stated: beyond 95 % only with a row there."""
        return max(_BEYOND, self.highest_load_ratio)

    def is_stated(self, load_ratio: float) -> bool:
        """Whether a latency is stated at a share of the capacity."""
        return load_ratio <= self.highest_stated_ratio

    @property
    def batch_frames(self) -> int | None:
        """Return the frames of a poll at most, where rows state them; of several the largest."""
        batches = [point.latency.batch_frames for point in self.points if point.latency is not None]
        return max((batch for batch in batches if batch), default=None)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on rows of one load that contradict each other."""
        pairs = sorted(zip(self.rows, self.points, strict=True), key=lambda pair: pair[0].load_ratio)
        return tuple(
            f"{self.statistic} of {format_duration(row.latency_s)} and of {format_duration(other.latency_s)}, both at "
            f"{row.load_ratio:.0%} of the capacity with {cores(point.cores)}, contradict each other: one of the rows "
            "has another unit or load, or is of another machine"
            for (row, point), (other, of_other) in pairwise(pairs)
            if other.load_ratio - row.load_ratio < _ONE_LOAD
            and other.load_ratio < _KNEE
            and (point.cores, point.frame_bytes) == (of_other.cores, of_other.frame_bytes)
            and abs(math.log(other.latency_s / row.latency_s)) > _CONTRADICTS
        )

    def capacities_pps(self, counts: Sequence[int]) -> Floats:
        """Return equally likely draws of the rate with numbers of cores, shape (draws, counts)."""
        return self.fitted.joint_rates_pps([at_cores(self.conditions, count) for count in counts])

    def at(self, capacities_pps: Floats, rate_pps: float) -> LatencyAt:
        """Return the latency at a rate, over equally likely capacities, shape (draws,)."""
        load_ratio = rate_pps / float(np.median(capacities_pps))
        if not self.is_stated(load_ratio):
            rings_s = [curve.quantiles_s(_IN_OVERLOAD, (0.025, 0.5, 0.975)) for curve in self._curves]
            low_s, ring_s, high_s = (float(second) for second in np.max(rings_s, axis=0))
            reason = (
                f"not known at {load_ratio:.0%} of the capacity: no row is above {self.highest_load_ratio:.0%}, and a "
                f"full ring would take about {format_duration(ring_s)}"
            )
            return LatencyAt(
                statistic=self.statistic, load_ratio=load_ratio, reason=reason, ring_s=(low_s, ring_s, high_s)
            )
        ratios = np.quantile(rate_pps / capacities_pps, np.linspace(0.05, 0.95, _CAPACITIES))
        loads, counts = np.unique(np.maximum(ratios, _LEAST_LOAD), return_counts=True)
        # The greatest of quantiles that are high together (comonotone) has the greatest of their quantiles.
        logs = np.max([_log_quantiles(curve, loads, counts) for curve in self._curves], axis=0)
        latency_s, *ends = (float(second) for second in np.exp(logs))
        intervals = dict(zip(LEVELS, zip(ends[::2], ends[1::2], strict=True), strict=True))
        return LatencyAt(statistic=self.statistic, load_ratio=load_ratio, latency_s=latency_s, intervals=intervals)

    def with_cores(self, count: int) -> MeasuredLatency:
        """Return the curve with another number of cores: rows count for more the nearer theirs is to it."""
        if count == self.conditions.cores:
            return self
        curve = measured_latency(self.fitted, self.table, at_cores(self.conditions, count), self.statistic)
        assert curve is not None
        return curve

    def at_rate(self, rate_pps: float, cores_count: int) -> LatencyAt:
        """Return the latency at a rate with a number of cores, whose capacity is as uncertain as the rows leave it."""
        return self.with_cores(cores_count).at(self.capacities_pps([cores_count])[:, 0], rate_pps)

    def at_load(self, load_ratio: float) -> LatencyAt:
        r"""Return the latency at a share of the capacity.

        Raises QuantityProblem: the share is not above 0.

        Examples
        --------
        >>> from routecast.calibration import fit
        >>> from routecast.evaluate.point_table import parse_points
        >>> rows = "1,5.1,0.1,12\n1,5.1,0.8,31\n"
        >>> points = parse_points("cores,throughput_mpps,latency_load_ratio,latency_p50_us\n" + rows)
        >>> at = measured_latency(fit(points), points, points[0], "p50").at_load(0.5)
        >>> at.low_s < at.latency_s < at.high_s, 12e-6 < at.latency_s < 31e-6
        (True, True)
        """
        if not load_ratio > 0.0:
            raise QuantityProblem(f"{load_ratio}", f"got a load of {load_ratio} of the capacity: give more than 0")
        return self.at(np.ones(1), load_ratio)

    def chances(self, capacities_pps: Floats, rate_pps: float, goal_pps: float, limit_s: float) -> Floats:
        """Return the probabilities that capacities, shape (draws, n), reach a rate and the latency keeps a bound.

        Both are of one draw of the router. Where nothing is stated of the latency, the bound counts as missed.
        """
        grid = np.geomspace(_LEAST_LOAD, self.highest_stated_ratio, _GRID)
        below = np.array(
            [min(curve.probability_below(float(ratio), limit_s) for curve in self._curves) for ratio in grid]
        )
        kept = np.interp(np.log(rate_pps / capacities_pps), np.log(grid), below, right=0.0)
        return np.asarray((kept * (capacities_pps >= goal_pps)).mean(axis=0))


def chances_of_counts(
    curves: Sequence[MeasuredLatency], capacities_pps: Floats, rate_pps: float, goal_pps: float, limit_s: float
) -> Floats:
    """Return, for each number of cores with its curve, the probability that it reaches ``goal_pps`` and keeps a bound.

    ``capacities_pps``: equally likely draws, shape (draws, counts); the bound is on the latency at ``rate_pps``.
    """
    columns = (capacities_pps[:, [number]] for number in range(len(curves)))
    return np.concatenate(
        [curve.chances(of_count, rate_pps, goal_pps, limit_s) for curve, of_count in zip(curves, columns, strict=True)]
    )


def _log_quantiles(curve: Curve, loads: Floats, counts: NDArray[np.int_]) -> Floats:
    """Return quantiles of ln latency over loads, each as often as it was drawn."""
    mixtures = [curve.distribution(float(load)) for load in loads]
    means, deviations, weights = (np.concatenate(parts) for parts in zip(*mixtures, strict=True))
    weights = weights * np.repeat(counts, len(weights) // len(counts))
    counting = weights > _LEAST_WEIGHT * weights.max()
    chosen = weights[counting] / weights[counting].sum()
    return mixture_quantiles(means[counting], deviations[counting], chosen, np.array(_PROBABILITIES))


def measured_latency(
    fitted: FittedRouter, points: Sequence[Point], conditions: Point, statistic: str
) -> MeasuredLatency | None:
    """Return the curve of a statistic under conditions; None if no row measured it, or it is never predicted.

    Rows of all frame sizes count where two sizes were measured at about the same low share of the capacity, so that
    they tell what a byte takes; else those of the size that is asked, where there are any. Rows of other sizes are
    carried (:mod:`routecast.calibration.latency.carried`) and count for less; where there are others, none is that is
    beyond 95 % of the capacity. Of each row the tester's own delay is subtracted, and
    the latency is that of one device: an equal share of several in series. A row's noise is that of the law, or the
    spread of its repeats if that is larger (rows of the same conditions and load), with the tester's steps of time:
    a time that is rounded to a step has the variance step² / 12. Disturbed rows are left out. A quantile is no less
    than the lower ones that rows measured.
    """
    named = next((known for known in STATISTICS if known == statistic), None)
    if named is None:
        return None
    timed = [(point, _of_one_s(point, statistic)) for point in _timed(points, statistic) if not point.disturbed]
    if not timed:
        return None
    prior = prior_of(named, rate_kind=_capacity_kind(fitted))
    loads = [max(load_pps_of(point) / _capacity_pps(fitted, point), _LEAST_LOAD) for point, _ in timed]
    measured = _with_noise(timed, loads, named, prior.noise)
    per_byte = byte_time(measured, link_bps=conditions.link_bps)
    same = [math.isclose(row.frame_bytes, conditions.frame_bytes, rel_tol=_SAME_SIZE) for row in measured]
    usable = [
        is_same or ((per_byte.is_measured or not any(same)) and row.load_ratio <= _BEYOND)
        for row, is_same in zip(measured, same, strict=True)
    ]
    chosen = [n for n, is_usable in enumerate(usable) if is_usable] or list(range(len(measured)))
    rows = []
    for number in chosen:
        point, row = timed[number][0], measured[number]
        latency_s, noise = per_byte.carried(row, conditions.frame_bytes)
        noise = math.hypot(noise, noise_of_cores(row.load_ratio, row.cores, conditions.cores))
        knee = prior_of(named, rate_kind=kind).knee if (kind := _kind_of(point)) else None
        rows.append(LatencyRow(load_ratio=row.load_ratio, latency_s=latency_s, noise_ratio=noise, knee=knee))
    return MeasuredLatency(
        fitted=fitted,
        statistic=named,
        conditions=conditions,
        curve=fit_curve(rows, prior, frame_s=fitted.frame_s, ring_frames=_ring_of([timed[n][0] for n in chosen])),
        rows=tuple(rows),
        points=tuple(timed[number][0] for number in chosen),
        table=tuple(points),
        lower=tuple(
            below.curve
            for lower in _LOWER.get(named, ())
            if (below := measured_latency(fitted, points, conditions, lower)) is not None
        ),
    )


def _ring_of(points: Sequence[Point]) -> float | None:
    """Return the frames in front of one that finds a full ring, where rows state their ring; of several the largest."""
    rings = [point.latency.ring_frames for point in points if point.latency is not None]
    return max((ring for ring in rings if ring), default=None)


def _with_noise(
    timed: Sequence[tuple[Point, float]], loads: Sequence[float], statistic: Statistic, noise: float
) -> list[SizedLatency]:
    """Return the rows with their noise: the law's or that of repeats, of the tester's steps, of devices in series."""
    rows = []
    for (point, seconds), load_ratio, spread in zip(timed, loads, _spreads_of_repeats(timed, loads), strict=True):
        assert point.latency is not None
        devices = point.latency.devices
        steps = point.latency.resolution_s / math.sqrt(12.0) / devices / seconds
        in_series = _IN_SERIES if devices > 1 and statistic != "mean" else 0.0
        rows.append(
            SizedLatency(
                frame_bytes=point.frame_bytes,
                load_ratio=load_ratio,
                latency_s=seconds,
                noise_ratio=math.hypot(max(noise, spread), steps, in_series),
                cores=point.cores,
                devices=devices,
            )
        )
    return rows


def disturbed_rows(points: Sequence[Point], statistic: str) -> tuple[Point, ...]:
    """Return the rows that measured a statistic, where all of them were disturbed; none if a row was not."""
    timed = _timed(points, statistic) if statistic in STATISTICS else ()
    return timed if all(point.disturbed for point in timed) else ()


def _timed(points: Sequence[Point], statistic: str) -> tuple[Point, ...]:
    """Return the points whose latency has a statistic."""
    return tuple(point for point in points if point.latency is not None and math.isfinite(point.latency.of(statistic)))


def _of_one_s(point: Point, statistic: str) -> float:
    """Return what one device takes, in seconds: without the tester's own delay, an equal share of those in series."""
    assert point.latency is not None
    return (point.latency.of(statistic) - point.latency.tester_s) / point.latency.devices


def _spreads_of_repeats(timed: Sequence[tuple[Point, float]], loads: Sequence[float]) -> list[float]:
    """Return, for each row, the standard deviation of the logarithm over its repeats; 0 for a row without any."""
    spreads = []
    for (point, _), load in zip(timed, loads, strict=True):
        logs = [
            math.log(seconds)
            for (other, seconds), other_load in zip(timed, loads, strict=True)
            if other.conditions == point.conditions and math.isclose(load, other_load, rel_tol=_SAME_LOAD)
        ]
        spreads.append(stdev(logs) if len(logs) > 1 else 0.0)
    return spreads


def load_pps_of(point: Point) -> float:
    """Return the rate at which the latency of a row was measured, frames/s; the row has one."""
    assert point.latency is not None
    if math.isfinite(point.latency.load_pps):
        return point.latency.load_pps
    return point.latency.load_ratio * point.throughput_pps


def _kind_of(point: Point) -> RateKind:
    """Return the kind of the rate that a row's load is a share of; empty: not stated."""
    return (point.latency.load_of if point.latency is not None else "") or point.rate_kind


def _capacity_kind(fitted: FittedRouter) -> RateKind:
    """Return the kind of most of the calibrating rates that state one, which is the kind of the capacities."""
    kinds: Counter[RateKind] = Counter(kind for point in fitted.points if (kind := _kind_of(point)))
    return kinds.most_common(1)[0][0] if kinds else ""


def _capacity_pps(fitted: FittedRouter, point: Point) -> float:
    """Return what the router forwards under the conditions of a row: as measured there, else as predicted."""
    measured = [
        other.throughput_pps
        for other in (point, *fitted.points)
        if math.isfinite(other.throughput_pps) and other.conditions == point.conditions
    ]
    return measured[0] if measured else fitted.predict([point])[0].throughput_pps
