"""``routecast experiment``: what it prints and writes, how it goes on, and how it leaves."""

from __future__ import annotations

import json
from pathlib import Path

import polars
import pytest

import routecast
from routecast.cli.run import run

EXAMPLES = Path(routecast.__file__).parents[3] / "examples"
FILE = str(EXAMPLES / "multicore_2_3.experiment.toml")
ROUTER = """
[router]
builder = "multicore"
cores = 4
service = { per_packet = "562.8 ns", per_byte = "8.4 ps/B" }
load = { rate = "8 Mpps", flows = { count = 4 } }
"""


@pytest.fixture
def experiment_file(tmp_path: Path) -> Path:
    path = tmp_path / "t.experiment.toml"
    path.write_text(
        f"""
        name = "t"
        {ROUTER}
        [[factor]]
        name = "cores"
        path = "cores"
        levels = [2, 4]
        [[factor]]
        name = "frames"
        path = "load.frames"
        levels = ["64 B", "512 B"]
        [[factor]]
        name = "work"
        path = "service.per_packet"
        levels = ["500 ns", "900 ns"]
        [[response]]
        name = "capacity"
        of = "capacity_pps"
        """,
        encoding="utf-8",
    )
    return path


def test_an_experiment_prints_effects_and_writes_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(["experiment", FILE, "--out", str(out)]) == 0
    message = capsys.readouterr()
    assert "Effects on capacity [Mpps]" in message.out
    assert "q_ABC" in message.out
    assert "explains" in message.out
    assert "\x1b" not in message.out
    assert "Report:" in message.err
    names = {path.name for path in out.iterdir()}
    assert names >= {"runs.parquet", "results.parquet", "summary.json", "report.html", "figures"}
    table = polars.read_parquet(out / "results.parquet")
    assert table.height == 8
    assert table["cores"].to_list() == ["2", "4"] * 4
    assert table["coded A"].to_list() == [-1.0, 1.0] * 4
    assert table["capacity"].null_count() == 0


def test_json_is_the_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(["experiment", FILE, "--out", str(out), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary == json.loads((out / "summary.json").read_text(encoding="utf-8"))
    effects = summary["analyses"]["capacity"]["effects"]
    assert sum(effect["share_ratio"] for effect in effects) == pytest.approx(1.0)


def test_effects_are_those_of_the_sign_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Jain 1991, sec. 17.4: q_A is the sum of the responses with the signs of column A over their number."""
    out = tmp_path / "out"
    assert run(["experiment", FILE, "--out", str(out), "--json"]) == 0
    result = {
        effect["name"]: effect["value"]
        for effect in json.loads(capsys.readouterr().out)["analyses"]["capacity"]["effects"]
    }
    table = polars.read_parquet(out / "results.parquet")
    for word, value in result.items():
        signs = [1.0] * 8
        for letter in word:
            signs = [sign * level for sign, level in zip(signs, table[f"coded {letter}"], strict=True)]
        by_hand = sum(sign * y for sign, y in zip(signs, table["capacity"], strict=True)) / 8
        assert value == pytest.approx(by_hand, rel=1e-9, abs=1e-6)


def test_a_second_start_runs_nothing_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["experiment", FILE, "--out", str(tmp_path / "out")]
    assert run(command) == 0
    first = capsys.readouterr()
    assert run(command) == 0
    again = capsys.readouterr()
    assert again.out == first.out
    assert "8 runs were answered before" in again.err


def test_the_plan_is_printed_without_running_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["experiment", FILE, "--design-only"]) == 0
    assert "8 combinations" in capsys.readouterr().out
    assert run(["experiment", FILE, "--design-only", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert [item["coded"] for item in plan["combinations"]][:2] == [[-1.0, -1.0, -1.0], [1.0, -1.0, -1.0]]
    assert list(tmp_path.iterdir()) == []


def test_a_fraction_says_what_it_cannot_tell_apart(experiment_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment_file.write_text(experiment_file.read_text() + '[design]\nkind = "fractional"\nresolution = 3\n')
    assert run(["experiment", str(experiment_file), "--design-only"]) == 0
    message = capsys.readouterr().out
    assert "Resolution 3, defining relation I = ABC." in message
    assert "A = BC; B = AC; C = AB" in message
    assert run(["experiment", str(experiment_file), "--out", str(experiment_file.parent / "out")]) == 0
    message = capsys.readouterr().out
    assert "cannot separate: q_" in " ".join(message.split())


def test_shards_are_run_apart_and_joined(experiment_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = experiment_file.parent / "out"
    command = ["experiment", str(experiment_file), "--out", str(out)]
    assert run([*command, "--shard", "1/2"]) == 0
    assert capsys.readouterr().out == ""
    assert not (out / "summary.json").exists()
    assert run([*command, "--join"]) == 2
    assert "--shard 2/2" in capsys.readouterr().err
    assert run([*command, "--shard", "2/2"]) == 0
    capsys.readouterr()
    assert run([*command, "--join", "--json"]) == 0
    joined = json.loads(capsys.readouterr().out)
    assert run([*command[:-1], str(experiment_file.parent / "whole"), "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert joined["analyses"] == whole["analyses"]


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--shard", "3/2"], 2, "shards are numbered from 1"),
        (["--shard", "two"], 2, "write I/N"),
        (["--shard", "1/2", "--join"], 2, "give only one of them"),
        (["--executor", "thread"], 2, 'did you mean "threads"'),
        (["--workers", "0"], 2, "--workers"),
    ],
)
def test_wrong_options_are_reported(
    options: list[str], code: int, says: str, experiment_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["experiment", str(experiment_file), "--out", str(experiment_file.parent / "out"), *options]) == code
    assert says in capsys.readouterr().err


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_a_matter_of_the_environment(
    experiment_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("routecast.evaluate.executor.dask_cluster.CONNECTS_WITHIN_S", 0.3)
    command = ["experiment", str(experiment_file), "--out", str(experiment_file.parent / "out")]
    assert run([*command, "--executor", "dask://127.0.0.1:1"]) == 3
    assert "127.0.0.1:1" in capsys.readouterr().err


def test_a_wrong_path_is_reported_the_nearest_name(experiment_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment_file.write_text(experiment_file.read_text().replace('path = "cores"', 'path = "coers"'))
    assert run(["experiment", str(experiment_file)]) == 2
    assert 'did you mean "cores"?' in capsys.readouterr().err


def test_runs_without_an_answer_are_reported_and_the_others_analysed(
    experiment_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment_file.write_text(experiment_file.read_text().replace('"512 B"]', '"12 B"]'))
    out = experiment_file.parent / "out"
    assert run(["experiment", str(experiment_file), "--out", str(out)]) == 0
    message = capsys.readouterr()
    assert "Runs without an answer: 4 of 8" in message.out
    assert "4 of 8 runs have no answer" in message.err
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["failed"] == 4
    assert len(summary["analyses"]["capacity"]["missing"]) == 4
    assert summary["analyses"]["capacity"]["not_told_apart"]


def test_where_no_run_has_an_answer_the_reason_is_reported(
    experiment_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment_file.write_text(experiment_file.read_text().replace("levels = [2, 4]", "levels = [-2, -4]"))
    assert run(["experiment", str(experiment_file), "--out", str(experiment_file.parent / "out")]) == 2
    message = capsys.readouterr().err
    assert "none of the 8 runs has an answer" in message
    assert "allowed is 1 to 4096" in message


def test_a_response_that_does_not_vary_is_reported(experiment_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment_file.write_text(experiment_file.read_text().replace('"capacity_pps"', '"intended_pps"'))
    assert run(["experiment", str(experiment_file), "--out", str(experiment_file.parent / "out")]) == 0
    assert "does not vary" in " ".join(capsys.readouterr().out.split())


def test_fewer_runs_than_effects_are_reported(experiment_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = '[{ A = 2, B = "64 B", C = "500 ns" }, { A = 4, B = "512 B", C = "900 ns" }]'
    experiment_file.write_text(experiment_file.read_text() + f'[design]\nkind = "listed"\npoints = {points}\n')
    assert run(["experiment", str(experiment_file), "--out", str(experiment_file.parent / "out"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["analyses"]["capacity"]["not_told_apart"]


def test_another_experiments_folder_is_left_alone(experiment_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = experiment_file.parent / "out"
    assert run(["experiment", FILE, "--out", str(out)]) == 0
    before = (out / "summary.json").read_text(encoding="utf-8")
    assert run(["experiment", str(experiment_file), "--out", str(out)]) == 2
    assert 'belongs to the experiment "multicore_2_3"' in capsys.readouterr().err
    assert (out / "summary.json").read_text(encoding="utf-8") == before


def test_the_schema_of_experiments_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "experiment"]) == 0
    assert "factor" in json.loads(capsys.readouterr().out)["properties"]
