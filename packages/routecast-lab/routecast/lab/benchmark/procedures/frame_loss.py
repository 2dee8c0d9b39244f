"""RFC 2544 sec. 26.3: frame loss rate over the offered rate, from the maximum down."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

from routecast.lab.benchmark.overload import standard_error_ratio
from routecast.lab.benchmark.procedures.procedure import (
    LOSS,
    LOSS_TRIAL,
    WORST_TRIAL,
    Procedure,
    deviation,
    frames_per_second,
    percent_of,
    rate_column,
    span,
)
from routecast.lab.benchmark.settings import Repeats, Share
from routecast.lab.benchmark.stage import InvalidTrial, Stage, counts_of, loss_ratio_of
from routecast.lab.benchmark.values import BenchmarkResult, Deviation, Profile
from routecast.lab.testbed.checks import disturbances
from routecast.quantity import format_ratio
from routecast.quantity.fields import Duration
from routecast.quantity.schema import field, value
from routecast.show.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.show.tables import Column, percent

__all__ = ["PROCEDURE", "FrameLossProfile", "FrameLossResult", "FrameLossRow"]


@value
class FrameLossProfile:
    """``[frame_loss]``: sec. 26.3."""

    duration: Duration = field("Length of a trial.", default=60.0)
    step: Share = field("Step of the rate, over the maximum rate; at most 0.1.", default=0.1)
    stop_after: Repeats = field("Successive trials without loss that end the series.", default=2)


@value
class FrameLossRow:
    """Sec. 26.3, one point: loss at a share of the theoretical maximum rate of the frame size."""

    stream: str
    frame_bytes: float = field("Frame size, the mean for a mix.")
    rate_ratio: float
    intended_pps: float
    offered_pps: float
    forwarded_pps: float
    loss_ratio: float
    theoretical_pps: float
    outcome: Literal["found", "undetermined"] = "found"
    reason: str = ""
    worst_trial: str = WORST_TRIAL
    disturbed: str = field("What other work did to the trial; empty: nothing is known.", default="")
    standard_error_ratio: float | None = field(
        "Standard error of the forwarded rate over the rate, from the course of the trial.", default=None
    )


@value
class FrameLossResult:
    """Sec. 26.3: loss from the maximum rate down, in steps, until two successive trials lose nothing."""

    rows: tuple[FrameLossRow, ...]
    step_ratio: float
    section: str = "RFC 2544 sec. 26.3"


def _run(stage: Stage, throughput_pps: float) -> tuple[FrameLossRow, ...]:
    """Offer the maximum rate, then a step less in each trial, until two successive trials lose nothing.

    The steps are shares of the theoretical maximum of the frame size. If the tester reaches less, the first point is at
    its greatest rate. Steps are finer at rates below one step.
    """
    settings = stage.profile.frame_loss
    max_ratio = stage.maximum_pps / stage.theoretical_pps
    rows = [_row(stage, stage.maximum_pps)]
    # The trial at the greatest rate shows how far down the series may have to go.
    least_ratio = stage.least_pps / stage.theoretical_pps
    without_loss = int(rows[0].loss_ratio == 0.0)
    for ratio in _ratios(settings.step, least_ratio):
        if without_loss == settings.stop_after:
            break
        if ratio >= max_ratio - 1e-9:
            continue
        row = _row(stage, ratio * stage.theoretical_pps)
        rows.append(row)
        without_loss = without_loss + 1 if row.loss_ratio == 0.0 else 0
    return tuple(rows)


def _ratios(step: float, least: float) -> Iterator[float]:
    """Yield shares of the maximum in steps down to one step, then in tenths of a step, then in hundredths.

    Sec. 26.3 encourages a finer granularity, and a router far slower than its medium loses frames without it.

    Examples
    --------
    >>> [round(ratio, 3) for ratio in _ratios(0.25, 0.05)]
    [1.0, 0.75, 0.5, 0.25, 0.225, 0.2, 0.175, 0.15, 0.125, 0.1, 0.075, 0.05]
    """
    ratio = 1.0
    while ratio > least * (1.0 - 1e-9):
        yield ratio
        if ratio <= step * (1.0 + 1e-9):
            step /= 10.0
        ratio -= step


def _row(stage: Stage, intended_pps: float) -> FrameLossRow:
    duration_s = stage.profile.frame_loss.duration
    ratio = intended_pps / stage.theoretical_pps
    try:
        trial, reason = stage.trial(intended_pps, duration_s, f"{ratio:.0%} of the maximum"), ""
    except InvalidTrial as problem:
        trial, reason = problem.trial, str(problem)
    counts = counts_of(trial, duration_s)
    if trial.offered_frames is None:
        loss_ratio = loss_ratio_of(trial)
    else:
        loss_ratio = counts.lost / counts.offered if counts.offered else 0.0
    if math.isnan(loss_ratio) and not reason:
        reason = next((note for note in trial.notes if "loss is not known" in note), "the loss is not known")
    return FrameLossRow(
        stream=stage.stream.name,
        frame_bytes=stage.frame_bytes,
        rate_ratio=ratio,
        intended_pps=intended_pps,
        offered_pps=trial.offered_pps,
        forwarded_pps=trial.forwarded_pps,
        # (input − output)·100/input, by counts.
        loss_ratio=float("nan") if reason else loss_ratio,
        theoretical_pps=stage.theoretical_pps,
        outcome="undetermined" if reason else "found",
        reason=reason,
        disturbed="; ".join(disturbances(trial)) if trial.evaluator == "measure" else "",
        standard_error_ratio=standard_error_ratio(trial),
    )


def _trials(profile: Profile) -> tuple[int, float]:
    trials = max(math.ceil(0.7 / profile.frame_loss.step), profile.frame_loss.stop_after)
    return trials, trials * profile.frame_loss.duration


def _deviations(profile: Profile) -> Iterator[Deviation]:
    settings = profile.frame_loss
    if settings.step > 0.1 + 1e-12:
        yield deviation("26.3", "MUST", "steps of at most 10 % of the maximum rate", f"{settings.step:.0%}")
    if settings.stop_after < 2:
        yield deviation("26.3", "SHOULD", "down to two successive trials without loss", str(settings.stop_after))
    if settings.duration < 60.0:
        yield deviation("24", "SHOULD", "trials of at least 60 s (frame loss)", span(settings.duration))


_PERCENTS = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
_FULL_RATE_RATIO = 0.995


def _figures(result: FrameLossResult, benchmark: BenchmarkResult) -> list[Figure]:
    """Return a figure for each stream: loss over the input rate, both from 0 to 100 % (sec. 26.3)."""
    figures = []
    streams = list(dict.fromkeys(row.stream for row in result.rows))
    for number, stream in enumerate(streams, start=1):
        rows = [row for row in result.rows if row.stream == stream and math.isfinite(row.loss_ratio)]
        sizes = sorted({row.frame_bytes for row in rows})
        marks: list[Mark] = []
        for size, colour in zip(sizes, palette(len(sizes)), strict=True):
            by_rate = sorted((row for row in rows if row.frame_bytes == size), key=lambda row: row.rate_ratio)
            x = tuple(100.0 * row.rate_ratio for row in by_rate)
            y = tuple(100.0 * row.loss_ratio for row in by_rate)
            labels = tuple(
                f"{size:g} B at {100.0 * row.rate_ratio:.0f} % of {frames_per_second(row.theoretical_pps)} frames/s"
                f"\n{format_ratio(row.loss_ratio, 4)} lost"
                for row in by_rate
            )
            marks += [
                Line(name=f"{size:g} B", x=x, y=y, colour=colour),
                Points(name=f"{size:g} B", x=x, y=y, colour=colour, labels=labels, legend=False, size_px=6),
            ]
        if not marks:
            continue
        figures.append(
            Figure(
                name=f"frame-loss-{number}" if len(streams) > 1 else "frame-loss",
                title=f"Frame loss rate, {stream}",
                caption="RFC 2544 sec. 26.3: loss over the input rate, both from 0 to 100 %."
                + _tester_limit_text(rows),
                x=Axis(
                    title="input rate [% of the theoretical rate for the size]", ticks=_PERCENTS, low=0.0, high=100.0
                ),
                y=Axis(title="frame loss [%]", ticks=_PERCENTS, low=0.0, high=100.0),
                marks=tuple(marks),
            )
        )
    return figures


def _tester_limit_text(rows: Sequence[FrameLossRow]) -> str:
    max_ratio = max(row.rate_ratio for row in rows)
    text = f" The tester reaches {percent_of(max_ratio)} of the theoretical rate: there are no points beyond."
    return text if max_ratio < _FULL_RATE_RATIO else ""


def _columns(result: FrameLossResult) -> tuple[Column[FrameLossRow], ...]:
    return (
        Column("Of maximum", "%", percent, lambda row: row.rate_ratio),
        rate_column("Offered", lambda row: row.offered_pps),
        rate_column("Forwarded", lambda row: row.forwarded_pps),
        LOSS,
        LOSS_TRIAL,
    )


PROCEDURE = Procedure(
    name="frame_loss",
    title="Frame loss rate",
    section="26.3",
    documents="RFC 2544 sec. 26.3",
    lead="The share of frames that the router loses when the load exceeds its capacity. From the maximum rate "
    "downwards, until two trials in a row lose nothing.",
    settings=FrameLossProfile,
    result=FrameLossResult,
    run=_run,
    stated=lambda rows, profile, streams, medium: {"step_ratio": profile.frame_loss.step},
    trials=_trials,
    deviations=_deviations,
    columns=_columns,
    caption=lambda result: f"In steps of {percent_of(result.step_ratio)} of the maximum rate for the size.",
    figures=_figures,
    rests_on_throughput=False,
    counts_frames=False,
)
