"""What is new is one file, and at most one line elsewhere: shown with a copy of the package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import routecast
from routecast.lab.testbed.checks import NAMESPACE_CAPABILITIES, missing

PACKAGE = Path(routecast.__file__).parent
ROUTER = Path(__file__).parents[1] / "examples" / "multicore.router.toml"

NEW_PROCEDURE = '''
"""Half of the throughput, and what is forwarded of it."""

from collections.abc import Iterator
from routecast.lab.benchmark.procedures.procedure import (LOSS, Procedure, deviation, rate_column, span)
from routecast.lab.benchmark.values import Deviation
from routecast.lab.benchmark.stage import Stage
from routecast.quantity.fields import Duration
from routecast.quantity.schema import field, value
from routecast.show.figures import Axis, Figure, Line


@value
class HalfProfile:
    """``[half]``."""

    duration: Duration = field("Length of a trial.", default=0.5)


@value
class HalfRow:
    """Half of the throughput of one stream and frame size."""

    stream: str
    frame_bytes: int
    forwarded_pps: float
    loss_ratio: float
    outcome: str = "found"
    reason: str = ""


@value
class HalfResult:
    """All rows."""

    rows: tuple[HalfRow, ...]


def _run(stage: Stage, throughput_pps: float) -> tuple[HalfRow]:
    trial = stage.trial(0.5 * throughput_pps, stage.profile.half.duration, "half of the throughput")
    row = HalfRow(
        stream=stage.stream.name,
        frame_bytes=stage.frame_bytes,
        forwarded_pps=trial.forwarded_pps,
        loss_ratio=trial.loss_ratio,
    )
    return (row,)


def _deviations(profile) -> Iterator[Deviation]:
    if profile.half.duration < 1.0:
        yield deviation("26.7", "SHOULD", "half of the throughput for 1 s", span(profile.half.duration))


def _figures(result: HalfResult, benchmark) -> tuple[Figure]:
    # From an origin, for pages leave out a figure of one point.
    x, y = zip((0.0, 0.0), *((float(row.frame_bytes), row.forwarded_pps) for row in result.rows), strict=True)
    axes = {"x": Axis(title="frame size [B]"), "y": Axis(title="frames/s")}
    return (Figure(name="half", title="Half, drawn", caption="", marks=(Line(name="half", x=x, y=y),), **axes),)


PROCEDURE = Procedure(
    name="half",
    title="Half of the throughput",
    section="26.7",
    documents="RFC 2544 sec. 26.7",
    lead="What a router forwards when it has half to do.",
    settings=HalfProfile,
    result=HalfResult,
    run=_run,
    trials=lambda profile: (1, profile.half.duration),
    deviations=_deviations,
    columns=lambda result: (rate_column("Forwarded", lambda row: row.forwarded_pps), LOSS),
    figures=_figures,
    counts_frames=False,
)
'''


def python(*arguments: str | Path, package: Path, folder: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(package.parent), "COLUMNS": "80", "PYTHONSAFEPATH": "1"}
    run = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that may be changed."""
    copy = tmp_path / "copy" / "routecast"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def add_a_line(file: Path, after: str, line: str) -> None:
    """Add a line to a registry, after one that stands there."""
    text = file.read_text(encoding="utf-8")
    assert text.count(f"{after}\n") == 1
    file.write_text(text.replace(f"{after}\n", f"{after}\n{line}\n"), encoding="utf-8")


@pytest.mark.slow
def test_a_new_procedure_is_one_file(package: Path, tmp_path: Path) -> None:
    """A procedure of a benchmark is an object in a file: profile, command, table, JSON, page and schema ask it."""
    pytest.importorskip("routecast._core", reason="the extension is not built")
    pytest.importorskip("polars")
    folder = package / "lab" / "benchmark" / "procedures"
    (folder / "half.py").write_text(NEW_PROCEDURE, encoding="utf-8")
    names = package / "lab" / "benchmark" / "values.py"
    lines = names.read_text(encoding="utf-8")
    changed = lines.replace('"frame_loss", ', '"frame_loss", "half", ')
    assert len(set(changed.splitlines()) - set(lines.splitlines())) == 1
    names.write_text(changed, encoding="utf-8")
    profile = (package / "data" / "benchmark" / "quick.toml").read_text(encoding="utf-8")
    (tmp_path / "own.toml").write_text(f'{profile}\n[half]\nduration = "750 ms"\n', encoding="utf-8")

    arguments = ("--profile", "own.toml", "--procedures", "half,frame_loss", "--out", "there")
    command = ("-m", "routecast", "benchmark", "rfc2544", "--evaluator", "solve", ROUTER, *arguments)
    printed = python(*command, package=package, folder=tmp_path)
    # Its table stands after that of frame loss, as in the list, and its deviation among the others.
    table = printed.partition("Frame loss rate")[2].partition("Half of the throughput (RFC 2544 sec. 26.7)")[2]
    assert "Forwarded" in table.splitlines()[1]
    assert "26.7 SHOULD" in table

    document = json.loads((tmp_path / "there" / "benchmark.json").read_text(encoding="utf-8"))
    (row,) = document["half"]["rows"]
    assert row["forwarded_pps"] == pytest.approx(0.5 * document["throughput"]["rows"][0]["throughput_pps"])
    assert document["profile"]["half"] == {"duration": 0.75}
    assert {"section": "26.7", "done": "750 ms"}.items() <= document["compliance"]["deviations"][-1].items()
    assert document["latency"] is None

    page = (tmp_path / "there" / "report.html").read_text(encoding="utf-8")
    section = page.partition('<section id="half">')[2].partition("</section>")[0]
    for text in ("has half to do", "Half, drawn", f"{row['forwarded_pps']:,.0f}"):
        assert text in section
    assert (tmp_path / "there" / "figures" / "half.svg").exists()

    schema = json.loads(python("-m", "routecast", "schema", "benchmark", package=package, folder=tmp_path))
    assert schema["properties"]["half"]["anyOf"][0] == {"$ref": "#/$defs/HalfResult"}
    assert "half" in schema["required"]


NEW_KIND = '''
"""Studies of one sum."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from routecast.quantity.file_model import FileModel
from routecast.show.tables import Column, Table
from routecast.show.page import Section
from routecast.study.document import Name, StudyDocument
from routecast.study.engine import StudyTask
from routecast.study.result import StudyResult, TerminalSummary, criteria_of


class SumStudy(StudyDocument):
    kind: Literal["sums"]
    name: Name
    title: str
    question: str = ""
    terms: tuple[int, ...]
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SumResult(StudyResult[SumStudy]):
    sums: tuple[float, ...]

    def _findings(self):
        return {"sums": self.sums}


def add(n):
    return {"sum": float(sum(range(n)))}


def answer(run):
    tasks = [StudyTask(key=f"{n}", title=f"sum to {n}", call=partial(add, n)) for n in run.study.terms]
    with run.ledger({"task": "text", "sum": "number"}) as ledger:
        rows = run.complete(ledger, tasks)
    sums = tuple(row["sum"] for row in rows)
    return SumResult(
        study=run.study,
        out=run.out,
        sums=sums,
        criteria=criteria_of(("largest", run.study.most, max(sums))),
        provenance=run.provenance(),
    )


def table(result):
    column = Column("Sum", "1", ".0f", lambda total: total)
    return Table.of(result.sums, column, name="sums", title="Sums of all", caption="")


def terminal_summary(result):
    return TerminalSummary.of(table(result))


def page(result):
    return result.page("The sums.", [Section.of("sums", "Sums", "All of them.", table(result))])
'''


@pytest.mark.slow
def test_a_new_kind_of_study_is_one_file(package: Path, tmp_path: Path) -> None:
    pytest.importorskip("polars")
    (package / "study" / "sums.py").write_text(NEW_KIND, encoding="utf-8")
    add_a_line(package / "study" / "reading.py", '    "tables": "Study",', '    "sums": "SumStudy",')
    study = 'kind = "sums"\nname = "two"\ntitle = "Two sums"\nterms = [3, 5]\nmost = 10\n'
    (tmp_path / "two.study.toml").write_text(study, encoding="utf-8")
    command = ("-m", "routecast", "study", "two.study.toml", "--out", "there")
    printed = python(*command, package=package, folder=tmp_path)
    assert "Sums of all" in printed
    summary = json.loads((tmp_path / "there" / "summary.json").read_text(encoding="utf-8"))
    assert summary["sums"] == [3.0, 10.0]
    assert summary["criteria"] == [{"name": "largest", "bound": 10.0, "reached": 10.0, "met": True}]
    assert "All of them." in (tmp_path / "there" / "report.html").read_text(encoding="utf-8")
    (tmp_path / "there" / "summary.json").unlink()  # as if it had been killed before it was complete
    again = json.loads(python(*command, "--json", package=package, folder=tmp_path))
    assert again["made"]["resumed_trials"] == 2


NEW_DEVICE = '''
"""Linux, which says that it is calm."""

from routecast.lab.testbed.devices.linux import Linux


class Calm(Linux):
    name = "calm"
    title = "calm Linux forwarding"
'''


@pytest.mark.alone
@pytest.mark.slow
def test_a_new_device_is_one_file(package: Path, tmp_path: Path) -> None:
    (package / "lab" / "testbed" / "devices" / "calm.py").write_text(NEW_DEVICE, encoding="utf-8")
    add_a_line(
        package / "lab" / "testbed" / "devices" / "__init__.py",
        '    "linux": ("linux", "Linux"),',
        '    "calm": ("calm", "Calm"),',
    )
    devices = json.loads(python("-m", "routecast", "testbed", "devices", "--json", package=package, folder=tmp_path))
    assert {"name": "calm", "title": "calm Linux forwarding"}.items() <= next(
        device for device in devices if device["name"] == "calm"
    ).items()
    lacking = missing(NAMESPACE_CAPABILITIES)
    if lacking:
        pytest.skip(f"needs root ({', '.join(lacking)}): no frame passes the new device")
    load = ("--load", "1 kpps", "--duration", "200 ms", "--json")
    trial = json.loads(
        python(
            "-m",
            "routecast",
            "measure",
            "--testbed",
            "namespaces",
            "--dut",
            "calm",
            *load,
            package=package,
            folder=tmp_path,
        )
    )
    assert trial["forwarded_frames"] == 200


@pytest.mark.slow
def test_a_new_network_function_is_one_file(package: Path, tmp_path: Path) -> None:
    text = (package / "data" / "functions" / "l2_switch.function.toml").read_text(encoding="utf-8")
    new = text.replace('name = "l2_switch"', 'name = "hub"', 1)
    (package / "data" / "functions" / "hub.function.toml").write_text(new, encoding="utf-8")
    arguments = ("function", "hub", "--on", "xeon-e5-2690v2", "--json")
    result = json.loads(python("-m", "routecast", *arguments, package=package, folder=tmp_path))
    assert result["function"] == "hub"


NEW_LAW = """
from routecast.contention.law import Law, Shape

LAWS = (
    Law(
        name="staircase",
        formula="c(k) = 1 + h*floor((k-1)/2)",
        shapes=(Shape(name="step_height", mean=-3.0, sd=1.0, meaning="slower by h for every two cores"),),
        growth=lambda k, values: k / (1.0 + values[:, :1] * ((k - 1.0) // 2.0)),
    ),
)
"""

STAIRS = """
builder = "multicore"
cores = 4
link = "100 Gbit/s"
service = { per_packet = "500 ns" }
contention = { law = "staircase", step_height = 0.25 }

[load]
rate = "20 Mpps"
flows = { count = 4 }
"""


@pytest.mark.slow
def test_a_new_contention_law_is_one_file(package: Path, tmp_path: Path) -> None:
    (package / "contention" / "staircase.py").write_text(NEW_LAW, encoding="utf-8")
    registry = package / "contention" / "__init__.py"
    text = registry.read_text(encoding="utf-8")
    assert text.count('_FILES: Final = ("laws",)') == 1
    registry.write_text(text.replace('("laws",)', '("laws", "staircase")'), encoding="utf-8")
    (tmp_path / "stairs.router.toml").write_text(STAIRS, encoding="utf-8")
    # Four cores of 500 ns, each slowed by one step.
    solved = python("-m", "routecast", "solve", "stairs.router.toml", "--json", package=package, folder=tmp_path)
    assert json.loads(solved)["forwarded_pps"] == pytest.approx(4.0 / (500e-9 * 1.25))
    assert '"step_height"' in python("-m", "routecast", "schema", "router", package=package, folder=tmp_path)
    points = "series,cores,frame_bytes,throughput_pps\n,1,64,2e6\n,4,64,6.4e6\n"
    (tmp_path / "points.csv").write_text(points, encoding="utf-8")
    fit = "from routecast.evaluate.point_table import read_points; from routecast.calibration import fit; "
    fit += "print(list(fit(read_points('points.csv'), laws=['staircase']).law_weights))"
    assert python("-c", fit, package=package, folder=tmp_path) == "['staircase']\n"


NEW_WING = """
from routecast.wings import FileKind, Wing

WING = Wing(
    package="hail",
    commands={"Measure": {"hail": "commands:hail"}},
    file_kinds={"hail": FileKind("a hail file", ("hail",), frozenset({"stones"}))},
    schemas={"hail": "commands:hail_schema"},
)
"""

NEW_COMMANDS = """
def hail() -> None:
    \"\"\"Say how hard it hails.\"\"\"
    print("hard")


def hail_schema():
    return {"type": "object"}
"""


@pytest.mark.slow
def test_a_wing_is_a_distribution_of_its_own(package: Path, tmp_path: Path) -> None:
    wing, distribution = package.parent / "hail", package.parent / "hail-1.0.dist-info"
    for folder in (wing, distribution):
        folder.mkdir()
    (wing / "__init__.py").write_text('"""Hail."""', encoding="utf-8")
    (wing / "wing.py").write_text(NEW_WING, encoding="utf-8")
    (wing / "commands.py").write_text(NEW_COMMANDS, encoding="utf-8")
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: hail\nVersion: 1.0\n", encoding="utf-8")
    (distribution / "entry_points.txt").write_text("[routecast.wings]\nhail = hail.wing:WING\n", encoding="utf-8")
    assert "Say how hard it hails." in python("-m", "routecast", "--help", package=package, folder=tmp_path)
    assert python("-m", "routecast", "hail", package=package, folder=tmp_path) == "hard\n"
    assert json.loads(python("-m", "routecast", "schema", "hail", package=package, folder=tmp_path))
    # One that leaves takes its commands, schemas and studies with it: the core has no line of it.
    for name in ("noc", "plan", "experiment", "multistage", "virtual"):
        shutil.rmtree(package / name)
    run = "import sys; from routecast import wings; wings.wings = lambda: (); "
    run += "from routecast.cli.run import run; raise SystemExit(run(sys.argv[1:]))"
    python("-c", run, "solve", ROUTER, package=package, folder=tmp_path)
    listed = python("-c", run, "study", "--list", package=package, folder=tmp_path)
    assert "meyer2014" in listed
    assert "noc_single_plane" not in listed
