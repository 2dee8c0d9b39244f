"""A calibrated router is carried to another host by what functions cost on both, and its interval knows that."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import routecast
from routecast.calibration import fit
from routecast.calibration.carried import CARRIED_SD, carried, carry
from routecast.cli.run import run
from routecast.errors import ModelProblem
from routecast.evaluate.points import Point
from routecast.function.catalogue import read_function
from routecast.hardware.catalogue import read_hardware
from routecast.load.frames import FrameMix

HOST = "xeon-e5-2690v2"
FILE = Path(routecast.__file__).parent / "data" / "hardware" / f"{HOST}.hardware.toml"
POINTS = [Point(cores=k, frame_bytes=64.0, throughput_pps=1.7e6 * k, link_bps=1e11) for k in (1, 2, 4)]
FRAMES = FrameMix.fixed(64)


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """The same host at half its clock."""
    text = FILE.read_text().replace('name = "xeon-e5-2690v2"', 'name = "half"', 1)
    assert text.count('frequency = "3.6 GHz"') == 1
    path = tmp_path / "half.hardware.toml"
    path.write_text(text.replace('frequency = "3.6 GHz"', 'frequency = "1.8 GHz"'))
    return path


def test_on_the_same_host_nothing_changes_but_that_it_was_carried() -> None:
    here = read_hardware(HOST)
    change = carry(here, here, FRAMES)
    assert change.log_ratio == 0.0
    assert change.log_sd == pytest.approx(CARRIED_SD)
    fitted = fit(POINTS)
    (as_measured,), (moved,) = fitted.predict(POINTS[:1]), carried(fitted, change).predict(POINTS[:1])
    assert moved.throughput_pps == pytest.approx(as_measured.throughput_pps)
    # The interval is that of the carrying: ±2·0.15 in logarithms, and a little for the measurement.
    width = math.log(moved.high_pps / moved.low_pps)
    assert width == pytest.approx(2 * 1.96 * CARRIED_SD, rel=0.1)
    assert width > 4.0 * math.log(as_measured.high_pps / as_measured.low_pps)


def test_half_the_clock_forwards_half(half: Path) -> None:
    change = carry(read_hardware(HOST), read_hardware(half), FRAMES, function=read_function("l2_switch"))
    assert math.exp(change.log_ratio) == pytest.approx(2.0, rel=0.05)
    moved = carried(fit(POINTS), change)
    for prediction, point in zip(moved.predict(POINTS), POINTS, strict=True):
        assert prediction.throughput_pps == pytest.approx(point.throughput_pps / math.exp(change.log_ratio), rel=0.03)
    assert moved.service_s(1, 64.0) == pytest.approx(math.exp(change.log_ratio) / 1.7e6, rel=0.03)


def test_a_host_of_the_catalogue_carries_what_both_hosts_state_costs_of() -> None:
    here, there = read_hardware(HOST), read_hardware("xeon-platinum-8180")
    router = carry(here, there, FRAMES, function=read_function("ipv4_router"))
    # Cycles of an IPv4 router over the clock, on both: 56.4 + 134 + 61.4 by hand, and 36 + 134 + 40.
    assert math.exp(router.log_ratio) == pytest.approx((251.8 / 2.5) / (210.0 / 3.6), rel=1e-3)
    # Only the two routers and the balancer need no hash table, and functions of counted instructions say nothing.
    unknown = carry(here, there, FRAMES)
    assert "median of 3 functions" in unknown.why
    assert unknown.log_sd > router.log_sd
    with pytest.raises(ModelProblem, match="ht_lookup"):
        carry(here, there, FRAMES, function=read_function("l2_switch"))


def test_what_a_link_carries_does_not_change_with_the_host(half: Path) -> None:
    slow = [Point(cores=k, frame_bytes=1518.0, throughput_pps=min(k * 5e5, 1.6e6), link_bps=1e10) for k in (1, 2, 4, 8)]
    moved = carried(fit(slow), carry(read_hardware(HOST), read_hardware(half), FRAMES))
    (prediction,) = moved.predict([Point(cores=64, frame_bytes=1518.0, throughput_pps=math.nan, link_bps=1e10)])
    assert prediction.high_pps < 1.7e6  # two links of 812.7 kpps


def test_the_command_asks_for_more_cores_on_a_slower_host_and_for_two_measurements_there(
    half: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "points.csv"
    table.write_text("cores,throughput,link,shared_queue\n1,1.7 Mpps,100 Gbit/s,no\n8,13 Mpps,100 Gbit/s,no\n")
    arguments = ["size", str(table), "--target", "5 Mpps", "--confidence", "80%", "--json"]
    assert run(arguments) == 0
    (here,) = json.loads(capsys.readouterr().out)["series"]
    assert run([*arguments, "--host", HOST, "--on", str(half), "--on", HOST, "--function", "l2_switch"]) == 0
    slower, same = json.loads(capsys.readouterr().out)["series"]
    assert slower["least"]["cores"] > same["least"]["cores"] >= here["least"]["cores"]
    assert all("host" in count["outside"] for count in slower["counts"])
    assert len(slower["next"]) == 2
    assert any("carried" in text for text in slower["remarks"])


def test_where_nothing_carries_it_the_answer_is_not_known_and_says_what_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "points.csv"
    table.write_text("cores,throughput\n1,1.7 Mpps\n8,13 Mpps\n")
    assert run(["size", str(table), "--target", "5 Mpps", "--host", HOST, "--on", "epyc-7543"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "not known" in message
    assert "measure 1 core and 8 cores on it" in message
    for wrong in (["--host", HOST], ["--on", HOST], ["--host", "nowhere", "--on", HOST]):
        assert run(["size", str(table), "--target", "5 Mpps", *wrong]) == 2
        assert "Traceback" not in capsys.readouterr().err
