"""Every frame of a day: each step against queueing theory, the day against the trial in one piece, what is kept."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routecast
from routecast.cli.run import run
from routecast.errors import ModelProblem
from routecast.evaluate.plain import plain
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.simulate.parts import trial_in_parts
from routecast.evaluate.trial import Moment
from routecast.load import Arrivals, FrameMix, OfferedLoad
from routecast.load.series import DAY_S, TrafficSeries
from routecast.plan.day.simulated import _worst_minute, day_load, day_steps, simulated_day
from routecast.plan.day.views import day_page
from routecast.router import RouterModel, ServiceCost, multicore

EXAMPLE = Path(routecast.__file__).parents[3] / "examples" / "green.router.toml"
QUEUE_FRAMES = 15
SERVICE_S = 1e-6
EACH_S = 2.0
LOADS = (0.3, 0.7, 1.1, 0.8)


def core() -> RouterModel:
    """Return an M/M/1/K queue: one in service, QUEUE_FRAMES waiting."""
    cost = ServiceCost(per_packet_s=SERVICE_S, variation="exponential")
    return multicore(1, cost, queue_frames=QUEUE_FRAMES, link_bps=1e15)


def series(loads: tuple[float, ...] = LOADS) -> TrafficSeries:
    rates = tuple(8.0 * 64.0 * load / SERVICE_S for load in loads)
    return TrafficSeries(step_s=DAY_S / len(rates), l2_bps=rates, source="test")


def offered() -> OfferedLoad:
    return OfferedLoad(rate_pps=1.0, frames=FrameMix.fixed(64), arrivals=Arrivals.poisson())


def day(kept: Path | None = None, seed: int = 1) -> list[Any]:
    load = day_load(offered(), series(), each_s=EACH_S)
    return list(day_steps(Simulate(core(), seed=seed), load, series(), each_s=EACH_S, kept=kept))


class Lost:
    """A graphics processor that is lost at once. A stand-in: no driver can be made to fail."""

    has_u64 = False

    def most_lanes(self, words: int, memory: int) -> int:
        return 7 if words and memory >= 0 else 0

    def open(self, *_: Any) -> None:
        raise RuntimeError("the device is lost")


def test_a_day_says_where_a_device_was_given_up() -> None:
    load = day_load(offered(), series(), each_s=EACH_S)
    simulate = Simulate(core(), seed=1, device=Lost())  # type: ignore[arg-type]
    given_up: Counter[str] = Counter()
    steps = list(day_steps(simulate, load, series(), each_s=EACH_S, on_given_up=lambda why: given_up.update([why])))
    # A device runs more stretches side by side, and counts the same frames.
    plainly, given = ([plain(replace(step, seams=0, proved=0)) for step in of] for of in (day(), steps))
    assert given == plainly
    result = simulated_day(core(), load, series(), steps, each_s=EACH_S, given_up=given_up)
    note = "4 of 4 steps were run by the processor, in part or whole, since the device is lost"
    assert note in result.notes


def loss_of_mm1k(load: float) -> float:
    places = QUEUE_FRAMES + 1
    return (1.0 - load) * load**places / (1.0 - load ** (places + 1))


def test_each_step_loses_what_theory_says_at_its_load() -> None:
    for step, load in zip(day(), LOADS, strict=True):
        assert step.intended_pps == pytest.approx(load / SERVICE_S)
        assert step.offered_frames == pytest.approx(load / SERVICE_S * EACH_S, rel=0.01)
        assert step.loss_ratio == pytest.approx(loss_of_mm1k(load), rel=0.2, abs=2e-5)  # three standard errors
        assert step.loss_ratio == pytest.approx(step.dropped_frames / step.offered_frames)


def test_the_steps_are_one_trajectory_whatever_its_parts() -> None:
    load = day_load(offered(), series(), each_s=EACH_S)
    whole_s = EACH_S * len(LOADS)
    (whole,) = trial_in_parts(Simulate(core()), load, (0.0, whole_s))
    steps = day()
    assert sum(step.offered_frames for step in steps) == whole.trial.offered_frames
    assert sum(step.dropped_frames for step in steps) == whole.trial.dropped_frames
    assert sum(step.forwarded_frames for step in steps) == whole.trial.forwarded_frames
    parts = list(trial_in_parts(Simulate(core()), load, (0.0, 0.7, 2.5, whole_s)))
    assert sum(part.trial.dropped_frames or 0 for part in parts) == whole.trial.dropped_frames
    assert parts[-1].end == whole.end
    assert all(part.seams == part.proved for part in (*parts, whole))


def test_a_day_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    kept = tmp_path / "day.json"
    load = day_load(offered(), series(), each_s=EACH_S)
    steps = day_steps(Simulate(core()), load, series(), each_s=EACH_S, kept=kept)
    first = [next(steps), next(steps)]
    del steps
    assert len(json.loads(kept.read_text())["steps"]) == 2
    resumed = day(kept)
    assert plain(resumed[:2]) == plain(first)
    assert [step.dropped_frames for step in resumed] == [step.dropped_frames for step in day()]
    # A finished day is read, not simulated again.
    assert plain(day(kept)) == plain(resumed)
    with pytest.raises(ModelProblem, match="holds another day"):
        day(kept, seed=2)
    kept.write_text('{"format": "something else"}')
    with pytest.raises(ModelProblem, match="is no file that"):
        day(kept)


def test_figures_of_a_day_that_was_cut_short_say_so() -> None:
    load = day_load(offered(), series(), each_s=EACH_S)
    result = simulated_day(core(), load, series(), day()[:3], each_s=EACH_S)
    assert any("3 of 4 steps are simulated" in note for note in result.notes)
    assert any("2 s are simulated" in note for note in result.notes)
    assert result.is_sampled
    assert "in 2 s of each step" in day_page(result, source="").answer
    assert result.worst.from_s == DAY_S / 2
    assert math.isnan(result.energy_j)


@pytest.mark.parametrize(("count", "length_s"), [(1000, 900.0), (10, 600.0), (60, 60.0)])
def test_the_worst_minute_is_the_one_that_loses_the_largest_share(count: int, length_s: float) -> None:
    moment_s = length_s / count
    bad = range(count // 2, count // 2 + max(1, round(60.0 / moment_s)))
    moments = [
        Moment(time_s=i * moment_s, offered_pps=100.0, forwarded_pps=100.0, dropped_pps=10.0 if i in bad else 0.0)
        for i in range(count)
    ]
    begin_s, loss_ratio = _worst_minute(moments, length_s)
    assert loss_ratio == pytest.approx(0.1 if count != 60 else 0.05, rel=0.02)
    assert begin_s == pytest.approx(0.0 if count == 60 else bad[0] * moment_s, abs=moment_s)


def test_less_than_a_minute_has_no_worst_one() -> None:
    assert all(map(math.isnan, _worst_minute([], 10.0)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"each_s": 1e6}, "at most a step"),
        ({"each_s": 0.0}, "more than 0"),
        ({"series": replace(series(), l2_bps=(1e6, math.nan, 0.0))}, "2 steps are missing or have no traffic"),
    ],
)
def test_a_day_that_cannot_be_simulated_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelProblem, match=message):
        day_load(offered(), change.get("series", series()), each_s=change.get("each_s"))


def test_arrivals_that_are_not_poisson_are_refused_with_the_reason() -> None:
    load = day_load(replace(offered(), arrivals=Arrivals.cbr()), series(), each_s=EACH_S)
    with pytest.raises(ModelProblem, match="arrivals are not Poisson"):
        next(day_steps(Simulate(core()), load, series(), each_s=EACH_S))


def test_the_command_answers_on_a_shipped_router(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["day", str(EXAMPLE), "--profile", "geant", "--step", "6 h", "--peak", "4 Mpps", "--each", "2 ms"]
    page, figure = tmp_path / "day.html", tmp_path / "day.svg"
    assert run([*words, "--json", "--out", str(page), "--figure", str(figure)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["step_count"], answer["simulated_steps"]) == (4, 4)
    assert max(step["intended_pps"] for step in answer["steps"]) == pytest.approx(4e6)
    assert answer["energy_j"] == pytest.approx(sum(step["power_w"] for step in answer["steps"]) * DAY_S / 4)
    assert "Step by step" in page.read_text()
    assert "in 2 ms of each step" in page.read_text()
    assert figure.read_text().startswith("<svg")
    assert run([*words, "--csv"]) == 0
    assert capsys.readouterr().out.count("\n") == 5
    assert run([*words, "--csv", "--json"]) != 0
    assert run([*words, "--load", "1 Mpps"]) != 0
    assert "--peak scales them" in capsys.readouterr().err
