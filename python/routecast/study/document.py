"""What a ``*.study.toml`` says: pydantic models, one per table of the file.

A study names the measurements that calibrate a router, those held out to judge the calibration, and the scenarios to
predict. Quantities are texts with units; unknown keys are errors.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from routecast.errors import QuantityProblem
from routecast.quantity import parse_frame_bytes
from routecast.quantity.fields import BitRate, Duration, FrameCount
from routecast.quantity.file_model import FileModel

__all__ = ["Criteria", "Evaluation", "LoadNote", "Measurements", "Scenario", "Study", "StudyRouter"]


def _frame_bytes(text: Any) -> int:
    try:
        return parse_frame_bytes(text)  # it says itself that it wants a text
    except QuantityProblem as problem:
        raise PydanticCustomError("quantity", "{message}", {"message": problem.message}) from None


FrameSize = Annotated[
    int,
    BeforeValidator(_frame_bytes),
    WithJsonSchema({"type": "string", "description": "Text with a unit: B, FCS included", "examples": ["64 B"]}),
]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]
Ratio = Annotated[float, Field(gt=0.0, lt=1e6, allow_inf_nan=False)]


class _Table(FileModel):
    """A table of the file."""

    model_config = ConfigDict(str_strip_whitespace=True)


class StudyRouter(_Table):
    """``[router]``: the router that was measured, as far as the measurements do not say it."""

    builder: Literal["multicore"] = Field(default="multicore", description="How the model is built.")
    cores: Count = Field(description="Cores that the router has.")
    ports: Annotated[int, Field(ge=2, le=64, strict=True)] = Field(default=2, description="Interfaces.")
    link: BitRate = Field(description="Rate of each link.")
    queue: FrameCount = Field(default=512, description="Frames that can wait for each core.")
    description: str = Field(default="", description="The machine in words, for the report.")


class LoadNote(_Table):
    """``[load]``: how the measurements were loaded."""

    description: str = Field(default="", description="The load in words, for the report.")


class Measurements(_Table):
    """``[measurements]``: tables of measured maxima, CSV files beside the study.

    Columns: ``flows``, ``frame_bytes``, ``throughput_l1_bps`` or ``throughput_pps``; optional ``reported_l1_bps``
    (another model's value to compare with).
    """

    calibrate: str = Field(description="CSV file of the points that calibrate the router.")
    validate_with: str = Field(
        alias="validate",
        description="CSV file of the points to compare with; those that also calibrate are marked.",
    )
    reported: str = Field(default="reported", description="Name of the model whose values are in reported_l1_bps.")
    baseline: Literal["eq5", "none"] = Field(default="none", description="A law to fit to the same points.")
    left_out: str = Field(
        default="",
        description="Table of the accuracy board that has these measurements: priors are those learnt without it.",
    )


class Evaluation(_Table):
    """``[evaluate]``: who answers, and for how long."""

    evaluators: Annotated[tuple[Literal["solve", "simulate"], ...], Field(alias="with", min_length=1)] = (
        "solve",
        "simulate",
    )
    duration: Duration = Field(default=5e-3, description="Length of each simulated trial.")
    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = Field(default=1, description="Seed of all randomness.")


class Scenario(_Table):
    """``[[scenario]]``: a router to predict at every combination of flows and frame sizes."""

    name: Name = Field(description="Stem of the figures' file names.")
    title: str = Field(description="What the figures show.")
    cores: Count | None = Field(default=None, description="Cores; the measured router's if not given.")
    link: BitRate | None = Field(default=None, description="Rate of each link; the measured router's if not given.")
    flows: Annotated[tuple[Count, ...], Field(min_length=1)] = Field(description="Numbers of flows.")
    frames: Annotated[tuple[FrameSize, ...], Field(min_length=1)] = Field(description="Frame sizes.")


class Criteria(_Table):
    """``[criteria]``: bounds on the absolute errors."""

    mean_over_all: Ratio | None = Field(default=None, description="Mean over all points, as papers count.")
    mean_over_held_out: Ratio | None = Field(default=None, description="Mean over the held-out points.")
    max_over_held_out: Ratio | None = Field(default=None, description="Largest at the held-out points.")


class Study(_Table):
    """A whole ``*.study.toml``."""

    name: Name = Field(description="Name of the study and of its folder of results.")
    title: str = Field(description="Title of the report.")
    question: str = Field(default="", description="What the study answers, as a question.")
    source: str = Field(default="", description="Where the measurements come from.")
    router: StudyRouter
    load: LoadNote = LoadNote()
    measurements: Measurements
    evaluate: Evaluation = Evaluation()
    scenario: tuple[Scenario, ...] = ()
    criteria: Criteria = Criteria()
