"""Where the transient of a series ends: MSER-5 (semantics S10).

This is the rule of ``crates/sim/src/steady.rs``, by which the simulator cuts its own transient off, for series from
anywhere else. ``tests/evaluate/test_steadiness.py`` holds the series of that file's tests too: both must cut alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["FEWEST_VALUES", "mser5"]

FIVE = 5
FEWEST_VALUES = 4 * FIVE


def mser5(series: Sequence[float]) -> int | None:
    """Return how many leading values are the transient; None where the series has not settled.

    MSER-5 (White 1997, *Simulation* 69(6), 323-334; with means of five: White, Cobb and Spratt 2000, Proc. Winter
    Simulation Conf., 755-760) takes the cut d that minimises the squared standard error of the mean of what is left,

        ``sum over i > d of (y_i - mean_d)^2 / (n - d)^2``

    over the series y of means of five. Of all cuts that come within a tenth of the least error the earliest is taken:
    the least one itself would leave out what happens to be high at the beginning of a series that has no transient.
    Only the first half is eligible; the least error at its very end says that the series has not settled.

    Parameters
    ----------
    series : sequence of float
        Fewer than 20 values are too short to be cut: 0.

    Examples
    --------
    >>> mser5([0.0] * 20 + [1.0] * 180)
    20
    >>> mser5(range(1000)) is None
    True
    """
    count = len(series) // FIVE
    if len(series) < FEWEST_VALUES:
        return 0
    means = np.asarray(series, dtype=float)[: FIVE * count].reshape(count, FIVE).mean(axis=1)
    half = count // 2
    offset = means[-1]
    values = (means - offset)[::-1]
    sums, squares = np.cumsum(values)[::-1], np.cumsum(values**2)[::-1]
    left = np.arange(count, 0, -1)
    spread = np.maximum(squares - sums**2 / left, 0.0)
    # Differences below the resolution of the sums count as none.
    spread[spread <= 1e-12 * (squares + offset**2 * left)] = 0.0
    errors = (spread / left**2)[: half + 1]
    least = errors.min()
    if int(np.argmax(errors <= least)) == half:
        return None
    return FIVE * int(np.argmax(errors <= 1.1 * least))
