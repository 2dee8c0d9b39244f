"""What a study found, as values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from routecast.calibrate.points import Point
from routecast.evaluate.plain import plain
from routecast.quantity import format_duration
from routecast.quantity.quantile import quantile
from routecast.study.document import Study

__all__ = [
    "Comparison",
    "Criterion",
    "Curve",
    "ErrorSummary",
    "Estimate",
    "Hypothesis",
    "Made",
    "Parameter",
    "StudyResult",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What is predicted for one workload; rates in frames per second, NaN where nobody was asked.

    ``solved_pps`` and ``simulated_pps`` are the two evaluators' answers for the calibrated router, ``baseline_…`` the
    same for the baseline's law. ``low_pps`` to ``high_pps`` is the 95 % prediction interval of a measurement.
    ``contention_ratio`` is c(k): how many times longer a frame takes because all cores that have a flow work at once.
    """

    cores: int
    flows: int
    frame_bytes: int
    link_bps: float
    solved_pps: float
    simulated_pps: float
    low_pps: float
    high_pps: float
    limit: str
    contention_ratio: float
    baseline_pps: float = math.nan
    baseline_simulated_pps: float = math.nan

    @property
    def busy_cores(self) -> int:
        """Cores that have work."""
        return min(self.flows, self.cores)

    @property
    def predicted_pps(self) -> float:
        """The prediction: the closed form's, or the simulator's where only that was asked."""
        return self.simulated_pps if math.isnan(self.solved_pps) else self.solved_pps

    @property
    def l1_bits(self) -> float:
        """Bits of wire that a frame occupies (S1)."""
        return 8.0 * (self.frame_bytes + 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The calibrated law over frame size for one number of flows, with its 95 % prediction interval."""

    flows: int
    frame_bytes: tuple[int, ...]
    predicted_pps: tuple[float, ...]
    low_pps: tuple[float, ...]
    high_pps: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A measured point and what was predicted for it; ``calibrates`` if the calibration has seen it."""

    measured_pps: float
    reported_pps: float
    calibrates: bool
    estimate: Estimate

    def error_ratio(self, value_pps: float) -> float:
        """Relative error of a value against the measured one."""
        return value_pps / self.measured_pps - 1.0

    @property
    def is_covered(self) -> bool:
        """Whether the 95 % interval holds the measured value."""
        return self.estimate.low_pps <= self.measured_pps <= self.estimate.high_pps


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSummary:
    """Absolute relative errors of one model over a set of points."""

    points: int
    mean_abs_error_ratio: float
    median_abs_error_ratio: float
    p90_abs_error_ratio: float
    max_abs_error_ratio: float

    @classmethod
    def of(cls, errors: Iterable[float]) -> ErrorSummary:
        """Summarise errors; NaN everywhere if there is none."""
        sizes = sorted(abs(error) for error in errors if math.isfinite(error))
        return cls(
            points=len(sizes),
            mean_abs_error_ratio=fmean(sizes) if sizes else math.nan,
            median_abs_error_ratio=quantile(sizes, 0.5),
            p90_abs_error_ratio=quantile(sizes, 0.9),
            max_abs_error_ratio=sizes[-1] if sizes else math.nan,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A bound that the study sets on its own errors, and what they are."""

    name: str
    bound: float
    reached: float

    @property
    def is_met(self) -> bool:
        """Whether the error is within the bound (NaN is not)."""
        return self.reached <= self.bound

    @property
    def told(self) -> str:
        """The criterion in a line."""
        mark = "met" if self.is_met else "MISSED"
        return f"{self.name} {self.reached:.3g}, allowed {self.bound:.3g}: {mark}"

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        return {"name": self.name, "bound": self.bound, "reached": self.reached, "met": self.is_met}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One calibrated parameter, its 95 % interval where one is known, its unit and what it means."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A law of contention that may hold, and the weight that the points give it."""

    name: str
    formula: str
    weight_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """How the study was made."""

    versions: Mapping[str, str]
    seed: int
    command: str
    trials: int
    resumed_trials: int
    elapsed_s: float

    def rows(self, *between: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        """Return how the page was made, for its foot; ``between`` is what a kind of study says besides."""
        return (
            ("Command", f"`{self.command}`"),
            *between,
            ("Took", format_duration(float(f"{self.elapsed_s:.2g}"))),
            ("Versions", ", ".join(f"{name} {number}" for name, number in self.versions.items())),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """All that a study found."""

    study: Study
    out: Path
    law: str
    hypotheses: tuple[Hypothesis, ...]
    parameters: tuple[Parameter, ...]
    calibrating: tuple[Point, ...]
    comparisons: tuple[Comparison, ...]
    scenarios: Mapping[str, tuple[Estimate, ...]]
    curves: Mapping[str, tuple[Curve, ...]]
    next_points: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    made: Made
    notes: tuple[str, ...] = field(default=())

    @property
    def held_out(self) -> tuple[Comparison, ...]:
        """The points that the calibration has not seen."""
        return tuple(row for row in self.comparisons if not row.calibrates)

    @property
    def coverage_ratio(self) -> float:
        """Share of the held-out points inside their 95 % intervals."""
        return fmean(row.is_covered for row in self.held_out) if self.held_out else math.nan

    def spoken_of(self, scenario: str) -> Estimate:
        """Return the point that stands for a scenario where there is room for one: smallest frames, most busy cores.

        Of points with as many busy cores it is the one with crafted flows, for chance has no part in it, then the one
        with most flows, which spread most evenly.
        """
        return min(
            self.scenarios[scenario],
            key=lambda point: (point.frame_bytes, -point.busy_cores, point.flows > point.cores, -point.flows),
        )

    def errors(self) -> dict[str, ErrorSummary]:
        """Summaries by model over the held-out points."""
        return {model: ErrorSummary.of(errors) for model, errors in self._errors(self.held_out).items()}

    def errors_everywhere(self) -> dict[str, ErrorSummary]:
        """Summaries by model over all points, as papers give them."""
        return {model: ErrorSummary.of(errors) for model, errors in self._errors(self.comparisons).items()}

    @staticmethod
    def _errors(rows: Iterable[Comparison]) -> dict[str, list[float]]:
        errors: dict[str, list[float]] = {key: [] for key in ("solve", "simulate", "baseline", "reported")}
        for row in rows:
            errors["solve"].append(row.error_ratio(row.estimate.solved_pps))
            errors["simulate"].append(row.error_ratio(row.estimate.simulated_pps))
            errors["baseline"].append(row.error_ratio(row.estimate.baseline_pps))
            errors["reported"].append(row.error_ratio(row.reported_pps))
        return errors

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``summary.json`` and ``--json``; NaN becomes null."""
        document = {
            "study": self.study.name,
            "title": self.study.title,
            "law": self.law,
            "hypotheses": self.hypotheses,
            "parameters": self.parameters,
            "held_out": {"coverage_ratio": self.coverage_ratio, "errors": self.errors()},
            "all_points": {"errors": self.errors_everywhere()},
            "calibrating": [
                {"flows": p.flows, "frame_bytes": int(p.frame_bytes), "throughput_pps": p.throughput_pps}
                for p in self.calibrating
            ],
            "rows": [_row(row) for row in self.comparisons],
            "scenarios": self.scenarios,
            "next_points": self.next_points,
            "criteria": [one.to_json() for one in self.criteria],
            "notes": self.notes,
            "made": self.made,
        }
        return _dict(document)


def _row(row: Comparison) -> dict[str, Any]:
    cells = _dict(row.estimate)
    cells |= {
        "measured_pps": row.measured_pps,
        "reported_pps": row.reported_pps,
        "calibrates": row.calibrates,
    }
    cells["error_ratio"] = row.error_ratio(row.estimate.predicted_pps)
    cells["covered"] = row.is_covered
    return cells


def _dict(value: object) -> dict[str, Any]:
    result = plain(value)
    assert isinstance(result, dict)
    return result
