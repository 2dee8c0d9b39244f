"""Trial: the result of an evaluator for one load during one duration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from routecast.evaluate.plain import plain
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    import polars

__all__ = [
    "BURSTS_LEFT_OUT",
    "BY_CHANCE",
    "NO_LOSS_RATIO",
    "TIE",
    "Bottleneck",
    "Delay",
    "FlowOutcome",
    "Moment",
    "Resource",
    "TaskActivity",
    "Trial",
    "TrialPower",
]


_UNKNOWN = float("nan")
BY_CHANCE = "by chance"
BURSTS_LEFT_OUT = "the losses of such bursts are left out"
"""Part of the note of a trial whose closed form states a loss without that of bursts."""
NO_LOSS_RATIO = 1e-4
"""Greatest loss of a closed form that counts as none."""
"""Place of the frames that the closed form takes as lost between the bounds of a loss by chance."""
_MAX_NAMED_OTHERS = 3
TIE = 2e-3
"""Resources whose shares of time, or capacities, differ by less count as equally full."""


@value
class Resource:
    """One resource in a trial."""

    name: str = field('Pool, or port with its direction ("port 1 out")')
    kind: Literal["pool", "task", "link"] = field("Kind of the resource")
    utilisation_ratio: float = field("Busy time over (units x time), 0 to 1")
    # As if no other resource limited, and never less than the router forwards.
    capacity_pps: float = field(
        "Frames of this load that it could carry alone; NaN where the evaluator does not know, frames/s",
        default=_UNKNOWN,
    )
    # 0 for the bottleneck, 1 where twice as much would pass.
    margin_ratio: float = field("capacity_pps / least capacity_pps − 1; NaN where unknown", default=_UNKNOWN)


@value
class Bottleneck:
    """The limiting resource, or the one that would limit first, with the reason."""

    name: str
    kind: Literal["pool", "task", "link", "load"]
    reason: str
    others: tuple[str, ...] = field(
        "Resources that may limit instead: equally full within the evaluator's precision, or queues of unknown loss",
        default=(),
    )

    @property
    def words(self) -> str:
        """Name, reason and possible other limits, as a sentence without its full stop."""
        unnamed = [f'"{name}"' for name in self.others if f'"{name}"' not in self.reason]
        more = len(unnamed) - _MAX_NAMED_OTHERS
        names = unnamed[:_MAX_NAMED_OTHERS] + ([f"{more} more"] if more > 0 else [])
        instead = f"; it may be {', '.join(names)} instead" if names else ""
        return f"{self.name} {self.reason}{instead}"

    def differs_from(self, other: Bottleneck) -> bool:
        """Whether two evaluators contradict each other: neither names the resource of the other."""
        return self.name not in {other.name, *other.others} and other.name not in self.others


@value
class Delay:
    """Distribution of a time: mean and percentiles, s; NaN where unknown.

    ``method`` names the source of the figures, e.g. ``"HDR histogram of 81,233 frames"`` or ``"M/D/1"``.
    """

    mean_s: float
    min_s: float = _UNKNOWN
    p50_s: float = _UNKNOWN
    p90_s: float = _UNKNOWN
    p99_s: float = _UNKNOWN
    p999_s: float = _UNKNOWN
    max_s: float = _UNKNOWN
    method: str = ""
    hdr_base64: str = ""


@value
class TaskActivity:
    """Activity of a task unit per second: the inside view of Bolla 2009, fig. 6. NaN: unknown."""

    name: str
    # With interrupts, without spinning.
    busy_ratio: float = field("Time at work over (units that it may hold x time)")
    interrupts_per_s: float = field("Interrupts taken", default=_UNKNOWN)
    polls_per_s: float = field("Polls that found frames", default=_UNKNOWN)
    # :attr:`routecast.router.model.Route.copies`.
    copies_per_s: float = field("Copies of frames served", default=_UNKNOWN)
    copies_lost_per_s: float = field("Copies of frames dropped", default=_UNKNOWN)


@value
class FlowOutcome:
    """Outcome of one flow."""

    number: int = field("Position of the flow in the load's flow set")
    offered_pps: float = field("Frames per second that the flow offers")
    forwarded_pps: float = field("Frames per second that the router forwards")
    loss_ratio: float = field("Frames dropped over frames offered; 0 where none was offered")


@value
class Moment:
    """Rates during one of the equal parts of a trial.

    They count the frames whose last bit came in, whose last bit left, or that were dropped during the part. In a
    measured trial they count the frames that were due to be sent, that arrived, or that were due and never arrived.
    """

    time_s: float = field("Start of the part, from the start of the trial, s")
    offered_pps: float
    forwarded_pps: float
    dropped_pps: float


@value
class TrialPower:
    """Power during a trial, and the energy of a frame and a bit (S11)."""

    mean_w: float = field("Mean power over the evaluated part of the trial, W")
    scope: str = field('Part of the machine that the power covers: "package", "server", "wall", "rapl:package", …')
    energy_j: float = field("mean_w times the duration of the trial, J")
    packet_j: float = field("Per forwarded frame, mean_w / forwarded_pps; NaN where nothing was forwarded, J")
    bit_j: float = field("Per forwarded bit, mean_w / l2_bps (S2), J")
    source: str = field("Source of the power: the pools of the model, or a meter")


@value
class Trial:
    """The result of an evaluator at a load. Rates are frames per second over all ports.

    Rates are those of RFC 2285: intended by the tester, put on the wire (offered), received back (forwarded). Frame
    counts cover the whole trial (S12: offered = forwarded + dropped + in flight) and are None for a closed form. A
    value that the evaluator does not compute, or that was not requested, is None, NaN or empty.
    """

    evaluator: str = field('"solve", "simulate", "measure"')
    duration_s: float = field("Length of the trial, s")
    intended_pps: float
    offered_pps: float
    forwarded_pps: float
    # NaN where the closed form knows no law for some queue; the forwarded rate is then an upper bound.
    loss_ratio: float = field("1 − forwarded/offered (S2); NaN where it is not known")
    l1_bps: float = field("Forwarded with the 20 bytes of wire overhead per frame (S2), bit/s")
    l2_bps: float = field("Forwarded without them, bit/s")
    bottleneck: Bottleneck
    # :attr:`routecast.load.arrivals.Arrivals.text`; latency and loss are those of these arrivals.
    arrivals: str = field("Arrival process of the load, in words; empty where it is not known", default="")
    resources: tuple[Resource, ...] = ()
    measured_s: float = field("Evaluated part of the duration, after the transient, s", default=_UNKNOWN)
    offered_frames: int | None = None
    forwarded_frames: int | None = None
    dropped_frames: int | None = None
    in_flight_frames: int | None = None
    drops_pps: Mapping[str, float] = field(
        "Loss by place, frames/s; the middle of a bounded loss is lost ``by chance``", default_factory=dict
    )
    latency: Delay | None = field("S9: last bit in to first bit out", default=None)
    waiting: Delay | None = field("Time in queues alone", default=None)
    # ``active``, ``idle``, a sleep state's name, ``waking``, ``base``.
    energy_j: Mapping[str, Mapping[str, float]] = field(
        "Energy by pool and state, where powers are given, J", default_factory=dict
    )
    power: TrialPower | None = field("Power; None without power states in the model and without a meter", default=None)
    activity: tuple[TaskActivity, ...] = field("Activity of each task unit", default=())
    flows: tuple[FlowOutcome, ...] = field("Outcome of each flow of the load", default=())
    over_time: tuple[Moment, ...] = field("Course of the trial, in equal parts of its complete time", default=())
    queue_frames: Mapping[str, float] = field(
        "Mean number of waiting frames by task unit or port", default_factory=dict
    )
    # Measured only (RFC 2544 sec. 10).
    duplicated_frames: int | None = field("Received more than once", default=None)
    reordered_frames: int | None = field(
        "Received after a frame with a higher sequence number of the same flow", default=None
    )
    corrupted_frames: int | None = field("Received with another content than sent", default=None)
    delay_variation: Delay | None = field(
        "RFC 5481 packet delay variation: latency minus the trial's least latency", default=None
    )
    first_loss_s: float = field(
        "Time at which the first lost frame was sent, from the start of the trial; NaN without loss, s",
        default=_UNKNOWN,
    )
    last_loss_s: float = field("Time at which the last lost frame was sent, likewise, s", default=_UNKNOWN)
    # Examples: the tester could not keep the rate, a link went down.
    invalid: tuple[str, ...] = field("Reasons why the trial is invalid; empty for a valid trial", default=())
    attempts: int = field("Number of runs until the trial was valid or given up", default=1)
    interval: Mapping[str, tuple[float, float]] = field(
        "95 % confidence intervals by field name (S10); for a closed form, the known error of its approximations",
        default_factory=dict,
    )
    notes: tuple[str, ...] = field("Notes: ranges of validity, corrections", default=())

    @property
    def is_valid(self) -> bool:
        """Whether the trial is valid."""
        return not self.invalid

    @property
    def min_loss_ratio(self) -> float:
        """The loss ratio; where the closed form only bounds it or does not know it, the loss by overload alone."""
        if self.evaluator == "solve" and self.offered_pps > 0.0:
            certain = (rate for place, rate in self.drops_pps.items() if place != BY_CHANCE)
            return min(math.fsum(certain) / self.offered_pps, 1.0)
        if not math.isnan(self.loss_ratio):
            return self.loss_ratio
        return max(1.0 - self.forwarded_pps / self.offered_pps, 0.0) if self.offered_pps > 0.0 else 0.0

    @property
    def known_loss_ratio(self) -> float:
        """The greatest loss ratio that is possible as far as is known; NaN where the closed form does not know it.

        Counted frames say it exactly. A closed form has the upper end of what it states, and none (0) where that is at
        most a frame in 10,000.
        """
        if self.evaluator != "solve":
            return self.min_loss_ratio
        if math.isnan(self.loss_ratio) or any(BURSTS_LEFT_OUT in note for note in self.notes):
            return math.nan
        _, most_ratio = self.interval.get("loss_ratio", (self.loss_ratio, self.loss_ratio))
        return 0.0 if most_ratio <= NO_LOSS_RATIO else most_ratio

    def __repr__(self) -> str:
        return f"Trial({', '.join(f'{name} {text}' for name, text in self._facts())})"

    def _repr_html_(self) -> str:
        from routecast.show.tables import Table, table_html  # imported only where a notebook shows a trial

        return table_html(Table.of_facts(self._facts(), name="trial", title=f"{self.evaluator}"))

    def _facts(self) -> list[tuple[str, str]]:
        """Return the most important facts, as names and texts."""
        from routecast.quantity import format_duration, format_pps, format_ratio

        known = [(name, getattr(self.latency, f"{name}_s")) for name in ("mean", "p50", "p99")] if self.latency else []
        times = ", ".join(f"{name} {format_duration(time_s)}" for name, time_s in known if math.isfinite(time_s))
        return [
            ("by", self.evaluator),
            ("offered", format_pps(self.offered_pps)),
            ("forwarded", format_pps(self.forwarded_pps)),
            ("loss", "not known" if math.isnan(self.loss_ratio) else format_ratio(self.loss_ratio)),
            *([("latency", f"{times} with {self.arrivals}" if self.arrivals else times)] if times else []),
            *([("invalid", "; ".join(self.invalid))] if self.invalid else []),
            ("limits", f"{self.bottleneck.name}, {self.bottleneck.reason}"),
        ]

    def to_polars(self) -> polars.DataFrame:
        """Return one row: rates, loss, counts of frames, latency in seconds, the limit; null where unknown."""
        import polars as pl

        scalars = {name: entry for name, entry in self.to_json().items() if isinstance(entry, str | int | float)}
        row: dict[str, object] = {**scalars, "limits": self.bottleneck.name}
        for part in ("latency", "waiting"):
            delay = getattr(self, part)
            for name in ("mean_s", "p50_s", "p99_s", "max_s"):
                row[f"{part}_{name}"] = plain(getattr(delay, name)) if delay is not None else None
        return pl.DataFrame([row])

    def to_json(self) -> dict[str, object]:
        """Return plain data for ``--json``: NaN becomes null, field names stay."""
        result = plain(self)
        assert isinstance(result, dict)
        return result
