"""A response surface, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["LackOfFit", "Stationary", "Surface", "SurfaceTerm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceTerm:
    """A term of the polynomial in coded levels.

    Parameters
    ----------
    name : str
        ``"1"``, ``"A"``, ``"AB"``, ``"A^2"``.
    powers : tuple of int
        Of each factor.
    value : float
    standard_error, low, high, p_value : float or None
    """

    name: str
    powers: tuple[int, ...]
    value: float
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LackOfFit:
    """Whether the surface misses the means of repeated runs by more than their noise.

    Parameters
    ----------
    df, pure_df : int
    ss, pure_ss : float
    f, p_value : float or None
        None where the repetitions are identical.
    verdict : str
    """

    df: int
    pure_df: int
    ss: float
    pure_ss: float
    f: float | None
    p_value: float | None
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stationary:
    """Where the surface is flat, and what it is there: the canonical analysis.

    Parameters
    ----------
    coded : tuple of float
    response : float
    kind : {"maximum", "minimum", "saddle", "ridge"}
        "ridge": it hardly bends along at least one direction.
    eigenvalues : tuple of float
        Of the matrix of second-order terms, ascending: how fast the response bends along each axis.
    axes : tuple of tuple of float
        The directions that belong to them, in coded levels.
    is_inside : bool
        Whether it lies in the region that was tried.
    """

    coded: tuple[float, ...]
    response: float
    kind: Literal["maximum", "minimum", "saddle", "ridge"]
    eigenvalues: tuple[float, ...]
    axes: tuple[tuple[float, ...], ...]
    is_inside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A polynomial of first or second order in the coded levels.

    Parameters
    ----------
    order : int
    letters : tuple of str
    terms : tuple of SurfaceTerm
    r2_ratio, adjusted_r2_ratio, predicted_r2_ratio : float or None
    s_e : float or None
    error_df : int
    confidence : float
    inverse : tuple of tuple of float
        (X'X)^-1, in the order of the terms: what intervals of predictions need.
    lack_of_fit : LackOfFit or None
    stationary : Stationary or None
        Second order only.
    """

    order: int
    letters: tuple[str, ...]
    terms: tuple[SurfaceTerm, ...]
    r2_ratio: float | None
    adjusted_r2_ratio: float | None
    predicted_r2_ratio: float | None
    s_e: float | None
    error_df: int
    confidence: float
    inverse: tuple[tuple[float, ...], ...]
    lack_of_fit: LackOfFit | None = None
    stationary: Stationary | None = None

    def at(self, coded: tuple[float, ...]) -> float:
        """Return the response that the surface predicts at coded levels."""
        return sum(term.value * value for term, value in zip(self.terms, self._row(coded), strict=True))

    def interval(self, coded: tuple[float, ...], *, of_a_new_run: bool = False) -> tuple[float, float] | None:
        """Return the confidence interval of the mean response there, or of one more run; None without noise."""
        if self.s_e is None or self.error_df < 1:
            return None
        from scipy.stats import t as student

        row = self._row(coded)
        spread = sum(a * b * self.inverse[i][j] for i, a in enumerate(row) for j, b in enumerate(row)) + (
            1.0 if of_a_new_run else 0.0
        )
        half = float(student.ppf(0.5 + self.confidence / 2, self.error_df)) * self.s_e * spread**0.5
        centre = self.at(coded)
        return centre - half, centre + half

    def _row(self, coded: tuple[float, ...]) -> list[float]:
        row = []
        for term in self.terms:
            value = 1.0
            for level, power in zip(coded, term.powers, strict=True):
                value *= level**power
            row.append(value)
        return row
