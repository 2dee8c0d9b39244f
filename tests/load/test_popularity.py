from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem, QuantityProblem
from routecast.load.popularity import Popularity


@pytest.mark.parametrize(
    ("text", "kind", "flows", "exponent"),
    [
        ("1", "uniform", 1, 1.0),
        ("1 flow", "uniform", 1, 1.0),
        ("10 flows", "uniform", 10, 1.0),
        ("uniform", "uniform", None, 1.0),
        ("zipf", "zipf", None, 1.0),
        (" Zipf 1.1 ", "zipf", None, 1.1),
        ("100000 zipf 0.9", "zipf", 100_000, 0.9),
        ("100k flows zipf", "zipf", 100_000, 1.0),
        ("2_097_152 uniform", "uniform", 2_097_152, 1.0),
        ("1.5M", "uniform", 1_500_000, 1.0),
    ],
)
def test_popularity_is_read_as_people_write_it(text: str, kind: str, flows: int | None, exponent: float) -> None:
    read = Popularity.parse(text)
    assert (read.kind, read.flows, read.exponent) == (kind, flows, exponent)
    assert Popularity.parse(str(read)) == read


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write a number of flows"),
        ("many", "write a number of flows"),
        ("-1", "write a number of flows"),
        ("0", "from 1"),
        ("1.5", "whole number"),
        ("1e300", "write a number of flows"),
        ("9999G", "from 1"),
        ("uniform 2", "belongs to zipf"),
        ("zipf 11", "from 0 to 10"),
        ("zipf nan", "write a number of flows"),
        ("9" * 500, "write a number of flows"),
    ],
)
def test_what_is_no_popularity_is_refused(text: str, words: str) -> None:
    with pytest.raises(QuantityProblem, match=words):
        Popularity.parse(text)


@given(text=st.text(max_size=30) | st.text("0123456789 kMzipfunorml.,_", max_size=30))
def test_no_text_fails_in_another_way(text: str) -> None:
    try:
        read = Popularity.parse(text)
    except QuantityProblem:
        return
    assert read.flows is None or read.flows >= 1


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"kind": "pareto"}, "kind"),
        ({"flows": 0}, "flows"),
        ({"flows": 1.5}, "flows"),
        ({"exponent": -1.0}, "exponent"),
    ],
)
def test_every_field_is_checked(changes: dict[str, object], place: str) -> None:
    with pytest.raises(ModelProblem, match=place):
        Popularity(**changes)


@given(keys=st.integers(1, 3000), exponent=st.floats(0.0, 5.0))
def test_bins_add_up_to_the_law_itself(keys: int, exponent: float) -> None:
    counts, probabilities = Popularity(kind="zipf", exponent=exponent).bins(keys)
    exact = np.arange(1.0, keys + 1.0) ** -exponent
    exact /= exact.sum()
    ends = np.cumsum(counts).astype(int)
    assert ends[-1] == keys
    np.testing.assert_allclose(np.cumsum(counts * probabilities), np.cumsum(exact)[ends - 1], rtol=1e-4)


@given(keys=st.integers(1, 10**12))
def test_uniform_keys_are_all_alike(keys: int) -> None:
    counts, probabilities = Popularity().bins(keys)
    assert (counts.tolist(), probabilities.tolist()) == ([keys], [1.0 / keys])
