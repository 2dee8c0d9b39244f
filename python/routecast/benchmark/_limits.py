"""What limits the router, as its own trials with loss say: ring, core, interrupt, link or tester."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from routecast.benchmark.journal import TrialRecord
from routecast.quantity.schema import field, value

_STEADY = frozenset({"throughput", "latency", "frame_loss"})
"""Procedures whose loss is the router's at a steady load; a reset or a burst loses for reasons of its own."""


@value
class Limit:
    """What limited one stream at one frame size."""

    stream: str
    frame_bytes: float = field("Of a mix the mean.")
    name: str = field('Core, link, receive ring or pool; "device under test" where it is not seen')
    reason: str = field("What says so: counters and busy times, in words")
    trials: int = field("Valid trials with loss that say so")
    of_trials: int = field("Valid trials with loss")


def limits_of(records: Sequence[TrialRecord]) -> tuple[Limit, ...]:
    """Return for each stream and frame size what most of its valid trials with loss name, with the last reason."""
    lossy: dict[tuple[str, float], list[TrialRecord]] = {}
    for record in records:
        steady = record.procedure in _STEADY
        if steady and record.trial.is_valid and record.trial.loss_ratio > 0.0:
            lossy.setdefault((record.stream, record.frame_bytes), []).append(record)
    limits = []
    for (stream, frame_bytes), some in lossy.items():
        name, count = Counter(record.trial.bottleneck.name for record in some).most_common(1)[0]
        last = [record for record in some if record.trial.bottleneck.name == name][-1]
        limits.append(
            Limit(
                stream=stream,
                frame_bytes=frame_bytes,
                name=name,
                reason=last.trial.bottleneck.reason,
                trials=count,
                of_trials=len(some),
            )
        )
    return tuple(limits)
