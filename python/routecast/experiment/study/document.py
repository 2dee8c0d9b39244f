"""The tables of a ``*.study.toml`` of ``kind = "experiments"``: experiments, and a source's statements about them.

``[router.NAME]`` holds router documents, in the form of router files. An ``[[experiment]]`` is what a
``*.experiment.toml`` says, about one of them. Beside the experiments stand facts (``[[fact]]``: an effect, a share of
variation, a value), expectations (``[[expectation]]``: the trend of a response over a factor) and calculations
(``[[arithmetic]]``) of the source. Facts may calibrate: values of the router documents are set so that they are met.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from routecast.errors import Problem, RoutecastError
from routecast.experiment.file import ExperimentTable, experiment_of
from routecast.experiment.model import Experiment
from routecast.quantity import format_duration
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Duration, Number
from routecast.quantity.file_model import FileModel
from routecast.study.arithmetic import Arithmetic, arithmetic_problems
from routecast.study.document import Count, Name, Quoted, Ratio, StudyDocument, problems_at, taken_names
from routecast.study.knew import Group, group_of

__all__ = ["Calibrates", "Expectation", "ExperimentsStudy", "Fact", "OverTime", "StudyExperiment"]


Title = Annotated[str, Field(min_length=1)]
Positive = Annotated[Number, Field(gt=0.0)]


class StudyExperiment(ExperimentTable):
    """``[[experiment]]``: the content of a ``*.experiment.toml``, for a router document of the study."""

    router: Name = Field(description="Name of the router document.")


class Calibrates(FileModel):
    """``calibrates``: values that are set so that a fact is met."""

    set: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="Paths in the router documents that get the same value."
    )
    between: tuple[Positive, Positive] = Field(description="Least and greatest value that is tried.")
    unit: str = Field(default="", description="Unit of the value, as the router file wants it; none: a plain number.")
    whole: bool = Field(default=False, description="Whether only whole numbers make sense.")
    routers: tuple[Name, ...] = Field(default=(), description="Router documents that it is set in; none: all.")


class Fact(Quoted):
    """``[[fact]]``: a number that a source states."""

    name: Title = Field(description="Name in tables.")
    experiment: Name = Field(description="Name of the experiment.")
    response: Title = Field(description="Name of the response.")
    of: Literal["effect", "share", "mean", "greatest", "least", "value"] = Field(
        description="Quantity of the response: an effect q, its share of the variation (0..1), the mean q_0, the "
        "greatest or least value, or the value at some levels."
    )
    effect: str = Field(default="", description='Letters of the factors: "A", "AB".')
    at: dict[str, str] = Field(default={}, description='Label of the level by factor, for "value".')
    scale: Positive = Field(default=1.0, description="Stated unit in the response's unit: 1e6 for Mbit/s.")
    unit: str = Field(default="", description="The stated unit.")
    value: Number | None = Field(default=None, description="Stated value, in the stated unit.")
    between: tuple[Number, Number] | None = Field(
        default=None, description="Criterion: range of the value found, in the stated unit."
    )
    says: str = Field(default="", description="The source's words, shortened.")
    calibrates: Calibrates | None = Field(default=None, description="Values that it calibrates.")
    fitted: bool = Field(
        default=False, description="Whether calibrated values meet this fact too, as well as they can."
    )

    @property
    def is_calibrating(self) -> bool:
        """Whether values are set so that the fact is met."""
        return self.calibrates is not None

    @property
    def is_fitted(self) -> bool:
        """Whether calibrated values are fitted to the fact; they need not be named in it."""
        return self.fitted or self.is_calibrating


class Expectation(Quoted):
    """``[[expectation]]``: a source's expected trend of a response over a factor; confirmed or refuted."""

    says: Title = Field(description="The expectation in words.")
    experiment: Name = Field(description="Name of the experiment.")
    response: Title = Field(description="Name of the response.")
    kind: Literal["linear", "reaches", "below", "flat"] = Field(
        description="Proportional to the factor, reaches a value, stays below a value, or does not change."
    )
    factor: str = Field(default="", description="Name of the factor.")
    at: dict[str, str] = Field(default={}, description="Labels of the other factors' levels.")
    until: Number | None = Field(default=None, description="Largest value of the factor that is meant.")
    start: Number | None = Field(default=None, description="Smallest value of the factor that is meant.")
    value: Number | None = Field(default=None, description="The value, in the response's unit.")
    within: Ratio = Field(default=0.05, description="Relative deviation that is taken for none.")


class Line(FileModel):
    """``[[figure.line]]``: a response against a factor, at fixed levels of the others."""

    name: Title = Field(description="Name of the line.")
    experiment: Name = Field(description="Name of the experiment.")
    response: Title = Field(description="Name of the response.")
    factor: Title = Field(description="Name of the factor on the axis.")
    at: dict[str, str] = Field(default={}, description="Labels of the other factors' levels.")
    dashed: bool = Field(default=False, description="Whether it is drawn dashed.")


class FigureTable(FileModel):
    """``[[figure]]``: lines over a factor."""

    name: Name = Field(description="Name of the figure; names its file.")
    title: Title = Field(description="The figure in words.")
    caption: str = Field(default="", description="Caption of the figure.")
    x: Title = Field(description="Title of the horizontal axis, with its unit.")
    y: Title = Field(description="Title of the vertical axis, with its unit.")
    y_scale: Positive = Field(default=1.0, description="Unit of the axis in the response's unit.")
    x_until: Number | None = Field(default=None, description="End of the horizontal axis.")
    y_from: Number = Field(default=0.0, description="Begin of the vertical axis.")
    y_log: bool = Field(default=False, description="Whether the vertical axis is logarithmic.")
    level: Positive | None = Field(default=None, description="A level to draw across, in the axis's unit.")
    level_name: str = Field(default="", description="Name of the level.")
    line: Annotated[tuple[Line, ...], Field(min_length=1)]


class OverTime(FileModel):
    """``[[over_time]]``: throughput over time, the time from which it is steady, and readings at some instants."""

    name: Name = Field(description="Name of the figure; names its file.")
    title: Title = Field(description="The figure in words.")
    router: Name = Field(description="Name of the router document.")
    set: dict[str, Any] = Field(default={}, description="Values by their paths in the document.")
    duration: Duration = Field(description="Simulated time.")
    parts: Annotated[int, Field(ge=10, le=1000, strict=True)] = Field(
        default=100, description="Equal parts of it that are drawn."
    )
    read_at: tuple[Duration, ...] = Field(default=(), description="Instants of the readings.")


class ExperimentsStudy(StudyDocument):
    """A ``*.study.toml`` of ``kind = "experiments"``."""

    kind: Literal["experiments"]
    source: str = Field(default="", description="Source of the stated facts.")
    most_calibrations: Count = Field(default=60, description="Trials of the calibrated values, at most.")
    router: Annotated[dict[Name, dict[str, Any]], Field(min_length=1)] = Field(
        description="Router documents by name, as router files say them."
    )
    experiment: Annotated[tuple[StudyExperiment, ...], Field(min_length=1)]
    fact: tuple[Fact, ...] = ()
    expectation: tuple[Expectation, ...] = ()
    figure: tuple[FigureTable, ...] = ()
    over_time: tuple[OverTime, ...] = ()
    arithmetic: tuple[Arithmetic, ...] = ()

    def groups(self) -> Sequence[Group]:
        """Return what the study compares."""
        groups: list[Group] = []
        for experiment in self.experiment:
            facts = [fact for fact in self.fact if fact.experiment == experiment.name]
            fitted = [fact for fact in facts if fact.is_fitted]
            paths = dict.fromkeys(path for fact in fitted if fact.calibrates for path in fact.calibrates.set)
            by = " and ".join(paths) or "what another fact names"
            expected = sum(expectation.experiment == experiment.name for expectation in self.expectation)
            groups += group_of(f"{experiment.name}: facts that calibrate", (len(fitted), "fact"), calibrates=by)
            groups += group_of(f"{experiment.name}: facts", (len(facts) - len(fitted), "fact"))
            groups += group_of(f"{experiment.name}: expectations", (expected, "expectation"))
        return groups

    def problems(self, folder: Path) -> list[Problem]:
        """Return every contradiction between parts of the study, with its place."""
        return _problems(self, folder)


def _problems(study: ExperimentsStudy, folder: Path) -> list[Problem]:
    problems = [*taken_names("experiment", study.experiment)]
    experiments: dict[str, Experiment] = {}
    for number, table in enumerate(study.experiment):
        place = f"experiment[{number}]"
        if table.router not in study.router:
            what = f"{table.router!r} is no [router.…]; {did_you_mean(table.router, study.router)}"
            problems.append(Problem(f"{place}.router", what))
            continue
        try:
            experiments[table.name] = experiment_of(table, study.router[table.router], subject=place, folder=folder)
        except RoutecastError as problem:
            problems += problems_at(place, problem)
    if not problems:  # names can only be looked up in experiments that can be read
        problems = [*_facts(study, experiments), *_lines(study, experiments), *_over_time(study)]
    return [*problems, *arithmetic_problems(study.arithmetic)]


def _facts(study: ExperimentsStudy, experiments: Mapping[str, Experiment]) -> Iterator[Problem]:
    for number, fact in enumerate(study.fact):
        place = f"fact[{number}]"
        yield from _named(place, experiments, fact.experiment, fact.response, fact.at)
        yield from _fact(place, fact)
        yield from fact.quotation_problems(place)
        for name in fact.calibrates.routers if fact.calibrates else ():
            yield from _known(f"{place}.calibrates.routers", name, study.router, "router document")
    for number, expectation in enumerate(study.expectation):
        place = f"expectation[{number}]"
        yield from expectation.quotation_problems(place)
        yield from _named(
            place, experiments, expectation.experiment, expectation.response, expectation.at, expectation.factor
        )
        if expectation.kind in {"below", "reaches"} and expectation.value is None:
            yield Problem(f"{place}.value", f'is missing: "{expectation.kind}" needs a value')
        if expectation.kind != "below" and not expectation.factor:
            yield Problem(f"{place}.factor", f'is missing: "{expectation.kind}" is said of a factor')


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
    if fact.is_fitted and fact.value is None:
        yield Problem(f"{place}.value", "is missing: what calibrates needs a stated value")
    if fact.is_fitted and fact.value == 0.0:
        yield Problem(f"{place}.value", "is 0, which no relative miss can be told of: calibrate by another fact")


def _lines(study: ExperimentsStudy, experiments: Mapping[str, Experiment]) -> Iterator[Problem]:
    for number, figure in enumerate(study.figure):
        for index, line in enumerate(figure.line):
            place = f"figure[{number}].line[{index}]"
            yield from _named(place, experiments, line.experiment, line.response, line.at, line.factor)


def _over_time(study: ExperimentsStudy) -> Iterator[Problem]:
    for number, over_time in enumerate(study.over_time):
        yield from _known(f"over_time[{number}].router", over_time.router, study.router, "router document")
        for index, at_s in enumerate(over_time.read_at):
            if at_s > over_time.duration:
                what = f"is after the end: the trial lasts {format_duration(over_time.duration)}"
                yield Problem(f"over_time[{number}].read_at[{index}]", what)


def _named(
    place: str, experiments: Mapping[str, Experiment], name: str, response: str, at: Mapping[str, str], factor: str = ""
) -> Iterator[Problem]:
    if name not in experiments:
        yield from _known(f"{place}.experiment", name, experiments, "experiment")
        return
    experiment = experiments[name]
    responses = [response.name for response in experiment.responses]
    factors = {factor.name: [level.label for level in factor.levels] for factor in experiment.factors}
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
