"""The line of least hop flow H over the greatest link load b, from below by tangents and from above by routings.

Link prices w >= 0 prove, for every routing whose links carry at most b,

    H >= sum over flows of demand * (shortest way with links of length 1 + w)  -  b * sum of w,

because each flow pays at least its shortest way, and the links together take at most b * sum of w in prices. So a
tangent holds whatever the solver did to find its prices. H is convex; the power at b is b^2 H (eq. 6.4 with
b = 1/alpha). Along a line H = p - q b with q >= 0 it rises and then falls, hence between two points it is least at
one of them: the least power that the tangents allow is where two of them meet, or at an end of the range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Corner", "Frontier", "Point", "Tangent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tangent:
    """H >= level - slope * b for all b."""

    level: float
    slope: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A routing of hop flow ``hop_flow`` whose most loaded link carries ``load``."""

    load: float
    hop_flow: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """Where the tangents allow the least power.

    Attributes
    ----------
    load, hop_flow
        b and the least H that the tangents allow there.
    steeper, flatter
        Slopes of the tangents on its left and on its right; inf and 0 beyond the ends of the range.
    """

    load: float
    hop_flow: float
    steeper: float
    flatter: float

    @property
    def power(self) -> float:
        """b^2 H."""
        return self.load**2 * self.hop_flow


@dataclass(slots=True, kw_only=True)
class Frontier:
    """What is known of the line.

    Attributes
    ----------
    least, most
        Range of b.
    tangents
        Proven bounds from below.
    points
        Routings that were found.
    """

    least: float
    most: float
    tangents: list[Tangent] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)

    def lowest(self) -> Corner:
        """Return the corner where the tangents allow the least power."""
        level = np.array([tangent.level for tangent in self.tangents])
        slope = np.array([tangent.slope for tangent in self.tangents])
        with np.errstate(divide="ignore", invalid="ignore"):
            meet = (level[:, None] - level[None, :]) / (slope[:, None] - slope[None, :])
        inside = meet[(meet > self.least) & (meet < self.most)]
        loads = np.unique(np.concatenate([[self.least, self.most], inside]))
        lines = level[None, :] - loads[:, None] * slope[None, :]
        highest = lines.max(axis=1)
        where = int(np.argmin(loads**2 * highest))
        load, hop_flow = float(loads[where]), float(highest[where])
        # The tangents that hold just left and just right of it.
        there = slope[lines[where] >= hop_flow * (1.0 - 1e-12)]
        return Corner(
            load=load,
            hop_flow=hop_flow,
            steeper=math.inf if load == self.least else float(there.max()),
            flatter=0.0 if load == self.most else float(there.min()),
        )

    def next_slope(self, corner: Corner) -> float:
        """Return a slope whose tangent cuts the corner off, or whose point is the corner.

        Any slope between those of its two tangents is one. Between two known points it is that of the line through
        them, which makes the search end after as many steps as the line has corners.
        """
        natural = 2.0 * corner.hop_flow / corner.load
        left = [point for point in self.points if point.load < corner.load]
        right = [point for point in self.points if point.load > corner.load]
        if left and right:
            one = max(left, key=lambda point: point.load)
            other = min(right, key=lambda point: point.load)
            chord = (one.hop_flow - other.hop_flow) / (other.load - one.load)
            if corner.flatter < chord < corner.steeper:
                return chord
        if corner.load == self.least:
            return max(natural, 8.0 * corner.flatter)
        return min(max(natural, corner.flatter), corner.steeper)
