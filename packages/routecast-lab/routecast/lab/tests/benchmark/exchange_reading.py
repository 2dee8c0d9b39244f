"""How the tests of the exchange read a document, and a sample of every format."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import exchange_samples as samples

from routecast.errors import FileProblem
from routecast.lab.benchmark.exchange import Record, read_records

Json = dict[str, Any]


def read(document: Json | str, folder: Path, **options: str) -> tuple[Record, ...]:
    path = folder / "result.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return read_records(path, **options)


def faults(document: Json | str, folder: Path) -> str:
    with pytest.raises(FileProblem) as caught:
        read(document, folder)
    return str(caught.value)


def same(records: Sequence[Record]) -> list[Json]:
    """Records as plain data, in which NaN equals NaN."""
    return [record.to_json() for record in records]


SAMPLES: dict[str, Callable[[], Json]] = {
    "trex": samples.trex,
    "nfvbench": samples.nfvbench,
    "trafficgen": samples.trafficgen,
    "uti": samples.uti_ndrpdr,
    "iperf3": samples.iperf3,
}
