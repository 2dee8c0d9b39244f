"""The predicted loss of a failure."""

from __future__ import annotations

from routecast.multistage._detection import CALL_EVERY_S, MISSED_CALLS, TAKEOVER_S, death_detection_s
from routecast.quantity.schema import field, value

__all__ = ["CALL_EVERY_S", "MISSED_CALLS", "PredictedDeath", "predicted_death", "predicted_takeover"]


@value
class PredictedDeath:
    """The predicted loss by the death of an element."""

    detection_s: float = field("Time from the death, or from the last returned frame, to the verdict, s")
    lost_frames: float = field("Lost frames: all that are sent to it until the verdict")


def predicted_death(*, rate_pps: float, silence_s: float, unanswered_frames: int) -> PredictedDeath:
    """Predict the loss by the death of one of several back-end routers, while others return frames.

    N frames are unanswered after N / rate, and the time runs from the next frame. The verdict falls with the first
    frame that arrives later than T, which is half a gap later in the mean.

    ``rate_pps``: rate towards the router, frames/s; ``silence_s``: T, s; ``unanswered_frames``: N.

    Examples
    --------
    >>> dead = predicted_death(rate_pps=40_000.0, silence_s=0.05, unanswered_frames=64)
    >>> round(dead.detection_s * 1e3, 2), round(dead.lost_frames)
    (51.61, 2064)
    """
    detection_s = death_detection_s(rate_pps, silence_s, unanswered_frames)
    return PredictedDeath(detection_s=detection_s, lost_frames=detection_s * rate_pps)


def predicted_takeover(*, rate_pps: float) -> PredictedDeath:
    """Predict the loss by the death of the active load balancer if there is a standby.

    In the mean the first call without an answer is sent half a period after the death, and the next call shows that it
    has no answer; the takeover follows after :data:`MISSED_CALLS` such calls. The prediction leaves out the time of the
    standby's first announcement, a millisecond or two on a machine with a free core.

    ``rate_pps``: rate towards the router, frames/s.

    Examples
    --------
    >>> round(predicted_takeover(rate_pps=1000.0).detection_s, 3)
    0.22
    """
    return PredictedDeath(detection_s=TAKEOVER_S, lost_frames=TAKEOVER_S * rate_pps)
