"""RFC 2544 sec. 26.6 as RFC 6201 replaces it: how long a reset takes, by the frames that are lost meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routecast.benchmark.result import NotRun, ResetResult, ResetRow, Spread, Stream
from routecast.benchmark.stage import InvalidTrial, Stage, counts_of
from routecast.evaluate.protocol import Resettable

__all__ = ["KINDS", "kinds_of", "left_out", "result_of", "run"]

KINDS = {
    "routing-processor": ("4.1.1", "reset of the routing processor"),
    "line-card": ("4.1.2", "reset of a line card"),
    "system": ("4.2.1", "reset of the operating system"),
    "process": ("4.2.2", "reset of a process"),
    "power": ("4.3", "interruption of power"),
    "link": ("", "interruption of a link, beside RFC 6201"),
}
"""Kinds of reset with their section of RFC 6201."""

_WHY_NOT = {
    "routing-processor": "a software router has no routing processor of its own (RFC 6201 sec. 4.1 is for such boxes)",
    "line-card": "a software router has no line cards (RFC 6201 sec. 4.1 is for such boxes)",
    "system": "this device cannot be rebooted from here",
    "process": "this device has no process that could be restarted alone",
    "power": "the power of this device cannot be switched from here",
    "link": "the links of this device cannot be interrupted from here",
}


def kinds_of(stage: Stage) -> tuple[str, ...]:
    """Kinds of reset that the device offers and the profile asks for."""
    if not isinstance(stage.evaluator, Resettable):
        return ()
    asked = stage.profile.reset.kinds
    return tuple(kind for kind in stage.evaluator.reset_kinds if not asked or kind in asked)


def left_out(run_kinds: Sequence[str], reasons: Mapping[str, str]) -> tuple[NotRun, ...]:
    """List the kinds of RFC 6201 that were not run, with the reason: the device's own before a general one."""
    return tuple(
        NotRun(
            section=f"RFC 6201 sec. {section}",
            what=what,
            reason=reasons.get(kind, _WHY_NOT[kind]),
        )
        for kind, (section, what) in KINDS.items()
        if kind not in run_kinds and section
    )


def run(stage: Stage, throughput_pps: float, kind: str, stream: Stream) -> ResetRow:
    """Offer the throughput, reset the router, count what is lost: lost / offered rate (frame-loss method)."""
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
    statement = (
        f"{kind} reset: {1e3 * spread.mean:,.3f} ms (mean of {spread.repeats}), {frames.mean:,.0f} frames lost at "
        f"{rate_pps:,.0f} frames/s ({l2_bps:,.0f} bit/s) of {stage.frame_bytes} bytes, {stream.name}, UDP, "
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
        statement="" if reason else statement,
        outcome="undetermined" if reason else "found",
        reason=reason,
    )


def result_of(rows: Sequence[ResetRow]) -> ResetResult:
    """Return the rows as one result."""
    return ResetResult(rows=tuple(rows))
