"""Intervals of predicted rates: the shortest that hold their share."""

from __future__ import annotations

import numpy as np
import pytest

from routecast.calibration._posterior import shortest_intervals, weighted_quantiles

LEVELS = (0.5, 0.8, 0.95)
PLACES = (np.arange(40_000) + 0.5) / 40_000


def test_a_symmetric_law_has_its_central_interval() -> None:
    from statistics import NormalDist

    normal = np.array([NormalDist().inv_cdf(place) for place in PLACES])[:, None]
    for level, (low, high) in zip(
        LEVELS, shortest_intervals(normal, np.ones(len(normal)), LEVELS)[:, :, 0], strict=True
    ):
        expected = NormalDist().inv_cdf(0.5 + level / 2)
        assert (low, high) == pytest.approx((-expected, expected), abs=0.02)


def test_a_law_that_ends_abruptly_has_a_short_interval_at_its_end() -> None:
    # Minus an exponential: its density is greatest at 0, where it ends.
    logs = np.log(PLACES)[:, None]
    weights = np.ones(len(logs))
    for level, (low, high) in zip(LEVELS, shortest_intervals(logs, weights, LEVELS)[:, :, 0], strict=True):
        tail = 1.0 - level
        assert low == pytest.approx(np.log(0.9 * tail), abs=0.01)
        assert high == pytest.approx(np.log(1.0 - 0.1 * tail), abs=0.01)
        central = weighted_quantiles(logs, weights, (tail / 2, 1.0 - tail / 2))[:, 0]
        assert high - low < central[1] - central[0]


def test_every_interval_holds_its_share_of_the_weights() -> None:
    random = np.random.default_rng(7)
    samples, weights = random.gamma(0.7, size=(5000, 3)), random.uniform(0.1, 1.0, 5000)
    for level, ends in zip(LEVELS, shortest_intervals(samples, weights, LEVELS), strict=True):
        inside = (samples >= ends[0]) & (samples <= ends[1])
        assert weights @ inside / weights.sum() == pytest.approx(np.full(3, level), abs=2e-3)
