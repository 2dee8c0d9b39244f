"""TRex statistics, dperf logs, MoonGen counters, histograms and siitperf's tables become trials that say the same."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import exchange_samples as samples
from exchange_reading import Json, faults, read
from iperf3_files import Way, document, events

from routecast.cli.run import run
from routecast.errors import FileProblem
from routecast.lab.benchmark.exchange import Record, read_records


def read_text(text: str, folder: Path, name: str = "result.csv", **options: Any) -> tuple[Record, ...]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_records(path, **options)


def trex_stats(*, received: int = 9_990_000, tx_pps: float = 1e6) -> Json:
    """TRex 3.x ``STLClient.get_stats()``: 10 million frames of 64 B from port 0 to port 1."""
    idle = {"ipackets": 0, "opackets": 0, "ibytes": 0, "obytes": 0, "ierrors": 0, "oerrors": 0, "tx_pps": 0}
    sent = {"opackets": 10_000_000, "obytes": 640_000_000, "tx_pps": tx_pps}
    got = {"ipackets": received, "ibytes": 64 * received, "rx_pps": 0.999 * tx_pps}
    latency = {"average": 30.0, "jitter": 2, "total_max": 120, "total_min": 8, "histogram": {"20": 98, "100": 2}}
    return {
        "0": idle | sent,
        "1": idle | got,
        "total": idle | sent | got,
        "global": {"queue_full": 0, "tx_pps": tx_pps, "rx_pps": tx_pps, "cpu_util": 10.0},
        "flow_stats": {
            "7": {"tx_pkts": {"0": 1000, "total": 1000}, "rx_pkts": {"1": 990, "total": 990}},
            "global": {"rx_err": {}, "tx_err": {}},
        },
        "latency": {"7": {"err_cntrs": {"dropped": 10}, "latency": latency}, "global": {"bad_hdr": 0, "old_flow": 0}},
    }


def test_trex_statistics_have_the_loss_of_their_counts(tmp_path: Path) -> None:
    (record,) = read(trex_stats(), tmp_path)
    trial = record.trial
    assert (record.frame_bytes, record.ports) == (64.0, 1)
    assert trial.loss_ratio == pytest.approx(1e-3)
    assert trial.offered_pps == 1e6
    assert trial.forwarded_pps == pytest.approx(999_000.0)
    assert record.facts["stream_loss_ratios"] == {"7": pytest.approx(0.01)}
    assert trial.latency is not None
    assert trial.latency.mean_s == pytest.approx(30e-6)


def test_trex_statistics_after_the_traffic_have_no_rate(tmp_path: Path) -> None:
    (record,) = read(trex_stats(tx_pps=0.0), tmp_path)
    assert math.isnan(record.trial.offered_pps)
    assert record.trial.loss_ratio == pytest.approx(1e-3)
    assert any("the rates are not known" in note for note in record.trial.notes)
    (record,) = read(trex_stats(received=10_000_001), tmp_path)
    assert not record.trial.is_valid


def test_astf_statistics_are_counts_of_ports_or_rates_of_the_moment(tmp_path: Path) -> None:
    side = {"m_tx_pps_r": 1e6, "m_rx_pps_r": 0.9e6, "m_active_flows": 1000, "tcps_sndrexmitpack": 5}
    traffic = {"client": side, "server": side, "epoch": 1}
    full = {key: entry for key, entry in trex_stats().items() if key not in ("flow_stats", "latency")}
    (record,) = read(full | {"traffic": traffic, "latency": {}}, tmp_path)
    assert record.source == "TRex ASTF stats"
    assert record.trial.loss_ratio == pytest.approx(1e-3)
    assert record.facts["client_tcps_sndrexmitpack"] == 5.0
    (record,) = read({"traffic": traffic}, tmp_path)
    assert record.trial.offered_pps == 2e6
    assert record.trial.forwarded_pps == 1.8e6
    assert math.isnan(record.trial.loss_ratio)


def dperf_log(rates: list[tuple[int, int]], *, dropped: int = 0) -> str:
    blocks = [
        f"seconds {second:<18} cpuUsage 52\n"
        f"pktRx   {received:<18,} pktTx    {sent:<18,} bitsRx   {640 * received:<18,} bitsTx  {640 * sent:,}"
        f"      dropTx  {dropped}\n"
        "tcpRx   0                  tcpTx    0                  udpRx    0                  udpTx   0\n"
        "tcpDrop 0                  udpDrop  7\n"
        "ierrors 0                  oerrors  0                  imissed  0\n\n"
        for second, (sent, received) in enumerate(rates)
    ]
    return "EAL: Detected CPU lcores: 16\nsocket allocation succeeded, size 0.01GB num 65535\n\n" + "\n".join(blocks)


def test_a_log_of_dperf_is_its_steady_seconds_and_knows_no_loss(tmp_path: Path) -> None:
    text = dperf_log([(0, 8), (1_000_000, 400_000), (3_000_000, 2_900_000), (3_000_200, 2_900_100), (500, 100)])
    (record,) = read_text(text, tmp_path, "dperf.log")
    assert record.trial.offered_pps == pytest.approx(3_000_100.0)
    assert record.trial.forwarded_pps == pytest.approx(2_900_050.0)
    assert math.isnan(record.trial.loss_ratio)
    assert math.isnan(record.frame_bytes)
    assert record.facts["udpDrop"] == 28.0
    assert not read_text(dperf_log([(10, 10)] * 4, dropped=3), tmp_path, "dperf.log")[0].trial.is_valid


MOONGEN = """Time,Device,Direction,PacketRate,Mbit,MbitWithFraming,TotalPackets,TotalBytes
1700000000,id=0,TX,1.0,512,672,1000000,64000000
1700000000,id=1,RX,0.9,460,604,900000,57600000
1700000001,id=0,TX,1.02,512,672,2020000,129280000
1700000001,id=1,RX,0.9,460,604,1800000,115200000
1700000002,id=0,TX,1.01,512,672,2020000,129280000
1700000002,id=1,RX,0.9,460,604,1818000,116352000
"""


def test_counters_of_moongen_end_with_the_mean_and_the_totals(tmp_path: Path) -> None:
    (record,) = read_text(MOONGEN, tmp_path)
    assert record.trial.offered_pps == pytest.approx(1.01e6)
    assert record.trial.loss_ratio == pytest.approx(0.1)
    assert (record.frame_bytes, record.ports) == (64.0, 1)
    sent_alone = "\n".join(line for line in MOONGEN.splitlines() if "RX" not in line)
    (record,) = read_text(sent_alone, tmp_path)
    assert math.isnan(record.trial.loss_ratio)
    assert any("the loss is not known" in note for note in record.trial.notes)


def test_a_histogram_of_moongen_has_latencies_in_ns(tmp_path: Path) -> None:
    (record,) = read_text("1000,50\n2000,40\n10000,10\n", tmp_path)
    latency = record.trial.latency
    assert latency is not None
    assert latency.mean_s == pytest.approx((50 * 1000 + 40 * 2000 + 10 * 10000) / 100 * 1e-9)
    assert (latency.p50_s, latency.p90_s, latency.p99_s) == pytest.approx((1e-6, 2e-6, 10e-6))
    for sign in (";", "\t"):
        (other,) = read_text("\ufeff" + "1000,50\r\n2000,40\r\n10000,10\r\n".replace(",", sign), tmp_path)
        assert other.trial.latency == latency
    with pytest.raises(FileProblem, match="line 2"):
        read_text("2000,1\n1000,1\n3000,1\n", tmp_path)


def test_warnings_before_the_document_of_iperf3_are_no_part_of_it(tmp_path: Path) -> None:
    sums = {"sum": {"seconds": 1.0, "packets": 2000, "lost_packets": 100, "lost_percent": 5}}
    sums |= {"sum_sent": {"seconds": 1.0, "bytes": 2800000, "packets": 2000}}
    sums |= {"sum_received": {"seconds": 1.0, "bytes": 2660000, "packets": 1900}}
    test = {"protocol": "UDP", "num_streams": 1, "blksize": 1400, "target_bitrate": 22_400_000}
    start = {"version": "iperf 3.16", "connected": [{"remote_host": "192.0.2.2"}], "test_start": test}
    text = json.dumps({"start": start, "intervals": [], "end": {"streams": [{"udp": {"packets": 2000}}], **sums}})
    plain = read_text(text, tmp_path, "udp.json")
    warned = read_text(f"iperf3: getsockopt - Bad file descriptor\nwarning: slow\n{text}", tmp_path, "udp.json")
    assert warned == plain
    for_people = "[ ID] Interval           Transfer     Bitrate         Jitter\n[  5] 0.00-1.00\n"
    with pytest.raises(FileProblem, match="iperf3 --json"):
        read_text(for_people, tmp_path, "udp.txt")


HGRM = """       Value     Percentile TotalCount 1/(1-Percentile)

      10.000 0.000000000000          1           1.00
      20.000 0.500000000000         50           2.00
      30.000 0.900000000000         90          10.00
      80.000 0.990000000000         99         100.00
     100.000 0.999000000000        100        1000.00
     100.000 1.000000000000        100
#[Mean    =       24.500, StdDeviation   =       12.000]
#[Max     =      100.000, Total count    =          100]
#[Buckets =           11, SubBuckets     =         2048]
"""


def test_percentiles_of_an_hdr_histogram_ask_for_their_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FileProblem, match="--latency-unit"):
        read_text(HGRM, tmp_path, "latency.hgrm")
    (record,) = read_text(HGRM, tmp_path, "latency.hgrm", latency_unit_s=1e-6)
    latency = record.trial.latency
    assert latency is not None
    assert (latency.mean_s, latency.p50_s, latency.p99_s, latency.max_s) == pytest.approx((24.5e-6, 20e-6, 8e-5, 1e-4))
    with pytest.raises(FileProblem, match="cut off"):
        read_text(HGRM.split("     100.000 1.0", maxsplit=1)[0], tmp_path, "latency.hgrm", latency_unit_s=1e-6)
    assert run(["import", str(tmp_path / "latency.hgrm"), "--latency-unit", "furlong"]) == 2
    assert "furlong" in capsys.readouterr().err


def test_percentiles_agree_with_another_implementation(tmp_path: Path) -> None:
    histogram = pytest.importorskip("hdrh.histogram", reason="PyPI hdrhistogram is not installed")
    other = histogram.HdrHistogram(1, 10**6, 3)
    for value in range(1, 1001):
        other.record_value(value)
    path = tmp_path / "other.hgrm"
    with path.open("wb") as file:
        other.output_percentile_distribution(file, 1.0)
    (record,) = read_records(path, latency_unit_s=1e-6)
    latency = record.trial.latency
    assert latency is not None
    for ratio, ours in ((50, latency.p50_s), (90, latency.p90_s), (99, latency.p99_s)):
        assert ours == pytest.approx(
            other.get_value_at_percentile(ratio) * 1e-6, rel=0.05
        )  # the rows of a file lie up to 5 % apart
    assert latency.max_s == pytest.approx(1000e-6, rel=1e-3)


def hlog(path: Path, intervals: dict[str, list[list[int]]], *, ratio: float = 1e6) -> Any:
    """Write a log with HdrHistogram's own writer, and return the histogram of all values."""
    histogram = pytest.importorskip("hdrh.histogram", reason="PyPI hdrhistogram is not installed")
    log = pytest.importorskip("hdrh.log")
    whole = histogram.HdrHistogram(1, 3_600_000_000_000, 3)
    with path.open("w", encoding="utf-8") as file:
        writer = log.HistogramLogWriter(file)
        writer.output_comment("[Logged by a tester]")
        writer.output_log_format_version()
        writer.output_base_time(1_438_867_590_285)
        writer.output_legend()
        for tag, of_tag in intervals.items():
            for second, values in enumerate(of_tag):
                part = histogram.HdrHistogram(1, 3_600_000_000_000, 3)
                for value in values:
                    part.record_value(value)
                whole.add(part)
                if tag:
                    file.write(f"Tag={tag},")
                writer.output_interval_histogram(part, 0.127 + second, 1.127 + second, ratio)
    return whole


def test_a_log_of_histograms_is_the_sum_of_its_intervals(tmp_path: Path) -> None:
    values = [[random.Random(second).randrange(5_000, 40_000_000) for _ in range(500)] for second in range(4)]
    whole = hlog(tmp_path / "latency.hlog", {"": [*values, []]})
    (record,) = read_records(tmp_path / "latency.hlog", latency_unit_s=1e-9)
    latency = record.trial.latency
    assert latency is not None
    assert latency.method.startswith("HDR histogram of 2,000 frames")
    for ratio, ours in ((50, latency.p50_s), (90, latency.p90_s), (99, latency.p99_s), (99.9, latency.p999_s)):
        assert ours == pytest.approx(whole.get_value_at_percentile(ratio) * 1e-9, rel=1e-9)
    assert latency.mean_s == pytest.approx(sum(map(sum, values)) / 2000 * 1e-9, rel=1e-3)  # three digits
    assert record.trial.duration_s == pytest.approx(5.0)


def test_each_tag_of_a_log_is_a_trial(tmp_path: Path) -> None:
    hlog(tmp_path / "tags.hlog", {"up": [[1000, 1000]], "down": [[2000], [2000]]})
    up, down = read_records(tmp_path / "tags.hlog", latency_unit_s=1e-6)
    assert (up.title, down.title) == ("up", "down")
    assert up.trial.latency
    assert up.trial.latency.p50_s == pytest.approx(1e-3)
    assert down.trial.latency
    assert down.trial.latency.p50_s == pytest.approx(2e-3, rel=1e-3)


def test_a_log_of_histograms_asks_for_its_unit_and_names_wrong_lines(tmp_path: Path) -> None:
    path = tmp_path / "latency.hlog"
    hlog(path, {"": [[40_000_000]]})
    with pytest.raises(FileProblem, match="--latency-unit ns if"):
        read_records(path)
    hlog(path, {"": [[40_000]]}, ratio=1.0)
    with pytest.raises(FileProblem, match="--latency-unit us"):
        read_records(path)
    text = path.read_text(encoding="utf-8")
    for wrong in (text.rstrip()[:-20], text.replace(",HISTFAAA", ",HISTAgAA")):
        path.write_text(wrong + "\n", encoding="utf-8")
        with pytest.raises(FileProblem, match="HistogramLogProcessor -i"):
            read_records(path, latency_unit_s=1e-6)
    path.write_text(text.replace("\n", "\r\n"), encoding="utf-8")
    assert run(["import", str(path), "--latency-unit", "us"]) == 0


RATE = (
    "No, Size, Dir, n, m, Duration, Initial Rate, Timeout, Error, Date, Iterations needed, rate\n"
    "1, 84, b, 2, 0, 60, 4000000, 2000, 1000, 2024-01-02 03:04:05, 13, 3500000\n"
    "2, 84, f, 2, 0, 60, 4000000, 2000, 1000, 2024-01-02 03:24:05, 13, 3600000\n"
)
LATENCY = "No, Size, Dir, n, m, Duration, Rate, Timeout, Delay, Tags, Fwd-TL, Fwd-WCL, Rev-TL, Rev-WCL\n" + (
    "1, 84, b, 2, 0, 120, 1000000, 2000, 60, 500, 0.025, 0.110, 0.030, 0.120\n"
)
PDV = "No, Size, Dir, n, m, Duration, Rate, Timeout, Fwd-PDV\n1, 84, f, 2, 0, 60, 1000000, 2000, 0.045\n"
LOSS = "No, Size, Dir, n, m, Duration, Timeout, 100000, 200000\n1, 128, b, 2, 0, 10, 2000, 2000000, 3000000\n"


def test_throughputs_of_siitperf_are_those_of_its_directions(tmp_path: Path) -> None:
    both, forward = read_text(RATE, tmp_path)
    assert (both.goal, both.ports, both.trial.forwarded_pps) == ("ndr", 2, 7e6)
    assert (forward.ports, forward.trial.forwarded_pps) == (1, 3.6e6)
    assert both.trial.loss_ratio == 0.0
    assert both.frame_bytes == 84.0


def test_latencies_variations_and_losses_of_siitperf_are_trials(tmp_path: Path) -> None:
    there, back = read_text(LATENCY, tmp_path)
    assert there.trial.latency is not None
    assert back.trial.latency is not None
    assert (there.trial.latency.p50_s, back.trial.latency.p999_s) == pytest.approx((25e-6, 120e-6))
    assert there.trial.offered_pps == 2e6
    (variation,) = read_text(PDV, tmp_path)
    assert variation.trial.delay_variation is not None
    assert variation.trial.delay_variation.p999_s == pytest.approx(45e-6)
    losses = [record.trial.loss_ratio for record in read_text(LOSS, tmp_path)]
    assert losses == pytest.approx([0.0, 0.25])


FIXTURES: dict[str, Callable[[], str]] = {
    "iperf3.json": lambda: json.dumps(document(forward=Way(tail=50), streams=2), indent=1),
    "iperf3-3.1.json": lambda: json.dumps(document("3.1", "server", forward=Way())),
    "iperf3-3.7.json": lambda: json.dumps(document("3.7", forward=Way(), reverse=Way())),
    "iperf3-sends.json": lambda: json.dumps(document("3.19", "server", reverse=Way())),
    "stream.json": lambda: events(document("3.18", forward=Way()), full=True),
    "trex.json": lambda: json.dumps(trex_stats()),
    "nfvbench.json": lambda: json.dumps(samples.nfvbench()),
    "uti.json": lambda: json.dumps(samples.uti_ndrpdr()),
    "dperf.log": lambda: dperf_log([(3_000_000, 2_900_000)] * 4),
    "moongen.csv": lambda: MOONGEN,
    "histogram.csv": lambda: "1000,50\n2000,40\n10000,10\n",
    "latency.hgrm": lambda: HGRM,
    "rate.csv": lambda: RATE,
    "loss.csv": lambda: LOSS,
    "latency.csv": lambda: LATENCY,
}


def mutated(text: str, draw: random.Random) -> str:
    """Return a text with one to three faults: cut, repeated, lost or other characters, and numbers that are none."""
    for _ in range(draw.randint(1, 3)):
        place, length = draw.randrange(len(text) + 1), draw.randint(1, 30)
        text = draw.choice(
            [
                lambda t, p, n: t[:p],
                lambda t, p, n: t[:p] + t[p + n :],
                lambda t, p, n: t[:p] + t[p : p + n] + t[p:],
                lambda t, p, n: t[:p] + draw.choice(['"', "{", "-", "9" * 30, "nan", "1e999", ",", "\n", "\0"]) + t[p:],
                lambda t, p, n: t[:p] + chr(draw.randrange(32, 500)) + t[p + 1 :],
                lambda t, p, n: t.replace(draw.choice("0123456789"), draw.choice(["-1", "", "0", "null"]), 3),
            ]
        )(text, place, length)
    return text


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_mutated_file_is_refused_or_read_as_a_trial_that_may_be(tmp_path: Path) -> None:
    draw = random.Random(58)
    refused = 0
    for number in range(1500):
        name = list(FIXTURES)[number % len(FIXTURES)]
        text = mutated(FIXTURES[name](), draw)
        try:
            records = read_text(text, tmp_path, name, latency_unit_s=1e-6)
        except FileProblem:
            refused += 1
            continue
        assert records
        for record in records:
            trial = record.trial
            json.dumps(record.to_json(), allow_nan=False)
            assert not trial.offered_pps < 0.0
            assert not trial.forwarded_pps < 0.0
            is_one_side = record.source == "dperf"  # it may receive more than it sends
            assert is_one_side or not (trial.is_valid and trial.forwarded_pps > trial.offered_pps * (1.0 + 1e-9)), text
            if not math.isnan(trial.loss_ratio):
                assert 0.0 <= trial.loss_ratio <= 1.0 or not trial.is_valid, text
            elif record.goal in ("run", "mrr"):
                assert trial.notes or not trial.is_valid, text
    assert 300 < refused < 1450


def test_what_is_no_result_of_dperf_or_moongen_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="no second has frames"):
        read_text(dperf_log([(0, 0)]), tmp_path, "dperf.log")
    with pytest.raises(FileProblem, match="row 3, column TotalPackets"):
        read_text(MOONGEN.splitlines()[0] + "\n1,a,TX,1,1,1,5,320\n1,b,RX,1,1,1,many,320\n", tmp_path)
    with pytest.raises(FileProblem, match="allowed are b, f, r"):
        read_text(RATE.replace(" b,", " x,"), tmp_path)
    assert "nothing was sent" in faults(trex_stats() | {"total": {"opackets": 0, "ipackets": 0}}, tmp_path)
