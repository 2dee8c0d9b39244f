"""Factors: coded levels of quantities and of names, what lies between levels, whole numbers, several paths at once."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem, RoutecastError
from routecast.experiment._factors import coded_of, level_at, rounded
from routecast.experiment.file import FactorTable, factor_of
from routecast.experiment.model import Factor
from routecast.quantity.amount import amount_of
from routecast.router.files import router_table

KIND = router_table({"builder": "multicore"})


def factor(**table: Any) -> Factor:
    return factor_of(
        "A", FactorTable.model_validate({"name": "f", **table}), "factor[0]", router_table({"builder": "multicore"})
    )


def coded(factor: Factor) -> list[float]:
    return [level.coded for level in factor.levels]


def test_two_levels_are_minus_and_plus_one() -> None:
    assert coded(factor(path="cores", levels=[2, 8])) == [-1.0, 1.0]


def test_levels_of_a_quantity_lie_where_their_values_do() -> None:
    assert coded(factor(path="load.frames", levels=["64 B", "791 B", "1518 B"])) == [-1.0, 0.0, 1.0]
    assert coded(factor(path="service.per_packet", levels=["1 us", "1250 ns", "2 us"])) == [-1.0, -0.5, 1.0]


def test_logarithmic_levels_are_equal_ratios_apart() -> None:
    assert coded(factor(path="cores", levels=[1, 2, 4], log=True)) == pytest.approx([-1.0, 0.0, 1.0])


def test_levels_without_an_order_are_equal_steps_apart() -> None:
    item = factor(path="distribution", levels=["rss", "round_robin", "per_flow"])
    assert coded(item) == [-1.0, 0.0, 1.0]
    assert not item.is_quantity
    with pytest.raises(RoutecastError, match=r"no level at 0\.5"):
        level_at(item, 0.5)


def test_levels_that_fall_stay_in_the_order_of_the_file_and_mixed_ones_are_sorted() -> None:
    falling = factor(path="service.per_packet", levels=["2 us", "1 us"])
    assert [level.label for level in falling.levels] == ["2 us", "1 us"]
    mixed = factor(path="cores", levels=[4, 1, 2])
    assert [level.label for level in mixed.levels] == ["1", "2", "4"]


def test_yes_and_no_are_levels() -> None:
    item = factor(path="cores", levels=[False, True])
    assert [level.label for level in item.levels] == ["no", "yes"]
    assert not item.is_quantity


def test_a_mix_of_frames_is_no_quantity() -> None:
    assert not factor(path="load.frames", levels=["64 B", "IMIX"]).is_quantity


def test_whole_tables_are_levels() -> None:
    item = factor(path="activation", levels=[{"kind": "polling"}, {"kind": "interrupt", "budget": "64 frames"}])
    assert item.levels[1].overrides == {"activation": {"kind": "interrupt", "budget": "64 frames"}}
    assert item.levels[1].label == "kind = interrupt, budget = 64 frames"


def test_one_level_may_move_several_paths_together() -> None:
    item = factor(
        levels=[
            {"label": "without queue manager", "set": {"queue": "64 frames", "service.per_packet": "500 ns"}},
            {"label": "with queue manager", "set": {"queue": "4096 frames", "service.per_packet": "900 ns"}},
        ]
    )
    assert [level.label for level in item.levels] == ["without queue manager", "with queue manager"]
    assert item.levels[0].overrides == {"queue": "64 frames", "service.per_packet": "500 ns"}


def test_several_paths_get_the_same_value() -> None:
    item = factor(path="queue", paths=["tx_ring"], between=["64 frames", "512 frames"])
    assert level_at(item, 0.0).overrides == {"queue": "288 frames", "tx_ring": "288 frames"}


def test_a_level_may_have_a_label_of_its_own() -> None:
    item = factor(path="cores", levels=[{"label": "few", "value": 2}, {"label": "many", "value": 8}])
    assert [(level.label, level.overrides) for level in item.levels] == [("few", {"cores": 2}), ("many", {"cores": 8})]


def test_where_a_field_is_whole_values_between_are_rounded() -> None:
    cores = factor(path="cores", between=[1, 8])
    assert cores.is_whole
    assert level_at(cores, 0.1).overrides == {"cores": 5}
    assert rounded(cores, [0.1, 1.0]) == pytest.approx([2 * 4 / 7 - 1, 1.0])
    frames = factor(path="load.frames", between=["64 B", "1.518 kB"])
    assert level_at(frames, -0.99).overrides == {"load.frames": "71 B"}
    sigma = factor(path="contention.sigma", between=[0, 1])
    assert not sigma.is_whole
    assert level_at(sigma, 0.5).overrides == {"contention.sigma": 0.75}


def test_a_line_goes_on_beyond_the_levels() -> None:
    item = factor(path="service.per_packet", between=["1 us", "2 us"])
    value = amount_of(level_at(item, 2.0**0.5).overrides["service.per_packet"])
    assert value is not None
    assert value.in_unit("us") == pytest.approx(1.5 + 0.5 * 2.0**0.5)


@given(st.floats(-1.0, 1.0), st.booleans())
def test_a_value_between_levels_is_found_again_where_it_was(at: float, is_log: bool) -> None:
    item = factor(path="service.per_packet", between=["200 ns", "2 us"], log=is_log)
    level = level_at(item, at)
    assert coded_of(item, level.overrides["service.per_packet"]) == pytest.approx(at, abs=1e-9)


@given(st.floats(-1.0, 1.0), st.integers(1, 50), st.integers(51, 4096))
def test_whole_numbers_settle_on_what_is_tried(at: float, low: int, high: int) -> None:
    item = factor(path="cores", between=[low, high])
    (where,) = rounded(item, [at])
    assert level_at(item, where).overrides == level_at(item, at).overrides
    assert abs(where - at) <= 1.0 / (high - low) + 1e-9


@given(st.floats(-1.0, 1.0), st.booleans())
def test_whole_numbers_of_a_column_are_those_of_its_levels(at: float, is_log: bool) -> None:
    item = factor(path="load.frames", between=["64 B", "1.518 kB"], log=is_log)
    assert rounded(item, [at, -1.0]) == [level_at(item, at).coded, -1.0]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"path": "cores", "levels": [1]}, "one level"),
        ({"path": "cores"}, "no level"),
        ({"path": "cores", "levels": [1, 2], "between": [1, 2]}, "give one of them"),
        ({"path": "cores", "between": [1, 2, 3]}, "has 3 values"),
        ({"levels": [1, 2]}, "the factor has no path"),
        ({"path": "cores", "levels": [2, 2]}, "occurs twice"),
        ({"path": "cores", "levels": [datetime.date(1979, 5, 27), 4]}, "got 1979-05-27: no value is a date"),
        ({"levels": [{"cores": 2}, {"cores": [datetime.time(7, 32)]}]}, "no value is a date or a time"),
        ({"path": "distribution", "between": ["rss", "per_flow"]}, "are not of one kind"),
        ({"path": "queue", "between": ["1 ms", "64 frames"]}, "are not of one kind"),
        ({"path": "contention.sigma", "between": [0.0, 1.0], "log": True}, "levels above 0"),
        ({"levels": [{"label": "x", "set": {"cores": 1}}, {"label": "x", "set": {"cores": 2}}]}, "label of two"),
    ],
)
def test_levels_that_make_no_factor_are_reported(table: dict[str, Any], says: str) -> None:
    with pytest.raises(ModelProblem, match=says):
        factor(**table)
