"""Calibration of the maximum rate of a core over its clock: cycles scale with the clock, memory time does not.

A frame takes ``T(f) = n/f + m``: ``n`` cycles of the core, and ``m`` seconds of memory and buses, which do not
depend on the clock. The maximum rate ``1/T(f)`` then grows less than the clock, as in figs. 3 and 4 of Bolla 2009
("a tiny performance decay of other HW elements (i.e., RAM, busses, etc.) at high-speed"). In overload a forwarded
frame finds a full buffer of ``B`` frames before it, so that its latency is ``(B + 1)·T(f)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.errors import FitProblem
from routecast.quantity.schema import field, value

__all__ = ["FittedFrequency", "FrequencyLaw", "fit_frequency"]

PARAMETERS = 2


@value
class FrequencyLaw:
    """Time for a frame at a clock."""

    packet_cycles: float = field("``n``, cycles of the core for a frame")
    memory_s: float = field("``m``, seconds for a frame that the clock does not change")

    @classmethod
    def at(cls, *, frequency_hz: float, rate_pps: float, memory_ratio: float) -> FrequencyLaw:
        """Return the law for a maximum rate at a clock, and the share of memory in the time of a frame."""
        frame_s = 1.0 / rate_pps
        return cls(packet_cycles=(1.0 - memory_ratio) * frame_s * frequency_hz, memory_s=memory_ratio * frame_s)

    def frame_s(self, frequency_hz: float) -> float:
        """Return the time for a frame: ``n/f + m`` seconds."""
        return self.packet_cycles / frequency_hz + self.memory_s

    def rate_pps(self, frequency_hz: float) -> float:
        """Return the maximum rate, frames per second."""
        return 1.0 / self.frame_s(frequency_hz)

    def memory_ratio(self, frequency_hz: float) -> float:
        """Return the share of a frame's time that the clock does not change, 0..1."""
        return self.memory_s / self.frame_s(frequency_hz)

    def gain_ratio(self, frequency_hz: float) -> float:
        """Return the elasticity of the rate, ``d ln r / d ln f``: 1 is linear, less is sub-linear."""
        return 1.0 - self.memory_ratio(frequency_hz)

    def plateau_s(self, frequency_hz: float, buffer_frames: int) -> float:
        """Return the latency in overload: a full buffer, then the frame itself."""
        return (buffer_frames + 1) * self.frame_s(frequency_hz)


@value
class FittedFrequency:
    """A law fitted to measured maxima."""

    law: FrequencyLaw
    # Ends of the 95 % interval of each parameter (Student's t); NaN with two samples, which do not show the noise.
    low: FrequencyLaw
    high: FrequencyLaw = field("Upper ends of the 95 % intervals (Student's t)")
    misfit_ratio: float = field("Root mean square of the relative errors of the rates")


def fit_frequency(frequencies_hz: Sequence[float], rates_pps: Sequence[float], *, series: str = "") -> FittedFrequency:
    """Fit cycles and memory time of a frame to maximum rates at several clocks.

    Least squares of the relative errors, ``r_i·T(f_i) − 1``, so that clocks weigh equally; neither part is negative.

    Parameters
    ----------
    frequencies_hz : sequence of float
        Clocks of the core, at least two different ones.
    rates_pps : sequence of float
        Maximum rate at each, frames per second.
    series : str
        Name for messages.

    Raises
    ------
    routecast.errors.FitProblem
        A value is not a finite number > 0, the lengths differ, or all clocks are the same.

    Examples
    --------
    >>> truth = FrequencyLaw(packet_cycles=2400, memory_s=0.2e-6)
    >>> clocks_hz = (1.5e9, 2e9, 3e9)
    >>> found = fit_frequency(clocks_hz, [truth.rate_pps(clock) for clock in clocks_hz])
    >>> round(found.law.packet_cycles), round(found.law.memory_s * 1e9)
    (2400, 200)
    """
    import numpy as np
    from scipy.optimize import nnls
    from scipy.stats import t

    _check(frequencies_hz, rates_pps, series)
    clocks, rates = np.asarray(frequencies_hz, dtype=float), np.asarray(rates_pps, dtype=float)
    scale = float(clocks.max())  # both columns are of the same order: seconds at the fastest clock
    design = np.column_stack([rates * scale / clocks, rates]) / float(rates.max())
    solution, length = nnls(design, np.ones(len(clocks)))
    degrees_of_freedom = len(clocks) - PARAMETERS
    per_scale = np.array([scale, 1.0]) / float(rates.max())
    if degrees_of_freedom > 0:
        covariance = np.linalg.inv(design.T @ design) * float(length) ** 2 / degrees_of_freedom
        widths = float(t.ppf(0.975, degrees_of_freedom)) * np.sqrt(np.diag(covariance))
    else:
        widths = np.full(PARAMETERS, np.nan)
    ends = (solution * per_scale, np.maximum(solution - widths, 0.0) * per_scale, (solution + widths) * per_scale)
    law, low, high = (FrequencyLaw(packet_cycles=float(cycles), memory_s=float(memory_s)) for cycles, memory_s in ends)
    return FittedFrequency(law=law, low=low, high=high, misfit_ratio=float(length) / math.sqrt(len(clocks)))


def _check(frequencies_hz: Sequence[float], rates_pps: Sequence[float], series: str) -> None:
    if len(frequencies_hz) != len(rates_pps):
        message = f"{len(frequencies_hz)} clocks and {len(rates_pps)} rates: give one rate for each clock"
        raise FitProblem(series, message)
    for number, (clock, rate) in enumerate(zip(frequencies_hz, rates_pps, strict=True), start=1):
        for name, amount in (("clock", clock), ("rate", rate)):
            if not (math.isfinite(amount) and amount > 0.0):
                raise FitProblem(series, f"sample {number}: got a {name} of {amount}: it must be a finite number > 0")
    if len(set(frequencies_hz)) < PARAMETERS:
        message = "all samples are at one clock: measure at a second one too, to separate cycles from memory time"
        raise FitProblem(series, message)
