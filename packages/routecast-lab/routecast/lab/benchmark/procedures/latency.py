"""RFC 2544 sec. 26.2: latency at the throughput of each frame size; RFC 8219 sec. 7: typical and worst latency, PDV."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Annotated, Literal

from pydantic import Field

from routecast.evaluate.trial import Delay, Trial
from routecast.lab.benchmark._hdr import classes_of_hdr
from routecast.lab.benchmark.procedures.procedure import (
    LOSS,
    LOSS_TRIAL,
    WORST_TRIAL,
    Procedure,
    Spread,
    as_sentence,
    describe_repeats,
    deviation,
    percent_of,
    rate_column,
    span,
    time_column,
    time_text,
)
from routecast.lab.benchmark.settings import Repeats, Share
from routecast.lab.benchmark.stage import InvalidTrial, Stage, loss_ratio_of
from routecast.lab.benchmark.values import BenchmarkResult, Deviation, Profile
from routecast.quantity.fields import Duration
from routecast.quantity.schema import field, value
from routecast.show.figures import Axis, Figure, Line, Mark, palette
from routecast.show.page import Block, Prose
from routecast.show.tables import Column
from routecast.show.ticks import log_ticks

__all__ = ["PROCEDURE", "LatencyProfile", "LatencyResult", "LatencyRow"]


@value
class LatencyProfile:
    """``[latency]``: sec. 26.2; RFC 8219 sec. 7."""

    duration: Duration = field("Length of a trial.", default=120.0)
    repeats: Repeats = field("Trials; their average is reported.", default=20)
    rates: Annotated[tuple[Share, ...], Field(min_length=1)] = field(
        "Rates over the throughput; sec. 26.2 asks for 1.", default=(1.0,)
    )


@value
class LatencyRow:
    """Sec. 26.2 for one stream and frame size, at the throughput of that size or a share of it."""

    stream: str
    frame_bytes: float = field("Frame size, the mean for a mix.")
    rate_pps: float = field("Offered rate, all ports.")
    rate_ratio: float = field("Share of the throughput; sec. 26.2 asks for 1.")
    latency_s: Spread = field(
        "A value for each repetition: the mean over all frames of the trial, or over the tagged frames. Sec. 26.2 "
        "reports the mean of the values."
    )
    typical_s: float = field("RFC 8219 sec. 7.2: median over the repetitions of the median.")
    worst_s: float = field("RFC 8219 sec. 7.2: median over the repetitions of the 99.9th percentile.")
    p1_s: float = field("Median over the repetitions (RFC 8219 sec. 7.2, optional); NaN where the evaluator has none.")
    p99_s: float = field("Median over the repetitions (RFC 8219 sec. 7.2, optional).")
    pdv_s: float = field("RFC 8219 sec. 7.3.1: median over the repetitions of (99.9th percentile − least).")
    ipdv_s: tuple[float, float, float] = field(
        "RFC 8219 sec. 7.3.2: least, median and greatest inter-packet delay variation; NaN where it is not measured."
    )
    min_s: float
    max_s: float
    loss_ratio: float = field("Greatest loss among the repetitions.")
    hdr_base64: str = field("HDR histogram of the repetition whose median is the median.", default="")
    outcome: Literal["found", "undetermined"] = "found"
    reason: str = ""
    worst_trial: str = WORST_TRIAL


@value
class LatencyResult:
    """Sec. 26.2 and RFC 8219 sec. 7; ``definition`` is the RFC 1242 definition that sec. 26.2 asks to state."""

    rows: tuple[LatencyRow, ...]
    definition: str
    medium: str
    section: str = "RFC 2544 sec. 26.2"


DEFINITION = (
    "store-and-forward (RFC 1242 sec. 3.8): from the last bit in to the first bit out. Every frame carries a tag; the "
    "value of a repetition is the mean over the frames of its trial, the figure is the average of the repetitions"
)
"""Statement that sec. 26.2 asks for."""


def _run(stage: Stage, throughput_pps: float) -> tuple[LatencyRow, ...]:
    """Offer the profile's shares of the throughput, and return a row for each."""
    return tuple(_row(stage, throughput_pps, ratio) for ratio in stage.profile.latency.rates)


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
        p1_s=_median(delays, lambda delay: float(getattr(delay, "p1_s", math.nan))),
        p99_s=_median(delays, lambda delay: delay.p99_s),
        pdv_s=_median(delays, lambda delay: delay.p999_s - delay.min_s),
        ipdv_s=(math.nan, math.nan, math.nan),
        min_s=min((delay.min_s for delay in delays if math.isfinite(delay.min_s)), default=math.nan),
        max_s=max((delay.max_s for delay in delays if math.isfinite(delay.max_s)), default=math.nan),
        loss_ratio=max(map(loss_ratio_of, trials), default=math.nan),
        hdr_base64=sorted(delays, key=lambda delay: delay.p50_s)[len(delays) // 2].hdr_base64 if delays else "",
        outcome="found" if means and not reason else "undetermined",
        reason=reason,
    )


def _median(delays: Sequence[Delay], pick: Callable[[Delay], float]) -> float:
    values = [value for value in map(pick, delays) if math.isfinite(value)]
    return median(values) if values else math.nan


def _trials(profile: Profile) -> tuple[int, float]:
    trials = len(profile.latency.rates) * profile.latency.repeats
    return trials, trials * profile.latency.duration


def _deviations(profile: Profile) -> Iterator[Deviation]:
    settings = profile.latency
    if 1.0 not in settings.rates:
        rates = ", ".join(f"{ratio:.0%}" for ratio in settings.rates)
        yield deviation("26.2", "MUST", "latency at the throughput", f"at {rates} of it")
    if settings.repeats < 20:
        yield deviation("26.2", "MUST", "at least 20 repetitions, averaged", str(settings.repeats))
    if settings.duration < 120.0:
        yield deviation("26.2", "SHOULD", "a stream of at least 120 s", span(settings.duration))
    if settings.duration < 60.0:
        yield deviation("26.2", "SHOULD", "a tagged frame after 60 s", "tags throughout a shorter trial")


_TAIL = (0.5, 0.9, 0.99, 0.999, 0.9999)


def _figures(result: LatencyResult, benchmark: BenchmarkResult) -> list[Figure]:
    """Return a figure of latency by percentile, from the histograms, for each stream."""
    streams = list(dict.fromkeys(row.stream for row in result.rows if row.hdr_base64))
    figures = []
    for number, stream in enumerate(streams, start=1):
        rows = [row for row in result.rows if row.stream == stream and row.hdr_base64]
        figure = _latency_figure(
            rows, name=f"latency-{number}" if len(streams) > 1 else "latency", title=f"Latency by percentile, {stream}"
        )
        figures += [figure] if figure else []
    return figures


def _latency_figure(rows: Sequence[LatencyRow], *, name: str, title: str) -> Figure | None:
    sizes = sorted({row.frame_bytes for row in rows})
    colours = dict(zip(sizes, palette(len(sizes)), strict=True))
    shares = sorted({row.rate_ratio for row in rows}, reverse=True)
    marks: list[Mark] = []
    for row in sorted(rows, key=lambda row: (-row.rate_ratio, row.frame_bytes)):
        points = _percentile_points(row)
        if not points:
            continue
        is_first = row.rate_ratio == shares[0]
        marks.append(
            Line(
                name=f"{row.frame_bytes:g} B" + ("" if is_first else f" at {percent_of(row.rate_ratio)}"),
                x=tuple(place for place, _ in points),
                y=tuple(1e6 * value_s for _, value_s in points),
                colour=colours[row.frame_bytes],
                dashed=not is_first,
                legend=is_first,
            )
        )
    if not marks:
        return None
    values = [value for mark in marks for value in mark.y]
    latency_ticks = log_ticks(max(min(values), 1e-3), max(*values, 1e-3))
    ticks = tuple(-math.log10(1.0 - ratio) for ratio in (0.0, *_TAIL))
    others = " and ".join(percent_of(share) for share in shares[1:])
    return Figure(
        name=name,
        title=title,
        caption="Latency that each share of the frames did not exceed, in the median repetition"
        + (f", at {percent_of(shares[0])} of the throughput; dashed: at {others} of it." if others else ".")
        + " The horizontal axis stretches towards the last frames.",
        x=Axis(
            title="share of the frames that are faster [%]",
            ticks=ticks,
            labels=("0", *(f"{100.0 * ratio:g}" for ratio in _TAIL)),
            low=0.0,
            high=ticks[-1] + 0.02,
        ),
        y=Axis(
            title="latency",
            scale="log",
            ticks=latency_ticks,
            labels=tuple(time_text(tick * 1e-6) for tick in latency_ticks),
            low=latency_ticks[0],
            high=latency_ticks[-1],
        ),
        marks=tuple(marks),
    )


def _percentile_points(row: LatencyRow) -> list[tuple[float, float]]:
    """Return points of (−log10 of the share that is slower, latency in s)."""
    classes = classes_of_hdr(row.hdr_base64)
    if not classes:
        return []
    total = sum(count for _, _, count in classes)
    scale_s = _unit_s(row, classes)
    points: list[tuple[float, float]] = [(0.0, classes[0][0] * scale_s)]
    passed = 0
    for _, most, count in classes:
        passed += count
        slower = 1.0 - passed / total
        place = -math.log10(slower) if slower > 0.0 else math.inf
        if place > 4.0:
            points.append((4.0, most * scale_s))
            break
        if place - points[-1][0] >= 0.01:
            points.append((place, most * scale_s))
    return [(place, value_s) for place, value_s in points if value_s > 0.0]


def _unit_s(row: LatencyRow, classes: Sequence[tuple[int, int, int]]) -> float:
    """Return the histogram's unit: the power of ten seconds at which its median is that of the row."""
    half, passed, middle = sum(count for _, _, count in classes) / 2.0, 0, 0
    for _, most, count in classes:
        passed, middle = passed + count, most
        if passed >= half:
            break
    if not row.typical_s > 0.0 or middle <= 0:
        return 1e-9
    return float(10.0 ** round(math.log10(row.typical_s / middle)))


def _opening(result: LatencyResult, benchmark: BenchmarkResult) -> tuple[Block]:
    """State the definition, and the averages at the throughput."""
    sentences = [f"**Definition.** {as_sentence(result.definition)}"]
    means_s = [row.latency_s.mean for row in result.rows if row.rate_ratio == 1.0 and math.isfinite(row.latency_s.mean)]
    if means_s:
        ends = [time_text(value_s).replace(" ", "\u00a0") for value_s in (min(means_s), max(means_s))]
        sentences.append(
            f"The average is {ends[0]}." if ends[0] == ends[1] else f"Averages are from {ends[0]} to {ends[1]}."
        )
    return (Prose(tuple(sentences)),)


def _columns(result: LatencyResult) -> tuple[Column[LatencyRow], ...]:
    return (
        rate_column("Rate", lambda row: row.rate_pps),
        Column("Of throughput", "", percent_of, lambda row: row.rate_ratio, wide=True),
        Column.text("Media", lambda row: result.medium, wide=True),
        time_column("Mean", lambda row: row.latency_s.mean, group="of the repetitions"),
        time_column("Least", lambda row: row.latency_s.least, group="of the repetitions", wide=True),
        time_column("Most", lambda row: row.latency_s.most, group="of the repetitions", wide=True),
        Column("Number", "", "d", lambda row: row.latency_s.repeats, group="of the repetitions", wide=True),
        time_column("Least", lambda row: row.min_s, group="of the frames", wide=True),
        time_column("p1", lambda row: row.p1_s, group="of the frames", wide=True),
        time_column("Median", lambda row: row.typical_s, group="of the frames"),
        time_column("p99", lambda row: row.p99_s, group="of the frames", wide=True),
        time_column("p99.9", lambda row: row.worst_s, group="of the frames"),
        time_column("Most", lambda row: row.max_s, group="of the frames", wide=True),
        time_column("PDV", lambda row: row.pdv_s),
        time_column("Least", lambda row: row.ipdv_s[0], group="IPDV", wide=True),
        time_column("Median", lambda row: row.ipdv_s[1], group="IPDV", wide=True),
        time_column("Most", lambda row: row.ipdv_s[2], group="IPDV", wide=True),
        LOSS,
        LOSS_TRIAL,
    )


PROCEDURE = Procedure(
    name="latency",
    title="Latency",
    section="26.2",
    documents="RFC 2544 sec. 26.2; RFC 8219 sec. 7",
    lead="The time that a frame takes through the router, at the throughput.",
    settings=LatencyProfile,
    result=LatencyResult,
    run=_run,
    stated=lambda rows, profile, streams, medium: {"definition": DEFINITION, "medium": medium},
    trials=_trials,
    deviations=_deviations,
    columns=_columns,
    caption=lambda result: f"Mean: {describe_repeats(row.latency_s for row in result.rows)}.",
    explained="RFC 8219 sec. 7.2: typical is the median of the medians, worst the median of the 99.9th percentiles. "
    "Sec. 7.3: PDV is the 99.9th percentile less the least delay, IPDV the difference from frame to frame.",
    opening=_opening,
    figures=_figures,
    counts_frames=False,
)
