"""Results of other tools as trials, and trials as files that other tools read.

The keys of a file show its format. A wrong but readable value becomes a note of the trial. A value that spoils the
trial makes it invalid, with the reason. A missing or contradictory value is an error with the file and the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from routecast.errors import FileProblem, Problem
from routecast.evaluate.point_table import parse_cells, parse_points, read_cells
from routecast.evaluate.points import PointTable
from routecast.lab.benchmark.exchange._benchmark import is_benchmark, read_benchmark
from routecast.lab.benchmark.exchange._document import MAX_BYTES, Document, Node, document_of, parse_values
from routecast.lab.benchmark.exchange._dperf import is_dperf, read_dperf
from routecast.lab.benchmark.exchange._histogram_text import (
    is_hgrm,
    is_hlog,
    is_moongen_histogram,
    read_hgrm,
    read_hlog,
    read_moongen_histogram,
)
from routecast.lab.benchmark.exchange._iperf3 import is_iperf3, join_values, read_iperf3
from routecast.lab.benchmark.exchange._iperf3_text import is_iperf3_text, read_iperf3_text
from routecast.lab.benchmark.exchange._nfvbench import is_nfvbench, read_nfvbench
from routecast.lab.benchmark.exchange._record import Record
from routecast.lab.benchmark.exchange._table import (
    COLUMNS,
    csv_text,
    is_table,
    read_csv,
    read_parquet,
    with_loss_ratio,
    write_parquet,
)
from routecast.lab.benchmark.exchange._tester_csv import is_moongen_csv, is_siitperf, read_moongen_csv, read_siitperf
from routecast.lab.benchmark.exchange._trafficgen import is_trafficgen, read_trafficgen
from routecast.lab.benchmark.exchange._trex import is_trex, read_trex
from routecast.lab.benchmark.exchange._trex_stats import is_trex_stats, read_trex_stats
from routecast.lab.benchmark.exchange._uti import is_uti, read_uti, uti_documents
from routecast.lab.benchmark.exchange._validate_table import validate_text
from routecast.quantity.table_file import is_spreadsheet, read_table_text

__all__ = [
    "COLUMNS",
    "FORMATS",
    "Record",
    "csv_text",
    "read_csv",
    "read_many",
    "read_measured_table",
    "read_parquet",
    "read_records",
    "uti_documents",
    "validate_text",
    "write_parquet",
]

Reader = Callable[[Document], tuple[Record, ...]]

_JSON: Final[Mapping[str, tuple[str, Callable[[Node], bool], Reader]]] = {
    "iperf3": ("iperf3 --json or --json-stream, UDP", is_iperf3, read_iperf3),
    "uti": ("CSIT UTI, model 1.x", is_uti, read_uti),
    "nfvbench": ("NFVbench --json", is_nfvbench, read_nfvbench),
    "trafficgen": ("bench-trafficgen binary-search.json", is_trafficgen, read_trafficgen),
    "trex": ("TRex ndr -o json", is_trex, read_trex),
    "trex-stats": ("TRex get_stats() as JSON, STL and ASTF", is_trex_stats, read_trex_stats),
    "benchmark": ("benchmark.json of routecast", is_benchmark, read_benchmark),
}
_TABLES: Final = {
    "csv": "a table of trials or points: CSV, .xlsx, .ods",
    "parquet": "routecast's own table of trials, or a benchmark's trials.parquet",
}

TextReader = Callable[[str, str, float | None], tuple[Record, ...]]

_TEXTS: Final[Mapping[str, tuple[str, Callable[[str], bool], TextReader]]] = {
    "dperf": ("log of dperf", is_dperf, lambda text, name, _: read_dperf(text, name)),
    "moongen": ("MoonGen counters, CSV", is_moongen_csv, lambda text, name, _: read_moongen_csv(text, name)),
    "moongen-histogram": (
        "MoonGen histogram, CSV",
        is_moongen_histogram,
        lambda text, name, _: read_moongen_histogram(text, name),
    ),
    "siitperf": ("siitperf, CSV", is_siitperf, lambda text, name, _: read_siitperf(text, name)),
    "hgrm": ("HdrHistogram percentiles", is_hgrm, read_hgrm),
    "iperf3-text": ("iperf3's text of UDP tests", is_iperf3_text, lambda text, name, _: read_iperf3_text(text, name)),
    "hlog": ("HdrHistogram log", is_hlog, read_hlog),
}
"""Formats of text, told by their first lines; the last argument of a reader is the unit of latencies in seconds."""

FORMATS: Final[Mapping[str, str]] = {
    **{name: title for name, (title, _, _) in _JSON.items()},
    **{name: title for name, (title, _, _) in _TEXTS.items()},
    **_TABLES,
}
"""Title of each format that can be read, by the name that ``--format`` takes."""


_IPERF3_WARNINGS: Final = re.compile(r"\A(?:\s*(?:iperf3?:|warning:)[^\n]*\n)+(?=\s*\{)", re.IGNORECASE)
"""Lines before a document that standard error has left in the same file."""

MAX_FILES = 10_000
"""Most files of a folder."""


def read_many(
    paths: Sequence[Path | str],
    *,
    format_name: str = "auto",
    rename: Mapping[str, str] = MappingProxyType({}),
    latency_unit_s: float | None = None,
    on_remark: Callable[[str], None] = lambda text: None,
) -> tuple[Record, ...]:
    """Read the trials of files, and of all files in folders.

    A file of a folder that cannot be read is left out with a remark. Raises FileProblem: a named file cannot be read,
    or a folder has no result.
    """
    records: list[Record] = []
    for path in map(Path, paths):
        if not path.is_dir():
            records += read_records(path, format_name=format_name, rename=rename, latency_unit_s=latency_unit_s)
            continue
        files = sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
        if len(files) > MAX_FILES:
            message = f"holds {len(files):,} files, more than {MAX_FILES:,}: name a folder inside it"
            raise FileProblem(str(path), [Problem("", message)])
        of_folder: list[Record] = []
        for file in files:
            try:
                of_folder += read_records(file, format_name=format_name, rename=rename, latency_unit_s=latency_unit_s)
            except FileProblem as problem:
                on_remark(f"left out: {problem}")
        if not of_folder:
            raise FileProblem(str(path), [Problem("", f"holds no result that can be read, of {len(files):,} files")])
        records += of_folder
    return tuple(records)


def read_measured_table(
    path: Path | str,
    *,
    rename: Mapping[str, str] = MappingProxyType({}),
    on_remark: Callable[[str], None] = lambda text: None,
) -> PointTable:
    """Read a table of measured points, or one of trials, whose greatest rates are its points.

    Raises FileProblem: as :func:`routecast.evaluate.point_table.read_table` and :func:`validate_text`.
    """
    cells = read_cells(Path(path), rename, on_note=on_remark)
    header = [cell.strip() for cell in next((row for row in with_loss_ratio(cells) if any(row)), [])]
    if not is_table(header):
        return parse_cells(cells, name=str(path))
    text = validate_text(read_records(path, rename=rename), name=str(path), on_remark=on_remark)
    return PointTable(points=parse_points(text, name=str(path)))


def read_records(
    path: Path | str,
    *,
    format_name: str = "auto",
    rename: Mapping[str, str] = MappingProxyType({}),
    latency_unit_s: float | None = None,
) -> tuple[Record, ...]:
    """Read the trials of a file.

    ``format_name``: one of :data:`FORMATS`, or ``"auto"`` to recognise the format by its keys; ``rename``: names of
    columns for the heads of a table that are called otherwise; ``latency_unit_s``: unit of latencies, for files that do
    not say it. Raises FileProblem: the file cannot be read, has an unknown format, or lacks what a trial needs; with
    every fault and its key.
    """
    path = Path(path)
    suffix = ".xlsx" if is_spreadsheet(path) else path.suffix.lower()
    if suffix == ".parquet" and format_name == "auto":
        format_name = "parquet"
    elif suffix == ".xlsx" and format_name == "auto":
        format_name = "csv"
    if format_name == "parquet":
        return read_parquet(path)
    if format_name == "csv":
        return read_csv(path, rename=rename)
    text = read_table_text(path, kind="result of a tester", max_file_bytes=MAX_BYTES)
    if not text.strip():
        raise FileProblem(str(path), [Problem("", "is empty")])
    if format_name == "auto":
        format_name = next((name for name, (_, is_it, _) in _TEXTS.items() if is_it(text)), "auto")
    if format_name in _TEXTS:
        return _TEXTS[format_name][2](text, str(path), latency_unit_s)
    if suffix == ".csv" and format_name == "auto":
        return read_csv(path, rename=rename)
    if format_name in ("auto", "iperf3"):
        if is_iperf3_text(text):
            return read_iperf3_text(text, str(path))
        text = _IPERF3_WARNINGS.sub("", text, count=1)
    values = parse_values(text, name=str(path))
    if len(values) > 1 or (isinstance(values[0], dict) and "event" in values[0]):
        joined = join_values(values)
        if joined is None:
            message = f"has {len(values)} JSON documents that are no tests of iperf3: give each a file of its own"
            raise FileProblem(str(path), [Problem("", message)])
        values = joined
    documents = [document_of(value, name=str(path)) for value in values]
    return tuple(record for document in documents for record in _read_document(document, format_name))


def _read_document(document: Document, format_name: str) -> tuple[Record, ...]:
    if format_name == "auto":
        known = next((name for name, (_, is_it, _) in _JSON.items() if is_it(document.root)), None)
        if known is None:
            message = f"has no format that routecast knows; it reads {', '.join(FORMATS)}: name one with --format"
            raise FileProblem(document.name, [Problem("", message)])
        format_name = known
    return _JSON[format_name][2](document)
