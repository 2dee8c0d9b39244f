"""Results of other tools become trials that say the same, or say why they cannot."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import exchange_samples as samples

from routecast.benchmark.exchange import (
    Record,
    csv_text,
    read_records,
    uti_documents,
    validate_text,
    write_parquet,
)
from routecast.benchmark.exchange.hdr import classes_of_hdr, delay_of_hdr
from routecast.calibrate.points import read_points
from routecast.errors import FileProblem

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


# HDR histograms


def test_a_histogram_gives_back_the_counts_that_were_put_in() -> None:
    assert classes_of_hdr(samples.hdr_text({0: 3, 10: 1, 2000: 7})) == (
        (0, 0, 3),
        (10, 10, 1),
        (2000, 2000, 7),
    )


def test_a_histogram_reads_as_in_another_implementation_of_hdr() -> None:
    histogram = pytest.importorskip("hdrh.histogram", reason="PyPI hdrhistogram is not installed")
    other = histogram.HdrHistogram(1, 10**9, 3)
    for value in (1, 17, 900, 5_000, 123_456, 7_654_321):
        other.record_value(value, count=10)
    delay = delay_of_hdr(other.encode().decode(), unit_s=1e-6)
    assert delay is not None
    for ratio, ours in ((50, delay.p50_s), (90, delay.p90_s), (99, delay.p99_s)):
        assert ours == pytest.approx(other.get_value_at_percentile(ratio) * 1e-6, rel=1e-9)
    assert delay.max_s == pytest.approx(7.654321, rel=1e-3)  # three digits
    assert delay.mean_s == pytest.approx(other.get_mean_value() * 1e-6, rel=1e-3)


@pytest.mark.parametrize("text", ["", "no base64!", "AAAA", "HISTFAAAAA=="])
def test_what_is_no_histogram_is_none(text: str) -> None:
    assert delay_of_hdr(text, unit_s=1e-6) is None


# TRex


def test_trex_states_its_loss_by_count_and_its_frame_size_by_its_rates(tmp_path: Path) -> None:
    (record,) = read(samples.trex(), tmp_path)
    trial = record.trial
    assert (record.goal, record.bound, record.goal_loss_ratio) == ("pdr", "lower", pytest.approx(0.001))
    assert record.frame_bytes == 64.0  # 512 Mbit/s over 8 x 1 Mpps
    assert trial.loss_ratio == pytest.approx(0.0005)
    assert trial.forwarded_pps == pytest.approx(999_500.0)
    assert trial.l1_bps == pytest.approx(999_500.0 * 84 * 8)
    assert trial.duration_s == 20.0  # the file has twice what the tool waited
    assert trial.latency is not None
    assert trial.latency.p50_s == pytest.approx(30e-6)  # upper edge of the class from 20 us
    assert trial.latency.max_s == pytest.approx(120e-6)
    assert trial.is_valid


def test_negative_loss_of_trex_is_noted_with_its_key(tmp_path: Path) -> None:
    document = samples.trex()
    document["results"]["drop_rate_percentage"] = 0
    document["results"]["rx_pps"] = 1.2e6
    (record,) = read(document, tmp_path)
    assert record.trial.loss_ratio == 0.0
    assert any("results.rx_pps" in note and "negative loss" in note for note in record.trial.notes)
    document["results"]["drop_rate_percentage"] = -2.5
    (record,) = read(document, tmp_path)
    assert record.trial.loss_ratio == 0.0
    assert any("results.drop_rate_percentage is -2.5" in note for note in record.trial.notes)


def test_a_loss_beyond_all_frames_and_a_full_queue_of_the_tester_make_a_trial_invalid(tmp_path: Path) -> None:
    document = samples.trex()
    document["results"] |= {"drop_rate_percentage": 261.0, "queue_full_percentage": 3.0}
    (record,) = read(document, tmp_path)
    assert len(record.trial.invalid) == 2


def test_the_form_of_trex_for_people_is_refused_with_what_to_do(tmp_path: Path) -> None:
    assert "-o json" in faults({"OPT TX Rate [bps]": "5 Gbps", "Title": "x"}, tmp_path)


# NFVbench


def test_nfvbench_gives_both_goals_and_the_steps_of_the_search(tmp_path: Path) -> None:
    records = read(samples.nfvbench(), tmp_path)
    assert [record.goal for record in records] == ["ndr", "pdr", "search", "search"]
    ndr, _, step, _ = records
    assert ndr.trial.offered_pps == 2e6
    assert ndr.trial.loss_ratio == pytest.approx(5e-6)
    assert ndr.goal_loss_ratio == pytest.approx(1e-5)
    assert (ndr.frame_bytes, ndr.ports, ndr.flows) == (64.0, 2, 10_000)
    assert ndr.trial.latency is not None
    assert ndr.trial.latency.p50_s == pytest.approx(20e-6)
    assert step.trial.loss_ratio == pytest.approx(0.4)
    assert step.trial.forwarded_pps == pytest.approx(2.4e6)


def test_nfvbench_calls_a_count_drop_pct_and_we_do_not_believe_it(tmp_path: Path) -> None:
    step = read(samples.nfvbench(), tmp_path)[2].trial
    assert step.dropped_frames == 96_000_000  # 40 % of 4 Mpps in 60 s
    assert step.loss_ratio == pytest.approx(0.4)


def test_an_nfvbench_search_that_found_nothing_is_no_result(tmp_path: Path) -> None:
    document = samples.nfvbench()
    result = document["benchmarks"]["network"]["service_chain"]["PVP"]["result"]["result"]["64"]
    result["ndr"]["rate_pps"] = 0
    assert not read(document, tmp_path)[0].trial.is_valid


# bench-trafficgen


def test_trafficgen_gives_every_trial_and_marks_the_last_that_passed(tmp_path: Path) -> None:
    first, second = read(samples.trafficgen(), tmp_path)
    assert (first.goal, second.goal, second.bound) == ("search", "pdr", "lower")
    assert first.trial.loss_ratio == pytest.approx(0.1)
    assert first.trial.offered_frames == 60_000_000  # both ways
    assert second.trial.forwarded_pps == pytest.approx(1e6)
    assert second.trial.latency is not None
    assert second.trial.latency.min_s == pytest.approx(12e-6)


def test_trafficgen_trials_with_more_received_than_sent_are_invalid(tmp_path: Path) -> None:
    document = samples.trafficgen()
    document["trials"][1]["stats"]["1"]["rx_packets"] += 10
    assert any("negative loss" in reason for reason in read(document, tmp_path)[1].trial.invalid)


# CSIT UTI


def test_uti_gives_bounds_and_latencies(tmp_path: Path) -> None:
    records = read(samples.uti_ndrpdr(), tmp_path)
    assert [(r.goal, r.bound) for r in records[:4]] == [
        ("ndr", "lower"),
        ("ndr", "upper"),
        ("pdr", "lower"),
        ("pdr", "upper"),
    ]
    ndr = records[0]
    assert ndr.trial.forwarded_pps == 17e6
    assert ndr.trial.loss_ratio == 0.0
    assert (ndr.frame_bytes, ndr.cores, ndr.device) == (64.0, 1, "vpp 24.10-release")
    assert math.isnan(records[2].trial.loss_ratio)  # at most 0.5 %, the file does not say which
    latencies = [record for record in records if record.goal == "latency"]
    assert len(latencies) == 8
    least, *_, most = latencies[:4]
    assert least.trial.offered_pps == 18_000.0  # 9000 a direction
    assert most.trial.offered_pps == pytest.approx(0.9 * 18.5e6)
    assert most.trial.latency is not None
    assert most.trial.latency.p50_s == pytest.approx(60e-6)


def test_a_failed_uti_test_is_an_invalid_trial_with_its_message(tmp_path: Path) -> None:
    document = samples.uti_mrr() | {"passed": False, "message": "NIC went away"}
    assert all("NIC went away" in record.trial.invalid[0] for record in read(document, tmp_path))


# iperf3


def test_iperf3_datagrams_are_frames_with_headers_and_fcs(tmp_path: Path) -> None:
    (record,) = read(samples.iperf3(), tmp_path)
    assert record.frame_bytes == 1446.0  # 1400 + UDP 8 + IPv4 20 + Ethernet 14 + FCS 4
    assert record.trial.offered_frames == record.trial.forwarded_frames == 1785
    assert record.trial.intended_pps == pytest.approx(20e6 / 11200)
    assert record.trial.reordered_frames == 2
    assert record.trial.is_valid


def test_iperf3_does_not_see_what_is_lost_at_the_end_but_we_do(tmp_path: Path) -> None:
    (record,) = read(samples.iperf3(sent=2000, received_count=1900, lost=100, arrived=1800), tmp_path)
    assert record.trial.loss_ratio == pytest.approx(0.1)
    assert any("100 of the datagrams sent came after" in note for note in record.trial.notes)


def test_more_lost_than_sent_is_an_invalid_trial(tmp_path: Path) -> None:
    (record,) = read(
        samples.iperf3(sent=100, received_count=80, lost=179, arrived=20), tmp_path
    )  # iperf issue 1489
    assert not record.trial.is_valid


def test_bare_nan_of_iperf3_is_read_and_its_key_noted(tmp_path: Path) -> None:
    text = json.dumps(samples.iperf3()).replace(
        '"lost_percent": 0,', '"lost_percent": -nan,'
    )  # iperf issue 613
    assert "-nan" in text
    (record,) = read(text, tmp_path)
    assert any("end.sum_sent.lost_percent" in note for note in record.trial.notes)


def test_sums_that_are_not_their_streams_are_noted(tmp_path: Path) -> None:
    document = samples.iperf3()
    document["end"]["sum_sent"]["packets"] = 0  # iperf issue 754
    (record,) = read(document, tmp_path)
    assert record.trial.offered_frames == 1785
    assert any("end.sum_sent.packets is 0" in note for note in record.trial.notes)


def test_old_iperf3_with_one_sum_is_read_with_a_warning(tmp_path: Path) -> None:
    document = samples.iperf3(lost=85)
    del document["end"]["sum_sent"], document["end"]["sum_received"]
    (record,) = read(document, tmp_path)
    assert record.trial.forwarded_frames == 1700
    assert any("before 3.11" in note for note in record.trial.notes)


def test_tcp_and_errors_of_iperf3_say_what_to_do(tmp_path: Path) -> None:
    document = samples.iperf3()
    document["start"]["test_start"]["protocol"] = "TCP"
    assert "iperf3 --udp" in faults(document, tmp_path)
    assert "unable to connect" in faults(
        {"start": {}, "intervals": [], "end": {}, "error": "unable to connect to server"}, tmp_path
    )


def test_the_stream_of_events_is_the_same_document(tmp_path: Path) -> None:
    document = samples.iperf3()
    lines = "\n".join(json.dumps({"event": name, "data": document[name]}) for name in ("start", "end"))
    assert same(read(lines, tmp_path)) == same(read(document, tmp_path))


def test_real_output_of_iperf3_over_the_loopback_is_read(tmp_path: Path) -> None:
    program = shutil.which("iperf3")
    if program is None:
        pytest.skip("needs iperf3 (Debian package iperf3)")
    port = "15263"
    server = subprocess.Popen(
        [program, "-s", "-1", "-B", "127.0.0.1", "-p", port],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        command = [
            program,
            "-c",
            "127.0.0.1",
            "-p",
            port,
            "-u",
            "-b",
            "5M",
            "-l",
            "1000",
            "-t",
            "1",
            "--json",
        ]
        for _ in range(20):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            if '"error"' not in done.stdout:
                break
            time.sleep(0.25)
    finally:
        server.kill()
        server.wait()
    (record,) = read(done.stdout, tmp_path)
    assert record.frame_bytes == 1046.0
    assert record.trial.offered_frames == pytest.approx(625, rel=0.1)  # 5 Mbit/s of 8000 bits for a second
    assert 0.0 <= record.trial.loss_ratio <= 1.0


# what is wrong with a file

SAMPLES: dict[str, Callable[[], Json]] = {
    "trex": samples.trex,
    "nfvbench": samples.nfvbench,
    "trafficgen": samples.trafficgen,
    "uti": samples.uti_ndrpdr,
    "iperf3": samples.iperf3,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_is_told_by_its_keys(name: str, tmp_path: Path) -> None:
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
    [
        "",
        "   ",
        "[]",
        "{}",
        "3",
        "null",
        '{"trials": 4, "log": []}',
        "[" * 100_000,
        "9" * 5000,
        "[" * 990 + "]" * 990,
    ],
)
def test_what_is_no_result_is_refused(text: str, tmp_path: Path) -> None:
    assert "result.json" in faults(text, tmp_path)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_that_lacks_any_one_key_is_read_or_refused_but_never_a_defect(
    name: str, tmp_path: Path
) -> None:
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


# writing and reading again


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
    path.write_text(
        "offered_pps,forwarded_pps,loss_ratio\n1e6,1e6,0\n2e6,much,0.5\n3e6,3e6\n", encoding="utf-8"
    )
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
                benchmark_row("IPv4", size, loss, rate)
                for size in sizes
                for loss, rate in ((0.0, 1e6), (0.005, 1.1e6))
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
    assert lines[1] == '1,64.0,1000000.0,,10000000000.0,1,"Linux IPv4 forwarding, IPv4",true'


def test_a_throughput_that_is_the_mediums_has_it_as_both_bounds(tmp_path: Path) -> None:
    row = benchmark_row("IPv4", 1518, 0.0, 812_743.8) | {"upper_pps": None, "outcome": "maximum"}
    lower, upper = read({"schema": "routecast-benchmark/1", "throughput": {"rows": [row]}}, tmp_path)
    assert upper.trial.offered_pps == lower.trial.offered_pps
    assert any("no rate failed" in note for note in upper.trial.notes)


def test_a_throughput_that_was_not_found_is_invalid(tmp_path: Path) -> None:
    nothing = {"lower_pps": None, "upper_pps": None, "throughput_pps": None, "reason": "no trial was valid"}
    row = benchmark_row("IPv4", 64, 0.0, 1.0) | nothing
    (record,) = read({"schema": "routecast-benchmark/1", "throughput": {"rows": [row]}}, tmp_path)
    assert record.trial.invalid == ("no rate was found: no trial was valid",)


def test_the_trials_of_our_own_benchmarks_are_records(tmp_path: Path) -> None:
    from routecast.benchmark.journal import open_journal
    from routecast.benchmark.result import TrialRecord

    trial = read(samples.iperf3(), tmp_path)[0].trial
    with open_journal(tmp_path / "run", "one") as journal:
        journal.add(
            "key",
            TrialRecord(
                number=1,
                procedure="throughput",
                stream="IPv4",
                frame_bytes=128,
                purpose="search 1",
                attempt=1,
                rate_pps=1e6,
                trial=trial,
            ),
        )
    (record,) = read_records(tmp_path / "run" / "trials.parquet")
    assert (record.title, record.frame_bytes, record.facts["purpose"]) == ("IPv4", 128.0, "search 1")
    assert record.trial.to_json() == trial.to_json()
