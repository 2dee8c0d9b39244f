"""Operations on traffic series: resampling, mean and quantile days, scaling to a peak, and filling of gaps."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from statistics import fmean
from typing import Literal

from routecast.errors import ModelProblem, Problem
from routecast.load.series import DAY_S, TrafficSeries
from routecast.quantity import format_bps
from routecast.quantity.quantile import quantile as quantile_of

__all__ = [
    "Filling",
    "filled",
    "mean_day",
    "quantile_day",
    "resampled",
    "scaled_to_peak",
    "synthetic_day",
    "whole_step_of_day",
]

Filling = Literal["hold", "interpolate", "drop"]
"""Treatment of missing steps: repeat the last value, interpolate between the neighbours, or leave them missing."""


def resampled(series: TrafficSeries, step_s: float) -> TrafficSeries:
    """Return the series in coarser steps: the mean of the finer steps that are not missing.

    Raises ModelProblem: the new step is not a multiple of the old step.
    """
    ratio = step_s / series.step_s
    size = round(ratio)
    if size < 1 or abs(ratio - size) > 1e-9 * ratio:
        raise ModelProblem(
            _name(series),
            [Problem("step", f"{step_s:g} s is no whole multiple of the series' step of {series.step_s:g} s")],
        )
    if size == 1:
        return series
    whole = len(series.l2_bps) // size * size
    if whole == 0:
        raise ModelProblem(_name(series), [Problem("step", f"the series is shorter than one step of {step_s:g} s")])
    rates = tuple(_mean(series.l2_bps[index : index + size]) for index in range(0, whole, size))
    left = len(series.l2_bps) - whole
    note = (f"the last {left} steps of {series.step_s:g} s fill no step of {step_s:g} s: left out",) if left else ()
    return replace(series, step_s=step_s, l2_bps=rates, notes=(*series.notes, *note))


def whole_step_of_day(step_s: float) -> float:
    """Return the step if it divides a day, or else the next longer one that does (a day if it is longer than that)."""
    steps = int(DAY_S / step_s + 1e-9)
    if steps >= 1 and abs(steps * step_s - DAY_S) <= 1e-6:
        return step_s
    return next((DAY_S / count for count in range(max(steps, 1), 0, -1) if DAY_S % count == 0), DAY_S)


def mean_day(series: TrafficSeries, step_s: float) -> TrafficSeries:
    """Return the typical day: the mean of all samples that begin in the same step of the day.

    Missing samples are ignored; every other sample has the same weight.

    Raises
    ------
    ModelProblem
        A day is no whole number of steps, or some step of the day has no sample.
    """
    by_step: defaultdict[int, list[float]] = defaultdict(list)
    for _, step, rate in _by_day(series, step_s):
        if not math.isnan(rate):
            by_step[step].append(rate)
    return _day(series, step_s, by_step, fmean, "mean")


def quantile_day(series: TrafficSeries, step_s: float, quantile: float) -> TrafficSeries:
    """Return a day in which each step is a quantile, over the days, of the mean of that step.

    Linear between order statistics (Hyndman and Fan's type 7, the default of R and NumPy). The result is not an actual
    day: it is the load that suffices at each time of day on that share of the days.

    Parameters
    ----------
    series : TrafficSeries
    step_s : float
    quantile : float
        0..1; 0.5 is the median day, 1 the maximum over the days.

    Raises
    ------
    ModelProblem
        The quantile is outside 0..1, a day is no whole number of steps, or some step of the day has no sample.
    """
    if not 0.0 <= quantile <= 1.0:
        raise ModelProblem(_name(series), [Problem("quantile", f"{quantile} is outside 0 to 1")])
    cells: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    for day, step, rate in _by_day(series, step_s):
        if not math.isnan(rate):
            cells[day, step].append(rate)
    by_step: defaultdict[int, list[float]] = defaultdict(list)
    for (_, step), rates in cells.items():
        by_step[step].append(fmean(rates))
    return _day(series, step_s, by_step, lambda rates: quantile_of(rates, quantile), f"{quantile:g} quantile")


def scaled_to_peak(series: TrafficSeries, peak_bps: float) -> TrafficSeries:
    """Return the series multiplied by the factor that makes its highest step ``peak_bps``.

    Raises
    ------
    ModelProblem
        The series has no traffic, or the peak is no positive number.
    """
    highest_bps = series.peak_bps
    if not (math.isfinite(peak_bps) and peak_bps > 0.0):
        raise ModelProblem(_name(series), [Problem("peak", f"{format_bps(peak_bps)} is no positive rate")])
    if not highest_bps > 0.0:
        raise ModelProblem(_name(series), [Problem("", "carries no traffic: it cannot be scaled to a peak")])
    factor = peak_bps / highest_bps
    # Set the peak exactly, because a rounding error would change ceil(T/R).
    rates = tuple(peak_bps if rate == highest_bps else rate * factor for rate in series.l2_bps)
    return replace(
        series, l2_bps=rates, notes=(*series.notes, f"scaled by {factor:.6g} to a peak of {format_bps(peak_bps)}")
    )


def filled(series: TrafficSeries, method: Filling) -> TrafficSeries:
    """Return the series with missing steps filled, and a note that counts them.

    ``hold`` repeats the last value, and ``interpolate`` interpolates linearly between the neighbours. Before the first
    and after the last value both repeat the only neighbour. ``drop`` leaves the steps missing, and means ignore them.
    """
    missing = sum(math.isnan(rate) for rate in series.l2_bps)
    if missing == 0:
        return series
    present = [index for index, rate in enumerate(series.l2_bps) if not math.isnan(rate)]
    if not present:
        raise ModelProblem(_name(series), [Problem("", "has no value at all")])
    count = f"{missing:,} of {len(series.l2_bps):,} steps missing"
    if method == "drop":
        return replace(series, notes=(*series.notes, f"{count}: left out of every mean"))
    rates = list(series.l2_bps)
    rates[: present[0]] = [rates[present[0]]] * present[0]
    for first, second in zip(present, [*present[1:], len(rates)], strict=True):
        for index in range(first + 1, second):
            interpolates = method == "interpolate" and second < len(rates)
            slope = (series.l2_bps[second] - rates[first]) / (second - first) if interpolates else 0.0
            rates[index] = rates[first] + slope * (index - first)
    done = "the last value before held" if method == "hold" else "interpolated between neighbours"
    return replace(series, l2_bps=tuple(rates), notes=(*series.notes, f"{count}: {done}"))


def synthetic_day(
    *,
    mean_bps: float,
    peak_ratio: float = 1.5,
    peak_hour: float = 21.0,
    step_s: float = 300.0,
    noise_ratio: float = 0.0,
    seed: int = 1,
) -> TrafficSeries:
    r"""Return a synthetic day: a sine with its peak at a given hour.

    .. math:: T(t) = m \left(1 + (p - 1) \cos\frac{2\pi (t - t_p)}{24\,\mathrm{h}}\right) e^{\sigma z_t - \sigma^2/2}

    with the mean m, the peak over the mean p, the peak's time t_p, and independent standard normal z_t, so that noise
    changes neither the mean nor the sign. The minimum is as far below the mean as the peak is above it. Each step has
    the rate T in its middle.

    Parameters
    ----------
    mean_bps : float
    peak_ratio : float
        Peak over mean, 1 to 2; at 2 the minimum is 0.
    peak_hour : float
    step_s : float
    noise_ratio : float
        σ, approximately the relative standard deviation of a step.
    seed : int

    Raises
    ------
    ModelProblem
        A parameter is outside its range.
    """
    problems = [
        Problem(name, f"{value:g} {fault}")
        for name, value, is_valid, fault in (
            ("mean_bps", mean_bps, math.isfinite(mean_bps) and mean_bps > 0.0, "is no positive rate"),
            ("peak_ratio", peak_ratio, 1.0 <= peak_ratio <= 2.0, "is outside 1 to 2: beyond 2 the night is negative"),
            ("peak_hour", peak_hour, 0.0 <= peak_hour < 24.0, "is outside 0 to 24"),
            ("noise_ratio", noise_ratio, 0.0 <= noise_ratio <= 1.0, "is outside 0 to 1"),
        )
        if not is_valid
    ]
    if problems:
        raise ModelProblem("synthetic day", problems)
    steps = _steps_of_day("synthetic day", step_s)
    random = Random(seed)
    rates = []
    for index in range(steps):
        hours = (index + 0.5) * step_s / 3600.0
        swing = 1.0 + (peak_ratio - 1.0) * math.cos(2.0 * math.pi * (hours - peak_hour) / 24.0)
        noise = math.exp(noise_ratio * random.gauss(0.0, 1.0) - noise_ratio**2 / 2.0)
        rates.append(max(0.0, mean_bps * swing * noise))
    return TrafficSeries(
        step_s=step_s,
        l2_bps=tuple(rates),
        source="synthetic day",
        notes=(
            f"synthetic: a sine with its peak at {peak_hour:g} h, {peak_ratio:g} times the mean, "
            f"noise {noise_ratio:g}, seed {seed}; measured nowhere",
        ),
    )


def _by_day(series: TrafficSeries, step_s: float) -> list[tuple[int, int, float]]:
    """Return (day, step of the day, rate) of every sample; NaN for a missing one."""
    _steps_of_day(_name(series), step_s)
    if step_s < series.step_s:
        raise ModelProblem(
            _name(series), [Problem("step", f"{step_s:g} s is finer than the series' step of {series.step_s:g} s")]
        )
    first_s = 0.0
    if series.start is not None:
        midnight = series.start.replace(hour=0, minute=0, second=0, microsecond=0)
        first_s = (series.start - midnight) / timedelta(seconds=1)

    def ahead_s(time_s: float) -> float:
        return next((ahead for begin_s, ahead in reversed(series.clock_changes) if time_s >= begin_s), 0.0)

    result = []
    for index, rate in enumerate(series.l2_bps):
        day, within_s = divmod(first_s + index * series.step_s + ahead_s(index * series.step_s), DAY_S)
        result.append((int(day), int(within_s / step_s + 1e-9), rate))
    return result


def _day(
    series: TrafficSeries,
    step_s: float,
    by_step: dict[int, list[float]],
    statistic: Callable[[list[float]], float],
    statistic_name: str,
) -> TrafficSeries:
    steps = _steps_of_day(_name(series), step_s)
    empty = [step for step in range(steps) if step not in by_step]
    notes: tuple[str, ...] = ()
    dropped = {step for _, step, rate in _by_day(series, step_s) if math.isnan(rate)} if empty else set()
    if empty and len(empty) * step_s <= _HOUR_S and not dropped.intersection(empty):
        notes = (_fill_hour(step_s, by_step, empty, steps),)
    elif empty:
        clock = _clock(empty[0] * step_s)
        raise ModelProblem(
            _name(series),
            [
                Problem(
                    clock,
                    f"{len(empty)} of {steps} steps of the day have no sample: give samples of the whole day "
                    "(at most an hour may lack), or steps of an hour or more that each have one",
                )
            ],
        )
    counts = [len(by_step[step]) for step in range(steps)]
    values = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return replace(
        series,
        step_s=step_s,
        l2_bps=tuple(statistic(by_step[step]) for step in range(steps)),
        start=None,
        clock_changes=(),
        notes=(*series.notes, *notes, f"{statistic_name} day in steps of {step_s:g} s, of {values} values each"),
    )


_HOUR_S = 3600.0


def _fill_hour(step_s: float, by_step: dict[int, list[float]], empty: Sequence[int], steps: int) -> str:
    """Fill the empty steps of a day linearly between their neighbours around midnight, and return a note.

    A counter that is read at the begin of each step leaves the last step open, and a day of 23 hours lacks one.
    """
    present = {step: fmean(rates) for step, rates in by_step.items()}
    for step in empty:
        before = next(distance for distance in range(1, steps) if (step - distance) % steps in present)
        after = next(distance for distance in range(1, steps) if (step + distance) % steps in present)
        low, high = present[(step - before) % steps], present[(step + after) % steps]
        by_step[step] = [low + (high - low) * before / (before + after)]
    first = f"{len(empty)} of {steps} steps of the day, first at {_clock(empty[0] * step_s)}"
    return f"{first}, without a sample: interpolated between the neighbours"


def _steps_of_day(subject: str, step_s: float) -> int:
    steps = round(DAY_S / step_s) if step_s > 0.0 else 0
    if steps < 1 or abs(steps * step_s - DAY_S) > 1e-6:
        raise ModelProblem(subject, [Problem("step", f"a day is no whole number of steps of {step_s:g} s")])
    return steps


def _mean(rates: Sequence[float]) -> float:
    present = [rate for rate in rates if not math.isnan(rate)]
    return fmean(present) if present else math.nan


def _clock(time_s: float) -> str:
    return f"{int(time_s // 3600):02d}:{int(time_s % 3600 // 60):02d}"


def _name(series: TrafficSeries) -> str:
    return series.source or "traffic series"
