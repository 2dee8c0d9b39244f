"""A message that names a remedy names one that works: each is applied to the file that it is said of."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from corpus import ROOT
from faults import changes_of, files, reader_of, subject
from remedies import Outcome, TooLongError, Trier

from routecast.errors import FileProblem, Problem, RoutecastError

Change = Callable[[dict[str, Any]], object]


def at(*path: str | int) -> Callable[[dict[str, Any]], Any]:
    def find(document: Any) -> Any:
        for step in path:
            document = document[step]
        return document

    return find


def dropped(*path: str | int) -> Change:
    return lambda document: at(*path[:-1])(document).pop(path[-1])


def put(value: object, *path: str | int) -> Change:
    return lambda document: at(*path[:-1])(document).__setitem__(path[-1], value)


def both(*changes: Change) -> Change:
    return lambda document: [change(document) for change in changes]


REMEDIES: tuple[tuple[str, Change, str, Change], ...] = (
    ("examples/green.router.toml", dropped("frequency"), "has no frequency: give it", put("3 GHz", "frequency")),
    (
        "examples/bus.router.toml",
        dropped("task", 4, "route", "kind"),
        "use rss or round_robin",
        both(put("random", "task", 4, "route", "kind"), put([1.0, 2.0], "task", 4, "route", "weights")),
    ),
    (
        "examples/bus.router.toml",
        dropped("task", 4, "route", "kind"),
        "use rss or round_robin",
        put("rss", "task", 4, "route", "kind"),
    ),
    (
        "examples/bus.router.toml",
        dropped("task", 4, "route", "kind"),
        "use rss or round_robin",
        put("round_robin", "task", 4, "route", "kind"),
    ),
    (
        "examples/slices.router.toml",
        dropped("load", "flows", "count"),
        "give a multiple of that",
        put(20, "load", "flows", "count"),
    ),
    (
        "examples/shared_core.router.toml",
        dropped("pool", 0, "policy", "kind"),
        "only round_robin, fair or linux",
        put("fair", "pool", 0, "policy", "kind"),
    ),
    (
        "examples/shared_core.router.toml",
        dropped("task", 0, "route", "weights"),
        "give one for each",
        put([1.0, 2.0], "task", 0, "route", "weights"),
    ),
    (
        "examples/softirq.router.toml",
        dropped("interruptions", "duration", "variation"),
        "or not given",
        dropped("interruptions", "duration", "scv"),
    ),
    (
        "examples/softirq.router.toml",
        dropped("interruptions", "duration", "variation"),
        "it is 0",
        put(0.0, "interruptions", "duration", "scv"),
    ),
    (
        "examples/vnf.placement.toml",
        dropped("plan", "objective"),
        'set objective = "servers"',
        put("servers", "plan", "objective"),
    ),
    (
        "examples/dpdk-pipeline.router.toml",
        put([], "stage", 0, "blocks"),
        "name the blocks that its threads run",
        put(["receive"], "stage", 0, "blocks"),
    ),
    ("examples/mpeg4.noc.toml", put([], "simulation", "loads"), "such as 0.5", put([0.5], "simulation", "loads")),
    ("examples/mesh8x8.noc.toml", dropped("traffic", "pattern"), "give pattern", put("uniform", "traffic", "pattern")),
)


def beside(file: Path, folder: Path) -> Path:
    """Copy a file's folder; return the copy of the file."""
    shutil.copytree(file.parent, folder / file.parent.name)
    # Shipped studies name measured tables beside their folder.
    if (measured := file.parents[1] / "measured").is_dir():
        shutil.copytree(measured, folder / measured.name)
    return folder / file.parent.name / file.name


@pytest.mark.parametrize(
    ("name", "fault", "message", "remedy"), REMEDIES, ids=[f"{row[0]}: {row[2]}" for row in REMEDIES]
)
def test_a_remedy_works(name: str, fault: Change, message: str, remedy: Change, tmp_path: Path) -> None:
    file, read = beside(ROOT / name, tmp_path), reader_of(ROOT / name)
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    fault(document)
    file.write_text(tomli_w.dumps(document), encoding="utf-8")
    with pytest.raises(RoutecastError) as caught:
        read(file)
    assert message in str(caught.value)
    remedy(document)
    file.write_text(tomli_w.dumps(document), encoding="utf-8")
    read(file)


@pytest.mark.slow
@pytest.mark.parametrize("file", files(), ids=subject)
def test_a_key_that_is_meant_is_read_under_the_name_that_the_message_gives(file: Path, tmp_path: Path) -> None:
    target, read = beside(file, tmp_path), reader_of(file)
    for place, what, changed in changes_of(file):
        if not what.startswith("misspelt"):
            continue
        target.write_text(tomli_w.dumps(changed))
        try:
            read(target)
        except RoutecastError as error:
            message = str(error)
        else:
            continue
        meant = re.search(re.escape(f"{place[-1]}x") + r'\W.*did you mean "([^"]+)"', message)
        if meant is None:
            continue
        table = at(*place[:-1])(changed)
        # A suggestion is of the last name of a path, or a whole path.
        parent = str(place[-1]).rpartition(".")[0]
        name = meant[1].rpartition(".")[2]
        table[f"{parent}.{name}" if parent else name] = table.pop(f"{place[-1]}x")
        target.write_text(tomli_w.dumps(changed))
        read(target)


_AT_MOST_POINTS = "with all replications"
"""A design of the greatest permitted size takes a minute to read."""


def tried(file: Path, folder: Path, *, most: int | None = None) -> Outcome:
    """Apply every remedy that the corpus' messages of a file name."""
    target, document = beside(file, folder), tomllib.loads(file.read_text(encoding="utf-8"))
    trier, outcome, seen = Trier(target=target, read=reader_of(file)), Outcome(), set()
    for place, _what, changed in list(changes_of(file))[:most]:
        for problem in trier.problems(changed):
            if (sentence := re.sub(r"\d+", "N", problem.place) + problem.message) in seen:
                continue
            seen.add(sentence)
            if _AT_MOST_POINTS in problem.message:
                outcome.left["takes long"] += 1
                continue
            classes = set()
            for name, remedied in trier.candidates(changed, problem, place, at(*place)(document)):
                classes.add(name)
                outcome.values[name] += 1
                try:
                    after = trier.works(remedied, problem, place, at(*place)(document), name)
                except TooLongError:
                    outcome.left["a value takes long"] += 1
                    continue
                if after:
                    outcome.failures.append(f"{problem}\n    after its remedy ({name}): {after}")
            outcome.tried.update(classes)
            if not classes:
                outcome.left["no remedy"] += 1
    return outcome


@pytest.mark.thorough
@pytest.mark.parametrize("file", files(), ids=subject)
def test_every_remedy_of_a_faulty_file_works(file: Path, tmp_path: Path) -> None:
    outcome = tried(file, tmp_path)
    print(f"sentences by class {dict(outcome.tried)}, values {outcome.values.total()}, left {dict(outcome.left)}")
    assert not outcome.failures, "\n".join(outcome.failures)
    assert outcome.tried


@pytest.mark.parametrize("name", ["toy.noc", "agilio-cx.processor", "lab.testbed"])
def test_remedies_of_some_faulty_files_work(name: str, tmp_path: Path) -> None:
    file = next(each for each in files() if subject(each) == f"faults/{name}")
    assert not tried(file, tmp_path, most=12).failures


def test_a_remedy_that_does_not_work_is_seen(tmp_path: Path) -> None:
    file = next(each for each in files() if subject(each) == "faults/green.router")
    target, read = beside(file, tmp_path), reader_of(file)
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    document["load"]["rate"] = "-3 parsecs"

    def misled(path: Path) -> object:
        try:
            return read(path)
        except FileProblem as error:
            raise FileProblem(
                error.subject,
                [Problem(each.place, re.sub("14.88 Mpps", "14.88 Mxps", each.message)) for each in error.problems],
            ) from None

    trier = Trier(target=target, read=misled)
    (problem,) = trier.problems(document)
    place = ("load", "rate")
    after = [
        trier.works(each, problem, place, "1 Mpps", name)
        for name, each in trier.candidates(document, problem, place, "")
    ]
    assert any("Mxps" in each for each in after)
    assert not all(after)
