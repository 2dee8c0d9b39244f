"""The closed loop on a real test bed, small: what is asserted is physics, not how well this machine repeats itself."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from routecast.errors import EnvironmentProblem, FitProblem
from routecast.evaluate.trial import Trial
from routecast.lab.study.document import WireStudy
from routecast.lab.study.measure import TestbedBench
from routecast.lab.study.run import WireResult
from routecast.lab.testbed import Measure
from routecast.study.document import StudyFile
from routecast.study.engine import run_study

BED = f'name = "s{os.getpid() % 100_000}"\nkind = "namespaces"\nwire = "100 Gbit/s"\n'
STUDY = """
kind = "wire"
name = "wire"
title = "A small study on the wire"

[testbed]
file = "bed.testbed.toml"
duration = "100 ms"
repeats = 1

[[throughput]]
name = "slow"
title = "Slowed down"
device = "linux"
factor = "slowdown"
values = [500, 2000, 5000]
calibrate = [500, 5000]

[[loss]]
series = "slow"
value = 2000
offered = [0.3, 3.0]

[[latency]]
series = "slow"
value = 5000
loads = [0.1, 0.5]
calibrate = [0.1]
"""


@pytest.mark.wire
def test_more_work_forwards_less_and_overload_loses_what_is_over(
    tmp_path: Path, undisturbed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bed.testbed.toml").write_text(BED)
    study = WireStudy.model_validate(tomllib.loads(STUDY))
    trials: list[Trial] = []
    measure_trial = Measure.trial

    def kept(evaluator: Measure, *arguments: Any) -> Trial:
        trials.append(measure_trial(evaluator, *arguments))
        return trials[-1]

    monkeypatch.setattr(Measure, "trial", kept)
    folders = (tmp_path / f"out {number}" for number in count())

    def run() -> WireResult | str:
        trials.clear()
        bench = TestbedBench(study.testbed.file, tmp_path)
        try:
            return run_study(StudyFile(study=study, path=Path("x.study.toml")), next(folders), bench=bench)
        except (FitProblem, EnvironmentProblem) as problem:  # no law goes through its points, or a trial is no result
            return str(problem)

    def judge(result: WireResult | str) -> None:
        assert isinstance(result, WireResult), result
        rates = [row.measured for row in result.series[0].rows]
        assert rates[0] > rates[1] > rates[2] > 10_000.0
        assert result.series[0].law.per_work_s > 0.0
        light, heavy = result.loss[0].rows
        assert light.measured < 0.2
        assert 0.4 < heavy.measured < 0.9
        assert heavy.predicted > 0.5
        assert all(row.measured > result.series[0].law.per_work_s * 5000 for row in result.latency[0].rows)

    result = undisturbed(run, judge, trials=lambda _: trials, attempts=3)
    assert "linux" in result.facts
    assert (result.out / "report.html").exists()
