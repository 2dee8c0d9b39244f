"""MLRsearch (RFC 9971) by its reference library, over any evaluator.

Conversions, which RFC 9971 wants stated: the library's load is that of **one port**, its counts are of **all ports**
together; the ratio of loss is the same either way. Frames that the tester could not send count as lost. The library
measures its own time by the wall clock, so its limit is set far beyond any run: how long a search takes is the business
of the profile. There is no warm-up trial: the stage before it has sent at the maximum rate already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from routecast.benchmark.search.bounds import Bounds, Probe
from routecast.benchmark.settings import GoalProfile
from routecast.benchmark.stage import InvalidTrial

if TYPE_CHECKING:
    from MLRsearch import MeasurementResult

__all__ = ["mlr_search"]

_NO_TIME_LIMIT_S = 1e9


def mlr_search(probe: Probe, goals: Sequence[GoalProfile], *, least_pps: float, most_pps: float) -> tuple[Bounds, ...]:
    """Search for all goals at once.

    Parameters
    ----------
    probe : Probe
    goals : sequence of GoalProfile
    least_pps, most_pps : float
        Ends of the search, per port.

    Returns
    -------
    tuple of Bounds
        In the order of the goals.
    """
    from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch

    asked = 0

    class Measurer(AbstractMeasurer):  # type: ignore[misc]  # the library has no types
        def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
            nonlocal asked
            asked += 1
            counts = probe(intended_load, intended_duration, f"search {asked}, MLRsearch")
            return MeasurementResult(
                intended_duration=intended_duration,
                intended_load=intended_load,
                offered_count=counts.offered,
                loss_count=counts.lost,
                intended_count=counts.offered + counts.unsent,
            )

    wanted = [_goal(goal) for goal in goals]
    config = Config(
        goals=list(dict.fromkeys(wanted)),
        min_load=least_pps,
        max_load=most_pps,
        search_duration_max=_NO_TIME_LIMIT_S,
        warmup_duration=None,
    )
    try:
        found = MultipleLossRatioSearch(config=config).search(measurer=Measurer(), debug=_silent)
    except InvalidTrial as problem:
        nothing = Bounds(
            lower_pps=math.nan,
            upper_pps=math.nan,
            conditional_pps=math.nan,
            outcome="undetermined",
            reason=str(problem),
        )
        return (nothing,) * len(wanted)
    return tuple(_bounds(found[goal]) for goal in wanted)


def _silent(text: str) -> None:
    """Keep the library's own account to itself: every trial is in the journal."""


def _goal(goal: GoalProfile) -> Any:
    from MLRsearch import SearchGoal

    return SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.width,
        initial_trial_duration=goal.initial_trial,
        final_trial_duration=goal.final_trial,
        duration_sum=goal.duration_sum,
        preceding_targets=goal.preceding_targets,
        fail_fast=False,
    )


def _bounds(result: Any) -> Bounds:
    lower, upper = result.relevant_lower_bound, result.relevant_upper_bound
    if lower is None:
        return Bounds(
            lower_pps=math.nan,
            upper_pps=math.nan if upper is None else float(upper),
            conditional_pps=math.nan,
            outcome="below",
        )
    return Bounds(
        lower_pps=float(lower),
        upper_pps=math.nan if upper is None else float(upper),
        conditional_pps=float(result.conditional_throughput),
        outcome="maximum" if upper is None else "found",
    )
