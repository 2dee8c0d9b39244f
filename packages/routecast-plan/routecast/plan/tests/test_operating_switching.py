"""Switching plans against brute force: cheapest, lazily found, and never switching sooner than allowed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from routecast.plan.power.operating.day import cheapest_path, lazy_cheapest_path, switchings

WHOLE = st.integers(0, 20).map(float) | st.just(math.inf)
DAYS = st.tuples(st.integers(1, 5), st.integers(1, 3)).flatmap(lambda shape: arrays(np.float64, shape, elements=WHOLE))


def stays(path: Sequence[int]) -> list[int]:
    """Return how many steps each setting stays, in order."""
    return [len(list(group)) for _, group in itertools.groupby(path)]


def path_cost(costs: np.ndarray, path: Sequence[int], *, switch_cost: float) -> float:
    """Return the cost of a path, with its switchings."""
    return math.fsum(costs[range(len(path)), path]) + switch_cost * switchings(path)


def brute_force(costs: np.ndarray, switch_cost: float, dwell_steps: int) -> float:
    """Return the least cost of any path that keeps the dwell; the first and the last stay may be shorter."""
    steps, count = costs.shape
    kept = (
        path
        for path in itertools.product(range(count), repeat=steps)
        if all(length >= dwell_steps for length in stays(path)[1:-1])
    )
    return min(path_cost(costs, path, switch_cost=switch_cost) for path in kept)


@given(costs=DAYS, switch_cost=st.integers(0, 8).map(float), dwell_steps=st.integers(1, 4))
def test_no_path_is_cheaper_than_the_one_found(costs: np.ndarray, switch_cost: float, dwell_steps: int) -> None:
    path = cheapest_path(costs, switch_cost=switch_cost, dwell_steps=dwell_steps)
    least = brute_force(costs, switch_cost, dwell_steps)
    if math.isinf(least):
        assert path == ()
    else:
        assert path_cost(costs, path, switch_cost=switch_cost) == pytest.approx(least)
        assert all(length >= dwell_steps for length in stays(path)[1:-1])


@given(costs=DAYS, share=st.floats(0.0, 1.0), switch_cost=st.integers(0, 8).map(float), dwell_steps=st.integers(1, 3))
def test_looking_at_few_costs_finds_what_looking_at_all_does(
    costs: np.ndarray, share: float, switch_cost: float, dwell_steps: int
) -> None:
    bounds = np.where(np.isfinite(costs), costs, 0.0) * share
    evaluated: list[tuple[int, int]] = []

    def evaluate(places: Sequence[tuple[int, int]]) -> list[float]:
        evaluated.extend(places)
        return [float(costs[place]) for place in places]

    path, known = lazy_cheapest_path(bounds, evaluate, switch_cost=switch_cost, dwell_steps=dwell_steps)
    whole = cheapest_path(costs, switch_cost=switch_cost, dwell_steps=dwell_steps)
    assert len(evaluated) == len(set(evaluated))
    assert bool(path) == bool(whole)
    if whole:
        assert path_cost(costs, path, switch_cost=switch_cost) == pytest.approx(
            path_cost(costs, whole, switch_cost=switch_cost)
        )
        assert all(known[step, setting] == costs[step, setting] for step, setting in enumerate(path))


def test_tight_bounds_spare_most_evaluations() -> None:
    rng = np.random.default_rng(7)
    costs = rng.uniform(10.0, 20.0, size=(24, 50))
    evaluated: list[tuple[int, int]] = []

    def evaluate(places: Sequence[tuple[int, int]]) -> list[float]:
        evaluated.extend(places)
        return [float(costs[place]) for place in places]

    lazy_cheapest_path(0.99 * costs, evaluate, switch_cost=0.5)
    assert len(evaluated) < costs.size / 4


def test_a_dearer_switching_is_never_done_more_often() -> None:
    rng = np.random.default_rng(3)
    costs = rng.uniform(0.0, 5.0, size=(48, 4))
    counts = [switchings(cheapest_path(costs, switch_cost=price)) for price in (0.0, 0.5, 1.0, 2.0, 4.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]
