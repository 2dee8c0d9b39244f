"""Which factors matter, as values."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Screened", "Screening"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """How much one factor matters; intervals are bootstrap percentiles.

    Parameters
    ----------
    letter, name : str
    rank : int
        1 matters most.
    importance : float
        What the rank goes by: ``total_ratio`` where there is one, else ``first_order_ratio``, else ``|srrc|``.
    src, srrc : float or None
        Standardised regression coefficient of the values, and of their ranks: -1..1, the sign says the direction.
    srrc_low, srrc_high : float or None
    first_order_ratio : float or None
        Sobol's S_i: the share of the variance that this factor explains alone.
    first_order_low, first_order_high : float or None
    total_ratio : float or None
        Sobol's S_Ti: the share that it has a part in, with its interactions.
    total_low, total_high : float or None
    """

    letter: str
    name: str
    rank: int
    importance: float
    src: float | None = None
    srrc: float | None = None
    srrc_low: float | None = None
    srrc_high: float | None = None
    first_order_ratio: float | None = None
    first_order_low: float | None = None
    first_order_high: float | None = None
    total_ratio: float | None = None
    total_low: float | None = None
    total_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """Factors by how much they matter.

    Parameters
    ----------
    factors : tuple of Screened
        The most important first.
    method : str
        How the shares were found, in words.
    quality_ratio : float or None
        Q2: the share of the variance of left-out runs that the model behind the indices predicts.
    notes : tuple of str
    """

    factors: tuple[Screened, ...]
    method: str
    quality_ratio: float | None = None
    notes: tuple[str, ...] = ()
