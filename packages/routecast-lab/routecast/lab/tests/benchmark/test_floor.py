"""The floor of the machine stands beside the throughput and enters no figure of the device."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

pytest.importorskip("polars")

from benchmark_fakes import LINE_PPS, LINK_BPS, Faulty, Fluid, profile_with
from test_confirmation import CAPACITY_PPS, Broken, Tiring

from routecast.errors import EnvironmentProblem
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark import BenchmarkResult, PlainRig, plan_of, run_benchmark
from routecast.lab.benchmark.exchange._benchmark import read_journal
from routecast.lab.benchmark.page import benchmark_page
from routecast.lab.benchmark.procedures.throughput import ThroughputRow, floor_text
from routecast.load import OfferedLoad


@dataclass(slots=True)
class Leaking(Fluid):
    """A wire that loses a share of all frames."""

    share: float = 0.0

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        made = Fluid.trial(self, load, duration_s)
        assert made.offered_frames is not None
        return self._made(load, duration_s, made.offered_frames, round(self.share * made.offered_frames))


class Failing:
    """A wire that cannot be made."""

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        raise EnvironmentProblem("no namespaces")


def run(
    device: Fluid, wire: Evaluator | None, *procedures: str, out: Path | None = None, **tables: dict[str, object]
) -> BenchmarkResult:
    plan = plan_of(profile_with(**tables), procedures=procedures)
    return run_benchmark(plan, PlainRig(evaluator=device, link=LINK_BPS, wire=wire, kind="measure"), out=out)


def base(result: BenchmarkResult) -> ThroughputRow:
    row = result.throughput.rows[0]
    assert isinstance(row, ThroughputRow)
    return row


def without_floor(result: BenchmarkResult) -> dict[str, object]:
    rows = tuple(
        replace(row, floor_loss_ratio=math.nan, floor_missed_loss_ratio=math.nan, floor_reason="")
        for row in result.throughput.rows
    )
    results = {**result.by_procedure, "throughput": replace(result.throughput, rows=rows)}
    return replace(
        result, by_procedure=results, elapsed_s=0.0, started_utc="", notes=(), profile={}, trials=()
    ).to_json()


def test_the_wire_is_tried_once_at_the_rate_and_length_of_the_throughput() -> None:
    wire = Leaking(LINE_PPS, share=0.0002)
    result = run(Fluid(CAPACITY_PPS), wire, "latency", "recovery")
    row = base(result)
    # The latency trials of the profile "quick" are the longest at the throughput: 0.3 s.
    assert wire.trials == [(row.throughput_pps, 0.3)]
    assert row.floor_loss_ratio == pytest.approx(0.0002, rel=0.01)
    assert row.floor_reason == ""
    assert math.isnan(result.throughput.rows[1].floor_loss_ratio)
    assert floor_text(row) == "a wire without a device lost 0.02 % at this rate in the same minutes"
    assert "A wire without a device lost 0.02 %" in benchmark_page(result).answer


def test_what_the_wire_loses_changes_no_figure_of_the_device(tmp_path: Path) -> None:
    lossy = run(Fluid(CAPACITY_PPS), Leaking(LINE_PPS, share=0.3), out=tmp_path)
    alone = run(Fluid(CAPACITY_PPS), None)
    assert without_floor(lossy) == without_floor(alone)
    assert base(lossy).confirmed == "yes"
    assert [record.procedure for record in lossy.trials].count("floor") == 1
    # What reads the trials for other tools does not take it for a trial of the device.
    assert len(read_journal(tmp_path / "trials.parquet")) == len(lossy.trials) - 1


@pytest.mark.parametrize(("share", "is_the_machines"), [(0.0, False), (0.001, False), (0.005, True), (0.1, True)])
def test_a_loss_that_is_not_above_the_floor_is_the_machines(share: float, is_the_machines: bool) -> None:
    """The device loses 0.5 % in long trials above 0.9 Mpps."""
    result = run(Tiring(CAPACITY_PPS), Leaking(LINE_PPS, share=share), "latency")
    row = base(result)
    assert row.confirmed == "lowered"
    assert row.missed_loss_ratio == pytest.approx(0.005, rel=0.01)
    assert row.floor_missed_loss_ratio == pytest.approx(share, rel=0.01)
    assert ("is the machine's, not the device's" in floor_text(row)) is is_the_machines


def test_a_run_that_goes_on_does_not_repeat_the_trial_over_the_wire(tmp_path: Path) -> None:
    first, second = Leaking(LINE_PPS, share=0.01), Leaking(LINE_PPS, share=0.5)
    with pytest.raises(Broken):
        run(Tiring(CAPACITY_PPS, share=0.0, breaks=True), first, "latency", "recovery", out=tmp_path)
    assert len(first.trials) == 1
    row = base(run(Tiring(CAPACITY_PPS, share=0.0), second, "latency", "recovery", out=tmp_path))
    assert second.trials == []
    assert row.floor_loss_ratio == pytest.approx(0.01, rel=0.01)


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        (Failing(), "the wire without a device failed: no namespaces"),
        (Faulty(LINE_PPS, fails=lambda rate_pps, number: "late"), "was invalid"),
        (None, "there is no machine"),
    ],
)
def test_where_the_wire_says_nothing_the_floor_is_not_known(
    wire: Evaluator | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    result = run(Fluid(CAPACITY_PPS), wire, "throughput")
    row = base(result)
    assert math.isnan(row.floor_loss_ratio)
    assert reason in row.floor_reason
    assert floor_text(row) == ""
    assert any("the floor of the machine is not known" in note and reason in note for note in result.notes)
    assert result.to_json()["throughput"]["rows"][0]["floor_loss_ratio"] is None  # type: ignore[index]


def test_a_profile_leaves_the_wire_out() -> None:
    wire = Leaking(LINE_PPS)
    row = base(run(Fluid(CAPACITY_PPS), wire, "throughput", trial={"floor": False}))
    assert wire.trials == []
    assert "floor = false" in row.floor_reason
