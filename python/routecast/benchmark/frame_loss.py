"""RFC 2544 sec. 26.3: frame loss rate over the offered rate, from the maximum down."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.benchmark.result import FrameLossResult, FrameLossRow
from routecast.benchmark.stage import InvalidTrial, Stage, counts_of

__all__ = ["result_of", "run"]


def run(stage: Stage) -> tuple[FrameLossRow, ...]:
    """Offer the maximum rate, then less by a step each, until two successive trials lose nothing.

    The steps are shares of the theoretical maximum of the frame size. Where the tester reaches less than that, the
    first point is what it reaches.
    """
    settings = stage.profile.frame_loss
    rows: list[FrameLossRow] = []
    without_loss = 0
    step = 0
    while without_loss < settings.stop_after:
        ratio = 1.0 - step * settings.step
        step += 1
        if ratio <= 1e-9:
            break
        intended_pps = ratio * stage.theoretical_pps
        if intended_pps > stage.maximum_pps:
            if ratio - settings.step > stage.maximum_pps / stage.theoretical_pps:
                continue
            intended_pps = stage.maximum_pps
        row = _row(stage, intended_pps)
        rows.append(row)
        without_loss = without_loss + 1 if row.loss_ratio == 0.0 else 0
    return tuple(rows)


def result_of(rows: Sequence[FrameLossRow], step_ratio: float) -> FrameLossResult:
    """Return the rows as one result."""
    return FrameLossResult(rows=tuple(rows), step_ratio=step_ratio)


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
