"""Tables of router power from files: those that ship, ``*.nocpower.toml`` and CSV of people's own."""

from __future__ import annotations

import csv
import io
import math
from importlib.resources import files
from pathlib import Path

from pydantic import Field

from routecast.errors import FileProblem, ModelProblem, Problem, RoutecastError
from routecast.noc.power.router_table import RouterPoint, RouterTable
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Count, FileModel, Frequency, Power, Voltage
from routecast.quantity.toml_file import parse_toml, validated

__all__ = [
    "ROUTER_TABLES",
    "RouterTableFile",
    "parse_router_table",
    "read_router_table",
    "router_table",
]

ROUTER_TABLES = ("intel-48-core", "intel-80-core")
"""Names of the tables that ship. Neither states all that eq. 7.14 needs; ``RouterTable.missing`` says what is not."""

_SUFFIX = ".nocpower.toml"
_COLUMNS = ("frequency_hz", "voltage_v", "idle_w", "full_w", "static_w")


class _PointTable(FileModel):
    frequency: Frequency = Field(description='the clock, such as "2 GHz"')
    voltage: Voltage | None = Field(
        default=None, description='the least supply voltage at that clock, such as "1.1 V"'
    )
    idle: Power | None = Field(default=None, description="power of a router at no load")
    full: Power | None = Field(default=None, description="power of a router at one flit per port and cycle")
    static: Power | None = Field(default=None, description="the part of both that is there without a clock")
    source: str = Field(default="", description="where the figures are from")


class RouterTableFile(FileModel):
    """A ``*.nocpower.toml`` file."""

    name: str = Field(description="what the table is called in messages and reports")
    source: list[str] = Field(default=[], description="where the figures are from")
    notes: list[str] = Field(default=[], description="how the figures were read")
    ports: Count = Field(default=5, ge=1, description="ports of a router, the local one included")
    point: list[_PointTable] = Field(
        min_length=1, description="voltage and power by clock, the slowest first"
    )


def router_table(name: str | Path) -> RouterTable:
    """Return the table of a name that ships, or of a file ``*.nocpower.toml`` or ``*.csv``.

    Raises
    ------
    RoutecastError
        Neither a known name nor a file, or a file that is wrong.

    Examples
    --------
    >>> table = router_table("intel-48-core")
    >>> table.full_w(2e9), table.missing
    (0.55, ('idle power',))
    """
    if str(name) in ROUTER_TABLES:
        file = f"{name}{_SUFFIX}"
        text = (files("routecast") / "data" / "noc" / file).read_text(encoding="utf-8")
        return parse_router_table(text, file)
    path = Path(name)
    if path.suffix not in {".toml", ".csv"} and not path.exists():
        msg = (
            f'router table "{name}" is not known: {did_you_mean(str(name), ROUTER_TABLES)}; or name a file *{_SUFFIX} '
            "or *.csv"
        )
        raise RoutecastError(msg)
    return read_router_table(path)


def read_router_table(path: Path) -> RouterTable:
    """Return the table of a file; CSV has the columns frequency_hz, voltage_v, idle_w, full_w and static_w.

    Of these only frequency_hz must be there; an empty cell is what is not known.

    Raises
    ------
    routecast.errors.FileProblem
        With every fault of the file.
    """
    text = read_text(path, kind="table of router power")
    if path.suffix == ".csv":
        return _parse_csv(text, path)
    return parse_router_table(text, str(path))


def parse_router_table(text: str, subject: str) -> RouterTable:
    """Return the table that a TOML text states; ``subject`` is what messages call it.

    Raises
    ------
    routecast.errors.FileProblem
        With every fault of the text.
    """
    document = validated(RouterTableFile, parse_toml(text, subject), subject)
    points = tuple(
        RouterPoint(
            frequency_hz=one.frequency,
            voltage_v=one.voltage,
            idle_w=one.idle,
            full_w=one.full,
            static_w=one.static,
            source=one.source,
        )
        for one in document.point
    )
    try:
        return RouterTable(
            name=document.name,
            points=points,
            ports=document.ports,
            source=tuple(document.source),
            notes=tuple(document.notes),
        )
    except ModelProblem as problem:
        raise FileProblem(subject, problem.problems) from problem


def _parse_csv(text: str, path: Path) -> RouterTable:
    rows = [
        row
        for row in csv.reader(io.StringIO(text.removeprefix("\ufeff")))
        if any(cell.strip() for cell in row)
    ]
    header = [cell.strip() for cell in rows[0]] if rows else []
    problems = [
        Problem(f"column {name}", f"is not known: {did_you_mean(name, _COLUMNS)}")
        for name in header
        if name not in _COLUMNS
    ]
    if "frequency_hz" not in header:
        problems.append(Problem("row 0", "has no column frequency_hz: a row is what is known of one clock"))
    points = []
    for i, row in enumerate(rows[1:], start=1):
        if len(row) != len(header):
            problems.append(Problem(f"row {i}", f"has {len(row)} cells and the header {len(header)}"))
            continue
        values: dict[str, float] = {}
        for column, cell in zip(header, row, strict=True):
            value = _number(cell)
            if value is not None:
                values[column] = value
            elif cell.strip() or column == "frequency_hz":
                what = f'got "{cell.strip()}": a number that is not negative is wanted, or nothing if it is not known'
                problems.append(Problem(f"row {i}, column {column}", what))
        if not problems:
            points.append(
                RouterPoint(
                    frequency_hz=values["frequency_hz"],
                    voltage_v=values.get("voltage_v"),
                    idle_w=values.get("idle_w"),
                    full_w=values.get("full_w"),
                    static_w=values.get("static_w"),
                )
            )
    if problems:
        raise FileProblem(str(path), problems)
    try:
        return RouterTable(name=path.stem, points=tuple(points))
    except ModelProblem as problem:
        raise FileProblem(str(path), problem.problems) from problem


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
