from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.load.fairness import Fairness, jain_index, max_min_share, min_max_ratio, passed_shares, spread_points

RATES = st.lists(st.floats(0.0, 1e7), min_size=1, max_size=8)
OFFERED = st.lists(st.floats(1.0, 1e7), min_size=1, max_size=8)


def test_jains_index_is_the_part_of_the_flows_that_share_alike_where_the_others_have_nothing() -> None:
    # Jain, Chiu and Hawe 1984: where k of n users share alike and the others have nothing, it is k/n.
    assert jain_index([1.0] * 10 + [0.0] * 90) == pytest.approx(0.1)
    assert jain_index([50.0, 30.0, 50.0]) == pytest.approx(169.0 / 177.0)


@given(RATES, st.floats(1e-3, 1e3))
def test_jains_index_lies_between_one_nth_and_one_and_knows_no_unit(rates: list[float], unit: float) -> None:
    index = jain_index(rates)
    assert 1.0 / len(rates) - 1e-9 <= index <= 1.0 + 1e-9
    assert jain_index([rate * unit for rate in rates]) == pytest.approx(index, rel=1e-6)


@given(RATES, st.floats(0.0, 3e7))
def test_a_max_min_share_gives_no_flow_more_at_the_cost_of_one_with_less(rates: list[float], capacity: float) -> None:
    share = max_min_share(rates, capacity)
    assert share.sum() == pytest.approx(min(capacity, sum(rates)), rel=1e-9, abs=1e-6)
    assert (share <= np.asarray(rates) * (1.0 + 1e-12)).all()
    unmet = share < np.asarray(rates) * (1.0 - 1e-9)
    if unmet.any():
        # Who wants more has the largest share that there is.
        assert share[unmet].min() == pytest.approx(share.max(), rel=1e-9, abs=1e-9)


def test_a_max_min_share_is_that_found_by_raising_all_rates_together() -> None:
    rates, capacity = np.array([120.0, 700.0, 40.0, 333.0]), 600.0
    low, high = 0.0, capacity
    for _ in range(100):
        level = (low + high) / 2.0
        low, high = (level, high) if np.minimum(rates, level).sum() < capacity else (low, level)
    np.testing.assert_allclose(max_min_share(rates, capacity), np.minimum(rates, low), rtol=1e-9)


@given(OFFERED, st.floats(0.01, 1.0))
def test_a_queue_that_all_share_and_that_loses_alike_is_fair_by_every_index_of_what_passed(
    offered: list[float], passed: float
) -> None:
    fair = Fairness.of(offered, [rate * passed for rate in offered])
    assert fair.jain == pytest.approx(1.0)
    assert fair.min_max == pytest.approx(1.0)
    assert fair.spread_points == pytest.approx(0.0, abs=1e-9)


@given(OFFERED, st.floats(0.0, 1.0))
def test_what_water_filling_lets_pass_is_max_min_fair(offered: list[float], part: float) -> None:
    share = max_min_share(offered, part * sum(offered))
    assert Fairness.of(offered, share).max_min == pytest.approx(1.0)


def test_table_3_1_of_li_2012_penalises_the_flow_of_low_load_by_every_index() -> None:
    # Table 3.1, 100 % input: 13.3 % of the flow of 0.1 came out, and 42.9 % of that of 0.9.
    unequal = Fairness.of([0.1, 0.9], [0.0133, 0.3861])
    equal = Fairness.of([0.5, 0.5], [0.188, 0.196])
    assert unequal.passed[0] == pytest.approx(0.133)
    assert unequal.passed[1] == pytest.approx(0.429)
    assert unequal.min_max == pytest.approx(13.3 / 42.9)
    # What came out would have served the small flow whole: its max-min share is all it offered.
    assert unequal.max_min == pytest.approx(0.133)
    assert unequal.jain < equal.jain
    assert unequal.spread_points > equal.spread_points
    assert equal.spread_points == pytest.approx(0.8)


def test_flows_of_a_router_that_passes_nothing_are_all_served_alike() -> None:
    fair = Fairness.of([1.0, 2.0], [0.0, 0.0])
    assert (fair.jain, fair.min_max, fair.max_min, fair.spread_points) == (1.0, 1.0, 1.0, 0.0)


def test_a_flow_that_starves_has_nothing_of_its_max_min_share() -> None:
    fair = Fairness.of([1.0, 1.0], [1.0, 0.0])
    assert (fair.max_min, fair.min_max, fair.jain, fair.spread_points) == (0.0, 0.0, 0.5, 50.0)


@pytest.mark.parametrize(
    ("offered", "forwarded", "words"),
    [
        ([1.0, 2.0], [1.0], "2 flows went in and 1 came out"),
        ([1.0, 0.0], [1.0, 0.0], r"offered\[1\].*offers nothing"),
        ([1.0, 2.0], [1.0, 2.1], r"forwarded\[1\].*more than went in"),
        ([1.0, float("nan")], [1.0, 1.0], r"offered\[1\].*a number >= 0"),
        ([], [], "an entry for each flow"),
    ],
)
def test_rates_that_cannot_be_say_which_flow(offered: list[float], forwarded: list[float], words: str) -> None:
    with pytest.raises(ModelProblem, match=words):
        Fairness.of(offered, forwarded)
    with pytest.raises(ModelProblem, match=words):
        passed_shares(offered, forwarded)
    with pytest.raises(ModelProblem, match=words):
        spread_points(offered, forwarded)


def test_the_least_share_is_weighed_against_the_largest() -> None:
    assert min_max_ratio([0.2, 0.8, 0.4]) == pytest.approx(0.25)
    assert min_max_ratio([0.0, 0.0]) == 1.0
