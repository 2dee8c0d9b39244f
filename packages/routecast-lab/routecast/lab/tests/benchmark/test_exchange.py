"""Results of other tools become trials that say the same."""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import exchange_samples as samples
from exchange_reading import faults, read, same

from routecast.lab.benchmark._hdr import classes_of_hdr, delay_of_hdr

# HDR histograms


def test_a_histogram_gives_back_the_counts_that_were_put_in() -> None:
    assert classes_of_hdr(samples.hdr_text({0: 3, 10: 1, 2000: 7})) == ((0, 0, 3), (10, 10, 1), (2000, 2000, 7))


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
    (record,) = read(samples.iperf3(sent=100, received_count=80, lost=179, arrived=20), tmp_path)  # iperf issue 1489
    assert not record.trial.is_valid


def test_bare_nan_of_iperf3_is_read_and_its_key_noted(tmp_path: Path) -> None:
    text = json.dumps(samples.iperf3()).replace('"lost_percent": 0,', '"lost_percent": -nan,')  # iperf issue 613
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


def said_by_iperf3(program: str, start: Callable[..., subprocess.Popen[str]]) -> str:
    """Send 5 Mbit/s in datagrams of 1000 bytes for a second, to a server of its own, and return what it says."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = ("127.0.0.1", "-p", str(free.getsockname()[1]))
    server = start([program, "-s", "-1", "-B", *place], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    command = [program, "-c", *place, "-u", "-b", "5M", "-l", "1000", "-t", "1", "--json"]
    for _ in range(100):  # until the server listens
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        if '"error"' not in done.stdout:
            break
        time.sleep(0.1)
    server.kill()
    return done.stdout


@pytest.mark.slow
def test_real_output_of_iperf3_over_the_loopback_is_read(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    program = shutil.which("iperf3")
    if program is None:
        pytest.skip("needs iperf3 (Debian package iperf3)")
    # A machine that stands still at the wrong moment sends less: then once more.
    for _ in range(5):
        (record,) = read(said_by_iperf3(program, start), tmp_path)
        if record.trial.offered_frames == pytest.approx(625, rel=0.1):
            break
    assert record.frame_bytes == 1046.0
    assert record.trial.offered_frames == pytest.approx(625, rel=0.1)  # 5 Mbit/s of 8000 bits for a second
    assert 0.0 <= record.trial.loss_ratio <= 1.0


def test_a_text_without_an_end_is_looked_through_once(tmp_path: Path) -> None:
    # Looked for from each of its quotes on, the end of so many would take days.
    assert "cut off" in faults('{"end": "' + r"\"" * 1_000_000, tmp_path)
    assert "cut off" in faults('{"end": "nan' + "\\", tmp_path)


def test_a_tree_in_the_place_of_a_number_is_not_written_out(tmp_path: Path) -> None:
    document = samples.iperf3()
    document["start"]["test_start"]["blksize"] = {"all": [[1], [2]]}
    assert "blksize: got an object: wants" in faults(document, tmp_path)
