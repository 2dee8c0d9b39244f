"""The CSV files of a study of activation: idle curves, and maxima against the clock."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["read_idle", "read_samples"]

Pairs = tuple[tuple[float, float], ...]


def read_idle(path: Path, series: str = "") -> Pairs:
    """Read (offered frames per second, idle share 0..1) of a series, in the order of the file.

    Lines that begin with ``#`` are comments. A file without a column ``series`` holds one.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, has no such series, or a cell is no number; every wrong line is named.
    """
    rows = _rows(path, ("offered_pps", "idle_ratio"))
    if series:
        known = sorted({row.get("series") or "" for _, row in rows})
        if series not in known:
            message = f"has no series {series!r}; {did_you_mean(series, known)}"
            raise FileProblem(str(path), [Problem("series", message)])
        rows = [(line, row) for line, row in rows if row.get("series") == series]
    return _numbers(path, rows, "offered_pps", "idle_ratio")


def read_samples(path: Path) -> Pairs:
    """Read (clock in Hz, maximum rate in frames per second).

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`read_idle`.
    """
    return _numbers(path, _rows(path, ("frequency_hz", "rate_pps")), "frequency_hz", "rate_pps")


def _rows(path: Path, wanted: Sequence[str]) -> list[tuple[int, dict[str, str | None]]]:
    text = read_text(path, kind="table")
    numbered = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.startswith("#")
    ]
    reader = csv.DictReader((line for _, line in numbered), skipinitialspace=True)
    columns = list(reader.fieldnames or ())
    missing = [
        Problem("columns", f"there is no {name!r}; {did_you_mean(name, columns)}")
        for name in wanted
        if name not in columns
    ]
    if missing:
        raise FileProblem(str(path), missing)
    return [(line, row) for (line, _), row in zip(numbered[1:], reader, strict=True)]


def _numbers(path: Path, rows: list[tuple[int, dict[str, str | None]]], first: str, second: str) -> Pairs:
    found, wrong = [], []
    for line, row in rows:
        pair = []
        for name in (first, second):
            value = _number(row.get(name))
            if math.isnan(value):
                wrong.append(Problem(f"line {line}", f"{name}: got {row.get(name)!r}, which is no number"))
            pair.append(value)
        found.append((pair[0], pair[1]))
    if not found:
        wrong.append(Problem("", "has no rows: write one for each measurement"))
    if wrong:
        raise FileProblem(str(path), wrong)
    return tuple(found)


def _number(text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
