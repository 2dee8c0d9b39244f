"""What a ``*.study.toml`` of ``kind = "cluster"`` says: a cluster file's tables, what to vary, and criteria.

``[traffic]``, ``[[group]]``, ``[plan]`` and ``[saving]`` are those of a ``*.cluster.toml``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from routecast.plan.cluster.reading import ClusterFile
from routecast.quantity.fields import Duration, Number, Span
from routecast.quantity.file_model import FileModel
from routecast.study.document import Name, StudyDocument
from routecast.study.knew import STATEMENTS, Group

__all__ = ["ClusterCriteria", "ClusterStudy", "Mismatch", "Sweep"]

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


class ClusterStudy(ClusterFile, StudyDocument):
    """A whole ``*.study.toml`` of ``kind = "cluster"``."""

    kind: Literal["cluster"]
    name: Name = Field(description="Name of the study and of its folder of results.")
    title: str = Field(description="Title of the report.")
    question: str = Field(default="", description="What the study answers, as a question.")
    mismatch: Mismatch = Mismatch()
    sweep: Sweep = Sweep()
    criteria: ClusterCriteria = ClusterCriteria()

    def groups(self) -> Sequence[Group]:
        """Return what the study compares."""
        return [
            Group(name=STATEMENTS, values="Designs I to IV, budgets, steps"),
            Group(name="on-line against off-line", values="energy and switchings"),
        ]
