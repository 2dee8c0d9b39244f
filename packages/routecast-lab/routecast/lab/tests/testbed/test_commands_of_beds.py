"""routecast measure and routecast testbed, as people run them: output, exit codes, and nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from routecast.evaluate.point_table import read_points
from routecast.lab.benchmark.exchange import read_csv, read_parquet
from routecast.lab.testbed import netns, selftest, state


@pytest.fixture
def bed(tmp_path: Path) -> str:
    path = tmp_path / "bed.testbed.toml"
    path.write_text(f'name = "c{os.getpid() % 100_000}-{time.monotonic_ns() % 10_000}"\nkind = "namespaces"\n')
    return str(path)


def name_of(bed: str) -> str:
    return Path(bed).read_text().split('"')[1]


Run = Callable[..., Any]


@pytest.fixture
def run(command: Run) -> Run:
    """Run a command in this process, with 120 columns."""
    return partial(command, COLUMNS="120")


def run_process(before: Sequence[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command behind a prefix, such as one that takes rights or cores away."""
    return subprocess.run(
        [*before, sys.executable, "-m", "routecast", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
    )


def is_gone(bed: str) -> bool:
    name = name_of(bed)
    return not [namespace for namespace in netns.names() if name in namespace] and name not in state.beds()


@pytest.mark.wire
def test_a_measured_trial_is_printed_like_any_other_and_kept_in_tables(bed: str, tmp_path: Path, run: Run) -> None:
    csv, parquet = tmp_path / "trials.csv", tmp_path / "trials.parquet"
    arguments = ("measure", "--testbed", bed, "--dut", "linux", "--dut-option", "ipv6=false")
    arguments += ("--load", "20 kpps", "--frame", "128 B", "--flows", "10", "--duration", "200 ms")
    arguments += ("--retries", "9")
    for out in (csv, csv, parquet, parquet):
        done = run(*arguments, "--out", str(out))
        assert done.returncode in {0, 1}, done.stderr
        for words in ("measure, 200 ms", "offered load", "frames        4,000 offered = ", "Bottleneck: "):
            assert words in done.stdout
        assert (
            "sending from g0 (02:00:00:00:01:02, 198.18.1.2) to 02:00:00:00:01:01, 198.19.1.2 and others" in done.stderr
        )
    for records in (read_csv(csv), read_parquet(parquet)):
        assert len(records) == 2
        assert [(record.trial.offered_frames, record.frame_bytes, record.flows) for record in records] == [
            (4_000, 128.0, 10)
        ] * 2
        assert records[0].device == "linux"
    assert is_gone(bed)


@pytest.mark.wire
def test_json_has_the_trial_and_what_ran_it(bed: str, run: Run) -> None:
    done = run(
        "measure",
        "--testbed",
        bed,
        "--load",
        "20 kpps",
        "--bidirectional",
        "--duration",
        "100 ms",
        "--json",
        "--retries",
        "9",
    )
    trial = json.loads(done.stdout)
    assert trial["evaluator"] == "measure"
    assert trial["offered_frames"] == trial["forwarded_frames"] + trial["dropped_frames"] == 2_000
    assert {"device", "bed", "tester", "trial"} <= set(trial["facts"])


@pytest.mark.wire
def test_on_one_core_the_generator_never_passes_for_a_device_that_loses(bed: str) -> None:
    if shutil.which("taskset") is None:
        pytest.skip("needs taskset: apt install util-linux")
    taskset = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    done = run_process(taskset, "measure", "--testbed", bed, "--load", "50 kpps", "--duration", "300 ms", "--json")
    trial = json.loads(done.stdout)
    assert trial["offered_frames"] == trial["forwarded_frames"] + trial["dropped_frames"]
    assert done.returncode == (1 if trial["invalid"] else 0), done.stderr
    assert trial["dropped_frames"] == 0 or trial["invalid"]
    assert any("generator and device share core" in note for note in trial["notes"])
    assert is_gone(bed)


@pytest.mark.wire
def test_a_full_disk_costs_the_table_and_not_the_trial(bed: str, run: Run) -> None:
    done = run(
        "measure", "--testbed", bed, "--load", "20 kpps", "--duration", "100 ms", "--out", "/dev/full", "--retries", "9"
    )
    assert done.returncode == 3
    assert "2,000 offered" in done.stdout
    assert "/dev/full: cannot be written: No space left on device" in done.stderr
    assert is_gone(bed)


@pytest.mark.wire
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_a_trial_ends_it_at_once_and_leaves_nothing(
    bed: str, number: int, start: Callable[..., subprocess.Popen[str]]
) -> None:
    arguments = ("measure", "--testbed", bed, "--load", "20 kpps", "--duration", "300 s")
    process = start([sys.executable, "-m", "routecast", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    # Remarks on other beds on the same cores come first.
    assert any("sending from" in line for line in process.stderr)
    time.sleep(0.5)
    process.send_signal(number)
    # The trial lasts five minutes, so that a process that ignores the signal times out here.
    out, _ = process.communicate(timeout=120)
    assert process.returncode == (130 if number == signal.SIGINT else 128 + number)
    assert out == ""
    assert is_gone(bed)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("measure", "--testbed", "namespaces", "--over-time"), 2, "give a rate with --load"),
        (
            ("measure", "--testbed", "namespaces", "--arrivals", "a.csv", "--load", "1 kpps"),
            2,
            "brings its rate and frames",
        ),
        (("measure", "--testbed", "namespaces", "--arrivals", "none.pcap"), 2, "none.pcap: No such file"),
        (("measure", "--testbed", "namespaces", "--cores", "1", "--load", "1 kpps"), 2, "leave out --load and --until"),
        (("measure", "--testbed", "namespaces", "--cores", "0"), 2, "no whole number from 1"),
        (("measure", "--testbed", "namespaces", "--dut", "xdp", "--cores", "1,2"), 2, "forwards on one core here"),
        (("measure", "--testbed", "namespaces", "--dut", "linux", "--cores", "4096"), 3, "4096 cores for the device"),
        (("measure", "--testbed", "nowhere.toml", "--load", "1 kpps"), 2, "needs no file"),
        (("measure", "--testbed", "namespaces", "--load", "1"), 2, "no unit"),
        (("measure", "--testbed", "namespaces", "--load", "1 kpps", "--dut", "linus"), 2, "linux"),
        (("measure", "--testbed", "namespaces", "--load", "1 kpps", "--dut-option", "x"), 2, "key=value"),
        (("testbed", "down"), 2, "--all"),
        (("testbed", "down", "nobody-has-this-name"), 2, "there is no test bed"),
    ],
)
def test_wrong_use_says_what_is_allowed(arguments: Sequence[str], code: int, words: str, run: Run) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


@pytest.mark.wire
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--frame", "9000 B"), "MTU of 1500 B"),
        (("--ip-version", "6"), "84 B"),
        (("--ip-version", "5"), "4 or 6"),
        (("--back-end", "life"), "live"),
    ],
)
def test_a_load_that_the_bed_cannot_send_is_wrong_use(bed: str, arguments: Sequence[str], words: str, run: Run) -> None:
    done = run("measure", "--testbed", bed, "--load", "1 kpps", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert is_gone(bed)


@pytest.mark.wire
def test_without_rights_the_missing_ones_are_named(bed: str) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv: apt install util-linux")
    fewer = ("setpriv", "--bounding-set=-net_raw,-sys_admin", "--inh-caps=-net_raw,-sys_admin")
    done = run_process(fewer, "measure", "--testbed", bed, "--load", "1 kpps")
    assert (done.returncode, done.stdout) == (3, "")
    assert "needs CAP_NET_RAW, CAP_SYS_ADMIN, which this process does not have" in done.stderr


@pytest.mark.wire
def test_a_bed_that_is_put_up_is_listed_and_taken_down(bed: str, run: Run) -> None:
    done = run("testbed", "up", bed)
    assert done.returncode == 0, done.stderr
    assert f"g0 in rc-{name_of(bed)}-gen" in done.stdout
    listed = json.loads(run("testbed", "list", "--json").stdout)
    assert [entry["state"] for entry in listed if entry["name"] == name_of(bed)] == ["put up to stay"]
    assert name_of(bed) in run("testbed", "list").stdout
    again = run("testbed", "up", bed)
    assert again.returncode == 3
    assert "take it down" in again.stderr
    assert run("testbed", "down", name_of(bed)).returncode == 0
    assert is_gone(bed)


@pytest.mark.wire
def test_a_device_of_xdp_programs_cannot_be_left_standing(bed: str, run: Run) -> None:
    done = run("testbed", "up", bed, "--dut-option", "slowdown=10")
    assert done.returncode == 3
    assert "--wait" in done.stderr
    assert is_gone(bed)


def test_devices_are_listed_with_their_options_and_what_they_lack(run: Run) -> None:
    result = json.loads(run("testbed", "devices", "--json").stdout)
    by_name = {device["name"]: device for device in result}
    assert {"linux", "bridge", "xdp", "external"} <= set(by_name)
    assert by_name["linux"]["options"][0]["name"] == "slowdown"
    assert all(option["meaning"] for device in result for option in device["options"])
    assert "Linux IP forwarding" in run("testbed", "devices").stdout


def test_the_schema_of_test_beds_is_printed(run: Run) -> None:
    schema = json.loads(run("schema", "testbed").stdout)
    assert schema["title"] == "routecast test bed file"


@pytest.mark.wire
@pytest.mark.parametrize("is_short", [True, pytest.param(False, marks=pytest.mark.thorough)], ids=["short", "whole"])
def test_the_tester_tests_itself(
    bed: str, run: Run, is_short: bool, monkeypatch: pytest.MonkeyPatch, undisturbed: Run
) -> None:
    if is_short:  # every back end on every core, with one size and one rate
        for name, value in {"FRAME_BYTES": (64,), "RATES_PPS": (1e3,), "_MAXIMUM_S": 0.1, "_FLOOR_S": 0.1}.items():
            monkeypatch.setattr(selftest, name, value)

    def checks() -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = json.loads(run("testbed", "selftest", "--testbed", bed, "--json").stdout)[
            "checks"
        ]
        assert all(check["reason"] for check in result if check["trial"] is None)
        ran = [check for check in result if check["trial"] is not None]
        assert {check["name"] for check in ran} == {"maximum", "latency", "rate"}
        for trial in (check["trial"] for check in ran):
            assert trial["offered_frames"] == trial["forwarded_frames"] + trial["dropped_frames"]  # S12
        return ran

    def judge(ran: list[dict[str, Any]]) -> None:
        assert all(check["trial"]["forwarded_frames"] > 0 for check in ran)

    undisturbed(checks, judge, trials=lambda ran: [SimpleNamespace(**check["trial"]) for check in ran])
    assert is_gone(bed)


@pytest.mark.wire
def test_without_a_load_the_maximum_forwarding_rate_becomes_a_row_of_points(
    bed: str, tmp_path: Path, run: Run, undisturbed: Run
) -> None:
    if shutil.which("nft") is None:
        pytest.skip("needs nft: apt install nftables")
    table = tmp_path / "points.csv"
    arguments = ("measure", "--testbed", bed, "--dut", "nftables", "--dut-option", "rules=3000", "--cores", "1")
    arguments += ("--duration", "100 ms", "--retries", "9", "--out", str(table), "--json")

    def measured() -> Any:
        table.unlink(missing_ok=True)
        done = run(*arguments)
        if done.returncode == 1:  # invalid, or a lower bound: no row then
            assert not table.exists()
        return done

    def judge(done: Any) -> None:
        assert done.returncode == 0, done.stderr

    done = undisturbed(measured, judge, trials=lambda done: [SimpleNamespace(invalid=[done.stderr], notes=[])])
    (answer,) = json.loads(done.stdout)["forwarding_rates"]
    assert answer["is_maximum"]
    assert answer["trial"]["loss_ratio"] > 0.15
    (point,) = read_points(table)
    assert (point.cores, point.frame_bytes, point.series, point.calibrate) == (1, 64.0, "nftables rules=3000", True)
    assert point.throughput_pps == answer["forwarding_rate_pps"] == answer["trial"]["forwarded_pps"]
    assert "Probability" in run("size", str(table), "--target", "1 kpps").stdout
    other = run(*arguments[:4], "linux", "--bidirectional", "--out", str(table))
    assert (other.returncode, other.stdout) == (2, "")
    assert "forwarded on the generator's core" in other.stderr
    assert is_gone(bed)


@pytest.mark.wire
def test_latencies_at_shares_of_the_rate_become_rows_of_the_same_table(
    bed: str, tmp_path: Path, run: Run, undisturbed: Run
) -> None:
    if shutil.which("nft") is None:
        pytest.skip("needs nft: apt install nftables")
    table = tmp_path / "points.csv"
    arguments = ("measure", "--testbed", bed, "--dut", "nftables", "--dut-option", "rules=3000", "--cores", "1")
    arguments += ("--duration", "100 ms", "--retries", "9", "--out", str(table), "--json")

    def measured() -> Any:
        table.unlink(missing_ok=True)
        return run(*arguments, "--latency-at", "10%,50%", "--latency-trials", "2")

    def judge(done: Any) -> None:
        assert done.returncode == 0, done.stderr

    done = undisturbed(measured, judge, trials=lambda done: [SimpleNamespace(invalid=[done.stderr], notes=[])])
    (answer,) = json.loads(done.stdout)["forwarding_rates"]
    rate, *rows = read_points(table)
    assert rate.throughput_pps == answer["forwarding_rate_pps"]
    assert [trial["load_ratio"] for trial in answer["latency"]] == [0.1, 0.5, 0.1, 0.5]
    assert len(rows) == 4
    for row, document in zip(rows, answer["latency"], strict=True):
        latency, delay = row.latency, document["trial"]["latency"]
        assert latency is not None
        # 100 ms at the greatest rate that is tested are some thousands of frames: one more or less is under a percent.
        assert latency.load_pps == pytest.approx(document["load_ratio"] * rate.throughput_pps, rel=0.01)
        assert latency.load_pps == document["trial"]["offered_pps"]
        assert (latency.arrivals, latency.samples) == ("cbr", document["trial"]["forwarded_frames"])
        assert 0.0 < latency.min_s <= latency.p50_s <= latency.p95_s <= latency.p99_s <= latency.max_s
        assert latency.p50_s == pytest.approx(delay["p50_s"])
        assert row.disturbed == document["disturbed"]
        assert not row.calibrate
    sized = run("size", str(table), "--target", f"{0.3 * rate.throughput_pps / 1e3} kpps", "--latency", "p50 < 1 s")
    if all(row.disturbed for row in rows):
        assert sized.returncode == 1
        assert "disturbed: not calibrated" in " ".join(sized.stdout.split())
    else:
        assert "p50 there" in " ".join(sized.stdout.split())
    refused = run("measure", "--testbed", bed, "--load", "10 kpps", "--latency-at", "10%")
    assert refused.returncode == 2
    assert "leave out --load" in refused.stderr
    assert is_gone(bed)


@pytest.mark.wire
def test_a_rate_that_the_wire_limits_is_a_lower_bound_and_no_row(tmp_path: Path, run: Run) -> None:
    # Every machine forwards the 8,127 frames of 1518 bytes that 100 Mbit/s carry in a second.
    path, table = tmp_path / "slow.testbed.toml", tmp_path / "points.csv"
    name = f"c{os.getpid() % 100_000}-{time.monotonic_ns() % 10_000}"
    path.write_text(f'name = "{name}"\nkind = "namespaces"\nwire = "100 Mbit/s"\n')
    done = run("measure", "--testbed", str(path), "--frame", "1518 B", "--duration", "100 ms", "--out", str(table))
    assert done.returncode in {1, 3}, done.stderr  # 3: other work let no trial be valid
    assert not table.exists()
    if "is a lower bound" in done.stderr:
        assert "Maximum forwarding rate: ≥ " in done.stdout
    assert is_gone(str(path))


@pytest.mark.wire
def test_measuring_until_enough_is_known_stops_by_itself_and_goes_on_from_its_table(
    bed: str, tmp_path: Path, run: Run, undisturbed: Run
) -> None:
    if shutil.which("nft") is None:
        pytest.skip("needs nft: apt install nftables")
    table = tmp_path / "points.csv"
    arguments = ("measure", "--testbed", bed, "--dut", "nftables", "--dut-option", "rules=3000")
    arguments += ("--duration", "100 ms", "--spread", "0 s", "--out", str(table), "--json", "--retries", "9")

    def measured() -> Any:
        table.unlink(missing_ok=True)
        return run(*arguments, "--until", "40%", "--most", "60")

    def judge(done: Any) -> None:
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["is_enough"]
        assert answer["half_width_ratio"] <= 0.4

    # Of its trials, the command says what made them no result.
    done = undisturbed(measured, judge, trials=lambda done: [SimpleNamespace(invalid=[done.stderr], notes=[])])
    answer = json.loads(done.stdout)
    points = read_points(table)
    assert len(points) == len(answer["measured"]) >= 8
    assert all(point.calibrate for point in points)
    again = run(*arguments, "--until", "40%")
    assert again.returncode == 0, again.stderr
    assert "continuing from them" in again.stderr
    assert len(read_points(table)) == len(points)
    assert run("validate", str(table)).returncode == 0
    refused = run(*arguments, "--until", "40%", "--load", "10 kpps")
    assert refused.returncode == 2
    assert "leave out --load" in refused.stderr
    assert is_gone(bed)
