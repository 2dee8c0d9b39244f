"""What the model knew of compared values: what the document says, checked when it is read, and never guessed."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from kept_text import read_kept, texts_in

from routecast.errors import FileProblem
from routecast.study.engine import run_study, terminal_summary
from routecast.study.prior_knowledge import NOT_SAID, Group, Knowledge, counted_group, roles_of
from routecast.study.reading import find_study, read_study, shipped_studies

REPORTS = Path(__file__).parents[1] / "corpus" / "study"
DEFINED = "Predicted: no part of the model depends on them."
ROLES = {"calibrated on", "chosen in sight of", "predicted"}

CURVES = """kind = "curves"
name = "own"
title = "A router of two cores"
[run]
duration = "1 ms"
[router.plain]
builder = "multicore"
cores = 2
link = "1 Gbit/s"
service = { per_packet = "1 us" }
[[figure]]
name = "rates"
title = "Rates"
offered = ["100 kpps", "200 kpps"]
traffic = { frame = "64 B" }
curve = [{ name = "plain", router = "plain" }]
[[figure.stated]]
curve = "plain"
value = "200 kpps"
[[figure.stated]]
curve = "plain"
value = "100 kpps"
at = "100 kpps"
calibrated = "service"
"""


def written(folder: Path, statement: str) -> Path:
    path = folder / "own.study.toml"
    path.write_text(CURVES + statement, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", sorted(shipped_studies()))
def test_every_shipped_study_says_what_knew_each_group_of_its_values(name: str) -> None:
    rows = read_study(find_study(name)).study.known()
    assert rows
    assert {row.role for row in rows} <= ROLES
    assert all(row.because for row in rows)


def test_li_2012_and_meyer_2014_are_in_sight_and_only_what_is_measured_afterwards_is_predicted() -> None:
    predicted = {
        name
        for name in shipped_studies()
        if any(row.role == "predicted" for row in read_study(find_study(name)).study.known())
    }
    assert predicted == {"host_functions", "local_latency", "local_router", "multistage_real"}


def calls_predicted(report: str, source: str) -> list[str]:
    """Return where a report speaks of predictions, but for forecasts, the role's definition and the source's title."""
    report = re.sub(r'<section id="[^"]*">\s*<h2>Forecast: .*?</section>', "", report, flags=re.DOTALL)
    text = " ".join(unescape(re.sub(r"<[^>]*>", " ", report)).split())
    for known in (DEFINED, " ".join(source.split())):
        text = text.replace(known, "")
    return re.findall(r".{0,40}[Pp]redict.{0,40}", text)


@pytest.mark.parametrize("name", [path.stem for path in texts_in(REPORTS, ".html") if path.parent == REPORTS])
def test_a_report_calls_nothing_predicted_that_the_model_knew(name: str) -> None:
    study = read_study(find_study(name)).study
    assert "predicted" not in {row.role for row in study.known()}
    report = read_kept(REPORTS / f"{name}.html")
    assert DEFINED in report
    assert calls_predicted(report, getattr(study, "source", "")) == []
    # The positive control: with the word at a value it is seen.
    assert calls_predicted(report.replace("<td", "<td>predicted</td><td", 1), getattr(study, "source", ""))


def test_unstated_facts_are_neither_printed_nor_guessed() -> None:
    groups = [*counted_group("a", (2, "rate")), *counted_group("b", (0, "rate")), Group(name="c", calibrates="a cost")]
    rows = roles_of(groups, [])
    assert [(row.of, row.role) for row in rows] == [("a", NOT_SAID), ("c", "calibrated on")]
    rest = Knowledge(role="predicted", because="measured later")
    assert [row.role for row in roles_of(groups, [rest])] == ["predicted", "calibrated on"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ('[[prior_knowledge]]\nrole = "guessed"\n', "chosen in sight of"),
        ('[[prior_knowledge]]\nof = ["rates: rate"]\nrole = "predicted"\n', "rates: rates"),
        ('[[prior_knowledge]]\nof = ["rates: rates that calibrate"]\nrole = "predicted"\n', "leave it out here"),
        ('[[prior_knowledge]]\nof = ["rates: rates", "rates: rates"]\nrole = "predicted"\n', "twice"),
        (
            '[[prior_knowledge]]\nrole = "predicted"\n[[prior_knowledge]]\nrole = "calibrated on"\n',
            "a single entry is for all other groups",
        ),
    ],
)
def test_a_role_or_a_group_that_does_not_exist_is_refused_with_those_that_do(
    tmp_path: Path, statement: str, message: str
) -> None:
    with pytest.raises(FileProblem, match=r"prior_knowledge\[") as raised:
        read_study(written(tmp_path, statement))
    assert message in str(raised.value)


def test_terminal_page_and_summary_have_the_table(tmp_path: Path) -> None:
    result = run_study(read_study(written(tmp_path, "")), tmp_path / "out", workers=1)
    table = next(table for table in terminal_summary(result).tables if table.name == "prior_knowledge")
    assert [(row[0], row[2]) for row in table.rows] == [
        ("rates: rates that calibrate", "calibrated on"),
        ("rates: rates", NOT_SAID),
    ]
    assert table.caption.endswith("Not said: the study file has no [[prior_knowledge]] of it.")
    assert [row["role"] for row in result.to_json()["prior_knowledge"]] == ["calibrated on", NOT_SAID]
    assert "What the model knew" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
