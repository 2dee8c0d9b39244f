"""What a ``*.study.toml`` of ``kind = "curves"`` says: curves of forwarded against offered load, and what was stated.

``[router.NAME]`` holds router documents, as router files say them. A ``[[figure]]`` draws curves, each a router
document with some values set otherwise (:mod:`routecast.router.variants`); beside them stand values
(``[[figure.stated]]``), orders (``[[figure.ordered]]``), shapes (``[[figure.shape]]``) and bottlenecks
(``[[figure.limited]]``) that a source states. A stated value may calibrate: then some costs are set so that it is
met, and with ``[left_out]`` each stated rate is predicted by the others. ``[[figure.patterns]]`` asks a curve for
other patterns of flows.
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
from routecast.study.document import Count, FrameSize, Name, Quoted, Ratio, StudyDocument, problems_at, taken_names
from routecast.study.knew import Group, group_of

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
    """``[run]``: how the simulator is asked."""

    duration: Duration = Field(description="Simulated time of a trial.")
    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = Field(default=1, description="Seed.")
    replications: Annotated[int, Field(ge=1, le=64, strict=True)] = Field(
        default=1, description="Independent replications of each trial."
    )


class Traffic(FileModel):
    """``traffic``: what is offered; flow ``i`` comes in by the ``i``-th port of ``ingress``, in turn."""

    frame: FrameSize = Field(description="Frame size.")
    ingress: Annotated[tuple[Number, ...], Field(min_length=1)] = Field(
        default=(0,), description="Numbers of the ports that frames come in by."
    )
    egress: Annotated[tuple[Number, ...], Field(min_length=1)] = Field(
        default=(1,), description="Numbers of the ports that they leave by, in the same order."
    )
    flows: Count = Field(default=64, description="Flows, spread evenly by their hashes.")
    shares: tuple[Ratio, ...] = Field(
        default=(), description="Shares of the flows, one for each, instead of equal ones."
    )
    arrivals: Literal["cbr", "poisson"] = Field(default="cbr", description="Arrival process of each port.")


class Curve(FileModel):
    """``[[figure.curve]]``: a router document with some values set otherwise."""

    name: Title = Field(description="Name of the curve.")
    router: Name = Field(description="Name of the router document.")
    set: dict[str, Any] = Field(default={}, description="Values by their paths in the document.")
    traffic: Traffic | None = Field(default=None, description="Traffic, where it is not the figure's.")


class Calibrates(FileModel):
    """``calibrates``: costs that are set so that a stated value is met."""

    set: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="Paths in the router documents that get the same value."
    )
    between: tuple[Duration, Duration] = Field(description="Least and greatest value that is tried.")
    routers: tuple[Name, ...] = Field(default=(), description="Router documents that it is set in; none: all.")


class StatedRate(Quoted):
    """``[[figure.stated]]``: a rate that a source states of a curve."""

    curve: Title = Field(description="Name of the curve.")
    value: FrameRate = Field(description="Forwarded rate.")
    at: Literal["peak", "highest"] | FrameRate = Field(
        default="peak", description='Offered load: "peak", "highest", or a rate.'
    )
    within: Ratio | None = Field(default=None, description="Relative error that is allowed; none: only shown.")
    side: Literal["about", "at_least", "at_most"] = Field(
        default="about", description="Whether the value is met, or a bound."
    )
    calibrates: Calibrates | None = Field(default=None, description="Costs that it calibrates.")
    calibrated: str = Field(
        default="", description='Costs of a file that were calibrated on it before: "balance, in vmware-esxi-4.0".'
    )

    @property
    def is_calibrating(self) -> bool:
        """Whether a cost is set so that the value is met, here or in a file that the router is built from."""
        return self.calibrates is not None or bool(self.calibrated)

    @property
    def costs(self) -> tuple[str, ...]:
        """The costs that were set so that the value is met."""
        return self.calibrates.set if self.calibrates else (self.calibrated,) if self.calibrated else ()


class Passing(Quoted):
    """``[[figure.passing]]``: what share of each flow a source states to pass."""

    curve: Title = Field(description="Name of the curve.")
    at: FrameRate = Field(description="Offered load of all flows together.")
    ratios: tuple[Ratio, ...] = Field(description="Forwarded over offered, for each flow.")


class Ordered(Quoted):
    """``[[figure.ordered]]``: curves in the order that a source states, the best first."""

    says: Title = Field(description="The statement in words.")
    curves: Annotated[tuple[Title, ...], Field(min_length=2)] = Field(description="Names, the best first.")
    least: FrameRate | None = Field(default=None, description="Least offered load at which it holds.")
    most: FrameRate | None = Field(default=None, description="Greatest offered load at which it holds.")
    tie: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.0, description="Relative lag of a better curve that still counts as a tie."
    )
    by: FrameRate | None = Field(
        default=None, description="Lead of each curve over the next, where the source states it."
    )


class ShapeTable(Quoted):
    """``[[figure.shape]]``: what becomes of a curve beyond its peak."""

    curve: Title = Field(description="Name of the curve.")
    kind: Literal["flat", "falls"] = Field(description="Stays at its peak, or falls below it.")
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
    """``[[figure.patterns.pattern]]``: flows that are offered instead of the curve's own."""

    name: Title = Field(description="The flows in words.")
    flows: Count = Field(default=1, description="Equal flows, spread evenly by their hashes.")
    shares: tuple[Ratio, ...] = Field(default=(), description="Shares of the flows instead of equal ones.")
    arrivals: Literal["cbr", "poisson"] = Field(default="cbr", description="Arrival process of each port.")


class Patterns(FileModel):
    """``[[figure.patterns]]``: what a curve forwards at a load under other patterns of flows."""

    curve: Title = Field(description="Name of the curve.")
    at: FrameRate = Field(description="Offered load of all flows together.")
    pattern: Annotated[tuple[Pattern, ...], Field(min_length=1)]
    says: Title = Field(description="Finding from the patterns, for the table and the page.")


class LeftOut(FileModel):
    """``[left_out]``: each stated rate is left out in turn, and predicted with costs that the others set."""

    values: Annotated[int, Field(ge=3, le=33, strict=True)] = Field(
        default=7, description="Values of each calibrated cost that are tried, over its range."
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
        """Return the curve of that name."""
        return next(point for point in self.curve if point.name == curve)

    @property
    def offered_pps(self) -> tuple[float, ...]:
        """The offered loads in frames/s."""
        frames = FrameMix.fixed(self.traffic.frame)
        return tuple(rate.pps(frames) for rate in self.offered)


class CurveCriteria(FileModel):
    """``[criteria]``: bounds that are not a stated value's own."""

    passing_error: Ratio | None = Field(default=None, description="Mean absolute error of the shares that pass, 0..1.")


class CurveStudy(StudyDocument):
    """A whole ``*.study.toml`` of ``kind = "curves"``."""

    kind: Literal["curves"]
    source: str = Field(default="", description="Source of the stated values.")
    run: CurveRun
    router: Annotated[dict[Name, dict[str, Any]], Field(min_length=1)] = Field(
        description="Router documents by name, as router files say them."
    )
    figure: Annotated[tuple[FigureTable, ...], Field(min_length=1)]
    left_out: LeftOut | None = Field(default=None, description="Whether rates are left out in turn, and how.")
    criteria: CurveCriteria = CurveCriteria()

    def groups(self) -> Sequence[Group]:
        """Return what the study compares."""
        groups: list[Group] = []
        for figure in self.figure:
            calibrating = [stated for stated in figure.stated if stated.is_calibrating]
            paths = dict.fromkeys(path for stated in calibrating for path in stated.costs)
            counted = [(len(calibrating), "rate")]
            groups += group_of(f"{figure.name}: rates that calibrate", *counted, calibrates=" and ".join(paths))
            rates = (len(figure.stated) - len(calibrating), "rate")
            groups += group_of(f"{figure.name}: rates", rates)
            groups += group_of(
                f"{figure.name}: shares that pass", (sum(len(each.ratios) for each in figure.passing), "share")
            )
            words = len(figure.ordered) + len(figure.shape) + len(figure.limited)
            groups += group_of(f"{figure.name}: words", (words, "statement"))
        return groups

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions between parts of the study, with their places."""
        problems = [*taken_names("figure", self.figure, "names its file")]
        for number, figure in enumerate(self.figure):
            place = f"figure[{number}]"
            if list(figure.offered_pps) != sorted(set(figure.offered_pps)):
                problems.append(Problem(f"{place}.offered", "are not ascending: write the loads in order"))
            problems += _curves(self, figure, place, folder)
            problems += _of_curves(figure, place)
        if self.left_out and not any(stated.calibrates for figure in self.figure for stated in figure.stated):
            what = "needs a stated rate with `calibrates`: its cost is set anew by the others"
            problems.append(Problem("left_out", what))
        return list(dict.fromkeys(problems))  # every curve of a router repeats the router's own faults


def _curves(study: CurveStudy, figure: FigureTable, place: str, folder: Path) -> list[Problem]:
    problems = [*taken_names(f"{place}.curve", figure.curve)]
    for number, curve in enumerate(figure.curve):
        at = f"{place}.curve[{number}]"
        if curve.router not in study.router:
            what = f"{curve.router!r} is no [router.…]; {did_you_mean(curve.router, study.router)}"
            problems.append(Problem(f"{at}.router", what))
            continue
        traffic = curve.traffic or figure.traffic
        if len(traffic.ingress) != len(traffic.egress):
            what = f"has {len(traffic.egress)} ports for {len(traffic.ingress)} of ingress: one for each"
            problems.append(Problem(f"{at}.traffic.egress", what))
        problems += _built(study, figure, curve, at, folder)
    return problems


def _built(study: CurveStudy, figure: FigureTable, curve: Curve, at: str, folder: Path) -> list[Problem]:
    """Return why a curve's router cannot be built, or not carry the curve's load: each fault where it is written."""
    from routecast.study.curves.simulate import document_of, load_of

    def build(document: Mapping[str, Any], subject: str) -> RouterModel:
        return build_router(document, subject=subject, folder=folder)[0]

    try:
        document = document_of(study, curve, {})
    except RoutecastError as problem:
        return problems_at(f"{at}.set", problem)
    router = f"router.{curve.router}"
    try:
        model = build(document, f'curve "{curve.name}"')
    except RoutecastError as problem:
        own: set[str] = set()  # problems of the router without what the curve sets
        try:
            build(study.router[curve.router], curve.router)
        except RoutecastError as alone:
            own = {str(fault) for fault in problems_at(router, alone)}
        return [
            fault if str(fault) in own else Problem(f"{at}: {fault.place}", fault.message)
            for fault in problems_at(router, problem)
        ]
    try:
        check_load(model, load_of(figure, curve, figure.offered_pps[0]))
    except RoutecastError as problem:
        return problems_at(f"{at}.traffic" if curve.traffic else f"{at.partition('.')[0]}.traffic", problem)
    return []


def _of_curves(figure: FigureTable, place: str) -> Iterator[Problem]:
    """Yield the problems of what a figure states of its curves."""
    names = [curve.name for curve in figure.curve]
    flows = {curve.name: len((curve.traffic or figure.traffic).shares) for curve in figure.curve}
    for kind in ("stated", "passing", "ordered", "shape", "limited"):
        for number, quoted in enumerate(getattr(figure, kind)):
            yield from quoted.quotation_problems(f"{place}.{kind}[{number}]")
    for kind in ("stated", "passing", "ordered", "shape", "patterns", "limited"):
        for number, part in enumerate(getattr(figure, kind)):
            at = f"{place}.{kind}[{number}]"
            several = isinstance(part, Ordered)
            curves = {f"curves[{n}]": name for n, name in enumerate(part.curves)} if several else {"curve": part.curve}
            for key, name in curves.items():
                if name not in names:
                    what = f"{name!r} is no curve of this figure; {did_you_mean(name, names)}"
                    yield Problem(f"{at}.{key}", what)
            if isinstance(part, StatedRate) and (how := part.calibrates):
                if part.calibrated:
                    what = "is said already by `calibrates`: a value calibrates here, or before in a file"
                    yield Problem(f"{at}.calibrated", what)
                if how.between[0] >= how.between[1]:
                    yield Problem(f"{at}.calibrates.between", "is no range: the least value comes first")
            elif isinstance(part, Passing) and len(part.ratios) != flows.get(part.curve, len(part.ratios)):
                what = f"has {len(part.ratios)} entries for {flows[part.curve]} flows with shares"
                yield Problem(f"{at}.ratios", what)
