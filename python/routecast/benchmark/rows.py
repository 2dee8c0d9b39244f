"""Rows of the procedures' tables: one per stream type and frame size, and point, goal or kind where there are several.

Rates are frames per second over all ports together (RFC 2285); ``per_port_pps`` is the rate of one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Literal

from routecast.evaluate.trial import TrialPower

__all__ = [
    "BackToBackRow",
    "FrameLossRow",
    "LatencyRow",
    "RecoveryRow",
    "ResetRow",
    "Spread",
    "ThroughputRow",
]


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
    power : TrialPower or None
        Watts in the longest and last valid trial at the throughput that met the goal; None where nothing was metered
        and the model has no power states.
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
    power: TrialPower | None = None

    @property
    def of_theoretical_ratio(self) -> float:
        """Throughput over the theoretical maximum."""
        return self.throughput_pps / self.theoretical_pps


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
