"""Signs that a plane gets more than it carries, so that its latency is unbounded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from routecast.noc.simulate.estimate import Estimate, estimate

__all__ = ["signs_of_overload"]

_TOLERATED = 0.01
"""Less than this part of the offered flits is what happens to be on the way when the measurement begins and ends."""

_RISE = 0.5
"""Latency that rises by more than this part of its mean from the first to the last third of the measurement."""


def signs_of_overload(outcomes: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the signs of saturation in the replications of one plane, in words; none if there is none.

    A sign must hold for the mean of the replications by more than the tolerance and beyond its 95 % interval, so that
    chance alone makes none:

    * less arrives than is made, by more than 1 %;
    * the queues at the nodes grow by more than 1 % of what is made;
    * latency rises by more than half its mean from the first to the last third of the measurement;
    * measured packets had not arrived when the longest drain was over;
    * nothing moved any more.
    """
    made = [sum(outcome["offered_flits"]) for outcome in outcomes]
    if not any(made):
        return ()
    signs = []
    lost = _share(
        [flits - sum(outcome["accepted_flits"]) for flits, outcome in zip(made, outcomes, strict=True)], made
    )
    if _is_beyond(lost, _TOLERATED):
        signs.append(f"accepts {100 * (1 - lost.value):.3g} % of the offered flits")
    grown = _share([outcome["source_flits"][1] - outcome["source_flits"][0] for outcome in outcomes], made)
    if _is_beyond(grown, _TOLERATED):
        signs.append(f"the queues of the nodes grow by {100 * grown.value:.3g} % of the offered flits")
    rise = _rise(outcomes)
    if _is_beyond(rise, _RISE):
        signs.append(f"latency rises by {100 * rise.value:.3g} % of its mean during the measurement")
    missing = sum(outcome["undelivered_flits"] for outcome in outcomes)
    if missing:
        signs.append(f"{missing} flits of measured packets had not arrived at the end")
    if any(outcome["deadlocked"] for outcome in outcomes):
        signs.append("nothing moved any more: packets waited for each other")
    return tuple(signs)


def _share(parts: Sequence[float], wholes: Sequence[float]) -> Estimate:
    return estimate([part / whole for part, whole in zip(parts, wholes, strict=True) if whole])


def _is_beyond(value: Estimate, tolerated: float) -> bool:
    return value.value > tolerated and value.low > 0


def _rise(outcomes: Sequence[dict[str, Any]]) -> Estimate:
    rises = []
    for outcome in outcomes:
        batches, mean = outcome["batch_latency"], outcome["packet_latency"]["mean"]
        third = len(batches) // 3
        if third and mean:
            rises.append((sum(batches[-third:]) - sum(batches[:third])) / third / mean)
    return estimate(rises)
