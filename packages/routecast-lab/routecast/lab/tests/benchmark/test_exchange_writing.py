"""Trials are written in the forms of other tools, and read again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import exchange_samples as samples
from exchange_reading import SAMPLES, Json, read, same

from routecast.errors import FileProblem
from routecast.evaluate.point_table import read_points
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark.exchange import Record, csv_text, read_records, uti_documents, validate_text, write_parquet
from routecast.lab.benchmark.exchange._record import measured
from routecast.lab.benchmark.procedures.throughput import GREATEST
from routecast.lab.benchmark.tables import records_table


def all_records(folder: Path) -> list[Record]:
    return [record for make in (*SAMPLES.values(), samples.uti_mrr) for record in read(make(), folder)]


def test_csv_and_parquet_give_back_what_was_written(tmp_path: Path) -> None:
    records = all_records(tmp_path)
    (tmp_path / "trials.csv").write_text(csv_text(records), encoding="utf-8")
    write_parquet(records, tmp_path / "trials.parquet")
    assert same(read_records(tmp_path / "trials.csv")) == same(records)
    assert same(read_records(tmp_path / "trials.parquet")) == same(records)


def test_a_table_with_a_wrong_cell_is_an_error_with_its_row_and_column(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_text("offered_pps,forwarded_pps,loss_ratio\n1e6,1e6,0\n2e6,much,0.5\n3e6,3e6\n", encoding="utf-8")
    with pytest.raises(FileProblem, match=r"row 3, column forwarded_pps(.|\n)*row 4") as caught:
        read_records(path)
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("make", [samples.uti_ndrpdr, samples.uti_mrr])
def test_uti_is_written_as_it_was_read(make: Callable[[], Json], tmp_path: Path) -> None:
    (document,) = uti_documents(read(make(), tmp_path)).values()
    assert document == make()


def test_everything_is_written_as_uti_that_its_schema_allows(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="PyPI jsonschema is not installed")
    schema = json.loads((files("routecast") / "data/schemas/csit-uti-1.5.1.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    documents = uti_documents(all_records(tmp_path))
    assert len(documents) == 6  # UTI's two tests have one name, TRex, NFVbench, 2 of trafficgen, iperf3
    for document in documents.values():
        jsonschema.validate(document, schema)


def test_a_table_for_validate_is_read_by_it(tmp_path: Path) -> None:
    sizes: list[Record] = []
    for size, rate_pps in ((64, 9e6), (512, 8e6), (1518, 3e6)):
        document = samples.uti_mrr()
        document["test_name_long"] = f"10ge2p1x710-{size}b-2t1c-ethip4"
        document["result"]["receive_rate"]["rate"]["values"] = [rate_pps, 0.9 * rate_pps]
        sizes += read(document, tmp_path)
    path = tmp_path / "points.csv"
    path.write_text(validate_text(sizes, goal="mrr", link_bps=100e9), encoding="utf-8")
    points = read_points(path)
    assert [(p.frame_bytes, p.throughput_pps, p.calibrate) for p in points] == [
        (64.0, 9e6, True),
        (512.0, 8e6, False),
        (1518.0, 3e6, True),
    ]


def test_a_table_for_validate_asks_for_what_the_file_does_not_say(tmp_path: Path) -> None:
    records = read(samples.trex(), tmp_path)
    with pytest.raises(FileProblem, match="--cores"):
        validate_text(records)
    assert validate_text(records, cores=2).splitlines()[1].startswith("2,64.0,999500.0")


def benchmark_row(stream: str, size: int, loss_ratio: float, lower_pps: float) -> Json:
    """A row of ``benchmark.json``'s throughput, as far as the exchange reads it."""
    return {
        "stream": stream,
        "frame_bytes": size,
        "goal": "no loss" if loss_ratio == 0.0 else f"PDR {loss_ratio:.1%}",
        "loss_ratio": loss_ratio,
        "throughput_pps": lower_pps,
        "per_port_pps": lower_pps,
        "conditional_pps": lower_pps * (1.0 - loss_ratio),
        "lower_pps": lower_pps,
        "upper_pps": 1.01 * lower_pps,
        "final_trial_s": 0.5,
    }


def test_our_own_benchmarks_become_uti_and_points(tmp_path: Path) -> None:
    sizes = (64, 512)
    document = {
        "schema": "routecast-benchmark/1",
        "setup": {"device_title": "Linux IPv4 forwarding", "link_bps": [1e10, 1e10]},
        "throughput": {
            "rows": [
                benchmark_row("IPv4", size, loss, rate) for size in sizes for loss, rate in ((0.0, 1e6), (0.005, 1.1e6))
            ]
        },
    }
    records = read(document, tmp_path)
    assert [(r.goal, r.bound) for r in records[:4]] == [
        ("ndr", "lower"),
        ("ndr", "upper"),
        ("pdr", "lower"),
        ("pdr", "upper"),
    ]
    written: list[Any] = list(uti_documents(records).values())
    assert [document["result"]["type"] for document in written] == ["ndrpdr", "ndrpdr"]
    lines = validate_text(records, goal="ndr", cores=1).splitlines()
    assert lines[1] == '1,64.0,1000000.0,10000000000.0,1,"Linux IPv4 forwarding, IPv4",true'


def at_most(size: int, loss_ratio: float, lower_pps: float, theoretical_pps: float) -> Json:
    """A row of which the greatest rate that could be offered met the goal."""
    maximum = {"upper_pps": None, "outcome": "maximum", "theoretical_pps": theoretical_pps}
    return benchmark_row("IPv4", size, loss_ratio, lower_pps) | maximum


def test_a_throughput_that_is_the_mediums_has_it_as_both_bounds(tmp_path: Path) -> None:
    row = at_most(1518, 0.0, 812_743.8, 812_743.8)  # 10 Gbit/s over 8 x (1518 + 20)
    lower, upper = read({"schema": "routecast-benchmark/1", "throughput": {"rows": [row]}}, tmp_path)
    assert upper.trial.offered_pps == lower.trial.offered_pps
    assert any("no rate failed" in note for note in upper.trial.notes)


def test_the_limit_of_a_tester_is_no_upper_bound(tmp_path: Path) -> None:
    rows = [at_most(64, loss, 2.36e6, 14_880_952.4) for loss in (0.0, 0.005)]
    records = read({"schema": "routecast-benchmark/1", "throughput": {"rows": rows}}, tmp_path)
    assert [(record.goal, record.bound) for record in records] == [("ndr", "lower"), ("pdr", "lower")]
    (document,) = uti_documents(records).values()
    assert document["result"]["type"] == "mrr"  # what came back; an ndrpdr would need upper bounds
    assert "the router may forward more" in document["test_documentation"]
    # The model's rates are numbers, so a tag says that they are the tester's; it is read again.
    assert document["tags"] == ["routecast", "limit:tester"]
    assert {record.facts.get("limit") for record in read(document, tmp_path)} == {"tester"}


def test_a_row_says_itself_whose_limit_its_rate_is(tmp_path: Path) -> None:
    """The tester's own limit may be as fast as the medium: the ratio of the rates does not tell."""
    row = at_most(64, 0.0, 14_880_950.0, 14_880_952.4) | {"limit": "tester"}
    (lower,) = read({"schema": "routecast-benchmark/1", "throughput": {"rows": [row]}}, tmp_path)
    assert lower.facts["limit"] == "tester"
    result = benchmark_row("IPv4", 64, 0.0, 1e6) | {"limit": ""}
    lower, _ = read({"schema": "routecast-benchmark/1", "throughput": {"rows": [result]}}, tmp_path)
    assert "limit" not in lower.facts
    with pytest.raises(FileProblem, match="limit"):
        read({"schema": "routecast-benchmark/1", "throughput": {"rows": [row | {"limit": "nobody"}]}}, tmp_path)


def test_a_table_of_trials_says_at_least_where_the_tester_limits(tmp_path: Path) -> None:
    rows = [at_most(64, 0.0, 2.36e6, 14_880_952.4), benchmark_row("IPv4", 512, 0.0, 7e5)]
    table = records_table("x", read({"schema": "routecast-benchmark/1", "throughput": {"rows": rows}}, tmp_path))
    place = [column.title for column in table.columns].index("Forwarded")
    assert [row[place] for row in table.rows][:2] == ["≥ 2.36 Mpps", 7e5]


def points(records: Sequence[Record], folder: Path, **options: Any) -> list[tuple[float, float, bool]]:
    """What ``routecast validate`` reads: frame size, rate, whether it calibrates."""
    path = folder / "points.csv"
    path.write_text(validate_text(records, cores=1, **options), encoding="utf-8")
    return [(point.frame_bytes, point.throughput_pps, point.calibrate) for point in read_points(path)]


def test_what_the_medium_limits_never_calibrates_and_what_the_tester_limits_is_no_point(tmp_path: Path) -> None:
    rows = [
        benchmark_row("IPv4", 64, 0.0, 1e6),
        at_most(128, 0.0, 8e5, 8_445_945.9),  # the tester's
        benchmark_row("IPv4", 512, 0.0, 7e5),
        at_most(1518, 0.0, 812_743.8, 812_743.8),  # the medium's
    ]
    document = {
        "schema": "routecast-benchmark/1",
        "setup": {"device_title": "Linux", "link_bps": [1e10, 1e10]},
        "throughput": {"rows": rows},
    }
    records, remarks = read(document, tmp_path), list[str]()
    assert points(records, tmp_path, on_remark=remarks.append) == [
        (64.0, 1e6, True),
        (512.0, 7e5, True),
        (1518.0, 812_743.8, False),
    ]
    assert len(remarks) == 1
    assert "128 B: left out" in remarks[0]
    for size in (128.0, 1518.0):
        with pytest.raises(FileProblem, match=f"{size:g} B: cannot calibrate"):
            points(records, tmp_path, calibrate_bytes=[size])
    limited = [record for record in records if record.facts.get("limit")]
    with pytest.raises(FileProblem, match="no throughput of the router"):
        points(limited, tmp_path)


def test_a_throughput_that_was_not_found_is_invalid(tmp_path: Path) -> None:
    nothing = {"lower_pps": None, "upper_pps": None, "throughput_pps": None, "reason": "no trial was valid"}
    row = benchmark_row("IPv4", 64, 0.0, 1.0) | nothing
    (record,) = read({"schema": "routecast-benchmark/1", "throughput": {"rows": [row]}}, tmp_path)
    assert record.trial.invalid == ("no rate was found: no trial was valid",)


def journal(folder: Path, *trials: tuple[str, str, int, Trial]) -> tuple[Record, ...]:
    """Trials by procedure, purpose and frame size, written to a ``trials.parquet`` and read from it."""
    from routecast.lab.benchmark.journal import TrialRecord, open_journal

    with open_journal(folder / "run", "one") as kept:
        for number, (procedure, purpose, size, trial) in enumerate(trials, start=1):
            record = TrialRecord(
                number=number,
                procedure=procedure,
                stream="IPv4",
                frame_bytes=size,
                purpose=purpose,
                attempt=1,
                rate_pps=trial.offered_pps,
                trial=trial,
            )
            kept.add(f"key {number}", record)
    return read_records(folder / "run" / "trials.parquet")


def offered(offered_pps: float, forwarded_pps: float, duration_s: float = 0.2) -> Trial:
    return measured(
        intended_pps=offered_pps, offered_pps=offered_pps, forwarded_pps=forwarded_pps, duration_s=duration_s
    )


def test_a_burst_of_31_frames_is_no_throughput(tmp_path: Path) -> None:
    records = journal(
        tmp_path,
        ("throughput", GREATEST, 64, offered(2.36e6, 0.39e6)),
        ("throughput", "search 1, no loss", 64, offered(0.40e6, 0.40e6)),
        ("latency", "repeat 1 at 100%", 64, offered(0.41e6, 0.41e6)),
        ("frame_loss", "100% of the maximum", 64, offered(2.36e6, 0.42e6)),
        ("back_to_back", "search 1, burst of 31", 64, offered(2.36e6, 2.36e6, 13e-6)),
        ("recovery", "repeat 1", 64, offered(0.44e6, 0.43e6)),
    )
    assert points(records, tmp_path) == [(64.0, 0.40e6, True)]
    (document,) = uti_documents(records).values()
    # What came back at the greatest load: what CSIT calls the maximum receive rate.
    assert document["result"]["receive_rate"]["rate"]["values"] == [0.39e6]
    for goal in ("back_to_back", "latency"):
        with pytest.raises(FileProblem, match=f"those of .*{goal}.* measure no throughput"):
            validate_text(records, cores=1, goal=goal)


def test_a_search_that_never_overloads_the_router_has_found_its_tester(tmp_path: Path) -> None:
    records = journal(
        tmp_path,
        ("throughput", GREATEST, 64, offered(2.36e6, 0.39e6)),
        ("throughput", "search 1, no loss", 64, offered(0.40e6, 0.40e6)),
        ("throughput", GREATEST, 1518, offered(0.81e6, 0.81e6)),
        ("throughput", "search 1, no loss", 1518, offered(0.81e6, 0.81e6)),
        ("throughput", "search 2, no loss", 1518, offered(0.70e6, 0.50e6)),  # a stall of the machine
    )
    assert points(records, tmp_path) == [(64.0, 0.40e6, True)]


def test_the_trials_of_our_own_benchmarks_are_records(tmp_path: Path) -> None:
    trial = read(samples.iperf3(), tmp_path)[0].trial
    (record,) = journal(tmp_path, ("throughput", "search 1", 128, trial))
    assert (record.title, record.frame_bytes, record.facts["purpose"]) == ("IPv4", 128.0, "search 1")
    assert record.trial.to_json() == trial.to_json()
