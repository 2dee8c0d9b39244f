"""A ``*.study.toml`` of ``kind = "wire"``: measurements on a test bed, some of which calibrate.

``[[throughput]]`` is the forwarding rate in overload against one factor, ``[[loss]]`` loss against offered load, and
``[[latency]]`` latency against load. The points named by ``calibrate`` calibrate the router; the others judge its
predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from routecast.errors import Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Duration
from routecast.quantity.file_model import FileModel
from routecast.study.document import (
    FrameSize,
    Name,
    Ratio,
    Seed,
    StudyDocument,
    missing_testbed_problems,
    repeated_name_problems,
)
from routecast.study.prior_knowledge import Group, counted_group

__all__ = ["Bed", "Latency", "Loss", "Throughput", "WireCriteria", "WireEvaluation", "WireStudy"]

Option = str | int | float | bool
Factor = Annotated[float, Field(ge=0.0, le=1e9, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0.0, lt=1.0, allow_inf_nan=False)]
Offered = Annotated[float, Field(gt=0.0, le=20.0, allow_inf_nan=False)]
Repeats = Annotated[int, Field(ge=1, le=1000, strict=True)]
Flows = Annotated[int, Field(ge=1, le=4096, strict=True)]


class Bed(FileModel):
    """``[testbed]``: test bed, length, repeats and overload of the trials."""

    file: str = Field(default="namespaces", description='"namespaces", or a *.testbed.toml beside the study.')
    duration: Duration = Field(default=0.5, description="Length of a trial.")
    repeats: Repeats = Field(default=3, description="Trials of each point; their median is the measured value.")
    overload: Annotated[float, Field(gt=1.0, le=10.0)] = Field(
        default=1.5, description="Offered load of an overload, over the forwarding rate."
    )


class Throughput(FileModel):
    """``[[throughput]]``: forwarding rate in overload against one factor.

    ``factor`` is ``frame_bytes``, ``flows`` or an option of the device, such as ``slowdown`` or ``rules``.
    """

    name: Name = Field(description="Name of the series and stem of its figures.")
    title: str = Field(description="Title of the figure.")
    device: Name = Field(description="Device under test.")
    options: dict[str, Option] = Field(default_factory=dict, description="Options of the device.")
    factor: Name = Field(description="Factor that varies: frame_bytes, flows or an option of the device.")
    values: Annotated[tuple[Factor, ...], Field(min_length=2)] = Field(description="Values of the factor.")
    calibrate: Annotated[tuple[Factor, ...], Field(min_length=1)] = Field(
        description="Values whose measurements calibrate."
    )
    law: Literal["linear", "constant"] = Field(
        default="linear",
        description="Time per frame against the factor: linear, or constant where the factor costs nothing.",
    )
    frame: FrameSize = Field(default=64, description="Frame size.", validate_default=False)
    flows: Flows = Field(default=1, description="Flows.")


class Loss(FileModel):
    """``[[loss]]``: loss against offered load, at points that do not calibrate."""

    series: Name = Field(description="The [[throughput]] series whose calibrated router is loaded.")
    value: Factor = Field(description="The value of the series' factor.")
    offered: Annotated[tuple[Offered, ...], Field(min_length=2)] = Field(
        default=(0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0), description="Offered load over predicted capacity."
    )


class Latency(FileModel):
    """``[[latency]]``: latency against load; some loads calibrate the wake-up and the interruptions."""

    series: Name = Field(description="The [[throughput]] series whose calibrated router is loaded.")
    value: Factor = Field(description="The value of the series' factor.")
    loads: Annotated[tuple[Share, ...], Field(min_length=2)] = Field(
        default=(0.1, 0.3, 0.5, 0.7, 0.9), description="Load over predicted capacity."
    )
    calibrate: tuple[Share, ...] = Field(
        default=(), description="Loads whose latency calibrates; empty: all are held out."
    )


class WireEvaluation(FileModel):
    """``[evaluate]``: length and seed of simulated trials."""

    duration: Duration = Field(default=0.5, description="Simulated time of a trial.")
    seed: Seed = Field(default=1, description="Seed of all randomness.")


class WireCriteria(FileModel):
    """``[criteria]``: bounds on the errors at the held-out points.

    The bound on the throughput is at least twice the repeatability of the measurement.
    """

    throughput_median: Ratio | None = Field(default=None, description="Median absolute relative error.")
    loss_mean: Ratio | None = Field(default=None, description="Mean absolute error of the loss ratio (0.02: 2 points).")
    latency_median: Ratio | None = Field(
        default=None, description="Median absolute relative error of the median latency."
    )


class WireStudy(StudyDocument):
    """A whole ``*.study.toml`` of ``kind = "wire"``."""

    kind: Literal["wire"]
    testbed: Bed = Bed()
    throughput: Annotated[tuple[Throughput, ...], Field(min_length=1)]
    loss: tuple[Loss, ...] = ()
    latency: tuple[Latency, ...] = ()
    evaluate: WireEvaluation = WireEvaluation()
    criteria: WireCriteria = WireCriteria()

    def groups(self) -> Sequence[Group]:
        """Return the groups of values that the study compares."""
        calibrating = sum(len(series.calibrate) for series in self.throughput)
        points = sum(len(series.values) for series in self.throughput)
        loads = sum(len(latency.loads) for latency in self.latency)
        calibrating_loads = sum(len(latency.calibrate) for latency in self.latency)
        lossy = sum(len(loss.offered) for loss in self.loss)
        return [
            *counted_group("throughput that calibrates", (calibrating, "point"), calibrates="the time of a frame"),
            *counted_group("throughput", (points - calibrating, "point")),
            *counted_group("loss", (lossy, "point")),
            *counted_group(
                "latency that calibrates", (calibrating_loads, "point"), calibrates="the wake-up and the interruptions"
            ),
            *counted_group("latency", (loads - calibrating_loads, "point")),
        ]

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions in the document, and the missing files."""
        problems = [*missing_testbed_problems("testbed.file", folder, self.testbed.file)]
        problems += repeated_name_problems("throughput", self.throughput, "names its figures")
        names = sorted({series.name for series in self.throughput})
        for number, series in enumerate(self.throughput):
            place = f"throughput[{number}]"
            unknown = [value for value in series.calibrate if value not in series.values]
            if unknown:
                message = (
                    f"{unknown[0]:g} is not among the values: {', '.join(f'{value:g}' for value in series.values)}"
                )
                problems.append(Problem(f"{place}.calibrate", message))
            if series.law == "linear" and len(set(series.calibrate)) < 2:
                message = 'one value gives no slope: name two, or set law = "constant"'
                problems.append(Problem(f"{place}.calibrate", message))
        loaded = [(f"loss[{number}]", loss.series) for number, loss in enumerate(self.loss)]
        loaded += [(f"latency[{number}]", latency.series) for number, latency in enumerate(self.latency)]
        for place, name in loaded:
            if name not in names:
                message = f"{name!r} is no [[throughput]]; {did_you_mean(name, names)}"
                problems.append(Problem(f"{place}.series", message))
        for number, latency in enumerate(self.latency):
            for ratio in latency.calibrate:
                if ratio not in latency.loads:
                    message = f"{ratio:g} is not among the loads: {', '.join(f'{load:g}' for load in latency.loads)}"
                    problems.append(Problem(f"latency[{number}].calibrate", message))
        return problems
