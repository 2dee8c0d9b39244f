"""Trial: what an evaluator answers for one load during one duration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from routecast.evaluate.plain import plain

__all__ = ["Bottleneck", "Delay", "FlowOutcome", "Moment", "Resource", "TaskActivity", "Trial", "TrialPower"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource's part in a trial.

    Parameters
    ----------
    name : str
        Pool, or port with its direction (``"port 1 out"``).
    kind : {"pool", "task", "link"}
    utilisation_ratio : float
        Busy time over (units x time), 0..1.
    capacity_pps : float
        Frames per second of this load that the resource could carry alone, were nothing else in the way, and never
        less than the router forwards; NaN where the evaluator does not know it.
    margin_ratio : float
        ``capacity_pps / least capacity_pps − 1``: 0 for the bottleneck, 1 where twice as much would pass; NaN where
        unknown.
    """

    name: str
    kind: Literal["pool", "task", "link"]
    utilisation_ratio: float
    capacity_pps: float = float("nan")
    margin_ratio: float = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """The resource that limits, or would limit first, with the reason in words."""

    name: str
    kind: Literal["pool", "task", "link", "load"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """Distribution of a time: mean and percentiles in seconds; NaN where the evaluator does not know.

    ``method`` says where the figures come from, e.g. ``"HDR histogram of 81,233 frames"`` or ``"M/D/1"``.
    """

    mean_s: float
    min_s: float = float("nan")
    p50_s: float = float("nan")
    p90_s: float = float("nan")
    p99_s: float = float("nan")
    p999_s: float = float("nan")
    max_s: float = float("nan")
    method: str = ""
    hdr_base64: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskActivity:
    """What a task unit did, per second: the inside view of paper 003, fig. 6.

    Parameters
    ----------
    name : str
    busy_ratio : float
        Time at work, interrupts included and spinning not, over (units that it may hold x time).
    copies_per_s, copies_lost_per_s : float
        Copies of frames (:attr:`routecast.router.model.Route.copies`) served, and dropped; NaN where the evaluator
        does not know.
    interrupts_per_s, polls_per_s : float
        Interrupts taken and polls that found frames; NaN where the evaluator does not know.
    """

    name: str
    busy_ratio: float
    interrupts_per_s: float = float("nan")
    polls_per_s: float = float("nan")
    copies_per_s: float = float("nan")
    copies_lost_per_s: float = float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOutcome:
    """What became of one flow.

    Parameters
    ----------
    number : int
        Place of the flow in the load's flow set.
    offered_pps, forwarded_pps : float
        Frames per second.
    loss_ratio : float
        Frames dropped over frames offered; 0 where none was offered.
    """

    number: int
    offered_pps: float
    forwarded_pps: float
    loss_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Rates during one of the equal parts of a trial: how it went over time.

    Parameters
    ----------
    time_s : float
        When the part begins, in seconds from the start of the trial.
    offered_pps, forwarded_pps, dropped_pps : float
        Frames per second whose last bit came in, whose last bit left, or that were dropped, during the part. Of a
        measured trial: that were due to be sent, that arrived, or that were due and never arrived.
    """

    time_s: float
    offered_pps: float
    forwarded_pps: float
    dropped_pps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPower:
    """Watts during a trial, and what a frame and a bit cost (S11).

    Parameters
    ----------
    mean_w : float
        Mean power over the evaluated part of the trial.
    scope : str
        What the figure covers: ``"package"``, ``"server"``, ``"wall"``, ``"rapl:package"``, …
    energy_j : float
        ``mean_w`` times the duration of the trial.
    packet_j : float
        Joules per forwarded frame, ``mean_w / forwarded_pps``; NaN where nothing was forwarded.
    bit_j : float
        Joules per forwarded bit, ``mean_w / l2_bps`` (S2).
    source : str
        Where it comes from: the pools of the model, or a meter.
    """

    mean_w: float
    scope: str
    energy_j: float
    packet_j: float
    bit_j: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What happened, or would happen, at a load. Rates are frames per second over all ports.

    Parameters
    ----------
    evaluator : str
        ``"solve"``, ``"simulate"``, ``"measure"``.
    duration_s : float
        Length of the trial; ``measured_s`` of it was evaluated after the transient.
    intended_pps, offered_pps, forwarded_pps : float
        RFC 2285: intended by the tester, put on the wire, received back.
    offered_frames, forwarded_frames, dropped_frames, in_flight_frames : int or None
        Counts over the whole trial (S12: offered = forwarded + dropped + in flight); None for a closed form.
    loss_ratio : float
        ``1 − forwarded/offered`` (S2).
    l1_bps, l2_bps : float
        Forwarded bit rate with and without the 20 bytes of wire overhead per frame (S2).
    drops_pps : mapping of str to float
        Loss by place.
    latency, waiting : Delay or None
        S9 (last bit in to first bit out); time in queues alone.
    resources : tuple of Resource
    bottleneck : Bottleneck
    energy_j : mapping of str to mapping of str to float
        Joules by pool and state (``active``, ``idle``, a sleep state's name, ``waking``, ``base``), where powers are
        given.
    power : TrialPower or None
        Watts, joules per packet and per bit; None where the model has no power states and nothing was metered.
    activity : tuple of TaskActivity
        What each task unit did; empty where the evaluator does not look.
    flows : tuple of FlowOutcome
        What became of each flow of the load; empty where the evaluator did not count them apart.
    over_time : tuple of Moment
        How it went over time, in equal parts of the whole trial, none left out; empty where nobody asked.
    queue_frames : mapping of str to float
        Mean number of waiting frames by task unit or port.
    duplicated_frames, reordered_frames, corrupted_frames : int or None
        RFC 2544 sec. 10 as measured: received more than once; received after a frame with a higher sequence number
        of the same flow; received with another content than sent. None where the evaluator does not look.
    delay_variation : Delay or None
        RFC 5481 packet delay variation: latency minus the trial's least latency.
    first_loss_s, last_loss_s : float
        When the first and the last lost frame were sent, in seconds from the start of the trial; NaN without loss or
        where unknown.
    invalid : tuple of str
        Why this trial is no result (the tester could not keep the rate, a link went down); empty for a valid one.
    attempts : int
        How often the trial was run until it was valid or given up.
    interval : mapping of str to (float, float)
        95 % confidence intervals by field name (S10).
    notes : tuple of str
        What the reader must know: ranges of validity, corrections made.
    """

    evaluator: str
    duration_s: float
    intended_pps: float
    offered_pps: float
    forwarded_pps: float
    loss_ratio: float
    l1_bps: float
    l2_bps: float
    bottleneck: Bottleneck
    resources: tuple[Resource, ...] = ()
    measured_s: float = float("nan")
    offered_frames: int | None = None
    forwarded_frames: int | None = None
    dropped_frames: int | None = None
    in_flight_frames: int | None = None
    drops_pps: Mapping[str, float] = field(default_factory=dict)
    latency: Delay | None = None
    waiting: Delay | None = None
    energy_j: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    power: TrialPower | None = None
    activity: tuple[TaskActivity, ...] = ()
    flows: tuple[FlowOutcome, ...] = ()
    over_time: tuple[Moment, ...] = ()
    queue_frames: Mapping[str, float] = field(default_factory=dict)
    duplicated_frames: int | None = None
    reordered_frames: int | None = None
    corrupted_frames: int | None = None
    delay_variation: Delay | None = None
    first_loss_s: float = float("nan")
    last_loss_s: float = float("nan")
    invalid: tuple[str, ...] = ()
    attempts: int = 1
    interval: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether the trial is a result at all."""
        return not self.invalid

    def to_json(self) -> dict[str, object]:
        """Return plain data for ``--json``: NaN becomes null, field names stay."""
        result = plain(self)
        assert isinstance(result, dict)
        return result
