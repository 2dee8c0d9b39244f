"""The predicted loss of a failure."""

from __future__ import annotations

from routecast.quantity.schema import field, value

__all__ = ["CALL_EVERY_S", "MISSED_CALLS", "PredictedDeath", "predicted_death", "predicted_takeover"]

CALL_EVERY_S = 0.04
"""A load balancer that stands by calls the one that works so often, s."""
MISSED_CALLS = 5
"""So many calls without an answer, one after the other, and it takes over."""


@value
class PredictedDeath:
    """The loss by the death of an element."""

    detection_s: float = field("Time from the death, or from the last returned frame, to the verdict, s")
    lost_frames: float = field("Frames lost: all that were sent to it meanwhile")


def predicted_death(*, rate_pps: float, silence_s: float, unanswered_frames: int) -> PredictedDeath:
    """Predict the death of one back-end router of several, while the others return N frames within T.

    N frames are unanswered after N / rate; the clock runs from the next one. The verdict falls with the first frame
    that arrives later than T: half a gap more in the mean.

    ``rate_pps``: what is sent to it, frames/s; ``silence_s``: t, s; ``unanswered_frames``: n.

    Examples
    --------
    >>> dead = predicted_death(rate_pps=40_000.0, silence_s=0.05, unanswered_frames=64)
    >>> round(dead.detection_s * 1e3, 2), round(dead.lost_frames)
    (51.61, 2064)
    """
    detection_s = unanswered_frames / rate_pps + silence_s + 0.5 / rate_pps
    return PredictedDeath(detection_s=detection_s, lost_frames=detection_s * rate_pps)


def predicted_takeover(*, rate_pps: float) -> PredictedDeath:
    """Predict the death of the active load balancer where a second one stands by.

    The first call without an answer goes out half a period after the death in the mean, and that it has none is seen
    with the next call; so on until :data:`MISSED_CALLS` are missed. What the second one needs for its first
    announcement is not in it: a millisecond or two on a machine that has a core to spare.

    ``rate_pps``: what is sent to the router, frames/s.

    Examples
    --------
    >>> round(predicted_takeover(rate_pps=1000.0).detection_s, 3)
    0.22
    """
    detection_s = (MISSED_CALLS + 0.5) * CALL_EVERY_S
    return PredictedDeath(detection_s=detection_s, lost_frames=detection_s * rate_pps)
