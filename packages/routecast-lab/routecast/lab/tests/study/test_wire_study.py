"""The closed loop on a simulated bench of known truth: what is measured calibrates, what is predicted comes true."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import polars
import pytest
from simulated_bench import BASE_S, PER_ITERATION_S, WAKEUP, SimulatedBench

from routecast.errors import FileProblem, FitProblem
from routecast.lab.study.document import WireStudy
from routecast.lab.study.measure import SeriesNotOverloaded, SlowedBy
from routecast.lab.study.run import WireResult
from routecast.lab.study.views import latency_figure, latency_table
from routecast.study.document import StudyFile
from routecast.study.engine import run_study, terminal_summary
from routecast.study.reading import find_study, read_study

pytestmark = pytest.mark.slow


STUDY = """
kind = "wire"
name = "small"
title = "A small study"

[testbed]
duration = "200 ms"
repeats = 2

[[throughput]]
name = "slow"
title = "Slowed down"
device = "linux"
factor = "slowdown"
values = [0, 500, 1000, 2000, 5000]
calibrate = [0, 2000]

[[loss]]
series = "slow"
value = 1000
offered = [0.5, 0.8, 1.2, 1.5, 2.0]

[[latency]]
series = "slow"
value = 2000
loads = [0.1, 0.3, 0.5, 0.7, 0.9]
calibrate = [0.1, 0.7]

[[latency]]
series = "slow"
value = 500
loads = [0.3, 0.6, 0.9]
"""


def study() -> WireStudy:
    return WireStudy.model_validate(tomllib.loads(STUDY))


def study_file() -> StudyFile[WireStudy]:
    return StudyFile(study=study(), path=Path("x.study.toml"))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> WireResult:
    return run_study(study_file(), tmp_path_factory.mktemp("small"), bench=SimulatedBench())


def test_the_law_is_found_again_from_two_points(result: WireResult) -> None:
    law = result.series[0].law
    stretch = 1.0 + 200.0 * 100e-6  # what interruptions add to every microsecond of work
    assert law.base_s == pytest.approx(BASE_S * stretch, rel=0.03)
    assert law.per_work_s == pytest.approx(PER_ITERATION_S * stretch, rel=0.03)


def test_held_out_rates_and_losses_come_out_as_predicted(result: WireResult) -> None:
    assert len(result.held_out) == 3
    assert result.throughput_error_ratio < 0.02
    assert result.loss_error < 0.01


def test_the_wakeup_is_found_again_and_predicts_latency_at_other_loads_and_speeds(result: WireResult) -> None:
    outcome = result.latency[0].wakeup
    assert outcome is not None
    assert outcome.wakeup.quantile_s(0.5) == pytest.approx(WAKEUP.mean_s, rel=0.15)
    assert result.latency_error_ratio < 0.2
    assert result.p99_factor < 2.5
    assert {row.calibrates for row in result.latency[1].rows} == {False}


def test_latencies_name_the_arrivals_of_their_trials(result: WireResult) -> None:
    """The tester sends at a constant rate; a curve of other arrivals would say so."""
    curve = result.latency[0]
    even, random = (
        (latency_table(shown).caption, latency_figure(shown).caption)
        for shown in (
            curve,
            replace(curve, rows=tuple(replace(row, arrivals="Poisson arrivals") for row in curve.rows)),
        )
    )
    assert all("Latency: with evenly spaced arrivals." in caption for caption in even)
    assert all("Latency: with Poisson arrivals." in caption for caption in random)
    measured = polars.read_parquet(result.out / "results.parquet").filter(polars.col("kind") == "latency")
    assert set(measured["arrivals"]) == {"evenly spaced arrivals"}
    summary = json.loads((result.out / "summary.json").read_text())
    assert {row["arrivals"] for row in summary["latency"]["curves"][0]["rows"]} == {"evenly spaced arrivals"}


def test_the_folder_is_complete_and_says_so_last(result: WireResult) -> None:
    summary = json.loads((result.out / "summary.json").read_text())
    assert summary["study"] == "small"
    rows = polars.read_parquet(result.out / "results.parquet")
    assert len(rows) == summary["made"]["trials"] == 2 + 2 * (5 + 5 + 5 + 3)
    page = (result.out / "report.html").read_text()
    assert "throughput-slow" in page
    assert "95 % interval" in page
    assert {path.name for path in (result.out / "figures").iterdir()} == {
        "throughput-slow.svg",
        "loss-slow-1000.svg",
        "latency-slow-2000.svg",
        "latency-slow-500.svg",
    }


class Breaking(SimulatedBench):
    """Breaks when the fourth device is set up."""

    def device(self, name, options):  # type: ignore[no-untyped-def]  # as the class above
        if self.set_up == 3:
            raise KeyboardInterrupt
        return super().device(name, options)


def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_study(study_file(), tmp_path, bench=Breaking())
    kept = len(polars.read_parquet(tmp_path / "results.parquet"))
    assert kept == 3
    assert not (tmp_path / "summary.json").exists()
    result = run_study(study_file(), tmp_path, bench=SimulatedBench())
    assert result.provenance.resumed_trials == kept


def test_a_calibrating_point_without_a_valid_trial_is_named(tmp_path: Path) -> None:
    class Invalid(SimulatedBench):
        def device(self, name, options):  # type: ignore[no-untyped-def]  # as the class above
            from contextlib import contextmanager
            from dataclasses import replace

            @contextmanager
            def invalid():  # type: ignore[no-untyped-def]  # a fixture of this test
                with super(Invalid, self).device(name, options) as evaluator:
                    whole = evaluator.trial

                    class Late:
                        def trial(self, load, duration_s):  # type: ignore[no-untyped-def]  # as above
                            trial = whole(load, duration_s)
                            return trial if duration_s < 0.15 else replace(trial, invalid=("clock stepped",))

                    yield Late()

            return invalid()

    with pytest.raises(FitProblem, match=r"slow.*no trial was valid at slowdown = 0, 2000"):
        run_study(study_file(), tmp_path, bench=Invalid())


@pytest.mark.parametrize(
    ("text", "new", "place"),
    [
        ("calibrate = [0, 2000]", "calibrate = [0, 2001]", r"throughput\[0\]\.calibrate: 2001 is not among the values"),
        ("calibrate = [0, 2000]", "calibrate = [0]", r"throughput\[0\]\.calibrate: one value gives no slope"),
        ('series = "slow"\nvalue = 1000', 'series = "slw"\nvalue = 1000', r"loss\[0\]\.series.*did you mean.*slow"),
        ("calibrate = [0.1, 0.7]", "calibrate = [0.2]", r"latency\[0\]\.calibrate: 0\.2 is not among the loads"),
        ("repeats = 2", "repeat = 2", r"testbed\.repeat: is no key.*repeats"),
        ("repeats = 2", "repeats = 0", r"testbed\.repeats"),
        ("[testbed]", '[testbed]\nfile = "nowhere.testbed.toml"', r"testbed\.file: there is no file"),
    ],
)
def test_a_wrong_study_is_refused_with_its_place(tmp_path: Path, text: str, new: str, place: str) -> None:
    path = tmp_path / "wrong.study.toml"
    assert text in STUDY
    path.write_text(STUDY.replace(text, new, 1))
    with pytest.raises(FileProblem, match=place):
        read_study(path)


def test_the_shipped_study_can_be_read() -> None:
    assert isinstance(read_study(find_study("local_router")).study, WireStudy)


FEW = """
kind = "wire"
name = "few"
title = "A slow tester"

[testbed]
duration = "100 ms"
repeats = 1

[[throughput]]
name = "slow"
title = "Slowed down"
device = "linux"
factor = "slowdown"
values = [0, 1000, 2000]
calibrate = [0, 2000]
"""
"""Without slowdown the device forwards 1.2 Mpps."""


def few_file() -> StudyFile[WireStudy]:
    return StudyFile(study=WireStudy.model_validate(tomllib.loads(FEW)), path=Path("few.study.toml"))


def test_a_device_that_the_tester_cannot_overload_is_slowed_down_at_every_point_and_the_study_says_so(
    tmp_path: Path,
) -> None:
    bench = SimulatedBench(most_pps=600e3)
    steps: list[str] = []

    def on_progress(done: int, total: int, step: str) -> None:
        assert done <= total
        steps.append(step)

    result = run_study(few_file(), tmp_path, bench=bench, on_progress=on_progress)
    (note,) = result.notes or ()
    iterations = int(note.partition("slowed it down by ")[2].split()[0].replace(",", ""))
    assert iterations > 0
    assert any("slow slow down" in step for step in steps)
    assert note in terminal_summary(result).notes
    # The law of the slowed device: the same work an iteration, and a longer frame by the added ones.
    law = result.series[0].law
    stretch = 1.0 + 200.0 * 100e-6
    assert law.per_work_s == pytest.approx(PER_ITERATION_S * stretch, rel=0.05)
    assert law.base_s == pytest.approx((BASE_S + iterations * PER_ITERATION_S) * stretch, rel=0.05)
    assert result.throughput_error_ratio < 0.05


@pytest.mark.parametrize(
    ("slower", "remedy"),
    [("user", "leave out the values below"), ("nobody", "no option that slows it down: leave out the value")],
)
def test_a_device_that_the_study_may_not_slow_down_has_its_option_named(
    slower: SlowedBy, remedy: str, tmp_path: Path
) -> None:
    with pytest.raises(SeriesNotOverloaded, match=remedy) as caught:
        run_study(few_file(), tmp_path, bench=SimulatedBench(most_pps=600e3, slower=slower))
    assert 'series "slow" at 0, device linux' in str(caught.value)


def test_the_option_to_state_lets_the_tester_overload_the_device(tmp_path: Path) -> None:
    text = FEW.replace('factor = "slowdown"', 'factor = "flows"').replace("[0, 1000, 2000]", "[1, 2, 3]")
    text = text.replace("calibrate = [0, 2000]", 'calibrate = [1, 3]\nlaw = "constant"')
    flows = StudyFile(study=WireStudy.model_validate(tomllib.loads(text)), path=Path("few.study.toml"))
    with pytest.raises(SeriesNotOverloaded, match=r"state options = \{ slowdown = ") as caught:
        run_study(flows, tmp_path / "before", bench=SimulatedBench(most_pps=600e3, slower="user"))
    iterations = int(str(caught.value).partition("slowdown = ")[2].split()[0])
    mended = StudyFile(
        study=WireStudy.model_validate(
            tomllib.loads(
                text.replace('factor = "flows"', f'factor = "flows"\noptions = {{ slowdown = {iterations} }}')
            )
        ),
        path=Path("few.study.toml"),
    )
    result = run_study(mended, tmp_path / "after", bench=SimulatedBench(most_pps=600e3, slower="user"))
    assert result.notes is None
