"""A ``*.study.toml``: pydantic models, one per table of the file.

A study names the measurements that calibrate a router, those held out to judge the calibration, and the scenarios to
predict. Quantities are texts with units; unknown keys are errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from routecast.errors import Problem
from routecast.load.fields import Frames
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import BitRate, Duration, FrameCount, FrameRate
from routecast.quantity.file_model import FileTable
from routecast.study.document import Count, Name, Quoted, Ratio, StudyDocument, taken_names
from routecast.study.knew import STATEMENTS, Group, group_of

__all__ = ["Study", "StudyRouter", "several"]


class StudyRouter(FileTable):
    """``[router]``: the router that was measured, as far as the measurements do not say it."""

    builder: Literal["multicore"] = Field(default="multicore", description="Builder of the model.")
    cores: Count = Field(description="Cores that the router has.")
    ports: Annotated[int, Field(ge=2, le=64, strict=True)] = Field(default=2, description="Interfaces.")
    link: BitRate = Field(description="Rate of each link.")
    queue: FrameCount = Field(default=512, description="Frames that can wait for each core.")
    description: str = Field(default="", description="The machine in words, for the report.")


class LoadNote(FileTable):
    """``[load]``: how the measurements were loaded."""

    description: str = Field(default="", description="The load in words, for the report.")


class Measurements(FileTable):
    """``[measurements]``: tables of measured maxima, CSV files beside the study.

    Columns: ``flows``, ``frame_bytes``, ``throughput_l1_bps`` or ``throughput_pps``; optional ``reported_l1_bps``
    (another model's value to compare with).
    """

    calibrate: str = Field(description="CSV file of the points that calibrate the router.")
    validate_with: str = Field(
        alias="validate", description="CSV file of the points to compare with; those that also calibrate are marked."
    )
    reported: str = Field(default="reported", description="Name of the model whose values are in reported_l1_bps.")
    baseline: Literal["eq5", "none"] = Field(default="none", description="A law to fit to the same points.")
    left_out: str = Field(
        default="",
        description="Table of the accuracy board that has these measurements: priors are those learnt without it.",
    )


class Evaluation(FileTable):
    """``[evaluate]``: who answers, and for how long."""

    evaluators: Annotated[tuple[Literal["solve", "simulate"], ...], Field(alias="with", min_length=1)] = (
        "solve",
        "simulate",
    )
    duration: Duration = Field(default=5e-3, description="Length of each simulated trial.")
    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = Field(default=1, description="Seed of all randomness.")


class _OneOrSeveral:
    """Beside the type of a list: its only entry may stand without the list."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        def listed(given: Any) -> Any:
            return given if isinstance(given, list | tuple) else [given]

        return core_schema.no_info_before_validator_function(listed, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], Any]) -> dict[str, Any]:
        several_of = handler(schema)
        return {"anyOf": [several_of["items"], several_of]}


_Ports = Annotated[int, Field(ge=1, le=64, strict=True)]
_MOST_PREDICTIONS = 10_000


class FlowsForLinks(FileTable, Quoted):
    """``[[scenario.flows_for_links]]``: how many flows a source says to fill all links of the scenario."""

    says: str = Field(description="The statement in a sentence.")
    flows: Count = Field(description="Fewest flows that fill the links; fewer leave them room at every frame size.")


class Scenario(FileTable):
    """``[[scenario]]``: a router to predict at every combination of its conditions.

    The conditions are those of tables of points (:data:`routecast.evaluate.points.COLUMNS`).
    """

    name: Name = Field(description="Stem of the figures' file names.")
    title: str = Field(description="Title of the figures.")
    cores: Annotated[tuple[Count, ...], Field(min_length=1), _OneOrSeveral()] | None = Field(
        default=None, description="Cores, or several in a list; the measured router's if not given."
    )
    link: Annotated[tuple[BitRate, ...], Field(min_length=1), _OneOrSeveral()] | None = Field(
        default=None, description="Rate of each link, or several in a list; the measured router's if not given."
    )
    ports: Annotated[tuple[_Ports, ...], Field(min_length=1), _OneOrSeveral()] | None = Field(
        default=None,
        description="Ports that offer load, or several numbers in a list: 1 is one-way traffic; the measured router's "
        "if not given.",
    )
    nic_cap: Annotated[tuple[FrameRate, ...], Field(min_length=1), _OneOrSeveral()] | None = Field(
        default=None,
        description="Frames per second that the network cards take in together, or several in a list; no known limit "
        "if not given.",
    )
    flows: Annotated[tuple[Count, ...], Field(min_length=1), _OneOrSeveral()] | None = Field(
        default=None, description="Number of flows, or several in a list; enough for every core if not given."
    )
    frames: Annotated[tuple[Frames, ...], Field(min_length=1), _OneOrSeveral()] = Field(
        description="Frame size or mix, or several in a list."
    )
    flows_for_links: tuple[FlowsForLinks, ...] = Field(
        default=(), description="Number of flows that fill the links according to a source."
    )

    @property
    def count(self) -> int:
        """Number of combinations."""
        conditions = (self.cores, self.link, self.ports, self.nic_cap, self.flows, self.frames)
        return math.prod(len(several(given)) for given in conditions)


def several(given: Any) -> tuple[Any, ...]:
    """Return what a condition gives as a list: its values, the only one, or None where it is not given.

    Examples
    --------
    >>> several((5, 6)), several(8), several(None)
    ((5, 6), (8,), (None,))
    """
    return tuple(dict.fromkeys(given)) if isinstance(given, tuple | list) else (given,)


class Criteria(FileTable):
    """``[criteria]``: bounds on the absolute errors."""

    mean_over_all: Ratio | None = Field(default=None, description="Mean over all points, as papers count.")
    mean_over_held_out: Ratio | None = Field(default=None, description="Mean over the held-out points.")
    max_over_held_out: Ratio | None = Field(default=None, description="Largest at the held-out points.")


class Study(FileTable, StudyDocument):
    """A whole ``*.study.toml``."""

    source: str = Field(default="", description="Source of the measurements.")
    router: StudyRouter
    load: LoadNote = LoadNote()
    measurements: Measurements
    evaluate: Evaluation = Evaluation()
    scenario: tuple[Scenario, ...] = ()
    criteria: Criteria = Criteria()

    def groups(self) -> Sequence[Group]:
        """Return what the study compares."""
        groups = [
            Group(name="points that calibrate", values=self.measurements.calibrate, calibrates="the law's parameters")
        ]
        if self.measurements.validate_with != self.measurements.calibrate:
            groups.append(Group(name="held-out points", values=self.measurements.validate_with))
        stated = sum(len(scenario.flows_for_links) for scenario in self.scenario)
        return [*groups, *group_of(STATEMENTS, (stated, "number of flows"))]

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions in the document, and with what it names."""
        from routecast.calibration.priors import sources  # NumPy

        problems = []
        for key, name in (("calibrate", self.measurements.calibrate), ("validate", self.measurements.validate_with)):
            if not (folder / name).is_file():
                problems.append(Problem(f"measurements.{key}", f"there is no file {name!r} beside the study"))
        left_out = self.measurements.left_out
        if left_out and left_out not in sources():
            problems.append(Problem("measurements.left_out", did_you_mean(left_out, sources())))
        problems += taken_names("scenario", self.scenario, "names its files")
        for number, scenario in enumerate(self.scenario):
            if scenario.count > _MOST_PREDICTIONS:
                what = f"has {scenario.count:,} combinations: at most {_MOST_PREDICTIONS:,}; give fewer values"
                problems.append(Problem(f"scenario[{number}]", what))
            for index, stated in enumerate(scenario.flows_for_links):
                problems += stated.quotation_problems(f"scenario[{number}].flows_for_links[{index}]")
        return problems
