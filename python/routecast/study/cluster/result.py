"""What a study of a cluster found, as values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routecast.evaluate.plain import plain
from routecast.load.series import TrafficSeries
from routecast.plan.cluster.answer import KWH_J, ClusterAnswer
from routecast.plan.cluster.model import Design
from routecast.plan.cluster.saving.model import Saving
from routecast.study.cluster.document import ClusterStudy
from routecast.study.result import Criterion, Made
from routecast.study.stated import Statement

__all__ = ["ClusterResult", "FleetSaving", "Payback", "Sampled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """A fleet that was designed for one sampling of the day, run at another.

    Parameters
    ----------
    designed_s, run_s : float
        Steps of the design and of the run.
    fleet : tuple of int
    kwh_per_day : float
    power_w : tuple of float
        Of each step of the run.
    missed_ratio : float
        Share of the traffic that is beyond the fleet: a coarse sampling hides the highest load.
    """

    designed_s: float
    run_s: float
    fleet: tuple[int, ...]
    kwh_per_day: float
    power_w: tuple[float, ...]
    missed_ratio: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSaving:
    """The saving algorithms over the trace, for the fleet of one design; the second is off-line, the fourth on-line."""

    design: Design
    savings: tuple[Saving, ...]

    @property
    def offline(self) -> Saving:
        """Each step for itself, with its load known."""
        return self.savings[1]

    @property
    def online(self) -> Saving:
        """From the step before."""
        return self.savings[3]

    @property
    def energy_ratio(self) -> float:
        """By which part on-line needs more than off-line."""
        return self.online.schedule.energy_j / self.offline.schedule.energy_j - 1.0

    @property
    def switchings_ratio(self) -> float:
        """Switchings on-line relative to off-line; 0 where there are none at all."""
        most = self.offline.schedule.switchings
        return self.online.schedule.switchings / most if most else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Payback:
    """Energy and switchings over the trace when a switching must pay back in a given time."""

    payback_s: float
    online: Saving
    offline: Saving


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterResult:
    """All that a study of a cluster found."""

    study: ClusterStudy
    out: Path
    answer: ClusterAnswer
    fine_day: TrafficSeries
    frontier: tuple[Design, ...]
    sampled: tuple[Sampled, ...]
    fleets: tuple[FleetSaving, ...]
    paybacks: tuple[Payback, ...]
    statements: tuple[Statement, ...]
    criteria: tuple[Criterion, ...]
    made: Made

    def of_sampling(self, designed_s: float, run_s: float) -> Sampled:
        """Return the fleet of one sampling run at another."""
        return next(one for one in self.sampled if (one.designed_s, one.run_s) == (designed_s, run_s))

    def named(self, name: str) -> Design:
        """Return a design by the beginning of its name."""
        return next(one for one in self.answer.designs if one.name == name or one.name.startswith(f"{name},"))

    @property
    def goal_designs(self) -> tuple[Design, ...]:
        """The goal program's designs with a budget, from the smallest."""
        some = [one for one in self.answer.designs if one.name.startswith("Design-V") and "no limit" not in one.name]
        return tuple(sorted(some, key=lambda one: (one.price, -one.energy_j)))

    @property
    def trace_days(self) -> float:
        """Days of the trace."""
        trace = self.answer.case.trace
        return trace.duration_s / 86_400.0 if trace else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``summary.json`` and ``--json``; NaN becomes null."""
        document = {
            "study": self.study.name,
            "title": self.study.title,
            "plan": self.answer.to_json(),
            "frontier": [
                {
                    "price": one.price,
                    "kwh_per_day": self.answer.kwh_per_day(one.energy_j),
                    "gap_ratio": one.gap_ratio,
                }
                for one in self.frontier
            ],
            "mismatch": [
                {
                    "designed_s": one.designed_s,
                    "run_s": one.run_s,
                    "fleet": one.fleet,
                    "kwh_per_day": one.kwh_per_day,
                    "missed_ratio": one.missed_ratio,
                }
                for one in self.sampled
            ],
            "saving": [
                {
                    "design": one.design.name,
                    "fleet": one.design.fleet,
                    "energy_ratio": one.energy_ratio,
                    "switchings_ratio": one.switchings_ratio,
                    "algorithms": [self._saving(saving) for saving in one.savings],
                }
                for one in self.fleets
            ],
            "payback": [
                {
                    "payback_s": one.payback_s,
                    "online": self._saving(one.online),
                    "offline": self._saving(one.offline),
                }
                for one in self.paybacks
            ],
            "statements": self.statements,
            "criteria": [one.to_json() for one in self.criteria],
            "made": self.made,
        }
        result = plain(document)
        assert isinstance(result, dict)
        return result

    def _saving(self, saving: Saving) -> dict[str, Any]:
        days = max(self.trace_days, 1e-9)
        return {
            "name": saving.name,
            "kwh_per_day": saving.schedule.energy_j / KWH_J / days,
            "switchings_per_day": saving.schedule.switchings / days,
            "missed_ratio": saving.missed_ratio,
        }
