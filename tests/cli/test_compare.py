"""``routecast compare``: two results of the same kind beside each other."""

from __future__ import annotations

import io
import json
import math
import re
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from in_process import completed

from routecast.cli.run import run

EXAMPLES = Path(__file__).parents[2] / "examples"
MULTICORE = EXAMPLES / "multicore.router.toml"
SIMULATED = ("simulate", MULTICORE, "--arrivals", "poisson", "--load", "4 Mpps", "--duration", "20 ms")


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of trials, sweeps and benchmarks of one router."""
    folder = tmp_path_factory.mktemp("trials")
    for name, arguments in {
        "solved": ("solve", MULTICORE),
        "less": ("solve", MULTICORE, "--load", "6 Mpps"),
        "one": (*SIMULATED, "--seed", "1"),
        "two": (*SIMULATED, "--seed", "2"),
        "sweep": ("sweep", MULTICORE, "--vary", "cores=1..3"),
        "more": ("sweep", MULTICORE, "--vary", "cores=2..4", "--frame", "512 B"),
    }.items():
        done = completed(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        (folder / f"{name}.json").write_text(done.stdout)
    for frame in ("64", "128"):
        done = completed(
            *("benchmark", "rfc2544", MULTICORE, "--evaluator", "solve", "--profile", "quick"),
            *("--frame", f"{frame} B", "--procedures", "throughput,latency", "--out", folder / f"bench{frame}"),
        )
        assert done.returncode == 0, done.stderr
    return folder


def test_trials_differ_in_what_was_set_and_in_what_was_answered(trials: Path) -> None:
    done = completed("compare", "solved.json", "less.json", "--all", folder=trials)
    assert done.returncode == 0, done.stderr
    settings, results = done.stdout.split("Results\n")
    assert "intended rate" in settings
    assert "−25 %" in settings
    assert "no interval" in results
    assert "quantities are the same" in results.splitlines()[-1]


def test_two_simulations_of_the_same_are_noise_where_they_have_intervals(trials: Path) -> None:
    done = completed("compare", "one.json", "two.json", "--json", folder=trials)
    assert done.returncode == 0, done.stderr
    (rate,) = [each for each in json.loads(done.stdout)["differences"] if each["quantity"] == "forwarded_pps"]
    assert rate["a"]["low"] < rate["a"]["value"] < rate["a"]["high"]
    assert rate["verdict"] == "noise"


def test_a_result_does_not_differ_from_itself(trials: Path) -> None:
    for name in (
        "solved.json",
        "one.json",
        "sweep.json",
        "bench64",
        "bench64/benchmark.json",
        "bench64/trials.parquet",
    ):
        done = completed("compare", name, name, folder=trials)
        assert done.returncode == 0, done.stderr
        assert "No difference" in done.stdout


def test_the_answer_comes_first_and_names_things_and_not_keys(trials: Path) -> None:
    done = completed("compare", "solved.json", "less.json", folder=trials)
    assert done.stdout.startswith("intended rate 6 instead of 8 Mpps: 6.00 instead of 6.09 Mpps")
    assert "_pps" not in done.stdout
    answer = json.loads(completed("compare", "solved.json", "less.json", "--json", folder=trials).stdout)
    assert answer["sentences"][0] in done.stdout
    assert "forwarded rate" in {each["name"] for each in answer["differences"]}


def test_the_differences_are_drawn_where_they_have_intervals(trials: Path) -> None:
    done = completed("compare", "one.json", "two.json", "--figure", "figure.svg", folder=trials)
    assert done.returncode == 0, done.stderr
    assert "difference [% of A]" in (trials / "figure.svg").read_text()
    done = completed("compare", "sweep.json", "more.json", "--figure", "none.svg", folder=trials)
    assert done.returncode == 2
    assert "nothing to draw" in done.stderr


def test_sizings_of_one_table_are_compared_draw_by_draw(tmp_path: Path) -> None:
    for name, frames in (("small", "64 B"), ("large", "1518 B")):
        arguments = ("--target", "4 Mpps", "--frames", frames, "--cores", "2..5", "--json")
        done = completed("size", EXAMPLES / "points.csv", *arguments)
        (tmp_path / f"{name}.json").write_text(done.stdout)
    done = completed("compare", "small.json", "large.json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    answer, rates, *_ = done.stdout.splitlines()
    assert answer.endswith(" for 4 Mpps of 1518 B instead of 3 cores for 4 Mpps of 64 B.")
    assert "frames 1518 B instead of 64 B: " in rates
    assert "compared draw by draw" in done.stdout


def test_two_sizings_are_answered_in_a_sentence_first(tmp_path: Path) -> None:
    # The counts of a linear router of 2 Mpps a core follow from the target: 3 cores for 5.5 Mpps, 4 for 7.5 Mpps.
    table = tmp_path / "linear.csv"
    table.write_text("cores,frame,throughput_mpps\n" + "".join(f"{k},64,{2 * k}\n" for k in range(1, 6)))
    for name, target in (("small", "5.5 Mpps"), ("large", "7.5 Mpps")):
        done = completed("size", table, "--target", target, "--cores", "1..5", "--json")
        (tmp_path / f"{name}.json").write_text(done.stdout)
    done = completed("compare", "small.json", "large.json", folder=tmp_path)
    assert done.stdout.splitlines()[0] == "4 cores for 7.5 Mpps of 64 B instead of 3 cores for 5.5 Mpps of 64 B."
    assert "least cores, cores" not in done.stdout
    done = completed("compare", "small.json", "small.json", folder=tmp_path)
    assert done.stdout.splitlines()[0] == "3 cores for 5.5 Mpps of 64 B in both."


def test_sizings_beyond_the_measured_cores_are_paired_with_their_ceilings(tmp_path: Path) -> None:
    table = tmp_path / "grow.csv"
    table.write_text("cores,frame,throughput_mpps\n1,64,2.0\n2,64,3.95\n3,64,5.8\n4,64,7.6\n4,128,7.3\n")
    for name, frames in (("small", "64 B"), ("large", "128 B")):
        done = completed("size", table, "--target", "9 Mpps", "--frames", frames, "--cores", "4..8", "--json")
        (tmp_path / f"{name}.json").write_text(done.stdout)
    done = completed("compare", "small.json", "large.json", folder=tmp_path)
    headline = done.stdout.splitlines()[1]
    assert "frames 128 B instead of 64 B: " in headline
    # What an open fact leaves open is a result: a number of nine digits stood among the settings.
    assert not re.search(r"\d{7}", headline)
    differences = json.loads(completed("compare", "small.json", "large.json", "--json", folder=tmp_path).stdout)
    beyond = [each for each in differences["differences"] if each["quantity"] == "rate_pps" and "8" in each["place"]]
    (eight,) = beyond
    widths = [eight[side]["high"] - eight[side]["low"] for side in ("a", "b")]
    # A ceiling between four and eight cores is one ceiling for both sizes, so that the difference is known better.
    assert eight["paired"]
    assert eight["high"] - eight["low"] < 0.7 * math.hypot(*widths)


def test_sweeps_meet_at_their_settings(trials: Path) -> None:
    answer = json.loads(completed("compare", "sweep.json", "more.json", "--json", folder=trials).stdout)
    places = {each["place"] for each in answer["differences"]}
    assert {"points[cores=2]", "points[cores=3]"} <= places
    assert "points[cores=1]" in answer["only_a"]
    assert "points[cores=4]" in answer["only_b"]


def test_benchmarks_meet_at_their_frame_sizes(trials: Path) -> None:
    done = completed("compare", "bench64", "bench128", folder=trials)
    assert done.returncode == 0, done.stderr
    assert "frame size 128 instead of 64 B: " in done.stdout
    assert " at no loss, " in done.stdout


def test_long_tables_are_cut_and_say_so(trials: Path) -> None:
    cut = completed("compare", "solved.json", "one.json", folder=trials).stdout
    whole = completed("compare", "solved.json", "one.json", "--all", folder=trials).stdout
    assert ("more rows: --all" in cut) == (len(cut.splitlines()) < len(whole.splitlines()))
    assert "more rows" not in whole


def test_a_page_has_every_row(trials: Path) -> None:
    done = completed("compare", "solved.json", "less.json", "--out", "page.html", folder=trials)
    assert done.returncode == 0, done.stderr
    page = (trials / "page.html").read_text()
    assert "forwarded rate" in page
    assert "routecast compare solved.json less.json" in page
    assert completed("compare", "solved.json", "solved.json", "--out", "same.html", folder=trials).returncode == 0
    assert "No difference" in (trials / "same.html").read_text()


@pytest.mark.slow
def test_studies_of_two_names_are_compared_with_a_remark(study: object, tmp_path: Path) -> None:
    folder = study("meyer2014")  # type: ignore[operator]
    done = completed("compare", folder, folder, folder=tmp_path)
    assert "No difference" in done.stdout
    other = tmp_path / "other"
    other.mkdir()
    document = json.loads((folder / "summary.json").read_text()) | {"study": "mine"}
    (other / "summary.json").write_text(json.dumps(document))
    done = completed("compare", folder, "other", folder=tmp_path)
    assert done.returncode == 0
    assert 'Two studies: "meyer2014" and "mine"' in done.stderr


@pytest.mark.slow
def test_a_changed_copy_is_compared_with_the_study_that_ships_in_three_commands(tmp_path: Path) -> None:
    assert completed("study", "--copy", "meyer2014", "mine", folder=tmp_path).returncode == 0
    copy = tmp_path / "mine" / "meyer2014.study.toml"
    copy.write_text(copy.read_text().replace("cores = 8", "cores = 5"))
    assert completed("study", "mine/meyer2014.study.toml", folder=tmp_path).returncode == 0
    done = completed("compare", "meyer2014", "mine/meyer2014", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "running the shipped study into meyer2014" in done.stderr
    cores = [
        {row["cores"] for row in json.loads((tmp_path / folder / "summary.json").read_text())["scenarios"]["fig9"]}
        for folder in ("mine/meyer2014", "meyer2014")
    ]
    assert cores == [{5}, {8}]
    again = completed("compare", "meyer2014", "mine/meyer2014", folder=tmp_path)
    assert again.stdout == done.stdout
    assert "running" not in again.stderr
    assert done.stdout.startswith("5 instead of 8 cores: ")
    assert "compared draw by draw" in done.stdout
    assert "Five cores, two links of 50 Gbit/s" in (tmp_path / "mine" / "meyer2014" / "report.html").read_text()


@pytest.mark.slow
def test_fewer_cores_of_one_calibration_differ_draw_by_draw_and_not_without_it(study: object, tmp_path: Path) -> None:
    eight = study("meyer2014")  # type: ignore[operator]
    assert completed("study", "--copy", "meyer2014", "mine", folder=tmp_path).returncode == 0
    copy = tmp_path / "mine" / "meyer2014.study.toml"
    copy.write_text(copy.read_text().replace("cores = 8", "cores = 6"))
    assert completed("study", copy, "--out", "six", folder=tmp_path).returncode == 0
    full = "scenarios.fig9[frame_bytes=64, flows=100]"

    def rate() -> dict[str, object]:
        document = json.loads(completed("compare", eight, "six", "--json", folder=tmp_path).stdout)
        (row,) = [each for each in document["differences"] if (each["place"], each["quantity"]) == (full, "solved_pps")]
        return {**row, "pairing": document["pairing"], "sentences": document["sentences"]}

    paired = rate()
    assert (paired["verdict"], paired["paired"]) == ("differs", True)
    assert paired["sentences"][0].startswith("6 instead of 8 cores: ")  # type: ignore[index]
    assert " at 64 B and 100 flows, -2" in paired["sentences"][0]  # type: ignore[index]
    summary = tmp_path / "six" / "summary.json"
    document = json.loads(summary.read_text())
    del document["calibrations"]
    summary.write_text(json.dumps(document))
    older = rate()
    assert (older["verdict"], older["paired"]) == ("noise", False)
    assert "pairing not known" in older["pairing"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("solved.json", "bench64", 'solved.json is of the kind "trial", bench64 of the kind "benchmark"'),
        ("solved.jsn", "solved.json", 'did you mean "solved.json"?'),
        ("meyer2014", "solved.json", "`routecast study meyer2014 --out meyer2014` runs the study that ships"),
        (".", "solved.json", "is no folder of results: it has neither summary.json nor benchmark.json; bench128 and"),
        ("half", "solved.json", "has results.parquet but neither"),
        ("none.json", "none.json", "is no result that can be compared; results are: study, experiment"),
        ("list.json", "list.json", "is no result that can be compared"),
        ("cut.json", "cut.json", "is no JSON"),
        ("deep.json", "deep.json", "nested too deeply"),
        ("bytes.json", "bytes.json", "bytes.json"),
        ("table.csv", "table.csv", "table.csv"),
        ("bare.json", "bare.json", "have no quantity in common"),
        ("solved.json", "", "the path is empty"),
        ("/dev/zero", "solved.json", "/dev/zero"),
    ],
)
def test_what_is_no_result_is_refused_in_words(a: str, b: str, message: str, trials: Path) -> None:
    (trials / "half").mkdir(exist_ok=True)
    (trials / "half" / "results.parquet").touch()
    trial = '{"evaluator": null, "bottleneck": null, "forwarded_pps": %s}'
    for name, text in {
        "none.json": '{"a": 1}',
        "list.json": "[1]",
        "cut.json": '{"a":',
        "deep.json": "[" * 100_000,
        "table.csv": "a,b\n1,2\n",
        "bare.json": trial % ("9" * 400),
    }.items():
        (trials / name).write_text(text)
    (trials / "bytes.json").write_bytes(b"\xff\xfe\x00")
    done = completed("compare", a, b, folder=trials)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_numbers_that_no_screen_holds_do_no_harm(trials: Path) -> None:
    for name, number in {"least": "-1.7e308", "most": "1.7e308"}.items():
        text = f'{{"evaluator": 1, "bottleneck": [[1], {number}], "forwarded_pps": {number}, "u": NaN, "v": 1e999}}'
        (trials / f"{name}.json").write_text(text)
    for arguments in (["--json"], ["--out", "most.html"]):
        done = completed("compare", "least.json", "most.json", *arguments, folder=trials)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("depth", [100, 300, 500, 700, 900, 2000])
def test_what_is_nested_deeply_is_compared_or_refused(depth: int, trials: Path) -> None:
    text = '{"a":' * depth + "1" + "}" * depth
    (trials / "nested.json").write_text(f'{{"evaluator": 1, "bottleneck": 1, "forwarded_pps": {text}}}')
    done = completed("compare", "nested.json", "nested.json", folder=trials)
    assert done.returncode in {0, 2}, done.stderr
    assert done.returncode == 0 or "nested too deeply" in done.stderr


def test_what_is_a_table_on_one_side_and_a_number_on_the_other_is_reported(trials: Path) -> None:
    document = json.loads((trials / "solved.json").read_text())
    (trials / "bent.json").write_text(json.dumps(document | {"loss_ratio": {"a": 1}, "bottleneck": [1.0, 2.0]}))
    (trials / "numbers.json").write_text(json.dumps(document | {"loss_ratio": 0.0, "bottleneck": [1.0, math.nan]}))
    done = completed("compare", "numbers.json", "bent.json", "--json", folder=trials)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["only_a"] == ["loss_ratio"]
    assert answer["only_b"] == ["loss_ratio", "bottleneck[2]"]


@pytest.mark.parametrize("name", ["\\ud800", "\\udcff"])
def test_half_a_character_is_shown_as_an_escape(name: str, trials: Path) -> None:
    text = '{"evaluator": 1, "forwarded_pps": 1.0, "bottleneck": {"name": "%s"}}'
    (trials / "half.json").write_text(text % name)
    (trials / "full.json").write_text(text % "core")
    for arguments in ([], ["--json"], ["--out", "half.html"]):
        stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with chdir(trials), redirect_stdout(stdout), redirect_stderr(io.StringIO()) as stderr:
            assert run(["compare", "full.json", "half.json", *arguments]) == 0, stderr.getvalue()
        stdout.flush()
        assert name in stdout.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert name in (trials / "half.html").read_text()
