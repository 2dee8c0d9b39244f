"""Recorded frames: instants, sizes and flows of a trace, as arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from routecast.errors import ModelProblem, Problem
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["RecordedFrames", "numbers_counted"]

_MIN_BYTES, _MAX_BYTES = 64, 65_535
_INSTANT_S = 1e-3
_CHUNK_FRAMES = 1 << 18
"""Frames that are counted at a time, so that temporary arrays stay small."""
_MAX_SEQUENCE = 4096
"""Longest sequence of sizes that stands for those of a trace."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedFrames:
    """The frames of a trace in order of time, from the instant 0 on.

    Attributes
    ----------
    time_s : array of float64, shape (n,)
        Instants at which frames have arrived, s; the first is 0.
    frame_bytes : array of uint32, shape (n,)
        Sizes with FCS, 64 to 65,535 B.
    flow : array of uint32, shape (n,)
        Numbers of the flows.
    flows : tuple of Flow
        What is known of the flows: hash, ports. Empty: nothing, and the load's flows are taken by their numbers.
    notes : tuple of str
        What the reader of the file has to say.
    """

    time_s: NDArray[np.float64]
    frame_bytes: NDArray[np.uint32]
    flow: NDArray[np.uint32]
    flows: tuple[Flow, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        time_s: ArrayLike,
        frame_bytes: ArrayLike,
        flow: ArrayLike,
        *,
        flows: Sequence[Flow] = (),
        notes: Iterable[str] = (),
    ) -> RecordedFrames:
        """Return frames sorted by their instants, which are moved so that the first is 0.

        Raises ModelProblem: there is no frame, the columns differ in length, or a value is out of range.
        """
        times, sizes, numbers = np.asarray(time_s, float), np.asarray(frame_bytes), np.asarray(flow)
        problems = _problems(times, sizes, numbers)
        if problems:
            raise ModelProblem("trace", problems)
        remarks = list(notes)
        if len(times) > 1 and (np.diff(times) < 0.0).any():
            late = int(np.count_nonzero(times < np.maximum.accumulate(times)))
            remarks.append(f"{late:,} of {len(times):,} frames are out of order: they are sorted by their times")
            order = np.argsort(times, kind="stable")
            times, sizes, numbers = times[order], sizes[order], numbers[order]
        columns = (times - times[0], sizes.astype(np.uint32), numbers.astype(np.uint32))
        for column in columns:
            column.flags.writeable = False
        return cls(time_s=columns[0], frame_bytes=columns[1], flow=columns[2], flows=tuple(flows), notes=tuple(remarks))

    def __len__(self) -> int:
        return len(self.time_s)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordedFrames) and (
            self is other
            or (
                self.flows == other.flows
                and np.array_equal(self.time_s, other.time_s)
                and np.array_equal(self.frame_bytes, other.frame_bytes)
                and np.array_equal(self.flow, other.flow)
            )
        )

    def __hash__(self) -> int:
        return hash((len(self), float(self.time_s[-1]), int(self.frame_bytes.sum())))

    @cached_property
    def rate_pps(self) -> float:
        """Mean rate between the first and the last frame, frames/s; NaN if all frames come at one instant."""
        return (len(self) - 1) / float(self.time_s[-1]) if self.time_s[-1] > 0.0 else math.nan

    @property
    def duration_s(self) -> float:
        """Length of the trace with a mean gap after its last frame, s; NaN if all frames come at one instant."""
        return len(self) / self.rate_pps

    @property
    def length_s(self) -> float:
        """Length of a trial that has all frames, s; a millisecond where they come at one instant."""
        return self.duration_s if math.isfinite(self.rate_pps) else _INSTANT_S

    def within_pps(self, duration_s: float) -> float:
        """Return the rate of the frames before an instant, frames/s."""
        return int(np.searchsorted(self.time_s, duration_s)) / duration_s

    @cached_property
    def interarrival_scv(self) -> float:
        """Squared coefficient of variation of the gaps; 0 for fewer than three frames."""
        if len(self) < 3 or self.time_s[-1] <= 0.0:
            return 0.0
        mean_s = float(self.time_s[-1]) / (len(self) - 1)
        squares_s2 = 0.0
        for begin in range(0, len(self) - 1, _CHUNK_FRAMES):
            gaps = np.diff(self.time_s[begin : begin + _CHUNK_FRAMES + 1])
            squares_s2 += float(np.square(gaps - mean_s).sum())
        return squares_s2 / (len(self) - 1) / mean_s**2

    @cached_property
    def frames_by_flow(self) -> NDArray[np.int64]:
        """Number of frames of each flow."""
        return numbers_counted(self.flow)

    @cached_property
    def mix(self) -> FrameMix:
        """The sizes as a mix: those of all frames of a short trace, or as many as stand for those of a long one."""
        sizes = np.sort(self.frame_bytes)
        if len(sizes) > _MAX_SEQUENCE:
            places = (np.arange(_MAX_SEQUENCE) + 0.5) / _MAX_SEQUENCE * len(sizes)
            mean_bytes, sizes = float(sizes.mean()), sizes[places.astype(np.intp)].astype(np.int64)
            # Sizes next to others make up for what rounding took from the mean.
            missing = round(mean_bytes * _MAX_SEQUENCE) - int(sizes.sum())
            step = 1 if missing > 0 else -1
            able = np.flatnonzero((sizes + step >= _MIN_BYTES) & (sizes + step <= self.frame_bytes.max()))
            if sizes.min() < sizes.max():
                sizes[able[: abs(missing)]] += step
        only = int(sizes[0]) if sizes[0] == sizes[-1] else 0
        if only:
            return FrameMix.fixed(only)
        return FrameMix(name="sizes of the trace", sequence_bytes=tuple(int(size) for size in sizes), order="random")

    def flows_of(self, given: FlowSet) -> tuple[FlowSet, RecordedFrames]:
        """Return the flows that have frames, weighted by these, and the frames with the numbers of those flows.

        ``given``: the flows by number, where the trace knows only numbers. The frames that are returned know no more
        than numbers, so that their flows can be replaced.

        Raises ModelProblem: a number is none of the given flows.
        """
        known, counts = self.flows or given.flows, self.frames_by_flow
        if len(counts) > len(known):
            message = f"names flow {len(counts) - 1}: there are {len(known)} flows, numbered from 0"
            raise ModelProblem("offered load", [Problem("arrivals.trace_flow", message)])
        used = np.flatnonzero(counts)
        flows = tuple(
            Flow(rss_hash=flow.rss_hash, ingress=flow.ingress, egress=flow.egress, weight=float(counts[number]))
            for number, flow in ((int(number), known[number]) for number in used)
        )
        name = f"{len(flows)} flow{'s' if len(flows) != 1 else ''} of the trace"
        if len(used) == len(counts):
            return FlowSet(name=name, flows=flows), replace(self, flows=())
        new_number = np.zeros(len(counts), np.uint32)
        new_number[used] = np.arange(len(used), dtype=np.uint32)
        return FlowSet(name=name, flows=flows), replace(self, flow=new_number[self.flow], flows=())

    def scaled(self, factor: float) -> RecordedFrames:
        """Return the same frames with every instant multiplied."""
        return replace(self, time_s=self.time_s * factor)


def numbers_counted(numbers: NDArray[Any]) -> NDArray[np.int64]:
    """Return how often each of the numbers 0, 1, … occurs, as ``np.bincount`` but without a copy of all numbers."""
    counts = np.zeros(int(numbers.max()) + 1 if len(numbers) else 0, np.int64)
    for begin in range(0, len(numbers), _CHUNK_FRAMES):
        counted = np.bincount(numbers[begin : begin + _CHUNK_FRAMES])
        counts[: len(counted)] += counted
    return counts


def _problems(times: NDArray[np.float64], sizes: NDArray[Any], numbers: NDArray[Any]) -> list[Problem]:
    if not len(times):
        return [Problem("trace_time_s", "is empty: a trace has at least one frame")]
    if not len(times) == len(sizes) == len(numbers):
        lengths = f"{len(times)} instants, {len(sizes)} sizes, {len(numbers)} flows"
        return [Problem("trace", f"has {lengths}: every frame needs one of each")]
    problems = []
    finite = np.isfinite(times)
    if not finite.all():
        index = int(np.argmin(finite))
        problems.append(Problem(f"trace_time_s[{index}]", f"got {times[index]}: instants are finite"))
    outside = (sizes < _MIN_BYTES) | (sizes > _MAX_BYTES)
    if outside.any():
        index = int(np.argmax(outside))
        problems.append(Problem(f"trace_frame_bytes[{index}]", f"got {sizes[index]}: frames have 64 to 65535 bytes"))
    negative = numbers < 0
    if negative.any():
        index = int(np.argmax(negative))
        problems.append(Problem(f"trace_flow[{index}]", f"got {numbers[index]}: flows are numbered 0, 1, …"))
    return problems
