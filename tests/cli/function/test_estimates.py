"""``routecast function`` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from in_process import Completed, completed

PAPER = ("--on", "xeon-e5-2690v2")


def routecast_(*arguments: str) -> Completed:
    return completed(*arguments, ROUTECAST_HOST_FILE="/nowhere/host.hardware.toml")


def document(*arguments: str) -> Any:
    done = routecast_("function", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_without_a_name_it_lists_the_functions_that_ship() -> None:
    done = routecast_("function")
    assert done.returncode == 0
    assert "learning_switch" in done.stdout
    names = {item["name"] for item in document()["functions"]}
    assert {"l2_switch", "learning_switch", "mpls_switch", "bng", "ipv4_router", "nat44"} <= names


def test_operations_are_listed_with_their_parameters() -> None:
    assert "ht_lookup" in routecast_("function", "--operations").stdout
    result = {item["name"]: item for item in document("--operations")["operations"]}
    assert [entry["name"] for entry in result["ht_lookup"]["parameters"]] == ["N", "HE", "max", "p"]


def test_the_papers_switch_is_shown_by_operation_with_what_limits_it() -> None:
    done = routecast_("function", "l2_switch", *PAPER)
    assert done.returncode == 0
    # Baldi & Sapio 2018, sec. 2.2: 4 + 106 + 5*2 + 5 cycles of 36 + 5 + 125 + 5 + 40; 3.6 GHz / 211.
    for text in ("ht_lookup", "125", "211", "17.06", "core"):
        assert text in done.stdout


def test_a_planner_reads_the_capacity_of_a_core() -> None:
    result = document("bng", *PAPER, "--frame", "78 B", "--frame", "IMIX", "--cores", "6", "--remote", "0.5")
    assert result["hardware"]["name"] == "xeon-e5-2690v2"
    estimates = result["estimates"]
    assert {(estimate["direction"], estimate["traffic"]["frames"], estimate["kind"]) for estimate in estimates} == {
        (direction, frames, kind)
        for direction in ("access", "core", None)
        for frames in ("78 B", "IMIX")
        for kind in ("generic", "platform")
    }
    for item in estimates:
        assert item["core_pps"] * item["packet_cycles"] == pytest.approx(item["frequency_hz"])
        limits = {limit["resource"]: limit["pps"] for limit in item["limits"]}
        assert limits["core"] == pytest.approx(6 * item["core_pps"])
        assert item["machine_pps"] == min(limits.values()) == limits[item["bottleneck"]]


def test_the_papers_gigahertz_is_2_4_percent_faster() -> None:
    plain, paper = (document("l2_switch", *PAPER, *more) for more in ((), ("--paper-giga",)))
    ratio = paper["estimates"][0]["core_pps"] / plain["estimates"][0]["core_pps"]
    assert ratio == pytest.approx(1.024)


def test_a_simulation_loses_what_the_estimate_cannot_carry() -> None:
    result = document("learning_switch", *PAPER, "--simulate", "--load", "20 Mpps")
    (trial,) = result["simulated"]
    assert trial["forwarded_pps"] == pytest.approx(result["estimates"][0]["machine_pps"], rel=0.01)
    fitting = document("learning_switch", *PAPER, "--simulate")
    assert fitting["simulated"][0]["dropped_frames"] == 0


def test_tables_and_traffic_are_options() -> None:
    small = document("l2_switch", *PAPER, "--table", "mac=4Ki")["estimates"][0]
    assert small["tables"] == {"mac": 4096}
    assert small["dram_accesses"] == 0.0  # 48 KiB are in L1 and L2
    hot = document("l2_switch", *PAPER, "--flows", "10")["estimates"][0]
    assert hot["traffic"]["flows"] == 10
    assert hot["dram_accesses"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("l2_swich",), 'did you mean "l2_switch"'),
        (("l2_switch", "--on", "xeon"), "xeon"),
        (("bng", "--direction", "acess"), 'did you mean "access"'),
        (("l2_switch", "--table", "mac"), "NAME=ENTRIES"),
        (("l2_switch", "--table", "mca=1"), 'did you mean "mac"'),
        (("l2_switch", "--table", "mac=100G"), "has 64 GiB"),
        (("l2_switch", "--frame", "60 B"), "64"),
        (("l2_switch", "--traffic", "many"), "zipf"),
        (("l2_switch", "--cores", "21"), "1 to 20"),
        (("ipv6_router", "--run"), "estimate only"),
    ],
)
def test_wrong_arguments_are_usage_errors_without_a_traceback(arguments: tuple[str, ...], words: str) -> None:
    done = routecast_("function", *arguments, *(() if "--on" in arguments else PAPER))
    assert (done.returncode, done.stdout) == (2, "")
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_wrong_file_is_reported_with_all_places(tmp_path: Path) -> None:
    path = tmp_path / "own.function.toml"
    path.write_text(
        'name = "own"\n[[direction]]\nname = "forward"\n'
        '[[direction.step]]\noperation = "prase"\n[[direction.step]]\noperation = "parse"\nwith = { b = "fram" }\n'
    )
    done = routecast_("function", str(path), *PAPER)
    assert done.returncode == 2
    assert "direction[0].step[0].operation" in done.stderr
    assert "direction[0].step[1].with.b" in done.stderr


def test_a_host_that_was_not_probed_is_answered_for_the_papers_with_a_remark() -> None:
    done = routecast_("function", "l2_switch")
    assert done.returncode == 0
    assert "routecast hardware probe" in done.stderr


def test_one_direction_of_a_function_is_named_with_a_slash() -> None:
    (result,) = document("bng/access", *PAPER)["estimates"]
    (same,) = document("bng", "--direction", "access", *PAPER)["estimates"]
    assert {**result, "direction": "access"} == same


@pytest.mark.parametrize("names", ["l2_switch,", ",", ""])
def test_a_chain_with_a_gap_is_refused(names: str) -> None:
    done = routecast_("function", names, *PAPER)
    assert done.returncode == 2
    assert "separated by single commas" in done.stderr


@pytest.mark.slow
def test_a_reader_who_leaves_is_no_failed_criterion() -> None:
    command = [sys.executable, "-m", "routecast", "function", "l2_switch", *PAPER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.close()
        assert writer.stderr is not None
        output = writer.stderr.read()
    assert (writer.returncode, output) == (0, b"")


def test_a_load_in_bit_s_is_of_each_frame_size() -> None:
    sizes = ("--frame", "64 B", "--frame", "512 B")
    trials = document("l2_switch", *PAPER, *sizes, "--simulate", "--load", "1 Gbit/s")["simulated"]
    # 20 B of gap and preamble a frame (S1).
    assert [trial["intended_pps"] for trial in trials] == [pytest.approx(1e9 / (8 * size)) for size in (84, 532)]
