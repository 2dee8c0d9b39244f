"""Demand matrices of SNDlib, one file for each instant, as a table of their totals.

SNDlib 1.0 (Orlowski, Pióro, Tomaszewski, Wessäly, Networks 55(3), 2010) has dynamic traffic as a folder or an archive
of files in its XML or its native format; each says in its meta section when it was measured and in which unit::

    META ( granularity = 5min   time = 20040301-0010   unit = MBITPERSEC )
    DEMANDS ( ATLAM5_ATLAng ( ATLAM5 ATLAng ) 1 0.375261 UNLIMITED … )
"""

from __future__ import annotations

import math
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.load.series.table import SeriesTable, shortened

__all__ = ["is_sndlib", "read_sndlib_totals"]

_ARCHIVES = (".tgz", ".tar.gz", ".tar")
_LARGEST_BYTES = 20_000_000
_TIME = re.compile(r"<time>\s*([^<]+?)\s*</time>|^[ \t]*time[ \t]*=[ \t]*(\S+)[ \t]*\r?$", re.MULTILINE)
_UNIT = re.compile(r"<unit>\s*([^<]+?)\s*</unit>|^[ \t]*unit[ \t]*=[ \t]*(\S+)[ \t]*\r?$", re.MULTILINE)
_DEMANDS = re.compile(r"<demands>|^[ \t]*DEMANDS[ \t]*\(|<demands\s*/>", re.MULTILINE)
_NATIVE = re.compile(
    r"^[ \t]*[^\s(]+[ \t]+\([ \t]*\S+[ \t]+\S+[ \t]*\)[ \t]+([\d.eE+-]+)[ \t]+([\d.eE+-]+)[ \t]+\S+[ \t]*\r?$",
    re.MULTILINE,
)
_XML = re.compile(r"<demand\b.*?</demand>", re.DOTALL)
_XML_VALUE = re.compile(r"<demandValue>\s*([\d.eE+-]+)\s*</demandValue>")
_XML_UNIT = re.compile(r"<routingUnit>\s*([\d.eE+-]+)\s*</routingUnit>")


def is_sndlib(path: Path) -> bool:
    """Return whether a path is a folder or an archive, which no other series is."""
    return path.is_dir() or path.name.lower().endswith(_ARCHIVES)


def read_sndlib_totals(path: Path) -> SeriesTable:
    """Return the total of every matrix in a folder or an archive, in order of their times.

    A matrix without a single demand is a recorder that did not run, not a network without traffic: its total is
    missing.

    Raises
    ------
    FileProblem
        The folder or archive cannot be read or holds no matrix; a matrix says no time, no unit or another unit than the
        others; with the name of each.
    """
    rows: list[tuple[str, str, str]] = []
    units: dict[str, str] = {}
    problems: list[Problem] = []
    try:
        for name, text in _matrices(path):
            time, unit, section = _TIME.search(text), _UNIT.search(text), _DEMANDS.search(text)
            if time is None or unit is None or section is None:
                missing = "time" if time is None else "unit" if unit is None else "demands"
                problems.append(Problem(name, f"is no demand matrix of SNDlib: it says no {missing}"))
                continue
            units.setdefault(unit[1] or unit[2], name)
            try:
                demands = list(_demands(text[section.start() :]))
            except ValueError as problem:
                problems.append(Problem(name, f"a demand is no number: {problem}"))
                continue
            rows.append((time[1] or time[2], repr(math.fsum(demands)) if demands else "", name))
    except (OSError, UnicodeDecodeError, tarfile.TarError, EOFError) as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be read: {problem}")]) from problem
    if len(units) > 1:
        problems += [
            Problem(name, f"is in {unit}: all matrices must be in one unit") for unit, name in units.items()
        ]
    if problems or not rows:
        raise FileProblem(
            str(path),
            shortened(problems) or [Problem("", "holds no demand matrix: those are *.xml or *.txt")],
        )
    rows.sort()
    return SeriesTable(
        path=str(path),
        names=("time", f"total_{next(iter(units))}"),
        rows=tuple((time, total) for time, total, _ in rows),
        places=tuple(name for _, _, name in rows),
    )


def _demands(text: str) -> Iterator[float]:
    for routing_unit, value in _NATIVE.findall(text):
        yield float(routing_unit) * float(value)
    for demand in _XML.findall(text):
        value = _XML_VALUE.search(demand)
        if value is None:
            raise ValueError(demand[:60])
        routing_unit = _XML_UNIT.search(demand)
        yield (float(routing_unit[1]) if routing_unit else 1.0) * float(value[1])


def _matrices(path: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of every file that may be a matrix."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.suffix.lower() in {".xml", ".txt"} and file.stat().st_size <= _LARGEST_BYTES:
                yield file.name, file.read_text(encoding="utf-8")
        return
    with tarfile.open(path) as archive:
        for member in archive:
            name = Path(member.name).name
            if not member.isfile() or Path(name).suffix.lower() not in {".xml", ".txt"}:
                continue
            content = archive.extractfile(member) if member.size <= _LARGEST_BYTES else None
            if content is not None:
                yield name, content.read().decode("utf-8")
