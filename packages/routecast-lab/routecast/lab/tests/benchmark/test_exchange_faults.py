"""A file of another tool that is no result says why."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from exchange_reading import SAMPLES, faults, read, same

from routecast.errors import FileProblem


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_is_reported_by_its_keys(name: str, tmp_path: Path) -> None:
    assert same(read(SAMPLES[name](), tmp_path)) == same(read(SAMPLES[name](), tmp_path, format_name=name))


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_file_that_is_cut_off_is_an_error_with_its_place(name: str, share: float, tmp_path: Path) -> None:
    text = json.dumps(SAMPLES[name](), indent=1)
    message = faults(text[: int(len(text) * share)], tmp_path)
    assert "line " in message
    assert "result.json" in message


@pytest.mark.parametrize(
    ("name", "path", "value", "place"),
    [
        ("trex", "results.tx_pps", "fast", "results.tx_pps"),
        ("trex", "results.drop_rate_percentage", float("nan"), "results.drop_rate_percentage"),
        ("trafficgen", "trials.0.stats.0.tx_packets", -5, "trials[0].stats.0.tx_packets"),
        ("uti", "result.ndr.lower.rate.value", None, "result.ndr.lower.rate.value"),
        ("uti", "result.pdr.upper.rate.unit", "cps", "result.pdr.upper.rate.unit"),
        ("uti", "version", "9.0.0", "version"),
        ("iperf3", "end.sum.lost_packets", "none", "end.sum.lost_packets"),
        ("iperf3", "start.test_start.blksize", 0, "start.test_start.blksize"),
        ("iperf3", "end.sum_sent.packets", 10**30, "end.sum_sent.packets"),
    ],
)
def test_a_wrong_value_is_an_error_with_its_key(
    name: str, path: str, value: object, place: str, tmp_path: Path
) -> None:
    document = SAMPLES[name]()
    *way, last = path.split(".")
    node: Any = document
    for key in way:
        node = node[int(key)] if isinstance(node, list) else node[key]
    node[last] = value
    assert place in faults(document, tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "   ", "[]", "{}", "3", "null", '{"trials": 4, "log": []}', "[" * 100_000, "9" * 5000, "[" * 990 + "]" * 990],
)
def test_what_is_no_result_is_refused(text: str, tmp_path: Path) -> None:
    assert "result.json" in faults(text, tmp_path)


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.slow
def test_a_file_that_lacks_any_one_key_is_read_or_refused_but_never_a_defect(name: str, tmp_path: Path) -> None:
    def keys(node: object, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
        if isinstance(node, dict):
            return [(*way, key) for key in node] + [k for key in node for k in keys(node[key], (*way, key))]
        if isinstance(node, list):
            return [k for number, entry in enumerate(node) for k in keys(entry, (*way, number))]
        return []

    for way in keys(SAMPLES[name]()):
        wrong: tuple[object, ...] = (None, "x", -1, 10**30, 1e300, [], {})
        for value in wrong:
            document: Any = SAMPLES[name]()
            node = document
            for key in way[:-1]:
                node = node[key]
            node[way[-1]] = value
            try:
                records = read(document, tmp_path, format_name=name)
            except FileProblem:
                continue
            for record in records:
                assert record.to_json()
                assert not record.trial.offered_pps < 0.0
