"""A ``*.study.toml`` of ``kind = "latency"``: the latency of devices over the load, predicted and then measured.

Of each ``[[device]]`` the rate in overload and the latency at the shares ``loads.rows`` of it are measured. A curve is
fitted to them and predicts the latency at the shares ``loads.predict``, which is measured afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from routecast.errors import Problem
from routecast.lab.study.document import Bed
from routecast.quantity.file_model import FileModel
from routecast.study.document import (
    Count,
    FrameSize,
    Name,
    Ratio,
    StudyDocument,
    missing_testbed_problems,
    repeated_name_problems,
)
from routecast.study.prior_knowledge import Group, counted_group

__all__ = ["LatencyBounds", "LatencyDevice", "LatencyLoads", "LatencyStudy"]

Option = str | int | float | bool
LoadShare = Annotated[float, Field(gt=0.0, le=10.0, allow_inf_nan=False)]
StatedShare = Annotated[float, Field(gt=0.0, le=0.95, allow_inf_nan=False)]
CoverageRatio = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class LatencyDevice(FileModel):
    """``[[device]]``: a device under test; one that this machine cannot run is named and left out."""

    name: Name = Field(description="Name in tables, and stem of its figure.")
    device: Name = Field(description="Device under test.")
    options: dict[str, Option] = Field(default_factory=dict, description="Options of the device.")


class LatencyLoads(FileModel):
    """``[loads]``: shares of the rate in overload at which the latency is measured, and predicted."""

    rows: Annotated[tuple[LoadShare, ...], Field(min_length=1)] = Field(
        default=(0.1, 1.0), description="Loads whose latency calibrates the curve."
    )
    row_repeats: Annotated[int, Field(ge=1, le=1000, strict=True)] = Field(
        default=3, description="Trials of the rate in overload and of each load that calibrates."
    )
    attempts: Annotated[int, Field(ge=1, le=100, strict=True)] = Field(
        default=1, description="Most trials in place of each, until nothing disturbed one."
    )
    predict: Annotated[tuple[StatedShare, ...], Field(min_length=1)] = Field(
        default=(0.3, 0.5, 0.7, 0.9), description="Loads at which the latency is predicted, then measured."
    )
    frame: FrameSize = Field(default=64, description="Frame size.", validate_default=False)


class LatencyBounds(FileModel):
    """``[criteria]``: undisturbed trials that a judgement needs, and bounds on the errors of the medians in them."""

    trials: Count = Field(default=60, description="Fewest undisturbed trials at the predicted loads.")
    devices: Count = Field(default=4, description="Fewest devices with such trials.")
    p50_median: Ratio | None = Field(default=None, description="Median absolute relative error of the median latency.")
    p50_coverage: CoverageRatio | None = Field(
        default=None, description="Least share of the median latencies inside their 95 % interval."
    )


class LatencyStudy(StudyDocument):
    """A whole ``*.study.toml`` of ``kind = "latency"``; ``testbed.repeats`` are of each predicted load."""

    kind: Literal["latency"]
    testbed: Bed = Bed()
    loads: LatencyLoads = LatencyLoads()
    device: Annotated[tuple[LatencyDevice, ...], Field(min_length=1)]
    criteria: LatencyBounds = LatencyBounds()

    def groups(self) -> Sequence[Group]:
        """Return the groups of values that the study compares."""
        devices = len(self.device)
        rows, predicted = len(self.loads.rows), len(self.loads.predict)
        return [
            *counted_group("latency that calibrates", (devices * rows, "load"), calibrates="the curve over the load"),
            *counted_group("latency", (devices * predicted, "load")),
        ]

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions in the document, and the missing files."""
        problems = [*missing_testbed_problems("testbed.file", folder, self.testbed.file)]
        problems += repeated_name_problems("device", self.device, "names its figure")
        both = [load for load in self.loads.predict if load in self.loads.rows]
        if both:
            message = f"{both[0]:g} calibrates, as loads.rows has it: leave it out of one of them"
            problems.append(Problem("loads.predict", message))
        return problems
