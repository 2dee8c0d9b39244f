"""What a study of designed experiments says against itself: names that there are not, routers that cannot be built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from routecast.errors import FileProblem, ModelProblem, Problem, RoutecastError
from routecast.experiment.file.reading import experiment_of
from routecast.experiment.model import Experiment
from routecast.hardware.formula import Formula
from routecast.quantity import format_duration
from routecast.quantity.did_you_mean import did_you_mean
from routecast.study.experiments.document import ExperimentsStudy, Fact

__all__ = ["contradictions"]


def contradictions(study: ExperimentsStudy, folder: Path) -> list[Problem]:
    """Return every contradiction of a study, with its place."""
    problems: list[Problem] = []
    experiments: dict[str, Experiment] = {}
    for number, table in enumerate(study.experiment):
        place = f"experiment[{number}]"
        if table.name in experiments:
            problems.append(Problem(f"{place}.name", f"{table.name!r} is taken"))
        if table.router not in study.router:
            what = f"{table.router!r} is no [router.…]; {did_you_mean(table.router, study.router)}"
            problems.append(Problem(f"{place}.router", what))
            continue
        try:
            experiments[table.name] = experiment_of(table, study.router[table.router], subject=place, folder=folder)
        except RoutecastError as problem:
            problems += _placed(place, problem)
    if not problems:  # names can only be looked up in experiments that can be read
        problems = [*_facts(study, experiments), *_lines(study, experiments), *_over_time(study)]
    for number, arithmetic in enumerate(study.arithmetic):
        try:
            Formula(arithmetic.formula, frozenset()).evaluate({})
        except RoutecastError as problem:
            problems += _placed(f"arithmetic[{number}].formula", problem)
    return problems


def _placed(place: str, error: RoutecastError) -> list[Problem]:
    if not isinstance(error, FileProblem | ModelProblem):
        return [Problem(place, str(error))]
    return [Problem(f"{place}.{one.place}" if one.place else place, one.message) for one in error.problems]


def _facts(study: ExperimentsStudy, experiments: Mapping[str, Experiment]) -> Iterator[Problem]:
    for number, fact in enumerate(study.fact):
        place = f"fact[{number}]"
        yield from _named(place, experiments, fact.experiment, fact.response, fact.at)
        yield from _fact(place, fact)
        for name in fact.calibrates.routers if fact.calibrates else ():
            yield from _known(f"{place}.calibrates.routers", name, study.router, "router document")
    for number, one in enumerate(study.expectation):
        place = f"expectation[{number}]"
        yield from _named(place, experiments, one.experiment, one.response, one.at, one.factor)
        if one.kind in {"below", "reaches"} and one.value is None:
            yield Problem(f"{place}.value", f'is missing: "{one.kind}" needs a value')
        if one.kind != "below" and not one.factor:
            yield Problem(f"{place}.factor", f'is missing: "{one.kind}" is said of a factor')


def _fact(place: str, fact: Fact) -> Iterator[Problem]:
    if fact.of in {"effect", "share"} and not fact.effect:
        yield Problem(f"{place}.effect", f'is missing: an {fact.of} is that of factors, such as "A" or "AB"')
    if fact.value is None and fact.between is None:
        yield Problem(place, "states nothing: give a value, or the range that it must lie in")
    for where, between in (
        (f"{place}.between", fact.between),
        (f"{place}.calibrates.between", fact.calibrates.between if fact.calibrates else None),
    ):
        if between is not None and between[0] >= between[1]:
            yield Problem(where, "is no range: the least value comes first")
    is_fitted = fact.fitted or fact.calibrates is not None
    if is_fitted and fact.value is None:
        yield Problem(f"{place}.value", "is missing: what calibrates needs a stated value")
    if is_fitted and fact.value == 0.0:
        yield Problem(f"{place}.value", "is 0, which no relative miss can be told of: calibrate by another fact")


def _lines(study: ExperimentsStudy, experiments: Mapping[str, Experiment]) -> Iterator[Problem]:
    for number, figure in enumerate(study.figure):
        for index, line in enumerate(figure.line):
            place = f"figure[{number}].line[{index}]"
            yield from _named(place, experiments, line.experiment, line.response, line.at, line.factor)


def _over_time(study: ExperimentsStudy) -> Iterator[Problem]:
    for number, one in enumerate(study.over_time):
        yield from _known(f"over_time[{number}].router", one.router, study.router, "router document")
        for index, at_s in enumerate(one.read_at):
            if at_s > one.duration:
                what = f"is after the end: the trial lasts {format_duration(one.duration)}"
                yield Problem(f"over_time[{number}].read_at[{index}]", what)


def _named(
    place: str,
    experiments: Mapping[str, Experiment],
    name: str,
    response: str,
    at: Mapping[str, str],
    factor: str = "",
) -> Iterator[Problem]:
    if name not in experiments:
        yield from _known(f"{place}.experiment", name, experiments, "experiment")
        return
    experiment = experiments[name]
    responses = [one.name for one in experiment.responses]
    factors = {one.name: [level.label for level in one.levels] for one in experiment.factors}
    yield from _known(f"{place}.response", response, responses, "response")
    if factor:
        yield from _known(f"{place}.factor", factor, factors, "factor")
    for key, label in at.items():
        if key in factors:
            yield from _known(f"{place}.at.{key}", label, factors[key], "level")
        else:
            yield from _known(f"{place}.at", key, factors, "factor")


def _known(place: str, name: str, known: Iterable[str], kind: str) -> Iterator[Problem]:
    names = list(known)
    if name not in names:
        yield Problem(place, f"{name!r} is no {kind}; {did_you_mean(name, names)}")
