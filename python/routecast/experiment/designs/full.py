"""Full factorial designs: every combination of levels once, the first factor fastest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

__all__ = ["full", "multilevel"]


def full(factors: int) -> tuple[tuple[float, ...], ...]:
    """Return the 2^k combinations in standard (Yates) order.

    Parameters
    ----------
    factors : int
        How many factors, k.

    Returns
    -------
    tuple of tuple of float, shape (2^k, k)
        Coded levels, -1 and +1.

    Examples
    --------
    >>> full(2)
    ((-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0))
    """
    return multilevel([(-1.0, 1.0)] * factors)


def multilevel(levels: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Return every combination of the factors' coded levels, the first factor fastest.

    Examples
    --------
    >>> multilevel([(-1.0, 0.0, 1.0), (-1.0, 1.0)])[:4]
    ((-1.0, -1.0), (0.0, -1.0), (1.0, -1.0), (-1.0, 1.0))
    """
    return tuple(tuple(reversed(row)) for row in product(*reversed(levels)))
