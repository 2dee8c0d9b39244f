"""Arrival processes: constant bit rate, Poisson, on-off bursts, a recorded trace."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from routecast.errors import ModelProblem, Problem
from routecast.quantity.schema import value

__all__ = ["Arrivals"]


@value
class Arrivals:
    """How the frames of one port follow each other; the mean rate is the load's.

    Raises
    ------
    routecast.errors.ModelProblem
        A burst is shorter than one frame, the peak is not above the mean, the trace's columns differ in
        length or its instants go backwards.
    """

    # ``cbr``: equal gaps; ports are staggered evenly. ``poisson``: exponential gaps. ``on_off``: bursts of
    # ``burst_frames`` (mean; geometric) at ``peak_ratio`` times the mean rate, exponential pauses between. ``bursts``:
    # bursts of exactly ``burst_frames`` at the rate of the link, at equal distances (RFC 2544 sec. 21). ``trace``: the
    # instants, sizes and flows given, once.
    kind: Literal["cbr", "poisson", "on_off", "bursts", "trace"] = "cbr"
    burst_frames: float = 1.0
    peak_ratio: float = 1.0
    trace_time_s: tuple[float, ...] = ()
    trace_frame_bytes: tuple[int, ...] = ()
    trace_flow: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        problems = _problems(self)
        if problems:
            raise ModelProblem("arrivals", problems)

    @classmethod
    def cbr(cls) -> Arrivals:
        """Constant bit rate."""
        return cls(kind="cbr")

    @classmethod
    def poisson(cls) -> Arrivals:
        """Poisson process."""
        return cls(kind="poisson")

    @classmethod
    def on_off(cls, *, burst_frames: float, peak_ratio: float) -> Arrivals:
        """Bursts of geometric length (mean ``burst_frames``) at ``peak_ratio`` times the mean rate."""
        return cls(kind="on_off", burst_frames=burst_frames, peak_ratio=peak_ratio)

    @classmethod
    def bursts(cls, burst_frames: int) -> Arrivals:
        """Bursts of so many frames at the rate of the link, at equal distances (RFC 2544 sec. 21)."""
        return cls(kind="bursts", burst_frames=burst_frames)

    @classmethod
    def from_trace(cls, path: str | Path) -> Arrivals:
        """Read a recorded trace from a CSV file with the columns ``time_s, frame_bytes, flow``.

        Raises
        ------
        routecast.errors.FileProblem
            The file cannot be read; every wrong line is listed.
        """
        from routecast.load.trace import read_trace  # the reader knows Arrivals, not vice versa

        return read_trace(path)

    @property
    def interarrival_scv(self) -> float:
        """Squared coefficient of variation of the gaps between frames of one port.

        ``on_off``: gaps within a burst are ``p`` = 1/``peak_ratio`` of the mean gap; after a frame the burst
        (of mean length ``B``) ends with probability 1/B and an exponential pause of mean ``B(1 - p)``
        follows, so that the mean is 1 and the variance ``(2B - 1)(1 - p)²``. Gaps are independent. ``trace``:
        the sample's value, independence not implied.
        """
        if self.kind == "poisson":
            return 1.0
        if self.kind == "on_off":
            return (2.0 * self.burst_frames - 1.0) * (1.0 - 1.0 / self.peak_ratio) ** 2
        if self.kind == "trace" and len(self.trace_time_s) > 2:
            gaps = [b - a for a, b in zip(self.trace_time_s, self.trace_time_s[1:], strict=False)]
            mean = math.fsum(gaps) / len(gaps)
            if mean > 0.0:
                return math.fsum((gap - mean) ** 2 for gap in gaps) / len(gaps) / mean**2
        return 0.0

    @property
    def trace_rate_pps(self) -> float:
        """Mean rate of the trace between its first and last frame; NaN without a trace."""
        if len(self.trace_time_s) < 2 or self.trace_time_s[-1] <= self.trace_time_s[0]:
            return math.nan
        return (len(self.trace_time_s) - 1) / (self.trace_time_s[-1] - self.trace_time_s[0])


def _problems(arrivals: Arrivals) -> list[Problem]:
    problems = []
    kinds = ("cbr", "poisson", "on_off", "bursts", "trace")
    if arrivals.kind not in kinds:
        return [Problem("kind", f"got {arrivals.kind!r}: allowed are {', '.join(kinds)}")]
    if arrivals.kind == "bursts" and arrivals.burst_frames != int(arrivals.burst_frames):
        problems.append(Problem("burst_frames", f"got {arrivals.burst_frames}: bursts have whole frames"))
    if not (math.isfinite(arrivals.burst_frames) and arrivals.burst_frames >= 1.0):
        problems.append(Problem("burst_frames", f"got {arrivals.burst_frames}: the mean burst is a number >= 1"))
    if not (math.isfinite(arrivals.peak_ratio) and arrivals.peak_ratio >= 1.0):
        problems.append(Problem("peak_ratio", f"got {arrivals.peak_ratio}: peak over mean rate is a number >= 1"))
    elif arrivals.kind == "on_off" and arrivals.peak_ratio == 1.0:
        problems.append(
            Problem("peak_ratio", "is 1: bursts at the mean rate leave no pause; give a number > 1 or use cbr")
        )
    if arrivals.kind != "trace":
        if arrivals.trace_time_s:
            problems.append(Problem("trace_time_s", f"is given, but the kind is {arrivals.kind}: use the kind trace"))
        return problems
    frames = len(arrivals.trace_time_s)
    if not frames:
        problems.append(Problem("trace_time_s", "is empty: a trace has at least one frame"))
    if len(arrivals.trace_frame_bytes) != frames or len(arrivals.trace_flow) != frames:
        lengths = f"{frames} instants, {len(arrivals.trace_frame_bytes)} sizes, {len(arrivals.trace_flow)} flows"
        problems.append(Problem("trace", f"has {lengths}: every frame needs one of each"))
    before = 0.0
    for index, time_s in enumerate(arrivals.trace_time_s):
        if not (math.isfinite(time_s) and time_s >= before):
            problems.append(
                Problem(f"trace_time_s[{index}]", f"got {time_s}: instants are >= 0 and never go backwards")
            )
            break
        before = time_s
    for index, size in enumerate(arrivals.trace_frame_bytes):
        if not 64 <= size <= 65_535:
            problems.append(Problem(f"trace_frame_bytes[{index}]", f"got {size}: frames have 64 to 65535 bytes"))
            break
    for index, flow in enumerate(arrivals.trace_flow):
        if flow < 0:
            problems.append(Problem(f"trace_flow[{index}]", f"got {flow}: flows are numbered 0, 1, …"))
            break
    return problems
