"""Quantiles against another library's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.quantity.quantile import quantile


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0.0, 1.0))
def test_quantiles_are_those_of_numpy_whatever_the_order(values: list[float], probability: float) -> None:
    expected = float(np.quantile(np.array(values), probability, method="linear"))
    assert quantile(values, probability) == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_nothing_has_no_quantile() -> None:
    assert math.isnan(quantile([], 0.5))
