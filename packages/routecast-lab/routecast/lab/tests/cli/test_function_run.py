"""``routecast function NAME --run`` and ``--counts``: the run stands beside its estimate, in one unit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("routecast.lab._lab", reason="the extension is not built")

from routecast.cli.run import run
from routecast.function.catalogue import function_names, read_function
from routecast.hardware.catalogue import read_hardware, write_hardware
from routecast.hardware.probe_facts import cpu_name
from routecast.lab.testbed import cachegrind, function_run

CORE_HZ = 2e9
CYCLES = 400.0
CORE_PPS = CORE_HZ / CYCLES  # 5 Mpps: 200 ns


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """Put a function of 400 cycles on cores of 2 GHz in the place of the core's."""
    seen: list[dict[str, Any]] = []

    def known(call: str, request: dict[str, Any], on_progress: object = None) -> dict[str, Any]:
        seen.append(request)
        cores = len(request["cores"])
        rate = min(request["offered_pps"] or cores * CORE_PPS, cores * CORE_PPS)
        frames = round(rate * request["duration_s"])
        delay = dict.fromkeys(("mean_s", "min_s", "p50_s", "p90_s", "p99_s", "p999_s", "max_s"), 2e-6)
        item = {"cycles_per_packet": CYCLES, "core_hz": CORE_HZ, "pps": CORE_PPS}
        hand = {"ns_per_packet": 160.0, "lookup_ns": 40.0, "ratio": 1.25, "forwarded": 4096}
        return {
            "offered": frames,
            "forwarded": frames,
            "dropped": {},
            "pass_s": {"min": 8e-4, "p25": 8e-4, "median": 8e-4, "p75": 8e-4},
            "pps": rate,
            "per_core": [item] * cores,
            "latency": None if request["offered_pps"] is None else {**delay, "count": frames},
            "hand_loop": hand if request["hand_loop"] else None,
            "steal_ratio": 0.0,
            "notes": [],
        }

    monkeypatch.setattr(function_run, "native", known)
    monkeypatch.setenv("ROUTECAST_HOST_FILE", str(tmp_path / "none.hardware.toml"))
    return seen


def test_run_and_estimate_stand_side_by_side(
    requests: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["function", "l2_switch", "--run", "--frame", "64 B", "--frame", "1518 B", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["frame_bytes"] for row in document["runs"]] == [64, 1518]
    for row in document["runs"]:
        assert row["measured_pps"] == pytest.approx(CORE_PPS)
        assert row["run_ns"] == pytest.approx(200.0)
        assert row["hand_loop_ns"] == 160.0
        # 211 cycles at 3.6 GHz by the formulas of Baldi & Sapio 2018, sec. 2.2.
        assert row["estimated_pps"] == pytest.approx(3.6e9 / 211)
        assert row["difference_ratio"] == pytest.approx(3.6e9 / 211 / CORE_PPS - 1.0)
    assert requests[0]["tables"] == {"mac": 2097152}
    assert requests[0]["offered_pps"] is None


@pytest.mark.parametrize("cpu", ["another processor", None, "this"])
def test_what_lies_between_two_machines_is_no_error_of_the_estimate(
    cpu: str | None, requests: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "probed.hardware.toml"
    facts = {} if cpu is None else {"cpu": cpu_name() if cpu == "this" else cpu}
    write_hardware(replace(read_hardware("xeon-e5-2690v2"), facts=facts), path)
    command = ["function", "l2_switch", "--run", "--on", str(path)]
    assert run(command) == 0
    shown = capsys.readouterr().out
    assert ("Error" in shown) == (cpu == "this")
    assert ("no error of the estimate" in " ".join(shown.split())) == (cpu != "this")
    assert run([*command, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert row["is_of_this_machine"] == (cpu == "this")
    assert (row["error_ratio"] is None) == (cpu != "this")
    assert row["difference_ratio"] == pytest.approx(3.6e9 / 211 / CORE_PPS - 1.0)


def test_the_table_fits_a_terminal(
    requests: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["function", "bng", "--run"]) == 0
    shown = capsys.readouterr().out
    assert "access" in shown
    assert "core" in shown
    assert max(len(line) for line in shown.splitlines()) <= 80


def test_frames_are_as_long_as_the_headers_need(requests: list[dict[str, Any]]) -> None:
    assert run(["function", "bng", "--run", "--frame", "64 B", "--json"]) == 0
    # Ethernet 14, MPLS 4, IP 20, GRE 12, IP 20, FCS 4: Baldi & Sapio 2018, fig. 7.
    assert [(request["direction"], request["frame_bytes"]) for request in requests] == [("access", 64), ("core", 74)]


def test_a_paced_run_tells_latency_and_loss(requests: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["function", "l2_switch", "--run", "--load", "1 Mpps", "--table", "mac=1k"]) == 0
    shown = capsys.readouterr().out
    assert "latency" in shown
    assert "loss" in shown
    assert requests[0]["offered_pps"] == 1e6
    assert requests[0]["tables"] == {"mac": 1000}


def test_a_function_without_a_twin_is_refused(
    requests: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["function", "ipsec_gateway", "--run"]) == 2
    assert "those that run for real are" in capsys.readouterr().err


def test_a_host_that_does_not_know_an_operation_still_runs(
    requests: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    whole = read_hardware("xeon-e5-2690v2")
    few = {name: cost for name, cost in whole.operations.items() if name != "ht_lookup"}
    write_hardware(replace(whole, operations=few), tmp_path / "few.hardware.toml")
    command = ["function", "l2_switch", "--run", "--on", str(tmp_path / "few.hardware.toml")]
    assert run([*command, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert row["measured_pps"] == pytest.approx(CORE_PPS)
    assert row["estimate"] is None
    assert row["error_ratio"] is None
    assert run(command) == 0
    assert "gives no cost of ht_lookup" in capsys.readouterr().err


class TestRefine:
    """``--refine``: what was measured corrects the file of a probed host, and stands in it."""

    @pytest.fixture
    def host(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Write a host that waits for its memory, as probed ones do."""
        whole = read_hardware("xeon-e5-2690v2")
        path = tmp_path / "own.hardware.toml"
        write_hardware(replace(whole, name="host", stalls="added"), path)
        monkeypatch.setenv("ROUTECAST_HOST_FILE", str(path))
        return path

    def error_ratio(self, capsys: pytest.CaptureFixture[str], *more: str) -> float:
        assert run(["function", "l2_switch", "--run", "--table", "mac=1k", "--json", *more]) == 0
        (row,) = json.loads(capsys.readouterr().out)["runs"]
        return float(row["error_ratio"])

    def test_the_next_estimate_is_nearer(
        self, requests: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], host: Path
    ) -> None:
        before = self.error_ratio(capsys, "--refine")
        after = self.error_ratio(capsys)
        assert abs(after) < abs(before)
        (measured,) = read_hardware(host).refinement.measured
        # 400 cycles at 2 GHz are 200 ns, and 720 cycles of the file's 3.6 GHz.
        assert measured.cycles == pytest.approx(720.0)
        assert dict(measured.tables) == {"mac": 1000}

    @pytest.mark.parametrize(
        ("arguments", "place"),
        [
            (["--load", "1 Mpps"], "--load"),
            (["--frame", "IMIX"], "--frame"),
            (["--on", "xeon-e5-2690v2"], "ships with routecast"),
        ],
    )
    def test_what_cannot_refine_is_refused_before_it_runs(
        self,
        requests: list[dict[str, Any]],
        capsys: pytest.CaptureFixture[str],
        host: Path,
        arguments: list[str],
        place: str,
    ) -> None:
        before = host.read_bytes()
        assert run(["function", "l2_switch", "--run", "--refine", *arguments]) == 2
        assert place in capsys.readouterr().err
        assert requests == []
        assert host.read_bytes() == before


def test_without_valgrind_the_package_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert run(["function", "l2_switch", "--counts"]) == 3
    assert "apt install valgrind" in capsys.readouterr().err


def test_counts_are_differences_of_two_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def counted(command: Sequence[str], *_: str) -> dict[str, int]:
        packets = json.loads(command[-1])["packets"]  # a million instructions beside 85 for each packet
        return {"Ir": 1_000_000 + 85 * packets, "Dr": 300_000 + 20 * packets, "Dw": 100_000 + 7 * packets}

    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(cachegrind, "_event_sums", counted)
    assert run(["function", "l2_switch", "--counts", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["counts"]
    assert (row["instructions"], row["reads"], row["writes"]) == (85.0, 20.0, 7.0)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind: apt install valgrind")
@pytest.mark.slow
def test_valgrind_counts_a_real_function(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["function", "l2_switch", "--counts", "--table", "mac=1k", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["counts"]
    # A packet is looked up and sent on: more than a few instructions, fewer than an interpreter would take.
    assert 10 < row["instructions"] < 2000
    assert 0 < row["writes"] < row["instructions"]
    assert 0 < row["reads"] < row["instructions"]


@pytest.mark.parametrize("what", ["--run", "--counts"])
def test_an_unknown_direction_is_refused_before_anything_runs(
    requests: list[dict[str, Any]], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["function", "bng", what, "--direction", "acess"]) == 2
    assert 'did you mean "access"?' in capsys.readouterr().err
    assert not requests


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        (["--load", "1 Mpps"], "--load"),
        (["--duration", "1 s"], "--duration"),
        (["--counts", "--load", "1 Mpps"], "--load"),
        (["--counts", "--refine"], "--refine"),
        (["--counts", "--run"], "--run"),
        (["--run", "--simulate"], "--simulate"),
        (["--run", "--remote", "0.5"], "--remote"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(
    requests: list[dict[str, Any]], options: list[str], refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["function", "l2_switch", *options]) == 2
    assert f"routecast function: {refused}: " in capsys.readouterr().err
    assert not requests


def test_a_host_that_knows_no_cost_of_lines_is_refused_before_anything_runs(
    requests: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.hardware.toml"
    write_hardware(read_hardware("xeon-e5-2690v2"), copy)
    assert run(["function", "l2_switch", "--refine", "--on", str(copy)]) == 2
    assert "does not state the cost of a line of memory" in capsys.readouterr().err
    assert not requests


@pytest.mark.parametrize("name", [name for name in function_names() if read_function(name).runs_as])
@pytest.mark.slow
def test_every_function_marked_as_real_runs_with_its_tables(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROUTECAST_HOST_FILE", str(tmp_path / "none.hardware.toml"))
    small = [f"--table={table.name}=257" for table in read_function(name).tables]
    assert run(["function", name, "--run", "--duration", "1 ms", *small, "--json"]) == 0
    for row in json.loads(capsys.readouterr().out)["runs"]:
        assert row["run"]["forwarded"] + sum(row["run"]["dropped"].values()) == row["run"]["offered"] > 0


def test_a_run_too_short_for_a_frame_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROUTECAST_HOST_FILE", str(tmp_path / "none.hardware.toml"))
    options = ["--run", "--load", "1 Mpps", "--duration", "1 ns", "--table", "mac=256"]
    assert run(["function", "l2_switch", *options]) == 2
    assert "run longer or offer more" in capsys.readouterr().err
