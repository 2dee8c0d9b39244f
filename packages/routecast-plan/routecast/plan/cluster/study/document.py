"""Study files of ``kind = "cluster"``: the tables of a cluster file, what the study varies, and criteria.

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
from routecast.study.document import SourceStatement, StudyDocument
from routecast.study.prior_knowledge import STATEMENTS, Group, counted_group

__all__ = ["ClusterCriteria", "ClusterStudy", "DesignStatement", "Mismatch", "Sweep"]

Bound = Annotated[Number, Field(ge=0.0, le=100.0)]


class Mismatch(FileModel):
    """``[mismatch]``: fleets designed for a sampling interval of the traffic and run at another (Li 2012, fig. 8.6)."""

    steps: Annotated[tuple[Duration, ...], Field(min_length=2, max_length=6)] = Field(
        default=(300.0, 900.0, 1800.0, 3600.0),
        description="Sampling intervals of the designs and of the runs, finest first",
    )


class Sweep(FileModel):
    """``[sweep]``: budgets and paybacks of the curves."""

    budgets: Annotated[tuple[Number, ...], Field(max_length=40)] = Field(
        default=(), description="Budgets for the curve of energy over price"
    )
    payback: Annotated[tuple[Span, ...], Field(max_length=20)] = Field(
        default=(), description="Paybacks for the curve of energy over switchings"
    )


class ClusterCriteria(FileModel):
    """``[criteria]``: upper limits of the results, as parts of 1."""

    above_bound: Bound | None = Field(
        default=None, description="Energy of the goal program at the largest budget, above the bound"
    )
    above_others: Bound | None = Field(
        default=None,
        description="Energy of the goal program above each of Designs I to IV, at the price of that design",
    )
    online_energy: Bound | None = Field(
        default=None,
        description="Energy on-line above off-line over the trace, the most of the fleets from the plan's budget on",
    )
    online_switchings: Bound | None = Field(
        default=None, description="Switchings on-line relative to off-line, the most of the same fleets"
    )


DesignName = Literal["Design-I", "Design-II", "Design-III", "Design-IV"]


class DesignStatement(SourceStatement):
    """``[[statement]]``: a statement of a source on designs, and the quantity of the study to compare with."""

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
        description='Quantity to compare with. "above_bound": daily energy of design above the bound; "below": daily '
        'energy of than minus that of design; "tightest_like": daily energy of the goal program at the least budget, '
        'and of Designs I and III; "loosest_saves", "plan_saves": saving of the goal program at the greatest budget, '
        'or at that of the plan, against than or all four designs; "cheapest": whether design has the least price; '
        '"loosest_price": price of the goal program at the greatest budget, relative to Designs I to IV; '
        '"peak_saving": saving against the same machines always on; "mismatch": extra energy of a design for the '
        "coarsest sampling when run at the finest."
    )
    design: DesignName | None = Field(default=None, description="Design-I to Design-IV")
    than: DesignName | None = Field(default=None, description="Design-I to Design-IV, for comparison")


class ClusterStudy(StudyDocument, ClusterFile):
    """A study file of ``kind = "cluster"``."""

    kind: Literal["cluster"]
    mismatch: Mismatch = Mismatch()
    sweep: Sweep = Sweep()
    criteria: ClusterCriteria = ClusterCriteria()
    statement: tuple[DesignStatement, ...] = Field(default=(), description="Statements of a source on designs.")
    arithmetic: tuple[Arithmetic, ...] = Field(default=(), description="Calculations of the source to repeat.")

    def groups(self) -> Sequence[Group]:
        """Return the groups of values that the study compares."""
        return [
            *counted_group(STATEMENTS, (len(self.statement), "statement")),
            Group(name="on-line against off-line", values="energy and switchings"),
        ]

    def problems(self, folder: Path) -> list[Problem]:
        """Return the problems of the calculations and statements."""
        problems = [*super().problems(folder), *arithmetic_problems(self.arithmetic)]
        for number, statement in enumerate(self.statement):
            place = f"statement[{number}]"
            problems += [*statement.quotation_problems(place), *_missing_designs(statement, place)]
        return problems


REQUIRED_DESIGNS: Mapping[str, tuple[str, ...]] = {
    "above_bound": ("design",),
    "below": ("design", "than"),
    "plan_saves": ("than",),
    "cheapest": ("design",),
}
"""Keys that a statement must have, by its quantity."""


def _missing_designs(statement: DesignStatement, place: str) -> Iterator[Problem]:
    for key in REQUIRED_DESIGNS.get(statement.of, ()):
        if getattr(statement, key) is None:
            yield Problem(f"{place}.{key}", f'is missing: "{statement.of}" needs this design')
