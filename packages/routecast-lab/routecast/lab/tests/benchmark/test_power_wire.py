"""Watts on the wire: the kernel's router in network namespaces, beside a log of watts that a thread writes."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmark_fakes import profile_with

from routecast.errors import CriterionFailed, ModelProblem
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark import plan_of, read_profile, run_benchmark
from routecast.lab.benchmark.bed_rig import BedRig
from routecast.lab.power.table import PowerTable, PowerTableSettings
from routecast.lab.power.wire import wire_power_table
from routecast.lab.testbed import Measure, open_testbed
from routecast.load import FlowSet, FrameMix, OfferedLoad

pytestmark = pytest.mark.wire
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
    file, name = tmp_path / "watts.testbed.toml", f"p{os.getpid() % 100_000}-{time.monotonic_ns() % 10_000}"
    file.write_text(
        f'name = "{name}"\nkind = "namespaces"\nwire = "100 Mbit/s"\n[power]\nmeter = "csv:{log}"\nscope = "wall"\n',
        encoding="utf-8",
    )
    try:
        yield file
    finally:
        done.set()
        writer.join()
    there = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert f"rc-{name}-" not in there


def test_the_table_of_a_real_router_has_its_meters_watts_in_every_line(
    bed: Path, undisturbed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    trials: list[Trial] = []
    measure_trial = Measure.trial

    def kept(evaluator: Measure, *arguments: Any) -> Trial:
        trials.append(measure_trial(evaluator, *arguments))
        return trials[-1]

    monkeypatch.setattr(Measure, "trial", kept)
    load = OfferedLoad(rate_pps=1.0, frames=FrameMix.fixed(512), flows=FlowSet.crafted(2, ports=2))

    def run() -> PowerTable | str:
        trials.clear()
        try:
            with open_testbed(bed, device="linux", retries=9) as measure:
                return wire_power_table(measure, load, settings=PowerTableSettings(stabilise_s=0.1))
        except (CriterionFailed, ModelProblem) as problem:  # no trial of a line was valid, or every rate loses
            return str(problem)

    def judge(table: PowerTable | str) -> None:
        assert isinstance(table, PowerTable), table
        assert table.throughput_pps > 0.0

    table = undisturbed(run, judge, trials=lambda _: trials, attempts=3)
    assert (table.scope, table.evaluator) == ("wall", "measure")
    _, idle, plus, *loaded = table.rows
    for row in (idle, plus, *loaded):
        assert LEAST_W <= row.power_w <= MOST_W
    assert idle.intended_pps == 0.0
    assert plus.intended_pps == 2.0
    # No more can come back than the wires of both ports carry (S1).
    max_pps = 2 * WIRE_BPS / (8 * (512 + 20))
    assert table.throughput_pps <= max_pps * (1.0 + 1e-9)
    for row in loaded:
        assert row.packet_j * row.forwarded_pps == pytest.approx(row.power_w)
        assert row.intended_pps == pytest.approx(row.load_ratio * table.throughput_pps, rel=1e-3)


def test_a_benchmark_keeps_the_watts_of_the_meter_of_the_test_beds_file(bed: Path, tmp_path: Path) -> None:
    import polars

    goal = replace(read_profile("quick").throughput.goal[-1], width=0.2)
    patient = profile_with(trial={"attempts": 10}, throughput={"goal": (goal,), "base_goal": ""})
    out = tmp_path / "out"
    result = run_benchmark(plan_of(patient, procedures=("throughput",)), BedRig(bed, device="linux"), out=out)
    # Trials over the wire without the device have no watts: they would not be the device's.
    table = polars.read_parquet(out / "trials.parquet").filter(polars.col("procedure") != "floor")
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
