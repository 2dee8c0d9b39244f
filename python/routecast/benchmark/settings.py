"""What the tables of a profile share: kinds of numbers, and the goal of a search."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from routecast.quantity.fields import Duration
from routecast.quantity.file_model import FileModel

__all__ = ["GoalProfile", "LossRatio", "Repeats", "Settings", "Share"]

Repeats = Annotated[int, Field(ge=1, le=10_000, strict=True)]
Share = Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]
LossRatio = Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False)]


class Settings(FileModel):
    """A table of the file."""

    model_config = ConfigDict(str_strip_whitespace=True)


class GoalProfile(Settings):
    """``[[throughput.goal]]``: one goal of the search, in the terms of RFC 9971 sec. 4.6.

    The RFC 2544 goal is one trial of the full length without loss: ``loss_ratio = 0``, ``exceed_ratio = 0``,
    ``final_trial = duration_sum = "60 s"`` (RFC 9971 sec. 4.10.1).
    """

    name: str = Field(min_length=1, max_length=40, description="How tables call the goal.")
    loss_ratio: LossRatio = Field(default=0.0, description="Loss that a good trial may have.")
    exceed_ratio: LossRatio = Field(
        default=0.0, description="Share of the trial time at a load that may be of bad trials."
    )
    width: Annotated[float, Field(gt=0.0, lt=0.5)] = Field(
        default=0.005, description="Goal width: distance of the bounds, relative to the upper one."
    )
    initial_trial: Duration = Field(default=1.0, description="Length of the first trials.")
    final_trial: Duration = Field(default=60.0, description="Length of the trials that decide.")
    duration_sum: Duration = Field(default=60.0, description="Trial time that decides about a load.")
    preceding_targets: Annotated[int, Field(ge=0, le=10, strict=True)] = Field(
        default=2, description="Coarser searches before the last (MLRsearch)."
    )

    @model_validator(mode="after")
    def _in_order(self) -> GoalProfile:
        if not self.initial_trial <= self.final_trial <= self.duration_sum:
            message = "a goal has initial_trial <= final_trial <= duration_sum"
            raise PydanticCustomError("goal", "{message}", {"message": message})
        if self.preceding_targets == 0 and self.initial_trial < self.duration_sum:
            message = "without preceding_targets the search has one length: initial_trial = duration_sum"
            raise PydanticCustomError("goal", "{message}", {"message": message})
        return self
