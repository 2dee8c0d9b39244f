"""A ``*.study.toml`` of ``kind = "tables"``: a router that tables of measured maxima calibrate.

It names the measurements that calibrate the router, those held out to judge the calibration, and the scenarios to
predict.
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
from routecast.study.document import (
    Count,
    Name,
    Quoted,
    Ratio,
    Seed,
    StudyDocument,
    missing_files,
    repeated_name_problems,
)
from routecast.study.prior_knowledge import STATEMENTS, Group, counted_group

__all__ = ["Study", "StudyRouter", "several"]


class StudyRouter(FileTable):
    """``[router]``: facts of the measured router beside the measurements."""

    builder: Literal["multicore"] = Field(default="multicore", description="Builder of the model.")
    cores: Count = Field(description="Cores that the router has.")
    ports: Annotated[int, Field(ge=2, le=64, strict=True)] = Field(default=2, description="Interfaces.")
    link: BitRate = Field(description="Rate of each link.")
    queue: FrameCount = Field(default=512, description="Frames that can wait for each core.")
    description: str = Field(default="", description="The machine in words, for the report.")


class LoadNote(FileTable):
    """``[load]``: the load of the measurements."""

    description: str = Field(default="", description="The load in words, for the report.")


class Measurements(FileTable):
    """``[measurements]``: tables of measured maxima, CSV files beside the study.

    Columns: ``flows``, ``frame_bytes``, ``throughput_l1_bps`` or ``throughput_pps``; optional ``reported_l1_bps``
    (the value of another model, to compare).
    """

    calibrate: str = Field(description="CSV file of the points that calibrate the router.")
    validate_with: str = Field(
        alias="validate", description="CSV file of the points to compare; points that also calibrate are marked."
    )
    reported: str = Field(default="reported", description="Name of the model whose values are in reported_l1_bps.")
    baseline: Literal["eq5", "none"] = Field(default="none", description="A law to fit to the same points.")
    left_out: str = Field(
        default="", description="Table of the accuracy board with these measurements; the priors are learnt without it."
    )


class Evaluation(FileTable):
    """``[evaluate]``: evaluators, and length and seed of simulated trials."""

    evaluators: Annotated[tuple[Literal["solve", "simulate"], ...], Field(alias="with", min_length=1)] = (
        "solve",
        "simulate",
    )
    duration: Duration = Field(default=5e-3, description="Length of each simulated trial.")
    seed: Seed = Field(default=1, description="Seed of all randomness.")


class _OneOrSeveral:
    """Annotation of a list's type that allows a single entry without the list."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        def as_list(value: Any) -> Any:
            return value if isinstance(value, list | tuple) else [value]

        return core_schema.no_info_before_validator_function(as_list, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], Any]) -> dict[str, Any]:
        listed = handler(schema)
        return {"anyOf": [listed["items"], listed]}


_Ports = Annotated[int, Field(ge=1, le=64, strict=True)]
_MAX_PREDICTIONS = 10_000


class FlowsForLinks(FileTable, Quoted):
    """``[[scenario.flows_for_links]]``: number of flows that fill all links of the scenario, as a source states it."""

    says: str = Field(description="The statement in a sentence.")
    flows: Count = Field(
        description="Fewest flows that fill the links; fewer flows do not fill them at any frame size."
    )


class Scenario(FileTable):
    """``[[scenario]]``: a router that is predicted at every combination of its conditions.

    The conditions are columns of tables of points (:mod:`routecast.evaluate.point_table`).
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
        description="Ports that offer load, or several numbers in a list; 1 is one-way traffic; the measured router's "
        "if not given.",
    )
    nic_cap: Annotated[tuple[FrameRate, ...], Field(min_length=1), _OneOrSeveral()] | None = Field(
        default=None,
        description="Frames per second that the network cards receive together, or several in a list; no known limit "
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
        return math.prod(len(several(values)) for values in conditions)


def several(values: Any) -> tuple[Any, ...]:
    """Return the values of a condition as a tuple; a condition that is not given has the value None.

    Examples
    --------
    >>> several((5, 6)), several(8), several(None)
    ((5, 6), (8,), (None,))
    """
    return tuple(dict.fromkeys(values)) if isinstance(values, tuple | list) else (values,)


class Criteria(FileTable):
    """``[criteria]``: bounds on the absolute errors."""

    mean_over_all: Ratio | None = Field(default=None, description="Mean over all points, which papers usually report.")
    mean_over_held_out: Ratio | None = Field(default=None, description="Mean over the held-out points.")
    max_over_held_out: Ratio | None = Field(default=None, description="Largest at the held-out points.")


class Study(FileTable, StudyDocument):
    """A whole ``*.study.toml`` of ``kind = "tables"``, the default kind."""

    source: str = Field(default="", description="Source of the measurements.")
    router: StudyRouter
    load: LoadNote = LoadNote()
    measurements: Measurements
    evaluate: Evaluation = Evaluation()
    scenario: tuple[Scenario, ...] = ()
    criteria: Criteria = Criteria()

    def groups(self) -> Sequence[Group]:
        """Return the groups of values that the study compares."""
        groups = [
            Group(name="points that calibrate", values=self.measurements.calibrate, calibrates="the law's parameters")
        ]
        if self.measurements.validate_with != self.measurements.calibrate:
            groups.append(Group(name="held-out points", values=self.measurements.validate_with))
        stated = sum(len(scenario.flows_for_links) for scenario in self.scenario)
        return [*groups, *counted_group(STATEMENTS, (stated, "number of flows"))]

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions in the document, and the missing files."""
        from routecast.calibration.priors import sources  # NumPy

        tables, left_out = self.measurements, self.measurements.left_out
        files = {"measurements.calibrate": tables.calibrate, "measurements.validate": tables.validate_with}
        problems = [*missing_files(folder, files)]
        if left_out and left_out not in sources():
            problems.append(Problem("measurements.left_out", did_you_mean(left_out, sources())))
        problems += repeated_name_problems("scenario", self.scenario, "names its files")
        for number, scenario in enumerate(self.scenario):
            if scenario.count > _MAX_PREDICTIONS:
                message = f"has {scenario.count:,} combinations: at most {_MAX_PREDICTIONS:,}; give fewer values"
                problems.append(Problem(f"scenario[{number}]", message))
            for index, stated in enumerate(scenario.flows_for_links):
                problems += stated.quotation_problems(f"scenario[{number}].flows_for_links[{index}]")
        return problems
