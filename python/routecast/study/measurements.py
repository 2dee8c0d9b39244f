"""Measured maxima from a CSV file: one row per number of flows and frame size."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["Measured", "read_measured"]

KNOWN = ("flows", "frame_bytes", "throughput_l1_bps", "throughput_pps", "reported_l1_bps")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measured maximum throughput, and what another model reported for it (NaN if nothing)."""

    flows: int
    frame_bytes: int
    throughput_pps: float
    reported_pps: float = math.nan

    @property
    def key(self) -> tuple[int, int]:
        """What tells one point of a table from another."""
        return (self.flows, self.frame_bytes)


def read_measured(path: Path) -> tuple[Measured, ...]:
    """Read a table of measured maxima.

    Raises
    ------
    routecast.errors.FileProblem
        With every fault of the file and its line.
    """
    text = read_text(path, kind="table of measured maxima")
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
        columns = list(reader.fieldnames or ())
        problems = _column_problems(columns)
        rows = list(enumerate(reader, start=2)) if not problems else []
    except csv.Error as error:
        raise FileProblem(str(path), [Problem("", f"is not CSV: {error}")]) from None
    measured: dict[tuple[int, int], Measured] = {}
    for line, row in rows:
        wrong: list[Problem] = []
        point = _point(row, line, wrong)
        if point and point.key in measured:
            wrong.append(
                Problem(f"line {line}", f"{point.flows} flows of {point.frame_bytes} B stand here twice")
            )
        if point:
            measured[point.key] = point
        problems += wrong
    if not problems and not measured:
        problems.append(Problem("", "has no row"))
    if problems:
        raise FileProblem(str(path), problems)
    return tuple(measured.values())


def _column_problems(columns: list[str]) -> list[Problem]:
    problems = []
    for column in columns:
        if column not in KNOWN:
            problems.append(Problem(f"column {column!r}", f"unknown; {did_you_mean(column, KNOWN)}"))
    problems += [Problem(f"column {name!r}", "is missing") for name in KNOWN[:2] if name not in columns]
    if ("throughput_l1_bps" in columns) == ("throughput_pps" in columns):
        problems.append(Problem("columns", "give one of throughput_l1_bps and throughput_pps"))
    return problems


def _point(row: dict[str, str | None], line: int, problems: list[Problem]) -> Measured | None:
    def number(column: str, *, whole: bool = False, least: float = 0.0) -> float:
        text = (row.get(column) or "").strip()
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        fits = math.isfinite(value) and value > 0.0 and value >= least and (not whole or value == int(value))
        if not fits:
            kind = f"a whole number >= {least:g}" if whole else "a number > 0"
            problems.append(Problem(f"line {line}, {column}", f"got {text!r}: {kind} is allowed"))
        return value if fits else math.nan

    flows, frame_bytes = number("flows", whole=True, least=1), number("frame_bytes", whole=True, least=64)
    frame_bits = 8.0 * (frame_bytes + WIRE_OVERHEAD_BYTES)
    if row.get("throughput_pps") is None:
        throughput_pps = number("throughput_l1_bps") / frame_bits
    else:
        throughput_pps = number("throughput_pps")
    reported_pps = number("reported_l1_bps") / frame_bits if row.get("reported_l1_bps") else math.nan
    if None in row:
        problems.append(Problem(f"line {line}", "has more cells than there are columns"))
    if problems:
        return None
    return Measured(
        flows=int(flows),
        frame_bytes=int(frame_bytes),
        throughput_pps=throughput_pps,
        reported_pps=reported_pps,
    )
