"""Demand matrices of SNDlib, one file for each instant, as a table of their totals.

SNDlib 1.0 (Orlowski, Pióro, Tomaszewski, Wessäly, Networks 55(3), 2010) has dynamic traffic as a folder or an archive
of files in its XML or its native format; each says in its meta section when it was measured and in which unit::

    META ( granularity = 5min   time = 20040301-0010   unit = MBITPERSEC )
    DEMANDS ( ATLAM5_ATLAng ( ATLAM5 ATLAng ) 1 0.375261 UNLIMITED … )

``#`` begins a comment of the native format. XML is read without document types and
entities, which no file of SNDlib has.
"""

from __future__ import annotations

import gzip
import io
import math
import re
import tarfile
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.load.series.table import SeriesTable, shortened
from routecast.quantity.bounded_file import open_file, read_bytes

__all__ = ["is_sndlib", "read_sndlib_totals"]

_ARCHIVES = (".tgz", ".tar.gz", ".tar")
_ENDINGS = frozenset({".xml", ".txt"})
_LARGEST_BYTES = 20_000_000
"""Of one matrix; GEANT's have 80 kB."""
_LARGEST_ARCHIVE_BYTES, _MOST_UNPACKED_BYTES = 1_000_000_000, 4_000_000_000
_MOST_UNPACKED_RATIO = 100
"""Matrices shrink to a tenth or a twentieth, and a bomb to a thousandth; deflate can no more."""
_MOST_FILES = 200_000
"""Abilene's half a year in steps of five minutes has 48,096."""

_NUMBER = re.compile(r"[\d.eE+-]+")
_COMMENT = re.compile(r"#.*")
_META = r"^[ \t]*{}[ \t]*=[ \t]*(\S+)[ \t]*\r?$"
_TIME = re.compile(_META.format("time"), re.MULTILINE)
_UNIT = re.compile(_META.format("unit"), re.MULTILINE)
_DEMANDS = re.compile(r"^[ \t]*DEMANDS\s*\(", re.MULTILINE)
_DEMAND = re.compile(r"\s*[^\s()]+\s*\(\s*[^\s()]+\s+[^\s()]+\s*\)\s*([^\s()]+)\s+([^\s()]+)\s+[^\s()]+(?=[\s)])")
_END = re.compile(r"\s*\)")


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
        The folder or archive cannot be read, is beyond all bounds, or holds no matrix; a matrix cannot be read, says no
        time, no unit or another unit than the others; with the name of each.
    """
    rows: list[tuple[str, str, str]] = []
    units: dict[str, str] = {}
    problems: list[Problem] = []
    matrices = _of_folder(path, problems) if path.is_dir() else _of_archive(path, problems)
    for name, content in matrices:
        try:
            time, unit, demands = _xml(content) if content.lstrip()[:1] == b"<" else _native(content)
            total = math.fsum(demands)
        except (ValueError, OverflowError) as problem:
            problems.append(Problem(name, str(problem)))
            continue
        units.setdefault(unit, name)
        rows.append((time, repr(total) if demands else "", name))
    if len(units) > 1:
        problems += [Problem(name, f"is in {unit}: all matrices must be in one unit") for unit, name in units.items()]
    if problems or not rows:
        raise FileProblem(
            str(path), shortened(problems) or [Problem("", "holds no demand matrix: those are *.xml or *.txt")]
        )
    rows.sort()
    return SeriesTable(
        path=str(path),
        names=("time", f"total_{next(iter(units))}"),
        rows=tuple((time, total) for time, total, _ in rows),
        places=tuple(name for _, _, name in rows),
    )


def _native(content: bytes) -> tuple[str, str, list[float]]:
    text = _COMMENT.sub("", content.decode("utf-8").removeprefix("\ufeff"))
    time, unit, section = _TIME.search(text), _UNIT.search(text), _DEMANDS.search(text)
    if time is None or unit is None or section is None:
        raise _lacks("time" if time is None else "unit" if unit is None else "demands")
    demands, at = [], section.end()
    while (demand := _DEMAND.match(text, at)) is not None:
        demands.append(_value(demand[1]) * _value(demand[2]))
        at = demand.end()
    if not _END.match(text, at):
        rest = text[at : at + 200].split()[:7]
        raise ValueError(f'got "{" ".join(rest)[:80]}" among the demands: ID ( FROM TO ) UNIT VALUE PATH is wanted')
    return time[1], unit[1], demands


def _xml(content: bytes) -> tuple[str, str, list[float]]:
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        root = fromstring(content.lstrip(), forbid_dtd=True)
    except DefusedXmlException as problem:
        raise ValueError("has a document type or entities, which no file of SNDlib has: leave them out") from problem
    except (ParseError, LookupError) as problem:  # or it says an encoding that there is none of
        raise ValueError(f"is no XML: {problem}") from problem
    space = root.tag[: root.tag.find("}") + 1]  # what stands in another one is not SNDlib's
    time, unit = (root.findtext(f"{space}meta/{space}{name}", "").strip() for name in ("time", "unit"))
    sections = list(root.iter(f"{space}demands"))
    if not time or not unit or not sections:
        raise _lacks("time" if not time else "unit" if not unit else "demands")
    demands = [
        _value(demand.findtext(f"{space}routingUnit", "1")) * _value(demand.findtext(f"{space}demandValue", "nothing"))
        for section in sections
        for demand in section.iter(f"{space}demand")
    ]
    return time, unit, demands


def _lacks(what: str) -> ValueError:
    return ValueError(f"is no demand matrix of SNDlib: it says no {what}")


def _value(text: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text.strip()) else math.nan
    if not 0.0 <= value < math.inf:
        raise ValueError(f'a demand is no number: got "{text.strip()[:40]}", not negative and finite is wanted')
    return value


def _of_folder(path: Path, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file that may be a matrix."""
    found = list(islice(path.rglob("*"), _MOST_FILES + 1))
    if len(found) > _MOST_FILES:
        raise FileProblem(str(path), [Problem("", f"holds more than {_MOST_FILES:,} files: name one with matrices")])
    for file in sorted(found):
        if file.suffix.lower() in _ENDINGS:
            try:
                yield file.name, read_bytes(file, kind="demand matrix", largest_bytes=_LARGEST_BYTES)
            except FileProblem as problem:
                problems += [Problem(file.name, one.message) for one in problem.problems]


def _of_archive(path: Path, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file that may be a matrix, unpacked one after the other, never whole."""
    kind = "archive of demand matrices"
    try:
        with open_file(path, kind=kind, largest_bytes=_LARGEST_ARCHIVE_BYTES) as file:
            is_packed = file.read(2) == b"\x1f\x8b"
            size_bytes = file.seek(0, io.SEEK_END)
            file.seek(0)
            packed = gzip.GzipFile(fileobj=file, mode="rb") if is_packed else file
            most_bytes = min(_LARGEST_BYTES + _MOST_UNPACKED_RATIO * size_bytes, _MOST_UNPACKED_BYTES)
            with tarfile.open(fileobj=_AtMost(packed, most_bytes, path), mode="r|") as archive:
                for member in archive:
                    name = Path(member.name).name
                    if not member.isfile() or Path(name).suffix.lower() not in _ENDINGS:
                        continue
                    if member.size > _LARGEST_BYTES:
                        message = f"has {member.size:,} bytes: a demand matrix has at most {_LARGEST_BYTES:,}"
                        problems.append(Problem(name, message))
                        return
                    content = archive.extractfile(member)
                    if content is not None:
                        yield name, content.read()
    except (OSError, tarfile.TarError, EOFError, zlib.error) as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be read: {problem}")]) from problem


class _AtMost(io.RawIOBase):
    """A stream that refuses to go on for ever."""

    def __init__(self, stream: gzip.GzipFile | io.FileIO, most_bytes: int, path: Path) -> None:
        self._stream, self._most_bytes, self._left_bytes, self._path = stream, most_bytes, most_bytes, path

    def read(self, size: int = -1) -> bytes:
        found = self._stream.read(size) or b""
        self._left_bytes -= len(found)
        if self._left_bytes < 0:
            message = f"unpacks to more than {self._most_bytes:,} bytes: unpack it and name the folder of matrices"
            raise FileProblem(str(self._path), [Problem("", message)])
        return found
