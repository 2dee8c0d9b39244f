"""The tables of a ``*.study.toml`` of ``kind = "experiments"``: experiments, and a source's statements about them.

``[router.NAME]`` is a router document in the form of a router file, and an ``[[experiment]]`` has the content of a
``*.experiment.toml`` for one of them. The statements of the source are facts (``[[fact]]``: an effect, a share of the
variation, a value), expectations (``[[expectation]]``: the trend of a response over a factor) and calculations
(``[[arithmetic]]``). A fact may calibrate values of the router documents, which are set so that the model meets it.
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
from routecast.study.document import Count, Name, Quoted, Ratio, StudyDocument, problems_at, repeated_name_problems
from routecast.study.prior_knowledge import Group, counted_group

__all__ = ["Calibrates", "Expectation", "ExperimentsStudy", "Fact", "OverTime", "StudyExperiment", "facts_group"]


Title = Annotated[str, Field(min_length=1)]
Positive = Annotated[Number, Field(gt=0.0)]


class StudyExperiment(ExperimentTable):
    """``[[experiment]]``: the content of a ``*.experiment.toml`` for a router document of the study."""

    router: Name = Field(description="Name of the router document.")


class Calibrates(FileModel):
    """``calibrates``: values of router documents that are set so that the model meets a fact."""

    set: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="Paths in the router documents that get the same value."
    )
    between: tuple[Positive, Positive] = Field(description="Lowest and highest value that is tried.")
    unit: str = Field(default="", description="Unit of the value in the router file; empty for a plain number.")
    whole: bool = Field(default=False, description="Whether the value is a whole number.")
    routers: tuple[Name, ...] = Field(default=(), description="Router documents that get the value; all if not given.")


class Fact(Quoted):
    """``[[fact]]``: a number that a source states."""

    name: Title = Field(description="Name in tables.")
    experiment: Name = Field(description="Name of the experiment.")
    response: Title = Field(description="Name of the response.")
    of: Literal["effect", "share", "mean", "greatest", "least", "value"] = Field(
        description="Quantity of the response: an effect q, its share of the variation (0..1), the mean q_0, the "
        "greatest or least value, or the value at given levels."
    )
    effect: str = Field(default="", description='Letters of the factors: "A", "AB".')
    at: dict[str, str] = Field(default={}, description='Labels of the levels by factor, for "value".')
    scale: Positive = Field(default=1.0, description="The stated unit in units of the response: 1e6 for Mbit/s.")
    unit: str = Field(default="", description="The stated unit.")
    value: Number | None = Field(default=None, description="Stated value, in the stated unit.")
    between: tuple[Number, Number] | None = Field(
        default=None, description="Criterion: permitted range of the model's value, in the stated unit."
    )
    says: str = Field(default="", description="Words of the source, shortened.")
    calibrates: Calibrates | None = Field(default=None, description="Values that the fact calibrates.")
    fitted: bool = Field(default=False, description="Whether the calibration also fits this fact, as well as possible.")

    @property
    def is_calibrating(self) -> bool:
        """Whether the fact calibrates values."""
        return self.calibrates is not None

    @property
    def is_fitted(self) -> bool:
        """Whether the calibration fits the fact; another fact may name the values."""
        return self.fitted or self.is_calibrating


class Expectation(Quoted):
    """``[[expectation]]``: a trend of a response over a factor that the source expects."""

    says: Title = Field(description="The expectation in words.")
    experiment: Name = Field(description="Name of the experiment.")
    response: Title = Field(description="Name of the response.")
    kind: Literal["linear", "reaches", "below", "flat"] = Field(
        description="Trend: proportional to the factor, reaches a value, stays below a value, or does not change."
    )
    factor: str = Field(default="", description="Name of the factor.")
    at: dict[str, str] = Field(default={}, description="Labels of the other factors' levels.")
    until: Number | None = Field(default=None, description="Highest value of the factor for the trend.")
    start: Number | None = Field(default=None, description="Lowest value of the factor for the trend.")
    value: Number | None = Field(
        default=None, description="Value that the response reaches or stays below, in its unit."
    )
    within: Ratio = Field(default=0.05, description="Permitted relative deviation.")


class Line(FileModel):
    """``[[figure.line]]``: a response over a factor, at fixed levels of the others."""

    name: Title = Field(description="Name of the line.")
    experiment: Name = Field(description="Name of the experiment.")
    response: Title = Field(description="Name of the response.")
    factor: Title = Field(description="Name of the factor on the axis.")
    at: dict[str, str] = Field(default={}, description="Labels of the other factors' levels.")
    dashed: bool = Field(default=False, description="Whether the line is dashed.")


class FigureTable(FileModel):
    """``[[figure]]``: lines over a factor."""

    name: Name = Field(description="Name of the figure; names its file.")
    title: Title = Field(description="The figure in words.")
    caption: str = Field(default="", description="Caption of the figure.")
    x: Title = Field(description="Title of the horizontal axis, with its unit.")
    y: Title = Field(description="Title of the vertical axis, with its unit.")
    y_scale: Positive = Field(default=1.0, description="Unit of the vertical axis in units of the response.")
    x_until: Number | None = Field(default=None, description="End of the horizontal axis.")
    y_from: Number = Field(default=0.0, description="Start of the vertical axis.")
    y_log: bool = Field(default=False, description="Whether the vertical axis is logarithmic.")
    level: Positive | None = Field(
        default=None, description="Value of a horizontal line, in the unit of the vertical axis."
    )
    level_name: str = Field(default="", description="Name of the horizontal line.")
    line: Annotated[tuple[Line, ...], Field(min_length=1)]


class OverTime(FileModel):
    """``[[over_time]]``: throughput over time, the start of its steady state, and readings at given instants."""

    name: Name = Field(description="Name of the figure; names its file.")
    title: Title = Field(description="The figure in words.")
    router: Name = Field(description="Name of the router document.")
    set: dict[str, Any] = Field(default={}, description="New values by path in the document.")
    duration: Duration = Field(description="Simulated time.")
    parts: Annotated[int, Field(ge=10, le=1000, strict=True)] = Field(
        default=100, description="Number of equal parts of the simulated time in the figure."
    )
    read_at: tuple[Duration, ...] = Field(default=(), description="Instants of the readings.")


def facts_group(experiment: str) -> str:
    """Return the name of the group of an experiment's facts that do not calibrate."""
    return f"{experiment}: facts"


class ExperimentsStudy(StudyDocument):
    """A ``*.study.toml`` of ``kind = "experiments"``."""

    kind: Literal["experiments"]
    source: str = Field(default="", description="Source of the stated facts.")
    most_calibrations: Count = Field(default=60, description="Highest number of trials of the calibration.")
    router: Annotated[dict[Name, dict[str, Any]], Field(min_length=1)] = Field(
        description="Router documents by name, in the form of router files."
    )
    experiment: Annotated[tuple[StudyExperiment, ...], Field(min_length=1)]
    fact: tuple[Fact, ...] = ()
    expectation: tuple[Expectation, ...] = ()
    figure: tuple[FigureTable, ...] = ()
    over_time: tuple[OverTime, ...] = ()
    arithmetic: tuple[Arithmetic, ...] = ()

    def groups(self) -> Sequence[Group]:
        """Return the groups of compared values."""
        groups: list[Group] = []
        for experiment in self.experiment:
            facts = [fact for fact in self.fact if fact.experiment == experiment.name]
            fitted = [fact for fact in facts if fact.is_fitted]
            paths = dict.fromkeys(path for fact in fitted if fact.calibrates for path in fact.calibrates.set)
            calibrated = " and ".join(paths) or "the values of another fact"
            expected = sum(expectation.experiment == experiment.name for expectation in self.expectation)
            groups += counted_group(
                f"{experiment.name}: facts that calibrate", (len(fitted), "fact"), calibrates=calibrated
            )
            groups += counted_group(facts_group(experiment.name), (len(facts) - len(fitted), "fact"))
            groups += counted_group(f"{experiment.name}: expectations", (expected, "expectation"))
        return groups

    def problems(self, folder: Path) -> list[Problem]:
        """Return all contradictions between parts of the study, with their places."""
        return _problems(self, folder)


def _problems(study: ExperimentsStudy, folder: Path) -> list[Problem]:
    problems = [*repeated_name_problems("experiment", study.experiment)]
    experiments: dict[str, Experiment] = {}
    for number, table in enumerate(study.experiment):
        place = f"experiment[{number}]"
        if table.router not in study.router:
            message = f"there is no [router.{table.router}]; {did_you_mean(table.router, study.router)}"
            problems.append(Problem(f"{place}.router", message))
            continue
        try:
            experiments[table.name] = experiment_of(table, study.router[table.router], subject=place, folder=folder)
        except RoutecastError as problem:
            problems += problems_at(place, problem)
    if not problems:  # names are looked up only in valid experiments
        problems = [
            *_statement_problems(study, experiments),
            *_line_problems(study, experiments),
            *_over_time_problems(study),
        ]
    return [*problems, *arithmetic_problems(study.arithmetic)]


def _statement_problems(study: ExperimentsStudy, experiments: Mapping[str, Experiment]) -> Iterator[Problem]:
    for number, fact in enumerate(study.fact):
        place = f"fact[{number}]"
        yield from _unknown_names(place, experiments, fact.experiment, fact.response, fact.at)
        yield from _fact_problems(place, fact)
        yield from fact.quotation_problems(place)
        for name in fact.calibrates.routers if fact.calibrates else ():
            yield from _unknown_name(f"{place}.calibrates.routers", name, study.router, "router document")
    for number, expectation in enumerate(study.expectation):
        place = f"expectation[{number}]"
        yield from expectation.quotation_problems(place)
        yield from _unknown_names(
            place, experiments, expectation.experiment, expectation.response, expectation.at, expectation.factor
        )
        if expectation.kind in {"below", "reaches"} and expectation.value is None:
            yield Problem(f"{place}.value", f'is missing: "{expectation.kind}" needs a value')
        if expectation.kind != "below" and not expectation.factor:
            yield Problem(f"{place}.factor", f'is missing: "{expectation.kind}" needs a factor')


def _fact_problems(place: str, fact: Fact) -> Iterator[Problem]:
    if fact.of in {"effect", "share"} and not fact.effect:
        yield Problem(f"{place}.effect", f'is missing: "{fact.of}" needs the letters of factors, such as "A" or "AB"')
    if fact.value is None and fact.between is None:
        yield Problem(place, "states nothing: give a value or its permitted range")
    for range_place, between in (
        (f"{place}.between", fact.between),
        (f"{place}.calibrates.between", fact.calibrates.between if fact.calibrates else None),
    ):
        if between is not None and between[0] >= between[1]:
            yield Problem(range_place, "is not a range: the lower value comes first")
    if fact.is_fitted and fact.value is None:
        yield Problem(f"{place}.value", "is missing: a fact that calibrates needs a stated value")
    if fact.is_fitted and fact.value == 0.0:
        yield Problem(f"{place}.value", "is 0, which has no relative error: calibrate with another fact")


def _line_problems(study: ExperimentsStudy, experiments: Mapping[str, Experiment]) -> Iterator[Problem]:
    for number, figure in enumerate(study.figure):
        for index, line in enumerate(figure.line):
            place = f"figure[{number}].line[{index}]"
            yield from _unknown_names(place, experiments, line.experiment, line.response, line.at, line.factor)


def _over_time_problems(study: ExperimentsStudy) -> Iterator[Problem]:
    for number, over_time in enumerate(study.over_time):
        yield from _unknown_name(f"over_time[{number}].router", over_time.router, study.router, "router document")
        for index, at_s in enumerate(over_time.read_at):
            if at_s > over_time.duration:
                message = f"is after the end of the trial, which lasts {format_duration(over_time.duration)}"
                yield Problem(f"over_time[{number}].read_at[{index}]", message)


def _unknown_names(
    place: str, experiments: Mapping[str, Experiment], name: str, response: str, at: Mapping[str, str], factor: str = ""
) -> Iterator[Problem]:
    if name not in experiments:
        yield from _unknown_name(f"{place}.experiment", name, experiments, "experiment")
        return
    experiment = experiments[name]
    responses = [response.name for response in experiment.responses]
    factors = {factor.name: [level.label for level in factor.levels] for factor in experiment.factors}
    yield from _unknown_name(f"{place}.response", response, responses, "response")
    if factor:
        yield from _unknown_name(f"{place}.factor", factor, factors, "factor")
    for key, label in at.items():
        if key in factors:
            yield from _unknown_name(f"{place}.at.{key}", label, factors[key], "level")
        else:
            yield from _unknown_name(f"{place}.at", key, factors, "factor")


def _unknown_name(place: str, name: str, known: Iterable[str], kind: str) -> Iterator[Problem]:
    names = list(known)
    if name not in names:
        yield Problem(place, f"there is no {kind} {name!r}; {did_you_mean(name, names)}")
