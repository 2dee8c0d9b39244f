"""Two documents beside each other: what differs, what is noise, what only one of them has."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.evaluate.compare import Comparison, Difference, compare_documents
from routecast.evaluate.compare_views import comparison_answer, comparison_tables


def compared(a: dict[str, Any], b: dict[str, Any]) -> Comparison:
    return compare_documents("trial", a, b, names=("a", "b"))


def repeats(*values: float) -> dict[str, Any]:
    return {"values": list(values), "mean": math.nan, "least": min(values), "most": max(values), "sd": math.nan}


def only_difference(a: dict[str, Any], b: dict[str, Any]) -> Difference:
    (difference,) = compared(a, b).differences
    return difference


def rate(value: float, half: float) -> dict[str, Any]:
    return {"forwarded_pps": value, "interval": {"forwarded_pps": [value - half, value + half]}}


def test_the_interval_of_a_difference_is_that_of_independent_means() -> None:
    # Half-widths of 3 and 4 make one of 5: standard errors of independent means add as squares.
    difference = only_difference(rate(100.0, 3.0), rate(106.0, 4.0))
    assert (difference.low, difference.difference, difference.high) == pytest.approx((1.0, 6.0, 11.0))
    assert difference.verdict == "differs"
    assert difference.difference_ratio == pytest.approx(0.06)
    assert only_difference(rate(100.0, 3.0), rate(104.9, 4.0)).verdict == "noise"


def test_the_interval_of_a_large_difference_has_no_exponent() -> None:
    comparison = compared(rate(1.0, 0.1), rate(83.7, 1.0))
    text = " ".join(str(table) for table in comparison_tables(comparison)) + comparison_answer(comparison)
    assert "+8270 %" in text
    assert "e+" not in text


def test_a_value_without_an_interval_is_exact() -> None:
    assert only_difference(rate(100.0, 3.0), {"forwarded_pps": 102.9}).verdict == "noise"
    assert only_difference({"forwarded_pps": 103.1}, rate(100.0, 3.0)).verdict == "differs"


def test_numbers_without_any_interval_are_not_judged() -> None:
    difference = only_difference({"x_pps": 1.0}, {"x_pps": 2.0})
    assert difference.verdict == "no interval"
    assert math.isnan(difference.low)


def test_the_loss_is_known_as_well_as_the_forwarded_rate() -> None:
    """Loss is 1 - forwarded/offered of an exact offered load, and is between 0 and 1."""

    def trial(forwarded_pps: float, half_width_pps: float) -> dict[str, Any]:
        ends = [forwarded_pps - half_width_pps, forwarded_pps + half_width_pps]
        return {
            "offered_pps": 1000.0,
            "forwarded_pps": forwarded_pps,
            "loss_ratio": 1.0 - forwarded_pps / 1000.0,
            "interval": {"forwarded_pps": ends},
        }

    def loss(a: dict[str, Any], b: dict[str, Any]) -> Difference:
        (found,) = (each for each in compared(a, b).differences if each.quantity == "loss_ratio")
        return found

    apart = loss(trial(900.0, 30.0), trial(800.0, 40.0))
    assert (apart.low, apart.high) == pytest.approx((0.05, 0.15))
    assert apart.verdict == "differs"
    assert loss(trial(900.0, 30.0), trial(880.0, 40.0)).verdict == "noise"
    assert loss(trial(990.0, 30.0), trial(880.0, 40.0)).a.low == 0.0
    unknown = {key: entry for key, entry in trial(900.0, 30.0).items() if key != "interval"}
    assert loss(unknown, {**unknown, "loss_ratio": 0.2}).verdict == "no interval"


def test_rates_in_proportion_are_known_as_well() -> None:
    a, b = ({**rate(value, 3.0), "l1_bps": 672.0 * value} for value in (100.0, 101.0))
    assert [each.verdict for each in compared(a, b).differences] == ["noise", "noise"]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({"value": 5.0, "low": 4.0, "high": 6.0}, {"value": 5.5, "low": 4.0, "high": 6.0}),
        ({"solved_pps": 5.0, "low_pps": 4.0, "high_pps": 6.0}, {"solved_pps": 5.5, "low_pps": 4.5, "high_pps": 6.5}),
        ({"throughput_pps": 5.0, "lower_pps": 4.0, "upper_pps": 6.0}, {"throughput_pps": 5.5}),
        ({"mean": 5.0, "mean_low": 4.0, "mean_high": 6.0}, {"mean": 5.5, "mean_low": 4.9, "mean_high": 6.1}),
        ({"forwarded_pps": 5.0, "half_width_pps": 1.0}, {"forwarded_pps": 5.5, "half_width_pps": 0.9}),
        ({"value": 5.0, "standard_error": 0.5}, {"value": 5.5, "standard_error": 0.4}),
        ({"latency": {"mean_s": 5.0}, "interval": {"latency.mean_s": [4.0, 6.0]}}, {"latency": {"mean_s": 5.5}}),
        ({"latency_s": repeats(4.0, 5.0, 6.0)}, {"latency_s": repeats(4.5, 5.5, 6.5)}),
    ],
)
def test_intervals_are_known_by_the_names_of_our_documents(a: dict[str, Any], b: dict[str, Any]) -> None:
    difference = only_difference(a, b)
    assert difference.verdict == "noise"
    assert difference.low < 0.5 < difference.high


def test_rows_meet_by_what_tells_them_apart_and_not_by_place() -> None:
    a = {"rows": [{"flows": 1, "frame_bytes": 64, "x_pps": 1.0}, {"flows": 2, "frame_bytes": 64, "x_pps": 2.0}]}
    b = {"rows": [{"flows": 2, "frame_bytes": 64, "x_pps": 2.5}, {"flows": 3, "frame_bytes": 64, "x_pps": 3.0}]}
    comparison = compared(a, b)
    (difference,) = comparison.differences
    assert (difference.place, difference.quantity) == ("rows[flows=2]", "x_pps")
    assert comparison.only_a == ("rows[flows=1]",)
    assert comparison.only_b == ("rows[flows=3]",)


def test_what_is_another_in_all_rows_is_a_setting_and_stands_once() -> None:
    a, b = ({"rows": [{"cores": cores, "flows": flows, "x_pps": 1.0} for flows in (1, 2)]} for cores in (8, 5))
    difference = only_difference(a, b)
    assert (difference.place, difference.quantity, difference.verdict) == ("rows", "cores", "setting")


def test_rows_that_nothing_tells_apart_are_numbered() -> None:
    a, b = ({"rows": [{"name": "x", "y": value} for value in values]} for values in ((1.0, 2.0), (1.0, 3.0)))
    assert only_difference(a, b).place == "rows[#2]"


def test_what_is_not_known_in_one_is_only_in_the_other() -> None:
    comparison = compared({"x": None, "y": 1.0, "z": {}}, {"x": 2.0, "y": 1.0, "z": {"u": 1}, "w": float("nan")})
    assert (comparison.only_a, comparison.only_b, comparison.same) == ((), ("x", "z"), 1)


def test_texts_and_verdicts_of_criteria_are_compared_and_prose_is_not() -> None:
    a = {"bottleneck": {"name": "cpu", "reason": "is busy"}, "met": True, "made": {"elapsed_s": 1.0}}
    b = {"bottleneck": {"name": "port 0", "reason": "is full"}, "met": False, "made": {"elapsed_s": 2.0}}
    assert [(each.quantity, each.verdict) for each in compared(a, b).differences] == [
        ("name", "differs"),
        ("met", "differs"),
    ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats() | st.text(max_size=3),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["value", "low", "high", "name", "interval", "x_pps", "low_pps", "values", "mean", "cores"]
            ),
            below,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from("abc"), json_values, max_size=3))
def test_nothing_differs_from_itself(document: dict[str, Any]) -> None:
    comparison = compared(document, document)
    assert (comparison.differences, comparison.only_a, comparison.only_b) == ((), (), ())


@given(*2 * [st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)])
def test_any_two_documents_can_be_compared_and_either_way_round_as_much_differs(
    a: dict[str, Any], b: dict[str, Any]
) -> None:
    there, back = compared(a, b), compared(b, a)
    assert there.to_json()
    assert there.same == back.same
    assert len(there.differences) == len(back.differences)
    assert len(there.only_a) == len(back.only_b)


def test_a_value_that_is_the_same_within_another_interval_is_reported() -> None:
    wider = compared(rate(100.0, 3.0), rate(100.0, 30.0))
    assert [each.verdict for each in wider.differences] == ["interval"]
    assert wider.same == 0
    assert only_difference(rate(100.0, 3.0), {"forwarded_pps": 100.0}).verdict == "interval"
    alike = compared(rate(100.0, 3.0), rate(100.0, 3.0))
    assert (alike.same, alike.differences) == (1, ())


def test_the_answer_counts_what_differs_only_in_its_interval() -> None:
    wider = compared(rate(100.0, 3.0), rate(100.0, 30.0))
    assert "1 only in the interval" in comparison_answer(wider)
    assert len(comparison_tables(wider)[0].rows) == 1


def test_a_difference_beyond_what_percent_can_say_is_reported_in_words() -> None:
    (table,) = comparison_tables(compared({"x_ratio": 1e-5}, {"x_ratio": 1e308}))
    table_text = str(table.rows)
    assert "inf" not in table_text
