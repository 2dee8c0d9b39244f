"""The tables of a ``*.study.toml`` of ``kind = "multistage"``: routers, and failures of their elements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from routecast.errors import Problem
from routecast.quantity.fields import Duration, FrameRate, Percentage
from routecast.quantity.file_model import FileModel
from routecast.study.document import (
    FrameSize,
    Name,
    Ratio,
    StudyDocument,
    missing_testbed_problems,
    repeated_name_problems,
)
from routecast.study.prior_knowledge import Group, counted_group

__all__ = ["FailureTable", "MultistageCriteria", "MultistageStudy", "RoutersTable", "TrialsTable"]

Routers = Annotated[int, Field(ge=1, le=64, strict=True)]
Flows = Annotated[int, Field(ge=1, le=4096, strict=True)]
Repeats = Annotated[int, Field(ge=1, le=1000, strict=True)]
Share = Annotated[float, Field(gt=0.0, lt=1.0, allow_inf_nan=False), Percentage()]

FailureKind = Literal["router-link", "router-hang", "routers-link", "routers-hang", "balancer-link", "balancer-hang"]

_MAX_FLOWS = 65_536
_MIN_ROUTERS = {"router": 2, "routers": 3, "balancer": 1}
"""Smallest number of back-end routers that leaves one to forward, by the elements that fail."""


class RoutersTable(FileModel):
    """``[routers]``: the routers of the study, by their number of equal back-end routers."""

    count: Annotated[tuple[Routers, ...], Field(min_length=1)] = Field(
        default=(1, 2, 4, 8), description="Numbers of back-end routers (BRs), one for each router."
    )
    cap: FrameRate = Field(description="Capacity of a BR, which XDP emulates by drops without delay.")
    flows: Flows = Field(default=512, description="Flows per BR in the trials of throughput and latency.")


class TrialsTable(FileModel):
    """``[trials]``: the measurements."""

    testbed: str = Field(
        default="namespaces", description='"namespaces", or a *.testbed.toml of that kind in the same folder.'
    )
    duration: Duration = Field(default=0.8, description="Length of a trial.")
    repeats: Repeats = Field(default=3, description="Trials of each point; their median is the measured value.")
    frame: FrameSize = Field(default=64, description="Frame size.", validate_default=False)
    overload: Annotated[float, Field(gt=1.0, le=10.0)] = Field(
        default=1.2, description="Load of the trials of throughput over the sum of caps."
    )
    latency_load: Share = Field(default=0.5, description="Load of the trials of latency over the sum of caps.")


class FailureTable(FileModel):
    """``[[failure]]``: a temporary failure of elements of a router under load."""

    name: Name = Field(description="Name of the failure and stem of its figure.")
    title: str = Field(description="The failure in words.")
    kind: FailureKind = Field(
        description="Elements that fail (one BR, two BRs at once, or the active load balancer), and the fault."
    )
    routers: Routers = Field(default=4, description="Number of BRs.")
    load: Share = Field(default=0.4, description="Load over the sum of caps; the remaining BRs must carry all of it.")
    flows: Flows = Field(default=32, description="Flows per BR; each flow sends a frame within the detection time.")
    at: Duration = Field(default=0.25, description="Time of the failure from the start of the trial.")
    away: Duration = Field(default=0.3, description="Time from the failure to the repair.")

    @property
    def elements(self) -> str:
        """The elements that fail: ``router``, ``routers`` or ``balancer``."""
        return self.kind.partition("-")[0]


class MultistageCriteria(FileModel):
    """``[criteria]``: bounds on measured values and on errors of predictions."""

    sum_of_caps: Ratio | None = Field(
        default=None, description="Largest distance of a throughput from the sum of caps."
    )
    throughput: Ratio | None = Field(default=None, description="Largest error of a predicted throughput.")
    latency_median: Ratio | None = Field(default=None, description="Median error of predicted median latencies.")
    loss: Ratio | None = Field(
        default=None,
        description="Largest error of the predicted loss by the death of a BR; 0 within 2 ms of the predicted time.",
    )
    takeover: Duration | None = Field(
        default=None, description="Longest time without forwarding after the death of the active load balancer."
    )


class MultistageStudy(StudyDocument):
    """A whole ``*.study.toml`` of ``kind = "multistage"``."""

    kind: Literal["multistage"]
    routers: RoutersTable
    trials: TrialsTable = TrialsTable()
    failure: tuple[FailureTable, ...] = ()
    criteria: MultistageCriteria = MultistageCriteria()

    def groups(self) -> Sequence[Group]:
        """Return the groups of compared values."""
        routers = (len(self.routers.count), "router")
        return [
            *counted_group("throughput", routers),
            *counted_group("latency without a cap", (1, "point"), calibrates="the latency of a router without a cap"),
            *counted_group("latency", routers),
            *counted_group("failures", (len(self.failure), "failure")),
        ]

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions in the document and with the files that it names."""
        problems = [*missing_testbed_problems("trials.testbed", folder, self.trials.testbed)]
        for number, count in enumerate(self.routers.count):
            if count in self.routers.count[:number]:
                problems.append(Problem(f"routers.count[{number}]", f"{count} is listed twice"))
            problems += _flow_problems(f"routers.count[{number}]", count * self.routers.flows)
        problems += repeated_name_problems("failure", self.failure, "names its figure")
        for number, failure in enumerate(self.failure):
            place = f"failure[{number}]"
            min_routers = _MIN_ROUTERS[failure.elements]
            if failure.routers < min_routers:
                message = f"{failure.routers} is below {min_routers}: no back-end router is left to forward"
                problems.append(Problem(f"{place}.routers", message))
            if failure.at >= self.trials.duration:
                problems.append(Problem(f"{place}.at", f"is not within the trial of {self.trials.duration:g} s"))
            problems += _flow_problems(place, failure.routers * failure.flows)
        return problems


def _flow_problems(place: str, flows: int) -> list[Problem]:
    if flows <= _MAX_FLOWS:
        return []
    return [Problem(place, f"has {flows:,} flows: the tester sends at most {_MAX_FLOWS:,}, so lower flows")]
