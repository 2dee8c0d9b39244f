"""Every frame of a day: a router at the loads of a traffic series, one step after the other, as one trajectory."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any

from routecast.errors import ModelProblem, Problem, RoutecastError
from routecast.evaluate.plain import plain
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.simulate.parts import Part, given_up_notes, trial_in_parts
from routecast.evaluate.simulate.scenario import scenario_of
from routecast.evaluate.trial import Moment
from routecast.load.offered import OfferedLoad, RateStep
from routecast.load.series import TrafficSeries
from routecast.power.model import NO_WATTS
from routecast.quantity.bounded_file import read_text
from routecast.quantity.whole_file import write_whole
from routecast.router.model import RouterModel

__all__ = ["DayStep", "SimulatedDay", "day_load", "day_steps", "simulated_day"]

_FORMAT = "routecast day"
_VERSION = 1
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DayStep:
    """A step of a day, simulated.

    ``from_s``, ``to_s``: when it is, s of the day; ``simulated_s``: how much of it was simulated; rates in frames/s;
    latencies and powers NaN where there are none; ``worst_minute_s``: when within the step the minute with the greatest
    loss begins, s of the day, and ``worst_minute_loss_ratio`` its loss; NaN where less than a minute is simulated.
    """

    from_s: float
    to_s: float
    simulated_s: float
    intended_pps: float
    forwarded_pps: float
    offered_frames: int
    forwarded_frames: int
    dropped_frames: int
    loss_ratio: float
    latency_mean_s: float
    latency_p50_s: float
    latency_p99_s: float
    latency_p999_s: float
    latency_max_s: float
    power_w: float
    worst_minute_s: float
    worst_minute_loss_ratio: float
    seams: int
    proved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedDay:
    """The steps of a day that are simulated, of ``step_count`` in all."""

    router: str
    profile: str
    step_count: int
    steps: tuple[DayStep, ...]
    notes: tuple[str, ...] = ()

    @property
    def offered_frames(self) -> int:
        """Frames that were offered."""
        return sum(step.offered_frames for step in self.steps)

    @property
    def dropped_frames(self) -> int:
        """Frames that were lost."""
        return sum(step.dropped_frames for step in self.steps)

    @property
    def loss_ratio(self) -> float:
        """Share of the frames that was lost; NaN without frames. Every step counts as long as it lasts."""
        frames = math.fsum(step.offered_frames / step.simulated_s * (step.to_s - step.from_s) for step in self.steps)
        lost = math.fsum(step.dropped_frames / step.simulated_s * (step.to_s - step.from_s) for step in self.steps)
        return lost / frames if frames else math.nan

    @property
    def is_sampled(self) -> bool:
        """Whether less than the whole of a step is simulated."""
        return any(step.simulated_s < step.to_s - step.from_s for step in self.steps)

    @property
    def energy_j(self) -> float:
        """Energy of the steps; NaN without watts."""
        return math.fsum(step.power_w * (step.to_s - step.from_s) for step in self.steps)

    @property
    def worst(self) -> DayStep:
        """The step with the greatest loss; of several, that with the greatest p99 latency."""
        return max(self.steps, key=lambda step: (step.loss_ratio, _or_zero(step.latency_p99_s)))

    @property
    def seams(self) -> tuple[int, int]:
        """Seams between the segments of the trajectory, and those of them that are proved."""
        return sum(step.seams for step in self.steps), sum(step.proved for step in self.steps)

    def to_json(self) -> dict[str, object]:
        """Return plain data: NaN becomes null."""
        seams, proved = self.seams
        return plain(
            {
                "router": self.router,
                "profile": self.profile,
                "step_count": self.step_count,
                "simulated_steps": len(self.steps),
                "offered_frames": self.offered_frames,
                "dropped_frames": self.dropped_frames,
                "loss_ratio": self.loss_ratio,
                "energy_j": self.energy_j,
                "is_sampled": self.is_sampled,
                "seams": seams,
                "proved_seams": proved,
                "steps": self.steps,
                "notes": self.notes,
            }
        )


def day_load(load: OfferedLoad, series: TrafficSeries, *, each_s: float | None = None) -> OfferedLoad:
    """Return the load of a day: the rates of a series' steps one after the other, with the frames of ``load``.

    ``each_s``: simulated time of each step, s; None: as long as it lasts. Raises ModelProblem: a step is missing or has
    no traffic, or ``each_s`` is not positive or longer than a step.
    """
    problems = []
    if each_s is not None and not 0.0 < each_s <= series.step_s:
        problems.append(Problem("each", f"got {each_s:g} s: more than 0, and at most a step of {series.step_s:g} s"))
    missing = [number for number, bps in enumerate(series.l2_bps) if not bps > 0.0]
    if missing:
        problems.append(Problem("", f"{len(missing)} steps are missing or have no traffic, the first is {missing[0]}"))
    if problems:
        raise ModelProblem(series.source or "profile", problems)
    length_s = series.step_s if each_s is None else each_s
    first_pps, *later_pps = (bps / (8.0 * load.frames.mean_bytes) for bps in series.l2_bps)
    steps = [RateStep(at_s=length_s * number, rate_pps=pps) for number, pps in enumerate(later_pps, 1)]
    return replace(load, rate_pps=first_pps, steps=tuple(steps))


def day_steps(
    simulate: Simulate,
    load: OfferedLoad,
    series: TrafficSeries,
    *,
    each_s: float | None = None,
    kept: Path | None = None,
    on_given_up: Callable[[str], None] = lambda why: None,
) -> Iterator[DayStep]:
    """Simulate a day step by step; yield each step when it is done.

    Parameters
    ----------
    simulate : Simulate
        The router and the seed.
    load : OfferedLoad
        The load of :func:`day_load`, with Poisson arrivals.
    series : TrafficSeries
        The day, as for :func:`day_load`.
    each_s : float or None
        As for :func:`day_load`.
    kept : Path or None
        File that holds the finished steps and the state after them, for a day that goes on after an interruption. It is
        written whole after each step; steps that it already has are yielded at once.
    on_given_up : callable
        Called with a reason for which a graphics processor did not run a step, or not all of it.

    Raises
    ------
    routecast.errors.ModelProblem
        Lanes do not run this router or load, or the file is of another day.
    """
    length_s = series.step_s if each_s is None else each_s
    borders_s = [length_s * number for number in range(len(series.l2_bps) + 1)]
    key = _key(simulate, load, borders_s)
    done, state = _kept_steps(kept, key)
    yield from done
    if len(done) == len(series.l2_bps):
        return
    steps = list(done)
    for part in trial_in_parts(replace(simulate, over_time=True), load, borders_s[len(done) :], begin=state):
        for why in part.given_up:
            on_given_up(why)
        steps.append(_step(part, series.step_s, len(steps)))
        if kept is not None:
            _keep(kept, key, steps, part.end)
        yield steps[-1]


def simulated_day(
    model: RouterModel,
    load: OfferedLoad,
    series: TrafficSeries,
    steps: Sequence[DayStep],
    *,
    each_s: float | None,
    given_up: Mapping[str, int] = MappingProxyType({}),
) -> SimulatedDay:
    """Return finished steps as a day, with notes on what they are.

    ``given_up``: for how many steps a reason was given why a graphics processor did not run them, or not all of them.
    """
    day = SimulatedDay(router=model.name, profile=series.source, step_count=len(series.l2_bps), steps=tuple(steps))
    seams, proved = day.seams
    cut = f"{proved:,} of {seams:,} seams proved" if seams else "each step in one stretch, without a seam"
    notes = [
        f"{day.offered_frames:,} frames of {load.frames.name}, {load.arrivals.text}: one trajectory in lanes, every "
        f"frame simulated; {cut}"
    ]
    if each_s is not None and each_s < series.step_s:
        notes.append(
            f"of each step of {series.step_s:g} s, {each_s:g} s are simulated, one after the other: what is rarer, or "
            "takes longer to build up, is not seen"
        )
    notes += given_up_notes(given_up, len(steps), "steps")
    if len(steps) < day.step_count:
        notes.append(f"{len(steps)} of {day.step_count} steps are simulated: figures are theirs alone")
    if steps and math.isnan(steps[0].power_w):
        notes.append(f"no watts: {NO_WATTS}")
    return replace(day, notes=(*series.notes, *notes))


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _step(part: Part, step_s: float, number: int) -> DayStep:
    trial, latency = part.trial, part.trial.latency
    minute_s, minute_loss_ratio = _worst_minute(trial.over_time, part.to_s - part.from_s)
    return DayStep(
        from_s=number * step_s,
        to_s=(number + 1) * step_s,
        simulated_s=part.to_s - part.from_s,
        intended_pps=trial.intended_pps,
        forwarded_pps=trial.forwarded_pps,
        offered_frames=trial.offered_frames or 0,
        forwarded_frames=trial.forwarded_frames or 0,
        dropped_frames=trial.dropped_frames or 0,
        loss_ratio=trial.loss_ratio,
        latency_mean_s=latency.mean_s if latency else math.nan,
        latency_p50_s=latency.p50_s if latency else math.nan,
        latency_p99_s=latency.p99_s if latency else math.nan,
        latency_p999_s=latency.p999_s if latency else math.nan,
        latency_max_s=latency.max_s if latency else math.nan,
        power_w=trial.power.mean_w if trial.power else math.nan,
        worst_minute_s=number * step_s + minute_s,
        worst_minute_loss_ratio=minute_loss_ratio,
        seams=part.seams,
        proved=part.proved,
    )


def _worst_minute(moments: Sequence[Moment], length_s: float) -> tuple[float, float]:
    """Return when the minute with the greatest loss begins, s after the first moment, and its loss."""
    if length_s < _MINUTE_S or not moments:
        return math.nan, math.nan
    count = math.ceil(_MINUTE_S / (length_s / len(moments)) * (1.0 - 1e-9))
    offered = [0.0, *accumulate(moment.offered_pps for moment in moments)]
    dropped = [0.0, *accumulate(moment.dropped_pps for moment in moments)]
    losses = [
        (dropped[end] - dropped[end - count]) / (offered[end] - offered[end - count])
        if offered[end] > offered[end - count]
        else 0.0
        for end in range(count, len(moments) + 1)
    ]
    worst = max(range(len(losses)), key=losses.__getitem__)
    return worst * length_s / len(moments), max(losses[worst], 0.0)


def _key(simulate: Simulate, load: OfferedLoad, borders_s: Sequence[float]) -> str:
    """Return what tells days apart whose steps must not be mixed."""
    document = [scenario_of(simulate.model, load), simulate.seed, list(borders_s)]
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _read_step(step: dict[str, Any]) -> DayStep:
    fields: dict[str, Any] = {name: math.nan if value is None else value for name, value in step.items()}
    return DayStep(**fields)


def _keep(file: Path, key: str, steps: Sequence[DayStep], state: dict[str, Any]) -> None:
    document = {"format": _FORMAT, "version": _VERSION, "day": key, "steps": plain(tuple(steps)), "state": state}
    write_whole(file, json.dumps(document) + "\n")


def _kept_steps(file: Path | None, key: str) -> tuple[list[DayStep], dict[str, Any] | None]:
    """Return the steps that a file holds, and the state after them; raise ModelProblem if it is of another day."""
    if file is None or not file.exists():
        return [], None
    try:
        document = json.loads(read_text(file, kind="day file"))
        if document["format"] != _FORMAT or document["version"] != _VERSION:
            raise KeyError("format")
        steps = [_read_step(step) for step in document["steps"]]
        day, state = document["day"], document["state"]
    except RoutecastError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = "is no file that `routecast day` has kept: give another name"
        raise ModelProblem(str(file), [Problem("", message)]) from error
    if day != key:
        message = (
            "holds another day: the router, the load, the steps or the seed differ. Give another name, or remove it"
        )
        raise ModelProblem(str(file), [Problem("", message)])
    return steps, state
