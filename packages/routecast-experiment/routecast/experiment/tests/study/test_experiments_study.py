"""Studies of designed experiments on a router whose rates are known by hand: cores of some microseconds a frame."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routecast.errors import FileProblem
from routecast.experiment.study.document import ExperimentsStudy
from routecast.experiment.study.run import ExperimentsResult
from routecast.experiment.study.views import facts_table
from routecast.study.engine import run_study
from routecast.study.reading import read_study

STUDY = """
kind = "experiments"
name = "by_hand"
title = "Cores of some microseconds a frame"
source = "by hand"

[router.cores]
builder = "multicore"
cores = 1
ports = 2
link = "10 Gbit/s"
service = { per_packet = "3 us" }
load = { rate = "2 Mpps", frames = "64 B", flows = { kind = "crafted", count = 4 } }

[[experiment]]
name = "cores"
router = "cores"
evaluator = "solve"
response = [{ name = "capacity", of = "capacity_pps" }]

[experiment.design]
kind = "multilevel"

[[experiment.factor]]
name = "cores"
levels = [
  { label = "1 core", set = { cores = 1 } },
  { label = "2 cores", set = { cores = 2 } },
  { label = "4 cores", set = { cores = 4 } },
]

[[experiment]]
name = "two"
router = "cores"
evaluator = "solve"
response = [{ name = "capacity", of = "capacity_pps" }]

[[experiment.factor]]
name = "cores"
path = "cores"
levels = [1, 2]

[[experiment.factor]]
name = "frame"
path = "load.frames"
levels = ["64 B", "128 B"]
"""
FACT = """
[[fact]]
name = "one core"
experiment = "cores"
response = "capacity"
of = "value"
at = { cores = "1 core" }
scale = 1e3
unit = "kpps"
value = 400.0
calibrates = { set = ["service.per_packet"], between = [1.0, 10.0], unit = "us" }
"""


def run(tmp_path: Path, more: str = "") -> ExperimentsResult:
    path = tmp_path / "by_hand.study.toml"
    path.write_text(STUDY + more)
    file = read_study(path)
    assert isinstance(file.study, ExperimentsStudy)
    return run_study(file, tmp_path / "out", workers=1)


@pytest.mark.slow
def test_a_fact_sets_the_cost_that_meets_it_and_the_rest_follows(tmp_path: Path) -> None:
    more = """
    [[fact]]
    name = "four cores"
    experiment = "cores"
    response = "capacity"
    of = "value"
    at = { cores = "4 cores" }
    scale = 1e3
    value = 1500.0
    between = [1590.0, 1610.0]
    """
    result = run(tmp_path, FACT + more)
    assert result.calibrated[0].value == pytest.approx(2.5, rel=5e-3)  # 1 / 400 kpps
    assert result.facts[1].value == pytest.approx(1600.0, rel=5e-3)
    assert result.criteria[0].is_met


def test_effects_of_a_two_level_experiment_are_jains(tmp_path: Path) -> None:
    more = """
    [[fact]]
    name = "q of the cores"
    experiment = "two"
    response = "capacity"
    of = "effect"
    effect = "A"
    value = 0.0

    [[fact]]
    name = "share of the cores"
    experiment = "two"
    response = "capacity"
    of = "share"
    effect = "A"
    value = 1.0
    """
    result = run(tmp_path, more)
    per_core = 1e6 / 3.0
    assert [fact.value for fact in result.facts] == pytest.approx([per_core / 2.0, 1.0])


def test_expectations_are_confirmed_or_refuted(tmp_path: Path) -> None:
    def expects(kind: str, more: str) -> str:
        head = f'[[expectation]]\nsays = "{kind}"\nexperiment = "cores"\nresponse = "capacity"\n'
        return f'{head}kind = "{kind}"\nfactor = "cores"\n{more}\n'

    more = (
        expects("linear", "")
        + expects("flat", "")
        + expects("reaches", "value = 1.3e6")
        + expects("reaches", "value = 2e6")
        + expects("below", "value = 1.3e6")
        + expects("below", "value = 1.4e6")
    )
    result = run(tmp_path, more)
    assert [expectation.is_confirmed for expectation in result.expectations] == [True, False, True, False, False, True]
    assert result.expectations[2].finding == "at cores = 4"
    assert result.expectations[5].finding == "at most 1.333 Mpps, 95.2% of 1.4 Mpps"


def test_what_a_source_states_in_words_only_stands_in_its_words(tmp_path: Path) -> None:
    more = """
    [[fact]]
    name = "share of the frame"
    experiment = "two"
    response = "capacity"
    of = "share"
    effect = "B"
    between = [0.0, 0.01]
    says = "of no consequence"
    """
    row = facts_table(run(tmp_path, more)).rows[-1]
    assert row[0] == "share of the frame: “of no consequence”"
    assert row[2] == "–"


def test_calculations_of_the_source_are_done_again(tmp_path: Path) -> None:
    more = """
    [[arithmetic]]
    says = "10 Gbit/s of 64 B"
    stated = 14.88e6
    formula = "10e9 / (8 * (64 + 20))"

    [[arithmetic]]
    says = "without what is between frames"
    stated = 19.5e6
    formula = "10e9 / (8 * (64 + 20))"
    """
    assert [item.agrees for item in run(tmp_path, more).calculated] == [True, False]


def test_a_study_leaves_a_report_figures_and_a_summary(tmp_path: Path) -> None:
    figure = """
    [[figure]]
    name = "capacity"
    title = "Capacity over cores"
    x = "cores"
    y = "capacity, kpps"
    y_scale = 1e3

    [[figure.line]]
    name = "cores"
    experiment = "cores"
    response = "capacity"
    factor = "cores"
    """
    run(tmp_path, figure)
    out = tmp_path / "out"
    summary = json.loads((out / "summary.json").read_text())
    assert [item["name"] for item in summary["experiments"]] == ["cores", "two"]
    assert "Capacity over cores" in (out / "report.html").read_text()
    assert (out / "figures" / "capacity.svg").exists()


def test_every_wrong_name_is_reported_with_the_nearest_known_one(tmp_path: Path) -> None:
    more = """
    [[fact]]
    name = "wrong"
    experiment = "core"
    response = "capacity"
    of = "mean"
    value = 1.0

    [[expectation]]
    says = "wrong"
    experiment = "cores"
    response = "capacty"
    kind = "linear"
    factor = "core"
    at = { cores = "3 cores" }

    [[arithmetic]]
    says = "wrong"
    stated = 1.0
    formula = "1 +"
    """
    with pytest.raises(FileProblem) as raised:
        run(tmp_path, more)
    places = [problem.place for problem in raised.value.problems]
    assert places == [
        "fact[0].experiment",
        "expectation[0].response",
        "expectation[0].factor",
        "expectation[0].at.cores",
        "arithmetic[0].formula",
    ]
    assert '"cores"' in str(raised.value)


@pytest.mark.slow
def test_a_fact_that_no_value_meets_is_left_with_its_miss(tmp_path: Path) -> None:
    more = FACT.replace("between = [1.0, 10.0]", "between = [5.0, 10.0]")
    result = run(tmp_path, more)
    assert result.calibrated[0].value == pytest.approx(5.0, rel=1e-2)
    assert result.facts[0].value == pytest.approx(200.0, rel=1e-2)


def test_one_value_meets_two_facts_as_well_as_it_can(tmp_path: Path) -> None:
    more = """
    [[fact]]
    name = "two cores"
    experiment = "cores"
    response = "capacity"
    of = "value"
    at = { cores = "2 cores" }
    scale = 1e3
    value = 600.0
    fitted = true
    """
    fact = FACT.replace("calibrates =", "fitted = true\ncalibrates =")
    result = run(tmp_path, fact + more)
    # One core of x kpps stands for 400, two of 2 x for 600: (x/400 - 1)^2 + (x/300 - 1)^2 is least at x = 336.
    assert result.facts[0].value == pytest.approx(336.0, rel=5e-3)
