"""What the figures of the commands for watts show."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from routecast.cli.run import run
from routecast.power.fits import fit_file
from routecast.power.operating.optimise import Effort, operating_point, tunable_router
from routecast.power.operating.targets import parse_targets
from routecast.power.views import fit_figure, front_figure
from routecast.quantity.toml_file import parse_toml
from routecast.show.figures import Line, Points

EXAMPLE = Path(__file__).parents[3] / "examples" / "green.router.toml"
LOADS = (0, 10, 30, 50, 70, 100)


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """One device whose watts are 50 + 40 t + 10 t² at load t."""
    file = tmp_path / "samples.csv"
    rows = [f"box,{load / 100},{50 + 0.4 * load + 0.001 * load * load}" for load in LOADS]
    file.write_text("\n".join(["device,load_ratio,power_w", *rows]) + "\n", encoding="utf-8")
    return file


@pytest.mark.slow
def test_the_front_says_for_every_bound_the_fewest_watts_that_a_real_setting_has() -> None:
    machine = tunable_router(parse_toml(EXAMPLE.read_text(), "green"), lingers_s=(15e-6,))
    assert machine.load is not None
    effort = Effort(duration_s=5e-3, replications=0, is_exhaustive=True)
    result = operating_point(machine, machine.load, parse_targets(["p99 < 100 us"]), effort)
    drawn = front_figure(result, machine)
    line = next(mark for mark in drawn.marks if isinstance(mark, Line) and mark.name.startswith("front"))
    lossless = [setting for setting in result.judged if setting.values[1] == 0.0]
    assert len(line.x) > 3
    for (x0, y0), (x1, y1) in pairwise(zip(line.x, line.y, strict=True)):
        assert x0 == x1 or y0 == y1
        if x0 < x1:
            bound_s = math.sqrt(x0 * x1) / 1e6
            assert y0 == min(setting.power_w for setting in lossless if setting.latency_s("p99") <= bound_s)
    named = next(mark for mark in drawn.marks if isinstance(mark, Points) and mark.is_labelled)
    assert all(watts in {setting.power_w for setting in lossless} for watts in named.y)


def test_fitted_samples_are_filled_and_left_out_ones_open(samples: Path) -> None:
    fits = fit_file(samples, "piecewise", points=(0.0, 0.5, 1.0))
    drawn = fit_figure("piecewise", fits)
    shown = {mark.filled: mark.x for mark in drawn.marks if isinstance(mark, Points) and "box" in mark.name}
    assert shown == {True: (0.0, 50.0, 100.0), False: (10.0, 30.0, 70.0)}
    key = [mark.name for mark in drawn.marks if isinstance(mark, Points) and mark.legend]
    assert key == ["sample fitted", "sample left out"]
    assert drawn.title.startswith("box: model piecewise, median error ")


def test_where_nothing_was_left_out_no_key_speaks_of_it(samples: Path) -> None:
    drawn = fit_figure("linear", fit_file(samples, "linear"))
    assert not [mark for mark in drawn.marks if isinstance(mark, Points) and mark.legend]


def test_a_figures_title_stands_in_its_file(samples: Path, tmp_path: Path) -> None:
    figure = tmp_path / "fit.svg"
    assert run(["power", "fit", str(samples), "--points", "0,50,100", "--figure", str(figure)]) == 0
    words = " ".join(node.text or "" for node in ElementTree.fromstring(figure.read_text()).iter())
    assert "box: model piecewise, median error" in words


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("picture.png", 'ends in ".png": a figure is an SVG file, such as picture.svg'),
        ("nowhere/picture.svg", "there is no folder"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "day", "optimise"])
def test_a_figure_that_cannot_be_written_is_refused_before_the_work(
    command: str, name: str, message: str, samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = {
        "fit": [str(samples)],
        "day": [str(EXAMPLE), "--profile", "geant", "--peak", "1 Gbit/s"],
        "optimise": [str(EXAMPLE), "--target", "p99 < 100 us"],
    }[command]
    assert run(["power", command, *arguments, "--figure", str(tmp_path / name)]) == 2
    output = capsys.readouterr()
    assert message in " ".join(output.err.split())
    assert not output.out
    assert not (tmp_path / name).exists()


def test_a_front_without_settings_is_not_drawn_and_the_answer_still_comes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = tmp_path / "front.svg"
    options = ("--load", "100 Mpps", "--target", "p99 < 100 us", "--figure", str(figure))
    assert run(["power", "optimise", str(EXAMPLE), *options]) == 1
    output = " ".join(capsys.readouterr().err.split())
    assert "is not written: of no setting are watts and latency known" in output
    assert "every setting is overloaded" in output
    assert not figure.exists()
