"""A ``*.study.toml`` of ``kind = "napi"``: idle time measured on one core, and rates of a polling router.

``[[idle]]`` is a measured curve of idle time against load, which three costs explain. ``[form]`` is a router with known
maximum rate and rate without idle time, beside the published form function. ``[clock]`` is the same router at other
frequencies, for assumed shares of memory time, which the clock does not change, or fitted to measured maxima.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from routecast.errors import Problem
from routecast.quantity.fields import FrameCount, FrameRate, Frequency, Span
from routecast.quantity.file_model import FileModel
from routecast.study.document import Name, Ratio, Seed, StudyDocument, missing_files, repeated_name_problems
from routecast.study.prior_knowledge import Group, counted_group

__all__ = ["ClockPart", "FormPart", "IdleCurve", "NapiCriteria", "NapiRun", "NapiStudy"]

Share = Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False)]


class NapiRun(FileModel):
    """``[run]``: length and seed of the simulated trials."""

    frames: Annotated[int, Field(ge=1000, le=10_000_000, strict=True)] = Field(
        default=40_000, description="Frames of a simulated trial."
    )
    seed: Seed = Field(default=1, description="Seed.")
    compare: bool = Field(default=True, description="Fit other dynamics of activation to each curve as well.")


class IdleCurve(FileModel):
    """``[[idle]]``: idle time of one core against the offered load."""

    name: Name = Field(description="Name of the curve; names its figures.")
    title: str = Field(description="The curve in words.")
    file: str = Field(description="CSV file, from the study: columns offered_pps, idle_ratio, and series.")
    series: str = Field(default="", description="Series of the rows that count; empty: all rows.")
    maximum: FrameRate | None = Field(
        default=None, description="Maximum rate of the core from another measurement: compared, never fitted."
    )
    maximum_source: str = Field(default="", description="Source of the maximum.")


class FormPart(FileModel):
    """``[form]``: a polling router with two known rates, beside the form function."""

    maximum: FrameRate = Field(description="Greatest forwarding rate of one core.")
    saturation: FrameRate = Field(description="Rate from which the core is never idle.")
    budget: FrameCount = Field(default=64, description="Frames of a poll, at most.")
    interrupt: Span = Field(description="Cost of an interrupt for the figures; the two rates do not determine it.")
    interrupt_range: tuple[Span, Span] = Field(description="Least and greatest cost of an interrupt that is tried.")
    source: str = Field(default="", description="Source of the rates.")


class ClockPart(FileModel):
    """``[clock]``: the router of ``[form]`` at other frequencies."""

    frequency: Frequency = Field(description="Clock at which the rates of [form] hold.")
    frequencies: Annotated[tuple[Frequency, ...], Field(min_length=2)] = Field(description="Simulated clocks.")
    memory: Annotated[tuple[Share, ...], Field(min_length=1, max_length=5)] = Field(
        description="Assumed shares of a frame's time at that clock that do not depend on the clock."
    )
    ring: FrameCount = Field(default=512, description="Assumed frames that the receive ring holds.")
    samples: str = Field(
        default="", description="CSV file of measured maxima to fit: columns frequency_hz, rate_pps. Empty: none."
    )


class NapiCriteria(FileModel):
    """``[criteria]``: bounds on the errors, as shares of the core's time, 0..1."""

    idle_rmse: Ratio | None = Field(
        default=None, description="Root mean square error of the simulated idle share of each curve."
    )
    left_out_rmse: Ratio | None = Field(
        default=None, description="Root mean square error of the idle share at points that the fit leaves out in turn."
    )
    maximum_error: Ratio | None = Field(
        default=None, description="Relative error of the maximum rate against the other measurement."
    )
    saturated_idle: Ratio | None = Field(
        default=None, description="Idle share of the router of [form] at a load 1 % above saturation."
    )


class NapiStudy(StudyDocument):
    """A whole ``*.study.toml`` of ``kind = "napi"``."""

    kind: Literal["napi"]
    source: str = Field(default="", description="Source of the measurements.")
    run: NapiRun = NapiRun()
    idle: Annotated[tuple[IdleCurve, ...], Field(min_length=1)]
    form: FormPart | None = None
    clock: ClockPart | None = None
    criteria: NapiCriteria = NapiCriteria()

    def groups(self) -> Sequence[Group]:
        """Return the groups of values that the study compares."""
        groups = []
        for curve in self.idle:
            groups.append(Group(name=f"{curve.name}: idle time", values=curve.file, calibrates="three costs"))
            groups.append(Group(name=f"{curve.name}: idle time left out of the fit", values="each point in turn"))
            groups += counted_group(f"{curve.name}: maximum rate", (int(curve.maximum is not None), "rate"))
        if self.form:
            costs = "the costs of a packet and of a poll"
            groups.append(Group(name="form: maximum and saturation", values="2 rates", calibrates=costs))
            groups.append(Group(name="form: busy share", values="the form function"))
        if self.clock and self.clock.samples:
            groups.append(Group(name="clock: maxima", values=self.clock.samples, calibrates="cycles and memory time"))
        return groups

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions in the document, and the files that are missing."""
        files = {f"idle[{number}].file": curve.file for number, curve in enumerate(self.idle)}
        if self.clock and self.clock.samples:
            files["clock.samples"] = self.clock.samples
        problems = [*missing_files(folder, files), *repeated_name_problems("idle", self.idle, "names its figures")]
        if self.form and self.form.saturation >= self.form.maximum:
            message = "is not below the maximum: the core has no idle time at this rate and forwards still more"
            problems.append(Problem("form.saturation", message))
        if self.clock and not self.form:
            problems.append(Problem("clock", "needs [form]: the clock scales the costs of that router"))
        return problems
