"""The form function: which share of a core's dynamic power a normalised throughput takes (Bolla et al. 2009, eq. 4).

::

    x │            ......***     power rises fast, then flattens where the core is never idle any more
      │      *****               (700 of 1040 kpps in fig. 6), though it forwards still more
      │  ***
      └────────────────────► t = r / r_max
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Annotated, Protocol, runtime_checkable

from routecast.errors import ModelProblem, Problem
from routecast.quantity.fields import Length, Number, Ratio
from routecast.quantity.schema import Kinds, field, value

__all__ = ["PUBLISHED_FORM", "Form", "FormFunction", "MonotoneForm", "PolynomialForm", "greatest_deviation"]

_GRID_STEPS = 1000


@runtime_checkable
class FormFunction(Protocol):
    """Share of the dynamic power, or of the time that a core is active (eq. 8), over normalised throughput."""

    def at(self, t: float) -> float:
        """Return the share x(t), 0..1, at a throughput of ``t`` times r_max."""
        ...


@value
class PolynomialForm:
    """A polynomial x(t) = sum of a_i t^i, neither monotone nor within 0..1 in general."""

    coefficients: Annotated[tuple[Number, ...], Length(1, 33)] = field("a_0, a_1, …")
    clamped: bool = field("limit x(t) to 0..1", default=False)
    source: str = field("source of the coefficients", default="")

    def at(self, t: float) -> float:
        """Return x(t), by Horner's rule."""
        x = 0.0
        for coefficient in reversed(self.coefficients):
            x = x * t + coefficient
        return min(max(x, 0.0), 1.0) if self.clamped else x


@value
class MonotoneForm:
    """A cubic B-spline on 0..1 whose coefficients rise from 0 to 1: it never falls and never leaves 0..1.

    A B-spline with clamped knots is at every point a mean of its coefficients, so it stays between the least and the
    greatest; its slope is a mean of their differences, so it does not fall (de Boor, A Practical Guide to Splines,
    ch. XI). The bounds hold between the samples too.
    """

    knots: Annotated[tuple[Ratio, ...], Length(8, 200)] = field("four times 0, rising, four times 1")
    coefficients: Annotated[tuple[Ratio, ...], Length(4, 196)] = field(
        "from 0 to 1, never falling, four fewer than knots"
    )
    source: str = field("source of the coefficients", default="")

    def __post_init__(self) -> None:
        problems = []
        k, c = self.knots, self.coefficients
        if len(k) != len(c) + 4 or len(c) < 4:
            message = f"got {len(k)} knots and {len(c)} coefficients: four knots more than coefficients"
            problems.append(Problem("knots", message))
        elif k[:4] != (0.0,) * 4 or k[-4:] != (1.0,) * 4 or any(a >= b for a, b in pairwise(k[3:-3])):
            problems.append(Problem("knots", "must be four times 0, rising in between, and four times 1"))
        if any(a > b for a, b in pairwise(c)) or not c or (c[0], c[-1]) != (0.0, 1.0):
            problems.append(Problem("coefficients", "must begin with 0, never fall, and end with 1"))
        if problems:
            raise ModelProblem("form function", problems)

    def at(self, t: float) -> float:
        """Return x(t), by de Boor's recursion; beyond 0..1 the value at the nearer end."""
        knots, count = self.knots, len(self.coefficients)
        t = min(max(t, knots[3]), knots[count])
        span = min(max(bisect_right(knots, t) - 1, 3), count - 1)
        d = list(self.coefficients[span - 3 : span + 1])
        for level in range(1, 4):
            for j in range(3, level - 1, -1):
                low, high = knots[span - 3 + j], knots[span + 1 + j - level]
                share = (t - low) / (high - low)
                d[j] = (1.0 - share) * d[j - 1] + share * d[j]
        return min(max(d[3], 0.0), 1.0)


PUBLISHED_FORM = PolynomialForm(
    coefficients=(0.0, 0.470487, 15.0124, -89.8629, 223.074, -256.469, 130.477, -21.6999),
    source="Bolla, Bruschi, Ranieri: Green Support for PC-based Software Router (ICC 2009), eq. 4 and sec. V-A",
)
"""The published polynomial, fitted to seven machines. x(0) = 0, x(1) = 1.002, and x falls slightly above t = 0.83."""


Form = Annotated[
    FormFunction,
    Kinds(
        {"polynomial": PolynomialForm, "monotone": MonotoneForm},
        'is no form function: give "published", or a table whose kind is "polynomial" or "monotone"',
        known={"published": PUBLISHED_FORM},
    ),
]
"""A form function in the notation of files."""


def greatest_deviation(function: FormFunction, other: FormFunction) -> tuple[float, float]:
    """Return the greatest absolute difference of two form functions on 0..1, and the t at which it occurs.

    Examples
    --------
    >>> greatest_deviation(PolynomialForm(coefficients=(0.0, 1.0)), PolynomialForm(coefficients=(0.0, 0.0, 1.0)))
    (0.25, 0.5)
    """
    points = [number / _GRID_STEPS for number in range(_GRID_STEPS + 1)]
    gaps = [abs(function.at(t) - other.at(t)) for t in points]
    worst = max(range(len(points)), key=gaps.__getitem__)
    return gaps[worst], points[worst]
