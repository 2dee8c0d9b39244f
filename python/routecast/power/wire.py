"""The power benchmark's table of a router on a test bed: a search of the throughput, then the load of each line.

::

    meter alone ─► search (as in the profile "quick") ─► confirmation ─► idle+ ─► typical ─► loaded
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from routecast.benchmark.journal import Journal
from routecast.benchmark.procedures.throughput import PROCEDURE as THROUGHPUT
from routecast.benchmark.procedures.throughput import ThroughputRow, find_ceiling
from routecast.benchmark.profile import Profile, read_profile
from routecast.benchmark.stage import InvalidTrial, Stage, counts_of
from routecast.benchmark.streams import Stream
from routecast.errors import EnvironmentProblem, FileProblem, ModelProblem, Problem, QuantityProblem
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad, RateStep, line_rate_pps
from routecast.power.table import LosslessThroughput, PowerTable, PowerTableSettings, power_table
from routecast.quantity import format_duration, format_ratio
from routecast.testbed.document import MeterTable
from routecast.testbed.measure import Measure
from routecast.testbed.meters import PowerMeter, checked_meter, meter_for
from routecast.testbed.opening import open_testbed
from routecast.testbed.reading import read_testbed
from routecast.testbed.timed import TimedMeasure, idle_trial

__all__ = ["SHORTEST_LINE_S", "intervals_s", "measured_table", "search_profile", "wire_power_table"]

SHORTEST_LINE_S = 1.0
"""Line "idle+" has a frame a second on every port: a shorter trial would have none."""

_MIX = "a mix of sizes is offered at most one width of the search below the rate of the wires: its mean varies"

_MAJORITY = 2
"""Of three trials."""
_CONFIRMING_ATTEMPTS = 5
_MOST_STEPS_DOWN = 5
_STABILISE_SAMPLES = 3
_MEASURE_SAMPLES = 10
_SHORTEST_STABILISE_S = 0.5


def intervals_s(sample_s: float) -> tuple[float, float]:
    """Return for how long each line is stabilised and measured, from the time between a meter's samples.

    Examples
    --------
    >>> intervals_s(0.1), intervals_s(5.0)
    ((0.5, 1.0), (15.0, 50.0))
    """
    if not math.isfinite(sample_s):
        sample_s = 0.0
    return (
        max(_SHORTEST_STABILISE_S, _STABILISE_SAMPLES * sample_s),
        max(SHORTEST_LINE_S, _MEASURE_SAMPLES * sample_s),
    )


def search_profile() -> Profile:
    """Return the profile of the search: "quick", with its goal without loss alone."""
    quick = read_profile("quick")
    base = quick.throughput.base
    return quick.changed("throughput", goal=(base,), base_goal=base.name)


def wire_power_table(
    measure: Measure, load: OfferedLoad, *, settings: PowerTableSettings, report: Callable[[str], None] | None = None
) -> PowerTable:
    """Measure the table of the device of a test bed.

    Parameters
    ----------
    measure : Measure
        An evaluator on a test bed that is up, with a meter.
    load : OfferedLoad
        Frames and flows; all ports send and receive. Its rate does not matter.
    settings : PowerTableSettings
        ``measure_s`` is at least :data:`SHORTEST_LINE_S`.
    report : callable or None
        Called with the purpose of each trial.

    Raises
    ------
    routecast.errors.FileProblem
        The device makes its frames itself, so no load is on it while it is metered.
    routecast.errors.ModelProblem
        A line is shorter than :data:`SHORTEST_LINE_S`, or the device loses frames at every rate.
    routecast.errors.EnvironmentProblem
        The meter gave no reading, or the tester failed.
    """
    if isinstance(measure, TimedMeasure):
        what = "makes its frames itself and works at its capacity at any load: there are no watts over load"
        raise FileProblem("power table", [Problem(f"device {measure.bed.device.name}", what)])
    if not settings.measure_s >= SHORTEST_LINE_S:
        what = f"is {settings.measure_s:g} s: idle+ has a frame a second on every port, so give 1 s or more"
        raise ModelProblem("power table", [Problem("measure_s", what)])
    profile = search_profile()
    wire_bps = tuple(port.wire_bps for port in measure.bed.ports)
    # All ports are offered the same, so the slowest wire decides (RFC 2544 sec. 20).
    line_pps = len(wire_bps) * line_rate_pps(min(wire_bps), load.frames.mean_bytes)
    stage = _MixStage(
        procedure="throughput",
        stream=Stream(name="all ports", bidirectional=True),
        frame_bytes=round(load.frames.mean_bytes),
        evaluator=_unmetered(measure),
        profile=profile,
        link_bps=wire_bps,
        identity="power table",
        journal=Journal(),
        records=[],
        on_trial=lambda seconds, known, purpose: report(f"throughput, {purpose}") if report else None,
        offered=load,
        # Sizes of a mix are drawn, so at the rate of the wire the tester would now and then be held up.
        wire_pps=line_pps if load.frames.is_fixed else line_pps * (1.0 - profile.throughput.base.width),
    )
    table = power_table(
        _Wire(measure),
        load,
        router=measure.bed.device.title,
        ports=len(measure.bed.ports),
        most_pps=line_pps,
        # Less than a frame is due in a line, so none is sent.
        settings=replace(settings, idle_pps=0.5 / (settings.measure_s + settings.stabilise_s)),
        search=lambda: _searched(stage, settings.measure_s),
        report=report,
    )
    return replace(table, notes=(*table.notes, *_meter_notes(measure)))


@dataclass(frozen=True, slots=True)
class _Wire:
    """Sends a load, or nothing where not every port has a frame to send."""

    measure: Measure

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        if load.rate_pps * duration_s < len(self.measure.bed.ports):
            return idle_trial(self.measure, duration_s)
        return self.measure.trial(load, duration_s)

    def stabilise(self, load: OfferedLoad, duration_s: float) -> None:
        view = _unmetered(self.measure)
        if load.rate_pps * duration_s < len(self.measure.bed.ports):
            idle_trial(view, duration_s)
        else:
            view.trial(load, duration_s)

    def facts(self) -> Mapping[str, object]:
        return self.measure.facts()


def _unmetered(measure: Measure) -> Measure:
    """Return a view for trials without a meter, because a slow meter would hold each of them up.

    It runs no invalid trial again: the stage of the search does that itself, and to stabilise one is enough.
    """
    view = measure.attempted_once()
    view.meter, view.no_power = None, ""
    return view


@dataclass(slots=True, kw_only=True)
class _MixStage(Stage):
    """A stage with a mix of frame sizes; ``wire_pps`` is what is offered of it at most, all ports together."""

    offered: OfferedLoad
    wire_pps: float

    @property
    def theoretical_pps(self) -> float:
        return self.wire_pps

    def load(self, rate_pps: float, *steps: RateStep) -> OfferedLoad:
        assert not steps
        return self.offered.at(rate_pps)


def _searched(stage: _MixStage, line_s: float) -> LosslessThroughput:
    """Search as ``routecast benchmark rfc2544 --profile quick`` does, and confirm the rate for as long as a line."""
    short = find_ceiling(stage)
    row = THROUGHPUT.run(stage, math.nan)[0]
    rate_pps, lowered = row.throughput_pps, ""
    if rate_pps > 0.0:
        rate_pps, lowered = _confirmed(stage, rate_pps, line_s)
    notes = (*_limits(stage, row, short), _method(stage.profile), *([lowered] if lowered else ()))
    return LosslessThroughput(rate_pps=rate_pps, reason=row.reason, notes=notes)


def _confirmed(stage: _MixStage, rate_pps: float, line_s: float) -> tuple[float, str]:
    """Return a rate that passes a trial as long as a line, and a note where it is not the one found.

    What passes for the fifth of a second of a search may not for long: buffers fill, a tester of software falls behind.
    Most trials at a rate must pass, so that a lucky one does not decide.
    """
    width, tolerated = stage.profile.throughput.base.width, stage.profile.throughput.base.loss_ratio
    length = f"a trial of {format_duration(line_s)}"
    lower_pps = rate_pps
    for step in range(_MOST_STEPS_DOWN):
        if _most_pass(stage, lower_pps, line_s, tolerated):
            lowered = format_ratio(1.0 - lower_pps / rate_pps)
            note = f"throughput lowered by {lowered}, until most trials of {format_duration(line_s)} lost nothing"
            return lower_pps, note if lower_pps < rate_pps else ""
        lower_pps *= 1.0 - 2**step * width  # each step twice the one before: lines may be long
    return rate_pps, f"the throughput holds in short trials only: {length} was not valid without loss near it"


def _most_pass(stage: _MixStage, rate_pps: float, line_s: float, tolerated: float) -> bool:
    """Whether two of three valid trials at a rate lose nothing; stops as soon as that is decided.

    An invalid trial says nothing of the router and is not counted, but neither is it run again without end.
    """
    passed = failed = 0
    for _ in range(_CONFIRMING_ATTEMPTS):
        try:
            trial = stage.trial(rate_pps, line_s, "confirmation", attempts=1)
        except InvalidTrial:
            continue
        is_met = counts_of(trial, line_s).loss_ratio <= tolerated
        passed, failed = passed + is_met, failed + (not is_met)
        if _MAJORITY in (passed, failed):
            break
    return passed == _MAJORITY


def _limits(stage: _MixStage, row: ThroughputRow, short: str) -> tuple[str, ...]:
    if row.outcome != "maximum":
        return ()
    who = "the tester" if short else "the links"
    limited = f"{who}, not the router, limit{'s' if short else ''} the throughput"
    if short:
        return (limited, short)
    return (limited,) if stage.offered.frames.is_fixed else (limited, _MIX)


def _method(profile: Profile) -> str:
    goal, settings = profile.throughput.base, profile.throughput
    return ", ".join(
        (
            f"throughput by binary search as in the profile {profile.name}: "
            f"loss tolerance {format_ratio(goal.loss_ratio)}",
            f"width {format_ratio(goal.width)}",
            f"trials of {format_duration(goal.final_trial)}",
            f"losses below {format_ratio(settings.verify_below)} verified {settings.verify_losses} times",
        )
    )


def _meter_notes(measure: Measure) -> tuple[str, ...]:
    notes = []
    if measure.meter is not None:
        notes.append(
            f"meter {measure.meter.name}, scope {measure.meter.scope}, a sample each "
            f"{format_duration(measure.meter.interval_s)}"
        )
    if any(port.is_virtual for port in measure.bed.ports):
        notes.append("tester and router share this machine: the watts are those of both")
    return tuple(notes)


_RETRIES = 4
"""How often an invalid trial is run again: as in the profile "quick"."""

_AVERAGING = "mean of the meter over the time in which frames are sent, one trial for each line"


def measured_table(
    testbed: str,
    *,
    bed: Mapping[str, Any],
    power: str | None,
    load: OfferedLoad,
    seed: int,
    settings: PowerTableSettings,
    duration_s: float | None,
    stabilise_s: float | None,
    on_remark: Callable[[str], None],
    report: Callable[[str], None],
) -> PowerTable:
    """Return the table of the device of a test bed; without lengths those that suit the meter.

    ``bed`` are the options of :func:`routecast.testbed.opening.open_testbed`.

    Raises QuantityProblem: no meter is named; EnvironmentProblem: the meter cannot be read, or the test bed cannot be
    put up.
    """
    meter = _meter(read_testbed(testbed, device=bed["device"], options=bed["options"]).power, power)
    usual_stabilise_s, usual_measure_s = intervals_s(meter.interval_s)
    settings = replace(
        settings,
        stabilise_s=usual_stabilise_s if stabilise_s is None else stabilise_s,
        measure_s=duration_s or usual_measure_s,
        averaging=_AVERAGING,
    )
    lengths = f"{format_duration(settings.stabilise_s)} and {format_duration(settings.measure_s)}"
    on_remark(f"{meter.name}, scope {meter.scope}: each line is stabilised and measured for {lengths}")
    with open_testbed(testbed, **bed, on_remark=on_remark, power=power, seed=seed, retries=_RETRIES) as measure:
        return wire_power_table(measure, load, settings=settings, report=report)


def _meter(table: MeterTable | None, power: str | None) -> PowerMeter:
    """Return the meter of the command line or of the file, if it can be read."""
    meter, no_power = meter_for(table, power)
    if meter is not None:
        return checked_meter(meter)
    if no_power:
        raise EnvironmentProblem(no_power)
    text = "a real router needs a power meter: give --power METER (`routecast power meters` lists them)"
    raise QuantityProblem(power or "", text)
