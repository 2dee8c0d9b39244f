"""RFC 2544 sec. 26.4 as RFC 9004 replaces it: the longest burst at the maximum rate without loss, and its buffer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.benchmark.profile import BackToBackProfile
from routecast.benchmark.result import BackToBackResult, BackToBackRow, Spread
from routecast.benchmark.search.burst import Burst, longest_burst
from routecast.benchmark.stage import Counts, InvalidTrial, Stage

__all__ = ["result_of", "run"]

_ABOVE = 1.2
"""Bursts that come hardly faster than they leave would find no end."""


def run(stage: Stage, throughput_pps: float) -> BackToBackRow:
    """Search for the longest burst as often as the profile asks.

    Only where the throughput is below the theoretical maximum (RFC 9004 sec. 5.2): elsewhere no burst is too long.
    """
    settings = stage.profile.back_to_back
    if throughput_pps >= stage.theoretical_pps * (1.0 - 1e-6):
        reason = "the throughput is the theoretical maximum: no burst is too long (RFC 9004 sec. 5.2)"
        return _row(stage, throughput_pps, [], "skipped", reason)
    if throughput_pps >= stage.maximum_pps * (1.0 - 1e-6):
        reason = "the tester sends no faster than the router forwards: no burst that it can send is too long"
        return _row(stage, throughput_pps, [], "skipped", reason)
    bursts: list[Burst] = []
    most = max(round(settings.longest * stage.maximum_pps), 1)
    try:
        for number in range(1, settings.repeats + 1):
            hint = bursts[-1].frames if bursts else 0
            bursts.append(_search(stage, settings, most, number, hint, _ABOVE * throughput_pps))
            if bursts[-1].outcome == "limit":
                break
    except InvalidTrial as problem:
        if not bursts:
            return _row(stage, throughput_pps, bursts, "undetermined", str(problem))
        reason = f"{len(bursts)} of {settings.repeats} searches came to their end: {problem}"
        return _row(stage, throughput_pps, bursts, "found", reason)
    if bursts[-1].outcome == "limit":
        reason = f"no loss in {settings.longest:g} s at the maximum rate, the upper limit of the send time"
        return _row(stage, throughput_pps, bursts, "limit", reason)
    slower = ""
    if stage.burst_pps < stage.theoretical_pps * (1.0 - 1e-9):
        slower = f"bursts came at {stage.burst_pps:,.0f} frames/s, at which the tester sends short ones evenly"
    return _row(stage, throughput_pps, bursts, "found", slower)


def result_of(rows: Sequence[BackToBackRow], settings: BackToBackProfile) -> BackToBackResult:
    """Return the rows as one result, with the search and its inputs (RFC 9004 sec. 6)."""
    algorithm = (
        f"TST009 binary search with loss verification: bursts at the maximum rate of up to {settings.longest:g} s; "
        f"a burst that loses at most {settings.verify_below:.0%} is sent again up to {settings.verify_losses} times; "
        f"least step {settings.width:.2%} of the burst, one frame at least; {settings.residual:g} s for residual "
        f"frames; {settings.repeats} searches"
    )
    return BackToBackResult(rows=tuple(rows), algorithm=algorithm)


def _search(stage: Stage, settings: BackToBackProfile, most: int, number: int, hint: int, least_pps: float) -> Burst:
    def send(frames: int, purpose: str) -> Counts:
        return stage.burst(frames, f"search {number}, {purpose}", residual_s=settings.residual, least_pps=least_pps)

    return longest_burst(
        send,
        most_frames=most,
        width_ratio=settings.width,
        verify_losses=settings.verify_losses,
        verify_below=settings.verify_below,
        hint_frames=hint,
    )


def _row(stage: Stage, throughput_pps: float, bursts: list[Burst], outcome: str, reason: str) -> BackToBackRow:
    settings = stage.profile.back_to_back
    spread = Spread.of(tuple(float(burst.frames) for burst in bursts))
    theoretical_pps = min(stage.burst_pps, stage.maximum_pps)  # the rate at which the burst came
    implied_s = spread.mean / theoretical_pps
    # RFC 9004 sec. 6.4: frames leave the buffer while the burst comes in.
    corrected_s = implied_s - implied_s * throughput_pps / theoretical_pps
    measured = outcome in {"found", "limit"}
    assert outcome in {"found", "limit", "skipped", "undetermined"}
    return BackToBackRow(
        stream=stage.stream.name,
        frame_bytes=stage.frame_bytes,
        burst_frames=spread,
        throughput_pps=throughput_pps,
        theoretical_pps=theoretical_pps,
        implied_buffer_s=implied_s if measured else math.nan,
        corrected_buffer_s=corrected_s if measured else math.nan,
        resolution_frames=max(round(settings.width * spread.mean), 1) if bursts else 1,
        longest_s=settings.longest,
        outcome=outcome,  # type: ignore[arg-type]  # one of the four, asserted above
        reason=reason,
        trials=sum(burst.trials for burst in bursts),
    )
