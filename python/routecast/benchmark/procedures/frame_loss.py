"""RFC 2544 sec. 26.3: frame loss rate over the offered rate, from the maximum down."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from routecast.benchmark.procedures.procedure import Deviation, Procedure, rfc2544, span
from routecast.benchmark.settings import Repeats, Share, Table
from routecast.benchmark.stage import InvalidTrial, Stage, counts_of
from routecast.quantity.fields import Duration

if TYPE_CHECKING:
    from routecast.benchmark.plan import Plan
    from routecast.benchmark.profile import Profile

__all__ = ["FRAME_LOSS", "FrameLossProfile", "FrameLossResult", "FrameLossRow"]


class FrameLossProfile(Table):
    """``[frame_loss]``: sec. 26.3."""

    duration: Duration = Field(default=60.0, description="Length of a trial.")
    step: Share = Field(default=0.1, description="Step of the rate, over the maximum rate; at most 0.1.")
    stop_after: Repeats = Field(default=2, description="Successive trials without loss that end the series.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLossRow:
    """Sec. 26.3, one point: loss at a share of the theoretical maximum rate of the frame size."""

    stream: str
    frame_bytes: int
    rate_ratio: float
    intended_pps: float
    offered_pps: float
    forwarded_pps: float
    loss_ratio: float
    theoretical_pps: float
    outcome: Literal["found", "undetermined"] = "found"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLossResult:
    """Sec. 26.3: from the maximum rate down in steps until two successive trials without loss."""

    rows: tuple[FrameLossRow, ...]
    step_ratio: float
    section: str = "RFC 2544 sec. 26.3"


def _run(stage: Stage, throughput_pps: float) -> tuple[FrameLossRow, ...]:
    """Offer the maximum rate, then less by a step each, until two successive trials lose nothing.

    The steps are shares of the theoretical maximum of the frame size. Where the tester reaches less than that, the
    first point is what it reaches. Rates below one step are gone through in finer ones.
    """
    settings = stage.profile.frame_loss
    rows: list[FrameLossRow] = []
    without_loss = 0
    most_ratio = stage.maximum_pps / stage.theoretical_pps
    steps = [ratio for ratio in _ratios(settings.step, stage.profile.throughput.least) if ratio < most_ratio - 1e-9]
    for ratio in (most_ratio, *steps):
        row = _row(stage, ratio * stage.theoretical_pps)
        rows.append(row)
        without_loss = without_loss + 1 if row.loss_ratio == 0.0 else 0
        if without_loss == settings.stop_after:
            break
    return tuple(rows)


def _ratios(step: float, least: float) -> Iterator[float]:
    """Yield the shares of the maximum: in steps down to one step, then in a tenth of it, and so on.

    Sec. 26.3 encourages a finer granularity; a router far slower than its medium needs it to lose nothing.

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


def _result(rows: Sequence[FrameLossRow], plan: Plan, medium: str) -> FrameLossResult:
    """Return the rows as one result."""
    return FrameLossResult(rows=tuple(rows), step_ratio=plan.profile.frame_loss.step)


def _row(stage: Stage, intended_pps: float) -> FrameLossRow:
    duration_s = stage.profile.frame_loss.duration
    ratio = intended_pps / stage.theoretical_pps
    try:
        trial, reason = stage.trial(intended_pps, duration_s, f"{ratio:.0%} of the maximum"), ""
    except InvalidTrial as problem:
        trial, reason = problem.trial, str(problem)
    counts = counts_of(trial, duration_s)
    return FrameLossRow(
        stream=stage.stream.name,
        frame_bytes=stage.frame_bytes,
        rate_ratio=ratio,
        intended_pps=intended_pps,
        offered_pps=trial.offered_pps,
        forwarded_pps=trial.forwarded_pps,
        # (input − output)·100/input, by counts.
        loss_ratio=float("nan") if reason else (counts.lost / counts.offered if counts.offered else 0.0),
        theoretical_pps=stage.theoretical_pps,
        outcome="undetermined" if reason else "found",
        reason=reason,
    )


def _trials(profile: Profile) -> tuple[int, float]:
    trials = max(math.ceil(0.7 / profile.frame_loss.step), profile.frame_loss.stop_after)
    return trials, trials * profile.frame_loss.duration


def _deviations(profile: Profile) -> Iterator[Deviation]:
    settings = profile.frame_loss
    if settings.step > 0.1 + 1e-12:
        yield rfc2544("26.3", "MUST", "steps of at most 10 % of the maximum rate", f"{settings.step:.0%}")
    if settings.stop_after < 2:
        yield rfc2544("26.3", "SHOULD", "down to two successive trials without loss", str(settings.stop_after))
    if settings.duration < 60.0:
        yield rfc2544("24", "SHOULD", "trials of at least 60 s (frame loss)", span(settings.duration))


FRAME_LOSS = Procedure(
    name="frame_loss",
    section="26.3",
    settings=FrameLossProfile,
    run=_run,
    result_of=_result,
    trials=_trials,
    deviations=_deviations,
    rests_on_throughput=False,
    counts_frames=False,
)
