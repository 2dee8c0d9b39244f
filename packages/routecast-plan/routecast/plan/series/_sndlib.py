"""Totals of demand matrices of SNDlib.

SNDlib 1.0 (Orlowski, Pióro, Tomaszewski, Wessäly, Networks 55(3), 2010) stores dynamic traffic as a folder or an
archive of demand matrices, one for each instant, in its XML or its native format. The meta section of each file gives
the time of the measurement and the unit::

    META ( granularity = 5min   time = 20040301-0010   unit = MBITPERSEC )
    DEMANDS ( ATLAM5_ATLAng ( ATLAM5 ATLAng ) 1 0.375261 UNLIMITED … )

``#`` begins a comment of the native format. XML with document types or entities is refused; no file of SNDlib has them.
The series is the total of each matrix.
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
from routecast.load.series import SeriesTable, shortened
from routecast.quantity.bounded_file import open_file, read_bytes

_ARCHIVES = (".tgz", ".tar.gz", ".tar")
_MATRIX_SUFFIXES = frozenset({".xml", ".txt"})
_MAX_MATRIX_BYTES = 20_000_000
"""Largest demand matrix; those of GÉANT have 80 kB."""
_MAX_ARCHIVE_BYTES, _MAX_UNPACKED_BYTES = 1_000_000_000, 4_000_000_000
_MAX_UNPACKED_RATIO = 100
"""Largest ratio of unpacked to packed bytes; matrices have 10 to 20, a decompression bomb has up to 1000."""
_MAX_FILES = 200_000
"""Most files of a folder; half a year of Abilene in steps of five minutes has 48,096."""

_NUMBER = re.compile(r"[\d.eE+-]+")
_COMMENT = re.compile(r"#.*")
_META = r"^[ \t]*{}[ \t]*=[ \t]*(\S+)[ \t]*\r?$"
_TIME = re.compile(_META.format("time"), re.MULTILINE)
_UNIT = re.compile(_META.format("unit"), re.MULTILINE)
_DEMANDS = re.compile(r"^[ \t]*DEMANDS\s*\(", re.MULTILINE)
_DEMAND = re.compile(r"\s*[^\s()]+\s*\(\s*[^\s()]+\s+[^\s()]+\s*\)\s*([^\s()]+)\s+([^\s()]+)\s+[^\s()]+(?=[\s)])")
_SECTION_END = re.compile(r"\s*\)")


def is_sndlib(path: Path) -> bool:
    """Return whether a path is a folder or an archive, which only series of SNDlib are."""
    return path.is_dir() or path.name.lower().endswith(_ARCHIVES)


def read_sndlib_totals(path: Path) -> SeriesTable:
    """Return the total of every matrix in a folder or an archive, in order of time.

    A matrix without demands means that the recorder did not run, not that there was no traffic, so its total is
    missing.

    Raises FileProblem: the folder or archive cannot be read, is too large, or has no matrix; or a matrix cannot be
    read, lacks a time or a unit, or has another unit than the others.
    """
    rows: list[tuple[str, str, str]] = []
    units: dict[str, str] = {}
    problems: list[Problem] = []
    matrices = _folder_matrices(path, problems) if path.is_dir() else _archive_matrices(path, problems)
    for name, content in matrices:
        try:
            time, unit, demands = _parse_xml(content) if content.lstrip()[:1] == b"<" else _parse_native(content)
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
            str(path),
            shortened(problems)
            or [Problem("", "has no demand matrix: name a folder or archive of *.xml or *.txt files")],
        )
    rows.sort()
    return SeriesTable(
        path=str(path),
        names=("time", f"total_{next(iter(units))}"),
        rows=tuple((time, total) for time, total, _ in rows),
        places=tuple(name for _, _, name in rows),
    )


def _parse_native(content: bytes) -> tuple[str, str, list[float]]:
    text = _COMMENT.sub("", content.decode("utf-8").removeprefix("\ufeff"))
    time, unit, section = _TIME.search(text), _UNIT.search(text), _DEMANDS.search(text)
    if time is None or unit is None or section is None:
        raise _missing_entry("time" if time is None else "unit" if unit is None else "demands")
    demands, at = [], section.end()
    while (demand := _DEMAND.match(text, at)) is not None:
        demands.append(_demand_value(demand[1]) * _demand_value(demand[2]))
        at = demand.end()
    if not _SECTION_END.match(text, at):
        rest = text[at : at + 200].split()[:7]
        raise ValueError(f'got "{" ".join(rest)[:80]}" among the demands: give ID ( FROM TO ) UNIT VALUE PATH')
    return time[1], unit[1], demands


def _parse_xml(content: bytes) -> tuple[str, str, list[float]]:
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        root = fromstring(content.lstrip(), forbid_dtd=True)
    except DefusedXmlException as problem:
        raise ValueError("has a document type or entities, which no file of SNDlib has: leave them out") from problem
    except (ParseError, LookupError) as problem:  # or the declared encoding does not exist
        raise ValueError(f"is no XML: {problem}") from problem
    namespace = root.tag[: root.tag.find("}") + 1]  # elements of other namespaces are not SNDlib's
    time, unit = (root.findtext(f"{namespace}meta/{namespace}{name}", "").strip() for name in ("time", "unit"))
    sections = list(root.iter(f"{namespace}demands"))
    if not time or not unit or not sections:
        raise _missing_entry("time" if not time else "unit" if not unit else "demands")
    demands = [
        _demand_value(demand.findtext(f"{namespace}routingUnit", "1"))
        * _demand_value(demand.findtext(f"{namespace}demandValue", "nothing"))
        for section in sections
        for demand in section.iter(f"{namespace}demand")
    ]
    return time, unit, demands


def _missing_entry(entry: str) -> ValueError:
    return ValueError(f"is no demand matrix of SNDlib: it gives no {entry}")


def _demand_value(text: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text.strip()) else math.nan
    if not 0.0 <= value < math.inf:
        raise ValueError(f'a demand is no number: got "{text.strip()[:40]}", give a finite number that is not negative')
    return value


def _folder_matrices(path: Path, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file in a folder that may be a matrix."""
    paths = list(islice(path.rglob("*"), _MAX_FILES + 1))
    if len(paths) > _MAX_FILES:
        raise FileProblem(str(path), [Problem("", f"holds more than {_MAX_FILES:,} files: name one with matrices")])
    for file in sorted(paths):
        if file.suffix.lower() in _MATRIX_SUFFIXES:
            try:
                yield file.name, read_bytes(file, kind="demand matrix", max_file_bytes=_MAX_MATRIX_BYTES)
            except FileProblem as problem:
                problems += [Problem(file.name, fault.message) for fault in problem.problems]


def _archive_matrices(path: Path, problems: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of every file in an archive that may be a matrix."""
    kind = "archive of demand matrices"
    try:
        with open_file(path, kind=kind, max_file_bytes=_MAX_ARCHIVE_BYTES) as file:
            is_packed = file.read(2) == b"\x1f\x8b"
            size_bytes = file.seek(0, io.SEEK_END)
            file.seek(0)
            packed = gzip.GzipFile(fileobj=file, mode="rb") if is_packed else file
            max_bytes = min(_MAX_MATRIX_BYTES + _MAX_UNPACKED_RATIO * size_bytes, _MAX_UNPACKED_BYTES)
            with tarfile.open(fileobj=_LimitedStream(packed, max_bytes, path), mode="r|") as archive:
                for member in archive:
                    name = Path(member.name).name
                    if not member.isfile() or Path(name).suffix.lower() not in _MATRIX_SUFFIXES:
                        continue
                    if member.size > _MAX_MATRIX_BYTES:
                        message = f"has {member.size:,} bytes: a demand matrix has at most {_MAX_MATRIX_BYTES:,}"
                        problems.append(Problem(name, message))
                        return
                    content = archive.extractfile(member)
                    if content is not None:
                        yield name, content.read()
    except (OSError, tarfile.TarError, EOFError, zlib.error) as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be read: {problem}")]) from problem


class _LimitedStream(io.RawIOBase):
    """A stream of limited length."""

    def __init__(self, stream: gzip.GzipFile | io.FileIO, max_bytes: int, path: Path) -> None:
        self._stream, self._max_bytes, self._remaining_bytes, self._path = stream, max_bytes, max_bytes, path

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(size) or b""
        self._remaining_bytes -= len(chunk)
        if self._remaining_bytes < 0:
            message = f"unpacks to more than {self._max_bytes:,} bytes: unpack it and name the folder of matrices"
            raise FileProblem(str(self._path), [Problem("", message)])
        return chunk
