"""``routecast power table`` and ``routecast power day`` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from in_process import Completed, completed

ROUTER = """
builder = "multicore"
name = "four cores"
cores = 4
link = "10 Gbit/s"
queue = "512 frames"
distribution = "rss"
service = { per_packet = "1600 ns" }

[power]
scope = "package"
active = "20 W"
idle = "4 W"

[load]
rate = "1 Mpps"
frames = "64 B"
flows = { kind = "crafted", count = 4 }
"""
LINEAR = """
model = "linear"
scope = "server"
idle = "60 W"
full = "100 W"
"""


def routecast_(*arguments: str | Path) -> Completed:
    return completed("power", *arguments)


def document(*arguments: str | Path) -> Any:
    done = routecast_(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture
def router(tmp_path: Path) -> Path:
    path = tmp_path / "four.router.toml"
    path.write_text(ROUTER, encoding="utf-8")
    return path


@pytest.mark.slow
def test_the_simulators_table_has_the_watts_of_the_cores_that_work(router: Path) -> None:
    table = document("table", router, "--evaluator", "simulate", "--frame", "64 B", "--duration", "500 ms")
    rows = {row["name"]: row for row in table["rows"]}
    # 4 cores at 625 kpps each; 16 W idle, 80 W busy, and the same share of cores is busy as of the throughput.
    # Rings of 4 x 512 frames swallow 0.2 % of what half a second brings beyond it; the search ends within 0.5 %.
    assert table["throughput_pps"] == pytest.approx(2.5e6, rel=0.01)
    assert rows["base"]["power_w"] is None
    assert rows["idle"]["power_w"] == pytest.approx(16.0, rel=1e-3)
    assert rows["typical"]["power_w"] == pytest.approx(16.0 + 0.3 * 64.0, rel=0.02)
    assert rows["loaded"]["power_w"] == pytest.approx(80.0, rel=0.02)
    assert table["proportionality_ratio"] == pytest.approx(0.8, rel=0.01)
    assert table["scope"] == "package"
    # 64-byte frames take 84 bytes of a 10 Gbit/s link; half of the frames leave by each port.
    assert rows["loaded"]["port_ratios"]["port 1 out"] == pytest.approx(1.25e6 * 84 * 8 / 10e9, rel=0.01)


def test_the_message_says_what_a_router_file_without_watts_lacks(tmp_path: Path) -> None:
    path = tmp_path / "cold.router.toml"
    head, _, rest = ROUTER.partition("[power]")
    path.write_text(head + rest[rest.index("[load]") :], encoding="utf-8")
    for command in (("table", path), ("day", path, "--profile", "abilene", "--peak", "1 Gbit/s")):
        done = routecast_(*command, *(("--duration", "50 ms")))
        assert done.returncode == 2
        assert "power = " in done.stderr
        assert done.stdout == ""


def test_weights_that_do_not_sum_to_one_are_refused(router: Path) -> None:
    done = routecast_("table", router, "--weights", "0.1,0.8,0.2")
    assert done.returncode == 2
    assert "sum up to 1.1" in done.stderr
    assert "no list of numbers" in routecast_("table", router, "--loads", "100;30").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give a FILE.router.toml"),
        (("--testbed", "namespaces"), "needs a power meter"),
        (("--testbed", "namespaces", "--power", "none"), "needs a power meter"),
        (("--testbed", "namespaces", "--power", "wattson"), "got 'wattson'"),
        (("--testbed", "namespaces", "--evaluator", "simulate"), "answers for a model"),
        (("--testbed", "namespaces", "--power", "csv:{log}", "--flows", "3"), "an even number"),
        (("--dut", "linx", "--power", "csv:{log}"), 'did you mean "linux"'),
        (("{router}", "--testbed", "namespaces"), "--testbed is for a real router"),
        (("{router}", "--power", "rapl"), "--power is for a real router"),
        (("{router}", "--base-watts", "-3"), "it must be a number"),
        (("{router}", "--base-watts", "inf"), "it must be a number"),
    ],
)
def test_a_router_is_either_a_model_or_on_a_test_bed_with_a_meter(
    arguments: tuple[str, ...], message: str, router: Path, tmp_path: Path
) -> None:
    done = routecast_("table", *(argument.format(router=router, log=tmp_path / "pdu.csv") for argument in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_meter_that_cannot_be_read_leaves_with_3_before_the_test_bed_is_made(tmp_path: Path) -> None:
    log = tmp_path / "pdu.csv"
    done = routecast_("table", "--testbed", "namespaces", "--dut", "linux", "--power", f"csv:{log}")
    assert (done.returncode, done.stdout) == (3, "")
    assert "cannot be read: No such file" in done.stderr


@pytest.mark.slow
def test_base_is_the_value_of_the_user_and_is_marked_so(router: Path) -> None:
    table = document("table", router, "--base-watts", "7.5")
    assert table["rows"][0]["power_w"] == 7.5
    assert any("given by the user" in note for note in table["notes"])
    printed = routecast_("table", router).stdout
    assert "Not measured: base" in printed
    assert "given by the user" not in printed


def test_a_linear_servers_day_is_the_closed_form(tmp_path: Path) -> None:
    path = tmp_path / "server.power.toml"
    path.write_text(LINEAR, encoding="utf-8")
    day = document(
        "day", path, "--profile", "synthetic", "--peak", "9 Gbit/s", "--capacity", "10 Gbit/s", "--price", "0.25"
    )
    mean_bps = sum(day["l2_bps"]) / len(day["l2_bps"])
    assert day["mean_w"] == pytest.approx(60.0 + 40.0 * mean_bps / 10e9)
    assert day["peak_w"] == pytest.approx(96.0)
    assert day["energy_kwh"] == pytest.approx(0.024 * day["mean_w"])
    assert day["cost"] == pytest.approx(0.25 * day["energy_kwh"])
    assert day["carbon_g"] is None
    assert day["scope"] == "server"


def test_a_routers_day_comes_from_trials_and_is_drawn(router: Path, tmp_path: Path) -> None:
    drawing = tmp_path / "day.svg"
    done = routecast_(
        *("day", router, "--profile", "abilene", "--step", "1 h", "--peak", "1 Gbit/s"),
        *("--evaluator", "simulate", "--duration", "20 ms", "--figure", drawing),
    )
    assert done.returncode == 0, done.stderr
    for text in ("kWh a day", "energy per TB", "if proportional", "20 loads"):
        assert text in done.stdout
    assert ElementTree.parse(drawing).getroot().tag.endswith("svg")


def test_a_series_without_a_unit_is_refused_until_it_is_given(tmp_path: Path) -> None:
    model = tmp_path / "server.power.toml"
    model.write_text(LINEAR, encoding="utf-8")
    series = tmp_path / "link.csv"
    rows = "\n".join(f"2005-06-07 {hour:02d}:00:00,{3.6e12 * (1 + hour)}" for hour in range(24))
    series.write_text(f"Time,Traffic (in bits)\n{rows}\n", encoding="utf-8")
    refused = routecast_("day", model, "--profile", series)
    assert refused.returncode == 2
    assert "gives no unit" in refused.stderr
    day = document("day", model, "--profile", series, "--unit", "bit per step")
    assert day["l2_bps"] == pytest.approx([1e9 * (1 + hour) for hour in range(24)])


def test_a_synthetic_day_needs_a_size(tmp_path: Path) -> None:
    model = tmp_path / "server.power.toml"
    model.write_text(LINEAR, encoding="utf-8")
    done = routecast_("day", model, "--profile", "synthetic")
    assert done.returncode == 2
    assert "--peak" in done.stderr


def test_a_load_in_bit_s_keeps_its_bits_with_other_frames(tmp_path: Path) -> None:
    path = tmp_path / "four.router.toml"
    path.write_text(ROUTER.replace('"1 Mpps"', '"1 Gbit/s"'))
    in_bits = completed("power", "table", path, "--evaluator", "solve", "--frame", "512 B", "--json")
    # 512 + 20 B of gap and preamble (S1).
    path.write_text(ROUTER.replace('"1 Mpps"', f'"{1e9 / (8 * 532)!r} pps"'))
    in_frames = completed("power", "table", path, "--evaluator", "solve", "--frame", "512 B", "--json")
    assert in_bits.returncode == 0, in_bits.stderr
    assert in_bits.stdout == in_frames.stdout


def test_a_day_of_recorded_frames_is_that_of_the_file_that_names_them(router: Path, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(
        "time_s,frame_bytes,flow\n"
        + "".join(f"{number * number * 1e-9:.9f},594,{number % 3}\n" for number in range(500))
    )
    traced = tmp_path / "traced.router.toml"
    traced.write_text(ROUTER.partition("[load]")[0] + '[load]\narrivals = { kind = "trace", trace = "trace.csv" }\n')
    day = ("--profile", "abilene", "--step", "6 h", "--peak", "1 Gbit/s")
    by_file = document("day", traced, *day)
    by_option = document("day", router, *day, "--arrivals", tmp_path / "trace.csv")
    assert by_option["power_w"] == by_file["power_w"]
    assert len(set(by_file["power_w"])) == 4
    # The table has loads of its own, evenly spaced frames of the sizes that it is asked for.
    done = routecast_("table", traced, "--frame", "64 B")
    assert done.returncode == 0, done.stderr
    assert "64 B" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--load", "1 Mpps"), "--profile the loads of a day"),
        (("--flows", "7", "--profile", "abilene"), "--flows is of a router"),
    ],
)
def test_a_day_has_its_own_loads_and_a_power_model_no_flows(
    options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    model = tmp_path / "linear.power.toml"
    model.write_text(LINEAR, encoding="utf-8")
    done = routecast_("day", model, "--profile", "abilene", *options)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
