"""Watts of a benchmark: in its journal, in its rows and on its pages, after an interruption too."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("polars")

from benchmark_fakes import LINK_BPS, Fluid, profile_with

from routecast.errors import EnvironmentProblem
from routecast.evaluate.trial import TaskActivity, Trial, TrialPower
from routecast.lab.benchmark import BenchmarkResult, PlainRig, plan_of, run_benchmark
from routecast.lab.benchmark.bed_rig import BedRig
from routecast.lab.benchmark.journal import read_trial
from routecast.lab.benchmark.page import benchmark_page
from routecast.lab.benchmark.tables import benchmark_tables
from routecast.load import OfferedLoad
from routecast.show.page import render_page

IDLE_W, FRAME_J = 40.0, 10e-6


@dataclass(slots=True)
class Heater(Fluid):
    """Draws watts when idle and joules for each forwarded frame; fails at trial number ``breaks_at``."""

    breaks_at: int = 0

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        if self.breaks_at and len(self.trials) >= self.breaks_at:
            raise KeyboardInterrupt
        trial = Fluid.trial(self, load, duration_s)
        mean_w = IDLE_W + FRAME_J * trial.forwarded_pps
        power = TrialPower(
            mean_w=mean_w,
            scope="wall",
            energy_j=mean_w * duration_s,
            packet_j=mean_w / trial.forwarded_pps,
            bit_j=math.nan,
            source="fake",
        )
        return replace(trial, power=power, activity=(TaskActivity(name="forward", busy_ratio=0.5),))


def run(out: Path | None, evaluator: Fluid | None = None) -> BenchmarkResult:
    plan = plan_of(profile_with(), procedures=("throughput", "frame_loss"))
    return run_benchmark(plan, PlainRig(evaluator=evaluator or Heater(2e6), link=LINK_BPS), out=out)


def test_the_watts_of_a_row_are_those_at_its_throughput() -> None:
    result = run(None)
    assert result.throughput is not None
    for row in result.throughput.rows:
        assert row.power is not None
        # What is forwarded at a goal with loss is a little less than what is offered.
        assert row.power.mean_w == pytest.approx(IDLE_W + FRAME_J * row.conditional_pps, rel=1e-4)
        assert row.power.packet_j * row.conditional_pps == pytest.approx(row.power.mean_w, rel=1e-4)
    assert result.throughput.watts == "Power: of the wall (fake), in a trial at the throughput."
    assert not [note for note in result.notes if "watts" in note]


def test_the_table_of_trials_has_their_watts(tmp_path: Path) -> None:
    import polars

    result = run(tmp_path)
    table = polars.read_parquet(tmp_path / "trials.parquet")
    for row, record in zip(table.sort("number").to_dicts(), result.trials, strict=True):
        assert record.trial.power is not None
        assert row["power_mean_w"] == record.trial.power.mean_w
        assert row["power_packet_j"] == record.trial.power.packet_j
        assert (row["power_scope"], row["power_source"]) == ("wall", "fake")
        again = read_trial(row["trial"])
        assert isinstance(again.power, TrialPower)
        assert math.isnan(again.power.bit_j)
        assert again.activity[0].busy_ratio == 0.5
        assert again.to_json() == record.trial.to_json()


def test_the_published_schema_knows_the_watts_of_a_row(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    run(tmp_path)
    document = json.loads((tmp_path / "benchmark.json").read_text(encoding="utf-8"))
    schema = json.loads((files("routecast") / "data/schemas/benchmark.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["throughput"]["rows"][0]["power"]["scope"] == "wall"


def test_an_interrupted_run_keeps_its_watts(tmp_path: Path) -> None:
    whole = run(None)
    assert whole.throughput is not None
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Heater(2e6, breaks_at=len(whole.trials) - 1))
    resumed = run(tmp_path, Heater(2e6))
    assert resumed.resumed_trials == len(whole.trials) - 1
    assert resumed.throughput is not None
    assert resumed.to_json()["throughput"] == whole.to_json()["throughput"]


def test_tables_and_the_report_show_watts_and_joules_with_their_scope_only_where_there_are_some() -> None:
    result, cold = run(None), run(None, Fluid(2e6))
    assert result.throughput is not None
    power = result.throughput.rows[0].power
    assert power is not None
    first = next(iter(benchmark_tables(result)))
    assert [column.title for column in first.columns][-2:] == ["Power", "Packet"]
    assert first.rows[0][-2:] == (power.mean_w, 1e6 * power.packet_j)
    assert "the wall (fake)" in first.caption
    page = render_page(benchmark_page(result))
    assert "uJ a packet (wall)" in page
    assert "Power: of the wall (fake)" in page
    titles = [column.title for column in next(iter(benchmark_tables(cold))).columns]
    assert "Power" not in titles
    assert "uJ a packet" not in render_page(benchmark_page(cold))


@dataclass(slots=True)
class Unmetered(Fluid):
    """Has no meter, and says so on each trial as a test bed does."""

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        return replace(Fluid.trial(self, load, duration_s), notes=("no power here, because: rapl: not there",))


def test_a_run_whose_trials_have_no_watts_says_why_once() -> None:
    result = run(None, Unmetered(2e6))
    results = [note for note in result.notes if "no watts" in note]
    count = len(result.trials)
    assert results == [f"{count} of {count} trials have no watts: no power here, because: rapl: not there"]


def bed_file(folder: Path, power: str) -> Path:
    file = folder / "metered.testbed.toml"
    file.write_text(f'name = "metered"\nkind = "namespaces"\n[power]\nmeter = "{power}"\n', encoding="utf-8")
    return file


def opened_with(rig: BedRig, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the meters with which the rig opens its test bed, which this stands in for."""
    meters: list[object] = []

    class Opened:
        def __enter__(self) -> SimpleNamespace:
            return SimpleNamespace(facts=lambda: {"device": {}})

        def __exit__(self, *_: object) -> None:
            pass

    def open_testbed(testbed: object, *, power: str | None, **_: object) -> Opened:
        meters.append(power)
        return Opened()

    monkeypatch.setattr("routecast.lab.benchmark.bed_rig.open_testbed", open_testbed)
    with rig:
        rig._ready("")
    return meters


def test_the_meter_of_the_file_or_of_the_command_is_tried_before_the_test_bed_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "pdu.csv"
    for given in (None, f"csv:{log}"):
        rig = BedRig(bed_file(tmp_path, f"csv:{log}" if given is None else "rapl"), device="linux", power=given)
        log.unlink(missing_ok=True)
        with pytest.raises(EnvironmentProblem, match=r"pdu\.csv.*cannot be read"):
            opened_with(rig, monkeypatch)
        log.write_text("time,watts\n2100-01-01T00:00:00Z,80\n", encoding="utf-8")
        assert opened_with(rig, monkeypatch) == [given]
    other = BedRig(bed_file(tmp_path, "rapl"), device="linux", power="none")
    assert opened_with(other, monkeypatch) == ["none"]
    assert other.identity != BedRig(bed_file(tmp_path, "rapl"), device="linux").identity
