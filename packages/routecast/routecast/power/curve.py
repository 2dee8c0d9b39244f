"""Power over load: linear, by a form function, or interpolated between measured loads."""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import Annotated, Literal

from routecast.errors import ModelProblem, Problem
from routecast.power.form import PUBLISHED_FORM, Form
from routecast.power.model import SCOPE, OperatingPoint
from routecast.quantity.fields import Length, Power, Ratio
from routecast.quantity.schema import field, value

__all__ = ["FormPower", "Interpolation", "LinearPower", "PiecewisePower"]


@value
class LinearPower:
    """P = P_idle + (P_full - P_idle) · load: the coarsest model. Servers draw more than that at half load."""

    idle_w: Power = field('power without load, such as "80 W"')
    full_w: Power = field('power at full load, such as "200 W"')
    scope: str = field(SCOPE, default="server")

    def __post_init__(self) -> None:
        if self.full_w < self.idle_w:
            raise ModelProblem("linear power model", [Problem("full_w", "must not be below idle")])

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power at the point's load."""
        return self.idle_w + (self.full_w - self.idle_w) * point.load_ratio


@value
class FormPower:
    """P = P_idle + (P_active - P_idle) · x(load): one core, one frequency (Bolla et al. 2009, eq. 5)."""

    idle_w: Power = field('power without load, such as "80 W"')
    active_w: Power = field('power of a core that is never idle, such as "200 W"')
    form: Form = field('"published", or a table', default=PUBLISHED_FORM)
    scope: str = field(SCOPE, default="server")

    def __post_init__(self) -> None:
        if self.active_w < self.idle_w:
            raise ModelProblem("power model", [Problem("active_w", "must not be below idle")])

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power at the point's load."""
        return self.idle_w + (self.active_w - self.idle_w) * self.form.at(point.load_ratio)


Interpolation = Literal["linear", "smooth"]


@value
class PiecewisePower:
    """Power interpolated between measured loads, and constant outside them.

    ``linear`` joins the points by straight lines. ``smooth`` is the shape-preserving cubic of Fritsch and Carlson
    (SIAM J. Numer. Anal. 17, 1980) with the slopes of Fritsch and Butland (1984), known as PCHIP: between two points
    it stays between their powers, so it does not overshoot, and it rises wherever the points rise.

    Raises
    ------
    routecast.errors.ModelProblem
        The loads do not rise, or loads and powers differ in number.
    """

    load_ratio: Annotated[tuple[Ratio, ...], Length(2, 1000)] = field("loads, 0..1, rising")
    power_w_at: Annotated[tuple[Power, ...], Length(2, 1000)] = field('power at each load, such as "80 W"', key="power")
    interpolation: Interpolation = field(
        "straight lines, or a smooth curve that preserves the shape of the points", default="smooth"
    )
    scope: str = field(SCOPE, default="server")

    def __post_init__(self) -> None:
        problems = []
        loads, powers = self.load_ratio, self.power_w_at
        if len(loads) < 2 or len(loads) != len(powers):
            got = f"got {len(loads)} loads and {len(powers)} powers"
            problems.append(Problem("load_ratio", f"{got}: give two or more loads, and a power for each"))
        if any(not a < b for a, b in pairwise(loads)):
            problems.append(Problem("load_ratio", f"got {list(loads)}: loads must rise"))
        if any(not 0.0 <= load <= 1.0 for load in loads):
            problems.append(Problem("load_ratio", f"got {list(loads)}: loads lie in 0..1"))
        if any(not (math.isfinite(power) and power >= 0.0) for power in powers):
            problems.append(Problem("power_w_at", f"got {list(powers)}: powers are watts, not negative"))
        if problems:
            raise ModelProblem("piecewise power model", problems)

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power at the point's load."""
        loads, powers = self.load_ratio, self.power_w_at
        load = min(max(point.load_ratio, loads[0]), loads[-1])
        i = min(bisect_right(loads, load) - 1, len(loads) - 2)
        width = loads[i + 1] - loads[i]
        s = (load - loads[i]) / width
        if self.interpolation == "linear":
            return powers[i] + s * (powers[i + 1] - powers[i])
        # Cubic Hermite basis: value and slope at both ends.
        return (
            (1 + 2 * s) * (1 - s) ** 2 * powers[i]
            + s * (1 - s) ** 2 * width * self._slope(i)
            + s**2 * (3 - 2 * s) * powers[i + 1]
            + s**2 * (s - 1) * width * self._slope(i + 1)
        )

    def _slope(self, i: int) -> float:
        """Return the slope at a point: 0 at an extremum, else the weighted harmonic mean of the two adjacent slopes."""
        x, y = self.load_ratio, self.power_w_at
        last = len(x) - 1
        if last == 1:
            return (y[1] - y[0]) / (x[1] - x[0])
        if i in (0, last):
            near, far = ((0, 1), (1, 2)) if i == 0 else ((last - 1, last), (last - 2, last - 1))
            return _end_slope(*_chord(x, y, *near), *_chord(x, y, *far))
        h0, d0 = _chord(x, y, i - 1, i)
        h1, d1 = _chord(x, y, i, i + 1)
        if d0 * d1 <= 0.0:
            return 0.0
        w0, w1 = 2 * h1 + h0, h1 + 2 * h0
        return (w0 + w1) / (w0 / d0 + w1 / d1)


def _chord(x: tuple[float, ...], y: tuple[float, ...], i: int, j: int) -> tuple[float, float]:
    """Return the width and the slope of the chord between two points."""
    return x[j] - x[i], (y[j] - y[i]) / (x[j] - x[i])


def _end_slope(h0: float, d0: float, h1: float, d1: float) -> float:
    """Return the three-point slope at an end, limited so that it preserves the shape."""
    slope = ((2 * h0 + h1) * d0 - h0 * d1) / (h0 + h1)
    if slope * d0 <= 0.0:
        return 0.0
    return 3.0 * d0 if d0 * d1 < 0.0 and abs(slope) > abs(3.0 * d0) else slope
