"""Judged: a candidate with its trial, what the targets say of it, and the front of those that nothing beats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from routecast.evaluate.trial import Trial
from routecast.plan.operating.candidates import Candidate
from routecast.plan.operating.setting import Setting
from routecast.plan.operating.targets import Target

__all__ = ["Judged", "front_of", "judge", "latency_quantity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A candidate that was evaluated.

    Parameters
    ----------
    candidate : Candidate
    least_w : float
        Bound on its power that was known before.
    power_w : float
        Mean power; NaN where the trial gives none.
    values : tuple of float
        What the trial shows of each target's quantity; NaN where unknown.
    excess : float
        How far the worst of them is beyond its limit, as a share of the limit; 0 where all targets are met.
    trial : Trial or None
        None where no trial came to a steady state.
    """

    candidate: Candidate
    least_w: float
    power_w: float
    values: tuple[float, ...]
    excess: float
    trial: Trial | None

    @property
    def setting(self) -> Setting:
        """The setting of the candidate."""
        return self.candidate.setting

    @property
    def is_met(self) -> bool:
        """Whether all targets are met."""
        return self.excess == 0.0

    def latency_s(self, quantity: str) -> float:
        """Return a quantity of the latency, NaN where unknown."""
        if self.trial is None or self.trial.latency is None:
            return math.nan
        return float(getattr(self.trial.latency, f"{quantity}_s"))


def judge(
    candidate: Candidate, trial: Trial | None, targets: Sequence[Target], *, least_w: float = 0.0
) -> Judged:
    """Return what the targets say of a candidate's trial; without a trial none is met."""
    if trial is None:
        unknown = tuple(math.nan for _ in targets)
        return Judged(
            candidate=candidate,
            least_w=least_w,
            power_w=math.nan,
            values=unknown,
            excess=math.inf,
            trial=None,
        )
    values = tuple(target.value(trial) for target in targets)
    excess = max((target.excess(value) for target, value in zip(targets, values, strict=True)), default=0.0)
    return Judged(
        candidate=candidate,
        least_w=least_w,
        power_w=math.nan if trial.power is None else trial.power.mean_w,
        values=values,
        excess=excess,
        trial=trial,
    )


def latency_quantity(targets: Iterable[Target]) -> str:
    """Return the quantity of the latency that watts are weighed against: that of the first target on one, or p99."""
    return next((target.quantity for target in targets if target.quantity != "loss"), "p99")


def front_of(judged: Iterable[Judged], targets: Sequence[Target]) -> tuple[Judged, ...]:
    """Return the Pareto front of watts against latency, in rising watts, of those that keep the target on loss.

    Parameters
    ----------
    judged : iterable of Judged
    targets : sequence of Target
        The latency is that of :func:`latency_quantity`.
    """
    quantity = latency_quantity(targets)
    kept = [
        one
        for one in judged
        if math.isfinite(one.power_w)
        and math.isfinite(one.latency_s(quantity))
        and all(
            target.is_kept_by(value)
            for target, value in zip(targets, one.values, strict=True)
            if target.quantity == "loss"
        )
    ]
    front: list[Judged] = []
    for one in sorted(kept, key=lambda one: (one.power_w, one.latency_s(quantity))):
        if not front or one.latency_s(quantity) < front[-1].latency_s(quantity):
            front.append(one)
    return tuple(front)
