"""The order in which the runs of an experiment go over the wire.

What drifts meanwhile must not look like a factor, so the order is random (Montgomery, Design and Analysis of
Experiments, 8th ed., sec. 1.3). It follows from the experiment's seed: the analysis knows which run came after which.
"""

from __future__ import annotations

from random import Random

__all__ = ["wire_order"]


def wire_order(seed: int, count: int) -> list[int]:
    """Return the positions of ``count`` runs in the order in which they are made.

    Parameters
    ----------
    seed : int
        Of the experiment.
    count : int
    """
    return Random(seed).sample(range(count), count)
