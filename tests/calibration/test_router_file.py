"""A calibrated router as a router file: it says where it is from and predicts what the calibration predicts."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from in_process import copy_to_go_on

import routecast
from routecast.calibration import FittedRouter, fit
from routecast.calibration.router_file import RouterFile, router_file
from routecast.cli.run import run
from routecast.evaluate.points import Layout, Point
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load import FlowSet, FrameMix, OfferedLoad
from routecast.router.files import build_router, read_router_and_load

MEASURED = Path(routecast.__file__).parent / "data" / "measured"
TODAY = date(2026, 1, 31)
Tables = tuple[list[Point], list[Point]]


def point(cores: int, mpps: float, *, frame_bytes: float = 64.0, shared: bool | None = None) -> Point:
    layout = Layout(shared_queue=shared)
    return Point(cores=cores, frame_bytes=frame_bytes, throughput_pps=1e6 * mpps, layout=layout)


def saved(fitted: FittedRouter, points: Sequence[Point] = ()) -> RouterFile:
    return router_file(fitted, points, source="rates.csv", today=TODAY)


def solved_pps(text: str, cores: int, frame_bytes: float = 64.0, **keys: object) -> float:
    model, _ = build_router({**tomllib.loads(text), "cores": cores, **keys})
    load = OfferedLoad(
        rate_pps=100e6, frames=FrameMix.fixed(round(frame_bytes)), flows=FlowSet.crafted(2 * cores, ports=2)
    )
    trial = Solve(model=model).trial(load, 1.0)
    assert min(resource.capacity_pps for resource in trial.resources if resource.kind == "pool") == pytest.approx(
        trial.forwarded_pps
    )
    return trial.forwarded_pps


@pytest.mark.parametrize(
    ("points", "laws"),
    [
        pytest.param([point(1, 2.0), point(4, 6.9)], ["serial"], id="one law"),
        pytest.param([point(1, 2.0), point(4, 6.9)], ["free"], id="a law without parameters"),
        pytest.param([point(1, 2.0), point(2, 3.8), point(6, 9.0)], None, id="a mixture"),
        pytest.param([point(1, 2.0)], None, id="one point, which tells of no law"),
        pytest.param(
            [point(k, r, shared=True) for k, r in ((1, 2.0), (2, 3.4), (4, 2.1), (8, 1.2))], None, id="a collapse"
        ),
        pytest.param([point(k, r) for k, r in ((1, 2.0), (2, 2.2), (3, 5.5), (4, 5.6))], None, id="no law fits"),
    ],
)
@pytest.mark.slow
def test_the_closed_form_of_the_file_is_the_calibrated_prediction_at_every_number_of_cores(
    points: list[Point], laws: list[str] | None
) -> None:
    fitted = fit(points, laws=laws)
    predicted = [replace(points[0], cores=k, throughput_pps=float("nan")) for k in range(1, 13)]
    text = saved(fitted, predicted).text
    for prediction in fitted.predict(predicted):
        assert solved_pps(text, prediction.point.cores) == pytest.approx(prediction.throughput_pps, rel=1e-5)


@pytest.mark.slow
def test_meyers_router_is_the_same_within_half_a_percent_at_every_frame_size(tables: Tables) -> None:
    calibrating, held_out = tables
    fitted = fit(calibrating)
    file = saved(fitted, held_out)
    assert file.warnings == ()
    for prediction in fitted.predict([*calibrating, *held_out]):
        flows, k = prediction.point.flows, prediction.point.cores
        assert flows is not None
        model, _ = build_router({**tomllib.loads(file.text), "cores": k})
        load = OfferedLoad(
            rate_pps=prediction.point.line_rate_pps,
            frames=FrameMix.fixed(round(prediction.point.frame_bytes)),
            flows=FlowSet.crafted(flows, ports=2),
        )
        solved = Solve(model=model).trial(load, 1.0).forwarded_pps
        assert solved == pytest.approx(prediction.throughput_pps, rel=0.005)
    # The laws alone, without the factors on top, are that near too.
    document = tomllib.loads(file.text)
    (prediction,) = fitted.predict([replace(calibrating[0], cores=4, flows=4, frame_bytes=64.0)])
    del document["contention"]["discrepancy"]
    model, load_of_file = build_router(document)
    assert load_of_file is not None
    assert Solve(model=model).trial(load_of_file, 1.0).forwarded_pps == pytest.approx(
        prediction.throughput_pps, rel=0.005
    )


@pytest.mark.slow
def test_what_few_cores_or_polled_queues_cost_is_in_the_factors() -> None:
    layout = Layout(polls_ports=True)
    points = [replace(point(k, rate), layout=layout) for k, rate in ((1, 2.0), (2, 4.2), (4, 8.0))]
    fitted = fit(points)
    text = saved(fitted).text
    for prediction in fitted.predict(points):
        assert solved_pps(text, prediction.point.cores) == pytest.approx(prediction.throughput_pps, rel=1e-5)


@pytest.mark.slow
def test_the_file_says_where_it_is_from_and_what_it_cannot_say() -> None:
    points = [replace(point(k, rate), series="lab") for k, rate in ((1, 2.0), (2, 3.9), (4, 7.0))]
    held_out = replace(point(3, 5.0), series="lab")
    file = saved(fit(points), [*points, held_out])
    head = file.text.partition("\nbuilder")[0]
    assert "on 2026-01-31" in head
    assert '"rates.csv", series "lab"' in head
    assert "Calibrating points: 3, with 1, 2, 4 busy cores and frames of 64 B" in head
    assert "serial: c(k) = 1 + σ(k−1)" in head
    assert "% at 3 calibrating points" in head
    assert "% at 1 held-out point." in head
    assert "95 % intervals" in head
    assert any("no link" in warning for warning in file.warnings)
    assert all(f"# Limitation: {warning}." in head for warning in file.warnings)


@pytest.mark.slow
def test_a_difference_that_the_file_cannot_say_is_warned_of() -> None:
    # What the bus behind a fast link moves is a limit of its own, which no router file of this kind has.
    points = [replace(point(k, 2.0 * k), link_bps=100e9, ports=1) for k in (1, 2, 4)]
    (warning,) = saved(fit(points), [replace(points[0], cores=48, throughput_pps=float("nan"))]).warnings
    assert "at 1 of 4 conditions the file's prediction differs" in warning
    assert "with 48 busy cores at 64 B" in warning


@pytest.mark.slow
def test_what_the_calibration_warns_of_stands_in_the_file() -> None:
    points = [point(1, 2.0), point(4, 7.9), point(1, 1.0, frame_bytes=1518), point(4, 1.6, frame_bytes=1518)]
    assert "# Warning: the rate of 4 cores at 1518 B (1.6 Mpps) is treated as an outlier" in saved(fit(points)).text


@pytest.mark.slow
def test_validate_saves_a_router_that_solves_and_simulates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tables: Tables
) -> None:
    path = tmp_path / "linux.router.toml"
    path.write_text("what was there", encoding="utf-8")
    source = str(MEASURED / "meyer2014.csv")
    assert run(["validate", source, "--save-router", str(path)]) == 0
    assert f"wrote {path}" in capsys.readouterr().err.replace("\n", "")
    model, load = read_router_and_load(path)
    assert load is not None
    (prediction,) = fit(tables[0]).predict([replace(tables[0][0], cores=4, flows=4, frame_bytes=64.0)])
    assert Solve(model=model).trial(load, 1.0).forwarded_pps == pytest.approx(prediction.throughput_pps, rel=0.005)
    assert Simulate(model=model).trial(load, 2e-3).forwarded_pps == pytest.approx(prediction.throughput_pps, rel=0.01)
    assert run(["solve", str(path), "--load", "5 Mpps"]) == 0


@pytest.mark.slow
def test_a_study_saves_the_router_that_it_calibrates(
    study: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_to_go_on(study("meyer2014"), tmp_path / "out")
    path = tmp_path / "out" / "linux.router.toml"
    assert run(["study", "meyer2014", "--out", str(tmp_path / "out"), "--save-router", str(path)]) == 0
    model, _ = read_router_and_load(path)
    assert len(model.pools[0].contention.discrepancy) == 8
    assert "Not in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["study", "vmware_msr", "--save-router", "x.toml"], 'kinds that do: "tables"'),
        (["study", "meyer2014", "--save-router", "none/x.toml"], "there is no folder none"),
        (["validate", "two.csv", "--save-router", "x.toml"], 'the table has "a", "b": choose one (--series)'),
        (["validate", "two.csv", "--save-router", "."], "is a"),
        (["validate", "two.csv", "--series", "c"], 'known are "a", "b"'),
        (["validate", "four.csv", "--router", "eq5", "--save-router", "x.toml"], 'calibrate the router "multicore"'),
    ],
)
@pytest.mark.slow
def test_what_no_router_file_can_hold_is_refused(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(series, k, 2e6 * k**0.9) for series in ("a", "b") for k in (1, 4)]
    text = "".join(f"{series},{k},64,{rate}\n" for series, k, rate in rows)
    Path("two.csv").write_text("series,cores,frame_bytes,throughput_pps\n" + text, encoding="utf-8")
    shutil.copy(MEASURED / "meyer2014.csv", "four.csv")
    assert run(arguments) != 0
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not Path("x.toml").exists()


@pytest.mark.slow
def test_one_series_of_several_is_saved(tmp_path: Path) -> None:
    source = tmp_path / "two.csv"
    source.write_text("series,cores,frame_bytes,throughput_pps\na,1,64,2e6\na,4,64,7e6\nb,1,64,1e6\n", encoding="utf-8")
    path = tmp_path / "a.router.toml"
    assert run(["validate", str(source), "--series", "a", "--save-router", str(path)]) == 0
    assert solved_pps(path.read_text(encoding="utf-8"), 4) == pytest.approx(7e6, rel=0.02)
