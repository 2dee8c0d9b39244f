"""What a ``*.study.toml`` of ``kind = "curves"`` says: curves of forwarded against offered load, and what was stated.

``[router.NAME]`` holds router documents, as router files say them. A ``[[figure]]`` draws curves, each a router
document with some values set otherwise (:mod:`routecast.router.variants`); beside them stand values
(``[[figure.stated]]``), orders (``[[figure.ordered]]``), shapes (``[[figure.shape]]``) and bottlenecks
(``[[figure.limited]]``) that a source states. A stated value may calibrate: then some costs are set so that it is met.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from routecast.quantity.fields import Duration, FrameRate
from routecast.quantity.file_model import FileModel
from routecast.study.document import Count, FrameSize, Name, Ratio

__all__ = [
    "Calibrates",
    "Curve",
    "CurveCriteria",
    "CurveRun",
    "CurveStudy",
    "Figure",
    "Limited",
    "Ordered",
    "Passing",
    "Shape",
    "Stated",
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


class Stated(FileModel):
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
    where: str = Field(default="", description="Where the source states it.")
    calibrates: Calibrates | None = Field(default=None, description="Costs that it calibrates.")


class Passing(FileModel):
    """``[[figure.passing]]``: what share of each flow a source states to pass."""

    curve: Title = Field(description="Name of the curve.")
    at: FrameRate = Field(description="Offered load of all flows together.")
    ratios: tuple[Ratio, ...] = Field(description="Forwarded over offered, for each flow.")
    where: str = Field(default="", description="Where the source states it.")


class Ordered(FileModel):
    """``[[figure.ordered]]``: curves in the order that a source states, the best first."""

    says: Title = Field(description="The statement in words.")
    curves: Annotated[tuple[Title, ...], Field(min_length=2)] = Field(description="Names, the best first.")
    least: FrameRate | None = Field(default=None, description="Least offered load at which it holds.")
    most: FrameRate | None = Field(default=None, description="Greatest offered load at which it holds.")
    tie: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        default=0.0, description="By how much a better curve may be below, relative: a tie."
    )
    where: str = Field(default="", description="Where the source states it.")


class Shape(FileModel):
    """``[[figure.shape]]``: what becomes of a curve beyond its peak."""

    curve: Title = Field(description="Name of the curve.")
    kind: Literal["flat", "falls"] = Field(description="Stays at its peak, or falls below it.")
    by: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        default=0.05, description="At most (flat) or at least (falls) so much below the peak, relative."
    )
    says: Title = Field(description="The statement in words.")
    where: str = Field(default="", description="Where the source states it.")


class Limited(FileModel):
    """``[[figure.limited]]``: the thread that a source names as the bottleneck at the highest load."""

    curve: Title = Field(description="Name of the curve.")
    thread: Title = Field(description="Name of the thread, or of a task unit without one.")
    says: Title = Field(description="The statement in words.")
    where: str = Field(default="", description="Where the source states it.")


class Figure(FileModel):
    """``[[figure]]``: forwarded against offered load."""

    name: Name = Field(description="Name of the figure; names its file.")
    title: Title = Field(description="The figure in words.")
    offered: Annotated[tuple[FrameRate, ...], Field(min_length=1)] = Field(
        description="Offered loads over all ports, ascending."
    )
    traffic: Traffic = Field(description="What is offered.")
    curve: Annotated[tuple[Curve, ...], Field(min_length=1)]
    stated: tuple[Stated, ...] = ()
    passing: tuple[Passing, ...] = ()
    ordered: tuple[Ordered, ...] = ()
    shape: tuple[Shape, ...] = ()
    limited: tuple[Limited, ...] = ()


class CurveCriteria(FileModel):
    """``[criteria]``: bounds that are not a stated value's own."""

    passing_error: Ratio | None = Field(default=None, description="Mean absolute error of the shares that pass, 0..1.")


class CurveStudy(FileModel):
    """A whole ``*.study.toml`` of ``kind = "curves"``."""

    kind: Literal["curves"]
    name: Name = Field(description="Name of the study and of its folder of results.")
    title: str = Field(description="Title of the report.")
    question: str = Field(default="", description="What the study answers, as a question.")
    source: str = Field(default="", description="Where the stated values come from.")
    run: CurveRun
    router: Annotated[dict[Name, dict[str, Any]], Field(min_length=1)] = Field(
        description="Router documents by name, as router files say them."
    )
    figure: Annotated[tuple[Figure, ...], Field(min_length=1)]
    criteria: CurveCriteria = CurveCriteria()
