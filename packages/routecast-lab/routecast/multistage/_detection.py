"""Times until a failure is detected, without imports: commands compute them at each start."""

CALL_EVERY_S = 0.04
"""Interval of the calls of the standby to the active load balancer, s."""
MISSED_CALLS = 5
"""Number of consecutive calls without an answer after which the standby takes over."""
TAKEOVER_S = (MISSED_CALLS + 0.5) * CALL_EVERY_S
"""Mean time from the death of the active load balancer to the takeover; :func:`.prediction.predicted_takeover`, s."""


def death_detection_s(rate_pps: float, silence_s: float, unanswered_frames: int) -> float:
    """Return the mean time from the death of a back-end router to the verdict; see ``predicted_death``."""
    return unanswered_frames / rate_pps + silence_s + 0.5 / rate_pps
