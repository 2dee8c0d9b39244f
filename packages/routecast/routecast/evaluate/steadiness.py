"""The verdict on a rate over time: whether it is steady, from which instant on, and its mean from that instant.

Four tests follow each other. The trial must count enough frames; the transient must end within the first half of the
trial (MSER-5); the rest must not drift (regression on batch means); and the rest must have one level instead of two.
A series that passes has a mean with a 95 % interval; a series that fails has a reason.

::

    rate |           mean, interval
         |         ,-~-~-~-~-~-~-~-
         |      ,-'
         |   ,-'   ^ steady from here on
         | ,'
         +------------------------- time
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from statistics import fmean
from typing import Literal

import numpy as np

from routecast.errors import RoutecastError
from routecast.evaluate.trial import Trial
from routecast.quantity import format_duration, format_ratio
from routecast.quantity.schema import field, value

__all__ = [
    "STEP_LEVEL",
    "InstantReading",
    "Steadiness",
    "batch_means",
    "greatest_step",
    "latency_unsteady",
    "mser5",
    "reading",
    "sampled_sojourn_s",
    "steadiness",
    "steadiness_of",
    "with_steady_rates",
]


BATCHES = 20
"""Batches of a measured rate. The simulator's own intervals use as many batches as are uncorrelated (S10)."""
_RESOLUTION = 1e-9
"""Differences below this share of the mean are rounding."""
_MAX_AUTOCORRELATION = 0.9
"""Beyond this autocorrelation 20 batches would count as less than one."""
_MIN_BATCHES_BESIDE_STEP = 3
"""Least number of batches on either side of a step: fewer say nothing about a level."""
_MSER_BATCH = 5
"""Values per mean in MSER-5."""
MIN_FRAMES = 200
"""As ``MIN_FRAMES`` of ``crates/sim/src/settled.rs``: fewer say nothing about a steady state."""
_MIN_PARTS = 40
"""Half of the parts may be the transient, and 20 batches of one part each remain."""
_DRIFT_LEVEL = 0.05
"""Probability that a rate without drift is called drifting."""
STEP_LEVEL = 0.0001
"""A p value below this makes a step. It is the least of many positions, so :data:`_DRIFT_LEVEL` would be too high."""
NEGLIGIBLE_RATIO = 0.005
"""A drift or a step below this share of the mean is ignored, however certain it is. MLRsearch finds a throughput in
CSIT to this width (goal width 0.5 %)."""
_STOPPED_RATIO = 0.01
"""A device has stopped if it forwards nothing for this last share of a measured trial."""
_STOPPED_FRAMES = 10
"""A stop must lose at least this many frames: a burst that overflows a queue at the very end is not a stop."""


@value
class BatchMeans:
    """Statistics of a series from the means of equal batches."""

    mean: float
    half_width: float = field("Half-width of the 95 % interval of the mean")
    rise: float = field("Rise of the fitted straight line over the length of the series; negative where it falls")
    p: float = field("Probability of at least this rise, up or down, in a series without drift")


@value
class Step:
    """The position where a series changes from one level to another, if it has two."""

    at: int = field("First value of the second level")
    rise: float = field("Difference between the mean from the step on and the mean before it")
    p: float = field(
        "Probability of at least this difference there in a series of one level; the least of all positions"
    )


def batch_means(series: Sequence[float], batches: int = BATCHES) -> BatchMeans:
    """Return mean, interval and drift of a series of at least ``batches`` values, from its batch means.

    The drift is the slope of the regression line through the batch means, tested with Student's t. Regression is
    taken rather than the test of Mann and Kendall because it says how much is drifted, not only whether.

    Batch means of a long queue are still alike, so either test finds a drift too often: of 3000 autoregressive
    series (1000 values, coefficient 0.95) without drift, plain regression calls 10 % drifting at the 5 % level,
    Mann-Kendall 10 % too. So 20 batches count as ``20 (1 - r) / (1 + r)`` independent ones (Santer et al. 2000, *J.
    Geophys. Res.* 105(D6), 7337-7356), with r the lag-1 autocorrelation of their residuals from the line and a
    curvature term. (A curvature, such as the rest of a transient, would make neighbours look alike and hide the
    drift.) In so short a series the estimate of r is too low, by ``(1 + 4 r) / 20`` about a mean (Marriott and Pope
    1954, *Biometrika* 41, 390-402) and by about another twentieth for line and curvature. With this correction, 4
    to 7 % are called drifting for coefficients from -0.5 to 0.98, and the interval holds the mean in 95 to 97 %. An
    r below 0 counts as 0, since it would claim more than 20 independent batches.

    The first values, which do not fill a batch, count for the mean alone.
    """
    size = len(series) // batches
    values = np.asarray(series, dtype=float)
    mean = float(values.mean())
    means = values[len(series) - size * batches :].reshape(batches, size).mean(axis=1)
    deviations = means - means.mean()
    times = np.arange(batches) - (batches - 1) / 2.0
    curvature = times**2 - np.mean(times**2)
    slope = float(times @ deviations / (times @ times))
    residuals = deviations - slope * times - (curvature @ deviations / (curvature @ curvature)) * curvature
    if float(np.abs(deviations).max()) <= _RESOLUTION * abs(mean):
        return BatchMeans(mean=mean, half_width=0.0, rise=0.0, p=1.0)
    return BatchMeans(
        mean=mean,
        half_width=_half_width(deviations),
        rise=slope * len(series) / size,
        p=_drift_p(slope, times, residuals, mean),
    )


def greatest_step(series: Sequence[float], batches: int = BATCHES) -> Step:
    """Return the most likely position of a change of level in a series of at least ``batches`` values.

    The regression line does not show a step: its residuals look so alike that twenty batches count as two. So the
    function tries each position with three batches on either side and compares the means of both sides by Student's t.
    Batches count as in :func:`batch_means`, for the residuals from the *two* means.

    The least of fifteen p values is small by chance more often than a single p value: of 1000 autoregressive series
    (1000 values) without a step and without a drift that the line shows, 0.2 % come below 0.001 for a coefficient of 0,
    0.4 % for 0.95 and 0.7 % for 0.98; at most 0.3 % below 0.0001.
    """
    size = len(series) // batches
    first = len(series) - size * batches
    values = np.asarray(series, dtype=float)
    means = values[first:].reshape(batches, size).mean(axis=1)
    scale = abs(float(values.mean()))
    steps = [
        _step(means, place, scale) for place in range(_MIN_BATCHES_BESIDE_STEP, batches - _MIN_BATCHES_BESIDE_STEP + 1)
    ]
    rise, p, place = min(steps, key=lambda step: (step[1], -abs(step[0])))
    return Step(at=first + size * place, rise=rise, p=p)


def _step(means: np.ndarray, place: int, scale: float) -> tuple[float, float, int]:
    from scipy.special import stdtr

    before, after = means[:place], means[place:]
    rise = float(after.mean() - before.mean())
    rest = np.concatenate([before - before.mean(), after - after.mean()])
    if float(np.abs(rest).max()) <= _RESOLUTION * scale:
        return rise, 1.0 if abs(rise) <= _RESOLUTION * scale else 0.0, place
    effective = _effective_count(rest, 1)
    degrees = max(effective - 2.0, 1.0)
    variance = float(rest @ rest) / degrees * means.size / effective
    error = math.sqrt(variance * (1.0 / before.size + 1.0 / after.size))
    return rise, 2.0 * float(stdtr(degrees, -abs(rise) / error)), place


def _effective_count(residuals: np.ndarray, fitted: int) -> float:
    """Return the effective number of independent residuals after a fit of ``fitted`` curves beside the mean."""
    count = residuals.size
    r = float(residuals[1:] @ residuals[:-1] / (residuals @ residuals))
    r = min(max(r + (1.0 + 0.5 * fitted + 4.0 * r) / count, 0.0), _MAX_AUTOCORRELATION)
    return count * (1.0 - r) / (1.0 + r)


def _half_width(residuals: np.ndarray) -> float:
    from scipy.special import stdtrit

    effective = _effective_count(residuals, 0)
    degrees = max(effective - 1.0, 1.0)
    variance = float(residuals @ residuals) / degrees
    return float(stdtrit(degrees, 0.975)) * math.sqrt(variance / effective)


def _drift_p(slope: float, times: np.ndarray, residuals: np.ndarray, mean: float) -> float:
    from scipy.special import stdtr

    if float(np.abs(residuals).max()) <= _RESOLUTION * abs(mean):
        return 0.0  # line and curvature fit the series exactly
    degrees = max(_effective_count(residuals, 2) - 3.0, 1.0)
    error = math.sqrt(float(residuals @ residuals) / degrees / float(times @ times))
    return 2.0 * float(stdtr(degrees, -abs(slope / error)))


_MIN_VALUES = 4 * _MSER_BATCH


def mser5(series: Sequence[float]) -> int | None:
    """Return the number of leading values in the transient, by MSER-5 (semantics S10); None if it does not end.

    This is ``mser5`` of ``crates/sim/src/steady.rs``, for series that the simulator did not make.
    ``tests/evaluate/test_steadiness.py`` holds the series of that file's tests too: both must cut alike. Latencies have
    bursts, which rates do not have. The simulator therefore cuts latencies only where a rank test, too, finds that the
    values before the cut differ from the rest.

    MSER-5 (White 1997, *Simulation* 69(6), 323-334; with means of five: White, Cobb and Spratt 2000, Proc. Winter
    Simulation Conf., 755-760) takes the cut d that minimises the squared standard error of the mean after the cut,

        ``sum over i > d of (y_i - mean_d)^2 / (n - d)^2``

    over the series y of means of five. Of all cuts within a tenth of the least error the function takes the earliest:
    the cut of the least error would drop values that are high by chance at the start of a series without a transient.
    Only the first half is eligible; if the least error is at its very end, the series has not settled.

    A series of fewer than 20 values is not cut: the result is 0.

    Examples
    --------
    >>> mser5([0.0] * 20 + [1.0] * 180)
    20
    >>> mser5(range(1000)) is None
    True
    """
    count = len(series) // _MSER_BATCH
    if len(series) < _MIN_VALUES:
        return 0
    means = np.asarray(series, dtype=float)[: _MSER_BATCH * count].reshape(count, _MSER_BATCH).mean(axis=1)
    half = count // 2
    offset = means[-1]
    values = (means - offset)[::-1]
    sums, squares = np.cumsum(values)[::-1], np.cumsum(values**2)[::-1]
    remaining = np.arange(count, 0, -1)
    spread = np.maximum(squares - sums**2 / remaining, 0.0)
    # Differences below the resolution of the sums count as none.
    spread[spread <= 1e-12 * (squares + offset**2 * remaining)] = 0.0
    errors = (spread / remaining**2)[: half + 1]
    min_error = errors.min()
    if int(np.argmax(errors <= min_error)) == half:
        return None
    return _MSER_BATCH * int(np.argmax(errors <= 1.1 * min_error))


Rate = Literal["offered_pps", "forwarded_pps", "dropped_pps"]


@value
class Steadiness:
    """The verdict on a rate over time. Mean and interval are in the unit of the rates."""

    is_steady: bool
    reason: str = field("Reason why the rate is not steady; empty where it is steady", default="")
    duration_s: float = field("Length of the whole trial")
    from_s: float = field("End of the transient; NaN where it does not end", default=float("nan"))
    # Where the rate is not steady: the mean of the last half, or of the part after the cut, with an interval of NaN.
    mean: float = field("Mean after the transient", default=float("nan"))
    low: float = field("Lower end of its 95 % interval", default=float("nan"))
    high: float = field("Upper end of its 95 % interval", default=float("nan"))
    # Rise of the regression line over the part after the transient, as a share of the mean.
    drift_ratio: float = float("nan")
    drift_p: float = field("Probability of as much drift in a rate without drift", default=float("nan"))


@value
class InstantReading:
    """The readings of counters at one instant."""

    at_s: float
    so_far: float = field("Mean rate from the start until then: what a simulator's own statistics show")
    now: float = field("Rate of the part of the trial that holds the instant")
    counted: float = field("Count until then (frames, where the rates are frames/s)")


def steadiness(rates: Sequence[float], part_s: float, *, fewest: float = MIN_FRAMES) -> Steadiness:
    """Judge a rate over time.

    Parameters
    ----------
    rates : sequence of float, shape (parts,)
        The mean rate in each of the equal parts of a trial, from its start: frames/s, bit/s or another unit per second.
    part_s : float
        Length of one part in seconds.
    fewest : float
        Least count of the whole trial (frames, bits) that allows a verdict.

    Raises
    ------
    routecast.errors.RoutecastError
        A rate is not a number, or the parts have no length.

    Examples
    --------
    >>> verdict = steadiness([0.0] * 20 + [1e6, 1.1e6] * 90, part_s=1e-3)
    >>> verdict.is_steady, verdict.from_s, round(verdict.mean)
    (True, 0.02, 1050000)
    >>> steadiness([1e3 * n for n in range(1, 101)], part_s=1e-3).reason
    'the transient is longer than half of the trial: still rising by 66.2 % over the last 50 ms'
    """
    if not (math.isfinite(part_s) and part_s > 0.0):
        raise RoutecastError(f"steadiness: a part of the trial lasts {part_s} s; give more than 0")
    if not all(map(math.isfinite, rates)):
        raise RoutecastError("steadiness: a rate is not a number; every part of the trial must have one")
    duration_s = part_s * len(rates)
    too_few = _too_few(rates, part_s, fewest)
    if too_few:
        return Steadiness(is_steady=False, reason=too_few, duration_s=duration_s)
    cut = mser5(rates)
    if cut is None:
        cut = _level_from(rates)
    remaining = rates[len(rates) // 2 if cut is None else cut :]
    means = batch_means(remaining)
    drift = means.rise / means.mean if means.mean else math.copysign(math.inf, means.rise)
    drifts = means.p < _DRIFT_LEVEL and abs(drift) > NEGLIGIBLE_RATIO
    reason = ""
    if drifts:
        direction = "rising" if drift > 0.0 else "falling"
        reason = (
            f"still {direction} by {format_ratio(abs(drift))} over the last {format_duration(part_s * len(remaining))}"
        )
    if cut is None:
        reason = "the transient is longer than half of the trial" + (f": {reason}" if reason else "")
    elif not reason:
        reason = _two_levels(remaining, part_s, cut)
    verdict = Steadiness(
        is_steady=not reason,
        reason=reason,
        duration_s=duration_s,
        from_s=float("nan") if cut is None else part_s * cut,
        mean=means.mean,
        drift_ratio=drift,
        drift_p=means.p,
    )
    if reason:
        return verdict
    return replace(verdict, low=means.mean - means.half_width, high=means.mean + means.half_width)


def _two_levels(rates: Sequence[float], part_s: float, cut: int) -> str:
    step = greatest_step(rates)
    before = sum(rates[: step.at]) / step.at
    ratio = step.rise / before if before else math.copysign(math.inf, step.rise)
    if step.p >= STEP_LEVEL or abs(ratio) <= NEGLIGIBLE_RATIO:
        return ""
    word = "rises" if ratio > 0.0 else "falls"
    at = format_duration(part_s * (cut + step.at))
    return f"there are two levels: at about {at} the rate {word} by {format_ratio(abs(ratio))} and stays there"


def _too_few(rates: Sequence[float], part_s: float, fewest: float) -> str:
    counted = sum(rates) * part_s
    if counted < fewest:
        return f"too few frames for a verdict: {counted:.0f}, at least {fewest:.0f} are needed"
    if len(rates) < _MIN_PARTS:
        return f"too few parts for a verdict: {len(rates)}, at least {_MIN_PARTS} are needed"
    return ""


def _level_from(rates: Sequence[float]) -> int | None:
    """Return the first part from which the changes of a rate are negligible; None if it is not in the first half.

    MSER-5 minimises the spread after the cut. Without noise the spread always falls further on, however small it is,
    so a smooth approach never settles for MSER-5.
    """
    half = len(rates) // 2
    level = sum(rates[half:]) / (len(rates) - half)
    tolerance = NEGLIGIBLE_RATIO / 2.0 * level
    outside = [number for number, rate in enumerate(rates) if abs(rate - level) > tolerance]
    first = outside[-1] + 1 if outside else 0
    return first if first <= half else None


def steadiness_of(trial: Trial, of: Rate = "forwarded_pps") -> Steadiness:
    """Judge a rate of a trial that kept its rates over time.

    A model may settle at forwarding nothing (livelock). A real device that loses every frame to the end of the trial
    has stopped and is not steady, whether MSER-5 takes the time before or the time after the stop as the transient.

    Raises
    ------
    routecast.errors.RoutecastError
        The trial has no rates over time.

    Examples
    --------
    >>> from routecast.evaluate import Simulate
    >>> from routecast.load import OfferedLoad
    >>> from routecast.router import ServiceCost, multicore
    >>> router = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=10e9)
    >>> simulate = Simulate(router, over_time=True, steady_state=False)
    >>> steadiness_of(simulate.trial(OfferedLoad(rate_pps=2e6), duration_s=0.1)).is_steady
    True
    """
    _check_over_time(trial)
    rates = [getattr(moment, of) for moment in trial.over_time]
    verdict = steadiness(rates, trial.duration_s / len(rates))
    stopped_s = _stopped_s(trial) if trial.evaluator == "measure" else math.nan
    if not verdict.is_steady or math.isnan(stopped_s):
        return verdict
    reason = f"the device has stopped: all frames from {format_duration(stopped_s)} on are lost"
    return replace(verdict, is_steady=False, reason=reason, low=math.nan, high=math.nan)


def _check_over_time(trial: Trial) -> None:
    if not trial.over_time:
        raise RoutecastError(
            f"the trial ({trial.evaluator}) has no rates over time: Simulate(over_time=True) keeps them, and"
            " Measure(over_time=True)"
        )


def _stopped_s(trial: Trial) -> float:
    """Return the time from which the trial lost all frames to its end, s; NaN if that is too short for a stop."""
    moments = trial.over_time
    first = len(moments)
    while (
        first
        and not moments[first - 1].forwarded_pps
        and moments[first - 1].dropped_pps >= moments[first - 1].offered_pps
    ):
        first -= 1
    lost = sum(moment.dropped_pps for moment in moments[first:]) * trial.duration_s / len(moments)
    is_long = len(moments) - first >= _STOPPED_RATIO * len(moments) and round(lost) >= _STOPPED_FRAMES
    return moments[first].time_s if is_long else math.nan


def latency_unsteady(trial: Trial) -> str:
    """Return the reason why the latencies of a simulated trial are not steady; empty if they are, or if unknown.

    A rate can be steady while the queue behind it still grows. The simulator cuts off the transient of the latencies
    itself (MSER-5). It measures the whole trial only where it finds no end of that transient.

    Examples
    --------
    >>> from routecast.evaluate import Simulate
    >>> from routecast.load import Arrivals, OfferedLoad
    >>> from routecast.router import ServiceCost, multicore
    >>> router = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=1e15, queue_frames=100_000)
    >>> load = OfferedLoad(rate_pps=1.1e6, arrivals=Arrivals.poisson())
    >>> trial = Simulate(router, over_time=True, steady_state=False).trial(load, duration_s=0.05)
    >>> steadiness_of(trial).is_steady, latency_unsteady(trial)
    (True, 'the latency has not settled within half of the trial, 50 ms: it is a mean over all of it')
    """
    if trial.evaluator != "simulate" or trial.latency is None or trial.measured_s < trial.duration_s:
        return ""
    return (
        f"the latency has not settled within half of the trial, {format_duration(trial.duration_s)}: it is a mean over"
        " all of it"
    )


def sampled_sojourn_s(trial: Trial) -> float:
    """Estimate the mean time of a frame in the router from counters alone: Meyer et al. 2014, eq. 4.

    T = (1/j) sum of (Z_RX(t_i) - Z_TX(t_i)) / D_p: Z_RX counts frames received and not dropped, Z_TX frames sent, both
    sampled at the end of each part of the trial, and D_p is the throughput. The paper states it for overload; by
    Little's law it holds wherever the number of frames inside is steady. The estimate leaves out samples of the
    transient where the trial states its length (:attr:`~routecast.evaluate.trial.Trial.measured_s`). It counts from
    last bit in to last bit out, so it contains the latency of S9 and the frame's time on its outgoing link.

    Returns
    -------
    float
        Seconds; NaN where nothing was forwarded, or where a simulated trial's latency has not settled.

    Raises
    ------
    routecast.errors.RoutecastError
        The trial has no rates over time.

    Examples
    --------
    >>> from routecast.evaluate import Simulate
    >>> from routecast.load import OfferedLoad
    >>> from routecast.router import ServiceCost, multicore
    >>> router = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=10e9, queue_frames=100)
    >>> trial = Simulate(router, over_time=True, steady_state=False).trial(OfferedLoad(rate_pps=2e6), duration_s=0.1)
    >>> f"{1e6 * sampled_sojourn_s(trial):.0f} us, {1e6 * trial.latency.mean_s:.0f} us"
    '101 us, 101 us'
    """
    _check_over_time(trial)
    if latency_unsteady(trial):
        return math.nan
    part_s = trial.duration_s / len(trial.over_time)
    rates = (moment.offered_pps - moment.dropped_pps - moment.forwarded_pps for moment in trial.over_time)
    inside = [part_s * total for total in accumulate(rates)]
    evaluated_s = trial.measured_s if trial.measured_s > 0.0 else trial.duration_s
    from_s = trial.duration_s - evaluated_s
    evaluated = range(min(round(from_s / part_s), len(inside) - 1), len(inside))
    throughput_pps = fmean(trial.over_time[number].forwarded_pps for number in evaluated)
    return fmean(inside[number] for number in evaluated) / throughput_pps if throughput_pps else math.nan


def with_steady_rates(trial: Trial, verdict: Steadiness) -> Trial:
    """Return the trial with the rates of its steady part; an unsteady trial stays unchanged.

    Offered and forwarded rates, bit rates and loss are those of the part after the transient. Counts stay those of the
    whole trial (S12), and other means (latency, utilisation, power) stay as the evaluator returned them.
    """
    if not verdict.is_steady or not trial.over_time:
        return trial
    part_s = trial.duration_s / len(trial.over_time)
    # Half a part of slack: beginnings of parts are multiples of a rounded length.
    steady = [moment for moment in trial.over_time if moment.time_s >= verdict.from_s - part_s / 2]
    offered = sum(moment.offered_pps for moment in steady) / len(steady)
    forwarded = sum(moment.forwarded_pps for moment in steady) / len(steady)
    share = forwarded / trial.forwarded_pps if trial.forwarded_pps else 1.0
    return replace(
        trial,
        measured_s=part_s * len(steady),
        offered_pps=offered,
        forwarded_pps=forwarded,
        loss_ratio=1.0 - forwarded / offered if offered else 0.0,
        l1_bps=trial.l1_bps * share,
        l2_bps=trial.l2_bps * share,
        interval={**trial.interval, "forwarded_pps": (verdict.low, verdict.high)},
    )


def reading(rates: Sequence[float], part_s: float, at_s: float) -> InstantReading:
    """Return the reading of the counters at one instant.

    Within a part the rate counts as constant: an instant in the first part shows the same value twice.

    Raises
    ------
    routecast.errors.RoutecastError
        The instant is not within the trial.

    Examples
    --------
    >>> reading([0.0, 100.0, 100.0, 100.0], 1.0, 3.0)
    InstantReading(at_s=3.0, so_far=66.66666666666667, now=100.0, counted=200.0)
    """
    duration_s = part_s * len(rates)
    if not 0.0 < at_s <= duration_s * (1.0 + 1e-9):
        raise RoutecastError(
            f"a reading at {format_duration(at_s)}: the trial runs from 0 to {format_duration(duration_s)}"
        )
    # An instant between two parts shows the one that has just ended.
    part = min(max(math.ceil(at_s / part_s * (1.0 - 1e-12)) - 1, 0), len(rates) - 1)
    counted = part_s * sum(rates[:part]) + (at_s - part_s * part) * rates[part]
    return InstantReading(at_s=at_s, so_far=counted / at_s, now=rates[part], counted=counted)
