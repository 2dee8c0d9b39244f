"""Watts on the wire: the kernel's router in network namespaces, beside a log of watts that a thread writes."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from benchmark_fakes import profile_with

from routecast.benchmark import plan_of, read_profile, run_benchmark
from routecast.benchmark.bed_rig import BedRig
from routecast.benchmark.power_table import PowerTableSettings
from routecast.benchmark.power_wire import wire_power_table
from routecast.errors import CriterionFailed, EnvironmentProblem
from routecast.load import FlowSet, FrameMix, OfferedLoad
from routecast.testbed import open_testbed

pytestmark = pytest.mark.wire
NAME = f"watts{os.getpid() % 100_000}"
"""Of the test bed: others run these tests at the same time."""
LEAST_W, MOST_W = 80.0, 90.0
WIRE_BPS = 100e6


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Path]:
    """A test bed's file whose meter is a log that grows while the test runs."""
    log, done = tmp_path / "pdu.csv", threading.Event()
    log.write_text("time,watts\n", encoding="utf-8")

    def write() -> None:
        while not done.wait(0.02):
            with log.open("a", encoding="utf-8") as file:
                watts = LEAST_W + (MOST_W - LEAST_W) * (time.time() % 1.0)
                file.write(f"{time.time():.6f},{watts:.3f}\n")

    writer = threading.Thread(target=write)
    writer.start()
    file = tmp_path / "watts.testbed.toml"
    file.write_text(
        f'name = "{NAME}"\nkind = "namespaces"\nwire = "100 Mbit/s"\n[power]\nmeter = "csv:{log}"\nscope = "wall"\n',
        encoding="utf-8",
    )
    try:
        yield file
    finally:
        done.set()
        writer.join()
    there = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert f"rc-{NAME}-" not in there


def test_the_table_of_a_real_router_has_its_meters_watts_in_every_line(bed: Path) -> None:
    load = OfferedLoad(rate_pps=1.0, frames=FrameMix.fixed(512), flows=FlowSet.crafted(2, ports=2))
    try:
        with open_testbed(bed, device="linux", retries=9) as measure:
            table = wire_power_table(measure, load, settings=PowerTableSettings(stabilise_s=0.1))
    except (CriterionFailed, EnvironmentProblem) as problem:
        pytest.skip(f"the test bed cannot be used here: {problem}")
    assert (table.scope, table.evaluator) == ("wall", "measure")
    _, idle, plus, *loaded = table.rows
    for row in (idle, plus, *loaded):
        assert LEAST_W <= row.power_w <= MOST_W
    assert idle.intended_pps == 0.0
    assert plus.intended_pps == 2.0
    # No more can come back than the wires of both ports carry (S1).
    most_pps = 2 * WIRE_BPS / (8 * (512 + 20))
    assert 0.0 < table.throughput_pps <= most_pps * (1.0 + 1e-9)
    for row in loaded:
        assert row.packet_j * row.forwarded_pps == pytest.approx(row.power_w)
        assert row.intended_pps == pytest.approx(row.load_ratio * table.throughput_pps, rel=1e-3)


def test_a_benchmark_keeps_the_watts_of_the_meter_of_the_test_beds_file(bed: Path, tmp_path: Path) -> None:
    import polars

    goal = replace(read_profile("quick").throughput.goal[-1], width=0.2)
    patient = profile_with(trial={"attempts": 10}, throughput={"goal": (goal,), "base_goal": ""})
    out = tmp_path / "out"
    try:
        result = run_benchmark(plan_of(patient, procedures=("throughput",)), BedRig(bed, device="linux"), out=out)
    except EnvironmentProblem as problem:
        pytest.skip(f"the test bed cannot be used here: {problem}")
    table = polars.read_parquet(out / "trials.parquet")
    metered = table.filter(polars.col("power_mean_w").is_not_null())
    assert len(metered) == len(table)
    assert metered["power_mean_w"].is_between(LEAST_W, MOST_W).all()
    assert set(metered["power_scope"]) == {"wall"}
    assert result.throughput is not None
    row = result.throughput.rows[0]
    if row.outcome in {"found", "maximum"}:
        assert row.power is not None
        assert row.power.packet_j == pytest.approx(row.power.mean_w / row.throughput_pps, rel=0.01)
        assert "the wall" in result.throughput.watts
    assert "pdu.csv" in str(result.setup.tester["power"])
