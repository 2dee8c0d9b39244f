"""Linear and piecewise power over load, and their fits from tables of samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import PchipInterpolator
from scipy.stats import linregress

from routecast.errors import FileProblem, FitProblem, ModelProblem
from routecast.power import OperatingPoint
from routecast.power._load_samples import LoadSample, read_load_samples
from routecast.power.curve import FormPower, LinearPower, PiecewisePower
from routecast.power.fits import fit_file, model_for
from routecast.power.form import PUBLISHED_FORM
from routecast.power.load_fit import fit_load

# Watts as meters print them: SciPy's own harmonic mean overflows between powers that differ by 1e-320.
TENTHS_W = st.integers(0, 5000).map(lambda tenths: tenths / 10)


def at(load: float) -> OperatingPoint:
    return OperatingPoint(load_ratio=load)


def curve(law: object, loads: np.ndarray | None = None) -> list[LoadSample]:
    assert callable(law)
    places = np.linspace(0.0, 1.0, 11) if loads is None else loads
    return [LoadSample(load_ratio=float(t), power_w=float(law(t))) for t in places]


@given(
    st.lists(st.tuples(st.floats(0.02, 1.0), TENTHS_W), min_size=2, max_size=11),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20),
)
def test_the_smooth_curve_is_scipys_pchip_and_stays_between_its_neighbours(
    steps: list[tuple[float, float]], places: list[float]
) -> None:
    widths = np.cumsum([step for step, _ in steps])
    loads = tuple(float(width) for width in widths / widths[-1])
    powers = tuple(power for _, power in steps)
    model = PiecewisePower(load_ratio=loads, power_w_at=powers)
    reference = PchipInterpolator(loads, powers)
    for place in places:
        load = min(max(place, loads[0]), 1.0)
        power = model.power_w(at(place))
        assert power == pytest.approx(float(reference(load)), rel=1e-7, abs=1e-6)
        right = min(int(np.searchsorted(loads, load)), len(loads) - 1)
        ends = powers[max(right - 1, 0)], powers[right]
        assert min(ends) - 1e-9 <= power <= max(ends) + 1e-9


def test_straight_lines_are_numpys_interpolation() -> None:
    model = PiecewisePower(load_ratio=(0.0, 0.2, 1.0), power_w_at=(80.0, 120.0, 200.0), interpolation="linear")
    places = np.linspace(0.0, 1.0, 21)
    expected = np.interp(places, (0.0, 0.2, 1.0), (80.0, 120.0, 200.0))
    assert [model.power_w(at(t)) for t in places] == pytest.approx(expected)


def test_loads_that_do_not_rise_and_negative_watts_are_refused_together() -> None:
    with pytest.raises(ModelProblem) as caught:
        PiecewisePower(load_ratio=(0.0, 0.5, 0.5), power_w_at=(80.0, -1.0, 90.0))
    assert len(caught.value.problems) == 2


def test_a_line_is_fitted_with_the_interval_of_linear_regression() -> None:
    noise = np.random.default_rng(1)
    samples = curve(lambda t: 80.0 + 120.0 * t + noise.normal(0.0, 2.0))
    fit = fit_load("x", samples, "linear")
    loads, powers = [sample.load_ratio for sample in samples], [sample.power_w for sample in samples]
    expected = linregress(loads, powers)
    idle = fit.parameters["idle_w"]
    assert idle.value == pytest.approx(expected.intercept)
    # 97.5 % quantile of Student's t with 9 degrees of freedom: 2.2622 (any table of it).
    assert idle.high - idle.value == pytest.approx(2.26216 * expected.intercept_stderr, rel=1e-5)
    assert isinstance(fit.model, LinearPower)
    assert fit.model.power_w(at(1.0)) == pytest.approx(expected.intercept + expected.slope)


def test_idle_and_active_power_below_the_published_form_are_found_again() -> None:
    fit = fit_load("x", curve(lambda t: 90.0 + 60.0 * PUBLISHED_FORM.at(t)), "form")
    assert isinstance(fit.model, FormPower)
    assert (fit.model.idle_w, fit.model.active_w) == pytest.approx((90.0, 150.0))
    assert max(prediction.error_ratio for prediction in fit.predictions) < 1e-9


@pytest.mark.parametrize("model", ["monotone", "polynomial"])
def test_a_curve_with_a_form_of_its_own_is_predicted_where_it_was_left_out(model: str) -> None:
    law = curve(lambda t: 100.0 + 80.0 * np.sin(np.pi * t / 2.0), np.linspace(0.0, 1.0, 21))
    fit = fit_load("x", law, "monotone" if model == "monotone" else "polynomial")
    assert len(fit.predictions) == 19
    assert max(prediction.error_ratio for prediction in fit.predictions) < 0.01


def test_a_piecewise_model_meets_its_points_and_predicts_the_others_of_a_smooth_curve() -> None:
    samples = curve(lambda t: 100.0 + 150.0 * t**0.8)
    fit = fit_load("x", samples, "piecewise", points=[0.0, 0.1, 0.5, 1.0])
    assert [sample.load_ratio for sample in fit.fitted] == [0.0, 0.1, 0.5, 1.0]
    assert all(fit.model.power_w(at(sample.load_ratio)) == pytest.approx(sample.power_w) for sample in fit.fitted)
    assert len(fit.predictions) == 7
    assert max(prediction.error_ratio for prediction in fit.predictions) < 0.02


def test_a_load_that_was_not_measured_and_power_that_falls_are_refused() -> None:
    samples = curve(lambda t: 100.0 + 50.0 * t)
    with pytest.raises(FitProblem, match=r"no sample at 15 %.*loads with samples: 0, 10, 20"):
        fit_load("x", samples, "piecewise", points=[0.0, 0.15])
    falling = curve(lambda t: 100.0 - 50.0 * t)
    with pytest.raises(FitProblem, match="must not fall"):
        fit_load("x", falling, "linear")
    with pytest.raises(FitProblem, match="does not rise"):
        fit_load("x", falling, "monotone")
    with pytest.raises(FitProblem, match="do not determine"):
        fit_load("x", samples[:1], "linear")


def test_power_that_falls_with_load_is_kept_as_measured_and_noted() -> None:
    samples = curve(lambda t: 100.0 + 50.0 * t)
    samples[5] = LoadSample(load_ratio=samples[5].load_ratio, power_w=90.0)
    fit = fit_load("x", samples, "piecewise")
    assert fit.model.power_w(at(0.5)) == 90.0
    assert fit.notes == ("power falls from 120 W at 40 % of load to 90 W at 50 %",)


def test_a_row_for_each_server_is_read_as_its_samples(tmp_path: Path) -> None:
    file = tmp_path / "servers.csv"
    file.write_text("server,cores,w_0,w_50,w_100\nA,4,50,80.5,100\nB,8,60,90,120\n", encoding="utf-8")
    samples = read_load_samples(file)
    assert [(sample.load_ratio, sample.power_w) for sample in samples["A"]] == [(0.0, 50.0), (0.5, 80.5), (1.0, 100.0)]
    assert list(samples) == ["A", "B"]
    assert model_for(file) == "piecewise"


def test_throughputs_become_loads_of_their_clock_and_core_count(tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(
        "# a comment\nrate_pps,frequency_hz,power_w\n0,2e9,15\n500e3,2e9,25\n0,3e9,18\n500e3,3e9,30\n1e6,3e9,40\n",
        encoding="utf-8",
    )
    (samples,) = read_load_samples(file).values()
    assert [sample.load_ratio for sample in samples] == [0.0, 1.0, 0.0, 0.5, 1.0]
    assert model_for(file) == "router"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("load_ratio,volts\n0,1\n", 'no column "power_w".*Columns of the file: load_ratio, volts'),
        ("power_w,speed\n1,2\n", 'no column "load_ratio"'),
        ("load_ratio,power_w\n0,-5\n0.5,x\n", r"2 problems[\s\S]*row 2[\s\S]*row 3"),
        ("load_ratio,power_w\n1.5,5\n", "0..1"),
        ("load_ratio,power_w\n0,nan\n", "watts, not negative"),
        ("load_ratio,power_w\n0\n", "has 1 cells, the header 2"),
        ("load_ratio,power_w\n", "has no rows"),
        ("load_ratio,power_w,cores\n0,5,1.5\n", "a whole number of cores"),
        ("server,w_0,w_120\nA,1,2\n", "no percentage"),
        ("rate_pps,power_w\n0,2\n", "no sample with a throughput"),
    ],
)
def test_a_table_that_is_wrong_says_where(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileProblem, match=message):
        read_load_samples(file)


def test_a_device_that_is_not_in_the_file_is_answered_with_the_nearest_name(tmp_path: Path) -> None:
    file = tmp_path / "servers.csv"
    file.write_text("server,w_0,w_50,w_100\nopteron,50,80,100\n", encoding="utf-8")
    with pytest.raises(FitProblem, match='did you mean "opteron"'):
        fit_file(file, "linear", device="opteran")


@pytest.mark.parametrize(
    "text",
    [
        "load %,watts\n0,100\n50,140\n100,150\n",
        "utilisation,power (W)\n0,100\n0.5,140\n1,150\n",
        "Utilization (%),Power\n0 %,100 W\n50 %,140 W\n100 %,150 W\n",
        "load;power (kW)\n0;0,1\n50;0,14\n100;0,15\n",
        "rate (Mpps),W\n0,100\n1.25,140\n2.5,150\n",
        "load_ratio,power_w\n0,100\n50 %,140\n1,150\n",
    ],
)
def test_samples_are_read_under_the_heads_that_people_write(tmp_path: Path, text: str) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(text)
    assert model_for(file) == "piecewise"
    (samples,) = read_load_samples(file).values()
    assert [sample.load_ratio for sample in samples] == [0.0, 0.5, 1.0]
    assert [sample.power_w for sample in samples] == pytest.approx([100.0, 140.0, 150.0])


def test_two_columns_of_one_meaning_are_not_mixed_up(tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    file.write_text("load_ratio,power_w,watts\n0,100,1\n1,150,2\n")
    (samples,) = read_load_samples(file).values()
    assert [sample.power_w for sample in samples] == [100.0, 150.0]
