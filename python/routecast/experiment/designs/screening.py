"""Designs for screening: the main effects of k factors in the next multiple of four runs above k.

R. L. Plackett and J. P. Burman, "The design of optimum multifactorial experiments", Biometrika 33(4), 1946: for a prime
q = 3 mod 4 the quadratic residues modulo q are the high levels of the first run, every further run is the one before
moved on by one factor, and a last run has all factors low. Their tables for 12, 20 and 24 runs are these. An
interaction of two factors is spread over the main effects of all others: it is assumed to be small.
"""

from __future__ import annotations

__all__ = ["SIZES", "plackett_burman"]

SIZES = (8, 12, 20, 24, 32, 44, 48)
"""Numbers of runs that are a prime q = 3 mod 4 plus 1."""


def plackett_burman(factors: int) -> tuple[tuple[float, ...], ...]:
    """Return the smallest such design for so many factors.

    Parameters
    ----------
    factors : int
        At most 47.

    Returns
    -------
    tuple of tuple of float, shape (runs, factors)
        Coded levels, -1 and +1.

    Raises
    ------
    ValueError
        There are more factors.

    Examples
    --------
    >>> "".join("+" if level > 0 else "-" for level in plackett_burman(11)[0])
    '++-+++---+-'
    """
    runs = next((one for one in SIZES if one > factors), None)
    if runs is None:
        raise ValueError(f"{factors} factors: at most {SIZES[-1] - 1}")
    prime = runs - 1
    high = {0} | {number * number % prime for number in range(1, prime)}
    first = [1.0 if number in high else -1.0 for number in range(prime)]
    shifted = [tuple(first[(number - run) % prime] for number in range(factors)) for run in range(prime)]
    return (*shifted, (-1.0,) * factors)
