"""A watched router as a table of points, and as a router file: what other commands predict from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from routecast.errors import QuantityProblem
from routecast.evaluate.point_table import points_text
from routecast.evaluate.points import Point
from routecast.lab.watch._saturation import FULL_PACKETS, NORMAL_95, Saturation
from routecast.quantity import format_pps, format_ratio

if TYPE_CHECKING:
    from routecast.lab.watch._watcher import Watched

__all__ = ["points_of", "points_table", "router_text"]

_NO_LINK = "1000000 Gbit/s"


def points_of(watched: Watched) -> tuple[Point, ...]:
    """Return a watched router as a point: one core, all of it, the mean frame of the look, with its standard error.

    Raises QuantityProblem: the load at which it saturates is not known.
    """
    frame_bytes = _frame_bytes(watched)
    saturation = _known(watched)
    error_ratio = math.log(saturation.high_pps / saturation.low_pps) / (2.0 * NORMAL_95)
    return (
        Point(
            cores=1,
            frame_bytes=float(round(frame_bytes)),
            throughput_pps=saturation.whole_core_pps,
            rate_kind="overload",
            calibrate=True,
            standard_error_ratio=error_ratio,
        ),
    )


def points_table(watched: Watched) -> str:
    """Return the text of a table of points that ``size``, ``next`` and ``explore`` read."""
    return points_text(points_of(watched))


def router_text(watched: Watched, *, today: date) -> str:
    """Return a watched router as a router file: cores that poll, with interrupts, at its present load.

    Raises QuantityProblem: the load at which it saturates is not known, or no poll was short.
    """
    saturation = _known(watched)
    frame_bytes = round(_frame_bytes(watched))
    core = next(core for core in watched.cores if core.name == watched.limits)
    curve = core.curve(saturation.cycle_s)
    if curve is None:
        raise QuantityProblem("", f"{watched.interface}: too few polls tell what a batch costs: look longer")
    cores = sum(1 for each in watched.cores if each.rate_pps > 0.0)
    lines = [
        *_head(watched, today),
        'builder = "multicore"',
        f'name = "{watched.interface}, watched"',
        f"cores = {cores}",
        f'link = "{_NO_LINK}"',
        f'queue = "{watched.ring_frames} frames"',
        f'batch = "{FULL_PACKETS} frames"',
        "",
        "[service]",
        f'per_packet = "{curve.per_packet_s * 1e9:.5g} ns"',
        f'per_batch = "{curve.per_batch_s * 1e9:.5g} ns"',
        "",
        "[activation]",
        'kind = "interrupt"',
        f'budget = "{FULL_PACKETS} frames"',
        f'interrupt_cost = "{curve.waking_s * 1e6:.5g} us"',
        "",
        "[load]",
        f'rate = "{watched.rate_pps / 1e6:.6g} Mpps"',
        f'frames = "{frame_bytes} B"',
        f"flows = {{ count = {2 * cores} }}",
        'arrivals = { kind = "poisson" }',
    ]
    return "\n".join(lines) + "\n"


def _head(watched: Watched, today: date) -> Iterator[str]:
    saturation = watched.saturation
    yield f"# Watched on {today.isoformat()} for {watched.duration_s:.3g} s: {watched.interface}, "
    yield f"# {format_pps(watched.rate_pps)}, busy {format_ratio(watched.busy_ratio)} of a core."
    low, high = (format_pps(pps) for pps in saturation.interval_pps)
    yield f"# Saturates at {format_pps(saturation.pps)} (95 %: {low} to {high}), by {saturation.polls} full polls."
    yield "# Costs are a straight line over the packets of a poll: exact for full polls, the best for short ones; the"
    yield "# first poll after waking costs the interrupt more. Frames are of the mean size of the look, arrivals are"
    yield "# assumed to be Poisson, no link limits. Other sizes, and unequal shares of the cores, are not in this file."
    if saturation.share_ratio < 0.98:
        share = format_ratio(saturation.share_ratio)
        yield f"# Its cores were to be had for {share} of the time that they were wanted; this file has all of them."
    yield ""


def _known(watched: Watched) -> Saturation:
    if watched.saturation.reason:
        problem = f"{watched.interface} is not saved: {watched.saturation.reason}"
        raise QuantityProblem(watched.interface, problem)
    return watched.saturation


def _frame_bytes(watched: Watched) -> float:
    if not math.isfinite(watched.frame_bytes):
        raise QuantityProblem(watched.interface, f"{watched.interface} is not saved: its counters give no mean frame")
    return watched.frame_bytes
