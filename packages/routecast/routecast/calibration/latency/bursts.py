"""A latency curve as a router that works in bursts: what a simulation needs to be as late as the curve.

A core that polls takes what came during its last poll. With c seconds for each poll, t for each frame and evenly spaced
frames at a share r of the capacity, a poll lasts c / (1 - u): u = r t / s is the share of the frames' own work, and
s = t + c / b the time of a frame when polls are full, of b frames. A frame that comes at a part x of a poll waits for
its end, and leaves after the frames before it::

    latency = path + c + poll (1 - x + x u),   on average and in the median   path + c (3/2 + u / (1 - u))

So the curve's waiting in bursts, s B h(m r), is the time of a poll: c = s B, and the knee is m = t / s. Where polls
find one frame each, nobody waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from routecast.calibration.latency.curve import Curve
from routecast.calibration.latency.measured import MeasuredLatency

__all__ = ["Bursts", "bursts_of"]

Floats = NDArray[np.float64]

_BATCHES: Final = (1, 8, 16, 32, 64, 128, 256, 512, 1024)
_SHARES: Final = np.concatenate(([0.0], np.geomspace(1e-3, 0.6, 60)))
"""Tried for c / (s b): the share of full polls that is not frames' own work."""
_LOADS: Final = (0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_WEIGHTS: Final = (1.0, 4.0, 4.0, 4.0, 4.0, 4.0, 1.0, 0.25)
_IN_OVERLOAD: Final = 3.0
_LEAST_QUEUE: Final = 64
_MOST_QUEUE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """A core that polls: seconds of each poll and the most frames that it takes, those of the way outside, and a ring.

    ``worst_ratio``: the greatest relative distance from the curve's median at 30 to 70 % of the capacity.
    """

    per_batch_s: float
    batch_frames: int
    path_s: float
    queue_frames: int
    worst_ratio: float

    def latency_s(self, load_ratio: float, frame_s: float) -> float:
        """Return the median latency at a share of the capacity, where a frame takes ``frame_s`` of full polls."""
        return self.path_s + float(_in_polls(np.array([load_ratio]), self.per_batch_s, self.batch_frames, frame_s)[0])


def bursts_of(measured: MeasuredLatency, *, most_ratio: float = 1.0) -> Bursts:
    """Return the bursts whose median is nearest to a curve's at 10 to 90 % of the capacity, mostly at 30 to 70 %.

    They have the batch that rows state, else the best of powers of two. ``most_ratio``: the greatest share of a frame's
    time that the polls may have.
    """
    frame_s = measured.fitted.frame_s
    curve = measured.curve
    loads = np.array([load for load in _LOADS if measured.is_stated(load)])
    weights = np.array(_WEIGHTS[: len(loads)])
    targets_s = np.array([_median_s(curve, load) for load in loads])
    best = None
    for batch in (measured.batch_frames,) if measured.batch_frames is not None else _BATCHES:
        for per_batch_s in _SHARES[most_ratio >= _SHARES] * frame_s * batch:
            inside_s = _in_polls(loads, per_batch_s, batch, frame_s)
            # The way outside with the least relative errors.
            path_s = max(float(np.average(targets_s - inside_s, weights=weights / targets_s**2)), 0.0)
            errors = (path_s + inside_s) / targets_s - 1.0
            misses = float(np.average(errors**2, weights=weights))
            if best is None or misses < best[0]:
                middle = np.abs(errors[(loads >= 0.3) & (loads <= 0.7)])
                best = misses, per_batch_s, batch, path_s, float(middle.max()) if len(middle) else 0.0
    assert best is not None
    _, per_batch_s, batch, path_s, worst_ratio = best
    queue = round((_median_s(curve, _IN_OVERLOAD) - path_s) / frame_s)
    return Bursts(
        per_batch_s=float(per_batch_s),
        batch_frames=batch,
        path_s=path_s,
        queue_frames=min(max(queue, _LEAST_QUEUE), _MOST_QUEUE),
        worst_ratio=worst_ratio,
    )


def _in_polls(loads: Floats, per_batch_s: float, batch: int, frame_s: float) -> Floats:
    """Return the median time in a core's polls at loads, s."""
    own_s = frame_s - per_batch_s / batch
    busy = loads * own_s / frame_s
    waits_s = per_batch_s * (1.5 + busy / (1.0 - busy))
    is_alone = loads * (per_batch_s + own_s) < frame_s
    return np.asarray(np.where(is_alone, per_batch_s + own_s, waits_s))


def _median_s(curve: Curve, load_ratio: float) -> float:
    return float(curve.quantiles_s(load_ratio, (0.5,))[0])
