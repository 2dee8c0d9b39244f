"""``solve``, ``simulate`` and ``validate`` on real files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from in_process import completed

from routecast.cli.run import INTERRUPTED, run

ROUTER = """
builder = "multicore"
cores = 4
service = { per_packet = "1 us" }
[load]
rate = "3 Mpps"
flows = { count = 4 }
"""
POINTS = """cores,frame_bytes,throughput_pps,calibrate
1,64,1000000,true
2,64,1900000,true
4,64,3500000,false
"""


@pytest.fixture
def router(tmp_path: Path) -> str:
    path = tmp_path / "quad.router.toml"
    path.write_text(ROUTER)
    return str(path)


def json_of(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document, dict)
    return document


def test_both_evaluators_print_a_trial_and_name_the_bottleneck(router: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["solve", router], ["simulate", router, "--duration", "5 ms"]):
        trial = json_of([*command, "--load", "8 Mpps"], capsys)
        # Four cores of 1 us a frame.
        assert trial["forwarded_pps"] == pytest.approx(4e6, rel=2e-3)
        assert isinstance(trial["bottleneck"], dict)
        assert "cpu" in str(trial["bottleneck"]["name"])
        assert run([*command, "--load", "8 Mpps"]) == 0
        assert "Bottleneck: cpu" in capsys.readouterr().out


POWERSAVE = Path(__file__).parents[2] / "examples" / "powersave.router.toml"


@pytest.mark.parametrize("command", ["solve", "simulate"])
def test_a_router_with_power_states_shows_watts_energy_per_packet_and_each_sleep_state(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [command, str(POWERSAVE), *(["--duration", "500 ms"] if command == "simulate" else [])]
    trial = json_of(arguments, capsys)
    power, energy_j, activity = trial["power"], trial["energy_j"], trial["activity"]
    assert isinstance(power, dict)
    assert isinstance(energy_j, dict)
    assert isinstance(activity, list)
    # 20 W of base, and between 0.5 W asleep and 12 W at work.
    assert 20.5 < power["mean_w"] < 32.0
    assert power["energy_j"] == pytest.approx(sum(energy_j["cpu"].values()))
    assert set(energy_j["cpu"]) == {"active", "idle", "C1", "C6", "waking", "base"}
    # Lingering spares most frames their interrupt.
    assert 0.0 < activity[0]["interrupts_per_s"] < 0.7 * float(str(trial["forwarded_pps"]))
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("/packet", "/bit", "package", "C6", "waking", "base"))


def test_options_change_the_load_of_the_file(router: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert json_of(["solve", router], capsys)["intended_pps"] == 3e6
    changed = json_of(["solve", router, "--load", "1 Mpps", "--frame", "512 B", "--flows", "2"], capsys)
    assert changed["intended_pps"] == 1e6
    # S2: 512 B occupy 532 B of wire.
    assert changed["l1_bps"] == pytest.approx(1e6 * 532 * 8)


@pytest.mark.slow
def test_other_frames_count_in_the_buffers_of_a_chip_as_those_of_the_file_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With stubs for queues only the chip's buffer stands before a port: a frame of 1500 bytes, or 21 of 78."""
    losses = []
    for size, options in (("78 B", ["--frame", "1500 B"]), ("1500 B", []), ("78 B", [])):
        file = tmp_path / "chip.router.toml"
        file.write_text(
            'builder = "network_processor"\nprocessor = "ixp2850"\n'
            'block = [{ name = "queue manager", stub = true }]\n'
            f'[load]\nrate = "390 kpps"\nframes = "{size}"\narrivals = {{ kind = "poisson" }}\n'
            'flows = { kind = "meshed", count = 20 }\n'
        )
        trial = json_of(["simulate", str(file), "--duration", "50 ms", *options], capsys)
        assert isinstance(trial["loss_ratio"], float)
        losses.append(trial["loss_ratio"])
    option, written, small = losses
    assert option == written > 0.0
    assert small == 0.0


def test_one_seed_gives_one_trial_and_another_seed_another(router: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate", router, "--duration", "5 ms", "--arrivals", "poisson"]
    first = json_of([*command, "--seed", "7"], capsys)
    assert json_of([*command, "--seed", "7"], capsys) == first
    assert json_of([*command, "--seed", "8"], capsys) != first


def test_messages_can_be_traced(router: str, capsys: pytest.CaptureFixture[str]) -> None:
    trial = json_of(["simulate", router, "--duration", "20 us", "--trace-messages"], capsys)
    messages = trial["messages"]
    assert isinstance(messages, list)
    assert {message["kind"] for message in messages} >= {"REQ", "REP", "REL"}


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--load", "14"], "unit"),
        (["--load", "-1 Mpps"], "-1"),
        (["--load", "nan Mpps"], "nan"),
        (["--frame", "64 Mbit"], "64 Mbit"),
        (["--frame", "63 B"], "63"),
        (["--arrivals", "poison"], 'did you mean "poisson"?'),
        (["--arrivals", "nowhere.csv"], "nowhere.csv"),
        (["--flows", "0"], "flows"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.slow
def test_a_wrong_option_is_a_usage_error_that_names_it(
    router: str, option: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("solve", "simulate"):
        assert run([command, router, *option]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert words in err
        assert "Traceback" not in err


def test_a_duration_that_is_too_short_says_which_would_do(router: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", router, "--load", "8 Mpps", "--duration", "1 us"]) == 2
    assert "simulate at least" in capsys.readouterr().err


def test_a_wrong_router_file_lists_every_fault_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.router.toml"
    path.write_text(ROUTER.replace("cores = 4", "coress = 4").replace('"3 Mpps"', '"3 MB"'))
    assert run(["solve", str(path)]) == 2
    err = capsys.readouterr().err
    assert "coress" in err
    assert "load.rate" in err


@pytest.mark.slow
def test_validate_prints_the_documented_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "points.csv"
    path.write_text(POINTS)
    document = json_of(["validate", str(path)], capsys)
    assert set(document) >= {"series", "rows", "summary"}
    summary = document["summary"]
    assert isinstance(summary, dict)
    assert summary["held_out"] == 1
    assert set(summary) >= {
        "mean_abs_error_ratio",
        "median_abs_error_ratio",
        "p90_abs_error_ratio",
        "max_abs_error_ratio",
    }


@pytest.mark.slow
def test_validate_leaves_with_1_when_the_error_is_larger_than_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "points.csv"
    path.write_text(POINTS)
    assert run(["validate", str(path), "--max-mean-error", "0.9"]) == 0
    assert run(["validate", str(path), "--max-mean-error", "1e-9"]) == 1
    assert "Criterion missed" in capsys.readouterr().err


@pytest.mark.slow
def test_rows_without_a_rate_are_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "points.csv"
    path.write_text("cores,throughput (Mpps)\n1,1.0\n2,1.9\n4,3.5\n8,\n")
    document = json_of(["validate", str(path)], capsys)
    (predicted,) = (row for row in document["rows"] if row["role"] == "predicted")
    assert predicted["cores"] == 8
    assert predicted["measured_pps"] is predicted["error_ratio"] is None
    assert predicted["low_pps"] < predicted["predicted_pps"] < predicted["high_pps"]
    assert document["summary"]["held_out"] == 0
    assert document["summary"]["mean_abs_error_ratio"] is None
    assert run(["validate", str(path), "--max-mean-error", "0.5"]) == 1
    printed = capsys.readouterr()
    assert "Rows without a measured rate are predicted" in " ".join(printed.out.split())
    assert "no held-out row has a rate" in printed.err
    assert "frames of 64 B are assumed" in printed.err
    advice = json_of(["next", str(path)], capsys)
    assert [target["cores"] for target in advice["series"][0]["targets"]] == [8]
    assert run(["validate", str(path), "--save-router", str(tmp_path / "made.router.toml")]) == 0
    assert run(["validate", str(path), "--router", "eq5"]) == 2


@pytest.mark.parametrize("command", ["validate", "next"])
@pytest.mark.parametrize(
    "text", ["", "cores;throughput\n1;1,9\n", "cores,throughput\n1,\n", "cores,throughput_gbps\n1,1\n"]
)
def test_a_bad_table_leaves_with_2_and_words(
    command: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "points.csv"
    path.write_text(text)
    assert run([command, str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_unknown_router_kind_suggests_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "points.csv"
    path.write_text(POINTS)
    assert run(["validate", str(path), "--router", "multicor"]) == 2
    assert 'did you mean "multicore"?' in capsys.readouterr().err


SIMULATES = """
import sys
from contextlib import contextmanager
from routecast.cli import console
progress_bar = console.progress_bar
@contextmanager
def telling(what):
    with progress_bar(what) as report:
        def report_both(*done):
            print("simulates", file=sys.stderr, flush=True)
            report(*done)
        yield report_both
console.progress_bar = telling
from routecast.cli import main
sys.exit(main())
"""


@pytest.mark.slow
def test_an_interrupt_stops_a_simulation_at_once_and_prints_no_data(
    router: str, start: Callable[..., subprocess.Popen[str]]
) -> None:
    child = start(
        [sys.executable, "-c", SIMULATES, "simulate", router, "--duration", "10000 s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert child.stderr is not None
    assert child.stderr.readline() == "simulates\n"
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=120)
    assert child.returncode == INTERRUPTED
    assert stdout == ""
    assert "Traceback" not in stderr


@pytest.mark.parametrize("command", [["solve"], ["simulate", "--duration", "5 ms"]], ids=lambda command: command[0])
def test_a_load_in_bit_s_is_the_same_in_frames(
    command: list[str], router: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # 512 + 20 B of gap and preamble: 2 Gbit/s are 469,924.8 frames/s.
    frames = ["--frame", "512 B"]
    in_bits = json_of([command[0], router, *command[1:], *frames, "--load", "2 Gbit/s"], capsys)
    in_frames = json_of([command[0], router, *command[1:], *frames, "--load", f"{2e9 / (8 * 532)!r} pps"], capsys)
    assert in_bits["intended_pps"] == pytest.approx(2e9 / (8 * 532))
    assert in_bits == in_frames


def test_a_load_in_bit_s_of_a_file_is_of_the_frames_of_the_command_line(
    router: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(router).write_text(ROUTER.replace('"3 Mpps"', '"1 Gbit/s"'))
    assert json_of(["solve", router], capsys)["intended_pps"] == pytest.approx(1e9 / (8 * 84))
    assert json_of(["solve", router, "--frame", "512 B"], capsys)["intended_pps"] == pytest.approx(1e9 / (8 * 532))
    Path(router).write_text(ROUTER)
    assert json_of(["solve", router, "--frame", "512 B"], capsys)["intended_pps"] == 3e6


def test_a_load_that_is_no_rate_is_reported_with_both_units(router: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", router, "--load", "10 GB"]) == 2
    assert run(["measure", "--testbed", "namespaces", "--load", "10 GB"]) == 2
    message = capsys.readouterr().err
    assert (
        message.count('expected a frame rate such as "14.88 Mpps", "500 kpps" or a bit rate such as "10 Gbit/s"') == 2
    )


def test_resources_of_one_kind_share_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", str(Path(__file__).parents[2] / "examples" / "smartnic.router.toml")]) == 0
    text = capsys.readouterr().out
    assert "engine 0 threads … engine 47 threads (48)" in text
    assert "engine 17 threads" not in text
    assert len(text.splitlines()) < 40


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--arrivals", "cbr"), "evenly spaced arrivals"), (("--arrivals", "poisson"), "Poisson arrivals")],
)
def test_a_latency_names_the_arrivals_that_it_assumes(router: str, options: tuple[str, ...], words: str) -> None:
    load = ("--load", "2 Mpps", *options)
    for command in (("solve", router, *load), ("simulate", router, *load, "--duration", "5 ms")):
        done = completed(*command)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        (first,) = [number for number, line in enumerate(lines) if line.startswith("latency ")]
        assert f"with {words}" in " ".join(lines[first : lines.index("Resources")])
        assert json.loads(completed(*command, "--json").stdout)["arrivals"] == words
    swept = ("sweep", router, "--vary", "cores=3,4", *load)
    assert f"Latency: with {words}." in completed(*swept).stdout
    rows = json.loads(completed(*swept, "--json").stdout)["points"]
    assert {row["latency_arrivals"] for row in rows if row["latency_mean_s"] is not None} == {words}


def test_rates_without_a_latency_name_no_arrivals(router: str) -> None:
    done = completed("sweep", router, "--vary", "cores=3,4")
    assert done.returncode == 0, done.stderr
    assert "Latency" not in done.stdout
