"""What a cluster file (``*.cluster.toml``) may say: traffic, groups of machines, what to plan, how to save."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from routecast.errors import QuantityProblem
from routecast.quantity.fields import (
    BitRate,
    Count,
    Duration,
    Energy,
    FileModel,
    Number,
    Power,
    Span,
    parsed_by,
)

__all__ = ["ClusterFile", "GroupTable", "PlanTable", "SavingTable", "TrafficTable", "parse_day"]

_QUANTILE = re.compile(r"quantile\s+(?P<share>[01]?\.\d+|[01])")


def parse_day(text: object) -> str:
    """Check which day is planned for: ``"mean"``, ``"quantile 0.95"`` or ``"all"``.

    Raises
    ------
    QuantityProblem
        It is none of these.
    """
    if isinstance(text, str) and (text in ("mean", "all") or _share(text) is not None):
        return text
    raise QuantityProblem(str(text), f'got {text!r}: wanted "mean", "quantile 0.95" (0 to 1) or "all"')


def _share(text: str) -> float | None:
    match = _QUANTILE.fullmatch(text.strip())
    share = float(match["share"]) if match else 2.0
    return share if share <= 1.0 else None


Day = Annotated[str, parsed_by(parse_day)]
Price = Annotated[Number, Field(ge=0.0)]
Share = Annotated[Number, Field(ge=0.0, le=10.0)]
Machines = Annotated[Count, Field(ge=0, le=10_000)]


class TrafficTable(FileModel):
    """``[traffic]``: the load, a series of rates and what is made of it."""

    series: str = Field(
        description='Shipped series ("abilene", "geant"), or a CSV or Parquet file beside this one'
    )
    column: str | None = Field(
        default=None, description="Column of the values; needless if there is only one"
    )
    time_column: str | None = Field(default=None, description="Column of the times")
    unit: str | None = Field(
        default=None, description='Unit of the values where the header has none: "Mbit/s", "bit per step"'
    )
    gaps: Literal["refuse", "hold", "interpolate", "drop"] = Field(
        default="refuse", description="What to do with missing steps and negative values"
    )
    step: Duration = Field(default=3600.0, description="Length of a step of the plan")
    day: Day = Field(
        default="mean",
        description='Plan for the mean day, for a quantile over the days at each time of day, or for "all" steps',
    )
    peak: BitRate | None = Field(
        default=None,
        description='Scale the series so that the mean day (with day = "all": the series) has this highest step',
    )


class GroupTable(FileModel):
    """``[[group]]``: machines of one type."""

    name: Annotated[str, Field(min_length=1, max_length=60)] = Field(description="Name of the group")
    capacity: BitRate = Field(description="What one machine routes")
    power: Power = Field(description="What one draws at full load, 1e-6 to 1e9 W")
    price: Price = Field(description="What one costs, in the budget's currency: 0, or 1e-6 to 1e12")
    idle_power: Power | None = Field(
        default=None,
        description="What one draws switched on without load; rising linearly with load; absent: power at any load",
    )
    boot_time: Span = Field(default=0.0, description="From switching on until it routes, at most a day")
    boot_energy: Energy = Field(default=0.0, description="Energy of a boot beyond idle power, at most 1e12 J")
    available: Machines | None = Field(default=None, description="How many can be had; absent: any number")
    source: str = Field(default="", description="Where these figures come from")


class PlanTable(FileModel):
    """``[plan]``: what to plan."""

    budget: Price | None = Field(
        default=None, description="The most that the machines may cost; absent: no limit"
    )
    budgets: Annotated[tuple[Price, ...], Field(max_length=12)] = Field(
        default=(), description="Further budgets to compare with"
    )
    currency: Annotated[str, Field(max_length=8)] = Field(default="$", description="Of prices and budgets")
    spare: Annotated[Count, Field(ge=0, le=100)] = Field(
        default=0, description="Machines that may fail at any time without loss of capacity (N+1: 1)"
    )
    headroom: Share = Field(
        default=0.0, description="Part of the load by which the machines route more than it"
    )
    gap: Annotated[Number, Field(gt=0.0, lt=1.0)] = Field(
        default=0.001, description="Stop at this proven distance to the optimum"
    )
    seconds: Annotated[Number, Field(gt=0.0)] = Field(
        default=60.0, description="Stop after this many seconds"
    )


class SavingTable(FileModel):
    """``[saving]``: how machines are switched on-line, over the whole trace."""

    rule: Literal["worth", "fewest"] = Field(
        default="worth",
        description="Switch once it pays back, or as few as will do (the thesis' differential algorithm)",
    )
    knows: Literal["present", "past", "day before"] = Field(
        default="present", description="Load that the algorithm knows when it decides on a step"
    )
    headroom: Share = Field(default=0.0, description="Part by which machines route more than the known load")
    payback: Span = Field(
        default=40.0, description="A switching must save what the machine draws at full load in this time"
    )
    tolerance: Share = Field(
        default=0.028,
        description="On-line, worth: tune the payback to spend this part more energy than off-line; 0: it stays",
    )
    min_on: Span = Field(default=0.0, description="Least time from switching on to switching off")
    days: Annotated[Count, Field(ge=1, le=1000)] = Field(
        default=21,
        description="Days of the trace, from its first midnight, that the algorithms are compared over",
    )


class ClusterFile(FileModel):
    """A cluster file."""

    name: str = Field(default="", description="Name of the cluster; the file's stem if not given")
    source: str = Field(default="", description="Where the groups come from")
    traffic: TrafficTable
    group: Annotated[tuple[GroupTable, ...], Field(min_length=1, max_length=64)]
    plan: PlanTable = PlanTable()
    saving: SavingTable = SavingTable()
