"""``import routecast as rc``: the loop in a few lines, each answer that of the command of the same name."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest

import routecast as rc
from routecast.cli.run import run
from routecast.errors import ArgumentProblem, RoutecastError
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


def test_only_what_a_user_needs_is_listed() -> None:
    assert dir(rc) == sorted(rc.__all__)
    assert not any(isinstance(getattr(rc, name), ModuleType) for name in dir(rc))
    assert {"RoutecastError", "Sizing", "Trial", "calibrate", "solve"} <= set(dir(rc))
    listed = "import routecast as rc; rc.solve; rc.Sizing; import routecast.plan; print(*dir(rc))"
    after = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout
    assert after.split() == dir(rc)  # submodules that were imported meanwhile are not listed either


def test_importing_the_package_loads_no_library() -> None:
    heavy = "import sys, routecast; print({'numpy', 'polars', 'pydantic', 'pint'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True).stdout == "set()\n"


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
    assert fitted.router(8).model.pools[0].units == 8


SIX = """cores,frame_bytes,throughput_pps,shared_queue,link_bps
1,64,1.52e6,no,100e9
2,64,2.97e6,no,100e9
4,64,5.61e6,no,100e9
8,64,10.2e6,no,100e9
1,1518,1.41e6,no,100e9
4,1518,5.02e6,no,100e9
"""


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> rc.Calibration:
    path = tmp_path_factory.mktemp("six") / "six.csv"
    path.write_text(SIX)
    return rc.calibrate(path)


def test_a_calibrated_router_is_a_router_like_any_other(six: rc.Calibration) -> None:
    router = six.router(8)
    assert isinstance(router, rc.Router)
    assert {port.link_bps for port in router.model.ports} == {100e9}  # of the table
    assert len(router.model.ports) == 2
    for frames in (64, "IMIX", 1518):
        (predicted,) = six.predict(8, frames).to_dicts()
        solved = rc.solve(router, "14 Mpps", frames=frames)
        assert solved.forwarded_pps == pytest.approx(predicted["throughput_pps"], rel=0.01)
        exact = rc.solve(six.router(8, frames), "14 Mpps", frames=frames)
        assert exact.forwarded_pps == pytest.approx(predicted["throughput_pps"], rel=1e-3)
    simulated = rc.simulate(router, "14 Mpps", frames="IMIX", duration="5 ms")
    assert simulated.forwarded_pps == pytest.approx(rc.solve(router, "14 Mpps", frames="IMIX").forwarded_pps, rel=0.02)
    swept = rc.sweep(router, cores=[1, 4, 8], frame=64)
    assert swept["maximum_pps"].to_list() == pytest.approx([1.52e6, 5.61e6, 10.2e6], rel=0.03)  # as measured


@pytest.mark.parametrize(
    ("link", "ports", "nic_cap"),
    [("10e9", "2", ""), ("25e9", "1", ""), ("40e9", "4", ""), ("100e9", "2", "30e6"), ("", "2", "12e6")],
)
def test_a_calibrated_router_keeps_links_ports_and_caps(link: str, ports: str, nic_cap: str) -> None:
    rows = [
        {
            "cores": cores,
            "frame_bytes": 64,
            "throughput_pps": rate,
            "link_bps": link,
            "ports": ports,
            "nic_cap": nic_cap,
        }
        for cores, rate in ((1, 1.52e6), (2, 2.97e6), (4, 5.61e6))
    ]
    document = [{("nic_cap_pps" if key == "nic_cap" else key): entry for key, entry in row.items()} for row in rows]
    fitted = rc.calibrate(document)
    model = fitted.router(32).model
    assert len(model.ports) == int(ports)
    if link:
        assert {port.link_bps for port in model.ports} == {float(link)}
    offered = rc.solve(fitted.router(32), "200 Mpps")
    line_pps = int(ports) * line_rate_pps(float(link), 64) if link else math.inf
    assert offered.forwarded_pps <= min(line_pps, float(nic_cap) * 1.03 if nic_cap else math.inf) * (1.0 + 1e-9)
    assert fitted.fitted.router_model(32, 64.0).ports == model.ports  # the inner call has them too


def test_a_cap_that_nobody_stated_is_a_cap_of_the_router() -> None:
    # 10 Gbit/s on the wire with several sizes and counts: a link (S1), though no column says so.
    sizes = (64, 256, 512, 1518)
    line = {size: line_rate_pps(10e9, size) for size in sizes}
    rows = [
        {"cores": cores, "frame_bytes": size, "throughput_pps": min(cores * 3.3e6, line[size])}
        for cores in (1, 2, 4)
        for size in sizes
    ]
    router = rc.calibrate(rows).router(8)
    forwarded = rc.solve(router, "60 Gbit/s", frames=1518).forwarded_pps
    assert forwarded == pytest.approx(line[1518], rel=0.02)


@pytest.mark.parametrize(
    "changes",
    [{"ports": 4, "cores": 4}, {"cores": 3}, {"cores": 6, "ports": 4}, {"ports": 4}, {"link": "1 Gbit/s", "cores": 3}],
)
@pytest.mark.parametrize("with_load", [True, False])
def test_a_varied_router_answers_as_a_sweep_and_its_command(
    changes: dict[str, object], with_load: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.router.toml"
    text = EXAMPLE.read_text()
    path.write_text(text if with_load else text.partition("[load]")[0])
    router = rc.read(path)
    solved = rc.solve(router.varied(**changes), "20 Mpps")
    (row,) = rc.sweep(router, load="20 Mpps", **changes).to_dicts()
    varied = [argument for key, entry in changes.items() for argument in ("--vary", f"{key}={entry}")]
    assert run(["sweep", str(path), *varied, "--load", "20 Mpps", "--json"]) == 0
    (point,) = json.loads(capsys.readouterr().out)["points"]
    assert (solved.forwarded_pps, solved.loss_ratio) == (row["forwarded_pps"], row["loss_ratio"])
    assert row["forwarded_pps"] == point["forwarded_pps"]
    assert row["flows"] == point["flows"]


def test_every_kind_of_table_calibrates_the_same_router(six: rc.Calibration, tmp_path: Path) -> None:
    frame = pl.read_csv(SIX.encode())
    frame.write_parquet(tmp_path / "six.parquet")
    columns = frame.to_dict(as_series=False)
    tables = [
        tmp_path / "six.parquet",
        str(tmp_path / "six.parquet"),
        frame,
        frame.lazy(),
        columns,
        {name: np.array(column) for name, column in columns.items()},
        {**columns, "shared_queue": "no", "link_bps": 100e9},  # one value for every row
        frame.to_dicts(),
        six.points,
    ]
    for table in tables:
        assert rc.calibrate(table).points == six.points
    assert rc.calibrate([{"cores": 1, "throughput": "1.5 Mpps"}]).remarks  # frames of 64 B are assumed


def test_a_pandas_frame_is_a_table(six: rc.Calibration) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(pl.read_csv(SIX.encode()).to_dict(as_series=False))
    assert rc.calibrate(frame).points == six.points


class FrameOfPandas:
    """What of a pandas frame is used: names of columns, and a column by its name; missing cells are NaN."""

    columns = ("cores", "frame_bytes", "throughput_pps", "calibrate")

    def __getitem__(self, name: str) -> np.ndarray:
        table = {"cores": [1, 2, 4], "frame_bytes": [64.0] * 3, "throughput_pps": [1.5e6, 2.9e6, math.nan]}
        return np.array({**table, "calibrate": [True, True, False]}[name])


def test_a_named_index_of_a_pandas_frame_is_a_column(six: rc.Calibration) -> None:
    pandas = pytest.importorskip("pandas")
    columns = {"cores": [p.cores for p in six.points], "pps": [p.throughput_pps for p in six.points]}
    for heads in (["cores"], ["cores", "pps"]):
        frame = pandas.DataFrame({**columns, "frame": [64] * len(six.points)}).set_index(heads)
        assert [point.cores for point in rc.calibrate(frame).points] == columns["cores"]


def test_a_number_of_cores_is_read_from_text_everywhere(six: rc.Calibration) -> None:
    assert six.router("8").to_polars().equals(six.router(8).to_polars())  # type: ignore[arg-type]
    assert six.size("6 Mpps", cores=["1", "8"]).answer == six.size("6 Mpps", cores=[1, 8]).answer  # type: ignore[list-item]


def test_a_table_in_place_of_a_router_is_answered_with_the_call_that_calibrates_it() -> None:
    for table in ("six.csv", Path("six.parquet"), pl.DataFrame({"cores": [1]})):
        with pytest.raises(ArgumentProblem, match=r"rc\.calibrate\(\w+\)\.router\(8\)"):
            rc.solve(table, "1 Mpps")  # type: ignore[arg-type]


def test_missing_cells_of_a_frame_are_empty() -> None:
    points = rc.calibrate(FrameOfPandas()).points
    assert [(point.cores, point.calibrate) for point in points] == [(1, True), (2, True), (4, False)]
    assert math.isnan(points[2].throughput_pps)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "is empty"),
        ([], "is empty"),
        ({"cores": [1, 2], "throughput": ["1 Mpps"]}, "columns of several lengths"),
        ([{"cores": 1}], "column throughput_pps is missing"),
        ([{"cores": "x", "throughput": "1 Mpps"}], "row 2, column cores"),
        ([1, 2], "a polars or pandas frame"),
        (7, "a polars or pandas frame"),
        (None, "got None for a table"),
        (b"cores", "got a bytes"),
        ([{"cores": 1, "throughput": "1 Mpps"}, 7], "a polars or pandas frame"),
        (pl.Series([1, 2]), "a polars or pandas frame"),
    ],
)
def test_a_table_that_is_none_is_reported_in_words(table: object, words: str) -> None:
    with pytest.raises(RoutecastError, match=words):
        rc.calibrate(table)


def test_answers_are_tables(six: rc.Calibration) -> None:
    answer = six.size("8 Mpps", cores="6..9")
    table = answer.to_polars()
    assert table["cores"].to_list() == [6, 7, 8, 9]
    assert answer.least is not None
    assert table.filter(pl.col("is_least"))["cores"].to_list() == [answer.least.cores]
    assert table["probability"].to_list() == [count.probability for count in answer.counts]
    measured = six.to_polars()
    assert measured.height == 6
    assert measured["measured_pps"].to_list() == [point.throughput_pps for point in six.points]
    assert (measured["low_pps"] <= measured["high_pps"]).all()
    router = rc.read(EXAMPLE)
    fields = dict(router.to_polars().iter_rows())
    assert (fields["cores"], fields["service.per_packet"]) == ("4", "562.8 ns")
    assert rc.read(EXAMPLE).varied(**{"service.per_packet": fields["service.per_packet"]}).model == router.model
    for shown in (answer, six, router):
        html = shown._repr_html_()
        assert html.startswith("<table")
        assert html.count("<tr") == html.count("</tr>") > 3
    assert "7 cores" in answer._repr_html_()


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("forwarding_rate_pps", "forwarding rates at the maximum offered load (RFC 2285)"),
        ("mrr_pps", "forwarding rates at the maximum offered load (RFC 2285)"),
        ("lossless_pps", "throughputs without loss (RFC 1242)"),
        ("ndr_pps", "throughputs without loss (RFC 1242)"),
        ("throughput_pps", ""),
    ],
)
def test_size_says_which_kind_of_rate_it_used_and_which_rows_were_disturbed(head: str, words: str) -> None:
    reasons = ["", "other work took 12 % of core 1", "yes"]
    table = {"cores": [1, 2, 4], "frame_bytes": 64, head: [1.5e6, 2.9e6, 5.6e6], "disturbed": reasons}
    answer = rc.calibrate(table).size("2 Mpps", cores="1..4")
    assert any("2 of 3 rows were disturbed" in remark and "12 % of core 1" in remark for remark in answer.remarks)
    kinds = [remark for remark in answer.remarks if "RFC" in remark]
    assert [words in kind for kind in kinds] == ([True] if words else [])


def test_size_asks_where_a_table_mixes_kinds_of_rates() -> None:
    rates = {"throughput_pps": [1.5e6, 2.9e6, 5.6e6], "rate_kind": ["overload", "no_loss", "no_loss"]}
    answer = rc.calibrate({"cores": [1, 2, 4], **rates}).size("2 Mpps", cores="1..4")
    assert any("which are meant?" in remark for remark in answer.remarks)


def test_options_of_size_are_those_of_the_command(six: rc.Calibration, tmp_path: Path) -> None:
    assert [count.cores for count in six.size("8 Mpps", cores="1..8").counts] == list(range(1, 9))
    assert [count.cores for count in six.size("8 Mpps", cores=[8, 4, np.int64(6)]).counts] == [4, 6, 8]
    assert [count.cores for count in six.size("8 Mpps", cores=8).counts] == [8]
    assert six.size(8e6).target == six.size("8 Mpps", "64 B").target
    assert six.size("8 Mpps", confidence="99%", loss="0.1 %").target.loss_ratio == 0.001
    bounded = six.size("8 Mpps", cores="6..9", latency="p99 < 2 us")
    assert str(bounded.bounds[0]) == "p99 < 2 us"
    noisy = rc.calibrate(six.points, noise_ratio="5 %").size("8 Mpps", cores="1..16")
    assert noisy.counts[6].high_pps / noisy.counts[6].low_pps > 1.1  # the noise of the calibration holds here too


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"per_packet": 562}, '"562 ns" or "562 s"'),
        ({"per_packet": 0.562}, "which is 0.562 s"),
        ({"per_packet": "562 ns", "per_byte": 0.4}, '"0.4 ns/B" or "0.4 s/B"'),
        ({"per_packet": "562 ns", "link": 10}, '"10 Gbit/s" or "10 bit/s"'),
        ({"per_packet": "562 ns", "nic_cap": 14.88}, '"14.88 Mpps" or "14.88 pps"'),
        ({"per_packet": "562 ns", "frequency": 3.3}, '"3.3 GHz" or "3.3 Hz"'),
        ({"per_packet": "562 ns", "load": {"rate": 14}}, '"14 Mpps" or "14 pps"'),
    ],
)
def test_an_absurd_number_without_a_unit_is_asked_about(fields: dict[str, object], words: str) -> None:
    with pytest.raises(RoutecastError, match="without a unit") as problem:
        rc.multicore(4, **fields)  # type: ignore[arg-type]
    assert words in str(problem.value)


def test_numbers_are_base_units_wherever_a_field_is_written() -> None:
    router = rc.multicore(4, 562e-9, 8e-12, link=100e9, nic_cap=30e6, queue=256)
    texts = rc.multicore(4, "562 ns", "8 ps/B", link="100 Gbit/s", nic_cap="30 Mpps", queue="256 frames")
    assert router.model == texts.model
    assert router.varied(link=10e9).model == texts.varied(link="10 Gbit/s").model
    assert router.varied(**{"service.per_packet": 400e-9}).model.tasks[-1].service.per_packet_s == 400e-9
    by_number = rc.sweep(router, **{"service.per_packet": [400e-9, 500e-9]})
    by_text = rc.sweep(router, **{"service.per_packet": "400 ns,500 ns"})
    assert by_number["maximum_pps"].to_list() == pytest.approx(by_text["maximum_pps"].to_list())
    assert rc.solve(router, np.float64(1e6), frames=np.int64(128)).forwarded_pps == pytest.approx(1e6)
    assert rc.sweep(router, frames=[64, "7x64, 4x594"], cores="1..2").height == 4


WRONG = [
    *(None, True, 0, -1, 2.5, float("nan"), float("inf"), "", "x", "1 apple", b"64", [], [None], {}, {"a": 1}),
    *(object(), 1j, np.array([1.5, 2.0]), pl.DataFrame({"a": [1]}), range(0), "a\0b", "\ud800", 10**30, len, type),
]


@pytest.mark.parametrize(
    "call",
    [
        lambda wrong, _: rc.read(wrong),
        lambda wrong, _: rc.multicore(wrong, "562 ns"),
        lambda wrong, _: rc.multicore(2, wrong),
        lambda wrong, _: rc.multicore(2, "562 ns", wrong),
        lambda wrong, _: rc.multicore(2, "562 ns", name=wrong),
        lambda wrong, _: rc.multicore(2, "562 ns", link=wrong),
        lambda wrong, _: rc.multicore(2, "562 ns", queue=wrong),
        lambda wrong, _: rc.multicore(2, "562 ns", contention=wrong),
        lambda wrong, _: rc.multicore(2, "562 ns", builder=wrong),
        lambda wrong, _: rc.Router(wrong).model,
        lambda wrong, _: rc.solve(wrong, "1 Mpps"),
        lambda wrong, _: rc.solve(EXAMPLE, wrong),
        lambda wrong, _: rc.solve(EXAMPLE, frames=wrong),
        lambda wrong, _: rc.solve(EXAMPLE, flows=wrong),
        lambda wrong, _: rc.simulate(wrong, "1 Mpps", duration="1 ms"),
        lambda wrong, _: rc.simulate(EXAMPLE, "10 kpps", duration=wrong),
        lambda wrong, _: rc.simulate(EXAMPLE, "1 Mpps", duration="1 ms", seed=wrong),
        lambda wrong, _: rc.measure(wrong, dut="nowhere"),
        lambda wrong, _: rc.measure("1 kpps", dut="nowhere", testbed=wrong),
        lambda wrong, _: rc.measure("1 kpps", dut="nowhere" if wrong is None else wrong),
        lambda wrong, _: rc.measure("1 kpps", dut="nowhere", frames=wrong),
        lambda wrong, _: rc.measure("1 kpps", dut="nowhere", flows=wrong),
        lambda wrong, _: rc.measure("1 kpps", dut="nowhere", duration=wrong),
        lambda wrong, _: rc.measure("1 kpps", dut="nowhere", seed=wrong),
        lambda wrong, _: rc.measure("1 kpps", dut="nowhere", rules=wrong),
        lambda wrong, _: rc.sweep(wrong, cores=1),
        lambda wrong, _: rc.sweep(EXAMPLE, cores=1, simulate=wrong),
        lambda wrong, _: rc.sweep(EXAMPLE, cores=wrong),
        lambda wrong, _: rc.sweep(EXAMPLE, frame=wrong),
        lambda wrong, _: rc.sweep(EXAMPLE, flows=wrong),
        lambda wrong, _: rc.sweep(EXAMPLE, load=wrong),
        lambda wrong, _: rc.sweep(EXAMPLE, link=wrong),
        lambda wrong, _: rc.read(EXAMPLE).varied(cores=wrong),
        lambda wrong, _: rc.read(EXAMPLE).varied(link=wrong),
        lambda wrong, _: rc.read(EXAMPLE).varied(load=wrong),
        lambda wrong, _: rc.read(EXAMPLE).varied(service=wrong),
        lambda wrong, _: rc.calibrate(wrong),
        lambda wrong, six: rc.calibrate(six.points, series=wrong),
        lambda wrong, six: rc.calibrate(six.points, noise_ratio=wrong),
        lambda wrong, _: rc.calibrate([{"cores": wrong, "throughput": "1 Mpps"}]),
        lambda wrong, six: six.predict(cores=wrong),
        lambda wrong, six: six.predict(cores=1, frames=wrong),
        lambda wrong, six: six.size(wrong, cores=8),
        lambda wrong, six: six.size("8 Mpps", frames=wrong, cores=8),
        lambda wrong, six: six.size("8 Mpps", cores=wrong),
        lambda wrong, six: six.size("8 Mpps", cores=8, confidence=wrong),
        lambda wrong, six: six.size("8 Mpps", cores=8, loss=wrong),
        lambda wrong, six: six.size("8 Mpps", cores=8, latency=wrong),
        lambda wrong, six: six.next(wrong),
        lambda wrong, six: six.facts(wrong),
        lambda wrong, six: six.router(wrong),
        lambda wrong, six: six.router(2, wrong),
    ],
)
def test_no_value_makes_an_error_without_words(
    call: Callable[[object, rc.Calibration], object], six: rc.Calibration
) -> None:
    messages = []
    for wrong in WRONG:
        try:
            call(wrong, six)
        except RoutecastError as problem:  # any other error fails the test
            messages.append(str(problem))
    assert len(messages) > len(WRONG) / 2  # the list has values that are wrong for each
    assert all(messages)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: rc.solve(7, "1 Mpps"),  # type: ignore[arg-type]
        lambda: rc.solve(EXAMPLE, [1]),  # type: ignore[arg-type]
        lambda: rc.solve(EXAMPLE, "1 Mpps", frames=b"64"),  # type: ignore[arg-type]
        lambda: rc.solve(EXAMPLE, True, frames=True),
        lambda: rc.sweep(EXAMPLE, cores={"a": 1}),
    ],
)
def test_a_wrong_type_is_reported_in_words(wrong: object) -> None:
    with pytest.raises(TypeError, match="got a") as problem:
        wrong()  # type: ignore[operator]
    assert isinstance(problem.value, RoutecastError)
    again = pickle.loads(pickle.dumps(problem.value))
    assert (type(again), str(again)) == (ArgumentProblem, str(problem.value))


def test_a_calibration_is_no_router_and_the_error_names_the_remedy(six: rc.Calibration) -> None:
    with pytest.raises(RoutecastError, match=r"fitted\.router\(8\)"):
        rc.solve(six, "1 Mpps")  # type: ignore[arg-type]


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


def test_a_router_whose_arrivals_are_a_trace_takes_all_of_it(tmp_path: Path) -> None:
    rows = "".join(f"{number * 4e-7:.7f},64,0\n" for number in range(30_000))
    (tmp_path / "lab.csv").write_text("time_s,frame_bytes,flow\n" + rows)
    path = tmp_path / "r.router.toml"
    path.write_text(
        'builder = "multicore"\ncores = 4\nqueue = "512 frames"\nservice = { per_packet = "1 us" }\n\n'
        '[load]\narrivals = { kind = "trace", trace = "lab.csv" }\n'
    )
    solved, simulated = rc.solve(path), rc.simulate(path)
    # 2.5 Mpps on a core of 1 Mpps: 60 % but for the 513 frames that are inside at the end.
    assert solved.loss_ratio == pytest.approx(0.6 - 513 / 30_000, abs=1e-3)
    assert simulated.loss_ratio == pytest.approx(solved.loss_ratio, abs=1e-3)
    assert simulated.duration_s == pytest.approx(0.012)
    assert rc.solve(path, "0.5 Mpps").loss_ratio == 0.0
    with pytest.raises(RoutecastError, match="beside a trace"):
        rc.solve(path, frames="IMIX")


def test_frame_and_frames_are_both_taken_and_not_together() -> None:
    router = rc.multicore(2, "1 us")
    fitted = rc.calibrate({"cores": [1, 2, 4], "frame": 64, "throughput_mpps": [1.9, 3.7, 7.2]})
    answers = {
        "solve": lambda **frames: rc.solve(router, "1 Gbit/s", **frames).forwarded_pps,
        "simulate": lambda **frames: rc.simulate(router, "1 Gbit/s", duration="1 ms", **frames).forwarded_pps,
        "size": lambda **frames: fitted.size("2 Gbit/s", cores="1..4", **frames).target.rate_pps,
        "predict": lambda **frames: fitted.predict(2, **frames)["frame_bytes"][0],
        "router": lambda **frames: fitted.router(2, **frames).document["service"],
        "varied": lambda **frames: str(router.varied(load="1 Mpps", **frames).load),
        "sweep": lambda **frames: rc.sweep(router, **frames)["frame"][0],
    }
    for name, answer in answers.items():
        assert answer(frame="512 B") == answer(frames="512 B"), name
        with pytest.raises(RoutecastError, match="frame and frames are the same: give one"):
            answer(frame="512 B", frames="512 B")


def test_sweep_names_varied_fields_as_python_writes_them() -> None:
    router = rc.multicore(2, "1 us")
    for varied, words in (
        ({"coress": [1, 2]}, 'varied(coress=…): "coress" is no key'),
        ({"load": "abc"}, "varied(load=…): "),
        ({"servise.per_packet": ["1 us"]}, 'varied(**{"servise.per_packet": …}): '),
        ({}, 'nothing varies: give values, such as varied(cores="1..16")'),
    ):
        with pytest.raises(RoutecastError) as caught:
            rc.sweep(router, **varied)
        assert words in str(caught.value)
        assert "--vary" not in str(caught.value)


def test_the_name_of_a_calibrated_router_follows_its_cores() -> None:
    router = rc.calibrate({"cores": [1, 2, 4], "throughput_mpps": [1.9, 3.7, 7.2]}).router(8)
    assert router.varied(cores=4).model.name == "calibrated router, 4 cores"
    assert router.varied(cores=4, name="mine").model.name == "mine"
    assert router.varied(ports=4).model.name == router.model.name == "calibrated router, 8 cores"
    assert rc.multicore(8, "1 us", name="my 8 cores").varied(cores=4).model.name == "my 8 cores"
