"""Ceilings that no measured row shows: the chance that something but the cores limits beyond the most measured cores.

Beyond the most measured cores a link, a card, a bus, the memory or the tester may be full, though the measured rates
still grow. Such a ceiling comes with a constant rate per doubling of the cores (a constant hazard over log2 of the
cores; Cox and Oakes 1984, sec. 2.3), and holds the rate that the cores have there::

    P(a ceiling between K and k cores) = 1 - exp(-h·log2(k/K))

    rate  ▲        ╭─ the law
          │     . ┌──────── a ceiling between K and k
          │   .
          └───K────────k──► cores

The hazard h is learnt from published tables (``routecast.replications.accuracy.learning``). The laws of contention know
knees, too: h is what the tables show beyond them. There are two hazards: of tables that state their links and cards,
and of the same tables without that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.evaluate.points import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["Hazards", "with_ceilings"]

_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazards:
    """Ceilings per doubling of the cores, of tables that state their links and of others."""

    stated: float = 0.0
    unstated: float = 0.0

    def of(self, points: Sequence[Point]) -> float:
        """Return the hazard for the points of one series."""
        return self.stated if all(point.link_bps is not None for point in points) else self.unstated


def with_ceilings(at_most: Floats, beyond: Floats, doublings: Floats, hazard: float) -> Floats:
    """Return draws of the logarithm of rates beyond the most measured cores, (S, n), with unseen ceilings.

    ``at_most``, ``beyond``: draws at the most measured cores and at the asked ones, (S, n); ``doublings``: between
    them, (n,). A draw has its ceiling at the same number of cores at every column. Between the two numbers of cores the
    rate is taken to be a power of the cores.
    """
    if hazard <= 0.0:
        return beyond
    uniform = (0.5 + _GOLDEN * np.arange(len(beyond))) % 1.0
    place = -np.log1p(-uniform)[:, None] / hazard
    share = np.minimum(place / np.maximum(doublings, 1e-9), 1.0)
    limited: Floats = at_most + np.maximum(beyond - at_most, 0.0) * share
    return np.where(beyond > at_most, limited, beyond)
