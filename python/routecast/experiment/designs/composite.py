"""Central composite designs: a factorial, points on the axes, and the centre, for response surfaces of second order.

The distance of the axial points from the centre, alpha, is by shape (NIST/SEMATECH e-Handbook of Statistical Methods,
sec. 5.3.3.6.1; Box and Wilson 1951; Box and Hunter 1957):

- *rotatable* (circumscribed): alpha = F^(1/4) for F factorial points, outside the levels -1 and +1, so that the
  variance of a prediction depends on its distance from the centre alone;
- *face_centred*: alpha = 1, three levels of each factor;
- *inscribed*: the rotatable design shrunk until its axial points stand at -1 and +1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

__all__ = ["Shape", "central_composite", "rotatable_alpha"]

Shape = Literal["rotatable", "face_centred", "inscribed"]


def rotatable_alpha(factorial_points: int) -> float:
    """Return the distance of axial points that makes a design rotatable.

    Examples
    --------
    >>> round(rotatable_alpha(4), 3), round(rotatable_alpha(8), 3), rotatable_alpha(16)
    (1.414, 1.682, 2.0)
    """
    return float(factorial_points**0.25)


def central_composite(
    factorial: Sequence[Sequence[float]], *, shape: Shape = "rotatable", centre_points: int = 5
) -> tuple[tuple[float, ...], ...]:
    """Return a central composite design: the factorial, two axial points of each factor, then the centre.

    Parameters
    ----------
    factorial : sequence of sequence of float, shape (F, k)
        A full design, or a fraction of resolution V or more.
    shape : {"rotatable", "face_centred", "inscribed"}
    centre_points : int
        How often the centre is tried.

    Examples
    --------
    >>> from routecast.experiment.designs.full import full
    >>> central_composite(full(2), shape="face_centred", centre_points=1)[4:]
    ((-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (0.0, 0.0))
    """
    factors = len(factorial[0])
    alpha = rotatable_alpha(len(factorial))
    corner, axis = {"rotatable": (1.0, alpha), "face_centred": (1.0, 1.0), "inscribed": (1.0 / alpha, 1.0)}[shape]
    corners = [tuple(corner * level for level in row) for row in factorial]
    axial = [
        tuple(side * axis if number == factor else 0.0 for number in range(factors))
        for factor in range(factors)
        for side in (-1.0, 1.0)
    ]
    return (*corners, *axial, *([(0.0,) * factors] * centre_points))
