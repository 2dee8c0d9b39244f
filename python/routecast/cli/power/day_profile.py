"""The series that the commands for watts take as the traffic of one day."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from routecast.load.series import TrafficSeries

__all__ = ["GapsChoice", "day_profile"]

_IN_FRAMES = ("pps", "frames/s", "packets/s")


class GapsChoice(StrEnum):
    """What to do with missing steps."""

    REFUSE = "refuse"
    HOLD = "hold"
    INTERPOLATE = "interpolate"
    DROP = "drop"


def day_profile(
    profile: str,
    *,
    peak: str | None,
    step: str | None,
    frame_bytes: float | None = None,
    column: str | None = None,
    unit: str | None = None,
    gaps: GapsChoice = GapsChoice.REFUSE,
) -> TrafficSeries:
    """Return a series as one day in steps; one that is longer is averaged by time of day.

    Parameters
    ----------
    profile : str
        A file, a shipped series, or ``synthetic``.
    peak : str or None
        The rate to scale the highest step to, in bits or, where ``frame_bytes`` is given, in frames.
    step : str or None
        The length of a step; that of the series where None.
    frame_bytes : float or None
        Mean size of the frames that a peak in frames counts, FCS included.
    column, unit, gaps
        As :func:`routecast.load.series.reading.read_series` takes them.

    Raises
    ------
    routecast.errors.RoutecastError
        The series, the peak or the step is none.
    """
    from routecast.load.series import DAY_S
    from routecast.load.series.reading import read_series
    from routecast.load.series.shapes import mean_day, resampled, scaled_to_peak, synthetic_day
    from routecast.quantity import parse_bit_rate_bps, parse_duration_s, parse_rate_pps

    peak_bps = None
    if peak is not None:
        peak_bps = (
            parse_rate_pps(peak) * 8.0 * frame_bytes
            if frame_bytes is not None and peak.strip().lower().endswith(_IN_FRAMES)
            else parse_bit_rate_bps(peak)
        )
    if profile == "synthetic":
        if peak_bps is None:
            raise QuantityProblem("", 'a synthetic day has no size of its own: give --peak, e.g. --peak "4 Gbit/s"')
        series = synthetic_day(mean_bps=peak_bps)
    else:
        series = read_series(profile, column=column, unit=unit, gaps=gaps.value)
    step_s = series.step_s if step is None else parse_duration_s(step)
    is_day = series.start is None and series.duration_s == DAY_S
    day = resampled(series, step_s) if is_day else mean_day(series, step_s)
    return day if peak_bps is None else scaled_to_peak(day, peak_bps)
