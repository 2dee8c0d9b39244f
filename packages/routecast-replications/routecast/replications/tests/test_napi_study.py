"""The study of activation: its criteria on the measured curves, its files, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from routecast.errors import FileProblem
from routecast.replications.activation_costs import ActivationCosts, fit_activation_costs
from routecast.replications.activation_dynamics import DYNAMICS, fit_dynamics, observe
from routecast.replications.frequency import FrequencyLaw
from routecast.replications.napi.document import NapiStudy
from routecast.replications.napi.run import NapiResult, greatest_rise_per_packet, read_pairs
from routecast.replications.napi.views import page, terminal_summary
from routecast.show.figures import Figure
from routecast.show.tables import Table
from routecast.study.engine import run_study
from routecast.study.reading import StudyFile, find_study, read_study, study_schema

IDLE = ("offered_pps", "idle_ratio")
TRUTH = ActivationCosts(per_packet_s=100e-9, per_interrupt_s=0.5e-6, wakeup_s=1e-6)
LAW = FrequencyLaw(packet_cycles=2000.0, memory_s=0.2e-6)

STUDY = """
kind = "napi"
name = "toy"
title = "A toy"
run = { frames = 8000, seed = 3, compare = false }
[[idle]]
name = "toy"
title = "A toy"
file = "idle.csv"
maximum = "10 Mpps"
[form]
maximum = "1 Mpps"
saturation = "700 kpps"
interrupt = "0.1 us"
interrupt_range = ["0 us", "1 us"]
[clock]
frequency = "2 GHz"
frequencies = ["1 GHz", "2 GHz", "3 GHz"]
memory = [0.2]
ring = "64 frames"
samples = "clock.csv"
[criteria]
idle_rmse = 0.03
"""


def toy(folder: Path, text: str = STUDY) -> StudyFile[NapiStudy]:
    rates = (0.0, 0.2e6, 0.5e6, 1e6, 2e6, 4e6, 6e6, 8e6, 11e6)
    rows = [f"{rate:.0f},{TRUTH.idle_ratio(rate):.6f}" for rate in rates]
    (folder / "idle.csv").write_text("\n".join(["# a toy", "offered_pps,idle_ratio", *rows]) + "\n")
    clocks = [f"{clock:.0f},{LAW.rate_pps(clock):.3f}" for clock in (1e9, 2e9, 3e9)]
    (folder / "clock.csv").write_text("\n".join(["frequency_hz,rate_pps", *clocks]) + "\n")
    path = folder / "toy.study.toml"
    path.write_text(text)
    file = read_study(path)
    assert isinstance(file.study, NapiStudy)
    return file


@pytest.fixture(scope="module")
def toy_result(tmp_path_factory: pytest.TempPathFactory) -> NapiResult:
    file = toy(tmp_path_factory.mktemp("toy"))
    return run_study(file, file.folder / "out")


@pytest.fixture(scope="module")
def shipped() -> tuple[NapiStudy, Path]:
    file = read_study(find_study("napi_power"))
    assert isinstance(file.study, NapiStudy)
    return file.study, file.folder


@pytest.mark.slow
def test_the_shipped_study_holds_its_criteria_on_the_measured_curves(
    shipped: tuple[NapiStudy, Path], tmp_path: Path
) -> None:
    study, folder = shipped
    shorter = study.model_copy(update={"run": study.run.model_copy(update={"frames": 8000, "compare": False})})
    result = run_study(StudyFile(study=shorter, path=folder / "x.study.toml"), tmp_path / "out")
    assert [criterion.name for criterion in result.criteria if not criterion.is_met] == []
    assert {curve.curve.name for curve in result.idle} == {"xdp", "linux"}


@pytest.mark.slow
def test_two_costs_do_not_explain_the_curve_of_linux(shipped: tuple[NapiStudy, Path]) -> None:
    study, folder = shipped
    curve = next(curve for curve in study.idle if curve.name == "linux")
    pairs = tuple(pair for pair in read_pairs(folder / curve.file, *IDLE, curve.series) if 0.0 < pair[0] <= 5e6)
    start = fit_activation_costs(*zip(*pairs, strict=True)).costs
    without = next(dynamics for dynamics in DYNAMICS if dynamics.third == "none")
    assert fit_dynamics(without, pairs, start, frames=5000, seed=1).rmse > 0.03


def test_the_shipped_curves_are_those_of_the_paper(shipped: tuple[NapiStudy, Path]) -> None:
    study, folder = shipped
    curves = {
        curve.name: dict(read_pairs(folder / curve.file, *IDLE, curve.series)) for curve in study.idle
    }  # bench01_baseline.org of tohojo/xdp-paper
    assert curves["xdp"][5e6] == 0.527
    assert curves["linux"][3e6] == 0.292
    assert all(curve[0.0] == 1.0 and curve[24.8e6] == 0.0 for curve in curves.values())


@pytest.mark.slow
def test_a_known_router_is_found_again(toy_result: NapiResult) -> None:
    (idle,) = toy_result.idle
    assert idle.fitted.costs.per_packet_s == pytest.approx(TRUTH.per_packet_s, rel=1e-3)
    assert idle.fitted.costs.wakeup_s == pytest.approx(TRUTH.wakeup_s, rel=1e-2)
    assert idle.errors.left_out < 1e-4
    assert idle.errors.from_half < 1e-4
    assert idle.maximum_error_ratio == pytest.approx(0.0, abs=1e-3)


@pytest.mark.slow
def test_measured_maxima_give_the_law_of_the_clock(toy_result: NapiResult) -> None:
    assert toy_result.clock is not None
    assert toy_result.clock.fitted is not None
    assert toy_result.clock.fitted.law.packet_cycles == pytest.approx(LAW.packet_cycles, rel=1e-5)
    assert toy_result.clock.fitted.law.memory_s == pytest.approx(LAW.memory_s, rel=1e-4)
    recovered, shown = toy_result.clock.recovered.law, toy_result.clock.shown
    # What 8,000 frames of overload reach is the maximum but for the ring that is left at the end.
    assert recovered.rate_pps(1.7e9) == pytest.approx(shown.rate_pps(1.7e9), rel=0.005)


@pytest.mark.slow
def test_latency_in_overload_is_a_full_ring_and_falls_with_the_clock(toy_result: NapiResult) -> None:
    assert toy_result.clock is not None
    plateaus = [curve.points[-1].latency_p50_s for curve in toy_result.clock.curves]
    assert plateaus == sorted(plateaus, reverse=True)
    slowest = toy_result.clock.curves[0]
    # The ring, and at most the frames of one poll beside it.
    ring, poll = toy_result.clock.part.ring, 64
    assert slowest.plateau_s * 0.95 <= plateaus[0] <= slowest.plateau_s * (ring + poll) / ring


def test_latency_at_other_clocks_names_the_arrivals_of_its_trials(toy_result: NapiResult) -> None:
    assert toy_result.clock is not None
    blocks = [block for section in page(toy_result).sections for block in section.blocks]
    captions = {block.title: block.caption for block in blocks if isinstance(block, Figure | Table)}
    for title in ("Maximum rate and overload latency against the clock", "Latency against load, by clock"):
        assert captions[title].endswith("Latency: with evenly spaced arrivals.")
    assert [curve.arrivals for curve in toy_result.clock.curves] == ["evenly spaced arrivals"] * 3
    router = TRUTH.router()
    assert observe(router, 1e6, "poisson", frames=100, seed=1).arrivals == "Poisson arrivals"


@pytest.mark.slow
def test_every_figure_and_table_is_written(toy_result: NapiResult) -> None:
    drawn = {path.stem for path in (toy_result.out / "figures").glob("*.svg")}
    assert drawn == {"idle", "time-toy", "inside", "form", "packet", "clock", "latency"}
    report = (toy_result.out / "report.html").read_text()
    for table in terminal_summary(toy_result).tables:
        assert table.title in report
        assert all(len(row) == len(table.columns) for row in table.rows)
    summary = json.loads((toy_result.out / "summary.json").read_text())
    assert summary["idle"][0]["rmse"] == toy_result.idle[0].errors.simulated
    assert summary["criteria"][0]["met"] is True


@pytest.mark.slow
def test_the_answer_claims_of_the_closed_form_what_the_closed_form_reaches(toy_result: NapiResult) -> None:
    (idle,) = toy_result.idle
    off = tuple(replace(point, closed_form=point.measured + 0.25) for point in idle.points)
    result = replace(toy_result, idle=(replace(idle, points=off),))
    # Every point is off by a quarter, and so is the root of their mean square.
    assert "**25.00 percentage points**" in page(result).answer


@pytest.mark.slow
def test_interrupts_per_packet_fall_with_load_under_poisson_arrivals(toy_result: NapiResult) -> None:
    assert toy_result.form is not None
    curve = toy_result.form.curves[1]
    assert curve.arrivals == "poisson"
    interrupts = [point.interrupts_per_packet for point in curve.points]
    noise = 0.03  # 8,000 frames a point
    assert all(later <= before + noise for before, later in zip(interrupts, interrupts[4:], strict=False))
    assert interrupts[0] > 0.9
    assert interrupts[-1] < 0.02


def test_a_criterion_that_is_missed_ends_the_command_with_1(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from routecast.cli.app import app

    impossible = STUDY.split("[form]", maxsplit=1)[0] + "[criteria]\nidle_rmse = 1e-9\n"
    file = toy(tmp_path, impossible)
    done = CliRunner().invoke(app, ["study", str(file.path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "Fitted costs" in done.output


@pytest.mark.slow
def test_a_search_by_simulation_finds_what_the_closed_form_finds() -> None:
    pairs = tuple((rate, TRUTH.idle_ratio(rate)) for rate in (0.3e6, 1e6, 3e6, 6e6, 9e6))
    off = ActivationCosts(per_packet_s=120e-9, per_interrupt_s=0.4e-6, wakeup_s=0.7e-6)
    result = fit_dynamics(DYNAMICS[0], pairs, off, frames=5000, seed=2)
    assert result.rmse < 0.01
    assert result.costs.per_packet_s == pytest.approx(TRUTH.per_packet_s, rel=0.1)


def test_the_published_polynomial_makes_packets_dearer_between_two_and_seven_tenths_of_the_load() -> None:
    cheap_at, cheap_s, dear_at, dear_s = greatest_rise_per_packet(1.0)
    # x(0.41)/0.41 and x(0.70)/0.70 by hand from Bolla et al. 2009's coefficients.
    assert (cheap_at, dear_at) == (pytest.approx(0.41, abs=0.01), pytest.approx(0.70, abs=0.01))
    assert cheap_s == pytest.approx(1.056, abs=0.002)
    assert dear_s == pytest.approx(1.259, abs=0.002)


@pytest.mark.parametrize(
    ("before", "after", "place", "says"),
    [
        ('file = "idle.csv"', 'file = "idel.csv"', "idle[0].file", "idel.csv"),
        ('samples = "clock.csv"', 'samples = "none.csv"', "clock.samples", "none.csv"),
        ('saturation = "700 kpps"', 'saturation = "2 Mpps"', "form.saturation", "below the maximum"),
        ("memory = [0.2]", "memory = [1.0]", "clock.memory[0]", "number < 1"),
        ('name = "toy"\ntitle = "A toy"\nrun', 'name = "toy"\nrun', "title", ""),
    ],
)
def test_a_study_that_contradicts_itself_is_refused(
    tmp_path: Path, before: str, after: str, place: str, says: str
) -> None:
    assert before in STUDY
    with pytest.raises(FileProblem) as caught:
        toy(tmp_path, STUDY.replace(before, after))
    assert [problem.place for problem in caught.value.problems] == [place]
    assert says in caught.value.problems[0].message


@pytest.mark.parametrize(
    ("text", "series", "says"),
    [
        ("offered_pps,idle\n1,1\n", "", 'no column "idle_ratio"'),
        ("offered_pps,idle_ratio\n", "", "no rows"),
        ("# note\noffered_pps,idle_ratio\n1e6,high\n2e6,nan\n", "", "(?s)row 3, .*row 4, "),
        ("series,offered_pps,idle_ratio\na,1e6,0.5\n", "toy", "no series 'toy'"),
    ],
)
def test_a_table_that_cannot_be_read_says_where(tmp_path: Path, text: str, series: str, says: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(FileProblem, match=says):
        read_pairs(tmp_path / "t.csv", *IDLE, series)


def test_samples_need_both_columns(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("frequency_hz,rate\n1e9,1e6\n")
    with pytest.raises(FileProblem, match="rate_pps"):
        read_pairs(tmp_path / "c.csv", "frequency_hz", "rate_pps")


def test_the_schema_names_the_tables_of_the_file() -> None:
    assert {"idle", "form", "clock", "criteria"} <= set(study_schema("napi_study")["properties"])
