"""RFC 2544 sec. 26.5: how long a router loses frames after an overload has ended."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from routecast.lab.benchmark.procedures.procedure import (
    Procedure,
    Spread,
    deviation,
    percent_of,
    rate_column,
    resolved_column,
    span,
)
from routecast.lab.benchmark.settings import Repeats, Share
from routecast.lab.benchmark.stage import InvalidTrial, Stage
from routecast.lab.benchmark.values import Deviation, Profile
from routecast.load.offered import RateStep
from routecast.quantity.fields import Duration
from routecast.quantity.schema import field, value
from routecast.show.tables import Column

__all__ = ["PROCEDURE", "RecoveryProfile", "RecoveryResult", "RecoveryRow"]


@value
class RecoveryProfile:
    """``[recovery]``: sec. 26.5."""

    overload: Annotated[float, Field(gt=1.0, le=10.0)] = field("Overload over the throughput.", default=1.1)
    overload_duration: Duration = field("Time at overload.", default=60.0)
    recovery: Share = field("Rate after the cut, over the overload.", default=0.5)
    recovery_duration: Duration = field("Time after the cut.", default=60.0)
    repeats: Repeats = field("Trials; their mean is reported.", default=5)


@value
class RecoveryRow:
    """Sec. 26.5 for one stream and frame size."""

    stream: str
    frame_bytes: float = field("Frame size, the mean for a mix.")
    throughput_pps: float = field("The rate used as throughput.")
    overload_pps: float = field("The lesser of 110 % of it and the medium's maximum.")
    recovery_pps: float = field("Half of the overload.")
    recovery_s: Spread = field(
        "B − A: sending time of the last lost frame after the cut of the rate. At most 0 if the last loss came before "
        'the cut. (The RFC\'s "subtract B from A" would be negative.) A time below ``resolution_s`` is not resolved.'
    )
    resolution_s: float = field(
        "The greatest of the gap between frames after the cut, the mean time between lost frames of the overload, and "
        "the time by which a last loss came before the cut: no shorter recovery is seen. NaN: unknown.",
        default=math.nan,
    )
    overload_loss_ratio: float = field("Greatest loss ratio of a whole trial; 0 shows that there was no overload.")
    outcome: Literal["found", "no overload", "undetermined"] = "found"
    reason: str = ""


@value
class RecoveryResult:
    """Sec. 26.5."""

    rows: tuple[RecoveryRow, ...]
    section: str = "RFC 2544 sec. 26.5"


def _run(stage: Stage, throughput_pps: float) -> tuple[RecoveryRow]:
    """Offer 110 % of the throughput (at most the maximum rate), cut the rate to half of it, find the last lost frame.

    The result is B − A: the sending time of the last lost frame after the cut. (Sec. 26.5 subtracts B from A, which
    gives a negative time.)
    """
    settings = stage.profile.recovery
    overload_pps = min(settings.overload * throughput_pps, stage.maximum_pps)
    recovery_pps = settings.recovery * overload_pps
    cut_s = settings.overload_duration
    values: list[float] = []
    losses: list[float] = []
    gaps_s = [1.0 / recovery_pps] if recovery_pps > 0.0 else []
    reason = ""
    try:
        for number in range(1, settings.repeats + 1):
            step = RateStep(at_s=cut_s, rate_pps=recovery_pps)
            trial = stage.trial(overload_pps, cut_s + settings.recovery_duration, f"repeat {number}", step)
            losses.append(trial.loss_ratio if trial.dropped_frames != 0 else 0.0)
            if math.isfinite(trial.last_loss_s):
                values.append(trial.last_loss_s - cut_s)
                gaps_s.append(cut_s - trial.last_loss_s)
                if trial.dropped_frames:
                    gaps_s.append(cut_s / trial.dropped_frames)
    except InvalidTrial as problem:
        reason = str(problem)
    is_overload = bool(values or reason)
    if not is_overload:
        reason = f"nothing was lost at {overload_pps:,.0f} frames/s, so there was no overload to recover from"
    row = RecoveryRow(
        stream=stage.stream.name,
        frame_bytes=stage.frame_bytes,
        throughput_pps=throughput_pps,
        overload_pps=overload_pps,
        recovery_pps=recovery_pps,
        recovery_s=Spread.of(tuple(values)),
        resolution_s=max(gaps_s, default=math.nan),
        overload_loss_ratio=max(losses, default=math.nan),
        outcome="no overload" if not is_overload else "undetermined" if reason else "found",
        reason=reason,
    )
    return (row,)


def _trials(profile: Profile) -> tuple[int, float]:
    settings = profile.recovery
    return settings.repeats, settings.repeats * (settings.overload_duration + settings.recovery_duration)


def _deviations(profile: Profile) -> Iterator[Deviation]:
    settings = profile.recovery
    if abs(settings.overload - 1.1) > 1e-9:
        yield deviation("26.5", "MUST", "110 % of the throughput", f"{settings.overload:.0%}")
    if abs(settings.recovery - 0.5) > 1e-9:
        yield deviation("26.5", "MUST", "a cut to half of the overload", f"to {settings.recovery:.0%}")
    if settings.overload_duration < 60.0:
        yield deviation("26.5", "MUST", "at least 60 s of overload", span(settings.overload_duration))
    if settings.repeats < 2:
        yield deviation("26.5", "SHOULD", "several repetitions", str(settings.repeats))


def _columns(result: RecoveryResult) -> tuple[Column[RecoveryRow], ...]:
    return (
        rate_column("As throughput", lambda row: row.throughput_pps, group="rates", wide=True),
        rate_column("Overload", lambda row: row.overload_pps, group="rates"),
        rate_column("Then", lambda row: row.recovery_pps, group="rates"),
        resolved_column("Recovery", lambda row: row.recovery_s.mean),
        resolved_column("Least", lambda row: row.recovery_s.least, wide=True),
        resolved_column("Most", lambda row: row.recovery_s.most, wide=True),
        Column("Tests", "", "d", lambda row: row.recovery_s.repeats, wide=True),
        Column("Loss", "in the overload", percent_of, lambda row: row.overload_loss_ratio, wide=True),
    )


PROCEDURE = Procedure(
    name="recovery",
    title="System recovery",
    section="26.5",
    documents="RFC 2544 sec. 26.5",
    lead="The time for which the router loses frames after an overload of 110 % has ended.",
    settings=RecoveryProfile,
    result=RecoveryResult,
    run=_run,
    trials=_trials,
    deviations=_deviations,
    outcomes={"no overload": "the overload was none"},
    columns=_columns,
    caption=lambda result: (
        "Last lost frame after the end of the overload. Not resolved: less than the time between two "
        "frames that the overload loses."
    ),
)
