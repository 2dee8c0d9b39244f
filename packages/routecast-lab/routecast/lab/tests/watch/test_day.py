"""What is learnt of the load over the day, against the normal law; and that its file is never lost."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from statistics import NormalDist

import pytest

from routecast.errors import FileProblem, QuantityProblem
from routecast.lab.tests.watch.fake_looks import MONDAY, NOT_SEEN, day_rate_pps, saturation_at
from routecast.lab.watch import DayMemory, DayProfile, Growth, machine_identity, read_memory, read_profile
from routecast.lab.watch._day import DAY_SPREAD
from routecast.load.series import TrafficSeries

PEAK_PPS = day_rate_pps(MONDAY + timedelta(hours=18))
QUARTER = timedelta(minutes=15)


def lived(
    memory: DayMemory,
    days: float,
    *,
    begin: datetime = MONDAY,
    rate_pps: Callable[[datetime], float] = day_rate_pps,
    saturation_pps: float = 2e6,
) -> datetime:
    """Look every quarter hour, and return the time of the last look."""
    at = begin
    for number in range(round(days * 96) + 1):
        at = begin + number * QUARTER
        memory.add(rate_pps(at), saturation_at(saturation_pps), at)
    return at


def test_nothing_is_known_before_every_quarter_hour_was_seen() -> None:
    memory = DayMemory("eth0")
    at = lived(memory, 95 / 96)
    answer = memory.probability_of_loss_at_peak(at)
    assert math.isnan(answer.ratio)
    assert answer.reason.startswith("95 of the 96 quarter hours of a working day were seen")
    at += QUARTER
    memory.add(1e6, NOT_SEEN, at)
    assert memory.probability_of_loss_at_peak(at).reason == ""


def test_a_weekend_alone_says_nothing_of_a_working_day() -> None:
    memory = DayMemory("eth0")
    at = lived(memory, 1.9, begin=MONDAY - timedelta(days=2))
    assert memory.peak(at).reason.startswith("0 of the 96 quarter hours of a working day")


def test_the_peak_of_a_sine_is_above_saturation_with_the_probability_of_the_normal_law() -> None:
    memory = DayMemory("eth0")
    at = lived(memory, 1.0, saturation_pps=1.8e6)
    assert memory.peak(at).pps == pytest.approx(PEAK_PPS)
    # One day: its spread is that assumed, for the day and for the mean of it.
    spread = math.hypot(DAY_SPREAD * math.sqrt(2.0), 0.15)
    expected = NormalDist().cdf(math.log(PEAK_PPS / 1.8e6) / spread)
    assert memory.probability_of_loss_at_peak(at).ratio == pytest.approx(expected, rel=1e-6)


def test_days_that_differ_show_their_spread() -> None:
    draws, memory, spread = Random(5), DayMemory("eth0"), 0.3
    of_day = {day: math.exp(draws.gauss(0.0, spread)) for day in range(400)}
    probabilities = []
    begin = MONDAY
    for week in range(40):
        begin = MONDAY + timedelta(days=7 * week)
        at = lived(memory, 5.0, begin=begin, rate_pps=lambda at: day_rate_pps(at) * of_day[(at - MONDAY).days])
        probabilities.append(memory.probability_of_loss_at_peak(at).ratio)
    expected = NormalDist().cdf(math.log(PEAK_PPS / 2e6) / math.hypot(spread, 0.15))
    # What is remembered is about five days: their mean varies by 0.3 / sqrt(5), and forty weeks average that.
    assert sum(probabilities) / len(probabilities) == pytest.approx(expected, abs=0.08)
    assert max(probabilities) - min(probabilities) > 0.01


def test_a_rate_that_steps_is_forgotten() -> None:
    memory = DayMemory("eth0")
    lived(memory, 21.0)
    begin = MONDAY + timedelta(days=21)
    soon = lived(memory, 1.0, begin=begin, rate_pps=lambda at: 2.0 * day_rate_pps(at))
    soon_pps = memory.peak(soon).pps
    late = lived(memory, 41.0, begin=begin + timedelta(days=1), rate_pps=lambda at: 2.0 * day_rate_pps(at))
    assert PEAK_PPS < soon_pps < 1.5 * PEAK_PPS
    assert memory.peak(late).pps == pytest.approx(2.0 * PEAK_PPS, rel=0.02)


def test_bursts_within_a_quarter_hour_count() -> None:
    plain, uneven = DayMemory("eth0"), DayMemory("eth0")
    for number in range(97 * 3):
        at = MONDAY + number * timedelta(minutes=5)
        plain.add(1e6, NOT_SEEN, at)
        uneven.add(1.5e6 if number % 3 == 0 else 0.75e6, NOT_SEEN, at)
    assert plain.peak(at).pps == pytest.approx(1e6)
    assert uneven.peak(at).pps == pytest.approx(1.5e6)


def test_what_looks_have_in_common_is_not_averaged_away() -> None:
    memory = DayMemory("eth0")
    at = lived(memory, 3.0)
    seen = memory.saturation(at)
    assert seen.pps == pytest.approx(2e6)
    assert seen.low_pps == pytest.approx(saturation_at(2e6).low_pps)
    scattered = DayMemory("eth0")
    for number in range(200):
        scattered.add(1e6, saturation_at(2e6 * (2.0 if number % 2 else 0.5)), MONDAY + number * timedelta(minutes=1))
    assert scattered.saturation(MONDAY).high_pps > 2e6 * math.exp(1.96 * 0.6)


def test_old_looks_are_not_known_any_more() -> None:
    memory = DayMemory("eth0")
    at = lived(memory, 1.0) + timedelta(days=29)
    assert memory.saturation(at).reason == "no look showed the load at saturation for 28 days"
    assert memory.peak(at).reason.startswith("0 of the 96")


def test_weeks_take_no_more_memory_than_a_week(tmp_path: Path) -> None:
    sizes = []
    memory = DayMemory("eth0")
    for week in range(6):
        lived(memory, 7.0, begin=MONDAY + timedelta(days=7 * week))
        memory.save(tmp_path / "state.json")
        document = memory.to_json()
        sizes.append(sum(len(row) for kind in document["quarters"] for row in kind if row))
    assert set(sizes) == {2 * 96 * 6}
    assert (tmp_path / "state.json").stat().st_size < 40_000


def test_a_file_brings_back_the_same(tmp_path: Path) -> None:
    memory = DayMemory("eth0", "blue", identity="kernel 6.12")
    at = lived(memory, 1.3)
    memory.save(tmp_path / "state.json")
    again = read_memory(tmp_path / "state.json", "eth0", "blue", identity="kernel 6.12")
    assert again.to_json() == memory.to_json()
    assert again.probability_of_loss_at_peak(at) == memory.probability_of_loss_at_peak(at)
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_another_kernel_forgets_the_saturation_but_not_the_day(tmp_path: Path) -> None:
    memory = DayMemory("eth0", identity="kernel 6.12")
    at = lived(memory, 1.0)
    memory.save(tmp_path / "state.json")
    again = read_memory(tmp_path / "state.json", "eth0", identity="kernel 6.13")
    assert again.peak(at) == memory.peak(at)
    assert again.saturation(at).reason.startswith("no look showed")
    assert "the kernel or the processor changed: kernel 6.12 then, kernel 6.13 now" in again.notes[0]


def test_a_machine_is_known_by_kernel_model_and_microcode(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(
        "model name\t: Fast 9\nmicrocode\t: 0x1\n\nmodel name\t: Fast 9\n", encoding="utf-8"
    )
    identity = machine_identity(tmp_path / "cpuinfo")
    assert identity.endswith("; model name Fast 9; microcode 0x1")
    assert machine_identity(tmp_path / "none").startswith("kernel ")


def damaged() -> dict[str, str]:
    memory = DayMemory("eth0")
    lived(memory, 1.0)
    good = memory.to_json()
    return {
        "it is no JSON": "{",
        "it is no state of routecast watch": '{"kind": "router"}',
        "its version is 9": json.dumps(good | {"version": 9}),
        "it is of the interface eth1": json.dumps(good | {"interface": "eth1"}),
        "it is of the interface eth0 of blue": json.dumps(good | {"netns": "blue"}),
        "it has not twice 96": json.dumps(good | {"quarters": [[None] * 96]}),
        "a row of it has not 6 numbers": json.dumps(good | {"quarters": [[[1.0]] * 96, [None] * 96]}),
        "a row of it has not 5 numbers": json.dumps(good | {"saturation": [1.0, True, 0.0, 0.0, 0.0]}),
        "a weight or a square below 0": json.dumps(good | {"saturation": [-1.0, 14.0, 0.0, 0.0, 0.0]}),
        "it has the number NaN": json.dumps(good | {"saturation": [math.nan] * 5}),
        "its quarter hour under way is none": json.dumps(good | {"opened": [1, 96, 0.0, 1, 1.0, 1.0]}),
    }


@pytest.mark.parametrize(("message", "text"), damaged().items())
def test_a_damaged_file_is_a_sentence_and_stays(message: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileProblem) as problem:
        read_memory(path, "eth0")
    assert message in str(problem.value)
    assert str(problem.value).endswith("name another file, or move this one away")
    assert path.read_text(encoding="utf-8") == text


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="cannot be written"):
        DayMemory("eth0").save(tmp_path / "none" / "state.json")


def series(days: int, step_s: float = 900.0) -> TrafficSeries:
    steps = round(days * 86_400 / step_s)
    begin = MONDAY.replace(tzinfo=None)
    rates = tuple(day_rate_pps(begin + timedelta(seconds=number * step_s)) for number in range(steps))
    return TrafficSeries(step_s=step_s, l2_bps=rates, start=begin, source="sine")


@pytest.mark.parametrize("step_s", [300.0, 900.0, 3600.0])
def test_a_profile_scales_the_present_rate_to_the_peak(step_s: float) -> None:
    memory = DayMemory("eth0", profile=DayProfile.of(series(3, step_s)))
    at = MONDAY + timedelta(hours=6)
    memory.add(day_rate_pps(at), saturation_at(1.8e6), at)
    # A step of an hour has the mean of an hour: nearer to the trough's neighbours.
    assert memory.peak(at).pps == pytest.approx(PEAK_PPS, rel=0.01)
    # Three days alike, beside the assumed one: a spread of DAY_SPREAD / sqrt(3), and that of a further day.
    spread = math.hypot(DAY_SPREAD / math.sqrt(3.0) * math.sqrt(4.0 / 3.0), 0.15)
    expected = NormalDist().cdf(math.log(memory.peak(at).pps / 1.8e6) / spread)
    assert memory.probability_of_loss_at_peak(at).ratio == pytest.approx(expected, rel=1e-6)


def test_a_profile_needs_packets_and_a_whole_day() -> None:
    memory = DayMemory("eth0", profile=DayProfile.of(series(1)))
    memory.add(0.0, NOT_SEEN, MONDAY)
    assert memory.peak(MONDAY).reason.startswith("no packet comes in")
    with pytest.raises(FileProblem, match="no whole day"):
        DayProfile.of(TrafficSeries(step_s=900.0, l2_bps=(1e9,) * 50, start=datetime(2026, 3, 2), source="short"))


def test_the_shipped_profiles_have_a_day() -> None:
    for name in ("geant", "abilene"):
        profile = read_profile(name)
        assert min(profile.to_peak) >= 0.0
        assert max(profile.to_peak) < math.log(10.0)
    with pytest.raises(FileProblem, match="those are abilene, geant"):
        read_profile("nowhere")


def test_growth_reaches_saturation_when_compound_interest_does() -> None:
    memory = DayMemory("eth0")
    at = lived(memory, 1.0, saturation_pps=3e6)
    full = memory.full_on(Growth.parse("30 %/year"), at)
    # Compound interest: ln(3 / 1.5) / ln(1.3) years.
    assert full.day is not None
    assert (full.day - at.date()).days == pytest.approx(math.log(3e6 / PEAK_PPS) / math.log(1.3) * 365.25, abs=1.0)
    assert full.low is not None
    assert full.high is not None
    assert at.date() < full.low < full.day < full.high


def test_a_peak_beyond_saturation_is_full_today_and_a_slow_growth_never() -> None:
    memory = DayMemory("eth0")
    at = lived(memory, 1.0, saturation_pps=0.5e6)
    assert memory.full_on(Growth.parse("30 %/year"), at).day == at.date()
    at = lived(memory, 30.0, begin=at, saturation_pps=30e6)
    never = memory.full_on(Growth.parse("0.1 %/year"), at)
    assert never.day is None
    assert never.reason == "not within 100 years"


def test_growth_is_not_known_where_the_peak_is_not() -> None:
    assert DayMemory("eth0").full_on(Growth.parse("2 %/month"), MONDAY).reason.startswith("0 of the 96")


def test_growth_a_month_is_compounded() -> None:
    month, year = Growth.parse("2 % per month"), Growth.parse("26.8242 %/year")
    assert month.log_per_s == pytest.approx(year.log_per_s, rel=1e-5)


@pytest.mark.parametrize(
    "text", ["", "30 %", "30 %/day", "-3 %/year", "0 %/year", "x/year", "nan/year", "30/year", "/"]
)
def test_what_is_no_growth_is_refused(text: str) -> None:
    with pytest.raises(QuantityProblem, match="growth"):
        Growth.parse(text)
