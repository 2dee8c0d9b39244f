"""Types of numbers in the tables of a profile, and the goal of a search."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from routecast.quantity.fields import Duration, Percentage
from routecast.quantity.schema import field, value

__all__ = ["GoalProfile", "LossRatio", "Repeats", "Share", "Text"]

Repeats = Annotated[int, Field(ge=1, le=10_000, strict=True)]
Share = Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False), Percentage()]
Text = Annotated[str, StringConstraints(strip_whitespace=True)]
LossRatio = Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False), Percentage()]


@value
class GoalProfile:
    """``[[throughput.goal]]``: one goal of the search, in the terms of RFC 9971 sec. 4.6.

    The RFC 2544 goal is one trial of the full length without loss: ``loss_ratio = 0``, ``exceed_ratio = 0``,
    ``final_trial = duration_sum = "60 s"`` (RFC 9971 sec. 4.10.1).
    """

    name: Annotated[Text, Field(min_length=1, max_length=40)] = field("Name of the goal in tables.")
    loss_ratio: LossRatio = field("Loss that a good trial may have.", default=0.0, key="loss_ratio")
    exceed_ratio: LossRatio = field(
        "Share of the trial time at a load that bad trials may take.", default=0.0, key="exceed_ratio"
    )
    width: Annotated[float, Field(gt=0.0, lt=0.5)] = field(
        "Goal width: distance of the bounds, relative to the upper one.", default=0.005
    )
    initial_trial: Duration = field("Length of the first trials.", default=1.0)
    final_trial: Duration = field("Length of the trials that decide.", default=60.0)
    duration_sum: Duration = field("Trial time that decides about a load.", default=60.0)
    preceding_targets: Annotated[int, Field(ge=0, le=10, strict=True)] = field(
        "Coarser searches before the last (MLRsearch).", default=2
    )

    def __post_init__(self) -> None:
        if not self.initial_trial <= self.final_trial <= self.duration_sum:
            raise ValueError("a goal has initial_trial <= final_trial <= duration_sum")
        if self.preceding_targets == 0 and self.initial_trial < self.duration_sum:
            raise ValueError("without preceding_targets the search has one length: initial_trial = duration_sum")
