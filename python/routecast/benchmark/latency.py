"""RFC 2544 sec. 26.2: latency at the throughput of each frame size; RFC 8219 sec. 7: typical, worst, PDV."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median

from routecast.benchmark.result import LatencyResult, LatencyRow, Spread
from routecast.benchmark.stage import InvalidTrial, Stage
from routecast.evaluate.trial import Delay, Trial

__all__ = ["DEFINITION", "result_of", "run"]

DEFINITION = (
    "store-and-forward (RFC 1242 sec. 3.8): from the last bit in to the first bit out. Every frame carries a tag; the "
    "value of a repetition is the mean over the frames of its trial, the figure is the average of the repetitions"
)
"""What sec. 26.2 wants stated."""


def run(stage: Stage, throughput_pps: float) -> tuple[LatencyRow, ...]:
    """Offer the throughput, and shares of it where the profile asks; a row for each share."""
    return tuple(_row(stage, throughput_pps, ratio) for ratio in stage.profile.latency.rates)


def result_of(rows: Sequence[LatencyRow], medium: str) -> LatencyResult:
    """Return the rows as one result."""
    return LatencyResult(rows=tuple(rows), definition=DEFINITION, medium=medium)


def _row(stage: Stage, throughput_pps: float, ratio: float) -> LatencyRow:
    settings = stage.profile.latency
    rate_pps = ratio * throughput_pps
    trials: list[Trial] = []
    reason = ""
    try:
        for number in range(1, settings.repeats + 1):
            trials.append(stage.trial(rate_pps, settings.duration, f"repeat {number} at {ratio:.0%}"))
    except InvalidTrial as problem:
        reason = str(problem)
    delays = [trial.latency for trial in trials if trial.latency is not None]
    if not delays and not reason:
        reason = "the evaluator gives no latency for this load"
    means = tuple(delay.mean_s for delay in delays if math.isfinite(delay.mean_s))
    if not means and not reason:
        reason = "the evaluator gives no mean latency for this load"
    return LatencyRow(
        stream=stage.stream.name,
        frame_bytes=stage.frame_bytes,
        rate_pps=rate_pps,
        rate_ratio=ratio,
        latency_s=Spread.of(means),
        typical_s=_median(delays, lambda delay: delay.p50_s),
        worst_s=_median(delays, lambda delay: delay.p999_s),
        p1_s=_median(delays, _first_percentile),
        p99_s=_median(delays, lambda delay: delay.p99_s),
        pdv_s=_median(delays, lambda delay: delay.p999_s - delay.min_s),
        ipdv_s=(math.nan, math.nan, math.nan),
        min_s=min((d.min_s for d in delays if math.isfinite(d.min_s)), default=math.nan),
        max_s=max((d.max_s for d in delays if math.isfinite(d.max_s)), default=math.nan),
        loss_ratio=max((trial.loss_ratio for trial in trials), default=math.nan),
        hdr_base64=_middle(delays).hdr_base64 if delays else "",
        outcome="found" if means and not reason else "undetermined",
        reason=reason,
    )


def _first_percentile(delay: Delay) -> float:
    return float(getattr(delay, "p1_s", math.nan))


def _median(delays: Sequence[Delay], pick: Callable[[Delay], float]) -> float:
    values = [value for value in map(pick, delays) if math.isfinite(value)]
    return median(values) if values else math.nan


def _middle(delays: Sequence[Delay]) -> Delay:
    ordered = sorted(delays, key=lambda delay: delay.p50_s)
    return ordered[len(ordered) // 2]
