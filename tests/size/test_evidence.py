"""No answer that a measured row of its own table refutes, and an answer where a row decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routecast.evaluate.points import Point
from routecast.size import Sizing, Target, size


def rows(*cells: tuple[int, float] | tuple[int, float, bool], frame_bytes: float = 64.0) -> list[Point]:
    """Rows (cores, Mpps, calibrates)."""
    return [
        Point(cores=k, frame_bytes=frame_bytes, throughput_pps=1e6 * mpps, calibrate=calibrates)
        for k, mpps, calibrates in ((*cell, True)[:3] for cell in cells)
    ]


def asked(points: list[Point], mpps: float, **more: object) -> Sizing:
    return size(points, Target.parse(f"{mpps} Mpps"), counts=range(1, 17), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("mpps", [2.5, 4.0, 4.9])
def test_a_held_out_row_below_its_prediction_refutes_what_it_did_not_reach(mpps: float) -> None:
    """Two linear points, and a held-out row that is flat: the ceiling of the reference case."""
    table = rows((1, 1.64), (2, 3.28), (4, 3.37, False))
    result = asked(table, mpps)
    if mpps < 3.2:
        assert result.least is not None
        assert result.least.cores == 2
    else:
        assert result.least is None
        assert all(count.probability is None or count.probability < 0.05 for count in result.counts)
        assert any("held-out row of 4 cores" in text for text in result.remarks)


def test_the_rate_in_the_answer_is_that_of_the_row_which_decides_it() -> None:
    """Two sizes contradict each other: the row of one core at 512 B meets the target, the law of all rows does not."""
    table = [
        Point(cores=k, frame_bytes=size, throughput_pps=1e6 * mpps, calibrate=True)
        for k, size, mpps in (
            (1, 64.0, 9.0),
            (2, 64.0, 17.9),
            (4, 64.0, 35.51),
            (8, 64.0, 35.51),
            (1, 512.0, 8.1),
            (2, 512.0, 5.83),
            (4, 512.0, 5.83),
        )
    ]
    for target, frames in (("30 Mpps", "64 B"), ("5 Mpps", "512 B")):
        result = size(table, Target.parse(target, frames), counts=range(1, 9))
        assert result.least is not None
        assert result.headroom_ratio is not None
        assert result.headroom_ratio > 0.0
        assert result.least.low_pps <= result.least.rate_pps <= result.least.high_pps


def test_a_small_best_chance_is_given_with_and_without_ceilings() -> None:
    result = asked(rows((1, 0.73), (2, 1.455), (4, 2.76)), 4.876)
    best = max(result.counts, key=lambda count: count.chance)
    assert best.chance < 0.6
    assert "if nothing but the cores limits" in result.answer


@pytest.mark.parametrize("frame_bytes", [64.0, 512.0, 1500.0])
def test_a_held_out_row_that_no_core_added_to_shows_a_ceiling_with_any_frames(frame_bytes: float) -> None:
    table = [replace(point, frame_bytes=frame_bytes) for point in rows((1, 1.645), (2, 3.289), (4, 3.372, False))]
    result = size(table, Target.parse("4.934 Mpps", f"{frame_bytes:g} B"), counts=range(1, 65))
    assert all(count.probability is None or count.probability < 0.05 for count in result.counts)
    assert any("held-out row of 4 cores" in text for text in result.remarks)


def test_held_out_rows_do_not_enter_the_fit() -> None:
    with_row = asked(rows((1, 1.7), (2, 3.3), (8, 12.0, False)), 3.0)
    without = asked(rows((1, 1.7), (2, 3.3)), 3.0)
    assert with_row.counts[2].rate_pps == without.counts[2].rate_pps


@pytest.mark.parametrize("noise", [0.99, 1.0, 1.01])
def test_a_measured_count_that_meets_the_target_is_enough(noise: float) -> None:
    table = rows((1, 1.0), (4, 3.9 * noise), (8, 7.5))
    result = asked(table, 3.6)
    assert result.least is not None
    assert result.least.cores <= 4
    missed = asked(table, 4.3)
    assert missed.least is None or missed.least.cores > 4


def test_rows_that_contradict_each_other_give_no_answer_and_are_named() -> None:
    table = rows((1, 1.7e-3), (2, 3.3), (4, 6.4))
    result = asked(table, 3.0)
    assert result.least is None
    assert "contradict" in result.answer
    assert "2 cores" in result.answer
    assert all(count.probability is None for count in result.counts)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (((1, 2.0), (2, 4.0), (4, 0.008), (8, 16.0)), "4 cores"),  # Gbit/s for Mpps, kpps for Mpps: a unit in one row
        (((1, 2.0), (1, 200.0), (2, 4.0), (4, 8.0)), "1 core at"),
        (((1, 200.0), (1, 2.0), (2, 4.0), (4, 8.0)), "1 core at"),
        (((1, 2.0), (2, 4.0), (3, 6.0), (4, 64.0), (6, 12.0), (8, 16.0)), "4 cores"),  # eight times: bits for bytes
    ],
)
def test_a_row_of_another_unit_gives_no_answer_and_is_named(wrong: tuple[tuple[int, float], ...], named: str) -> None:
    result = asked(rows(*wrong), 3.5)
    assert result.least is None
    assert "contradict" in result.answer
    assert named in result.answer


@pytest.mark.parametrize("disturbed", [1.0, 1.3, 3.0])
def test_a_disturbed_repetition_is_noise_and_no_contradiction(disturbed: float) -> None:
    result = asked(rows((1, 2.0), (2, 4.0), (2, 4.0 / disturbed), (4, 8.0), (8, 16.0)), 3.5)
    assert not result.contradiction


def test_beyond_the_table_both_probabilities_are_in_the_headline_and_the_second_decides() -> None:
    result = asked(rows((1, 1.7), (2, 3.4), (4, 6.8)), 8.0)
    best = result.least or max(result.counts, key=lambda count: count.chance)
    assert best.probability_if_cores_limit is not None
    assert best.probability is not None
    assert best.probability < best.probability_if_cores_limit
    assert "if nothing but the cores limits" in result.answer
    assert "with the ceilings of the shipped tables" in result.answer
    # Within the table no ceiling is unseen.
    (within,) = (count for count in result.counts if count.cores == 3)
    assert within.probability == within.probability_if_cores_limit


def test_the_best_count_is_named_where_none_is_sure_enough() -> None:
    result = asked(rows((1, 1.7), (2, 3.4), (4, 6.8)), 8.5)
    if result.least is None:
        best = max(result.counts, key=lambda count: count.chance)
        assert result.answer.startswith(f"{best.cores} cores for")
        assert f"0.95 needs a measurement at {best.cores} cores" in result.answer


def test_with_stated_links_the_shipped_tables_show_few_other_ceilings() -> None:
    free = asked(rows((1, 1.7), (2, 3.4), (4, 6.8)), 8.0)
    stated = asked([replace(point, link_bps=100e9) for point in rows((1, 1.7), (2, 3.4), (4, 6.8))], 8.0)
    chances = [max(count.chance for count in result.counts) for result in (free, stated)]
    assert chances[1] > chances[0]


def test_a_row_that_the_others_contradict_still_refutes_an_answer_that_it_misses() -> None:
    """Two sizes at 16 cores fill 39 Gbit/s; the row of the longer frames looks like an outlier, and is the truth."""
    table = [
        Point(cores=k, frame_bytes=size, throughput_pps=1e6 * mpps, calibrate=True)
        for k, size, mpps in (
            (4, 64.0, 11.5637),
            (4, 128.0, 10.79),
            (4, 256.0, 11.2365),
            (16, 64.0, 41.85),
            (16, 128.0, 33.0654),
            (16, 256.0, 17.8634),
        )
    ]
    missed = size(table, Target.parse("19.1138 Mpps", "256 B"), counts=range(1, 33))
    assert missed.least is None or missed.least.cores > 16
    met = size(table, Target.parse("10 Mpps", "256 B"), counts=range(1, 33))
    assert met.least is not None
    assert met.least.cores <= 4
