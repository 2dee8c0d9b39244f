"""What a ``*.study.toml`` says: pydantic models, one per table of the file.

A study names the measurements that calibrate a router, those held out to judge the calibration, and the scenarios to
predict. Quantities are texts with units; unknown keys are errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from routecast.errors import QuantityProblem
from routecast.quantity import parse_bit_rate_bps, parse_duration_s, parse_frame_bytes, parse_frames

__all__ = ["Criteria", "Evaluation", "LoadNote", "Measurements", "Scenario", "Study", "StudyRouter"]


def _text_with_unit(parse: Callable[[str], float]) -> BeforeValidator:
    def read(text: object) -> float:
        try:
            return parse(text)  # type: ignore[arg-type]  # whatever else a file holds, parse says that it wants a text
        except QuantityProblem as problem:
            raise ValueError(str(problem)) from problem

    return BeforeValidator(read)


def _schema(what: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "description": what, "examples": [example]})


BitRate = Annotated[float, _text_with_unit(parse_bit_rate_bps), _schema("a bit rate", "10 Gbit/s")]
Duration = Annotated[float, _text_with_unit(parse_duration_s), _schema("a time", "5 ms")]
FrameSize = Annotated[int, _text_with_unit(parse_frame_bytes), _schema("a frame size, FCS included", "64 B")]
Frames = Annotated[int, _text_with_unit(parse_frames), _schema("a number of frames", "512 frames")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]
Ratio = Annotated[float, Field(gt=0.0, lt=1e6, allow_inf_nan=False)]


class _Table(BaseModel):
    """A table of the file: read once, never changed, no key that is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class StudyRouter(_Table):
    """``[router]``: the router that was measured, as far as the measurements do not say it."""

    builder: Literal["multicore"] = Field(default="multicore", description="How the model is built.")
    cores: Count = Field(description="Cores that the router has.")
    ports: Annotated[int, Field(ge=2, le=64, strict=True)] = Field(default=2, description="Interfaces.")
    link: BitRate = Field(description="Rate of each link.")
    queue: Frames = Field(default=512, description="Frames that can wait for each core.")
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
    reported: str = Field(
        default="reported", description="Name of the model whose values are in reported_l1_bps."
    )
    baseline: Literal["eq5", "none"] = Field(default="none", description="A law to fit to the same points.")


class Evaluation(_Table):
    """``[evaluate]``: who answers, and for how long."""

    evaluators: Annotated[tuple[Literal["solve", "simulate"], ...], Field(alias="with", min_length=1)] = (
        "solve",
        "simulate",
    )
    duration: Duration = Field(default=5e-3, description="Length of each simulated trial.")
    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = Field(
        default=1, description="Seed of all randomness."
    )


class Scenario(_Table):
    """``[[scenario]]``: a router to predict at every combination of flows and frame sizes."""

    name: Name = Field(description="Stem of the figures' file names.")
    title: str = Field(description="What the figures show.")
    cores: Count | None = Field(default=None, description="Cores; the measured router's if not given.")
    link: BitRate | None = Field(
        default=None, description="Rate of each link; the measured router's if not given."
    )
    flows: Annotated[tuple[Count, ...], Field(min_length=1)] = Field(description="Numbers of flows.")
    frames: Annotated[tuple[FrameSize, ...], Field(min_length=1)] = Field(description="Frame sizes.")


class Criteria(_Table):
    """``[criteria]``: bounds on the errors at the held-out points."""

    mean_abs_error_ratio: Ratio | None = Field(default=None, description="Largest mean absolute error.")
    max_abs_error_ratio: Ratio | None = Field(default=None, description="Largest absolute error.")


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
