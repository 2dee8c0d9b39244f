"""``routecast sweep`` on real files: what is printed and written, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from in_process import completed

EXAMPLES = Path(__file__).parents[2] / "examples"
QUAD = EXAMPLES / "multicore.router.toml"
ROUTER = """
builder = "multicore"
cores = 4
service = { per_packet = "1 us" }
[load]
rate = "3 Mpps"
flows = { count = 4 }
"""


@pytest.fixture
def router(tmp_path: Path) -> Path:
    path = tmp_path / "quad.router.toml"
    path.write_text(ROUTER)
    return path


def test_a_table_is_neither_wrapped_nor_padded_and_says_that_flows_follow(router: Path) -> None:
    done = completed("sweep", router, "--vary", "cores=1..4", "--vary", "frame=64,512,IMIX", "--simulate", COLUMNS="")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert all(line == line.rstrip() for line in lines)
    rows = [line.split() for line in lines if line.endswith("cpu")]
    assert len(rows) == 12
    # Two cores of 1 us a frame.
    assert rows[3][:8] == ["2", "64", "B", "2", "2", "Mpps", "2", "Mpps"]
    assert "Flows follow the cores" in done.stdout


def test_a_rate_is_what_solve_says_for_the_same_file() -> None:
    points = json.loads(completed("sweep", QUAD, "--vary", "cores=2,4", "--json").stdout)["points"]
    overload = json.loads(completed("solve", QUAD, "--load", "29 Mpps", "--json").stdout)
    own = next(point for point in points if point["settings"] == {"cores": 4})
    assert own["maximum_pps"] == pytest.approx(overload["forwarded_pps"])
    assert own["lossless_pps"] == pytest.approx(min(resource["capacity_pps"] for resource in overload["resources"]))
    assert own["bottleneck"]["name"] == overload["bottleneck"]["name"]


def test_a_load_gives_each_point_the_trial_of_solve_and_of_simulate() -> None:
    arguments = ("sweep", QUAD, "--vary", "load=1 Mpps,8 Mpps", "--arrivals", "poisson", "--simulate", "--json")
    points = json.loads(completed(*arguments, "--duration", "20 ms").stdout)["points"]
    for point in points:
        load = ("--load", point["settings"]["load"], "--arrivals", "poisson", "--json")
        solved = json.loads(completed("solve", QUAD, *load).stdout)
        simulated = json.loads(completed("simulate", QUAD, *load, "--duration", "20 ms").stdout)
        assert point["forwarded_pps"] == solved["forwarded_pps"]
        assert point["loss_ratio"] == solved["loss_ratio"]
        latency = solved["latency"]
        assert point["latency_mean_s"] == (latency and latency["mean_s"])
        assert point["simulated"]["forwarded_pps"] == simulated["forwarded_pps"]
        assert point["simulated"]["latency_p99_s"] == simulated["latency"]["p99_s"]


def test_csv_has_a_line_for_each_combination_in_base_units(router: Path) -> None:
    done = completed("sweep", router, "--vary", "cores=1,2", "--vary", "service.per_packet=1 us,2 us", "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["cores"] for row in rows] == ["1", "1", "2", "2"]
    assert [float(row["lossless_pps"]) for row in rows] == pytest.approx([1e6, 5e5, 2e6, 1e6])
    assert {row["bottleneck_name"] for row in rows} == {"cpu"}
    assert "Flows follow the cores" in done.stderr


def test_what_is_not_known_is_null_and_not_known(router: Path) -> None:
    arguments = ("sweep", router, "--vary", "load=3 Mpps", "--arrivals", "on_off")
    (point,) = json.loads(completed(*arguments, "--json").stdout)["points"]
    solved = json.loads(completed("solve", router, "--load", "3 Mpps", "--arrivals", "on_off", "--json").stdout)
    assert solved["latency"] is None
    assert point["latency_mean_s"] is None
    assert "not known" in completed(*arguments).stdout


@pytest.mark.slow
def test_a_page_has_the_figure_the_table_and_the_command(router: Path, tmp_path: Path) -> None:
    page = tmp_path / "sweep.html"
    done = completed("sweep", router, "--vary", "frame=IMIX,64", "--vary", "cores=1..4", "--simulate", "--out", page)
    assert done.returncode == 0, done.stderr
    html = page.read_text()
    assert "Rate over cores" in html
    assert "frame IMIX" in html
    assert "is busy all the time" in html
    assert "--vary cores=1..4" in html


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.router.toml")), ids=lambda file: file.name)
@pytest.mark.slow
def test_every_example_can_be_swept(file: Path) -> None:
    done = completed("sweep", file, "--vary", "frame=128,1500", "--json")
    assert done.returncode == 0, done.stderr
    points = json.loads(done.stdout)["points"]
    assert all(point["lossless_pps"] is None or point["lossless_pps"] > 0.0 for point in points)
    assert all(point["bottleneck"]["name"] for point in points if not point["problem"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "nothing varies"),
        (["--vary", "coers=1..4"], 'did you mean "cores"?'),
        (["--vary", "cores=4..1"], "write 1..4"),
        (["--vary", "cores=0..4"], "cores = 0"),
        (["--vary", "frame=64 Mbit"], "64 Mbit"),
        (["--vary", "cores=1..101", "--vary", "ports=1..100"], "10,100 combinations"),
        (["--vary", "load=1 Mpps", "--load", "2 Mpps"], "leave one of them out"),
        (["--vary", "frame=64", "--frame", "64 B"], "leave one of them out"),
        (["--vary", "cores=1", "--csv", "--json"], "give one of them"),
        (["--vary", "cores=1", "--duration", "1 s"], "--simulate"),
        (["--vary", "cores=1", "--simulate", "--duration", "1"], "unit"),
        (["--vary", "cores=1", "--out", "page.pdf"], ".html"),
        (["--vary", "cores=1", "--out", "nowhere/page.html"], "no folder nowhere"),
        (["--vary", "cores=1", "--load", "fast"], "fast"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_option_is_a_usage_error_that_names_it(router: Path, options: list[str], words: str) -> None:
    done = completed("sweep", router, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_rates_of_a_trace_scale_its_times(router: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("time_s,frame_bytes,flow\n" + "".join(f"{frame}e-6,64,{frame % 2}\n" for frame in range(500)))
    arguments = ("sweep", router, "--arrivals", trace)
    rows = json.loads(completed(*arguments, "--vary", "load=1 Mpps,2 Mpps", "--json").stdout)["points"]
    assert [row["intended_pps"] for row in rows] == pytest.approx([1e6, 2e6])
    (point,) = json.loads(completed(*arguments, "--vary", "cores=2", "--simulate", "--json").stdout)["points"]
    # Two cores of 1 us a frame; at line rate both are full, but for what still waits at the end.
    assert point["overloads_nothing_pps"] == point["lossless_pps"] == pytest.approx(2e6)
    assert point["simulated"]["forwarded_pps"] == pytest.approx(2e6, rel=0.06)


def test_a_router_of_machines_says_what_to_vary_instead_of_cores() -> None:
    done = completed("sweep", EXAMPLES / "parallel.router.toml", "--vary", "cores=1..4")
    assert done.returncode == 2
    assert "server[" in done.stderr


def test_loads_in_bit_s_are_of_the_frames_of_each_combination(router: Path, tmp_path: Path) -> None:
    page = tmp_path / "sweep.html"
    arguments = ("--vary", "load=1..2 Gbit/s", "--vary", "frame=64,512", "--json", "--out", page)
    points = json.loads(completed("sweep", router, *arguments).stdout)["points"]
    # 20 B of gap and preamble a frame (S1).
    assert [point["intended_pps"] for point in points] == [
        pytest.approx(rate * 1e9 / (8 * size)) for rate in (1, 2) for size in (84, 532)
    ]
    assert "load [Gbit/s]" in page.read_text()


def test_loads_in_bit_s_and_in_frames_vary_together(router: Path, tmp_path: Path) -> None:
    page = tmp_path / "sweep.html"
    done = completed("sweep", router, "--vary", "load=1 Mpps,1 Gbit/s", "--json", "--out", page)
    assert [point["intended_pps"] for point in json.loads(done.stdout)["points"]] == [1e6, pytest.approx(1e9 / 672)]
    assert page.exists()
