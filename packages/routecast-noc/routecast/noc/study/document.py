"""The tables of a ``*.study.toml`` of ``kind = "noc"``: traffic patterns, stated powers, and criteria."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from routecast.errors import FileProblem, Problem
from routecast.noc.file import NocFile, contradictions, plane_widths, topology_of, traffic_of
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Count, Number
from routecast.quantity.file_model import FileModel
from routecast.study.document import Name, Quoted, SourceStatement, StudyDocument, repeated_name_problems
from routecast.study.prior_knowledge import STATEMENTS, Group, counted_group

__all__ = ["Case", "CurveStatement", "NocStudy", "OwnCriterion", "StatedPower"]

SEARCH = "search"
FOUR_PHASE = "four_phase"

Load = Annotated[Number, Field(gt=0.0)]


class StatedPower(Quoted):
    """``[[case.stated]]``: a power that a source states, relative to no scaling at load 1."""

    curve: str = Field(description="Routing, allocation, or optimum")
    load: Load = Field(default=1.0, description="Normalised load")
    relative_power: Annotated[Number, Field(gt=0.0)] = Field(description="Power / power without scaling at load 1")
    within: Annotated[Number, Field(ge=0.0)] | None = Field(
        default=None, description="Criterion: largest relative error allowed, or none"
    )
    at_most: bool = Field(default=False, description="Whether less power than stated meets the criterion too")


class CurveStatement(SourceStatement):
    """``[[case.statement]]``: a statement of a source, in words, about curves at the highest load."""

    of: Literal["less", "more", "points", "times", "factor", "least"] = Field(
        description='Quantity that the report shows beside the statement. "less", "more": relative difference of the '
        'power of curve from that of than; "points": by how many percent of the power without scaling at load 1 curve '
        'needs less than than; "times": their ratio; "factor": power without scaling divided by that of '
        'curve, and of than; "least": least power of all curves.'
    )
    curve: str = Field(default="", description="Routing, allocation, or optimum")
    than: str = Field(default="", description="The curve that it is compared with")


class OwnCriterion(FileModel):
    """``[[case.own]]``: a criterion of the study that no source states: the greatest power of a curve."""

    curve: str = Field(description="Routing, allocation, or optimum")
    load: Load = Field(default=1.0, description="Normalised load")
    relative_power: Annotated[Number, Field(gt=0.0)] = Field(description="Power / power without scaling at load 1")
    within: Annotated[Number, Field(ge=0.0)] = Field(default=0.0, description="Allowed relative excess")
    why: Annotated[str, Field(min_length=1)] = Field(description="Reason for the criterion")


class Case(NocFile):
    """``[[case]]``: one traffic with its figure; its other tables are those of a ``*.noc.toml``."""

    name: Name = Field(description="Name of the case and of its figure")
    title: str = Field(description="Title of the figure")
    matrices: Annotated[Count, Field(ge=1, le=1000)] = Field(
        default=1, description="Random matrices to average over; their seeds follow that of the traffic"
    )
    has_optimum: bool = Field(default=True, description="Whether the optimum and its proven bound are computed")
    stated: tuple[StatedPower, ...] = ()
    own: tuple[OwnCriterion, ...] = ()
    statement: tuple[CurveStatement, ...] = ()
    maps: tuple[str, ...] = Field(default=(), description="Curves whose link loads are drawn at the highest load")


class Flits(FileModel):
    """``[flits]``: power at the flit level against the flow level (table 6.1)."""

    replications: Annotated[Count, Field(ge=2, le=100)] = Field(default=5, description="Independent runs")
    seed: int = 1


class NocCriteria(FileModel):
    """``[criteria]``: thresholds that the results must reach, as ratios 0..1."""

    flit_ratio: Annotated[Number, Field(gt=0.0)] | None = Field(
        default=None, description="Largest error of a ratio of [flits] against alpha squared"
    )
    gap: Annotated[Number, Field(gt=0.0)] | None = Field(default=None, description="Largest gap of the optimum")
    closed: Annotated[Number, Field(ge=0.0, le=1.0)] | None = Field(
        default=None,
        description="Least share of the distance from 2P-4PHASE to the bound that the search closes at load 1",
    )


class NocStudy(StudyDocument):
    """A ``*.study.toml`` of ``kind = "noc"``."""

    kind: Literal["noc"]
    source: str = Field(default="", description="Source of the stated figures.")
    case: Annotated[tuple[Case, ...], Field(min_length=1)]
    flits: Flits | None = None
    criteria: NocCriteria = NocCriteria()

    def groups(self) -> Sequence[Group]:
        """Return the groups of values that the study compares."""
        groups: list[Group] = []
        for case in self.case:
            groups += counted_group(f"{case.name}: power", (len(case.stated), "stated power"))
        count = sum(len(case.statement) for case in self.case)
        groups += counted_group(STATEMENTS, (count, "statement"))
        if self.flits:
            groups.append(Group(name="flits: ratios of power", values="alpha squared, table 6.1"))
        return groups

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions between parts of the study, each with its place."""
        return _problems(self, folder)


def _problems(study: NocStudy, folder: Path) -> list[Problem]:
    problems = [*repeated_name_problems("case", study.case, "it names a figure")]
    for number, case in enumerate(study.case):
        place = f"case[{number}]"
        case_problems = contradictions(case) or _traffic_problems(case, folder)
        problems += [
            Problem(f"{place}.{problem.place}", problem.message) for problem in (*case_problems, *_curve_problems(case))
        ]
    return [*problems, *_criteria_problems(study)]


def _traffic_problems(case: Case, folder: Path) -> list[Problem]:
    """Return the problems of reading the traffic of a case and of fitting it to its grid."""
    try:
        traffic_of(case.traffic, topology_of(case.topology), subject="", folder=folder)
    except FileProblem as problem:
        if not problem.subject:
            return list(problem.problems)
        return [Problem("traffic.matrix" if case.traffic.matrix else "traffic.task_graph", str(problem))]
    return []


def _curve_problems(case: Case) -> Iterator[Problem]:
    curves: list[str] = [*case.routing.policies, *_allocations(case)]
    curves += ["optimum"] if case.has_optimum else []
    named = [(f"stated[{index}].curve", stated.curve) for index, stated in enumerate(case.stated)]
    named += [(f"own[{index}].curve", own.curve) for index, own in enumerate(case.own)]
    for index, statement in enumerate(case.statement):
        place = f"statement[{index}]"
        named += [
            (f"{place}.{key}", name) for key, name in (("curve", statement.curve), ("than", statement.than)) if name
        ]
        yield from _statement_problems(statement, place)
    named += [(f"maps[{index}]", curve) for index, curve in enumerate(case.maps)]
    for where, curve in named:
        if curve not in curves:
            yield Problem(where, f"got {curve!r}: {did_you_mean(curve, curves)}")
    loads = [(f"stated[{index}].load", stated.load) for index, stated in enumerate(case.stated)]
    loads += [(f"own[{index}].load", own.load) for index, own in enumerate(case.own)]
    for where, load in loads:
        if load not in case.traffic.load:
            known = ", ".join(f"{known:g}" for known in case.traffic.load)
            yield Problem(where, f"got {load:g}: give a load of the case, {known}")
    for index, stated in enumerate(case.stated):
        yield from stated.quotation_problems(f"stated[{index}]")
        if stated.at_most and stated.within is None:
            yield Problem(f"stated[{index}].at_most", 'needs "within", the allowed relative excess')
    if case.planes is not None and not _allocations(case):
        yield Problem("planes", "has one plane: leave [planes] out, or give more planes")


CURVES_OF_QUANTITY: Mapping[str, tuple[str, ...]] = {
    "less": ("curve", "than"),
    "more": ("curve", "than"),
    "points": ("curve", "than"),
    "times": ("curve", "than"),
    "factor": ("curve",),
    "least": (),
}
"""The keys of the curves that a statement needs, by its quantity."""


def _statement_problems(statement: CurveStatement, place: str) -> Iterator[Problem]:
    yield from statement.quotation_problems(place)
    for key in CURVES_OF_QUANTITY[statement.of]:
        if not getattr(statement, key):
            yield Problem(f"{place}.{key}", f'is missing: of = "{statement.of}" needs it')


def _allocations(case: Case) -> tuple[str, ...]:
    """Return the allocations of a case with several planes."""
    return case.planes.allocations if case.planes is not None and len(plane_widths(case)) > 1 else ()


def _criteria_problems(study: NocStudy) -> Iterator[Problem]:
    criteria = study.criteria
    if criteria.flit_ratio is not None and study.flits is None:
        yield Problem("criteria.flit_ratio", "needs [flits]")
    if criteria.gap is not None and not any(case.has_optimum for case in study.case):
        yield Problem("criteria.gap", "needs a case with an optimum")
    required = {SEARCH, FOUR_PHASE}
    if criteria.closed is not None and not any(
        case.has_optimum and required <= set(_allocations(case)) for case in study.case
    ):
        message = f'needs a case with an optimum and planes.allocations "{FOUR_PHASE}" and "{SEARCH}"'
        yield Problem("criteria.closed", message)
