"""Numbers of cores with their rates, and their probabilities to reach a goal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from routecast.calibration.fitted import sparse_counts

__all__ = ["SAME_CHANCE", "Count", "cores", "evaluated_counts"]

SAME_CHANCE = 0.005
"""Difference of probabilities below which only one is stated."""
_MAX_EVALUATED = 128
"""Up to this number, all counts are evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A number of cores, with its probability to meet the target, and its rate with the 95 % interval in frames/s.

    A router that is described but not measured has no probability (None) and no interval (NaN). ``outside`` names the
    conditions beyond the measurements: cores, frames, link, host. ``latency_s`` is the quantity of the first bound and
    ``power_w`` the power, both at the target, and NaN if unknown. ``probability`` counts ceilings that no row shows
    (:mod:`routecast.calibration.ceilings`); ``probability_if_cores_limit`` is that without them.
    ``known_loss_ratio`` is the greatest loss at the target that is possible as far as is known: of a closed form, or of
    the simulator where it was asked; NaN if unknown. ``frames_simulated``: frames that the simulator offered where
    the closed form does not know of the loss and they do not tell it either, mostly because none was lost; else 0.
    ``rate_probability``: that of the rate alone, where ``probability`` is that of the rate and of the bounds together.
    """

    cores: int
    probability: float | None
    rate_pps: float
    low_pps: float
    high_pps: float
    limit: str
    outside: tuple[str, ...]
    latency_s: float = math.nan
    power_w: float = math.nan
    probability_if_cores_limit: float | None = None
    known_loss_ratio: float = math.nan
    frames_simulated: int = 0
    rate_probability: float | None = None

    @property
    def chance(self) -> float:
        """The probability; 0 if it is not known."""
        return self.probability or 0.0

    @property
    def chances_text(self) -> str:
        """The probability, and the one without unseen ceilings if it differs."""
        bare = self.probability_if_cores_limit
        if bare is None or bare - self.chance < SAME_CHANCE:
            return f"{self.chance:.3g}"
        return f"{bare:.3g} if nothing but the cores limits; {self.chance:.3g} with the ceilings of the shipped tables"


def evaluated_counts(
    candidates: Sequence[int], evaluate: Callable[[Sequence[int]], Sequence[Count]], is_enough: Callable[[Count], bool]
) -> tuple[Count, ...]:
    """Evaluate ascending counts of cores, all of them if they are at most 128.

    Of more counts, evaluate a sample that is sparser for larger counts, then, in the same way, the counts between the
    first sufficient count and the previous one.
    """
    counts: dict[int, Count] = {}
    remaining = list(candidates)
    while remaining:
        selected = remaining
        if len(remaining) > _MAX_EVALUATED:
            selected = [remaining[number - 1] for number in sparse_counts(len(remaining))]
        evaluated = evaluate(selected)
        counts |= {count.cores: count for count in evaluated}
        first_enough = next((count.cores for count in evaluated if is_enough(count)), None)
        if selected is remaining or first_enough is None:
            break
        last_insufficient = max((cores for cores in selected if cores < first_enough), default=0)
        remaining = [cores for cores in remaining if last_insufficient < cores < first_enough]
    return tuple(counts[cores] for cores in sorted(counts))


def cores(count: int) -> str:
    """Write a number of cores."""
    return f"{count} core{'s' if count != 1 else ''}"
