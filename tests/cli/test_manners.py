"""Manners: questions first, an example after a usage error, whole lines in pipes, files recognised."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_process import completed
from typer.main import get_command

from routecast.cli.app import app
from routecast.cli.questions import examples, questions

ROOT = Path(__file__).parents[2]
EXAMPLE_FILES = ROOT / "examples"
QUAD = EXAMPLE_FILES / "multicore.router.toml"
POINTS = EXAMPLE_FILES / "points.csv"
MEYER = ROOT / "packages" / "routecast" / "routecast" / "data" / "studies" / "meyer2014.study.toml"


def commands(group: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """Every command by the words that name it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *names, name)
        else:
            yield " ".join((*names, name)), command


def test_routecast_alone_shows_questions_on_one_screen() -> None:
    done = completed()
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{questions()}\n", "")
    lines = done.stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_every_command_that_a_question_names_exists() -> None:
    named = re.findall(r"routecast ([a-z]+)|; ([a-z]+)", questions())
    words = {first or second for first, second in named} - {"models"}
    assert len(words) > 15
    assert words <= set(get_command(app).commands)  # type: ignore[attr-defined]


def test_the_help_goes_by_question() -> None:
    text = completed("--help").stdout
    titles = ("How many, which, where", "What would it do", "Is it true", "Measure", "Begin")
    places = [text.index(f"─ {title} ─") for title in titles]
    assert places == sorted(places)


def test_every_command_that_needs_something_has_an_example() -> None:
    needing = {name for name, command in commands(get_command(app)) if any(param.required for param in command.params)}
    assert set(examples()) == needing


@pytest.mark.parametrize("command", examples())
def test_a_bare_command_shows_an_example_after_the_usage_error(command: str) -> None:
    done = completed(*command.split(), folder=ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"for example: routecast {command} {examples()[command]}"


def test_an_example_that_is_not_here_comes_with_what_copies_it(tmp_path: Path) -> None:
    last = completed("size", folder=tmp_path).stderr.splitlines()[-1]
    assert last.endswith("; `routecast examples points.csv` copies the one that ships into ./examples")


OF_OWN_FILES = {"compare", "import", "power fit"}
AS_ROOT = re.compile(r"measure|testbed|multistage (?!predict)")
LONG = {
    "plan cluster",
    "plan mapping",
    "plan placement",
    "noc optimum",
    "noc simulate",
    "noc compare",
    "power optimise",
}
RUNNING = [command for command in examples() if command not in OF_OWN_FILES and not AS_ROOT.match(command)]


@pytest.mark.parametrize(
    "command", [pytest.param(item, marks=pytest.mark.slow if item in LONG else ()) for item in RUNNING]
)
def test_an_example_runs(command: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLE_FILES.resolve())
    done = completed(*command.split(), *shlex.split(examples()[command]), folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "arguments", [("solve", QUAD), ("validate", POINTS), ("noc", "power", EXAMPLE_FILES / "toy.noc.toml")]
)
def test_lines_in_a_pipe_are_whole_and_never_padded_and_columns_wraps_them(arguments: tuple[str, ...]) -> None:
    whole = completed(*arguments, COLUMNS="").stdout.splitlines()
    narrow = completed(*arguments, COLUMNS="60").stdout.splitlines()
    assert max(map(len, whole)) > 80
    assert max(map(len, narrow)) <= 60
    assert all(line == line.rstrip() for line in (*whole, *narrow))


def test_a_pipe_of_a_process_gets_whole_lines() -> None:
    command = [sys.executable, "-m", "routecast", "solve", str(QUAD)]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "packages" / "routecast")}
    text = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    assert max(map(len, text.splitlines())) > 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("solve", POINTS), "is a table of measured points, no router file: `routecast validate {}` takes it"),
        (("sweep", POINTS, "--vary", "cores=1,2"), "`routecast validate {}` takes it (or size, next)"),
        (("validate", QUAD), "is a router file, no table of measured points: `routecast solve {}` takes it"),
        (("size", MEYER, "--target", "1 Mpps"), "`routecast study {}` takes it"),
        (("next", QUAD), "`routecast solve {}` takes it"),
        (("noc", "power", QUAD), "is a router file, no file of a network on chip"),
        (("solve", MEYER), "is a study file, no router file: `routecast study {}` takes it"),
        (("study", QUAD), "is a router file, no study file"),
        (("solve", EXAMPLE_FILES / "li2012.cluster.toml"), "is a cluster file, no router file"),
        (("simulate", EXAMPLE_FILES / "toy.noc.toml"), "`routecast noc power {}` takes it"),
        (("solve", EXAMPLE_FILES / "demo.multistage.toml"), "`routecast multistage predict {}` takes it"),
        (("solve", EXAMPLE_FILES / "multicore_2_3.experiment.toml"), "`routecast experiment {}` takes it"),
        (("plan", "mapping", EXAMPLE_FILES / "toy.noc.toml"), "is a file of a network on chip, no router file"),
    ],
    ids=lambda value: " ".join(Path(each).name for each in value) if isinstance(value, tuple) else "",
)
def test_a_file_of_another_kind_is_recognised(arguments: tuple[str | Path, ...], message: str) -> None:
    done = completed(*arguments)
    path = next(str(each) for each in arguments if isinstance(each, Path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"routecast: {path}: ")
    assert message.format(path) in done.stderr


def test_the_kind_follows_from_the_content_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("# measured\ncores,throughput (Mpps)\n1,1.8\n")
    assert "is a table of measured points" in completed("solve", path).stderr
    path.write_text(QUAD.read_text())
    assert "is a router file" in completed("validate", path).stderr


def test_a_faulty_file_of_the_right_kind_keeps_its_own_message(tmp_path: Path) -> None:
    path = tmp_path / "mine.router.toml"
    path.write_text("cores = 4\nservice = { per_packet = '1 us' }\n")
    assert "builder: is missing" in completed("solve", path).stderr
    path.write_text("builder = [\n")
    assert "is no TOML" in completed("solve", path).stderr
    table = tmp_path / "points.csv"
    table.write_text("cores,throughput_pps\nmany,1e6\n")
    assert "row 2, column cores" in completed("validate", table).stderr


def test_few_known_names_are_listed_whole_and_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.router.toml"
    path.write_text(QUAD.read_text().replace("service = {", "service = { zzz = 1, qqq = 2,"))
    output = completed("solve", path).stderr
    assert output.count("known are") == 1
    assert "…" not in output
    assert "is no key that is known here either" in output


@pytest.mark.parametrize(
    "command",
    [
        "validate points.csv",
        "solve mine.router.toml",
        "solve multicore.router.toml --load 1Mpps --arrivals xylophones",
        "function xylophone",
        "sweep multicore.router.toml --vary xylophone=1..4",
        "hardware show xylophone",
    ],
)
def test_of_many_known_names_a_message_lists_the_nearest_five(tmp_path: Path, command: str) -> None:
    (tmp_path / "points.csv").write_text("cores,throughput_pps,zzz,qqq\n1,1e6,1,1\n")
    (tmp_path / "mine.router.toml").write_text(QUAD.read_text().replace("[load]", "zzz = 1\nqqq = 2\n[load]"))
    (tmp_path / "multicore.router.toml").write_text(QUAD.read_text())
    output = completed(*command.split(), folder=tmp_path).stderr
    lists = re.findall(r"(known|nearest of \d+) are ((?:\"[^\"]*\"(?:, )?)+)", output)
    assert lists
    assert all(names.count('", "') < (8 if kind == "known" else 5) for kind, names in lists)


DATA = {
    "solve": ("solve", QUAD),
    "simulate": ("simulate", QUAD, "--duration", "10 ms"),
    "validate": ("validate", POINTS),
    "next": ("next", POINTS, "--cores", "8"),
    "size": ("size", POINTS, "--target", "8 Mpps"),
}


def lines_of(document: dict[str, Any], command: str) -> list[dict[str, Any]]:
    """What stands in the lines of a command's CSV, from its JSON."""
    if command == "validate":
        return list(document["rows"])
    if command in {"next", "size"}:
        return [row for each in document["series"] for row in each["next" if command == "next" else "counts"]]
    return [document]


@pytest.mark.parametrize("command", DATA)
def test_csv_has_the_numbers_of_json(command: str) -> None:
    done = completed(*DATA[command], "--csv")
    assert done.returncode == 0, done.stderr
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    rows = lines_of(json.loads(completed(*DATA[command], "--json").stdout), command)
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        flat = {key: entry for key, entry in row.items() if not isinstance(entry, dict | list)}
        assert len(flat) > 4
        assert {key: line[key] for key in flat} == {
            key: "" if entry is None else str(entry) for key, entry in flat.items()
        }


def test_parts_of_a_trial_are_named_for_both_in_csv() -> None:
    (line,) = csv.DictReader(io.StringIO(completed(*DATA["solve"], "--csv").stdout))
    trial = json.loads(completed(*DATA["solve"], "--json").stdout)
    assert float(line["latency_mean_s"]) == trial["latency"]["mean_s"]
    assert float(line["drops_pps_core 0"]) == trial["drops_pps"]["core 0"]
    assert line["bottleneck_name"] == "cpu"
    assert not {"resources", "latency_hdr_base64"} & set(line)


@pytest.mark.parametrize("command", DATA)
def test_csv_and_json_together_are_refused(command: str) -> None:
    done = completed(*DATA[command], "--csv", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--csv and --json are two forms of the same data" in done.stderr


def test_a_name_that_is_too_long_is_refused_in_words() -> None:
    done = completed("simulate", QUAD, "--figure", "9" * 400)
    assert (done.returncode, done.stdout) == (2, "")
    assert "a figure is an SVG file" in " ".join(done.stderr.split())
