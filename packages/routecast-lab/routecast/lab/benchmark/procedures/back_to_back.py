"""RFC 2544 sec. 26.4 as RFC 9004 replaces it: the longest burst at the maximum rate without loss, and its buffer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from routecast.lab.benchmark.procedures.procedure import (
    Procedure,
    Spread,
    as_sentence,
    describe_repeats,
    deviation,
    span,
    time_column,
)
from routecast.lab.benchmark.search import Burst, longest_burst
from routecast.lab.benchmark.settings import Repeats, Share
from routecast.lab.benchmark.stage import Counts, InvalidTrial, Stage
from routecast.lab.benchmark.streams import Stream
from routecast.lab.benchmark.values import Deviation, Profile
from routecast.quantity.fields import Duration, Span
from routecast.quantity.schema import field, value
from routecast.show.page import Prose
from routecast.show.tables import Column

__all__ = ["PROCEDURE", "BackToBackProfile", "BackToBackResult", "BackToBackRow"]


Outcome = Literal["found", "limit", "skipped", "undetermined"]


@value
class BackToBackProfile:
    """``[back_to_back]``: sec. 26.4 by RFC 9004."""

    repeats: Repeats = field("Searches; their mean is reported.", default=50)
    longest: Duration = field("Upper limit of a burst's send time, up to 30 s.", default=30.0)
    width: Annotated[float, Field(gt=0.0, lt=0.5)] = field(
        "Least step of the search, over the burst; at least one frame.", default=0.005
    )
    verify_losses: Annotated[int, Field(ge=0, le=20, strict=True)] = field(
        "Repetitions of a burst with loss: max(r) of TST009.", default=2
    )
    verify_below: Share = field("Greater loss is not verified: z of TST009.", default=0.1)
    residual: Span = field("Wait for residual frames; longer for deep buffers.", default=2.0)


@value
class BackToBackRow:
    """Sec. 26.4 by RFC 9004, for one stream and frame size."""

    stream: str
    frame_bytes: float = field("Frame size, the mean for a mix.")
    burst_frames: Spread = field(
        "Longest burst at the maximum rate without loss; each value is the result of a whole search."
    )
    throughput_pps: float
    theoretical_pps: float
    implied_buffer_s: float = field("RFC 9004 sec. 6.4: mean burst over the theoretical maximum rate.")
    corrected_buffer_s: float = field(
        "Implied buffer less the frames that leave meanwhile: implied − implied · throughput / theoretical."
    )
    resolution_frames: int = field("Least step of the search.")
    longest_s: float = field("Upper limit of the burst's send time.")
    outcome: Outcome = field(
        "``limit``: the longest burst lost nothing. ``skipped``: the throughput is the theoretical maximum, for which "
        "RFC 9004 sec. 5.2 asks for no test.",
        default="found",
    )
    reason: str = ""
    trials: int = 0


@value
class BackToBackResult:
    """Sec. 26.4 (RFC 9004); ``algorithm`` states the search and its inputs, as sec. 6 of RFC 9004 asks."""

    rows: tuple[BackToBackRow, ...]
    algorithm: str
    section: str = "RFC 9004, RFC 2544 sec. 26.4"


_MAX_BURST_S = 30.0
_BURSTS_OF_A_SEARCH = 8
_MIN_RATE_RATIO = 1.2
"""Least rate of a burst over the throughput: a slower burst hardly fills the buffer."""


def _run(stage: Stage, throughput_pps: float) -> tuple[BackToBackRow]:
    """Search for the longest burst as often as the profile asks.

    Where the throughput is the theoretical maximum, no burst is too long, and none is sent (RFC 9004 sec. 5.2).
    """
    settings = stage.profile.back_to_back
    if throughput_pps >= stage.theoretical_pps * (1.0 - 1e-6):
        reason = "the throughput is the theoretical maximum: no burst is too long (RFC 9004 sec. 5.2)"
        return _row(stage, throughput_pps, [], "skipped", reason)
    if throughput_pps >= stage.maximum_pps * (1.0 - 1e-6):
        reason = "the tester sends no faster than the router forwards: no burst that it can send is too long"
        return _row(stage, throughput_pps, [], "skipped", reason)
    bursts: list[Burst] = []
    max_frames = max(round(settings.longest * stage.maximum_pps), 1)
    try:
        for number in range(1, settings.repeats + 1):
            hint = bursts[-1].frames if bursts else 0
            bursts.append(_search(stage, settings, max_frames, number, hint, _MIN_RATE_RATIO * throughput_pps))
            if bursts[-1].outcome == "limit":
                break
    except InvalidTrial as problem:
        if not bursts:
            return _row(stage, throughput_pps, bursts, "undetermined", str(problem))
        reason = f"{len(bursts)} of {settings.repeats} searches ended: {problem}"
        return _row(stage, throughput_pps, bursts, "found", reason)
    if bursts[-1].outcome == "limit":
        reason = f"no loss in {settings.longest:g} s at the maximum rate, the upper limit of the send time"
        return _row(stage, throughput_pps, bursts, "limit", reason)
    slower = ""
    if stage.burst_pps < stage.theoretical_pps * (1.0 - 1e-9):
        slower = f"bursts came at {stage.burst_pps:,.0f} frames/s, at which the tester sends short ones evenly"
    return _row(stage, throughput_pps, bursts, "found", slower)


def _stated(rows: Sequence[BackToBackRow], profile: Profile, streams: Sequence[Stream], medium: str) -> dict[str, str]:
    """Return the search and its inputs (RFC 9004 sec. 6)."""
    settings = profile.back_to_back
    algorithm = (
        f"TST009 binary search with loss verification: bursts at the maximum rate of up to {settings.longest:g} s; "
        f"a burst that loses at most {settings.verify_below:.0%} is sent again up to {settings.verify_losses} times; "
        f"least step {settings.width:.2%} of the burst, one frame at least; {settings.residual:g} s for residual "
        f"frames; {settings.repeats} searches"
    )
    return {"algorithm": algorithm}


def _search(
    stage: Stage, settings: BackToBackProfile, max_frames: int, number: int, hint: int, min_pps: float
) -> Burst:
    def send(frames: int, purpose: str) -> Counts:
        return stage.burst(frames, f"search {number}, {purpose}", residual_s=settings.residual, min_pps=min_pps)

    return longest_burst(
        send,
        max_frames=max_frames,
        width_ratio=settings.width,
        verify_losses=settings.verify_losses,
        verify_below=settings.verify_below,
        hint_frames=hint,
    )


def _row(
    stage: Stage, throughput_pps: float, bursts: list[Burst], outcome: Outcome, reason: str
) -> tuple[BackToBackRow]:
    settings = stage.profile.back_to_back
    spread = Spread.of(tuple(float(burst.frames) for burst in bursts))
    theoretical_pps = min(stage.burst_pps, stage.maximum_pps)  # the rate at which the burst came
    implied_s = spread.mean / theoretical_pps
    # RFC 9004 sec. 6.4: frames leave the buffer while the burst comes in.
    corrected_s = implied_s - implied_s * throughput_pps / theoretical_pps
    is_measured = outcome in {"found", "limit"}
    row = BackToBackRow(
        stream=stage.stream.name,
        frame_bytes=stage.frame_bytes,
        burst_frames=spread,
        throughput_pps=throughput_pps,
        theoretical_pps=theoretical_pps,
        implied_buffer_s=implied_s if is_measured else math.nan,
        corrected_buffer_s=corrected_s if is_measured else math.nan,
        resolution_frames=max(round(settings.width * spread.mean), 1) if bursts else 1,
        longest_s=settings.longest,
        outcome=outcome,
        reason=reason,
        trials=sum(burst.trials for burst in bursts),
    )
    return (row,)


def _trials(profile: Profile) -> tuple[int, float]:
    settings = profile.back_to_back
    trials = settings.repeats * _BURSTS_OF_A_SEARCH * (1.0 + 0.25 * settings.verify_losses)
    # Bursts take milliseconds, except that the longest burst opens the first search. They have their own residual wait.
    extra_wait_s = max(settings.residual - profile.trial.residual, 0.0)
    return math.ceil(trials), settings.longest + trials * extra_wait_s


def _deviations(profile: Profile) -> Iterator[Deviation]:
    settings = profile.back_to_back
    if settings.longest < 2.0:
        done = f"at most {span(settings.longest)}"
        yield deviation("26.4", "MUST", "bursts of up to 2 s at least", done)
    if settings.longest > _MAX_BURST_S:
        yield deviation(
            "5.4", "SHOULD", "an upper limit of up to 30 s for the burst", span(settings.longest), document="RFC 9004"
        )
    if settings.repeats < 50:
        yield deviation("26.4", "SHOULD", "at least 50 repetitions", str(settings.repeats))
    if settings.residual < 2.0:
        yield deviation("5.4", "MUST", "2 s or more for residual frames", span(settings.residual), document="RFC 9004")


def _columns(result: BackToBackResult) -> tuple[Column[BackToBackRow], ...]:
    return (
        Column("Burst", "frames", ",.1f", lambda row: row.burst_frames.mean, group="length of burst"),
        Column("Least", "frames", ",.0f", lambda row: row.burst_frames.least, group="length of burst"),
        Column("Most", "frames", ",.0f", lambda row: row.burst_frames.most, group="length of burst"),
        Column("sd", "frames", ",.1f", lambda row: row.burst_frames.sd, group="length of burst"),
        Column("Tests", "", "d", lambda row: row.burst_frames.repeats, wide=True),
        Column("Step", "frames", "d", lambda row: row.resolution_frames, wide=True),
        time_column("Implied buffer", lambda row: row.implied_buffer_s, wide=True),
        time_column("Corrected buffer", lambda row: row.corrected_buffer_s),
    )


PROCEDURE = Procedure(
    name="back_to_back",
    title="Back-to-back frames",
    section="26.4",
    documents="RFC 9004",
    lead="The longest burst at the maximum rate that the router takes without loss: a measure of its buffers.",
    settings=BackToBackProfile,
    result=BackToBackResult,
    run=_run,
    stated=_stated,
    trials=_trials,
    deviations=_deviations,
    outcomes={"limit": "the longest allowed", "skipped": "not tested"},
    columns=_columns,
    caption=lambda result: as_sentence(describe_repeats(row.burst_frames for row in result.rows)),
    explained="RFC 9004 sec. 6: longest bursts at the maximum rate without loss, and the buffer that explains them.",
    opening=lambda result, benchmark: (Prose((as_sentence(result.algorithm),)),),
)
