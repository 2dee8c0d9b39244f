"""``routecast study --list`` and ``--copy``: the studies that ship, to look at, copy, change and run."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from in_process import completed

from routecast.study.reading import SUFFIX, read_study, shipped_studies
from routecast.study.shipped import texts_to_copy

NAMES = list(shipped_studies())


def test_every_study_that_ships_is_listed_with_what_it_shows() -> None:
    table = completed("study", "--list", COLUMNS="")
    assert table.returncode == 0
    listed = json.loads(completed("study", "--list", "--json").stdout)
    assert [each["name"] for each in listed] == NAMES
    for each in listed:
        assert each["shows"] in table.stdout
        assert each["takes"], f"the head of {each['name']} does not say how long it takes"
    needs_root = {each["name"] for each in listed if each["needs"] == "root"}
    assert needs_root == {"local_latency", "local_router", "multistage_real"}


@pytest.mark.parametrize("name", NAMES)
def test_the_copy_of_every_study_is_valid_and_is_all_that_it_needs(name: str, tmp_path: Path) -> None:
    done = completed("study", "--copy", name, "mine", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    copy = tmp_path / "mine" / f"{name}{SUFFIX}"
    assert read_study(copy).study == read_study_of_the_copy(name, copy)
    assert sorted(path.name for path in copy.parent.iterdir()) == sorted(texts_to_copy(shipped_studies()[name]))
    assert "../" not in "".join(line.partition("#")[0] for line in copy.read_text().splitlines())
    assert f"routecast study mine/{name}{SUFFIX} --out mine/results" in done.stderr


def read_study_of_the_copy(name: str, copy: Path) -> object:
    """Return the shipped study, with the names that its files have beside the copy."""
    study = read_study(shipped_studies()[name]).study
    if name == "napi_power":
        idle = tuple(each.model_copy(update={"file": Path(each.file).name}) for each in study.idle)
        assert all((copy.parent / each.file).is_file() for each in idle)
        return study.model_copy(update={"idle": idle})
    return study


def test_a_copy_that_was_changed_is_kept_unless_forced(tmp_path: Path) -> None:
    assert completed("study", "--copy", "meyer2014", "mine", folder=tmp_path).returncode == 0
    copy, table = tmp_path / "mine" / "meyer2014.study.toml", tmp_path / "mine" / "meyer2014-table1.csv"
    shipped = copy.read_text()
    assert "already there" in completed("study", "--copy", "meyer2014", "mine", folder=tmp_path).stdout
    copy.write_text(shipped.replace("cores = 8", "cores = 5"))
    table.unlink()
    done = completed("study", "--copy", "meyer2014", "mine", folder=tmp_path)
    assert done.returncode == 2
    assert "mine/meyer2014.study.toml: differs from the study that ships: --force overwrites it" in done.stderr
    assert not table.exists()
    assert "cores = 5" in copy.read_text()
    done = completed("study", "--copy", "meyer2014", "mine", "--force", "--json", folder=tmp_path)
    assert json.loads(done.stdout)["written"] == ["mine/meyer2014.study.toml", "mine/meyer2014-table1.csv"]
    assert copy.read_text() == shipped


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a study that ships"),
        (["--copy", "meyer2041", "mine"], 'did you mean "meyer2014"?'),
        (["--copy", "meyer2014", ""], "empty"),
        (["meyer2014", "--list"], "--list runs no study, and does not go with a study ('meyer2014')"),
        (["--list", "--copy", "meyer2014"], "--list runs no study, and does not go with --copy"),
        (["--copy", "meyer2014", "mine", "--out", "there"], "does not go with --out"),
        (["meyer2014", "--force"], "--force is for --copy"),
        (["--list", "--force"], "does not go with --force"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    done = completed("study", *arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_of_the_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    done = completed("study", "--copy", "meyer2014", "mine", folder=tmp_path)
    assert done.returncode == 2
    assert "mine" in done.stderr


def test_files_of_one_copy_have_different_names() -> None:
    for path in shipped_studies().values():
        texts = texts_to_copy(path)
        named = tomllib.loads(texts[path.name])
        assert named["name"] == path.name.removesuffix(SUFFIX)


@pytest.mark.slow
def test_copy_change_run_and_compare_are_three_commands(tmp_path: Path) -> None:
    assert completed("study", "--copy", "meyer2014", "mine", folder=tmp_path).returncode == 0
    copy = tmp_path / "mine" / "meyer2014.study.toml"
    few = copy.read_text().replace(
        'frames = ["64 B", "128 B", "256 B", "512 B", "1024 B", "1518 B"]', 'frames = ["64 B"]'
    )
    few = few.replace("flows = [1, 2, 3, 4, 5, 6, 7, 8, 100]", "flows = [1, 100]")
    few = few.replace('"solve", "simulate"', '"solve"')
    copy.write_text(few)
    assert completed("study", copy, "--out", "eight", folder=tmp_path).returncode == 0
    copy.write_text(few.replace("cores = 8", "cores = 5"))
    assert completed("study", copy, "--out", "five", folder=tmp_path).returncode == 0
    done = completed("compare", "eight", "five", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    differences = json.loads(done.stdout)["differences"]
    (cores,) = [each for each in differences if each["verdict"] == "setting"]
    assert (cores["place"], cores["quantity"]) == ("scenarios.fig9", "cores")
    assert (cores["a"]["value"], cores["b"]["value"]) == (8, 5)
    (solved,) = [each for each in differences if each["quantity"] == "solved_pps"]
    assert solved["place"] == "scenarios.fig9[flows=100]"
    assert solved["verdict"] == "differs"
    assert solved["low"] < solved["difference"] < solved["high"] < 0.0


def test_a_copy_without_a_folder_is_beside_the_folder_of_the_study_that_ships(tmp_path: Path) -> None:
    done = completed("study", "--copy", "meyer2014", folder=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "meyer2014-copy" / "meyer2014.study.toml").is_file()
    # `routecast study meyer2014` writes there.
    assert not (tmp_path / "meyer2014").exists()
    assert "meyer2014-copy/meyer2014.study.toml" in done.stderr
