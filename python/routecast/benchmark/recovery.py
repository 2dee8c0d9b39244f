"""RFC 2544 sec. 26.5: how long a router loses frames after an overload has ended."""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.benchmark.result import RecoveryResult, RecoveryRow, Spread
from routecast.benchmark.stage import InvalidTrial, Stage
from routecast.load.offered import RateStep

__all__ = ["result_of", "run"]


def run(stage: Stage, throughput_pps: float) -> RecoveryRow:
    """Overload by 110 % of the throughput (at most the medium's maximum), cut to half of that, find the last loss.

    The result is B − A, the last lost frame's time of sending after the cut. (Sec. 26.5 says to subtract B from A,
    which gives a negative time.)
    """
    settings = stage.profile.recovery
    overload_pps = min(settings.overload * throughput_pps, stage.maximum_pps)
    after_pps = settings.recovery * overload_pps
    cut_s = settings.overload_duration
    values: list[float] = []
    losses: list[float] = []
    reason = ""
    try:
        for number in range(1, settings.repeats + 1):
            step = RateStep(at_s=cut_s, rate_pps=after_pps)
            trial = stage.trial(overload_pps, cut_s + settings.recovery_duration, f"repeat {number}", step)
            losses.append(trial.loss_ratio if trial.dropped_frames != 0 else 0.0)
            if math.isfinite(trial.last_loss_s):
                values.append(trial.last_loss_s - cut_s)
    except InvalidTrial as problem:
        reason = str(problem)
    none = not values and not reason
    if none:
        reason = f"nothing was lost at {overload_pps:,.0f} frames/s, so there was nothing to recover from"
    return RecoveryRow(
        stream=stage.stream.name,
        frame_bytes=stage.frame_bytes,
        throughput_pps=throughput_pps,
        overload_pps=overload_pps,
        recovery_pps=after_pps,
        recovery_s=Spread.of(tuple(values)),
        overload_loss_ratio=max(losses, default=math.nan),
        outcome="no overload" if none else "undetermined" if reason else "found",
        reason=reason,
    )


def result_of(rows: Sequence[RecoveryRow]) -> RecoveryResult:
    """Return the rows as one result."""
    return RecoveryResult(rows=tuple(rows))
