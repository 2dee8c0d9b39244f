"""The power benchmark's table of a router on a test bed: a search of the throughput, then a trial for each line.

::

    meter alone ─► search (as in the profile "quick") ─► confirmation ─► idle+ ─► typical ─► loaded
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from routecast.errors import EnvironmentProblem, FileProblem, ModelProblem, Problem, QuantityProblem
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark.journal import Journal
from routecast.lab.benchmark.procedures.throughput import PROCEDURE as THROUGHPUT
from routecast.lab.benchmark.procedures.throughput import ThroughputRow, find_ceiling
from routecast.lab.benchmark.profile import read_profile
from routecast.lab.benchmark.stage import InvalidTrial, Stage, counts_of
from routecast.lab.benchmark.streams import Stream
from routecast.lab.benchmark.values import Profile
from routecast.lab.power.table import LosslessThroughput, PowerTable, PowerTableSettings, power_table
from routecast.lab.testbed.document import MeterTable
from routecast.lab.testbed.measure import Measure
from routecast.lab.testbed.meters import PowerMeter, checked_meter, meter_for
from routecast.lab.testbed.opening import open_testbed
from routecast.lab.testbed.reading import read_testbed
from routecast.lab.testbed.timed import TimedMeasure, idle_trial
from routecast.load.offered import OfferedLoad, RateStep, line_rate_pps
from routecast.quantity import format_duration, format_ratio

__all__ = ["MIN_LINE_S", "intervals_s", "measured_table", "search_profile", "wire_power_table"]

MIN_LINE_S = 1.0
"""The line "idle+" sends one frame a second on every port, so a shorter trial would send none."""

_MIX_LIMIT_NOTE = (
    "a mix of sizes is offered at most at the wire rate less the width of the search, because its mean varies"
)

_REQUIRED_PASSES = 2
"""Trials without loss that confirm a rate: two of three."""
_CONFIRMING_ATTEMPTS = 5
_MAX_STEPS_DOWN = 5
_STABILISE_SAMPLES = 3
_MEASURE_SAMPLES = 10
_MIN_STABILISE_S = 0.5


def intervals_s(sample_s: float) -> tuple[float, float]:
    """Return the stabilisation and measurement time of each line from the sampling interval of the meter.

    Examples
    --------
    >>> intervals_s(0.1), intervals_s(5.0)
    ((0.5, 1.0), (15.0, 50.0))
    """
    if not math.isfinite(sample_s):
        sample_s = 0.0
    return (max(_MIN_STABILISE_S, _STABILISE_SAMPLES * sample_s), max(MIN_LINE_S, _MEASURE_SAMPLES * sample_s))


def search_profile() -> Profile:
    """Return the profile of the search: "quick", with only its goal without loss."""
    quick = read_profile("quick")
    base = quick.throughput.base
    return quick.changed("throughput", goal=(base,), base_goal=base.name)


def wire_power_table(
    measure: Measure, load: OfferedLoad, *, settings: PowerTableSettings, report: Callable[[str], None] | None = None
) -> PowerTable:
    """Measure the power table of the device of a test bed.

    Parameters
    ----------
    measure : Measure
        Evaluator on an open test bed with a meter.
    load : OfferedLoad
        Frames and flows; all ports send and receive. Its rate does not matter.
    settings : PowerTableSettings
        ``measure_s`` is at least :data:`MIN_LINE_S`.
    report : callable or None
        Called with the purpose of each trial.

    Raises
    ------
    routecast.errors.FileProblem
        The device makes its frames itself, so that it has no load while it is metered.
    routecast.errors.ModelProblem
        A line is shorter than :data:`MIN_LINE_S`, or the device loses frames at every rate.
    routecast.errors.EnvironmentProblem
        The meter gave no reading, or the tester failed.
    """
    if isinstance(measure, TimedMeasure):
        message = (
            "makes its frames itself and works at its capacity at any load, so its watts over load cannot be measured"
        )
        raise FileProblem("power table", [Problem(f"device {measure.bed.device.name}", message)])
    if not settings.measure_s >= MIN_LINE_S:
        message = f"is {settings.measure_s:g} s: idle+ sends one frame a second on every port, so give 1 s or more"
        raise ModelProblem("power table", [Problem("measure_s", message)])
    profile = search_profile()
    wire_bps = tuple(port.wire_bps for port in measure.bed.ports)
    # All ports are offered the same rate, so the slowest wire decides (RFC 2544 sec. 20).
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
        # The sizes of a mix are random, so at the wire rate the tester would sometimes be late.
        wire_pps=line_pps if load.frames.is_fixed else line_pps * (1.0 - profile.throughput.base.width),
    )
    table = power_table(
        _WireEvaluator(measure),
        load,
        router=measure.bed.device.title,
        ports=len(measure.bed.ports),
        max_pps=line_pps,
        # Less than one frame is due in a line, so none is sent.
        settings=replace(settings, idle_pps=0.5 / (settings.measure_s + settings.stabilise_s)),
        search=lambda: _search_throughput(stage, settings.measure_s),
        report=report,
    )
    return replace(table, notes=(*table.notes, *_meter_notes(measure)))


@dataclass(frozen=True, slots=True)
class _WireEvaluator:
    """Evaluator that sends a load, or nothing if less than one frame per port is due."""

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
    """Return a view for trials without the meter, because a slow meter would delay each of them.

    It does not repeat invalid trials: the stage of the search repeats them, and stabilisation needs only one.
    """
    view = measure.attempted_once()
    view.meter, view.no_power = None, ""
    return view


@dataclass(slots=True, kw_only=True)
class _MixStage(Stage):
    """A stage with a mix of frame sizes; ``wire_pps`` is the greatest offered rate of all ports together."""

    offered: OfferedLoad
    wire_pps: float

    @property
    def theoretical_pps(self) -> float:
        return self.wire_pps

    def load(self, rate_pps: float, *steps: RateStep) -> OfferedLoad:
        assert not steps
        return self.offered.at(rate_pps)


def _search_throughput(stage: _MixStage, line_s: float) -> LosslessThroughput:
    """Search the throughput with the profile "quick" of RFC 2544, and confirm it in trials as long as a line."""
    tester_limit = find_ceiling(stage)
    row = THROUGHPUT.run(stage, math.nan)[0]
    rate_pps, notes = row.throughput_pps, [*_limit_notes(stage, row, tester_limit), _search_description(stage.profile)]
    if rate_pps > 0.0:
        rate_pps, lowering_note = _confirmed_rate(stage, rate_pps, line_s)
        notes += [lowering_note] if lowering_note else []
    return LosslessThroughput(rate_pps=rate_pps, reason=row.reason, notes=tuple(notes))


def _confirmed_rate(stage: _MixStage, rate_pps: float, line_s: float) -> tuple[float, str]:
    """Return a rate without loss in trials as long as a line, and a note if it differs from the rate of the search.

    A rate that passes for the fifth of a second of a search may fail for longer, because buffers fill and a software
    tester falls behind. Two of three trials must pass, so that a single lucky trial does not decide.
    """
    width, tolerated = stage.profile.throughput.base.width, stage.profile.throughput.base.loss_ratio
    length = format_duration(line_s)
    lower_pps = rate_pps
    for step in range(_MAX_STEPS_DOWN):
        if most_trials_pass(stage, lower_pps, line_s, tolerated):
            lowering = format_ratio(1.0 - lower_pps / rate_pps)
            note = f"throughput lowered by {lowering}, until most trials of {length} lost nothing"
            return lower_pps, note if lower_pps < rate_pps else ""
        lower_pps *= 1.0 - 2**step * width  # steps double, because lines may be long
    return (
        rate_pps,
        f"the throughput holds only in short trials: most trials of {length} near it lost frames or were invalid",
    )


def most_trials_pass(stage: _MixStage, rate_pps: float, line_s: float, tolerated: float) -> bool:
    """Whether two of three valid trials at a rate lose nothing.

    An invalid trial does not count, and at most five trials run.
    """
    passed = failed = 0
    for _ in range(_CONFIRMING_ATTEMPTS):
        try:
            trial = stage.trial(rate_pps, line_s, "confirmation", attempts=1)
        except InvalidTrial:
            continue
        is_met = counts_of(trial, line_s).loss_ratio <= tolerated
        passed, failed = passed + is_met, failed + (not is_met)
        if _REQUIRED_PASSES in (passed, failed):
            break
    return passed == _REQUIRED_PASSES


def _limit_notes(stage: _MixStage, row: ThroughputRow, tester_limit: str) -> tuple[str, ...]:
    if row.outcome != "maximum":
        return ()
    limiter = "the tester" if tester_limit else "the links"
    limited = f"{limiter}, not the router, limit{'s' if tester_limit else ''} the throughput"
    if tester_limit:
        return (limited, tester_limit)
    return (limited,) if stage.offered.frames.is_fixed else (limited, _MIX_LIMIT_NOTE)


def _search_description(profile: Profile) -> str:
    goal, settings = profile.throughput.base, profile.throughput
    return (
        f"throughput by binary search as in the profile {profile.name}: "
        f"loss tolerance {format_ratio(goal.loss_ratio)}, width {format_ratio(goal.width)}, "
        f"trials of {format_duration(goal.final_trial)}, "
        f"losses below {format_ratio(settings.verify_below)} verified {settings.verify_losses} times"
    )


def _meter_notes(measure: Measure) -> tuple[str, ...]:
    notes = []
    if measure.meter is not None:
        notes.append(
            f"meter {measure.meter.name}, scope {measure.meter.scope}, a sample each "
            f"{format_duration(measure.meter.interval_s)}"
        )
    if any(port.is_virtual for port in measure.bed.ports):
        notes.append("tester and router share this machine, so the watts include both")
    return tuple(notes)


_RETRIES = 4
"""Repetitions of an invalid trial, as in the profile "quick"."""

_AVERAGING = "mean of the meter while frames are sent, one trial for each line"


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
    """Return the power table of the device of a test bed. Default durations follow from the meter.

    ``bed`` holds the options of :func:`routecast.lab.testbed.opening.open_testbed`.

    Raises QuantityProblem: no meter is named; EnvironmentProblem: the meter cannot be read, or the test bed cannot be
    opened.
    """
    meter = _readable_meter(read_testbed(testbed, device=bed["device"], options=bed["options"]).power, power)
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


def _readable_meter(table: MeterTable | None, power: str | None) -> PowerMeter:
    """Return the meter of the command line or of the file after a test reading."""
    meter, no_power = meter_for(table, power)
    if meter is not None:
        return checked_meter(meter)
    if no_power:
        raise EnvironmentProblem(no_power)
    message = "a real router needs a power meter: give --power METER (`routecast power meters` lists them)"
    raise QuantityProblem(power or "", message)
