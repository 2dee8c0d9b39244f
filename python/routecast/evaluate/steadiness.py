"""Is a rate steady, from when on, and what is it then? A verdict in place of somebody's eye.

Four questions, in this order. Are there frames enough to say anything? Does the transient end within the first half of
the trial (MSER-5, :mod:`~routecast.evaluate.truncation`)? Does what is left drift (regression on batch means,
:mod:`~routecast.evaluate.batches`)? Has it one level, or two? A series that passes has a mean with a 95 % interval; one
that does not has a reason.

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
from dataclasses import dataclass, replace
from typing import Literal

from routecast.errors import RoutecastError
from routecast.evaluate.trial import Trial
from routecast.quantity import format_duration, format_ratio

__all__ = [
    "FEWEST_FRAMES",
    "FEWEST_PARTS",
    "LEVEL",
    "NEGLIGIBLE_RATIO",
    "STEP_LEVEL",
    "Reading",
    "Steadiness",
    "latency_unsteady",
    "reading",
    "steadied",
    "steadiness",
    "steadiness_of",
]

Rate = Literal["offered_pps", "forwarded_pps", "dropped_pps"]

FEWEST_FRAMES = 200
"""As ``FEWEST_FRAMES`` of ``crates/sim/src/settled.rs``: fewer say nothing about a steady state."""
FEWEST_PARTS = 40
"""Of these half may be the transient, and 20 batches of one part each are left."""
LEVEL = 0.05
"""How often a rate without drift may be called drifting."""
STEP_LEVEL = 0.0001
"""How small a p value calls a step one; it is the least of many places, so :data:`LEVEL` would cry wolf."""
NEGLIGIBLE_RATIO = 0.005
"""A drift or a step of less than this share of the mean is none, however certain: it is the width to which MLRsearch
finds a throughput in CSIT (goal width 0.5 %)."""

STOPPED_RATIO = 0.01
"""A device that forwards nothing for the last hundredth of a measured trial has stopped,"""
STOPPED_FRAMES = 10
"""if so many frames were lost in it: a burst that overflows a queue at the very end is no stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """The verdict on a rate over time. Mean and interval are in the unit of the rates.

    Parameters
    ----------
    is_steady : bool
    reason : str
        Why it is called not steady; empty where it is steady.
    duration_s : float
        Length of the whole trial.
    from_s : float
        When the transient ends; NaN where it does not.
    mean, low, high : float
        Mean after the transient with its 95 % interval. Where the rate is not steady: mean of the last half or of
        what the cut left, with an interval of NaN.
    drift_ratio : float
        How much the rate rises over the part after the transient, by the regression line, as a share of its mean.
    drift_p : float
        How likely a rate without drift shows as much.
    """

    is_steady: bool
    reason: str = ""
    duration_s: float
    from_s: float = float("nan")
    mean: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    drift_ratio: float = float("nan")
    drift_p: float = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What somebody reads off who looks at one instant.

    Parameters
    ----------
    at_s : float
    so_far : float
        Mean rate from the start until then: what a simulator's own statistics show.
    now : float
        Rate of the part of the trial that holds the instant.
    counted : float
        What was counted until then (frames, where the rates are frames per second).
    """

    at_s: float
    so_far: float
    now: float
    counted: float


def steadiness(rates: Sequence[float], part_s: float, *, fewest: float = FEWEST_FRAMES) -> Steadiness:
    """Judge a rate over time.

    Parameters
    ----------
    rates : sequence of float, shape (parts,)
        The mean rate during each of the equal parts of a trial, from its start on: frames, bits or whatever a second.
    part_s : float
        Length of one part in seconds.
    fewest : float
        How much must have been counted in all (frames, bits) to say something.

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
    from routecast.evaluate.batches import batch_means
    from routecast.evaluate.truncation import mser5

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
    kept = rates[len(rates) // 2 if cut is None else cut :]
    found = batch_means(kept)
    drift = found.rise / found.mean if found.mean else math.copysign(math.inf, found.rise)
    drifts = found.p < LEVEL and abs(drift) > NEGLIGIBLE_RATIO
    how = ""
    if drifts:
        word = "rising" if drift > 0.0 else "falling"
        how = (
            f"still {word} by {format_ratio(abs(drift))} over the last {format_duration(part_s * len(kept))}"
        )
    if cut is None:
        how = "the transient is longer than half of the trial" + (f": {how}" if how else "")
    elif not how:
        how = _two_levels(kept, part_s, cut)
    verdict = Steadiness(
        is_steady=not how,
        reason=how,
        duration_s=duration_s,
        from_s=float("nan") if cut is None else part_s * cut,
        mean=found.mean,
        drift_ratio=drift,
        drift_p=found.p,
    )
    if how:
        return verdict
    return replace(verdict, low=found.mean - found.half_width, high=found.mean + found.half_width)


def _two_levels(kept: Sequence[float], part_s: float, cut: int) -> str:
    from routecast.evaluate.batches import greatest_step

    step = greatest_step(kept)
    before = sum(kept[: step.at]) / step.at
    ratio = step.rise / before if before else math.copysign(math.inf, step.rise)
    if step.p >= STEP_LEVEL or abs(ratio) <= NEGLIGIBLE_RATIO:
        return ""
    word = "rises" if ratio > 0.0 else "falls"
    at = format_duration(part_s * (cut + step.at))
    return (
        f"there are two levels: at about {at} the rate {word} by {format_ratio(abs(ratio))} and stays there"
    )


def _too_few(rates: Sequence[float], part_s: float, fewest: float) -> str:
    counted = sum(rates) * part_s
    if counted < fewest:
        return f"too few frames to say: {counted:.0f}, at least {fewest:.0f} are needed"
    if len(rates) < FEWEST_PARTS:
        return f"too few parts to say: {len(rates)}, at least {FEWEST_PARTS} are needed"
    return ""


def _level_from(rates: Sequence[float]) -> int | None:
    """Return from when on a rate stays within what is negligible; None where it does not in the first half.

    MSER-5 asks how the spread of what is left compares with what is cut off. Without noise there is always less of it
    further on, however little it is: a smooth approach never settles for it.
    """
    half = len(rates) // 2
    level = sum(rates[half:]) / (len(rates) - half)
    room = NEGLIGIBLE_RATIO / 2.0 * level
    away = [number for number, rate in enumerate(rates) if abs(rate - level) > room]
    first = away[-1] + 1 if away else 0
    return first if first <= half else None


def steadiness_of(trial: Trial, of: Rate = "forwarded_pps") -> Steadiness:
    """Judge a rate of a trial that kept its rates over time.

    A model may settle at forwarding nothing (livelock). A real device that loses every frame to the end of the trial
    has stopped: it is not called steady, whether the rule takes the time before or the time after for a transient.

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
    if not trial.over_time:
        raise RoutecastError(
            f"the trial ({trial.evaluator}) has no rates over time: Simulate(over_time=True) keeps them, and"
            " Measure(over_time=True)"
        )
    rates = [getattr(moment, of) for moment in trial.over_time]
    verdict = steadiness(rates, trial.duration_s / len(rates))
    stopped_s = _stopped_s(trial) if trial.evaluator == "measure" else math.nan
    if not verdict.is_steady or math.isnan(stopped_s):
        return verdict
    why = f"the device has stopped: all frames from {format_duration(stopped_s)} on are lost"
    return replace(verdict, is_steady=False, reason=why, low=math.nan, high=math.nan)


def _stopped_s(trial: Trial) -> float:
    """Return from when on all frames were lost to the end of the trial; NaN where that was not so for long."""
    moments = trial.over_time
    at = len(moments)
    while (
        at
        and not moments[at - 1].forwarded_pps
        and moments[at - 1].dropped_pps >= moments[at - 1].offered_pps
    ):
        at -= 1
    lost = sum(moment.dropped_pps for moment in moments[at:]) * trial.duration_s / len(moments)
    is_long = len(moments) - at >= STOPPED_RATIO * len(moments) and round(lost) >= STOPPED_FRAMES
    return moments[at].time_s if is_long else math.nan


def latency_unsteady(trial: Trial) -> str:
    """Say why the latencies of a simulated trial are not steady; empty where they are, or nobody knows.

    A rate can be steady while the queue behind it still grows. The simulator has cut off the transient of the latencies
    itself (MSER-5); where it found no end of it, it has measured the whole trial, and only then.

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


def steadied(trial: Trial, verdict: Steadiness) -> Trial:
    """Return the trial with the rates that it has once it is steady; an unsteady one stays as it is.

    Offered and forwarded rates, bit rates and loss are those of the part after the transient. Counts stay those of the
    whole trial (S12), and what else was averaged (latency, utilisation, power) stays as the evaluator gave it.
    """
    if not verdict.is_steady or not trial.over_time:
        return trial
    part_s = trial.duration_s / len(trial.over_time)
    # Half a part of slack: beginnings of parts are multiples of a rounded length.
    kept = [moment for moment in trial.over_time if moment.time_s >= verdict.from_s - part_s / 2]
    offered = sum(moment.offered_pps for moment in kept) / len(kept)
    forwarded = sum(moment.forwarded_pps for moment in kept) / len(kept)
    share = forwarded / trial.forwarded_pps if trial.forwarded_pps else 1.0
    return replace(
        trial,
        measured_s=part_s * len(kept),
        offered_pps=offered,
        forwarded_pps=forwarded,
        loss_ratio=1.0 - forwarded / offered if offered else 0.0,
        l1_bps=trial.l1_bps * share,
        l2_bps=trial.l2_bps * share,
        interval={**trial.interval, "forwarded_pps": (verdict.low, verdict.high)},
    )


def reading(rates: Sequence[float], part_s: float, at_s: float) -> Reading:
    """Return what a look at one instant would have said.

    Within a part the rate is taken as constant: an instant in the first part shows the same twice.

    Raises
    ------
    routecast.errors.RoutecastError
        The instant is not within the trial.

    Examples
    --------
    >>> reading([0.0, 100.0, 100.0, 100.0], 1.0, 3.0)
    Reading(at_s=3.0, so_far=66.66666666666667, now=100.0, counted=200.0)
    """
    duration_s = part_s * len(rates)
    if not 0.0 < at_s <= duration_s * (1.0 + 1e-9):
        raise RoutecastError(
            f"a reading at {format_duration(at_s)}: the trial runs from 0 to {format_duration(duration_s)}"
        )
    # An instant between two parts shows the one that has just ended.
    part = min(max(math.ceil(at_s / part_s * (1.0 - 1e-12)) - 1, 0), len(rates) - 1)
    counted = part_s * sum(rates[:part]) + (at_s - part_s * part) * rates[part]
    return Reading(at_s=at_s, so_far=counted / at_s, now=rates[part], counted=counted)
