"""Profiles: how exactly a benchmark is run, as data.

A profile is a TOML file of ``data/benchmark``; everything in which a run can differ from RFC 2544 stands in it as a
value, so that :mod:`routecast.benchmark.compliance` can compute what differs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from routecast.errors import FileProblem, Problem, QuantityProblem
from routecast.quantity import parse_frame_bytes
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Duration, Span
from routecast.quantity.file_model import FileModel
from routecast.quantity.shipped import shipped_files
from routecast.quantity.toml_file import parse_toml, validated

__all__ = [
    "BackToBackProfile",
    "FrameLossProfile",
    "GoalProfile",
    "LatencyProfile",
    "Profile",
    "RecoveryProfile",
    "ResetProfile",
    "StreamProfile",
    "ThroughputProfile",
    "TrialProfile",
    "read_profile",
    "shipped_profiles",
]


def _frame_bytes(text: Any) -> int:
    try:
        return parse_frame_bytes(text)
    except QuantityProblem as problem:
        raise PydanticCustomError("quantity", "{message}", {"message": problem.message}) from None


FrameSize = Annotated[int, BeforeValidator(_frame_bytes)]
Repeats = Annotated[int, Field(ge=1, le=10_000, strict=True)]
Share = Annotated[float, Field(gt=0.0, le=1.0, allow_inf_nan=False)]
LossRatio = Annotated[float, Field(ge=0.0, lt=1.0, allow_inf_nan=False)]


class _Table(FileModel):
    """A table of the file."""

    model_config = ConfigDict(str_strip_whitespace=True)


class TrialProfile(_Table):
    """``[trial]``: the phases of RFC 2544 sec. 23, and what happens to trials that are no result."""

    before: Span = Field(default=2.0, description="Wait after the learning frames (sec. 23 b).")
    residual: Span = Field(default=2.0, description="Wait for residual frames after the trial (sec. 23 d).")
    settle: Span = Field(default=5.0, description="Wait until the device has settled again (sec. 23 e).")
    attempts: Repeats = Field(default=3, description="How often an invalid trial is run before it is given up.")


class GoalProfile(_Table):
    """``[[throughput.goal]]``: one goal of the search, in the terms of RFC 9971 sec. 4.6.

    The RFC 2544 goal is one trial of the full length without loss: ``loss_ratio = 0``, ``exceed_ratio = 0``,
    ``final_trial = duration_sum = "60 s"`` (RFC 9971 sec. 4.10.1).
    """

    name: str = Field(min_length=1, max_length=40, description="How tables call the goal.")
    loss_ratio: LossRatio = Field(default=0.0, description="Loss that a good trial may have.")
    exceed_ratio: LossRatio = Field(
        default=0.0, description="Share of the trial time at a load that may be of bad trials."
    )
    width: Annotated[float, Field(gt=0.0, lt=0.5)] = Field(
        default=0.005, description="Goal width: distance of the bounds, relative to the upper one."
    )
    initial_trial: Duration = Field(default=1.0, description="Length of the first trials.")
    final_trial: Duration = Field(default=60.0, description="Length of the trials that decide.")
    duration_sum: Duration = Field(default=60.0, description="Trial time that decides about a load.")
    preceding_targets: Annotated[int, Field(ge=0, le=10, strict=True)] = Field(
        default=2, description="Coarser searches before the last (MLRsearch)."
    )

    @model_validator(mode="after")
    def _in_order(self) -> GoalProfile:
        if not self.initial_trial <= self.final_trial <= self.duration_sum:
            message = "a goal has initial_trial <= final_trial <= duration_sum"
            raise PydanticCustomError("goal", "{message}", {"message": message})
        if self.preceding_targets == 0 and self.initial_trial < self.duration_sum:
            message = "without preceding_targets the search has one length: initial_trial = duration_sum"
            raise PydanticCustomError("goal", "{message}", {"message": message})
        return self


class ThroughputProfile(_Table):
    """``[throughput]``: sec. 26.1."""

    search: Literal["mlrsearch", "binary"] = Field(
        default="mlrsearch", description="MLRsearch (RFC 9971) or plain binary search."
    )
    goal: Annotated[tuple[GoalProfile, ...], Field(min_length=1)]
    base_goal: str = Field(
        default="", description="The goal whose result the other procedures use; the first if not given."
    )
    repeats: Repeats = Field(default=1, description="How often the whole search is run; the mean is given.")
    verify_losses: Annotated[int, Field(ge=0, le=20, strict=True)] = Field(
        default=0,
        description="How often a trial with loss is run again, the best counts: loss verification, max(r) of TST009.",
    )
    verify_below: Share = Field(default=0.1, description="Greater loss is not verified: z of TST009.")
    slice: Span = Field(
        default=0.0, description="Longest single trial; longer ones are run in slices. 0: never sliced."
    )
    least: Share = Field(default=0.001, description="Least rate of the search, over the maximum rate.")

    @model_validator(mode="after")
    def _known_base(self) -> ThroughputProfile:
        names = [goal.name for goal in self.goal]
        if self.base_goal and self.base_goal not in names:
            message = f"base_goal {self.base_goal!r} is no goal: {did_you_mean(self.base_goal, names)}"
            raise PydanticCustomError("goal", "{message}", {"message": message})
        return self

    @property
    def base(self) -> GoalProfile:
        """The goal whose result the other procedures use."""
        return next((goal for goal in self.goal if goal.name == self.base_goal), self.goal[0])


class LatencyProfile(_Table):
    """``[latency]``: sec. 26.2; RFC 8219 sec. 7."""

    duration: Duration = Field(default=120.0, description="Length of a trial.")
    repeats: Repeats = Field(default=20, description="Trials; their average is reported.")
    rates: Annotated[tuple[Share, ...], Field(min_length=1)] = Field(
        default=(1.0,), description="Rates over the throughput; 1 is what sec. 26.2 asks for."
    )


class FrameLossProfile(_Table):
    """``[frame_loss]``: sec. 26.3."""

    duration: Duration = Field(default=60.0, description="Length of a trial.")
    step: Share = Field(default=0.1, description="Step of the rate, over the maximum rate; at most 0.1.")
    stop_after: Repeats = Field(default=2, description="Successive trials without loss that end the series.")


class BackToBackProfile(_Table):
    """``[back_to_back]``: sec. 26.4 as RFC 9004 has it."""

    repeats: Repeats = Field(default=50, description="Searches; their mean is reported.")
    longest: Duration = Field(default=30.0, description="Upper limit of a burst's send time, up to 30 s.")
    width: Annotated[float, Field(gt=0.0, lt=0.5)] = Field(
        default=0.005, description="Least step of the search, over the burst; at least one frame."
    )
    verify_losses: Annotated[int, Field(ge=0, le=20, strict=True)] = Field(
        default=2, description="How often a burst with loss is sent again: max(r) of TST009."
    )
    verify_below: Share = Field(default=0.1, description="Greater loss is not verified: z of TST009.")
    residual: Span = Field(default=2.0, description="Wait for residual frames; longer for deep buffers.")


class RecoveryProfile(_Table):
    """``[recovery]``: sec. 26.5."""

    overload: Annotated[float, Field(gt=1.0, le=10.0)] = Field(default=1.1, description="Overload over the throughput.")
    overload_duration: Duration = Field(default=60.0, description="Time at overload.")
    recovery: Share = Field(default=0.5, description="Rate after the cut, over the overload.")
    recovery_duration: Duration = Field(default=60.0, description="Time after the cut.")
    repeats: Repeats = Field(default=5, description="Trials; their mean is reported.")


class ResetProfile(_Table):
    """``[reset]``: sec. 26.6 as RFC 6201 has it."""

    before: Duration = Field(default=15.0, description="Time of traffic before the reset.")
    after: Duration = Field(default=60.0, description="Time of traffic after the reset; it must be up by then.")
    rate: Share = Field(default=1.0, description="Offered rate over the throughput.")
    repeats: Repeats = Field(default=3, description="Trials per kind of reset; their mean is reported.")
    kinds: tuple[str, ...] = Field(default=(), description="Kinds of reset; all that the device knows if empty.")


class StreamProfile(_Table):
    """``[[stream]]``: a kind of test stream that is run beside the first one."""

    protocol: Literal["IPv4", "IPv6"] = "IPv4"
    bidirectional: bool = Field(default=False, description="Sec. 14.")
    networks: Annotated[int, Field(ge=1, le=256, strict=True)] = Field(
        default=1, description="Destination networks; sec. 12 wants 1, then 256."
    )
    burst_frames: Annotated[int, Field(ge=1, le=100_000, strict=True)] = Field(
        default=1,
        description="Frames of a repeated burst; sec. 21 wants 16, 64, 256, 1024. 1 is a steady load.",
    )
    filters: Annotated[int, Field(ge=0, le=1000, strict=True)] = Field(
        default=0, description="Rules of the packet filter; sec. 11.4 wants 1, then 25."
    )


class Profile(_Table):
    """A whole profile."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
    title: str = Field(description="What the profile is for, in a line.")
    frames: Annotated[tuple[FrameSize, ...], Field(min_length=1)]
    procedures: tuple[str, ...] = Field(default=(), description="All six if empty.")
    trial: TrialProfile = TrialProfile()
    throughput: ThroughputProfile
    latency: LatencyProfile = LatencyProfile()
    frame_loss: FrameLossProfile = FrameLossProfile()
    back_to_back: BackToBackProfile = BackToBackProfile()
    recovery: RecoveryProfile = RecoveryProfile()
    reset: ResetProfile = ResetProfile()
    stream: Annotated[tuple[StreamProfile, ...], Field(min_length=1)] = (StreamProfile(),)


def shipped_profiles() -> tuple[str, ...]:
    """Names of the profiles that come with routecast."""
    return tuple(shipped_files("benchmark", ".toml"))


def read_profile(name_or_file: str | Path) -> Profile:
    """Read a shipped profile by its name, or a profile's file.

    Raises
    ------
    routecast.errors.FileProblem
        There is no such profile; or the file cannot be read, or says something wrong: each place is listed.
    """
    text, subject = _text_of(str(name_or_file))
    return validated(Profile, parse_toml(text, subject), subject)


def _text_of(name_or_file: str) -> tuple[str, str]:
    shipped = shipped_files("benchmark", ".toml")
    if name_or_file in shipped:
        return shipped[name_or_file].read_text(encoding="utf-8"), f"profile {name_or_file}"
    if name_or_file.endswith(".toml"):
        return read_text(Path(name_or_file), kind="profile"), name_or_file
    hint = did_you_mean(name_or_file, shipped)
    raise FileProblem(f"profile {name_or_file!r}", [Problem("", f"there is none; {hint}, or give a FILE.toml")])
