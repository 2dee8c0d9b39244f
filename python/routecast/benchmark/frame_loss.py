"""RFC 2544 sec. 26.3: frame loss rate over the offered rate, from the maximum down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from routecast.benchmark.result import FrameLossResult, FrameLossRow
from routecast.benchmark.stage import InvalidTrial, Stage, counts_of

__all__ = ["result_of", "run"]


def run(stage: Stage) -> tuple[FrameLossRow, ...]:
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
