"""What a study of functions found, as values: estimates beside the functions themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from routecast.evaluate.plain import plain
from routecast.hardware.model import Hardware
from routecast.study.functions.document import FunctionStudy
from routecast.study.functions.points import Point
from routecast.study.result import Criterion, ErrorSummary, Made

__all__ = ["FunctionResult", "FunctionRow", "HandLoop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandLoop:
    """The best hand-written loop for a function's lookup, beside the function: seconds per packet.

    ``frames_s`` does the lookup on the same frames in one fused loop, ``lookup_s`` the lookup alone with keys that
    stand ready; ``bound_s`` is what the lines of the table cost alone, asked for in batches, were nothing else to be
    done, and ``one_by_one_s`` what they cost if each is waited for before the next is asked for.
    """

    frames_s: float = math.nan
    lookup_s: float = math.nan
    bound_s: float = math.nan
    one_by_one_s: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow:
    """One point: cycles per packet as estimated, refined and measured.

    Parameters
    ----------
    point : Point
    estimated_cycles, refined_cycles : float
        From the probe alone; after refining.
    low_cycles, high_cycles : float
        95 % range of the estimate; NaN where unknown.
    measured_cycles : tuple of float
        One value for each repeat.
    core_hz : float
        Clock of the core while it was measured.
    found_in : str
        Level of the memory in which most lines of the table are expected.
    hand : HandLoop
    """

    point: Point
    estimated_cycles: float
    refined_cycles: float
    measured_cycles: tuple[float, ...]
    core_hz: float
    found_in: str
    low_cycles: float = math.nan
    high_cycles: float = math.nan
    hand: HandLoop = HandLoop()

    @property
    def cycles(self) -> float:
        """Median of the measured cycles per packet; NaN if there is none."""
        return median(self.measured_cycles) if self.measured_cycles else math.nan

    @property
    def spread_ratio(self) -> float:
        """Range of the repeats relative to their median."""
        if len(self.measured_cycles) < 2:
            return math.nan
        return (max(self.measured_cycles) - min(self.measured_cycles)) / self.cycles

    @property
    def measured_pps(self) -> float:
        """Measured frames per second of one core."""
        return self.core_hz / self.cycles

    @property
    def estimated_pps(self) -> float:
        """Estimated frames per second of one core at the clock of the measurement."""
        return self.core_hz / self.estimated_cycles

    @property
    def refined_pps(self) -> float:
        """Frames per second by the refined estimate."""
        return self.core_hz / self.refined_cycles

    @property
    def error_ratio(self) -> float:
        """Relative error of the estimated throughput."""
        return self.cycles / self.estimated_cycles - 1.0

    @property
    def refined_error_ratio(self) -> float:
        """Relative error of the refined throughput."""
        return self.cycles / self.refined_cycles - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionResult:
    """All that a study of functions found."""

    study: FunctionStudy
    out: Path
    hardware: Hardware
    refined: Hardware
    rows: tuple[FunctionRow, ...]
    criteria: tuple[Criterion, ...]
    made: Made
    notes: tuple[str, ...] = ()

    def errors(self) -> ErrorSummary:
        """Summary of the estimates from the probe alone, over all points."""
        return ErrorSummary.of(row.error_ratio for row in self.rows)

    def refined_errors(self) -> ErrorSummary:
        """Summary of the refined estimates over the points that did not refine."""
        return ErrorSummary.of(row.refined_error_ratio for row in self.held_out)

    @property
    def held_out(self) -> tuple[FunctionRow, ...]:
        """The points that did not refine."""
        return tuple(row for row in self.rows if not row.point.refines)

    @property
    def titles(self) -> tuple[str, ...]:
        """Functions and directions, in their order."""
        return tuple(dict.fromkeys(row.point.title for row in self.rows))

    def to_json(self) -> dict[str, Any]:
        """Return plain data for ``summary.json`` and ``--json``; NaN becomes null."""
        document = {
            "study": self.study.name,
            "title": self.study.title,
            "hardware": self.hardware.name,
            "errors": self.errors(),
            "refined_errors": self.refined_errors(),
            "rows": [_row(row) for row in self.rows],
            "criteria": [one.to_json() for one in self.criteria],
            "notes": self.notes,
            "made": self.made,
        }
        return _dict(document)


def _row(row: FunctionRow) -> dict[str, Any]:
    return {
        **_dict(row),
        "cycles": row.cycles,
        "measured_pps": row.measured_pps,
        "estimated_pps": row.estimated_pps,
        "error_ratio": row.error_ratio,
        "refined_error_ratio": row.refined_error_ratio,
    }


def _dict(value: object) -> dict[str, Any]:
    result = plain(value)
    assert isinstance(result, dict)
    return result
