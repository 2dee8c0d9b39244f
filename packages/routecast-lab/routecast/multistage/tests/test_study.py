"""Prediction, then failures: on a bench of simulated routers of known truth, and small on real ones."""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars
import pytest

from routecast.errors import FileProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.trial import Trial
from routecast.lab.testbed.measure import Measure
from routecast.load.offered import OfferedLoad
from routecast.multistage._model import FlowChoices, deaths_of, model_of, udp_flows
from routecast.multistage.device import MultistageDevice, MultistageOptions
from routecast.multistage.study.document import MultistageStudy
from routecast.multistage.study.run import MultistageResult, RouterSetting
from routecast.multistage.study.views import latency_table
from routecast.router.events import Event
from routecast.study.document import StudyFile
from routecast.study.engine import run_study, terminal_summary
from routecast.study.reading import find_study, read_study

STUDY = """
kind = "multistage"
name = "small"
title = "A small study"

[routers]
count = [1, 2]
cap = "5 kpps"
flows = 256

[trials]
duration = "600 ms"
repeats = 2

[[failure]]
name = "hang"
title = "One hangs"
kind = "router-hang"
routers = 3
at = "200 ms"
away = "200 ms"

[criteria]
throughput = 0.05
loss = 0.1
"""


def study_file(text: str = STUDY, folder: Path = Path()) -> StudyFile[MultistageStudy]:
    study = MultistageStudy.model_validate(tomllib.loads(text))
    return StudyFile(study=study, path=folder / "x.study.toml")


@dataclass
class SimulatedRouter:
    """A router with other flows than those of the study, so that the prediction is of another router."""

    setting: RouterSetting
    reset_kinds: tuple[str, ...] = ("router-hang",)

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        return self._trial(load, duration_s)

    def reset_trial(self, load: OfferedLoad, duration_s: float, *, kind: str, at_s: float) -> Trial:
        assert kind in self.reset_kinds
        return self._trial(load, duration_s, at_s=at_s)

    def _trial(self, load: OfferedLoad, duration_s: float, at_s: float | None = None) -> Trial:
        cap_pps = self.setting.cap_pps or 1_000_000
        file = MultistageDevice(MultistageOptions(routers=self.setting.routers, cap_pps=cap_pps)).planned()
        flows = FlowChoices.of(file, udp_flows(file, len(load.flows.flows)))
        model = model_of(file, flows)
        events: tuple[Event, ...] = ()
        if at_s is not None:
            events = deaths_of(model, file, flows, [file.router[-1].name], rate_pps=load.rate_pps, at_s=at_s).events
        return Simulate(model, events=events, steady_state=False, over_time=True).trial(load, duration_s)


class SimulatedBench:
    """Simulated routers; the bench is interrupted after ``max_routers`` of them."""

    def __init__(self, max_routers: int = 100) -> None:
        self.routers_left = max_routers

    @contextmanager
    def device(self, setting: RouterSetting) -> Iterator[SimulatedRouter]:
        if self.routers_left == 0:
            raise KeyboardInterrupt
        self.routers_left -= 1
        yield SimulatedRouter(setting)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> MultistageResult:
    return run_study(study_file(), tmp_path_factory.mktemp("small"), bench=SimulatedBench())


def test_throughput_and_loss_come_out_as_predicted(result: MultistageResult) -> None:
    assert [row.conditions for row in result.throughput] == [1, 2]
    assert result.throughput_error_ratio < 0.02
    (dead,) = result.failures
    assert dead.victims == ("br2",)
    # Its flows are others, so it has another share of them; the time to detect is nearly the same.
    assert dead.away_s * dead.share / dead.predicted_away_s == pytest.approx(1 / 3, rel=0.3)
    assert dead.simulated_frames == pytest.approx(dead.predicted, rel=0.05)


def test_latencies_name_the_arrivals_of_their_trials(result: MultistageResult) -> None:
    """The trials send at a constant rate; latencies of other arrivals would say so."""
    assert "Latency: with evenly spaced arrivals." in latency_table(result).caption
    random = replace(result, latency=tuple(replace(row, arrivals="Poisson arrivals") for row in result.latency))
    assert "Latency: with Poisson arrivals." in latency_table(random).caption
    assert set(polars.read_parquet(result.out / "results.parquet")["arrivals"]) == {"evenly spaced arrivals"}


def test_the_prediction_stands_before_the_first_failure(result: MultistageResult) -> None:
    prediction = json.loads((result.out / "prediction.json").read_text())
    assert prediction["written"] == result.prediction_written <= result.first_failure
    assert prediction["failures"][0]["lost_frames"] == pytest.approx(result.failures[0].predicted)
    rates = [rate for _, rate in prediction["failures"][0]["forwarded_pps_over_time"]]
    assert min(rates) < 0.9 * max(rates)


def test_its_folder_has_the_rate_through_the_failure(result: MultistageResult) -> None:
    assert {item.name for item in (result.out / "figures").iterdir()} == {"throughput.svg", "failure-hang.svg"}
    page = (result.out / "report.html").read_text()
    assert "emulation" in page
    assert [table.name for table in terminal_summary(result).tables] == [
        "throughput",
        "latency",
        "failures",
        "prior_knowledge",
    ]


def test_a_killed_study_goes_on_and_keeps_its_prediction(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_study(study_file(), tmp_path, bench=SimulatedBench(max_routers=2))
    written = json.loads((tmp_path / "prediction.json").read_text())["written"]
    kept = len(polars.read_parquet(tmp_path / "results.parquet"))
    assert 0 < kept < 14
    result = run_study(study_file(), tmp_path, bench=SimulatedBench())
    assert result.provenance.resumed_trials == kept
    assert result.prediction_written == written


@pytest.mark.parametrize(
    ("text", "new", "place"),
    [
        ("[1, 2]", "[1, 1]", r"routers\.count\[1\]: 1 is listed twice"),
        ("[1, 2]", "[65]", r"routers\.count\[0\]"),
        ("flows = 256", "flows = 4096\n[routers.x]", r"routers\.x"),
        ("count = [1, 2]", "count = [64]", None),
        ('count = [1, 2]\ncap = "5 kpps"\nflows = 256', 'count = [64]\ncap = "5 kpps"\nflows = 4096', r"262,144 flows"),
        ('cap = "5 kpps"', "", r"routers\.cap"),
        ('"router-hang"', '"router-melt"', r"failure\[0\]\.kind"),
        ('"router-hang"\nrouters = 3', '"routers-hang"\nrouters = 2', r"failure\[0\]\.routers: 2 is below 3"),
        ('at = "200 ms"', 'at = "700 ms"', r"failure\[0\]\.at: is not within the trial"),
        ("[trials]", '[trials]\ntestbed = "nowhere.testbed.toml"', r"trials\.testbed: there is no file"),
        (
            "[criteria]",
            '[[failure]]\nname = "hang"\ntitle = ""\nkind = "router-link"\n[criteria]',
            r"failure\[1\]\.name",
        ),
    ],
)
def test_a_wrong_study_is_refused_with_its_place(tmp_path: Path, text: str, new: str, place: str | None) -> None:
    path = tmp_path / "wrong.study.toml"
    assert text in STUDY
    path.write_text(STUDY.replace(text, new, 1))
    if place is None:
        read_study(path)
        return
    with pytest.raises(FileProblem, match=place):
        read_study(path)


def test_the_shipped_study_has_every_kind_of_element_fail() -> None:
    study = read_study(find_study("multistage_real")).study
    assert isinstance(study, MultistageStudy)
    assert {failure.elements for failure in study.failure} == {"router", "routers", "balancer"}


@pytest.mark.wire
def test_on_the_wire_a_death_loses_what_was_predicted(
    tmp_path: Path, undisturbed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bed.testbed.toml").write_text(f'name = "q{os.getpid() % 100_000}"\nkind = "namespaces"\n')
    text = STUDY.replace("[trials]", '[trials]\ntestbed = "bed.testbed.toml"').replace("[1, 2]", "[2]")
    study = study_file(text.replace("repeats = 2", "repeats = 1"), tmp_path)
    trials: list[Trial] = []

    def kept(trial_of: Callable[..., Trial]) -> Callable[..., Trial]:
        def trial(*arguments: Any, **options: Any) -> Trial:
            trials.append(trial_of(*arguments, **options))
            return trials[-1]

        return trial

    for name in ("trial", "reset_trial"):
        monkeypatch.setattr(Measure, name, kept(getattr(Measure, name)))
    folders = (tmp_path / f"out {number}" for number in itertools.count())

    def run() -> MultistageResult:
        trials.clear()
        return run_study(study, next(folders))

    def judge(result: MultistageResult) -> None:
        # A router forwards no more than its caps and its queues; a death loses what is sent within T, or the detector
        # lies. A trial that other work made invalid measured neither.
        (two,), (dead,) = result.throughput, result.failures
        assert two.measured <= 1.02 * two.predicted
        assert dead.measured >= 0.9 * dead.share * dead.load_pps * 0.05

    result = undisturbed(run, judge, trials=lambda _: trials, attempts=4)
    assert result.facts["device"]["name"] == "multistage"
    assert json.loads((result.out / "summary.json").read_text())["prediction_written"] < result.first_failure
