"""What a benchmark finds: one value per procedure, rows per stream and frame size, and all that a report must state.

Rates are frames per second over all ports together (RFC 2285), as everywhere in routecast; ``per_port_pps`` is the
rate of one port, which MLRsearch and the theoretical maximum of RFC 2544 sec. 20 speak of, and :class:`Setup` states
the factor between them (RFC 9971 asks for it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Literal

from routecast.evaluate.plain import plain
from routecast.evaluate.trial import Trial

__all__ = [
    "BackToBackResult",
    "BackToBackRow",
    "BenchmarkResult",
    "Compliance",
    "Deviation",
    "FrameLossResult",
    "FrameLossRow",
    "LatencyResult",
    "LatencyRow",
    "NotRun",
    "ProcedureName",
    "RecoveryResult",
    "RecoveryRow",
    "ResetResult",
    "ResetRow",
    "Setup",
    "Spread",
    "Stream",
    "ThroughputResult",
    "ThroughputRow",
    "TrialRecord",
]

ProcedureName = Literal["throughput", "latency", "frame_loss", "back_to_back", "recovery", "reset"]
"""The six procedures of RFC 2544 sec. 26, in its order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Repetitions of one figure: their mean, extremes and standard deviation; the raw values in order.

    The unit is that of the field which holds the spread. ``sd`` is NaN for fewer than two values.
    """

    values: tuple[float, ...]
    mean: float
    least: float
    most: float
    sd: float

    @classmethod
    def of(cls, values: tuple[float, ...]) -> Spread:
        """Summarise at least one value; none gives NaN throughout."""
        nan = float("nan")
        if not values:
            return cls(values=(), mean=nan, least=nan, most=nan, sd=nan)
        return cls(
            values=values,
            mean=fmean(values),
            least=min(values),
            most=max(values),
            sd=stdev(values) if len(values) > 1 else nan,
        )

    @property
    def repeats(self) -> int:
        """How many values there are."""
        return len(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One kind of test stream; rows name it by ``name``.

    Parameters
    ----------
    name : str
        ``"IPv4"``, ``"IPv6 bidirectional"``, ``"IPv4, 256 networks"``, ``"IPv4, 25 filters"``.
    protocol : {"IPv4", "IPv6"}
        UDP over it (RFC 2544 appendix C.2.6.4: UDP echo requests; RFC 4814 ports where there are several flows).
    bidirectional : bool
        RFC 2544 sec. 14: both ways at the same rate.
    networks : int
        Destination networks (sec. 12): 1, or 256.
    modifier : str
        Sec. 11: ``""`` for none, ``"1 filter"``, ``"25 filters"``.
    burst_frames : int
        Sec. 21: frames of a repeated burst at the least gap; 1 is a steady load.
    """

    name: str
    protocol: Literal["IPv4", "IPv6"] = "IPv4"
    bidirectional: bool = False
    networks: int = 1
    modifier: str = ""
    burst_frames: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What was tested, with what, over which media (RFC 2544 sec. 7 and 8; RFC 9971's statement of units).

    Parameters
    ----------
    evaluator : {"measure", "simulate", "solve"}
    device, tester : mapping of str to object
        Facts of the device under test (versions, exact configuration, what is disabled) and of the tester, plain data.
    device_title : str
        How the device is called in headings.
    link_bps : tuple of float
        Rate of each port's link.
    medium : str
        ``"Ethernet, 10 Gbit/s"``, with ``"virtual"`` where no cable is.
    frame_bytes : tuple of int
    streams : tuple of Stream
    frame_format : str
        In words (sec. 8 asks for it).
    load_unit : str
        Unit of loads and rates, and the factor between one port and all of them.
    """

    evaluator: str
    device: Mapping[str, object]
    tester: Mapping[str, object]
    device_title: str
    link_bps: tuple[float, ...]
    medium: str
    frame_bytes: tuple[int, ...]
    streams: tuple[Stream, ...]
    frame_format: str
    load_unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One way in which a run differs from the standard.

    Parameters
    ----------
    document : str
        ``"RFC 2544"``, ``"RFC 9004"``, ``"RFC 6201"``.
    section : str
        ``"24"``.
    requirement : {"MUST", "SHOULD"}
    wanted, done : str
        What the standard asks for, and what was done instead, each as a phrase.
    """

    document: str
    section: str
    requirement: Literal["MUST", "SHOULD"]
    wanted: str
    done: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compliance:
    """RFC 2544 sec. 5: all MUSTs make a run conditionally compliant, all SHOULDs as well unconditionally."""

    level: Literal["unconditional", "conditional", "not compliant"]
    statement: str
    deviations: tuple[Deviation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRun:
    """Something that the standard knows and that this run left out, with the reason."""

    section: str
    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputRow:
    """Sec. 26.1 for one stream, frame size and goal.

    Parameters
    ----------
    goal : str
        ``"RFC 2544"`` (no loss), ``"PDR 0.5 %"``, ``"TST009"``.
    loss_ratio : float
        Loss that the goal tolerates.
    throughput_pps : float
        Greatest rate that meets the goal, all ports together: the lower bound of the search; NaN if none was found.
        For a goal with loss it is the offered rate; ``conditional_pps`` is what was forwarded of it (RFC 9971
        "conditional throughput").
    theoretical_pps : float
        Sec. 20, all sending ports together.
    lower_pps, upper_pps : float
        Bounds at the end of the search; no upper bound (NaN) where the maximum rate itself met the goal.
    resolution_ratio : float
        Width at which the search stops, relative to the upper bound.
    outcome : {"found", "maximum", "below", "undetermined"}
        ``maximum``: the medium's maximum rate met the goal. ``below``: not even the least rate did. ``undetermined``:
        trials stayed invalid, ``reason`` says why.
    repeats_pps : Spread
        The results of all searches, where the search was repeated; ``throughput_pps`` is their mean.
    final_trial_s : float
        Length of the trials that decided.
    trials : int
        How many trials it took.
    """

    stream: str
    frame_bytes: int
    goal: str
    loss_ratio: float
    throughput_pps: float
    per_port_pps: float
    conditional_pps: float
    theoretical_pps: float
    lower_pps: float
    upper_pps: float
    resolution_ratio: float
    l1_bps: float
    l2_bps: float
    outcome: Literal["found", "maximum", "below", "undetermined"]
    reason: str = ""
    search: str = ""
    repeats_pps: Spread = field(default_factory=lambda: Spread.of(()))
    final_trial_s: float = float("nan")
    trials: int = 0

    @property
    def of_theoretical_ratio(self) -> float:
        """Throughput over the theoretical maximum."""
        return self.throughput_pps / self.theoretical_pps


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputResult:
    """Sec. 26.1. ``advertised`` is the single statement that the section allows to publish, per stream type."""

    rows: tuple[ThroughputRow, ...]
    advertised: tuple[str, ...] = ()
    search: str = ""
    section: str = "RFC 2544 sec. 26.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRow:
    """Sec. 26.2 for one stream and frame size, at the throughput of that size or a share of it.

    Parameters
    ----------
    rate_pps : float
        Offered rate, all ports.
    rate_ratio : float
        Share of the throughput: 1 is what sec. 26.2 asks for.
    latency_s : Spread
        One value per repetition; its mean is the figure that sec. 26.2 reports. Each value is the mean over all frames
        of a trial, or over the tagged ones.
    typical_s, worst_s : float
        RFC 8219 sec. 7.2: median over the repetitions of the median and of the 99.9th percentile.
    p1_s, p99_s : float
        Median over the repetitions (RFC 8219 sec. 7.2, optional); p1 is NaN where the evaluator gives none.
    pdv_s : float
        RFC 8219 sec. 7.3.1: median over the repetitions of (99.9th percentile − least).
    ipdv_s : tuple of three float
        RFC 8219 sec. 7.3.2: least, median and greatest inter-packet delay variation; NaN where nobody measures it.
    hdr_base64 : str
        HDR histogram of the repetition whose median is the median.
    loss_ratio : float
        Greatest loss among the repetitions.
    """

    stream: str
    frame_bytes: int
    rate_pps: float
    rate_ratio: float
    latency_s: Spread
    typical_s: float
    worst_s: float
    p1_s: float
    p99_s: float
    pdv_s: float
    ipdv_s: tuple[float, float, float]
    min_s: float
    max_s: float
    loss_ratio: float
    hdr_base64: str = ""
    outcome: Literal["found", "undetermined"] = "found"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyResult:
    """Sec. 26.2 and RFC 8219 sec. 7; ``definition`` is the RFC 1242 definition that sec. 26.2 wants stated."""

    rows: tuple[LatencyRow, ...]
    definition: str
    medium: str
    section: str = "RFC 2544 sec. 26.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLossRow:
    """Sec. 26.3, one point: loss at a share of the theoretical maximum rate of the frame size."""

    stream: str
    frame_bytes: int
    rate_ratio: float
    intended_pps: float
    offered_pps: float
    forwarded_pps: float
    loss_ratio: float
    theoretical_pps: float
    outcome: Literal["found", "undetermined"] = "found"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLossResult:
    """Sec. 26.3: from the maximum rate down in steps until two successive trials without loss."""

    rows: tuple[FrameLossRow, ...]
    step_ratio: float
    section: str = "RFC 2544 sec. 26.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBackRow:
    """Sec. 26.4 as RFC 9004 has it, for one stream and frame size.

    Parameters
    ----------
    burst_frames : Spread
        Longest burst at the maximum rate without loss, one value per repetition (a whole search each).
    implied_buffer_s : float
        RFC 9004 sec. 6.4: mean burst over the theoretical maximum rate.
    corrected_buffer_s : float
        Less what leaves meanwhile: implied − implied · throughput / theoretical.
    resolution_frames : int
        Least step of the search.
    longest_s : float
        Upper limit of the burst's send time.
    outcome : {"found", "limit", "skipped", "undetermined"}
        ``limit``: the longest burst was without loss. ``skipped``: the throughput is the theoretical maximum, where
        RFC 9004 sec. 5.2 asks for no test.
    """

    stream: str
    frame_bytes: int
    burst_frames: Spread
    throughput_pps: float
    theoretical_pps: float
    implied_buffer_s: float
    corrected_buffer_s: float
    resolution_frames: int
    longest_s: float
    outcome: Literal["found", "limit", "skipped", "undetermined"] = "found"
    reason: str = ""
    trials: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBackResult:
    """Sec. 26.4 (RFC 9004); ``algorithm`` states the search and its inputs, which sec. 6 of RFC 9004 wants reported."""

    rows: tuple[BackToBackRow, ...]
    algorithm: str
    section: str = "RFC 9004, RFC 2544 sec. 26.4"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRow:
    """Sec. 26.5 for one stream and frame size.

    Parameters
    ----------
    throughput_pps : float
        The rate used as throughput.
    overload_pps : float
        The lesser of 110 % of it and the medium's maximum.
    recovery_pps : float
        Half of the overload.
    recovery_s : Spread
        B − A: last lost frame (its time of sending) after the cut of the rate. At most 0 where the last loss came
        before the cut: the router recovers at once. (The RFC's "subtract B from A" would be negative.)
    overload_loss_ratio : float
        Greatest loss before the cut and after, over the whole trial; 0 means that the overload was none.
    """

    stream: str
    frame_bytes: int
    throughput_pps: float
    overload_pps: float
    recovery_pps: float
    recovery_s: Spread
    overload_loss_ratio: float
    outcome: Literal["found", "no overload", "undetermined"] = "found"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryResult:
    """Sec. 26.5."""

    rows: tuple[RecoveryRow, ...]
    section: str = "RFC 2544 sec. 26.5"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetRow:
    """RFC 6201 (replaces sec. 26.6) for one kind of reset.

    Parameters
    ----------
    kind : str
        ``"process"``, ``"system"``, ``"link"``, …
    section : str
        Of RFC 6201: ``"4.2.2"``.
    rate_pps : float
        Offered rate: the throughput of the smallest frame, without loss before the reset.
    lost_frames : Spread
    reset_s : Spread
        Frame-loss method: lost frames over the offered rate, one value per repetition.
    statement : str
        The one simple statement that RFC 6201 sec. 5 asks for.
    """

    stream: str
    kind: str
    section: str
    frame_bytes: int
    rate_pps: float
    l2_bps: float
    lost_frames: Spread
    reset_s: Spread
    statement: str = ""
    outcome: Literal["found", "undetermined"] = "found"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetResult:
    """RFC 6201; kinds that were left out are in :attr:`BenchmarkResult.not_run`."""

    rows: tuple[ResetRow, ...]
    method: str = "frame loss: lost frames over the offered rate (RFC 6201 sec. 1.3)"
    section: str = "RFC 6201, RFC 2544 sec. 26.6"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """One trial as it was run, in the order of the run; ``trials.parquet`` has a line for each.

    Parameters
    ----------
    number : int
        From 1.
    purpose : str
        What it was for: ``"search 1"``, ``"verify"``, ``"repeat 3"``.
    attempt : int
        1 for the first; an invalid trial is run again.
    """

    number: int
    procedure: str
    stream: str
    frame_bytes: int
    purpose: str
    attempt: int
    rate_pps: float
    trial: Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """Everything that one run found.

    Parameters
    ----------
    profile : mapping of str to object
        The profile's values as plain data, ``profile_name`` its name.
    throughput … reset : result or None
        None where the procedure was not asked for, or could not run: ``not_run`` says which.
    search_statements : tuple of str
        What RFC 9971 sec. 4.10 and its report duties want said of the searches: units, goal width, goals.
    trials : tuple of TrialRecord
    started_utc, elapsed_s : str, float
        ISO 8601; ``resumed_trials`` of the trials come from a run before that was interrupted.
    command : str
        How the run was started.
    versions : mapping of str to str
    """

    profile_name: str
    profile: Mapping[str, object]
    setup: Setup
    compliance: Compliance
    throughput: ThroughputResult | None = None
    latency: LatencyResult | None = None
    frame_loss: FrameLossResult | None = None
    back_to_back: BackToBackResult | None = None
    recovery: RecoveryResult | None = None
    reset: ResetResult | None = None
    not_run: tuple[NotRun, ...] = ()
    search_statements: tuple[str, ...] = ()
    trials: tuple[TrialRecord, ...] = ()
    resumed_trials: int = 0
    invalid_trials: int = 0
    started_utc: str = ""
    elapsed_s: float = float("nan")
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def procedures(self) -> tuple[str, ...]:
        """Names of the procedures that have a result, in the RFC's order."""
        names = ("throughput", "latency", "frame_loss", "back_to_back", "recovery", "reset")
        return tuple(name for name in names if getattr(self, name) is not None)

    def to_json(self) -> dict[str, object]:
        """Return plain data, the raw trials apart, which are in ``trials.parquet``: only their number is given."""
        document: dict[str, object] = {"schema": "routecast-benchmark/1"}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            document[name] = len(self.trials) if name == "trials" else plain(value)
        return document
