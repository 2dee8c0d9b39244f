"""Receive queues that are dealt to the cores in turn, found in the rates themselves.

Of q queues dealt to k cores the fullest core has ``ceil(q/k)`` and limits, so that the rate per core is a sawtooth over
the cores (:meth:`routecast.evaluate.points.Layout.useful_ratio`). No law of contention makes such steps. Whether a
table shows them, and of how many queues, follows from the evidence of the rates with each number of queues and without
any::

    P(q | rates) ∝ P(q) · Σ_laws Σ_cells w_law p_cell Z(rates | law, cell, q)

Numbers of queues of cards and of indirection tables are mostly powers of two, and most others multiples of eight: these
shares and the prior chance of dealt queues are set by hand.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.evaluate.points import Point, dealt_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["find_queues"]

_MIN_CORE_COUNTS = 4
"""Numbers of cores without which two parameters of a law explain every step."""
_DEALT_PROBABILITY = 0.1
_MIN_PROBABILITY = 0.8
"""Probability of the dealt queues from which they are taken to be there."""
_MAX_QUEUES, _MAX_ROUND_QUEUES = 128, 512
_SHARES = (0.5, 0.3, 0.2)
"""Prior shares of powers of two, of other multiples of eight, and of all others."""


def find_queues(points: Sequence[Point], evidence: Callable[[Floats], Floats]) -> int | None:
    """Return the number of dealt queues that the n points of one series show, or None.

    ``evidence``: logarithm of the evidence of the rates, (K,), averaged over laws and scales of the discrepancy, if
    they are predicted with K known changes of their logarithms, (K, n).
    """
    cores = [point.working_cores for point in points]
    is_known = any(point.flows is not None or point.layout.queues is not None for point in points)
    if is_known or len(set(cores)) < _MIN_CORE_COUNTS:
        return None
    numbers, priors = _candidates(max(cores))
    changes = np.log([[dealt_ratio(queues, count) for count in cores] for queues in (None, *numbers)])
    scores = evidence(changes) + np.log([1.0 - _DEALT_PROBABILITY, *priors])
    log_odds = np.logaddexp.reduce(scores[1:]) - scores[0]
    is_shown = log_odds >= math.log(_MIN_PROBABILITY / (1.0 - _MIN_PROBABILITY))
    return numbers[int(np.argmax(scores[1:]))] if is_shown else None


@functools.cache
def _candidates(most_cores: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return possible numbers of queues, none of which leaves a measured core idle, and their probabilities."""
    numbers = [
        number
        for number in range(max(most_cores, 2), _MAX_ROUND_QUEUES + 1)
        if number <= _MAX_QUEUES or number.bit_count() == 1
    ]
    kinds = [0 if number.bit_count() == 1 else 1 if number % 8 == 0 else 2 for number in numbers]
    shares = [_SHARES[kind] / kinds.count(kind) for kind in kinds]
    return tuple(numbers), tuple(_DEALT_PROBABILITY * share / sum(shares) for share in shares)
