"""What a study of designed experiments found, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routecast.evaluate.plain import plain
from routecast.experiment.analysis import Analysis
from routecast.experiment.model import Results
from routecast.study.experiments.calibrated import Calibrated
from routecast.study.experiments.document import Arithmetic, Expectation, ExperimentsStudy, Fact
from routecast.study.experiments.over_time import Followed
from routecast.study.result import Criterion, Made

__all__ = ["Calculated", "ExperimentsResult", "Found", "Judged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A stated fact and what is found, both in the stated unit."""

    fact: Fact
    found: float

    @property
    def is_met(self) -> bool | None:
        """Whether it lies in its range; None without one."""
        return None if self.fact.between is None else self.fact.between[0] <= self.found <= self.fact.between[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """An expectation, and whether the model confirms it."""

    expectation: Expectation
    holds: bool
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculated:
    """A calculation of the source, done again."""

    arithmetic: Arithmetic
    value: float
    agrees: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentsResult:
    """All that a study of designed experiments found; ``results`` by experiment, ``analyses`` by response besides."""

    study: ExperimentsStudy
    out: Path
    calibrated: tuple[Calibrated, ...]
    results: Mapping[str, Results]
    analyses: Mapping[str, Mapping[str, Analysis]]
    courses: tuple[Followed, ...]
    facts: tuple[Found, ...]
    judged: tuple[Judged, ...]
    calculated: tuple[Calculated, ...]
    criteria: tuple[Criterion, ...]
    made: Made

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``summary.json`` and ``--json``; NaN becomes null."""
        document = {
            "study": self.study.name,
            "title": self.study.title,
            "calibrated": self.calibrated,
            "experiments": [
                {
                    "name": name,
                    "title": results.experiment.title,
                    "analyses": {response: analysis.to_json() for response, analysis in self.analyses[name].items()},
                    "runs": [
                        {
                            "row": run.row,
                            "replication": run.replication,
                            "levels": results.experiment.design.coded[run.row],
                            "values": answer.values,
                            "problem": answer.problem,
                            "unsteady": answer.unsteady,
                            "bottleneck": answer.bottleneck,
                        }
                        for run, answer in zip(results.runs, results.answers, strict=True)
                    ],
                }
                for name, results in self.results.items()
            ],
            "over_time": [
                {"name": one.over_time.name, "verdict": one.verdict, "readings": one.readings} for one in self.courses
            ],
            "facts": [
                {
                    "name": one.fact.name,
                    "experiment": one.fact.experiment,
                    "unit": one.fact.unit,
                    "stated": one.fact.value,
                    "between": one.fact.between,
                    "found": one.found,
                    "calibrates": one.fact.calibrates is not None,
                    "where": one.fact.where,
                }
                for one in self.facts
            ],
            "expectations": [
                {
                    "says": one.expectation.says,
                    "where": one.expectation.where,
                    "confirmed": one.holds,
                    "here": one.here,
                }
                for one in self.judged
            ],
            "arithmetic": [
                {
                    "says": one.arithmetic.says,
                    "where": one.arithmetic.where,
                    "stated": one.arithmetic.stated,
                    "recomputed": one.value,
                    "unit": one.arithmetic.unit,
                    "agrees": one.agrees,
                    "why": one.arithmetic.why,
                }
                for one in self.calculated
            ],
            "criteria": [one.to_json() for one in self.criteria],
            "made": self.made,
        }
        made = plain(document)
        assert isinstance(made, dict)
        return made
