"""Energy metrics against hand calculations and the identities between them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.lab.power.metrics import (
    CORE_LOADS,
    EER_WEIGHTS,
    METRICS,
    LoadPoint,
    energy_consumption_rate_w_per_bps,
    energy_efficiency_ratio_bit_per_j,
    proportionality_ratio,
)

POWERS = st.floats(1e-3, 1e6)
RATES = st.floats(1.0, 1e14)


def points(*entries: tuple[float, float, float]) -> list[LoadPoint]:
    return [LoadPoint(weight_ratio=weight, l2_bps=rate, power_w=power) for weight, rate, power in entries]


def test_the_eer_of_a_core_router_worked_by_hand() -> None:
    # 100/30/0 % of 10 Gbit/s at 200/150/130 W: (1 + 2.4 + 0) Gbit/s over (20 + 120 + 13) W.
    ratio = energy_efficiency_ratio_bit_per_j(points((0.1, 10e9, 200.0), (0.8, 3e9, 150.0), (0.1, 0.0, 130.0)))
    assert ratio == pytest.approx(3.4e9 / 153.0)


def test_unweighted_capacity_stands_in_the_numerator_only_on_request() -> None:
    three = points((0.1, 10e9, 200.0), (0.8, 3e9, 150.0), (0.1, 0.0, 130.0))
    assert energy_efficiency_ratio_bit_per_j(three, total_capacity_bps=10e9) == pytest.approx(10e9 / 153.0)


@given(POWERS, RATES)
def test_the_ecr_is_the_inverse_of_the_eer_of_full_load_alone(power_w: float, rate_bps: float) -> None:
    ecr = energy_consumption_rate_w_per_bps(power_w, rate_bps)
    assert ecr == pytest.approx(1.0 / energy_efficiency_ratio_bit_per_j(points((1.0, rate_bps, power_w))))


@given(st.lists(st.tuples(RATES, POWERS), min_size=3, max_size=3))
def test_the_eer_lies_between_the_worst_and_the_best_of_its_loads(loads: list[tuple[float, float]]) -> None:
    three = points(*((weight, *load) for weight, load in zip(EER_WEIGHTS, loads, strict=True)))
    ratio = energy_efficiency_ratio_bit_per_j(three)
    ratios = [rate / power for rate, power in loads]
    assert min(ratios) * (1 - 1e-9) <= ratio <= max(ratios) * (1 + 1e-9)


@given(st.floats(0.0, 1.0), POWERS)
def test_proportionality_is_one_without_idle_power_and_nought_without_any_difference(
    idle_share: float, max_w: float
) -> None:
    assert proportionality_ratio(idle_share * max_w, max_w) == pytest.approx(1.0 - idle_share, abs=1e-9)
    assert proportionality_ratio(0.0, max_w) == 1.0
    assert proportionality_ratio(max_w, max_w) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: energy_efficiency_ratio_bit_per_j(points((0.5, 1e9, 1.0), (0.4, 1e9, 1.0))), "sum up to 0.9"),
        (lambda: energy_efficiency_ratio_bit_per_j([]), "sum up to 0"),
        (lambda: energy_efficiency_ratio_bit_per_j(points((1.5, 1e9, 1.0), (-0.5, 1e9, 1.0))), "at least 0"),
        (lambda: energy_efficiency_ratio_bit_per_j(points((1.0, 1e9, 0.0))), "must be above 0"),
        (lambda: energy_efficiency_ratio_bit_per_j(points((1.0, 0.0, 5.0))), "no weighted load forwards anything"),
        (lambda: energy_efficiency_ratio_bit_per_j(points((1.0, math.nan, 5.0))), "l2_bps"),
        (lambda: energy_consumption_rate_w_per_bps(10.0, 0.0), "must be above 0"),
        (lambda: energy_consumption_rate_w_per_bps(-1.0, 1e6), "must be above 0"),
        (lambda: energy_consumption_rate_w_per_bps(math.nan, 1e6), "must be above 0"),
        (lambda: proportionality_ratio(120.0, 100.0), "more than the 100 W"),
        (lambda: proportionality_ratio(-1.0, 100.0), "at least 0"),
    ],
)
def test_nonsense_is_refused(call: Callable[[], float], message: str) -> None:
    with pytest.raises(ModelProblem, match=message):
        call()


def test_the_standard_weights_and_loads_fit_each_other() -> None:
    assert sum(EER_WEIGHTS) == pytest.approx(1.0)
    assert len(EER_WEIGHTS) == len(CORE_LOADS)
    assert all(item.formula and item.scope and item.source and item.unit for item in METRICS.values())
