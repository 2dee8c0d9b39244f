"""The load at which a core saturates, from the times of full polls."""

from __future__ import annotations

import math
from itertools import cycle, islice

import numpy as np
import pytest

from routecast.lab.watch import FullPolls, Saturation, saturation
from routecast.lab.watch._saturation import RECORD

CYCLE_S = 100e-6


def polls(later: int, second: int = 0, *, spread: float = 0.02, seed: int = 1) -> FullPolls:
    """Return full polls of 100 us: later ones, and second ones that are 3 % dearer."""
    random = np.random.default_rng(seed)
    times = CYCLE_S * np.exp(spread * random.standard_normal(later + second))
    return FullPolls(second_s=tuple(1.03 * times[:second]), later_s=tuple(times[second:]))


def of(full: FullPolls, **given: float) -> Saturation:
    return saturation(full, **{"own_s": 0.0, "calls": 0.0, "share_ratio": 1.0} | given)  # type: ignore[arg-type]


def test_a_core_carries_a_full_poll_in_the_time_of_one() -> None:
    known = of(polls(300))
    assert known.reason == ""
    assert known.pps == pytest.approx(64 / CYCLE_S, rel=0.01)
    assert known.low_pps < 64 / CYCLE_S < known.high_pps
    # Beyond sampling, 15 % are not explained: half the interval is at least twice that.
    assert math.log(known.high_pps / known.low_pps) / 2 == pytest.approx(1.96 * 0.15, rel=0.05)


def test_second_polls_count_where_later_ones_are_few_and_are_too_dear() -> None:
    known = of(polls(later=5, second=200))
    assert known.polls == 205
    assert known.pps == pytest.approx(64 / CYCLE_S, rel=0.01)
    assert math.log(known.high_pps / known.low_pps) > math.log(of(polls(205)).high_pps / of(polls(205)).low_pps)


def test_a_stall_of_the_machine_is_no_cost_of_packets() -> None:
    stalled = polls(300)
    stalled = FullPolls(second_s=(), later_s=stalled.later_s[:-10] + (50 * CYCLE_S,) * 10)
    assert of(stalled).pps == pytest.approx(64 / CYCLE_S, rel=0.03)


def test_what_the_watch_takes_itself_is_not_the_routers() -> None:
    assert of(polls(300), own_s=1e-6, calls=3.0).pps == pytest.approx(64 / (CYCLE_S - 3e-6), rel=0.01)


def test_a_part_of_the_core_carries_that_part_and_less_certainly() -> None:
    half = of(polls(300), share_ratio=0.5, share_spread=0.08)
    assert half.pps == pytest.approx(32 / CYCLE_S, rel=0.01)
    assert half.whole_core_pps == pytest.approx(64 / CYCLE_S, rel=0.01)
    assert half.high_pps / half.low_pps > of(polls(300)).high_pps / of(polls(300)).low_pps


@pytest.mark.parametrize(
    ("full", "given", "reason"),
    [
        (polls(0), {}, "0 full polls followed a full one, and 10 are needed"),
        (polls(1), {}, "1 full poll followed a full one"),
        (polls(9), {}, "look longer, or let packets gather"),
        (polls(300), {"share_ratio": 0.4, "share_spread": 0.5}, "wider than a factor of 2"),
    ],
)
def test_what_is_not_known_has_a_reason_and_no_number(full: FullPolls, given: dict[str, float], reason: str) -> None:
    unknown = of(full, **given)
    assert math.isnan(unknown.pps)
    assert math.isnan(unknown.low_pps)
    assert reason in unknown.reason


def test_polls_whose_times_drift_are_less_certain_than_polls_that_scatter() -> None:
    # As many polls, as far apart: minutes with and without a neighbour's work against the same times shuffled.
    drifting = FullPolls(second_s=(), later_s=(CYCLE_S,) * 150 + (1.5 * CYCLE_S,) * 150)
    mixed = FullPolls(second_s=(), later_s=tuple(islice(cycle((CYCLE_S, 1.5 * CYCLE_S)), 300)))
    assert of(drifting).high_pps / of(drifting).low_pps > 1.03 * of(mixed).high_pps / of(mixed).low_pps


def test_records_of_the_kernel_are_read_by_their_place_in_a_run() -> None:
    rows = [
        (1, 7, 900, 50, 0, 0, 64, 0),  # first after waking: cold
        (2, 7, 110, 50, 1, 64, 64, 0),  # second
        (3, 7, 100, 50, 2, 64, 64, 0),  # third
        (4, 7, 70, 50, 3, 64, 20, 0),  # short: the run ends
        (5, 7, 30, 50, 4, 64, 0, 1),  # going to sleep after a full poll
        (6, 7, 95, 50, 7, 10, 64, 0),  # after a short one
    ]
    full = FullPolls.of(np.array(rows, dtype=RECORD))
    assert full.second_s == pytest.approx((110e-9,))
    assert full.later_s == pytest.approx((100e-9,))
    assert RECORD.itemsize == 32
    assert len(full + full) == 4
