"""What studies that ship call stated stands in the source's words: each value is a number of its quotation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest
from quotations import numbers, papers, plain

from routecast.experiment.study.document import ExperimentsStudy
from routecast.hardware.formula import Formula
from routecast.noc.study.document import NocStudy
from routecast.plan.cluster.study.document import ClusterStudy
from routecast.replications.curves.document import CurveStudy
from routecast.study.document import Quoted, SourceStatement, StudyDocument
from routecast.study.reading import find_study, read_study, shipped_studies
from routecast.study.tables.document import Study

NOT_YET_QUOTED: frozenset[str] = frozenset()
"""Studies with stated values that have no quotation yet: the list may only shrink."""

NO_STATED_VALUES = {
    "host_functions",  # measured here
    "local_latency",
    "local_router",
    "multistage_real",
    "napi_power",
}
"""Studies whose files have no table of stated values."""

ROUNDED = 0.005
"""Values that follow from a quoted number are written with three digits."""


def values(study: StudyDocument) -> Iterator[tuple[str, Quoted, tuple[float, ...], float]]:
    """Yield place, quotation, stated values, and what the source's unit is in that of the value."""
    if isinstance(study, NocStudy):
        for case in study.case:
            for number, power in enumerate(case.stated):
                yield f"{case.name}.stated[{number}]", power, (power.relative_power,), 1.0
    if isinstance(study, Study):
        for scenario in study.scenario:
            for number, stated in enumerate(scenario.flows_for_links):
                yield f"{scenario.name}.flows_for_links[{number}]", stated, (stated.flows,), 1.0
    if isinstance(study, CurveStudy):
        for figure in study.figure:
            for number, rate in enumerate(figure.stated):
                yield f"{figure.name}.stated[{number}]", rate, (rate.value,), 1.0
            for number, passing in enumerate(figure.passing):
                yield f"{figure.name}.passing[{number}]", passing, passing.ratios, 1.0
    if isinstance(study, ExperimentsStudy):
        for number, fact in enumerate(study.fact):
            if fact.value is not None:
                yield f"fact[{number}]", fact, (fact.value,), fact.scale
        for number, expectation in enumerate(study.expectation):
            if expectation.kind == "reaches" and expectation.value is not None:
                yield f"expectation[{number}]", expectation, (expectation.value,), 1.0
    if isinstance(study, ExperimentsStudy | ClusterStudy):
        for number, arithmetic in enumerate(study.arithmetic):
            yield f"arithmetic[{number}]", arithmetic, (arithmetic.stated,), 1.0


def quoted(study: StudyDocument) -> Iterator[tuple[str, Quoted]]:
    """Yield everything of a study that may have a quotation."""
    if isinstance(study, NocStudy):
        tables = [(case.name, table) for case in study.case for table in (case.stated, case.statement)]
    elif isinstance(study, Study):
        tables = [(scenario.name, scenario.flows_for_links) for scenario in study.scenario]
    elif isinstance(study, CurveStudy):
        tables = [
            (figure.name, table)
            for figure in study.figure
            for table in (figure.stated, figure.passing, figure.ordered, figure.shape, figure.limited)
        ]
    elif isinstance(study, ExperimentsStudy):
        tables = [("", study.fact), ("", study.expectation), ("", study.arithmetic)]
    elif isinstance(study, ClusterStudy):
        tables = [("", study.statement), ("", study.arithmetic)]
    else:
        tables = []
    for name, table in tables:
        for number, item in enumerate(table):
            yield f"{name}.{type(item).__name__.lower()}[{number}]", item


def is_stated(quoted: Quoted, value: float, scale: float = 1.0) -> bool:
    """Whether a value is a number of its quotation, a word that is named, or follows from its numbers."""
    quoted_numbers = numbers(quoted.quote)
    if quoted.words:
        return any(value == pytest.approx(number) for number in quoted.words.values())
    if not quoted.read_as:
        return any(wanted == pytest.approx(number) for number in quoted_numbers for wanted in (value, value * scale))
    formula = quoted.read_as.removeprefix("-")
    used = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", formula)} - {1.0, 100.0}
    sign = -1.0 if formula != quoted.read_as else 1.0
    result = sign * Formula(formula, frozenset()).evaluate({})
    return bool(used) and used <= quoted_numbers and value == pytest.approx(result, rel=ROUNDED)


@cache
def study_of(name: str) -> StudyDocument:
    document = read_study(find_study(name)).study
    assert isinstance(document, StudyDocument)
    return document


STUDIES = sorted(set(shipped_studies()) - NO_STATED_VALUES)


@pytest.mark.parametrize("name", sorted(set(STUDIES) - NOT_YET_QUOTED))
def test_each_stated_number_stands_in_its_quotation(name: str) -> None:
    result = list(values(study_of(name)))
    assert result
    wrong = [
        f"{place}: {value:g} is not in “{item.quote}”"
        for place, item, of, scale in result
        for value in of
        if not item.read_off and not is_stated(item, value, scale)
    ]
    assert not wrong


@pytest.mark.parametrize("name", sorted(NO_STATED_VALUES))
def test_the_other_studies_have_no_stated_values(name: str) -> None:
    assert not list(values(study_of(name)))


QUOTING = [name for name in sorted(shipped_studies()) if list(quoted(study_of(name)))]


def test_studies_that_compare_with_published_words_quote_them() -> None:
    assert set(STUDIES) | {"msr_energy"} == set(QUOTING)


@pytest.mark.parametrize("name", QUOTING)
def test_every_stated_value_stands_in_the_words_of_its_source(name: str) -> None:
    assert not [
        place for place, item in quoted(study_of(name)) if not (item.quote and item.section) and not item.read_off
    ]


@pytest.mark.parametrize("name", QUOTING)
def test_numbers_of_statements_in_words_are_those_of_their_quotations(name: str) -> None:
    statements = [
        (place, statement) for place, statement in quoted(study_of(name)) if isinstance(statement, SourceStatement)
    ]
    assert not [place for place, statement in statements if not numbers(statement.stated) <= numbers(statement.quote)]


@pytest.mark.parametrize("name", QUOTING)
def test_quotations_are_the_words_of_the_papers(name: str) -> None:
    texts = papers()
    wrong = [place for place, item in quoted(study_of(name)) if not any(plain(item.quote) in text for text in texts)]
    assert not wrong


@pytest.mark.parametrize(
    ("quote", "value", "read_as", "words"),
    [
        ("no more than 1200kpps", 1.2e6, "", {}),
        ("up to 333,000 packets", 333e3, "", {}),
        ("over 16M packets", 16e6, "", {}),
        ("account for 75.7% of", 0.757, "", {}),
        ("a factor of 4.2, 4.7 and 4.2", 0.238, "1 / 4.2", {}),
        ("achieves 60% gain", 0.4, "1 - 60 / 100", {}),
        ("almost half of it", 0.5, "", {"half": 0.5}),
    ],
)
def test_units_words_and_calculations_are_read(quote: str, value: float, read_as: str, words: dict[str, float]) -> None:
    assert is_stated(Quoted(section="sec. 1", quote=quote, read_as=read_as, words=words), value)


@pytest.mark.parametrize(
    ("quote", "value", "read_as"),
    [
        ("no more than 1200kpps", 1.1e6, ""),
        ("no more than 1200 frames", 1.2e6, ""),
        ("almost half of it", 0.5, ""),
        ("a factor of 4.4", 0.238, "1 / 4.2"),
        ("a factor of 4.2", 0.25, "1 / 4.2"),
        ("a great factor", 0.01, "1 / 100"),
    ],
)
def test_a_number_that_the_quotation_does_not_have_is_found_out(quote: str, value: float, read_as: str) -> None:
    assert not is_stated(Quoted(section="sec. 1", quote=quote, read_as=read_as), value)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"read_off": "fig. 1", "quote": "a", "section": "sec. 1"}, "x.read_off"),
        ({"quote": "a"}, "x.section"),
        ({"read_as": "1 / 2"}, "x.quote"),
        ({"quote": "a", "section": "sec. 1", "words": {"half": 0.5}}, "x.words.half"),
    ],
)
def test_fields_of_a_quotation_that_contradict_one_another_are_reported(fields: dict[str, object], place: str) -> None:
    assert place in {problem.place for problem in Quoted.model_validate(fields).quotation_problems("x")}


def test_a_table_says_what_is_stated_and_what_is_read_off_a_figure() -> None:
    assert Quoted(section="sec. 1", quote="a few", where="roughly").place == "sec. 1: “a few”; roughly"
    assert Quoted(read_off="fig. 2").place == "read off fig. 2"
    assert Quoted(where="p. 3").place == "p. 3"
