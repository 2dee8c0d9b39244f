"""What a ``*.study.toml`` of ``kind = "noc"`` says: traffic patterns, what is compared, and what was stated of it.

A ``[[case]]`` says what a ``*.noc.toml`` says.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from routecast.noc.file.document import NocFile
from routecast.quantity.fields import Count, Number
from routecast.quantity.file_model import FileModel
from routecast.study.document import Name

__all__ = ["Case", "Flits", "NocCriteria", "NocStudy", "Stated"]

Load = Annotated[Number, Field(gt=0.0)]


class Stated(FileModel):
    """``[[case.stated]]``: a power that a source states, relative to no scaling at load 1."""

    curve: str = Field(description="Routing, allocation, or optimum")
    load: Load = Field(default=1.0, description="Normalised load")
    relative_power: Annotated[Number, Field(gt=0.0)] = Field(description="Power / power without scaling at load 1")
    where: str = Field(description="Page, figure or sentence")
    within: Annotated[Number, Field(ge=0.0)] | None = Field(
        default=None, description="Criterion: largest relative error allowed, or none"
    )
    at_most: bool = Field(default=False, description="The criterion asks for no more power than this, not for the same")


class Case(NocFile):
    """``[[case]]``: one traffic, one figure; grid, traffic, routing, power, planes, optimum as in a ``*.noc.toml``."""

    name: Name = Field(description="Name of the case and of its figure")
    title: str = Field(description="Title of the figure")
    matrices: Annotated[Count, Field(ge=1, le=1000)] = Field(
        default=1, description="Random matrices to average over; their seeds follow that of the traffic"
    )
    has_optimum: bool = Field(default=True, description="Whether the least power is proven beside the curves")
    stated: tuple[Stated, ...] = ()
    maps: tuple[str, ...] = Field(default=(), description="Curves whose link loads are drawn at the highest load")


class Flits(FileModel):
    """``[flits]``: power at the flit level against the flow level (table 6.1)."""

    replications: Annotated[Count, Field(ge=2, le=100)] = Field(default=5, description="Independent runs")
    seed: int = 1


class NocCriteria(FileModel):
    """``[criteria]``: what must be reached, as parts of 1."""

    flit_ratio: Annotated[Number, Field(gt=0.0)] | None = Field(
        default=None, description="Largest error of a ratio of [flits] against alpha squared"
    )
    gap: Annotated[Number, Field(gt=0.0)] | None = Field(default=None, description="Largest gap of the optimum")
    closed: Annotated[Number, Field(ge=0.0, le=1.0)] | None = Field(
        default=None,
        description="Least part of the distance from 2P-4PHASE to the bound that our allocation closes at load 1",
    )


class NocStudy(FileModel):
    """A whole ``*.study.toml`` of ``kind = "noc"``."""

    kind: Literal["noc"]
    name: Name = Field(description="Name of the study and of its folder of results.")
    title: str = Field(description="Title of the report.")
    question: str = Field(default="", description="What the study answers, as a question.")
    source: str = Field(default="", description="Where the stated figures come from.")
    case: Annotated[tuple[Case, ...], Field(min_length=1)]
    flits: Flits | None = None
    criteria: NocCriteria = NocCriteria()
