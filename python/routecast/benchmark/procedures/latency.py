"""RFC 2544 sec. 26.2: latency at the throughput of each frame size; RFC 8219 sec. 7: typical, worst, PDV."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from routecast.benchmark.procedures.procedure import Deviation, Procedure, Spread, rfc2544, span
from routecast.benchmark.settings import Repeats, Share, Table
from routecast.benchmark.stage import InvalidTrial, Stage
from routecast.evaluate.trial import Delay, Trial
from routecast.quantity.fields import Duration

if TYPE_CHECKING:
    from routecast.benchmark.plan import Plan
    from routecast.benchmark.profile import Profile

__all__ = ["LATENCY", "LatencyProfile", "LatencyResult", "LatencyRow"]


class LatencyProfile(Table):
    """``[latency]``: sec. 26.2; RFC 8219 sec. 7."""

    duration: Duration = Field(default=120.0, description="Length of a trial.")
    repeats: Repeats = Field(default=20, description="Trials; their average is reported.")
    rates: Annotated[tuple[Share, ...], Field(min_length=1)] = Field(
        default=(1.0,), description="Rates over the throughput; 1 is what sec. 26.2 asks for."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRow:
    """Sec. 26.2 for one stream and frame size, at the throughput of that size or a share of it.

    Parameters
    ----------
    rate_pps : float
        Offered rate, all ports.
    rate_ratio : float
        Share of the throughput: 1 is what sec. 26.2 asks for.
    latency_s : Spread
        One value per repetition; its mean is the figure that sec. 26.2 reports. Each value is the mean over all frames
        of a trial, or over the tagged ones.
    typical_s, worst_s : float
        RFC 8219 sec. 7.2: median over the repetitions of the median and of the 99.9th percentile.
    p1_s, p99_s : float
        Median over the repetitions (RFC 8219 sec. 7.2, optional); p1 is NaN where the evaluator gives none.
    pdv_s : float
        RFC 8219 sec. 7.3.1: median over the repetitions of (99.9th percentile − least).
    ipdv_s : tuple of three float
        RFC 8219 sec. 7.3.2: least, median and greatest inter-packet delay variation; NaN where nobody measures it.
    hdr_base64 : str
        HDR histogram of the repetition whose median is the median.
    loss_ratio : float
        Greatest loss among the repetitions.
    """

    stream: str
    frame_bytes: int
    rate_pps: float
    rate_ratio: float
    latency_s: Spread
    typical_s: float
    worst_s: float
    p1_s: float
    p99_s: float
    pdv_s: float
    ipdv_s: tuple[float, float, float]
    min_s: float
    max_s: float
    loss_ratio: float
    hdr_base64: str = ""
    outcome: Literal["found", "undetermined"] = "found"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyResult:
    """Sec. 26.2 and RFC 8219 sec. 7; ``definition`` is the RFC 1242 definition that sec. 26.2 wants stated."""

    rows: tuple[LatencyRow, ...]
    definition: str
    medium: str
    section: str = "RFC 2544 sec. 26.2"


DEFINITION = (
    "store-and-forward (RFC 1242 sec. 3.8): from the last bit in to the first bit out. Every frame carries a tag; the "
    "value of a repetition is the mean over the frames of its trial, the figure is the average of the repetitions"
)
"""What sec. 26.2 wants stated."""


def _run(stage: Stage, throughput_pps: float) -> tuple[LatencyRow, ...]:
    """Offer the throughput, and shares of it where the profile asks; a row for each share."""
    return tuple(_row(stage, throughput_pps, ratio) for ratio in stage.profile.latency.rates)


def _result(rows: Sequence[LatencyRow], plan: Plan, medium: str) -> LatencyResult:
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


def _trials(profile: Profile) -> tuple[int, float]:
    trials = len(profile.latency.rates) * profile.latency.repeats
    return trials, trials * profile.latency.duration


def _deviations(profile: Profile) -> Iterator[Deviation]:
    settings = profile.latency
    if 1.0 not in settings.rates:
        rates = ", ".join(f"{ratio:.0%}" for ratio in settings.rates)
        yield rfc2544("26.2", "MUST", "latency at the throughput", f"at {rates} of it")
    if settings.repeats < 20:
        yield rfc2544("26.2", "MUST", "at least 20 repetitions, averaged", str(settings.repeats))
    if settings.duration < 120.0:
        yield rfc2544("26.2", "SHOULD", "a stream of at least 120 s", span(settings.duration))
    if settings.duration < 60.0:
        yield rfc2544("26.2", "SHOULD", "a tagged frame after 60 s", "tags throughout a shorter trial")


LATENCY = Procedure(
    name="latency",
    section="26.2",
    settings=LatencyProfile,
    run=_run,
    result_of=_result,
    trials=_trials,
    deviations=_deviations,
    counts_frames=False,
)
