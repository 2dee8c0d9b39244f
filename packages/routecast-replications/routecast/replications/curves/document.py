"""A ``*.study.toml`` of ``kind = "curves"``: curves of forwarded against offered load, beside a source's statements.

``[router.NAME]`` is a router document, as in a router file. A ``[[figure]]`` has curves, each a router document with
some values changed (:mod:`routecast.router.variants`), and the rates (``[[figure.stated]]``), orders
(``[[figure.ordered]]``), shapes (``[[figure.shape]]``) and bottlenecks (``[[figure.limited]]``) that a source states. A
stated rate may calibrate costs of the router. With ``[left_out]`` each stated rate is found from the others.
``[[figure.patterns]]`` offers other patterns of flows to a curve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from routecast.errors import Problem, RoutecastError
from routecast.load.fields import LoadRate
from routecast.load.frames import FrameMix
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Duration, FrameRate
from routecast.quantity.file_model import FileModel
from routecast.router.check_load import check_load
from routecast.router.files import build_router
from routecast.router.model import RouterModel
from routecast.study.document import (
    Count,
    FrameSize,
    Name,
    Quoted,
    Ratio,
    Seed,
    StudyDocument,
    problems_at,
    repeated_name_problems,
)
from routecast.study.prior_knowledge import Group, counted_group

__all__ = [
    "Curve",
    "CurveRun",
    "CurveStudy",
    "FigureTable",
    "LeftOut",
    "Limited",
    "Ordered",
    "Passing",
    "Patterns",
    "ShapeTable",
    "StatedRate",
    "Traffic",
]


Number = Annotated[int, Field(ge=0, le=1023, strict=True)]
Title = Annotated[str, Field(min_length=1)]


class CurveRun(FileModel):
    """``[run]``: length, seed and replications of the simulated trials."""

    duration: Duration = Field(description="Simulated time of a trial.")
    seed: Seed = Field(default=1, description="Seed.")
    replications: Annotated[int, Field(ge=1, le=64, strict=True)] = Field(
        default=1, description="Independent replications of each trial."
    )


class Traffic(FileModel):
    """``traffic``: the offered load; flows enter by the ports of ``ingress`` in turn."""

    frame: FrameSize = Field(description="Frame size.")
    ingress: Annotated[tuple[Number, ...], Field(min_length=1)] = Field(
        default=(0,), description="Numbers of the ports by which frames enter."
    )
    egress: Annotated[tuple[Number, ...], Field(min_length=1)] = Field(
        default=(1,), description="Numbers of the ports by which they leave, in the same order."
    )
    flows: Count = Field(default=64, description="Flows, spread evenly by their hashes.")
    shares: tuple[Ratio, ...] = Field(
        default=(), description="Shares of the flows, one for each, instead of equal ones."
    )
    arrivals: Literal["cbr", "poisson"] = Field(default="cbr", description="Arrival process of each port.")


class Curve(FileModel):
    """``[[figure.curve]]``: a router document with some values changed."""

    name: Title = Field(description="Name of the curve.")
    router: Name = Field(description="Name of the router document.")
    set: dict[str, Any] = Field(default={}, description="Changed values, by their paths in the document.")
    traffic: Traffic | None = Field(default=None, description="Traffic, if it differs from the figure's.")


class Calibrates(FileModel):
    """``calibrates``: costs that are set so that the simulated rate meets a stated rate."""

    set: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="Paths in the router documents that get the same value."
    )
    between: tuple[Duration, Duration] = Field(description="Least and greatest cost that is tried.")
    routers: tuple[Name, ...] = Field(default=(), description="Router documents in which it is set; empty: all.")


class StatedRate(Quoted):
    """``[[figure.stated]]``: a rate that a source states for a curve."""

    curve: Title = Field(description="Name of the curve.")
    value: FrameRate = Field(description="Forwarded rate.")
    at: Literal["peak", "highest"] | FrameRate = Field(
        default="peak", description='Offered load: "peak", "highest", or a rate.'
    )
    within: Ratio | None = Field(default=None, description="Allowed relative error; without it the rate is only shown.")
    side: Literal["about", "at_least", "at_most"] = Field(
        default="about", description="Whether the source states a value or a bound."
    )
    calibrates: Calibrates | None = Field(default=None, description="Costs that the rate calibrates.")
    calibrated: str = Field(
        default="",
        description='Costs of a shipped file that were calibrated on this rate: "balance, in vmware-esxi-4.0".',
    )

    @property
    def is_calibrating(self) -> bool:
        """Whether the rate calibrates a cost, here or in a file from which the router is built."""
        return self.calibrates is not None or bool(self.calibrated)

    @property
    def costs(self) -> tuple[str, ...]:
        """The costs that the rate calibrates."""
        return self.calibrates.set if self.calibrates else (self.calibrated,) if self.calibrated else ()


class Passing(Quoted):
    """``[[figure.passing]]``: the share of each flow that passes, as a source states it."""

    curve: Title = Field(description="Name of the curve.")
    at: FrameRate = Field(description="Offered load of all flows together.")
    ratios: tuple[Ratio, ...] = Field(description="Forwarded over offered, for each flow.")


class Ordered(Quoted):
    """``[[figure.ordered]]``: curves in the order that a source states, the fastest first."""

    says: Title = Field(description="The statement in words.")
    curves: Annotated[tuple[Title, ...], Field(min_length=2)] = Field(description="Names of curves, the fastest first.")
    least: FrameRate | None = Field(default=None, description="Least offered load at which it holds.")
    most: FrameRate | None = Field(default=None, description="Greatest offered load at which it holds.")
    tie: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.0, description="Relative lag of a faster curve that still counts as a tie."
    )
    by: FrameRate | None = Field(
        default=None, description="Lead of each curve over the next, where the source states it."
    )


class ShapeTable(Quoted):
    """``[[figure.shape]]``: the shape of a curve beyond its peak."""

    curve: Title = Field(description="Name of the curve.")
    kind: Literal["flat", "falls"] = Field(description="Whether the curve stays at its peak or falls.")
    by: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.05, description="Relative distance below the peak: at most (flat), at least (falls)."
    )
    says: Title = Field(description="The statement in words.")


class Limited(Quoted):
    """``[[figure.limited]]``: the thread that a source names as the bottleneck at the highest load."""

    curve: Title = Field(description="Name of the curve.")
    thread: Title = Field(description="Name of the thread, or of a task unit without one.")
    says: Title = Field(description="The statement in words.")


class Pattern(FileModel):
    """``[[figure.patterns.pattern]]``: flows that replace the curve's own."""

    name: Title = Field(description="The flows in words.")
    flows: Count = Field(default=1, description="Equal flows, spread evenly by their hashes.")
    shares: tuple[Ratio, ...] = Field(default=(), description="Shares of the flows instead of equal ones.")
    arrivals: Literal["cbr", "poisson"] = Field(default="cbr", description="Arrival process of each port.")


class Patterns(FileModel):
    """``[[figure.patterns]]``: other patterns of flows that are offered to a curve at a load."""

    curve: Title = Field(description="Name of the curve.")
    at: FrameRate = Field(description="Offered load of all flows together.")
    pattern: Annotated[tuple[Pattern, ...], Field(min_length=1)]
    says: Title = Field(description="Finding from the patterns, for the table and the page.")


class LeftOut(FileModel):
    """``[left_out]``: each stated rate, in turn, is found with costs that the other rates set."""

    values: Annotated[int, Field(ge=3, le=33, strict=True)] = Field(
        default=7, description="Number of values of each calibrated cost that are tried over its range."
    )


class FigureTable(FileModel):
    """``[[figure]]``: forwarded against offered load."""

    name: Name = Field(description="Name of the figure; names its file.")
    title: Title = Field(description="The figure in words.")
    offered: Annotated[tuple[LoadRate, ...], Field(min_length=1)] = Field(
        description="Offered loads over all ports, ascending; bit rates are of the frames of the figure's traffic."
    )
    traffic: Traffic = Field(description="Offered traffic.")
    curve: Annotated[tuple[Curve, ...], Field(min_length=1)]
    stated: tuple[StatedRate, ...] = ()
    passing: tuple[Passing, ...] = ()
    ordered: tuple[Ordered, ...] = ()
    shape: tuple[ShapeTable, ...] = ()
    limited: tuple[Limited, ...] = ()
    patterns: tuple[Patterns, ...] = ()

    def named(self, curve: str) -> Curve:
        """Return the curve of a name."""
        return next(candidate for candidate in self.curve if candidate.name == curve)

    @property
    def offered_pps(self) -> tuple[float, ...]:
        """The offered loads in frames/s."""
        frames = FrameMix.fixed(self.traffic.frame)
        return tuple(rate.pps(frames) for rate in self.offered)


class CurveCriteria(FileModel):
    """``[criteria]``: bounds beside those of the stated rates."""

    passing_error: Ratio | None = Field(default=None, description="Mean absolute error of the shares that pass, 0..1.")


class CurveStudy(StudyDocument):
    """A whole ``*.study.toml`` of ``kind = "curves"``."""

    kind: Literal["curves"]
    source: str = Field(default="", description="Source of the stated values.")
    run: CurveRun
    router: Annotated[dict[Name, dict[str, Any]], Field(min_length=1)] = Field(
        description="Router documents by name, as in router files."
    )
    figure: Annotated[tuple[FigureTable, ...], Field(min_length=1)]
    left_out: LeftOut | None = Field(default=None, description="Each stated rate as it is found from the others.")
    criteria: CurveCriteria = CurveCriteria()

    def groups(self) -> Sequence[Group]:
        """Return the groups of values that the study compares."""
        groups: list[Group] = []
        for figure in self.figure:
            calibrating = [stated for stated in figure.stated if stated.is_calibrating]
            paths = dict.fromkeys(path for stated in calibrating for path in stated.costs)
            counted = [(len(calibrating), "rate")]
            groups += counted_group(f"{figure.name}: rates that calibrate", *counted, calibrates=" and ".join(paths))
            rates = (len(figure.stated) - len(calibrating), "rate")
            groups += counted_group(f"{figure.name}: rates", rates)
            groups += counted_group(
                f"{figure.name}: shares that pass", (sum(len(passing.ratios) for passing in figure.passing), "share")
            )
            statements = len(figure.ordered) + len(figure.shape) + len(figure.limited)
            groups += counted_group(f"{figure.name}: words", (statements, "statement"))
        return groups

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions between parts of the study, with their places."""
        problems = [*repeated_name_problems("figure", self.figure, "names its file")]
        for number, figure in enumerate(self.figure):
            place = f"figure[{number}]"
            if list(figure.offered_pps) != sorted(set(figure.offered_pps)):
                problems.append(Problem(f"{place}.offered", "are not ascending: write the loads in order"))
            problems += _curve_problems(self, figure, place, folder)
            problems += _statement_problems(figure, place)
        if self.left_out and not any(stated.calibrates for figure in self.figure for stated in figure.stated):
            message = "needs a stated rate with `calibrates`, whose cost the other rates set"
            problems.append(Problem("left_out", message))
        return list(dict.fromkeys(problems))  # every curve of a router repeats the router's own faults


def _curve_problems(study: CurveStudy, figure: FigureTable, place: str, folder: Path) -> list[Problem]:
    problems = [*repeated_name_problems(f"{place}.curve", figure.curve)]
    for number, curve in enumerate(figure.curve):
        at = f"{place}.curve[{number}]"
        if curve.router not in study.router:
            message = f"{curve.router!r} is no [router.…]; {did_you_mean(curve.router, study.router)}"
            problems.append(Problem(f"{at}.router", message))
            continue
        traffic = curve.traffic or figure.traffic
        if len(traffic.ingress) != len(traffic.egress):
            message = f"has {len(traffic.egress)} ports for {len(traffic.ingress)} of ingress: one for each"
            problems.append(Problem(f"{at}.traffic.egress", message))
        problems += _router_problems(study, figure, curve, at, folder)
    return problems


def _router_problems(study: CurveStudy, figure: FigureTable, curve: Curve, at: str, folder: Path) -> list[Problem]:
    """Return the reasons that a curve's router cannot be built or carry its load, each with its place in the file."""
    from routecast.replications.curves.simulate import document_of, load_of

    def build(document: Mapping[str, Any], subject: str) -> RouterModel:
        return build_router(document, subject=subject, folder=folder)[0]

    def router_faults() -> set[str]:
        """Return the problems of the router without the values of the curve."""
        try:
            build(study.router[curve.router], curve.router)
        except RoutecastError as problem:
            return {str(fault) for fault in problems_at(router, problem)}
        return set()

    router = f"router.{curve.router}"
    try:
        document = document_of(study, curve, {})
    except RoutecastError as problem:
        own = router_faults()
        pairs = zip(problems_at(router, problem), problems_at(f"{at}.set", problem), strict=True)
        return [fault if str(fault) in own else of_curve for fault, of_curve in pairs]
    try:
        model = build(document, f'curve "{curve.name}"')
    except RoutecastError as problem:
        own = router_faults()
        return [
            fault if str(fault) in own else Problem(f"{at}: {fault.place}", fault.message)
            for fault in problems_at(router, problem)
        ]
    try:
        check_load(model, load_of(figure, curve, figure.offered_pps[0]))
    except RoutecastError as problem:
        return problems_at(f"{at}.traffic" if curve.traffic else f"{at.partition('.')[0]}.traffic", problem)
    return []


def _statement_problems(figure: FigureTable, place: str) -> Iterator[Problem]:
    """Yield the problems of the statements on a figure's curves."""
    names = [curve.name for curve in figure.curve]
    flows = {curve.name: len((curve.traffic or figure.traffic).shares) for curve in figure.curve}
    for kind in ("stated", "passing", "ordered", "shape", "limited"):
        for number, quoted in enumerate(getattr(figure, kind)):
            yield from quoted.quotation_problems(f"{place}.{kind}[{number}]")
    for kind in ("stated", "passing", "ordered", "shape", "patterns", "limited"):
        for number, part in enumerate(getattr(figure, kind)):
            at = f"{place}.{kind}[{number}]"
            is_order = isinstance(part, Ordered)
            curves = {f"curves[{n}]": name for n, name in enumerate(part.curves)} if is_order else {"curve": part.curve}
            for key, name in curves.items():
                if name not in names:
                    message = f"{name!r} is no curve of this figure; {did_you_mean(name, names)}"
                    yield Problem(f"{at}.{key}", message)
            if isinstance(part, StatedRate) and (calibrates := part.calibrates):
                if part.calibrated:
                    message = "contradicts `calibrates`: a rate calibrates a cost here or in a file"
                    yield Problem(f"{at}.calibrated", message)
                if calibrates.between[0] >= calibrates.between[1]:
                    yield Problem(f"{at}.calibrates.between", "is no range: the least value comes first")
            elif isinstance(part, Passing) and len(part.ratios) != flows.get(part.curve, len(part.ratios)):
                message = f"has {len(part.ratios)} entries for {flows[part.curve]} flows with shares"
                yield Problem(f"{at}.ratios", message)
