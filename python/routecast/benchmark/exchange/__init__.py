"""Results of other tools as Trials, and Trials as files that other tools read.

Formats are told by their keys. What a file says wrongly but readably becomes a note of the trial; what makes a trial no
result makes it invalid, with its reason; what is missing or contradictory is an error with the file and the key.

Which format a file has, and its trials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from routecast.benchmark.exchange.benchmark import is_benchmark, read_benchmark
from routecast.benchmark.exchange.document import Document, Node, parse_document, read_result
from routecast.benchmark.exchange.iperf3 import is_iperf3, join_stream, read_iperf3
from routecast.benchmark.exchange.nfvbench import is_nfvbench, read_nfvbench
from routecast.benchmark.exchange.record import Record
from routecast.benchmark.exchange.table import csv_text, read_csv, read_parquet, write_parquet
from routecast.benchmark.exchange.trafficgen import is_trafficgen, read_trafficgen
from routecast.benchmark.exchange.trex import is_trex, read_trex
from routecast.benchmark.exchange.uti import is_uti, read_uti, uti_documents
from routecast.benchmark.exchange.validate_table import validate_text
from routecast.errors import FileProblem, Problem

__all__ = ["FORMATS", "Record", "csv_text", "read_records", "uti_documents", "validate_text", "write_parquet"]

Reader = Callable[[Document], tuple[Record, ...]]

_JSON: Final[Mapping[str, tuple[str, Callable[[Node], bool], Reader]]] = {
    "iperf3": ("iperf3 --json or --json-stream, UDP", is_iperf3, read_iperf3),
    "uti": ("CSIT UTI, model 1.x", is_uti, read_uti),
    "nfvbench": ("NFVbench --json", is_nfvbench, read_nfvbench),
    "trafficgen": ("bench-trafficgen binary-search.json", is_trafficgen, read_trafficgen),
    "trex": ("TRex ndr -o json", is_trex, read_trex),
    "benchmark": ("benchmark.json of routecast", is_benchmark, read_benchmark),
}
_TABLES: Final = {
    "csv": ("routecast's own table of trials", read_csv),
    "parquet": ("routecast's own table of trials, or a benchmark's trials.parquet", read_parquet),
}

FORMATS: Final[Mapping[str, str]] = {name: says for name, (says, _, _) in _JSON.items()} | {
    name: says for name, (says, _) in _TABLES.items()
}
"""What can be read, by the name that ``--format`` takes."""


def read_records(path: Path | str, *, format_name: str = "auto") -> tuple[Record, ...]:
    """Read the trials of a file.

    ``format_name``: one of :data:`FORMATS`, or ``"auto"``, which tells formats by their keys. Raises FileProblem: the
    file cannot be read, has no format that is known, or lacks what a trial needs; with every fault and its key.
    """
    path = Path(path)
    if format_name == "auto" and path.suffix.lower() in (".csv", ".parquet"):
        format_name = path.suffix.lower()[1:]
    if format_name in _TABLES:
        return _TABLES[format_name][1](path)
    text = read_result(path)
    if not text.strip():
        raise FileProblem(str(path), [Problem("", "is empty")])
    document = parse_document(join_stream(text) or text, name=str(path))
    if format_name == "auto":
        known = next((name for name, (_, is_it, _) in _JSON.items() if is_it(document.root)), None)
        if known is None:
            message = f"has no format that routecast knows; it reads {', '.join(FORMATS)}: name one with --format"
            raise FileProblem(str(path), [Problem("", message)])
        format_name = known
    return _JSON[format_name][2](document)
