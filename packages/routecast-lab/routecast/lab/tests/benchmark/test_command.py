"""``routecast benchmark rfc2544``: tables, JSON, refusals."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.cli import main
from routecast.evaluate.point_table import read_points
from routecast.lab.benchmark import read_profile

ROUTER = Path(__file__).parents[6] / "examples" / "multicore.router.toml"


def command(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as leave:
        main(["benchmark", "rfc2544", *map(str, arguments)])
    return int(leave.value.code or 0)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def test_a_model_in_closed_form_gets_its_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--evaluator", "solve", ROUTER) == 0
    printed = capsys.readouterr().out
    for title in ("Throughput (RFC 2544 sec. 26.1)", "Latency", "Frame loss rate", "Not run", "Deviations"):
        assert title in printed
    assert "NOT compliant with RFC 2544" in printed
    assert "14,880,952" in printed  # the theoretical maximum beside every rate
    assert max(map(len, printed.splitlines())) <= 80
    assert Path("quick-multicore/benchmark.json").exists()


def test_json_is_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--evaluator", "solve", ROUTER, "--procedures", "throughput", "--json", "--out", "there")
    assert command(*arguments, "--frame", "64 B", "--frame", "1518 B", "--bidirectional") == 0
    document = json.loads(capsys.readouterr().out)
    rows = document["throughput"]["rows"]
    assert {row["frame_bytes"] for row in rows} == {64, 1518}
    # Two links of 10 Gbit/s, both ways: 2 x 14,880,952 frames of 64 bytes.
    assert rows[0]["theoretical_pps"] == pytest.approx(2 * 10e9 / (8 * 84))
    assert document == json.loads(Path("there/benchmark.json").read_text())


def test_a_mix_of_sizes_is_run_beside_a_fixed_size(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--evaluator", "solve", ROUTER, "--procedures", "throughput", "--out", "there")
    assert command(*arguments, "--frame", "64 B", "--frame", "IMIX") == 0
    printed = capsys.readouterr().out
    assert "IPv4, IMIX 353.833 no loss" in printed
    assert "IMIX is beyond RFC 2544" in printed
    document = json.loads(Path("there/benchmark.json").read_text())
    assert document["setup"]["frame_bytes"] == [64]
    rows = [row for row in document["throughput"]["rows"] if row["stream"] == "IPv4, IMIX"]
    # 7 frames of 64 B, 4 of 570 B, 1 of 1518 B.
    mean_bytes = (7 * 64 + 4 * 570 + 1518) / 12
    assert rows[0]["frame_bytes"] == pytest.approx(mean_bytes)
    assert rows[0]["theoretical_pps"] == pytest.approx(10e9 / (8 * (mean_bytes + 20)))
    assert "genome a7A4g (A = 570 B), drawn at random (RFC 6985)" in Path("there/report.html").read_text()


def test_a_dry_run_says_how_long_it_takes_and_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--testbed", "namespaces", "--profile", "rfc2544", "--dry-run") == 0
    output = capsys.readouterr().err
    assert "Expected on the wire" in output
    assert " h " in output
    assert not list(Path().iterdir())


def test_the_profile_of_all_procedures_says_itself_how_long_its_dry_run_is(capsys: pytest.CaptureFixture[str]) -> None:
    profile = read_profile("rfc2544")
    assert "four to five days for its seven frame sizes" in profile.title
    assert len(profile.frames) == 7
    assert command("--testbed", "namespaces", "--profile", "rfc2544", "--dry-run") == 0
    total = re.search(r"all +\d+ +[\d,]+ +(\d+) h", capsys.readouterr().err)
    assert total is not None
    assert 96 <= int(total[1]) <= 120


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to test"),
        (("--evaluator", "simulate"), "give a ROUTER.toml"),
        (("--evaluator", "solve", "--testbed", "namespaces", str(ROUTER)), "--evaluator measure"),
        ((str(ROUTER), "--testbed", "namespaces"), "--evaluator simulate"),
        (("--evaluator", "solve", str(ROUTER), "--procedures", "latensy"), 'did you mean "latency"'),
        (("--evaluator", "solve", str(ROUTER), "--profile", "rfc25"), 'did you mean "rfc2544"'),
        (("--evaluator", "solve", str(ROUTER), "--frame", "12 B"), "64"),
        (("--evaluator", "solve", str(ROUTER), "--frame", ""), "frame"),
        (("--evaluator", "solve", str(ROUTER), "--frame", "IMAX"), '"7x64, 4x594, 1x1518"'),
        (("--evaluator", "solve", str(ROUTER), "--frame", "7x32, 1x64"), "got 32: frames have 64 to 65535"),
        (("--testbed", "namespaces", "--dut", "linux", "--frame", "IMIX", "--ipv6"), 'such as "7x84, 4x570, 1x1518"'),
        (
            ("--testbed", "namespaces", "--dut", "linux", "--frame", "IMIX", "--encapsulation", "vxlan:42"),
            "the smallest IPv4 (VXLAN 42) test frame has 114 B",
        ),
        (("--evaluator", "solve", str(ROUTER), "--ipv6"), "not protocols"),
        (("--evaluator", "solve", str(ROUTER), "--filters", "25"), "no packet filter"),
        (("--evaluator", "solve", str(ROUTER), "--broadcast"), "a model knows no frames beside the test stream"),
        (("--evaluator", "solve", str(ROUTER), "--broadcast", "--filters", "25"), "separate conditions"),
        (("--testbed", "namespaces", "--dut", "bridge", "--management"), "no SNMP agent answers at 198.18.1.1"),
        (("--testbed", "namespaces", "--dut", "linux", "--management"), "(--dut-option snmp=true)"),
        (
            ("--testbed", "namespaces", "--dut", "linux", "--routing-updates"),
            "are static: run a device that learns them",
        ),
        (("--evaluator", "simulate", str(ROUTER), "--outage", "process"), "KIND=TIME"),
        (("--testbed", "nowhere.testbed.toml"), "nowhere.testbed.toml"),
        (("--testbed", "namespaces", "--dut", "linx"), 'did you mean "linux"'),
    ],
)
def test_what_is_wrong_is_reported_with_what_to_do(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_cores_are_given_to_a_device_and_not_to_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--evaluator", "solve", ROUTER, "--cores", "1,2") == 2
    assert "the cores of a model stand in its file" in capsys.readouterr().err
    assert command("--testbed", "namespaces", "--dut", "xdp", "--cores", "1,2") == 2
    assert "forwards on one core here" in capsys.readouterr().err


@pytest.mark.wire
def test_the_folder_of_a_benchmark_holds_points_that_size_reads(capsys: pytest.CaptureFixture[str]) -> None:
    name = f"p{os.getpid() % 100_000}"
    Path("slow.testbed.toml").write_text(f'name = "{name}"\nkind = "namespaces"\n')
    arguments = ("--testbed", "slow.testbed.toml", "--dut", "linux", "--procedures", "latency,frame_loss")
    assert command(*arguments, "--out", "there", "--cores", "1") == 0
    output = capsys.readouterr().err
    table = Path("there/points.csv")
    if not table.exists():  # the tester was too slow, or disturbed
        assert "No row of points.csv: IPv4, 64 B" in output
        pytest.skip(output)
    assert "Maximum forwarding rates, for `routecast size`: there/points.csv" in output
    point, *timed = read_points(table)
    assert (point.cores, point.frame_bytes, point.series, point.calibrate) == (1, 64.0, "linux", True)
    for row in timed:  # none where no trial was valid
        assert row.latency is not None
        assert row.latency.arrivals == "cbr"
        assert row.latency.p50_s <= row.latency.p99_s
        assert replace(row, throughput_pps=1.0).conditions == point.conditions
    with pytest.raises(SystemExit) as leave:
        main(["size", str(table), "--target", "1 kpps"])
    assert not leave.value.code
    assert "Probability" in capsys.readouterr().out
