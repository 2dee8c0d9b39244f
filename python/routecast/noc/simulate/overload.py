"""Signs that a plane gets more than it carries, so that its latency is unbounded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

__all__ = ["signs_of_overload"]

_TOLERATED = 0.01
"""Less than this part of the offered flits is what happens to be on the way when the measurement begins and ends."""

_HELD_PACKETS = 2.0
"""And so are less than so many packets for each node, which matters in short runs."""

_RISE = 0.5
"""Latency that rises by more than this part of its mean from the first to the last third of the measurement."""


def signs_of_overload(
    outcomes: Sequence[dict[str, Any]], *, nodes: int, packet_flits: float
) -> tuple[str, ...]:
    """Return the signs of saturation in the replications of one plane, in words; none if there is none.

    * less arrives than is made;
    * the queues at the nodes grow;
    * measured packets had not arrived when the longest drain was over;
    * latency rises by more than half its mean from the first to the last third of the measurement;
    * nothing moved any more.

    The first three must come to more than 1 % of what is made and to more than two packets for each node. The first,
    second and fourth must hold for the mean of the replications, which must be above 0 at 95 % (one-sided, Student's
    t): so chance alone makes no sign.

    Parameters
    ----------
    outcomes
        Of each replication.
    nodes
        How many there are.
    packet_flits
        Mean length of a packet.
    """
    made = [sum(outcome["offered_flits"]) for outcome in outcomes]
    if not any(made):
        return ()
    tolerated = max(_TOLERATED, _HELD_PACKETS * packet_flits * nodes * len(made) / sum(made))
    signs = []
    lost = [flits - sum(outcome["accepted_flits"]) for flits, outcome in zip(made, outcomes, strict=True)]
    if share := _mean_beyond(_shares(lost, made), tolerated):
        signs.append(f"accepts {100 * (1 - share):.3g} % of the offered flits")
    grown = [outcome["source_flits"][1] - outcome["source_flits"][0] for outcome in outcomes]
    if share := _mean_beyond(_shares(grown, made), tolerated):
        signs.append(f"the queues of the nodes grow by {100 * share:.3g} % of the offered flits")
    if rise := _mean_beyond(_rises(outcomes), _RISE):
        signs.append(f"latency rises by {100 * rise:.3g} % of its mean during the measurement")
    missing = sum(outcome["undelivered_flits"] for outcome in outcomes)
    if missing > tolerated * sum(made):
        signs.append(f"{missing} flits of measured packets had not arrived at the end")
    if any(outcome["deadlocked"] for outcome in outcomes):
        signs.append("nothing moved any more: packets waited for each other")
    return tuple(signs)


def _shares(parts: Sequence[float], wholes: Sequence[float]) -> list[float]:
    return [part / whole for part, whole in zip(parts, wholes, strict=True) if whole]


def _mean_beyond(values: Sequence[float], tolerated: float) -> float | None:
    """Return the mean if it is beyond the tolerance and above 0 by more than chance; None otherwise."""
    mean = math.fsum(values) / len(values) if values else 0.0
    if mean <= tolerated:
        return None
    if len(values) == 1:
        return mean
    from scipy.special import stdtrit  # scipy is loaded where it is used

    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    return mean if mean > float(stdtrit(len(values) - 1, 0.95)) * spread else None


def _rises(outcomes: Sequence[dict[str, Any]]) -> list[float]:
    rises = []
    for outcome in outcomes:
        batches, mean = outcome["batch_latency"], outcome["packet_latency"]["mean"]
        third = len(batches) // 3
        if third and mean:
            rises.append((sum(batches[-third:]) - sum(batches[:third])) / third / mean)
    return rises
