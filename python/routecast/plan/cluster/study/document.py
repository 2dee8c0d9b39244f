"""A ``*.study.toml`` of ``kind = "cluster"``: a cluster file's tables, what to vary, and criteria.

``[traffic]``, ``[[group]]``, ``[plan]`` and ``[saving]`` are those of a ``*.cluster.toml``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from routecast.errors import Problem
from routecast.plan.cluster.reading import ClusterFile
from routecast.quantity.fields import Duration, Number, Span
from routecast.quantity.file_model import FileModel
from routecast.study.arithmetic import Arithmetic, arithmetic_problems
from routecast.study.document import InWords, StudyDocument
from routecast.study.knew import STATEMENTS, Group, group_of

__all__ = ["ClusterCriteria", "ClusterStudy", "Mismatch", "Saying", "Sweep"]

Bound = Annotated[Number, Field(ge=0.0, le=100.0)]


class Mismatch(FileModel):
    """``[mismatch]``: fleets designed for one sampling of the traffic and run at another (Li 2012, fig. 8.6)."""

    steps: Annotated[tuple[Duration, ...], Field(min_length=2, max_length=6)] = Field(
        default=(300.0, 900.0, 1800.0, 3600.0), description="Samplings to design for and to run at, finest first"
    )


class Sweep(FileModel):
    """``[sweep]``: what is varied for the curves."""

    budgets: Annotated[tuple[Number, ...], Field(max_length=40)] = Field(
        default=(), description="Budgets of the curve of energy over price"
    )
    payback: Annotated[tuple[Span, ...], Field(max_length=20)] = Field(
        default=(), description="Paybacks of the curve of energy over switchings"
    )


class ClusterCriteria(FileModel):
    """``[criteria]``: what must be reached, as parts of 1."""

    above_bound: Bound | None = Field(
        default=None, description="Energy above the bound of the goal program at the largest of the budgets"
    )
    above_others: Bound | None = Field(
        default=None, description="Energy of the goal program above Designs I to IV, each at that design's own price"
    )
    online_energy: Bound | None = Field(
        default=None,
        description="Energy on-line above off-line over the trace, most of the fleets from the plan's budget on",
    )
    online_switchings: Bound | None = Field(
        default=None, description="Switchings on-line relative to off-line, most of the same fleets"
    )


DesignName = Literal["Design-I", "Design-II", "Design-III", "Design-IV"]


class Saying(InWords):
    """``[[statement]]``: what a source says in words of designs, and which quantity of ours stands beside it."""

    of: Literal[
        "above_bound",
        "below",
        "tightest_like",
        "loosest_saves",
        "plan_saves",
        "cheapest",
        "loosest_price",
        "peak_saving",
        "mismatch",
    ] = Field(
        description='Beside it stands: "above_bound": daily energy of design above the bound; "below": that of design '
        'below than; "tightest_like": the goal program at the least budget, and Designs I and III; "loosest_saves", '
        '"plan_saves": what it saves at the greatest budget, or at the plan\'s, against than or all four designs; '
        '"cheapest": whether design costs least; "loosest_price": price at the greatest budget over the others\'; '
        '"peak_saving": against machines for the peak that stay on; "mismatch": a design for the coarsest sampling, '
        "run at the finest."
    )
    design: DesignName | None = Field(default=None, description="Design-I to Design-IV")
    than: DesignName | None = Field(default=None, description="Design-I to Design-IV, compared with")


class ClusterStudy(StudyDocument, ClusterFile):
    """A whole ``*.study.toml`` of ``kind = "cluster"``."""

    kind: Literal["cluster"]
    mismatch: Mismatch = Mismatch()
    sweep: Sweep = Sweep()
    criteria: ClusterCriteria = ClusterCriteria()
    statement: tuple[Saying, ...] = Field(default=(), description="Statements of a source on its designs.")
    arithmetic: tuple[Arithmetic, ...] = Field(default=(), description="Calculations of the source, done again.")

    def groups(self) -> Sequence[Group]:
        """Return what the study compares."""
        return [
            *group_of(STATEMENTS, (len(self.statement), "statement")),
            Group(name="on-line against off-line", values="energy and switchings"),
        ]

    def problems(self, folder: Path) -> list[Problem]:
        """Return the problems of calculations and statements."""
        problems = [*super().problems(folder), *arithmetic_problems(self.arithmetic)]
        for number, statement in enumerate(self.statement):
            place = f"statement[{number}]"
            problems += [*statement.quotation_problems(place), *_missing(statement, place)]
        return problems


NEEDS: Mapping[str, tuple[str, ...]] = {
    "above_bound": ("design",),
    "below": ("design", "than"),
    "plan_saves": ("than",),
    "cheapest": ("design",),
}
"""The designs that a statement must name, by its quantity."""


def _missing(statement: Saying, place: str) -> Iterator[Problem]:
    for key in NEEDS.get(statement.of, ()):
        if getattr(statement, key) is None:
            yield Problem(f"{place}.{key}", f'is missing: "{statement.of}" is of this design')
