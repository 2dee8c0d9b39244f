"""The least count that is enough, without looking at each of thousands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from routecast.calibration.fitted import sparse_counts
from routecast.size.answer import Count

__all__ = ["looked_at"]

_FEW = 128
"""So many counts are all looked at."""


def looked_at(
    wanted: Sequence[int], evaluate: Callable[[Sequence[int]], Sequence[Count]], is_enough: Callable[[Count], bool]
) -> tuple[Count, ...]:
    """Return what was found of some ascending counts: of all if they are few.

    Of many, ever fewer the more cores; then, again so, of those between the first that is enough and the one before.
    """
    found: dict[int, Count] = {}
    rest = list(wanted)
    while rest:
        part = rest if len(rest) <= _FEW else [rest[number - 1] for number in sparse_counts(len(rest))]
        seen = evaluate(part)
        found |= {count.cores: count for count in seen}
        enough = next((count.cores for count in seen if is_enough(count)), None)
        if part is rest or enough is None:
            break
        before = max((cores for cores in part if cores < enough), default=0)
        rest = [cores for cores in rest if before < cores < enough]
    return tuple(found[cores] for cores in sorted(found))
