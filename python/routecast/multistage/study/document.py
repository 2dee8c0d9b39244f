"""The tables of a ``*.study.toml`` of ``kind = "multistage"``: routers, and failures of their elements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from routecast.errors import Problem
from routecast.quantity.fields import Duration, FrameRate
from routecast.quantity.file_model import FileModel
from routecast.study.document import FrameSize, Name, Ratio, StudyDocument, missing_testbed, taken_names
from routecast.study.knew import Group, group_of

__all__ = ["FailureTable", "MultistageCriteria", "MultistageStudy", "RoutersTable", "TrialsTable"]

Routers = Annotated[int, Field(ge=1, le=64, strict=True)]
Flows = Annotated[int, Field(ge=1, le=4096, strict=True)]
Repeats = Annotated[int, Field(ge=1, le=1000, strict=True)]
Share = Annotated[float, Field(gt=0.0, lt=1.0, allow_inf_nan=False)]

FailureKind = Literal["router-link", "router-hang", "routers-link", "routers-hang", "balancer-link", "balancer-hang"]

_MAX_FLOWS = 65_536
_MIN_ROUTERS: dict[str, int] = {"router": 2, "routers": 3, "balancer": 1}
"""Back-end routers, so that another one is left."""


class RoutersTable(FileModel):
    """``[routers]``: the routers of the study, by their number of equal back-end routers."""

    count: Annotated[tuple[Routers, ...], Field(min_length=1)] = Field(
        default=(1, 2, 4, 8), description="Back-end routers (BRs) of each router that is made."
    )
    cap: FrameRate = Field(description="Capacity of a BR: an emulation by XDP, which drops and does not delay.")
    flows: Flows = Field(default=512, description="Flows for each BR, at throughput and latency.")


class TrialsTable(FileModel):
    """``[trials]``: the measurements."""

    testbed: str = Field(default="namespaces", description='"namespaces", or a *.testbed.toml of that kind beside it.')
    duration: Duration = Field(default=0.8, description="Length of a trial.")
    repeats: Repeats = Field(default=3, description="Trials of each point; their median is the measured value.")
    frame: FrameSize = Field(default=64, description="Frame size.", validate_default=False)
    overload: Annotated[float, Field(gt=1.0, le=10.0)] = Field(
        default=1.2, description="Load of the trials of throughput, over the sum of caps."
    )
    latency_load: Share = Field(default=0.5, description="Load of the trials of latency, over the sum of caps.")


class FailureTable(FileModel):
    """``[[failure]]``: elements of a router fail under load, stay away, and come back."""

    name: Name = Field(description="Name of the failure and stem of its figure.")
    title: str = Field(description="The failure in words.")
    kind: FailureKind = Field(
        description="Elements that fail (one BR, two at once, the active load balancer), and how."
    )
    routers: Routers = Field(default=4, description="BRs of the router.")
    load: Share = Field(default=0.4, description="Load over the sum of caps: the others have to carry it all.")
    flows: Flows = Field(default=32, description="Flows for each BR; all take a turn within the time to detect.")
    at: Duration = Field(default=0.25, description="When it fails, from the start of the trial.")
    away: Duration = Field(default=0.3, description="Time until it is back.")

    @property
    def of(self) -> str:
        """The elements that fail: ``router``, ``routers`` or ``balancer``."""
        return self.kind.partition("-")[0]

    @property
    def balancers(self) -> int:
        """Load balancers that the router needs."""
        return 2 if self.of == "balancer" else 1


class MultistageCriteria(FileModel):
    """``[criteria]``: bounds on measured values and on errors of predictions."""

    sum_of_caps: Ratio | None = Field(
        default=None, description="Largest distance of a throughput from the sum of caps."
    )
    throughput: Ratio | None = Field(default=None, description="Largest error of a predicted throughput.")
    latency_median: Ratio | None = Field(default=None, description="Median error of predicted median latencies.")
    loss: Ratio | None = Field(
        default=None,
        description="Largest error of the predicted loss of a BR's death; none where it is within 2 ms of the time.",
    )
    takeover: Duration | None = Field(
        default=None, description="Longest time without any router at the death of a load balancer."
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
            *group_of("throughput", routers),
            *group_of("latency without a cap", (1, "point"), calibrates="the time of a frame through a router"),
            *group_of("latency", routers),
            *group_of("failures", (len(self.failure), "failure")),
        ]

    def problems(self, folder: Path) -> list[Problem]:
        """Return the contradictions in the document, or with the files that it names."""
        problems = [*missing_testbed("trials.testbed", folder, self.trials.testbed)]
        for number, count in enumerate(self.routers.count):
            if count in self.routers.count[:number]:
                problems.append(Problem(f"routers.count[{number}]", f"{count} stands there twice"))
            problems += _too_many(f"routers.count[{number}]", count * self.routers.flows)
        problems += taken_names("failure", self.failure, "names its figure")
        for number, failure in enumerate(self.failure):
            place = f"failure[{number}]"
            least = _MIN_ROUTERS[failure.of]
            if failure.routers < least:
                what = f"{failure.routers} is below {least}: none is left to forward"
                problems.append(Problem(f"{place}.routers", what))
            if failure.at >= self.trials.duration:
                problems.append(Problem(f"{place}.at", "is not within the trial: trials.duration says how long it is"))
            problems += _too_many(place, failure.routers * failure.flows)
        return problems


def _too_many(place: str, flows: int) -> list[Problem]:
    if flows <= _MAX_FLOWS:
        return []
    return [Problem(place, f"has {flows:,} flows: the tester sends {_MAX_FLOWS:,} at most, so give each BR fewer")]
