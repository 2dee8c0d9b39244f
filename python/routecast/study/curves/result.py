"""What a study of curves found, as values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routecast.evaluate.plain import plain
from routecast.study.curves.calibrated import Calibrated
from routecast.study.curves.document import CurveStudy, Figure, Passing, Stated
from routecast.study.curves.point import Point
from routecast.study.result import Criterion, Made
from routecast.study.stated import Statement

__all__ = ["Compared", "CurveResult", "FigureResult", "Passed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A stated rate and the one found."""

    figure: str
    stated: Stated
    found_pps: float

    @property
    def error_ratio(self) -> float:
        """Found over stated, less 1."""
        return self.found_pps / self.stated.value - 1.0

    @property
    def missed_by(self) -> float:
        """Relative error on the side that counts: 0 where a bound holds."""
        if self.stated.side == "at_least":
            return max(-self.error_ratio, 0.0)
        return max(self.error_ratio, 0.0) if self.stated.side == "at_most" else abs(self.error_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """What each flow passes, as stated and as found."""

    figure: str
    passing: Passing
    found: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureResult:
    """A figure: its curves' points by name."""

    figure: Figure
    curves: Mapping[str, tuple[Point, ...]]

    def peak_pps(self, curve: str) -> float:
        """Greatest forwarded rate of a curve."""
        return max((point.forwarded_pps for point in self.curves[curve]), default=math.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveResult:
    """All that a study of curves found."""

    study: CurveStudy
    out: Path
    calibrated: tuple[Calibrated, ...]
    figures: tuple[FigureResult, ...]
    compared: tuple[Compared, ...]
    passed: tuple[Passed, ...]
    statements: tuple[Statement, ...]
    criteria: tuple[Criterion, ...]
    made: Made

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``summary.json`` and ``--json``; NaN becomes null."""
        document = {
            "study": self.study.name,
            "title": self.study.title,
            "calibrated": self.calibrated,
            "figures": [
                {
                    "name": one.figure.name,
                    "title": one.figure.title,
                    "curves": [{"name": name, "points": points} for name, points in one.curves.items()],
                }
                for one in self.figures
            ],
            "stated": [
                {
                    "figure": one.figure,
                    "curve": one.stated.curve,
                    "at": one.stated.at,
                    "side": one.stated.side,
                    "where": one.stated.where,
                    "calibrates": one.stated.calibrates is not None,
                    "stated_pps": one.stated.value,
                    "found_pps": one.found_pps,
                    "error_ratio": one.error_ratio,
                }
                for one in self.compared
            ],
            "passing": [
                {
                    "figure": one.figure,
                    "curve": one.passing.curve,
                    "at": one.passing.at,
                    "stated": one.passing.ratios,
                    "found": one.found,
                    "where": one.passing.where,
                }
                for one in self.passed
            ],
            "statements": self.statements,
            "criteria": [one.to_json() for one in self.criteria],
            "made": self.made,
        }
        result = plain(document)
        assert isinstance(result, dict)
        return result
