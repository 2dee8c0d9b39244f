"""``routecast examples``: what ships, and what copying does to what is there."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from routecast.cli.run import run
from routecast.wings import data_folders

ROOT = Path(__file__).parents[2]
SHIPPED = {
    path.relative_to(folder).as_posix(): path
    for folder in data_folders("examples")
    for path in folder.rglob("*.*")
    if path.is_file()
}
NAMES = sorted(SHIPPED)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copied(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_the_folder_of_the_repository_links_what_ships() -> None:
    linked = {name: ROOT / "examples" / name for name in NAMES}
    assert {name: path.resolve() for name, path in linked.items()} == {
        name: path.resolve() for name, path in SHIPPED.items()
    }
    assert {path.name for path in (ROOT / "examples").iterdir()} == {name.partition("/")[0] for name in NAMES}
    assert len(NAMES) > 30


def test_every_example_says_in_a_line_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["examples", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in listed] == NAMES
    for item in listed:
        assert item["shows"].endswith((".", "?")), item
        assert len(item["shows"]) <= 120, item
    assert run(["examples"]) == 0
    table = capsys.readouterr().out
    assert all(name in table for name in NAMES)


def test_names_of_examples_differ_whatever_their_folder() -> None:
    assert len({Path(name).name for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".experiment.toml")])
def test_an_example_comes_with_the_files_that_it_reads(name: str, empty_folder: Path) -> None:
    assert run(["examples", name]) == 0
    named = tomllib.loads(SHIPPED[name].read_text())["router"]
    assert copied(empty_folder / "examples") == sorted([name, named])
    assert (empty_folder / "examples" / name).read_bytes() == SHIPPED[name].read_bytes()


@pytest.mark.parametrize("called", ["green", "green.router.toml", "examples/green.router.toml"])
def test_an_example_may_be_called_by_its_short_name_or_its_path(called: str, empty_folder: Path) -> None:
    assert run(["examples", called]) == 0
    assert copied(empty_folder) == ["examples/green.router.toml"]


def test_a_folder_of_examples_comes_whole(empty_folder: Path) -> None:
    assert run(["examples", "slurm", "--out", "mine"]) == 0
    assert copied(empty_folder) == ["mine/slurm/experiment.sbatch", "mine/slurm/join.sbatch"]


def test_copying_all_brings_all_and_again_changes_nothing(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["examples", "--all", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["written"], document["unchanged"]) == ([f"examples/{name}" for name in NAMES], [])
    assert copied(empty_folder / "examples") == NAMES
    assert run(["examples", "--all", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["written"], document["unchanged"]) == ([], [f"examples/{name}" for name in NAMES])


def test_a_changed_file_is_kept_unless_forced(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["examples", "green"]) == 0
    mine = empty_folder / "examples" / "green.router.toml"
    mine.write_text("mine")
    assert run(["examples", "--all"]) == 2
    message = capsys.readouterr().err
    assert "examples/green.router.toml" in message
    assert "--force" in message
    assert copied(empty_folder / "examples") == ["green.router.toml"]
    assert mine.read_text() == "mine"
    assert run(["examples", "--all", "--force"]) == 0
    assert mine.read_bytes() == SHIPPED["green.router.toml"].read_bytes()


def test_a_folder_in_the_way_is_reported_whatever_is_forced(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (empty_folder / "examples" / "green.router.toml").mkdir(parents=True)
    assert run(["examples", "green", "--force"]) == 2
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["greeen"], 'did you mean "green"?'),
        (["li2012"], "li2012.cluster.toml or li2012.placement.toml"),
        ([""], "no example is called ''"),
        (["../../../__init__.py"], "no example is called"),
        (["--force"], "nothing to copy"),
        (["--out", "mine"], "nothing to copy"),
        (["green", "--all"], "name examples, or --all"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(
    arguments: list[str], message: str, empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["examples", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert copied(empty_folder) == []


def test_a_command_on_an_example_that_is_not_here_says_how_to_get_it(
    empty_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["solve", "examples/multicore.router.toml"]
    assert run(command) == 2
    assert "`routecast examples multicore.router.toml`" in capsys.readouterr().err
    assert run(["examples", "multicore.router.toml"]) == 0
    assert run(command) == 0
    assert run(["solve", "mine.router.toml"]) == 2
    assert "routecast examples" not in capsys.readouterr().err
