"""How a measured trial went over time: the parts of the tester's outcomes as moments of the trial."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.evaluate.trial import Moment
from routecast.testbed.counted import Slice

__all__ = ["over_time_of"]

_RATES = {
    "offered_pps": "sent_frames",
    "forwarded_pps": "received_frames",
    "dropped_pps": "lost_frames",
}


def over_time_of(slices: Sequence[Slice], duration_s: float) -> tuple[Moment, ...]:
    """Return the rates during equal parts of a trial.

    Offered and lost frames count where they were due, forwarded ones where they arrived; what arrives after the end
    of a slice is in no part. The parts of n equal slices are put together by n, so that a trial has as many as a slice.

    Parameters
    ----------
    slices : sequence of Slice
        Of equal length.
    duration_s : float
        Of the trial.

    Returns
    -------
    tuple of Moment
        Empty where the tester did not count by parts: nobody asked, or a slice began too late.
    """
    found = [one for part in slices if (one := part.outcome.get("over_time")) is not None]
    if not found or len(found) < len(slices):
        return ()
    together = len(found)
    counts: dict[str, list[int]] = {}
    for rate, name in _RATES.items():
        parts = [int(count) for one in found for count in one[name]]
        counts[rate] = [sum(parts[at : at + together]) for at in range(0, len(parts), together)]
    number = len(counts["offered_pps"])
    part_s = duration_s / number
    return tuple(
        Moment(time_s=part_s * at, **{rate: here[at] / part_s for rate, here in counts.items()})
        for at in range(number)
    )
