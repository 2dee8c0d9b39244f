"""What the figures of the commands for watts show."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from routecast.cli.run import run
from routecast.power.fits import fit_file
from routecast.power.views import fit_figure
from routecast.show.figures import Points

EXAMPLE = Path(__file__).parents[3] / "examples" / "green.router.toml"
LOADS = (0, 10, 30, 50, 70, 100)


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """One device whose watts are 50 + 40 t + 10 t² at load t."""
    file = tmp_path / "samples.csv"
    rows = [f"box,{load / 100},{50 + 0.4 * load + 0.001 * load * load}" for load in LOADS]
    file.write_text("\n".join(["device,load_ratio,power_w", *rows]) + "\n", encoding="utf-8")
    return file


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
