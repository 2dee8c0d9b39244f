"""A model with a reset of stated length: the router goes down, loses what it holds, and comes up again (RFC 6201).

The reset procedure can so be run on a model. It must give the stated outage back, plus what the model adds: the frames
that waited in its queues when it went down, and those that arrive while it fills again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from routecast.errors import ModelProblem, Problem
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value

__all__ = ["Outage"]


@value
class Outage:
    """An evaluator whose router can be reset.

    ::

        ── trial before ──┐ down: every frame is lost ┌── trial after, from an empty router ──
                         at_s                    at_s + length

    Raises
    ------
    routecast.errors.ModelProblem
        A length is not a finite number of seconds >= 0.
    """

    evaluator: Evaluator = field("Answers for the time before and after.")
    lengths_s: Mapping[str, float] = field("Seconds that the router is down, by kind of reset.")

    def __post_init__(self) -> None:
        problems = [
            Problem(kind, f"got {length}: an outage has a finite length, 0 s or more")
            for kind, length in self.lengths_s.items()
            if not (math.isfinite(length) and length >= 0.0)
        ]
        if problems:
            raise ModelProblem("outages", problems)

    @property
    def reset_kinds(self) -> tuple[str, ...]:
        """Kinds of reset that have a length."""
        return tuple(self.lengths_s)

    def reseed(self, number: int) -> None:
        """Hand a trial's number on to a simulator."""
        reseed = getattr(self.evaluator, "reseed", None)
        if reseed is not None:
            reseed(number)

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Answer as the evaluator does."""
        return self.evaluator.trial(load, duration_s)

    def reset_trial(self, load: OfferedLoad, duration_s: float, *, kind: str, at_s: float) -> Trial:
        """Answer for a trial during which the router is down once.

        Raises
        ------
        routecast.errors.ModelProblem
            The kind is unknown, the reset is not within the trial, or the evaluator does not count frames.
        """
        if kind not in self.lengths_s:
            message = f"no reset {kind!r}: {did_you_mean(kind, self.lengths_s)}"
            raise ModelProblem("reset", [Problem("kind", message)])
        down_s = self.lengths_s[kind]
        if not 0.0 < at_s < at_s + down_s < duration_s:
            message = f"a reset of {down_s:g} s at {at_s:g} s is not within a trial of {duration_s:g} s"
            raise ModelProblem("reset", [Problem("at_s", message)])
        before = self.evaluator.trial(load, at_s)
        after = self.evaluator.trial(load, duration_s - at_s - down_s)
        counts = (before.offered_frames, after.offered_frames)
        if None in counts or before.in_flight_frames is None:
            message = "a reset is counted frame by frame, which a closed form does not; use simulate"
            raise ModelProblem("reset", [Problem("", message)])
        return _joined(before, after, duration_s=duration_s, at_s=at_s, down_s=down_s)


def _joined(before: Trial, after: Trial, *, duration_s: float, at_s: float, down_s: float) -> Trial:
    """Return the whole trial: what was inside at the reset is lost, and all that came while the router was down."""
    # The load is steady, so the frames of the gap come at the rate of the trial before.
    missed = round(_whole(before.offered_frames) / at_s * down_s)
    held = _whole(before.in_flight_frames)
    offered = _whole(before.offered_frames) + missed + _whole(after.offered_frames)
    forwarded = _whole(before.forwarded_frames) + _whole(after.forwarded_frames)
    dropped = _whole(before.dropped_frames) + held + missed + _whole(after.dropped_frames)
    rate_pps = offered / duration_s
    share = forwarded / duration_s / after.forwarded_pps if after.forwarded_pps > 0.0 else 0.0
    last_s = at_s + down_s
    if math.isfinite(after.last_loss_s):
        last_s += after.last_loss_s
    first_s = before.first_loss_s if math.isfinite(before.first_loss_s) else at_s - held / rate_pps
    return replace(
        after,
        duration_s=duration_s,
        measured_s=duration_s,
        offered_pps=rate_pps,
        forwarded_pps=forwarded / duration_s,
        loss_ratio=dropped / offered if offered else 0.0,
        l1_bps=after.l1_bps * share,
        l2_bps=after.l2_bps * share,
        offered_frames=offered,
        forwarded_frames=forwarded,
        dropped_frames=dropped,
        in_flight_frames=_whole(after.in_flight_frames),
        drops_pps={**after.drops_pps, "outage": (missed + held) / duration_s},
        first_loss_s=first_s,
        last_loss_s=last_s,
        interval={},
        notes=(*after.notes, f"down for {down_s:g} s from {at_s:g} s on; {held:,} frames inside were lost"),
    )


def _whole(count: int | None) -> int:
    return count or 0
