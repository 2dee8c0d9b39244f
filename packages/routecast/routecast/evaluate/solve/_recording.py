"""The frames of a recording: their sizes, and which instants of them count."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve.fluid import Fluid
from routecast.load.trace import RecordedFrames, numbers_counted

PS = 1e12
CHUNK_FRAMES = 1 << 18
"""Frames that are served at a time, so that their temporary arrays stay small."""
NOTABLE = 0.005

Instants = NDArray[np.uint64]
Numbers = NDArray[np.uint32]
Floats = NDArray[np.float64]


class Recording:
    """The frames of a trace or of repeated bursts, and the span of time that counts.

    ``span_s``: begin and end of that span, s; an end of NaN is that of the trace.
    """

    def __init__(self, fluid: Fluid, trace: RecordedFrames, span_s: tuple[float, float]) -> None:
        self.trace = trace
        counts = numbers_counted(trace.frame_bytes)
        self.sizes = np.flatnonzero(counts).astype(np.uint32)
        self.frames_by_size = counts[self.sizes]
        self._place_of_size = np.zeros(len(counts), np.uint16)
        self._place_of_size[self.sizes] = np.arange(len(self.sizes), dtype=np.uint16)
        begin_s, end_s = span_s[0], trace.length_s if math.isnan(span_s[1]) else span_s[1]
        self.duration_s = end_s - begin_s
        self.begin, self.end = np.uint64(round(begin_s * PS)), np.uint64(round(end_s * PS))
        """What counts: only what has happened by the end, as in a simulation of the trace."""
        self.is_repeated = begin_s > 0.0
        self.is_uneven = not (fluid.load.frames.is_fixed and trace.interarrival_scv < NOTABLE)

    def __len__(self) -> int:
        return len(self.trace)

    def size_places(self, frames: Numbers) -> NDArray[np.uint16]:
        """Return the places of the sizes of frames in the sizes of the trace."""
        return self._place_of_size[self.trace.frame_bytes[frames]]

    def counts(self, at: Instants) -> NDArray[np.bool_]:
        """Return which instants count."""
        return (at >= self.begin) & (at < self.end)
