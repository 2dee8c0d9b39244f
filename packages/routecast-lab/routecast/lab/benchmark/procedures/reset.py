"""RFC 2544 sec. 26.6 as RFC 6201 replaces it: the length of a reset, by the frames lost meanwhile."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from routecast.evaluate.protocol import Resettable
from routecast.lab.benchmark.procedures.procedure import (
    LeftOut,
    Procedure,
    Spread,
    as_sentence,
    deviation,
    rate_column,
    resolved_column,
    resolved_text,
    span,
)
from routecast.lab.benchmark.settings import Repeats, Share
from routecast.lab.benchmark.stage import InvalidTrial, Stage, counts_of
from routecast.lab.benchmark.values import BenchmarkResult, Deviation, NotRun, Profile
from routecast.quantity.fields import Duration
from routecast.quantity.schema import field, value
from routecast.show.page import Block, Prose
from routecast.show.tables import Column, scaled

__all__ = ["PROCEDURE", "ResetProfile", "ResetResult", "ResetRow"]


@value
class ResetProfile:
    """``[reset]``: sec. 26.6 by RFC 6201."""

    before: Duration = field("Time of traffic before the reset.", default=15.0)
    after: Duration = field("Time of traffic after the reset, within which the device must come back.", default=60.0)
    rate: Share = field("Offered rate over the throughput.", default=1.0)
    repeats: Repeats = field("Trials per kind of reset; their mean is reported.", default=3)
    kinds: tuple[str, ...] = field("Kinds of reset; empty: all that the device offers.", default=())


@value
class ResetRow:
    """RFC 6201 (replaces sec. 26.6) for one kind of reset."""

    stream: str
    kind: str = field('``"process"``, ``"system"``, ``"link"``, …')
    section: str = field('Section of RFC 6201: ``"4.2.2"``.')
    frame_bytes: float = field("Frame size, the mean for a mix.")
    rate_pps: float = field("Offered rate: the throughput of the smallest frame, without loss before the reset.")
    l2_bps: float
    lost_frames: Spread
    reset_s: Spread = field("Frame-loss method: lost frames over the offered rate, one value per repetition.")
    resolution_s: float = field(
        "Time of one frame at the offered rate: a shorter reset loses none. NaN: unknown.", default=math.nan
    )
    statement: str = field("The one simple statement that RFC 6201 sec. 5 asks for.", default="")
    outcome: Literal["found", "undetermined"] = "found"
    reason: str = ""


@value
class ResetResult:
    """RFC 6201; kinds that were left out are in :attr:`BenchmarkResult.not_run`."""

    rows: tuple[ResetRow, ...]
    method: str = "frame loss: lost frames over the offered rate (RFC 6201 sec. 1.3)"
    section: str = "RFC 6201, RFC 2544 sec. 26.6"


KINDS = {
    "routing-processor": ("4.1.1", "reset of the routing processor"),
    "line-card": ("4.1.2", "reset of a line card"),
    "system": ("4.2.1", "reset of the operating system"),
    "process": ("4.2.2", "reset of a process"),
    "power": ("4.3", "interruption of power"),
    "link": ("", "interruption of a link, beside RFC 6201"),
}
"""Kinds of reset with their section of RFC 6201."""

_EXPECTED_KINDS = 2
"""Expected number of kinds of reset of a device."""

_REASONS_NOT_RUN = {
    "routing-processor": "a software router has no routing processor of its own (RFC 6201 sec. 4.1 is for such boxes)",
    "line-card": "a software router has no line cards (RFC 6201 sec. 4.1 is for such boxes)",
    "system": "this device cannot be rebooted from here",
    "process": "this device has no process that could be restarted alone",
    "power": "the power of this device cannot be switched from here",
    "link": "the links of this device cannot be interrupted from here",
}


def _run(stage: Stage, throughput_pps: float) -> tuple[ResetRow, ...]:
    """Run every kind of reset that the device offers and the profile asks for.

    Raises LeftOut: there is no such kind.
    """
    offered = stage.evaluator.reset_kinds if isinstance(stage.evaluator, Resettable) else ()
    kinds = [kind for kind in offered if kind in (stage.profile.reset.kinds or offered)]
    if not kinds:
        raise LeftOut("the profile asks for none of its resets" if offered else "nothing here can be reset")
    return tuple(_row(stage, throughput_pps, kind) for kind in kinds)


def _left_out(rows: Sequence[ResetRow], reasons: Mapping[str, str]) -> tuple[NotRun, ...]:
    """List the kinds of RFC 6201 that were not run, with the device's reason or a general reason."""
    return tuple(
        NotRun(section=f"RFC 6201 sec. {section}", what=what, reason=reasons.get(kind, _REASONS_NOT_RUN[kind]))
        for kind, (section, what) in KINDS.items()
        if section and not any(row.kind == kind for row in rows)
    )


def _row(stage: Stage, throughput_pps: float, kind: str) -> ResetRow:
    """Offer the throughput, reset the router, and return lost frames over offered rate (frame-loss method)."""
    settings = stage.profile.reset
    rate_pps = settings.rate * throughput_pps
    duration_s = settings.before + settings.after
    lost: list[float] = []
    times: list[float] = []
    reason = ""
    try:
        for number in range(1, settings.repeats + 1):
            trial = stage.reset_trial(rate_pps, duration_s, f"{kind} reset {number}", kind=kind, at_s=settings.before)
            counts = counts_of(trial, duration_s)
            lost.append(float(counts.lost))
            times.append(counts.lost / trial.offered_pps if trial.offered_pps else 0.0)
            # Loss up to the very end: the router has not come back within the trial.
            if trial.last_loss_s > duration_s - 2.0 / rate_pps - 1e-3 * settings.after:
                reason = f"the router had not come back {settings.after:g} s after the reset"
    except InvalidTrial as problem:
        reason = str(problem)
    section = KINDS.get(kind, ("", ""))[0]
    spread = Spread.of(tuple(times))
    frames = Spread.of(tuple(lost))
    l2_bps = 8.0 * stage.frame_bytes * rate_pps
    resolution_s = 1.0 / rate_pps if rate_pps > 0.0 else math.nan
    is_resolved = not spread.mean < resolution_s
    time = f"{1e3 * spread.mean:,.3f} ms" if is_resolved else resolved_text(spread.mean, resolution_s)
    statement = (
        f"{kind} reset: {time} (mean of {spread.repeats}), {frames.mean:,.0f} frames lost at "
        f"{rate_pps:,.0f} frames/s ({l2_bps:,.0f} bit/s) of {stage.frame_bytes:g} bytes, {stage.stream.name}, UDP, "
        "static routes"
    )
    return ResetRow(
        stream=stage.stream.name,
        kind=kind,
        section=section,
        frame_bytes=stage.frame_bytes,
        rate_pps=rate_pps,
        l2_bps=l2_bps,
        lost_frames=frames,
        reset_s=spread,
        resolution_s=resolution_s,
        statement="" if reason else statement,
        outcome="undetermined" if reason else "found",
        reason=reason,
    )


def _trials(profile: Profile) -> tuple[int, float]:
    settings = profile.reset
    trials = _EXPECTED_KINDS * settings.repeats
    return trials, trials * (settings.before + settings.after)


def _deviations(profile: Profile) -> Iterator[Deviation]:
    settings = profile.reset
    if settings.before < 15.0:
        yield deviation("4", "MUST", "15 s of forwarding before the reset", span(settings.before), document="RFC 6201")
    if settings.rate < 1.0:
        yield deviation("26.6", "MUST", "the throughput as offered rate", f"{settings.rate:.0%} of it")
    if settings.repeats < 2:
        yield deviation("1.5", "SHOULD", "several trials", str(settings.repeats), document="RFC 6201")


def _opening(result: ResetResult, benchmark: BenchmarkResult) -> tuple[Block, ...]:
    statements = tuple(as_sentence(row.statement) for row in result.rows if row.statement)
    return (Prose(statements),) if statements else ()


def _columns(result: ResetResult) -> tuple[Column[ResetRow], ...]:
    return (
        Column.text("Reset", lambda row: row.kind),
        Column.text("RFC 6201 sec.", lambda row: row.section, wide=True),
        rate_column("Rate", lambda row: row.rate_pps),
        Column("Rate", "Mbit/s", scaled(1e-6, ",.1f"), lambda row: row.l2_bps, wide=True),
        Column("Lost", "frames", ",.0f", lambda row: row.lost_frames.mean),
        resolved_column("Time", lambda row: row.reset_s.mean),
        resolved_column("Least", lambda row: row.reset_s.least, wide=True),
        resolved_column("Most", lambda row: row.reset_s.most, wide=True),
        Column("Trials", "", "d", lambda row: row.reset_s.repeats),
    )


PROCEDURE = Procedure(
    name="reset",
    title="Reset",
    section="26.6",
    documents="RFC 6201",
    lead="The time for which the router forwards nothing while it, or a part of it, restarts.",
    settings=ResetProfile,
    result=ResetResult,
    run=_run,
    trials=_trials,
    deviations=_deviations,
    left_out=_left_out,
    columns=_columns,
    row_name=lambda row: row.kind,
    caption=lambda result: as_sentence(result.method),
    opening=_opening,
    smallest_only=True,
)
