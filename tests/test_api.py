"""``import routecast as rc``: the loop in a few lines, each answer that of the command of the same name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import routecast as rc
from routecast.cli.run import run
from routecast.errors import RoutecastError
from routecast.load.offered import line_rate_pps

EXAMPLE = Path(__file__).parents[1] / "examples" / "multicore.router.toml"
TABLE = "cores,frame_bytes,throughput_pps,link_bps,shared_queue\n1,64,1.73e6,1e11,no\n8,64,12.3e6,1e11,no\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "points.csv"
    path.write_text(TABLE + "8,1518,10.9e6,1e11,no\n")
    return path


def test_it_says_what_it_gives() -> None:
    assert set(rc.__all__) <= set(dir(rc))
    assert all(getattr(rc, name) is not None for name in rc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'sovle'"):
        _ = rc.sovle  # type: ignore[attr-defined]


def test_a_router_forwards_what_its_cores_do() -> None:
    # Four cores of 562 ns a frame: 4/562 ns.
    router = rc.multicore(4, "562 ns")
    assert rc.solve(router, "14 Mpps").forwarded_pps == pytest.approx(4 / 562e-9, rel=1e-6)
    assert rc.simulate(router, 14e6, duration="20 ms").forwarded_pps == pytest.approx(4 / 562e-9, rel=0.01)
    assert rc.multicore(4, 562e-9).model == router.model
    assert router.varied(cores=8).model.pools[0].units == 8


def test_bits_are_those_of_the_wire_and_numbers_are_in_base_units() -> None:
    router = rc.multicore(8, "10 ns")
    by_bits = rc.solve(router, "10 Gbit/s", frames=512)
    assert by_bits.forwarded_pps == pytest.approx(line_rate_pps(10e9, 512))
    assert rc.solve(router, line_rate_pps(10e9, 512), frames="512 B").forwarded_pps == by_bits.forwarded_pps


def test_a_file_gives_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", str(EXAMPLE), "--load", "5 Mpps", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert rc.solve(EXAMPLE, "5 Mpps").forwarded_pps == document["forwarded_pps"]


def test_a_trial_is_short_to_read_and_a_row_of_a_table() -> None:
    trial = rc.solve(EXAMPLE, "14 Mpps", frames="IMIX")
    assert len(repr(trial)) < 300
    assert "forwarded 6.067 Mpps" in repr(trial)
    assert trial._repr_html_().startswith("<table")
    row = trial.to_polars()
    assert row.height == 1
    assert row["forwarded_pps"][0] == trial.forwarded_pps
    assert row["limits"][0] == "cpu"
    assert row["latency_p99_s"][0] is None  # not known in closed form here


def test_a_sweep_is_a_table_with_a_row_for_each_combination() -> None:
    router = rc.multicore(1, "1 us", link="100 Gbit/s")
    rates = rc.sweep(router, cores=range(1, 5), frame=[64, "IMIX"])
    assert rates.height == 8
    assert rates["maximum_pps"].to_list() == pytest.approx([count * 1e6 for count in (1, 1, 2, 2, 3, 3, 4, 4)])
    loaded = rc.sweep(router, cores=2, load=[1e6, "3 Mpps"], simulate=True)
    assert loaded["forwarded_pps"].to_list() == pytest.approx([1e6, 2e6])
    assert loaded["simulated_forwarded_pps"].to_list() == pytest.approx([1e6, 2e6], rel=0.01)
    assert set(loaded["limits"]) == {"cpu"}


def test_from_a_table_to_the_number_of_cores_in_four_lines(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fitted = rc.calibrate(table)
    answer = fitted.size("40 Gbit/s", frames="IMIX")
    assert answer.least is not None
    assert run(["size", str(table), "--target", "40 Gbit/s", "--frames", "IMIX", "--json"]) == 0
    (command,) = json.loads(capsys.readouterr().out)["series"]
    assert answer.least.cores == command["least"]["cores"]
    assert str(answer.least.cores) in repr(answer)


def test_predictions_have_intervals_and_the_next_measurement_is_named(table: Path) -> None:
    fitted = rc.calibrate(table)
    made = fitted.predict(cores=[8, 16], frames=[64, "IMIX"])
    assert made.height == 4
    assert (made["low_pps"] <= made["throughput_pps"]).all()
    assert (made["throughput_pps"] <= made["high_pps"]).all()
    measured = made.row(0, named=True)
    assert measured["low_pps"] <= 12.3e6 <= measured["high_pps"]
    assert fitted.next(2).height == 2
    assert fitted.predict().height == 4  # two counts and two sizes of the table
    assert rc.solve is not None
    assert fitted.router(8).pools[0].units == 8


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: rc.solve(7, "1 Mpps"),  # type: ignore[arg-type]
        lambda: rc.solve(EXAMPLE, [1]),  # type: ignore[arg-type]
        lambda: rc.solve(EXAMPLE, "1 Mpps", frames=b"64"),  # type: ignore[arg-type]
        lambda: rc.solve(EXAMPLE, True, frames=True),
    ],
)
def test_a_wrong_type_is_reported_in_words(wrong: object) -> None:
    with pytest.raises(TypeError, match="got a"):
        wrong()  # type: ignore[operator]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: rc.read("nowhere.router.toml"),
        lambda: rc.multicore(0, "562 ns"),
        lambda: rc.multicore(4, "562 apples"),
        lambda: rc.multicore(4, "562 ns", colour="red"),
        lambda: rc.solve(rc.multicore(4, "562 ns")),
        lambda: rc.solve(EXAMPLE, "14 Mbps apples"),
        lambda: rc.sweep(EXAMPLE, coers=[1, 2]),
        lambda: rc.sweep(EXAMPLE),
        lambda: rc.calibrate("nowhere.csv"),
    ],
)
def test_what_cannot_be_is_refused_in_words(wrong: object) -> None:
    with pytest.raises(RoutecastError):
        wrong()  # type: ignore[operator]


NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["language"]) == (4, "python")
    monkeypatch.chdir(path.parent)
    space: dict[str, object] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert cells
    for cell in cells:
        exec(compile("".join(cell["source"]), path.name, "exec"), space)


def test_there_are_three_notebooks() -> None:
    assert len(NOTEBOOKS) == 3
