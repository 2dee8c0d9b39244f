"""A ``*.study.toml`` of ``kind = "functions"``: functions to estimate and to run on this host.

Each ``[[series]]`` is a grid of table sizes, frame sizes and traffics of a function in one direction. Every point is
estimated from the host's hardware file alone, and then run on this host. The measurements at the points of ``refine``
correct the costs of the operations, and the other points are compared with the refined estimates as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from routecast.errors import FileProblem, Problem, RoutecastError
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Duration
from routecast.quantity.file_model import FileModel
from routecast.study.document import FrameSize, Name, Ratio, Seed, StudyDocument
from routecast.study.prior_knowledge import Group, counted_group

__all__ = ["FunctionCriteria", "FunctionSeries", "FunctionStudy", "Host", "RefiningPoint", "Runs"]

Entries = Annotated[int, Field(ge=1, le=2**31, strict=True)]
Repeats = Annotated[int, Field(ge=1, le=1000, strict=True)]
Core = Annotated[int, Field(ge=0, le=4095, strict=True)]


class Host(FileModel):
    """``[host]``: the host whose costs of operations the estimates use."""

    hardware: str = Field(
        default="probe",
        description='"probe" measures this host first; "host" takes its file; or another hardware file.',
    )
    quick: bool = Field(default=False, description="Probe quickly: fewer sizes and repeats.")


class Runs(FileModel):
    """``[run]``: length, repeats, core and seed of the runs."""

    duration: Duration = Field(default=0.2, description="Length of a run.")
    repeats: Repeats = Field(default=3, description="Runs of each point; their median counts.")
    core: Core = Field(default=0, description="Core that runs the functions.")
    seed: Seed = Field(default=1, description="Seed of the traffic.")


class RefiningPoint(FileModel):
    """A size of the tables and a traffic; few flows show the operations alone, many flows the memory as well."""

    size: Name = Field(description="Name of a size of the tables.")
    traffic: str = Field(description="A traffic of the series.")


class FunctionSeries(FileModel):
    """``[[series]]``: a function at every combination of table sizes, frame sizes and traffics."""

    function: Name = Field(description="A function that can run on this host.")
    direction: str = Field(default="", description="Direction of the function; empty if it has a single direction.")
    tables: Annotated[dict[Name, dict[Name, Entries]], Field(min_length=1)] = Field(
        description='Name of a size ("small", "paper") -> entries of each table.'
    )
    frames: Annotated[tuple[FrameSize, ...], Field(min_length=1)] = Field(description="Frame sizes.")
    traffic: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        default=("uniform",), description='Traffics: "1", "10", "uniform", "zipf 1.1", …'
    )
    refine: Annotated[tuple[RefiningPoint, ...], Field(max_length=8)] = Field(
        default=(), description="Points at the first frame size whose measurements refine the estimate."
    )


class FunctionCriteria(FileModel):
    """``[criteria]``: bounds on the relative errors of the estimates."""

    estimate_median: Ratio | None = Field(default=None, description="Median, from the probe alone.")
    estimate_p90: Ratio | None = Field(default=None, description="90th percentile, from the probe alone.")
    refined_median: Ratio | None = Field(
        default=None, description="Median of the refined estimates, at the points that did not refine."
    )


class FunctionStudy(StudyDocument):
    """A whole ``*.study.toml`` of ``kind = "functions"``."""

    kind: Literal["functions"]
    host: Host = Host()
    run: Runs = Runs()
    series: Annotated[tuple[FunctionSeries, ...], Field(min_length=1)]
    criteria: FunctionCriteria = FunctionCriteria()

    def groups(self) -> Sequence[Group]:
        """Return the groups of values that the study compares."""
        points = sum(len(grid.tables) * len(grid.frames) * len(grid.traffic) for grid in self.series)
        refining = sum(len(grid.refine) for grid in self.series)
        refined = points - refining if refining else 0
        return [
            *counted_group("estimates from the probe", (points, "point")),
            *counted_group("points that refine", (refining, "point"), calibrates="the costs of the operations"),
            *counted_group("refined estimates", (refined, "point")),
        ]

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions in the document, and the unknown names."""
        del folder
        from routecast.function.catalogue import read_function
        from routecast.load.popularity import Popularity

        problems = []
        for number, series in enumerate(self.series):
            place = f"series[{number}]"
            try:
                function = read_function(series.function)
            except FileProblem as problem:
                problems.append(Problem(f"{place}.function", str(problem)))
                continue
            if not function.runs_as:
                message = f"{series.function!r} is only a model: name a function that also runs on this host"
                problems.append(Problem(f"{place}.function", message))
            directions = [direction.name for direction in function.directions]
            if series.direction not in directions and (series.direction or len(directions) > 1):
                message = f"got {series.direction!r}: {did_you_mean(series.direction, directions)}"
                problems.append(Problem(f"{place}.direction", message))
            names = {table.name for table in function.tables}
            for size, tables in series.tables.items():
                for table in sorted(set(tables) - names):
                    message = f"{series.function!r} has no such table; {did_you_mean(table, names)}"
                    problems.append(Problem(f"{place}.tables.{size}.{table}", message))
            for index, point in enumerate(series.refine):
                for name, got, allowed in (
                    ("size", point.size, series.tables),
                    ("traffic", point.traffic, series.traffic),
                ):
                    if got not in allowed:
                        message = f"got {got!r}: {did_you_mean(got, allowed)}"
                        problems.append(Problem(f"{place}.refine[{index}].{name}", message))
            for text in series.traffic:
                try:
                    Popularity.parse(text)
                except RoutecastError as problem:
                    problems.append(Problem(f"{place}.traffic", str(problem)))
        return problems
