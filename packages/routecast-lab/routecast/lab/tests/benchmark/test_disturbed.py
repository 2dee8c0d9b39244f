"""Notes of trials reach whoever reads the benchmark: other work on the machine, and why trials were invalid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("polars")

import polars
from benchmark_fakes import LINK_BPS, Faulty, Fluid, profile_with

from routecast.evaluate.ledger import read_rows
from routecast.evaluate.trial import Bottleneck, Trial
from routecast.lab.benchmark import PlainRig, plan_of, run_benchmark
from routecast.lab.benchmark._findings import disturbances_of, limits_of, reasons_of
from routecast.lab.benchmark.journal import COLUMNS, TrialRecord
from routecast.lab.benchmark.page import benchmark_page
from routecast.lab.benchmark.values import BenchmarkResult
from routecast.load import OfferedLoad
from routecast.show.page import render_page

TOOK = "core 1 (dut): other work took {} % of the time"
KEPT = "core 1 (dut): the device was ready and did not run for {} % of the time, for other work had its core"


def records(*trials: Trial) -> list[TrialRecord]:
    return [
        TrialRecord(
            number=number,
            procedure="throughput",
            stream="IPv4",
            frame_bytes=64,
            purpose="search 1",
            attempt=1,
            rate_pps=1e5,
            trial=trial,
        )
        for number, trial in enumerate(trials, 1)
    ]


def measured(**changes: object) -> Trial:
    trial = Fluid(2e6, queue_frames=256).trial(OfferedLoad(rate_pps=1e5), 1.0)
    return replace(trial, **{"evaluator": "measure", **changes})  # type: ignore[arg-type]


class Beside(Faulty):
    """A device on a machine whose other work is said in each trial."""

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        return replace(Faulty.trial(self, load, duration_s), evaluator="measure", notes=(TOOK.format(99.8),))


def run(out: Path | None = None, **fake: object) -> BenchmarkResult:
    evaluator = Beside(2e6, queue_frames=256, **fake)  # type: ignore[arg-type]
    return run_benchmark(plan_of(profile_with()), PlainRig(evaluator=evaluator, link=LINK_BPS), out=out)


def test_disturbances_are_counted_by_kind_with_the_worst() -> None:
    seen = records(*(measured(notes=(TOOK.format(share),)) for share in (18, 99.8, 35)), measured())
    first, worst = disturbances_of(seen)
    assert first.startswith("other work on this machine disturbed 3 of 4 trials")
    assert "3 of these trials are valid" in first
    assert worst == f"3 of 4 trials, at worst: {TOOK.format(99.8)}"
    assert disturbances_of(records(measured())) == ()
    assert disturbances_of(records(measured(evaluator="simulate", notes=(TOOK.format(50),)))) == ()


def test_reasons_of_invalid_trials_are_counted() -> None:
    seen = records(*(measured(invalid=(KEPT.format(share),)) for share in (7, 42, 9)))
    assert reasons_of(seen) == (f"3 of 3 trials, at worst: {KEPT.format(42)}",)


def test_a_disturbed_run_says_so_in_json_on_the_page_and_in_the_table_of_trials(tmp_path: Path) -> None:
    result = run(tmp_path)
    notice = f"other work on this machine disturbed {len(result.trials)} of {len(result.trials)} trials"
    disturbed = result.to_json()["disturbed"]
    assert isinstance(disturbed, list)
    assert disturbed[0].startswith(notice)
    page = render_page(benchmark_page(result))
    assert page.index(notice[1:]) < page.index("<table")
    assert result.limits
    assert "What limits" in page
    rows = read_rows(tmp_path, COLUMNS, table="trials")
    assert {row["notes"] for row in rows} == {TOOK.format(99.8)}


def test_what_limits_is_what_most_trials_with_loss_name() -> None:
    def lossy(name: str, reason: str = "") -> Trial:
        return measured(loss_ratio=0.1, bottleneck=Bottleneck(name=name, kind="pool", reason=reason))

    seen = records(lossy("core 1", "first"), measured(), lossy("ring"), lossy("core 1", "last"))
    (limit,) = limits_of(seen)
    assert (limit.name, limit.reason, limit.trials, limit.of_trials) == ("core 1", "last", 2, 3)
    assert limits_of(records(measured())) == ()


def test_a_device_kept_from_running_is_not_taken_for_a_slow_tester(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routecast.lab.benchmark.stage._WAIT_AFTER_OTHER_WORK_S", 0.0)
    result = run(fails=lambda rate_pps, number: KEPT.format(40) if number <= 6 else "")
    assert not any("the tester reaches" in note for note in result.notes)
    assert result.invalid_trials == 6
    assert result.invalid_reasons == (f"6 of {len(result.trials)} trials, at worst: {KEPT.format(40)}",)


def test_a_table_of_trials_without_the_notes_can_still_be_read(tmp_path: Path) -> None:
    run(tmp_path)
    path = tmp_path / "trials.parquet"
    polars.read_parquet(path).drop("notes").write_parquet(path)
    assert {row["notes"] for row in read_rows(tmp_path, COLUMNS, table="trials")} == {None}
