"""What a study of a network on chip found, as values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from routecast.evaluate.plain import plain
from routecast.noc.simulate.thesis import DvfsRow
from routecast.report.noc.link_map import LinkMap
from routecast.study.noc.document import Case, NocStudy, Stated
from routecast.study.noc.point import BOUND, NO_DVFS, WHOLE, Point
from routecast.study.result import Criterion, Made
from routecast.study.stated import Statement

__all__ = ["CaseResult", "Compared", "NocResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A stated power and the one found, both relative to no scaling at load 1."""

    case: str
    stated: Stated
    found: float

    @property
    def error_ratio(self) -> float:
        """What is found relative to what is stated, minus 1."""
        return self.found / self.stated.relative_power - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One traffic pattern: every curve over the loads."""

    case: Case
    points: tuple[Point, ...]
    maps: tuple[LinkMap, ...] = ()

    @property
    def loads(self) -> tuple[float, ...]:
        """Normalised loads, rising."""
        return tuple(sorted(set(self.case.traffic.load)))

    @property
    def curves(self) -> tuple[str, ...]:
        """Names of the curves, in the order of the study."""
        return tuple(dict.fromkeys(point.curve for point in self.points))

    def at(self, curve: str, load: float) -> tuple[Point, ...]:
        """Return a curve's points of all matrices at a load."""
        return tuple(point for point in self.points if point.curve == curve and abs(point.load - load) < 1e-9)

    def mean(self, curve: str, load: float) -> float:
        """Return the mean of a curve's relative power over the matrices; NaN unless it carries all of them."""
        points = self.at(curve, load)
        if len(points) < self.case.matrices:
            return math.nan
        return fmean(point.relative_power for point in points)

    def least(self, load: float) -> float:
        """Return the mean over the matrices of the larger of the bounds: what whole flows need at least.

        NaN where there is none.
        """
        bounds = [self.at(curve, load) for curve in (BOUND, WHOLE) if curve in self.curves]
        if not bounds or any(len(points) < self.case.matrices for points in bounds):
            return math.nan
        return fmean(max(point.relative_power for point in points) for points in zip(*bounds, strict=True))

    def factor(self, curve: str, load: float) -> float:
        """Return how many times below no scaling a curve is at a load: the ratio of the means."""
        return self.mean(NO_DVFS, load) / self.mean(curve, load)

    def worst_gap(self, load: float) -> float:
        """Return the largest proven gap of the optimum at a load; NaN where there is none."""
        return max((point.gap for point in self.at(BOUND, load)), default=math.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class NocResult:
    """All that a study of a network on chip found."""

    study: NocStudy
    out: Path
    cases: tuple[CaseResult, ...]
    dvfs_rows: tuple[DvfsRow, ...]
    compared: tuple[Compared, ...]
    statements: tuple[Statement, ...]
    criteria: tuple[Criterion, ...]
    made: Made

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``summary.json`` and ``--json``; NaN becomes null."""
        document = {
            "study": self.study.name,
            "title": self.study.title,
            "cases": [
                {
                    "name": one.case.name,
                    "curves": [
                        {
                            "curve": curve,
                            "loads": one.loads,
                            "relative_power": [one.mean(curve, load) for load in one.loads],
                        }
                        for curve in one.curves
                    ],
                    "gap_ratio": [one.worst_gap(load) for load in one.loads],
                }
                for one in self.cases
            ],
            "flit_level": self.dvfs_rows,
            "stated": [
                {
                    "case": one.case,
                    "curve": one.stated.curve,
                    "load": one.stated.load,
                    "where": one.stated.where,
                    "stated_relative_power": one.stated.relative_power,
                    "at_most": one.stated.at_most,
                    "relative_power": one.found,
                    "error_ratio": one.error_ratio,
                }
                for one in self.compared
            ],
            "statements": self.statements,
            "criteria": [one.to_json() for one in self.criteria],
            "made": self.made,
        }
        result = plain(document)
        assert isinstance(result, dict)
        return result
