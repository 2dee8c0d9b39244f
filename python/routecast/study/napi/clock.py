"""A router at other clocks: its maximum rate and its latency, where a part of a frame's time is memory's."""

from __future__ import annotations

from dataclasses import dataclass

from routecast.calibrate.activation_costs import PollCosts
from routecast.calibrate.frequency import FittedFrequency, FrequencyLaw, fit_frequency
from routecast.study.napi.document import ClockPart
from routecast.study.napi.observed import Observed, observe

__all__ = ["ClockCurve", "ClockResult", "explain_clock"]

LOADS = 24
OVERLOAD = 1.2
"""The loads of a curve reach this much above the maximum at the fastest clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockCurve:
    """Latency against load at one clock, and the plateau that a full ring makes."""

    frequency_hz: float
    points: tuple[Observed, ...]
    plateau_s: float

    @property
    def maximum_pps(self) -> float:
        """Greatest forwarding rate seen."""
        return max(point.forwarded_pps for point in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockResult:
    """What the clock does.

    Parameters
    ----------
    part : ClockPart
    laws : tuple of FrequencyLaw
        One for each share of memory time; illustration.
    shown : FrequencyLaw
        The law whose latency was simulated.
    curves : tuple of ClockCurve
        Its latency, by clock.
    recovered : FittedFrequency
        The law fitted to the maxima that the simulator reached: it should be ``shown`` again.
    samples : tuple of (float, float)
        Measured clocks and maxima, if any; ``fitted`` is their law.
    """

    part: ClockPart
    laws: tuple[FrequencyLaw, ...]
    shown: FrequencyLaw
    curves: tuple[ClockCurve, ...]
    recovered: FittedFrequency
    samples: tuple[tuple[float, float], ...] = ()
    fitted: FittedFrequency | None = None


def explain_clock(
    part: ClockPart,
    costs: PollCosts,
    *,
    samples: tuple[tuple[float, float], ...],
    frames: int,
    seed: int,
) -> ClockResult:
    """Simulate a polling router at several clocks, and fit the law to what it reaches and to measured samples.

    Raises
    ------
    routecast.errors.FitProblem
        The samples cannot be fitted.
    """
    laws = tuple(
        FrequencyLaw.at(frequency_hz=part.frequency, rate_pps=costs.maximum_pps, memory_ratio=share)
        for share in part.memory
    )
    shown = laws[len(laws) // 2]
    most = OVERLOAD * max(shown.rate_pps(frequency) for frequency in part.frequencies)
    loads = [most * number / LOADS for number in range(1, LOADS + 1)]
    curves = []
    for frequency in part.frequencies:
        slower = shown.frame_s(frequency) / shown.frame_s(part.frequency)
        router = costs.router(slower=slower, ring_frames=part.ring)
        points = tuple(observe(router, rate, arrivals="cbr", frames=frames, seed=seed) for rate in loads)
        curves.append(
            ClockCurve(frequency_hz=frequency, points=points, plateau_s=shown.plateau_s(frequency, part.ring))
        )
    fitted = fit_frequency(*zip(*samples, strict=True), series="clock") if samples else None
    return ClockResult(
        part=part,
        laws=laws,
        shown=shown,
        curves=tuple(curves),
        recovered=fit_frequency(part.frequencies, [curve.maximum_pps for curve in curves], series="clock"),
        samples=samples,
        fitted=fitted,
    )
