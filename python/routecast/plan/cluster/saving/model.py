"""What the energy-saving algorithms obey, and what they achieve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from routecast.load.series import DAY_S
from routecast.plan.cluster.model import ClusterProblem, Schedule
from routecast.quantity.fields import Share, Span
from routecast.quantity.schema import field, value

__all__ = ["Knowledge", "Saving", "SavingRules", "always_on", "expected_bps"]

Knowledge = Literal["present", "past", "day before"]


@value
class SavingRules:
    """How machines may be switched."""

    # On-line only. Fewest (sec. 8.1): as few machines as will do are switched, and only on or only off.
    rule: Literal["worth", "fewest"] = field(
        "Switch once it pays back, or as few as will do (Li's differential algorithm)", default="worth"
    )
    # On-line only, see :func:`expected_bps`. Li's algorithm knows the present one.
    knows: Knowledge = field("Load that the algorithm knows when it decides on a step", default="present")
    # On-line only.
    headroom_ratio: Share = field("Part by which machines route more than the known load", default=0.0, le=10.0)
    # A figure of the operator's, for wear and trouble; it is weighed, but not counted as energy.
    payback_s: Span = field("A switching must save what the machine draws at full load in this time", default=40.0)
    # The payback doubles in a day while less was spent so far, and halves while more was; it begins with ``payback_s``
    # and stays within a twentieth and twenty times of it.
    tolerance_ratio: Share = field(
        "On-line, worth: tune the payback to spend this part more energy than off-line; 0: it stays",
        default=0.028,
        le=10.0,
    )
    min_on_s: Span = field("Least time from switching on to switching off", default=0.0)


@value
class Saving:
    """What an algorithm makes of a fleet and a trace."""

    name: str
    schedule: Schedule
    missed_steps: int = field("Steps in which some traffic found no machine", default=0)
    missed_ratio: float = field("Share of all traffic that found none", default=0.0)
    note: str = field("What its name does not say; empty where there is nothing", default="")


def expected_bps(traffic_bps: Sequence[float], step_s: float, rules: SavingRules) -> tuple[float, ...]:
    """Return the load to plan each step for, without what only later steps tell; infinite where nothing is known.

    ``"present"``: T_t; ``"past"``: T_{t-1}; ``"day before"``: T_{t-1} T_{t-D} / T_{t-D-1}, the present scaled as a
    day of D steps earlier, and T_{t-1} during the first day. Each times 1 + headroom.
    """
    day = round(DAY_S / step_s)
    expected = [float("inf")]
    for step in range(1, len(traffic_bps)):
        load = traffic_bps[step - 1]
        before = traffic_bps[step - day - 1] if step > day else 0.0
        if rules.knows == "day before" and before > 0.0:
            load *= traffic_bps[step - day] / before
        expected.append(load)
    known = traffic_bps if rules.knows == "present" else expected
    return tuple(load * (1.0 + rules.headroom_ratio) for load in known)


def always_on(problem: ClusterProblem, fleet: Sequence[int]) -> Saving:
    """Return what the fleet needs when no machine is ever switched off."""
    from routecast.plan.cluster.saving.switching import metered

    on = [tuple(fleet)] * len(problem.traffic_bps)
    return Saving(name="always on", schedule=metered(problem, on, repeats=False))
