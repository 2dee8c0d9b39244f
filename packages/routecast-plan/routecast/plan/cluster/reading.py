"""Reads cluster files (``*.cluster.toml``): groups of machines, the day and the trace, and the rules of saving."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from routecast.errors import FileProblem, ModelProblem, Problem, QuantityProblem
from routecast.load.series import DAY_S, TrafficSeries
from routecast.plan.cluster.model import ClusterProblem, MachineGroup
from routecast.plan.cluster.saving import SavingRules
from routecast.plan.series.reading import read_series
from routecast.plan.series.shapes import mean_day, quantile_day, resampled, scaled_to_peak
from routecast.quantity.bounded_file import read_text
from routecast.quantity.fields import BitRate, Count, Duration, Number, Parsed, Percentage
from routecast.quantity.file_model import FileModel
from routecast.quantity.schema import extended, field, schema_of, value, without_file_fields
from routecast.quantity.toml_file import parse_toml, validated

__all__ = [
    "ClusterCase",
    "ClusterFile",
    "TrafficChange",
    "cluster_case",
    "cluster_schema",
    "parse_cluster",
    "read_cluster",
]


_QUANTILE = re.compile(r"quantile\s+(?P<share>[01]?\.\d+|[01]|(?P<percent>\d{1,3}(?:\.\d+)?)\s*%)")


def parse_day(text: object) -> str:
    """Return the day to plan for if it is valid: ``"mean"``, ``"quantile 0.95"``, ``"quantile 95 %"`` or ``"all"``."""
    if isinstance(text, str) and (text in ("mean", "all") or _share(text) is not None):
        return text
    raise QuantityProblem(str(text), f'got {text!r}: use "mean", "quantile 0.95" (0 to 1) or "all"')


def _share(text: str) -> float | None:
    match = _QUANTILE.fullmatch(text.strip())
    share = float(match["percent"]) / 100.0 if match and match["percent"] else float(match["share"]) if match else 2.0
    return share if share <= 1.0 else None


Day = Annotated[str, Parsed(parse_day)]
Price = Annotated[Number, Field(ge=0.0)]
Share = Annotated[Number, Field(ge=0.0, le=10.0), Percentage()]


class TrafficTable(FileModel):
    """``[traffic]``: a series of rates, and how the plan's load is derived from it."""

    series: str = Field(description='Shipped series ("abilene", "geant"), or a file beside this one')
    column: str | None = Field(default=None, description="Column of the values; absent: the only column")
    time_column: str | None = Field(default=None, description="Column of the times")
    unit: str | None = Field(
        default=None, description='Unit of the values where the header has none: "Mbit/s", "bit per step"'
    )
    gaps: Literal["refuse", "hold", "interpolate", "drop"] = Field(
        default="refuse", description="Treatment of missing steps and negative values"
    )
    step: Duration = Field(default=3600.0, description="Length of a step of the plan")
    day: Day = Field(
        default="mean",
        description='Day of the plan: the mean, a quantile over the days at each time of day, or "all" steps',
    )
    peak: BitRate | None = Field(
        default=None,
        description='Rate to which the highest step of the mean day (with day = "all": of the series) is scaled',
    )


class PlanTable(FileModel):
    """``[plan]``: budget, spares and limits of the search."""

    budget: Price | None = Field(default=None, description="Maximum price of all machines; absent: no limit")
    budgets: Annotated[tuple[Price, ...], Field(max_length=12)] = Field(
        default=(), description="Further budgets for comparison"
    )
    currency: Annotated[str, Field(max_length=8)] = Field(default="$", description="Currency of prices and budgets")
    spare: Annotated[Count, Field(ge=0, le=100)] = Field(
        default=0, description="Machines that may fail at any time without loss of capacity (N+1: 1)"
    )
    headroom: Share = Field(default=0.0, description="Spare capacity of the machines beyond the load, as a part of it")
    gap: Annotated[Number, Field(gt=0.0, lt=1.0)] = Field(
        default=0.001, description="Stop at this proven distance to the optimum"
    )
    seconds: Annotated[Number, Field(gt=0.0)] = Field(default=60.0, description="Stop after this many seconds")


_Days = Annotated[Count, Field(ge=1, le=1000)]
_DAYS = field("Days of the trace, from its first midnight, for the comparison of the algorithms", default=21)
SavingTable: Any = extended(SavingRules, [("days", _Days, _DAYS)])
"""``[saving]``: rules for switching machines, over the day and over the whole trace."""


class ClusterFile(FileModel):
    """A cluster file."""

    name: str = Field(default="", description="Name of the cluster; the file's stem if not given")
    source: str = Field(default="", description="Source of the groups")
    traffic: TrafficTable
    group: Annotated[tuple[MachineGroup, ...], Field(min_length=1, max_length=64)]
    plan: PlanTable = PlanTable()
    saving: SavingTable = SavingTable()


@value
class TrafficChange:
    """Values from the command line that replace those of ``[traffic]``; None keeps the value of the file."""

    series: str | None = None
    column: str | None = None
    unit: str | None = None
    gaps: str | None = None
    step_s: float | None = None
    day: str | None = None
    peak_bps: float | None = None


@value
class ClusterCase:
    """The content of a cluster file, with its traffic."""

    name: str
    problem: ClusterProblem = field("Problem of the plan, headroom included")
    day: TrafficSeries = field("Day of the plan, or the whole series, without headroom")
    mean: TrafficSeries | None = field("The mean day at the same scale if the plan is for a quantile, else None")
    trace: TrafficSeries | None = field(
        "Whole days of the series in its own steps, its highest step scaled to ``peak``; None where the series "
        "has no dates or less than a day"
    )
    rules: SavingRules
    budgets: tuple[float, ...] = field("Further budgets for comparison", default=())
    currency: str = "$"
    # The search for the best fleet stops at this distance to the optimum, or after this time.
    gap_ratio: float = 0.001
    seconds: float = 60.0
    headroom_ratio: float = field("Headroom of the plan", default=0.0)
    sources: tuple[str, ...] = field("Sources of the groups and of the traffic", default=())

    @property
    def repeats(self) -> bool:
        """Whether the plan is for a typical day, whose first step follows its last."""
        return self.day.start is None

    @property
    def days(self) -> float:
        """Days of the plan's horizon."""
        return self.problem.duration_s / DAY_S


def read_cluster(
    path: str | Path, *, budget: float | None = None, spare: int | None = None, change: TrafficChange | None = None
) -> ClusterCase:
    """Read a cluster file and its traffic.

    Parameters
    ----------
    path : str or Path
    budget : float, optional
    spare : int, optional
        Replace the values of the file.
    change : TrafficChange, optional
        Replaces values of ``[traffic]``. Another series also resets column, unit and gaps.

    Raises
    ------
    FileProblem
        The file or its series cannot be read or has errors; the exception lists them all with their places.
    """
    path = Path(path)
    return parse_cluster(
        read_text(path, kind="cluster file"),
        subject=str(path),
        folder=path.parent,
        budget=budget,
        spare=spare,
        change=change,
    )


def parse_cluster(
    text: str,
    *,
    subject: str = "cluster file",
    folder: Path | None = None,
    budget: float | None = None,
    spare: int | None = None,
    change: TrafficChange | None = None,
) -> ClusterCase:
    """Read a cluster from the text of its file, and its series from ``folder``."""
    file = validated(ClusterFile, parse_toml(text, subject), subject)
    return cluster_case(file, subject=subject, folder=folder, budget=budget, spare=spare, change=change)


def cluster_case(
    file: ClusterFile,
    *,
    subject: str = "cluster file",
    folder: Path | None = None,
    budget: float | None = None,
    spare: int | None = None,
    change: TrafficChange | None = None,
) -> ClusterCase:
    """Read the traffic of a validated cluster file, and return the case."""
    problems = _file_problems(file)
    if problems:
        raise FileProblem(subject, problems)
    traffic = _changed(file.traffic, change or TrafficChange())
    series = read_series(
        _path_of(traffic.series, folder, is_from_command=bool(change and change.series)),
        column=traffic.column,
        time_column=traffic.time_column,
        unit=traffic.unit,
        gaps=traffic.gaps,
    )
    try:
        day, mean = day_of(series, traffic)
        trace = whole_days(series, file.saving.days, traffic.peak) if series.start is not None else None
    except ModelProblem as problem:
        placed = [
            Problem(".".join(filter(None, ("traffic", fault.place))), fault.message) for fault in problem.problems
        ]
        raise FileProblem(subject, placed) from problem
    missing = sum(math.isnan(rate) for rate in day.l2_bps)
    if missing:
        message = f'{missing} steps of the plan have no sample: set gaps to "hold" or "interpolate"'
        raise FileProblem(subject, [Problem("traffic.gaps", message)])
    if trace is not None and any(math.isnan(rate) for rate in trace.l2_bps):
        trace = None  # the algorithms need a load for every step
    scale = 1.0 + file.plan.headroom
    return ClusterCase(
        name=file.name or Path(subject).name.removesuffix(".cluster.toml"),
        problem=ClusterProblem(
            groups=file.group,
            traffic_bps=tuple(scale * rate for rate in day.l2_bps),
            step_s=day.step_s,
            budget=file.plan.budget if budget is None else budget,
            spare=file.plan.spare if spare is None else spare,
        ),
        day=day,
        mean=mean,
        trace=trace,
        rules=without_file_fields(file.saving, SavingRules),
        budgets=file.plan.budgets,
        currency=file.plan.currency,
        gap_ratio=file.plan.gap,
        seconds=file.plan.seconds,
        headroom_ratio=file.plan.headroom,
        sources=tuple(dict.fromkeys(filter(None, (file.source, *(group.source for group in file.group))))),
    )


def cluster_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of cluster files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "routecast cluster file",
        "description": "A cluster of routers to plan: traffic, groups of machines, budget, and rules of saving.",
        **schema_of(ClusterFile),
    }


def day_of(series: TrafficSeries, traffic: TrafficTable) -> tuple[TrafficSeries, TrafficSeries | None]:
    """Return the day of the plan, and the mean day at the same scale if the plan is for a quantile."""
    if traffic.day == "all":
        steps = resampled(series, traffic.step)
        return (steps if traffic.peak is None else scaled_to_peak(steps, traffic.peak)), None
    mean = mean_day(series, traffic.step)
    scaled = mean if traffic.peak is None else scaled_to_peak(mean, traffic.peak)
    if traffic.day == "mean":
        return scaled, None
    factor = scaled.peak_bps / mean.peak_bps
    day = quantile_day(series, traffic.step, _share(traffic.day) or 0.0)
    note = f"scaled by {factor:.6g} as the mean day" if traffic.peak is not None else ""
    rates = tuple(rate * factor for rate in day.l2_bps)
    return replace(day, l2_bps=rates, notes=(*day.notes, *filter(None, (note,)))), scaled


def whole_days(series: TrafficSeries, days: int, peak_bps: float | None) -> TrafficSeries | None:
    """Return up to ``days`` whole days from the first midnight, scaled to ``peak_bps``; None without a whole day."""
    if series.start is None:
        return None
    midnight = series.start.replace(hour=0, minute=0, second=0, microsecond=0)
    start_s = (series.start - midnight) / timedelta(seconds=1)
    skipped = math.ceil((DAY_S - start_s) % DAY_S / series.step_s - 1e-9)
    steps_per_day = round(DAY_S / series.step_s)
    count = min((len(series.l2_bps) - skipped) // steps_per_day, days)
    if count < 1:
        return None
    rates = series.l2_bps[skipped : skipped + count * steps_per_day]
    whole = replace(
        series,
        l2_bps=rates,
        start=series.start + timedelta(seconds=skipped * series.step_s),
        clock_changes=(),
        notes=(*series.notes, f"{count} whole days"),
    )
    return whole if peak_bps is None else scaled_to_peak(whole, peak_bps)


def _changed(traffic: TrafficTable, change: TrafficChange) -> TrafficTable:
    data = traffic.model_dump()
    if change.series is not None:
        data |= {"column": None, "time_column": None, "unit": None, "gaps": "refuse"}
    replaced = {
        "series": change.series,
        "column": change.column,
        "unit": change.unit,
        "gaps": change.gaps,
        "day": change.day,
    }
    data |= {name: value for name, value in replaced.items() if value is not None}
    step_s, peak_bps = data.pop("step"), data.pop("peak")
    changed = validated(TrafficTable, data, "command line")
    return changed.model_copy(update={"step": change.step_s or step_s, "peak": change.peak_bps or peak_bps})


def _path_of(series: str, folder: Path | None, *, is_from_command: bool) -> str:
    """Return the path of a series: in the file's folder if it is there, unless it comes from the command line."""
    in_folder = (folder or Path()) / series
    return str(in_folder) if not is_from_command and in_folder.is_file() else series


def _file_problems(file: ClusterFile) -> list[Problem]:
    problems = []
    names: set[str] = set()
    for number, group in enumerate(file.group):
        if group.name in names:
            problems.append(Problem(f"group[{number}].name", f'"{group.name}" is taken by an earlier group'))
        names.add(group.name)
        if group.power_w <= 0.0:
            problems.append(Problem(f"group[{number}].power", "must be above 0 W"))
        if group.idle_w is not None and group.idle_w > group.power_w:
            message = f"{group.idle_w:g} W is more than at full load, {group.power_w:g} W"
            problems.append(Problem(f"group[{number}].idle_power", message))
    return problems
