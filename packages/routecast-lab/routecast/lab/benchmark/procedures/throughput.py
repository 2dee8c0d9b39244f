"""RFC 2544 sec. 26.1: throughput, the greatest rate without loss (RFC 1242 sec. 3.17)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from routecast.evaluate.trial import Trial, TrialPower
from routecast.lab.benchmark.procedures.procedure import (
    Procedure,
    Spread,
    as_sentence,
    deviation,
    frames_per_second,
    percent_of,
    rate_column,
    span,
    stream_suffix,
    time_text,
)
from routecast.lab.benchmark.search import Bounds, Probe, binary_search, mlr_search, verified
from routecast.lab.benchmark.settings import GoalProfile, Repeats, Share, Text
from routecast.lab.benchmark.stage import Counts, InvalidTrial, Stage, counts_of
from routecast.lab.benchmark.streams import Stream
from routecast.lab.benchmark.values import BenchmarkResult, Deviation, Profile
from routecast.lab.testbed.checks import is_device_starved
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.quantity import format_bps, format_power, format_pps
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Span
from routecast.quantity.schema import field, value
from routecast.show.figures import GREY, Axis, Figure, Line, Mark, Points, palette
from routecast.show.page import Block, Listing, Tile, Tiles
from routecast.show.tables import Column, percent, scaled
from routecast.show.ticks import log_ticks

__all__ = [
    "PROCEDURE",
    "ThroughputProfile",
    "ThroughputResult",
    "ThroughputRow",
    "confirmation_text",
    "floor_text",
    "rate_text",
    "worst_text",
]


@value
class ThroughputProfile:
    """``[throughput]``: sec. 26.1."""

    search: Literal["mlrsearch", "binary"] = field("MLRsearch (RFC 9971) or plain binary search.", default="mlrsearch")
    goal: Annotated[tuple[GoalProfile, ...], Field(min_length=1)]
    base_goal: Text = field("The goal whose result the other procedures use, by default the first.", default="")
    repeats: Repeats = field("Searches; their mean is reported.", default=1)
    verify_losses: Annotated[int, Field(ge=0, le=20, strict=True)] = field(
        "Repetitions of a trial with loss, of which the median counts; an even number. Loss verification, max(r) of "
        "TST009.",
        default=0,
    )
    verify_below: Share = field("Greater loss is not verified: z of TST009.", default=0.1)
    slice: Span = field("Longest single trial; longer ones are run in slices. 0: never sliced.", default=0.0)
    least: Share = field(
        "Least rate of the search, over the maximum rate; less for a router that forwards less than ten times that.",
        default=0.001,
    )

    def __post_init__(self) -> None:
        names = [goal.name for goal in self.goal]
        if self.base_goal and self.base_goal not in names:
            raise ValueError(f"base_goal {self.base_goal!r} is no goal: {did_you_mean(self.base_goal, names)}")

    @property
    def base(self) -> GoalProfile:
        """The goal whose result the other procedures use."""
        return next((goal for goal in self.goal if goal.name == self.base_goal), self.goal[0])


@value
class ThroughputRow:
    """Sec. 26.1 for one stream, frame size and goal."""

    stream: str
    frame_bytes: float = field("Frame size, the mean for a mix.")
    goal: str = field('``"RFC 2544"`` (no loss), ``"PDR 0.5 %"``, ``"TST009"``.')
    loss_ratio: float = field("Loss that the goal tolerates.")
    throughput_pps: float = field(
        "Greatest rate that meets the goal, all ports together: the lower bound of the search; NaN if none was found. "
        "For a goal with loss it is the offered rate; ``conditional_pps`` is what was forwarded of it (RFC 9971 "
        '"conditional throughput").'
    )
    per_port_pps: float
    conditional_pps: float
    theoretical_pps: float = field("Sec. 20, all sending ports together.")
    lower_pps: float = field("Lower bound at the end of the search; the lowered rate where it was lowered.")
    upper_pps: float = field(
        "Upper bound at the end of the search; NaN where the maximum rate met the goal. Where the rate was lowered, "
        "the least rate at which a trial of latency or frame loss missed the goal."
    )
    resolution_ratio: float = field("Width at which the search stops, relative to the upper bound.")
    l1_bps: float
    l2_bps: float
    outcome: Literal["found", "maximum", "below", "undetermined"] = field(
        "``maximum``: the maximum rate met the goal. ``below``: not even the least rate did. ``undetermined``: trials "
        "stayed invalid, for ``reason``."
    )
    reason: str = ""
    search: str = ""
    repeats_pps: Spread = field(
        "The results of all searches, where the search was repeated; ``throughput_pps`` is their mean.",
        default_factory=lambda: Spread.of(()),
    )
    final_trial_s: float = field("Length of the trials that decided.", default=float("nan"))
    trials: int = field("Trials of the search.", default=0)
    power: TrialPower | None = field(
        "Watts in the longest and last valid trial at the throughput that met the goal; None without a meter and "
        "without power states of the model.",
        default=None,
    )
    searched_pps: float = field(
        "Result of the search, all ports together. ``throughput_pps`` is less where it was lowered.",
        default=float("nan"),
    )
    confirmed: Literal["yes", "lowered", "not run"] = field(
        "``yes``: all valid trials of latency and frame loss at this rate or below met the goal. ``lowered``: one "
        "missed it, and the rate is the greatest that they confirm. ``not run``: there was no such trial.",
        default="not run",
    )
    confirmed_reason: str = field("Reason of ``confirmed``, in words.", default="")
    raised_from_pps: float = field(
        "End of a search below the rate of a stricter goal, to which the result was raised. NaN elsewhere.",
        default=float("nan"),
    )
    limit: Literal["", "medium", "tester", "knowledge"] = field(
        "Limit of the rate, if no rate failed and so the router is not the limit. At the limit of the ``tester`` the "
        "rate is a lower bound, since the router may forward more; so it is at that of the ``knowledge`` of a closed "
        "form, whose loss above it is not known.",
        default="",
    )
    missed_pps: float = field("Rate of the trial that lowered the throughput, if one did.", default=float("nan"))
    missed_loss_ratio: float = field("Loss of the trial that lowered the throughput, if one did.", default=float("nan"))
    floor_loss_ratio: float = field(
        "Loss of a wire without a device at the throughput, for as long and in the same minutes: the floor of the "
        "machine. NaN where no such trial was run, for ``floor_reason``.",
        default=float("nan"),
    )
    floor_missed_loss_ratio: float = field(
        "Loss of the wire at ``missed_pps``: where it is no less than ``missed_loss_ratio``, the loss is the machine's "
        "and not the device's.",
        default=float("nan"),
    )
    floor_reason: str = field("Reason of an unknown floor, in words.", default="")
    worst_loss_ratio: float = field(
        "Greatest loss of a valid trial at the throughput, if one lost more than the goal tolerates; NaN if none did.",
        default=float("nan"),
    )
    worst_trial: str = field("The trial with that loss.", default="")

    @property
    def of_theoretical_ratio(self) -> float:
        """Throughput over the theoretical maximum."""
        return self.throughput_pps / self.theoretical_pps


@value
class ThroughputResult:
    """Sec. 26.1. ``advertised`` is the statement that the section allows to publish for each stream."""

    rows: tuple[ThroughputRow, ...]
    advertised: tuple[str, ...] = ()
    search: str = ""
    section: str = "RFC 2544 sec. 26.1"

    @property
    def watts(self) -> str:
        """Scope and source of the rows' watts, in words; empty without watts."""
        seen = dict.fromkeys((row.power.scope, row.power.source) for row in self.rows if row.power)
        covered = " and ".join(f"the {scope} ({source})" for scope, source in seen)
        return f"Power: of {covered}, in a trial at the throughput." if covered else ""


_CEILING_TRIAL_S = 0.2
_CEILING_MARGIN = 0.9
_MIX_MARGIN = 0.98
"""Margin of a mix's first rate: the mean of drawn sizes varies, so a tester falls short of the medium's rate."""
_CLEAR_LOSS_RATIO = 0.1
_MAX_DOUBTS = 1
_CEILING_ATTEMPTS = 8
_TINY_LOSS_RATIO = 1e-12
GREATEST = "greatest rate of the tester"
"""Purpose of the trials that find the greatest rate of the tester."""
_LOG_AXIS_RATIO = 0.08
"""Least rate over greatest rate below which a linear axis would show a flat line."""
_MAX_TILES = 4
_AT_LEAST = {
    "tester": "the tester offers no more: the router may forward more",
    "knowledge": "above it the closed form does not know the loss: the router may forward more; use simulate",
}
"""Why a rate is a lower bound, by the limit of the row."""


def _run(stage: Stage, throughput_pps: float) -> tuple[ThroughputRow, ...]:
    """Search for every goal of the profile, and return a row for each.

    The maximum rate of the search is that of the medium (sec. 20), or that of the tester where it is less.
    """
    settings = stage.profile.throughput
    results: dict[str, list[Bounds]] = {goal.name: [] for goal in settings.goal}
    before = len(stage.records)
    for _ in range(settings.repeats):
        for goal, bounds in zip(settings.goal, _search(stage), strict=True):
            results[goal.name].append(bounds)
    trials = len(stage.records) - before
    return tuple(_row(stage, goal, results[goal.name], trials) for goal in settings.goal)


def find_ceiling(stage: Stage) -> str:
    """Find the greatest rate of the tester: that of the medium, unless trials at it are invalid.

    Sets ``stage.max_pps``, and returns a note where it is less than the medium's maximum: a tester that cannot fill
    the medium is a deviation from sec. 20, not a result of the router.
    """
    first_s = min(goal.initial_trial for goal in stage.profile.throughput.goal)
    duration_s = min(first_s, _CEILING_TRIAL_S)
    is_second = False
    for _ in range(_CEILING_ATTEMPTS):
        try:
            stage.trial(stage.maximum_pps, duration_s, GREATEST, attempts=1)
        except InvalidTrial as problem:
            if is_device_starved(problem.trial):
                continue  # the device did not run: the trial does not show the tester's rate
            reached_pps = min(problem.trial.offered_pps, stage.maximum_pps)
            is_short = reached_pps < stage.maximum_pps * (1.0 - 1e-3)
            # A trial can be invalid for another reason, so a trial with all frames is run again first.
            if reached_pps > 0.0 and (is_short or is_second):
                is_drawn = bool(stage.stream.mix) and math.isinf(stage.max_pps)
                stage.max_pps = reached_pps * (_MIX_MARGIN if is_drawn else _CEILING_MARGIN)
            is_second = not is_short
        else:
            break
    if stage.max_pps >= stage.theoretical_pps:
        return ""
    return (
        f"{stage.stream.name}, {stage.frame_bytes:g} B: the tester reaches {stage.max_pps:,.0f} of "
        f"{stage.theoretical_pps:,.0f} frames/s, and offers no more"
    )


def _stated(
    rows: Sequence[ThroughputRow], profile: Profile, streams: Sequence[Stream], medium: str
) -> dict[str, object]:
    """Return the search, and the statements that may be advertised."""
    search = "MLRsearch (RFC 9971)" if profile.throughput.search == "mlrsearch" else "binary search"
    return {"advertised": tuple(advertised(rows, streams, medium)), "search": search}


def advertised(rows: Sequence[ThroughputRow], streams: Sequence[Stream], medium: str) -> list[str]:
    """Return the statement of sec. 26.1 for each stream: rate without loss, frame size, theoretical limit, protocol."""
    best = {row.stream: row for row in _best(rows)}
    return [
        f"{rate_text(best[stream.name])} frames/s of {best[stream.name].frame_bytes:g} bytes; the medium carries at "
        f"most {best[stream.name].theoretical_pps:,.0f} frames/s of this size; {stream.name} (UDP) over {medium}"
        for stream in streams
        if stream.name in best
    ]


def _best(rows: Sequence[ThroughputRow]) -> list[ThroughputRow]:
    """Return the row with the greatest rate without loss of each stream that has one."""
    known = [row for row in rows if row.loss_ratio == 0.0 and math.isfinite(row.throughput_pps)]
    streams = dict.fromkeys(row.stream for row in known)
    return [max((row for row in known if row.stream == name), key=lambda row: row.throughput_pps) for name in streams]


def rate_text(row: ThroughputRow) -> str:
    """Write the throughput of a row in frames/s, with "≥" where the tester limits it."""
    text = frames_per_second(row.throughput_pps)
    return f"≥ {text}" if row.limit in _AT_LEAST and math.isfinite(row.throughput_pps) else text


def confirmation_text(row: ThroughputRow) -> str:
    """Describe whether longer trials confirmed or lowered the throughput of a row."""
    if row.confirmed == "lowered":
        return f"lowered from {format_pps(row.searched_pps)}: {row.confirmed_reason}"
    state = "confirmed" if row.confirmed == "yes" else "not confirmed"
    return f"{state}: {row.confirmed_reason}" if row.confirmed_reason else state


def worst_text(row: ThroughputRow) -> str:
    """Describe the trial at the throughput of a row that lost more than its goal tolerates; empty without one."""
    if not row.worst_trial:
        return ""
    return f"{row.worst_trial} at this rate lost {percent_of(row.worst_loss_ratio)}; most trials there met the goal"


def floor_text(row: ThroughputRow) -> str:
    """Describe the loss of a wire without a device at the rates of a row, and whether it explains the row's loss."""
    parts = []
    if math.isfinite(row.floor_loss_ratio):
        lost = percent_of(row.floor_loss_ratio) if row.floor_loss_ratio else "nothing"
        parts.append(f"a wire without a device lost {lost} at this rate in the same minutes")
        device_loss_ratio = 1.0 - row.conditional_pps / row.throughput_pps
        if _TINY_LOSS_RATIO < device_loss_ratio <= row.floor_loss_ratio:
            parts.append(f"the {percent_of(device_loss_ratio)} that were lost here are the machine's, not the device's")
    if math.isfinite(row.floor_missed_loss_ratio):
        floor = percent_of(row.floor_missed_loss_ratio) if row.floor_missed_loss_ratio else "nothing"
        text = f"at {format_pps(row.missed_pps)} the wire lost {floor}"
        if row.missed_loss_ratio <= row.floor_missed_loss_ratio:
            text += f": the loss of {percent_of(row.missed_loss_ratio)} there is the machine's, not the device's"
        parts.append(text)
    return "; ".join(parts)


def _search(stage: Stage) -> tuple[Bounds, ...]:
    settings, ports = stage.profile.throughput, stage.ports

    def offer(per_port_pps: float, duration_s: float, purpose: str) -> Counts:
        return counts_of(stage.trial(ports * per_port_pps, duration_s, purpose), duration_s)

    def probe_for(goals: Sequence[GoalProfile]) -> Probe:
        return verified(
            offer,
            repeats=settings.verify_losses,
            below_ratio=settings.verify_below,
            enough_ratio=min(goal.loss_ratio for goal in goals),
            slice_s=settings.slice,
        )

    max_pps = stage.maximum_pps / ports
    min_pps = stage.least_pps / ports
    if settings.search == "mlrsearch":
        return mlr_search(probe_for(settings.goal), settings.goal, min_pps=min_pps, max_pps=max_pps)
    by_goal: dict[str, Bounds] = {}
    greatest = _trial_at_max(stage)
    hint_pps, misses_at_max = math.nan, False
    if greatest is not None:
        hint_pps = greatest.forwarded_pps * (1.0 - settings.base.width) / ports
        misses_at_max = greatest.loss_ratio > max(_CLEAR_LOSS_RATIO, settings.verify_below)
    # The goal that tolerates most comes first, because the result of a stricter goal is a little lower.
    for goal in sorted(settings.goal, key=lambda goal: -goal.loss_ratio):
        bounds = binary_search(
            probe_for([goal]),
            goal,
            min_pps=min_pps,
            max_pps=max_pps,
            hint_pps=hint_pps,
            misses_at_max=misses_at_max and goal.loss_ratio < 0.5 * _CLEAR_LOSS_RATIO,
            doubts=min(settings.verify_losses, _MAX_DOUBTS),
        )
        by_goal[goal.name] = bounds
        if math.isfinite(bounds.lower_pps):
            hint_pps = bounds.lower_pps * (1.0 - 2.0 * goal.width)
    return consistent_bounds(settings.goal, tuple(by_goal[goal.name] for goal in settings.goal))


def consistent_bounds(goals: Sequence[GoalProfile], bounds: Sequence[Bounds]) -> tuple[Bounds, ...]:
    """Return the bounds, raised so that no goal has a lower rate than a stricter one.

    A load that meets a stricter goal meets the other goal too, even after a disturbed search. A raised bound keeps its
    former rate for the report.
    """
    result = list(bounds)
    order = sorted(range(len(goals)), key=lambda index: goals[index].loss_ratio)
    for stricter, index in itertools.pairwise(order):
        strict, loose = result[stricter], result[index]
        if strict.lower_pps > loose.lower_pps:
            result[index] = replace(
                strict,
                # Without an upper bound of the stricter goal (NaN) the maximum rate met it, and so this goal too.
                upper_pps=max(strict.upper_pps, loose.upper_pps),
                reason=loose.reason,
                raised_from_pps=loose.lower_pps,
            )
    return tuple(result)


def _trial_at_max(stage: Stage) -> Trial | None:
    """Return the last valid trial at the greatest rate, whose forwarded rate is a good first guess."""
    trials = (record.trial for record in reversed(stage.own_records) if record.purpose == GREATEST)
    return next((trial for trial in trials if trial.is_valid), None)


def _row(stage: Stage, goal: GoalProfile, bounds_by_port: list[Bounds], trials: int) -> ThroughputRow:
    ports, size = stage.ports, stage.frame_bytes
    known = [bounds for bounds in bounds_by_port if math.isfinite(bounds.lower_pps) and not bounds.reason]
    spread = Spread.of(tuple(ports * bounds.lower_pps for bounds in known))
    last = known[-1] if known else bounds_by_port[-1]
    row = ThroughputRow(
        stream=stage.stream.name,
        frame_bytes=size,
        goal=goal.name,
        loss_ratio=goal.loss_ratio,
        throughput_pps=spread.mean,
        per_port_pps=spread.mean / ports,
        conditional_pps=Spread.of(tuple(ports * bounds.conditional_pps for bounds in known)).mean,
        theoretical_pps=stage.theoretical_pps,
        lower_pps=ports * last.lower_pps,
        upper_pps=ports * last.upper_pps,
        searched_pps=spread.mean,
        confirmed_reason="no latency or loss trial was chosen",
        raised_from_pps=ports * last.raised_from_pps,
        limit=_limit(stage) if last.outcome == "maximum" else _limit_of_knowledge(stage, goal, ports * last.upper_pps),
        resolution_ratio=goal.width,
        l1_bps=8.0 * (size + WIRE_OVERHEAD_BYTES) * spread.mean,
        l2_bps=8.0 * size * spread.mean,
        outcome=last.outcome,
        reason=last.reason,
        search="MLRsearch" if stage.profile.throughput.search == "mlrsearch" else "binary search",
        repeats_pps=spread,
        final_trial_s=goal.final_trial,
        trials=trials,
        power=_power(stage, goal, ports * last.lower_pps),
    )
    if last.outcome == "below":
        least = frames_per_second(stage.least_pps)
        reason = f"the goal is missed even at the least rate of the search, {least} frames/s"
        if row.limit == "knowledge":
            reason = reason.replace("is missed", "is not known to be met") + "; use --evaluator simulate"
        return replace(row, reason=reason)
    return row


def _limit(stage: Stage) -> Literal["medium", "tester"]:
    return "tester" if stage.max_pps < stage.theoretical_pps * (1.0 - 1e-9) else "medium"


def _limit_of_knowledge(stage: Stage, goal: GoalProfile, upper_pps: float) -> Literal["", "knowledge"]:
    """Return whether the closed form knew no loss for certain at the upper bound of a search."""
    is_unknown = any(
        record.trial.min_loss_ratio <= goal.loss_ratio < counts_of(record.trial, record.trial.duration_s).loss_ratio
        for record in stage.own_records
        if record.trial.evaluator == "solve" and math.isclose(record.rate_pps, upper_pps, rel_tol=1e-9)
    )
    return "knowledge" if is_unknown else ""


def _power(stage: Stage, goal: GoalProfile, rate_pps: float) -> TrialPower | None:
    """Return the watts of the longest trial of the stage at a rate that met the goal."""
    met = [
        record.trial
        for record in stage.own_records
        if record.procedure == stage.procedure
        and record.trial.is_valid
        and math.isclose(record.rate_pps, rate_pps, rel_tol=1e-9)
        and counts_of(record.trial, record.trial.duration_s).loss_ratio <= goal.loss_ratio
    ]
    return power_of_longest(met)


def power_of_longest(trials: Sequence[Trial]) -> TrialPower | None:
    """Return the watts of the longest metered trial, the last of equal length; None without a metered trial."""
    metered = [trial for trial in trials if trial.power is not None]
    return max(reversed(metered), key=lambda trial: trial.duration_s).power if metered else None


def _trials(profile: Profile) -> tuple[int, float]:
    settings = profile.throughput
    verification = 1.0 + 0.5 * settings.verify_losses
    trials, seconds = 1.0, 0.5
    for goal in settings.goal:
        goal_trials, goal_s = _mlr_effort(goal) if settings.search == "mlrsearch" else _binary_effort(goal)
        trials += settings.repeats * verification * goal_trials
        seconds += settings.repeats * verification * goal_s
    return math.ceil(trials), seconds


def _binary_effort(goal: GoalProfile) -> tuple[float, float]:
    steps = math.log2(1.0 / goal.width) + 1.0
    final = 0.0 if goal.final_trial == goal.initial_trial else 1.5
    return steps + final, steps * goal.initial_trial + final * goal.final_trial


def _mlr_effort(goal: GoalProfile) -> tuple[float, float]:
    # The reference library on routers with and without noise: both bounds need their duration sum, after short trials.
    short = 12.0
    final = 2.5 * goal.duration_sum / goal.final_trial
    return short + final, short * goal.initial_trial + final * goal.final_trial


def _deviations(profile: Profile) -> Iterator[Deviation]:
    settings = profile.throughput
    lossless = [goal for goal in settings.goal if goal.loss_ratio == 0.0 and goal.exceed_ratio == 0.0]
    if not lossless:
        done = "goals with loss or with trials that may exceed it (RFC 9971), not RFC 1242's throughput"
        yield deviation("26.1", "MUST", "the fastest rate at which no frame of a trial is lost", done)
    if settings.verify_losses:
        done = f"a trial with loss is run again up to {settings.verify_losses} times, the median counts"
        yield deviation("26.1", "MUST", "a trial with loss lowers the rate", done)
    for goal in lossless:
        if goal.final_trial < 60.0:
            yield deviation("24", "SHOULD", "final trials of at least 60 s", f"{span(goal.final_trial)} ({goal.name})")
    if settings.slice:
        yield deviation("24", "SHOULD", "trials in one piece", f"slices of {span(settings.slice)}")


def search_statements(profile: Profile, streams: Sequence[Stream]) -> tuple[str, ...]:
    """Return the statements of RFC 9971 on the searches: units, conversions, widths, goals."""
    settings = profile.throughput
    both = any(stream.bidirectional for stream in streams)
    texts = [
        "Rates and loads are frames/s over all ports together. A search's load is that of one port; "
        + (
            "a stream both ways has two sending ports, so its rates are twice the load of a port."
            if both
            else "one port sends, so the factor is 1."
        ),
        "Loss ratio is lost plus unsent frames over intended frames, all ports together. A trial whose rate misses the "
        "intended one by more than 0.1 % has unsent frames; duplicates are not counted as received.",
        "Goal width is (upper bound − lower bound) / upper bound; the result is the lower bound. The conditional "
        "throughput is the lower bound times (1 − its loss ratio).",
    ]
    texts += [_goal_text(goal) for goal in settings.goal]
    texts.append(
        f"Trial phases (RFC 2544 sec. 23): {span(profile.trial.before)} after the learning frames, "
        f"{span(profile.trial.residual)} for residual frames, {span(profile.trial.settle)} until the next trial; "
        "routes are static, so no routing update is sent."
    )
    if settings.verify_losses:
        texts.append(
            f"Loss verification: a trial that loses at most {settings.verify_below:.0%} is run again up to "
            f"{settings.verify_losses} times, and the median of all counts. A binary search tries its upper bound "
            "again before it ends."
        )
    if settings.slice:
        texts.append(f"Trials are cut into slices of at most {span(settings.slice)}; their counts are added.")
    return tuple(texts)


def _goal_text(goal: GoalProfile) -> str:
    return (
        f"Goal “{goal.name}”: loss ratio {goal.loss_ratio:g}, exceed ratio {goal.exceed_ratio:g}, initial trials "
        f"{span(goal.initial_trial)}, final trials {span(goal.final_trial)}, duration sum {span(goal.duration_sum)}, "
        f"width {goal.width:.2%}."
    )


def _figures(result: ThroughputResult, benchmark: BenchmarkResult) -> tuple[Figure, ...]:
    """Return the figure of sec. 26.1: frames/s over frame size, for the theoretical rate and each result."""
    origin = "measured" if benchmark.setup.evaluator == "measure" else "predicted"
    rows = [row for row in result.rows if math.isfinite(row.throughput_pps)]
    if not rows:
        return ()
    kinds = list(dict.fromkeys((row.stream, row.goal) for row in rows))
    goals = {goal for _, goal in kinds}
    marks: list[Mark] = []
    for line in _theoretical(result.rows):
        points = Points(name=line.name, x=line.x, y=line.y, colour=GREY, filled=False, size_px=5, legend=False)
        marks += [line, points]
    for number, ((stream, goal), colour) in enumerate(zip(kinds, palette(len(kinds), ordered=False), strict=True)):
        by_size = sorted(
            (row for row in rows if (row.stream, row.goal) == (stream, goal)), key=lambda row: row.frame_bytes
        )
        name = f"{stream}, {goal}" if len(goals) > 1 else stream
        x, y = tuple(float(row.frame_bytes) for row in by_size), tuple(row.throughput_pps for row in by_size)
        marks += [
            Line(name=f"{origin}, {name}", x=x, y=y, colour=colour),
            Points(
                name=name,
                x=x,
                y=y,
                colour=colour,
                labels=tuple(map(_throughput_label, by_size)),
                size_px=max(12 - 4 * number, 4),  # a smaller point leaves the one below visible
                legend=False,
            ),
        ]
    greatest = max(row.theoretical_pps for row in result.rows)
    least = min(row.throughput_pps for row in rows)
    is_log = least < _LOG_AXIS_RATIO * greatest
    figure = Figure(
        name="throughput",
        title="Throughput over frame size",
        caption="RFC 2544 sec. 26.1. Dashed: the theoretical maximum rate of the medium for each size (sec. 20)."
        + (" The vertical axis is logarithmic." if is_log else ""),
        x=_frame_axis(result.rows),
        y=_rate_axis(least, greatest, is_log=is_log),
        marks=tuple(marks),
    )
    return (figure,)


def _theoretical(rows: Sequence[ThroughputRow]) -> list[Line]:
    """Return a line for each different maximum: streams one way or both ways."""
    lines: dict[tuple[float, ...], Line] = {}
    for stream in dict.fromkeys(row.stream for row in rows):
        by_size = {row.frame_bytes: row.theoretical_pps for row in rows if row.stream == stream}
        sizes = sorted(by_size)
        rates = tuple(by_size[size] for size in sizes)
        label = f"theoretical maximum, {stream}" if lines else "theoretical maximum"
        lines.setdefault(rates, Line(name=label, x=tuple(map(float, sizes)), y=rates, colour=GREY, dashed=True))
    different = list(lines.values())
    return different if any(len(line.x) > 1 for line in different) else different[:1]


def _throughput_label(row: ThroughputRow) -> str:
    upper = f"\nupper bound {frames_per_second(row.upper_pps)}" if math.isfinite(row.upper_pps) else ""
    return (
        f"{row.stream}, {row.goal}, {row.frame_bytes:g} B\n{rate_text(row)} frames/s, "
        f"{percent_of(row.of_theoretical_ratio)} of {frames_per_second(row.theoretical_pps)}{upper}"
    )


def _frame_axis(rows: Sequence[ThroughputRow]) -> Axis:
    sizes = sorted({row.frame_bytes for row in rows})
    # 1280 and 1518 stand too close for two labels on a narrow screen.
    labels = tuple("" if after / size < 1.22 else f"{size:g}" for size, after in itertools.pairwise([*sizes, math.inf]))
    ticks = tuple(map(float, sizes))
    return Axis(
        title="frame size [B]", scale="log", ticks=ticks, labels=labels, low=sizes[0] / 1.25, high=sizes[-1] * 1.25
    )


def _rate_axis(least: float, greatest: float, *, is_log: bool) -> Axis:
    if is_log:
        ticks = log_ticks(least, greatest)
    else:
        step = 10.0 ** math.floor(math.log10(greatest / 4.0))
        step *= max(factor for factor in (1.0, 2.0, 5.0) if factor * step <= greatest / 4.0)
        ticks = tuple(step * n for n in range(int(greatest / step) + 2))
    return Axis(
        title="frames/s",
        scale="log" if is_log else "linear",
        ticks=ticks,
        labels=tuple(map(_rate_label, ticks)),
        low=ticks[0],
        high=ticks[-1],
    )


def _rate_label(rate_pps: float) -> str:
    for unit, factor in ((" M", 1e6), (" k", 1e3)):
        if rate_pps >= factor:
            return f"{rate_pps / factor:g}{unit}"
    return f"{rate_pps:g}"


def _headlines(throughput: ThroughputResult) -> list[ThroughputRow]:
    """Return the smallest and the largest frame of the first stream without loss, else of the first goal."""
    known = [row for row in throughput.rows if math.isfinite(row.throughput_pps)]
    if not known:
        return []
    strict = [row for row in known if row.loss_ratio == 0.0] or known
    first = [row for row in strict if (row.stream, row.goal) == (strict[0].stream, strict[0].goal)]
    ends = sorted(first, key=lambda row: row.frame_bytes)
    if len(ends) > 1:
        return [ends[0], ends[-1]]
    others = (row for row in known if row.stream == ends[0].stream and row not in ends)
    return [*ends, *others][:_MAX_TILES]


def _tile(benchmark: BenchmarkResult, row: ThroughputRow) -> Tile:
    stream = next((stream for stream in benchmark.setup.streams if stream.name == row.stream), None)
    protocol = f"UDP over {stream.protocol}" if stream else "UDP"
    named = protocol if stream and stream.name == stream.protocol else f"{protocol}, {row.stream}"
    loss = "no loss" if row.loss_ratio == 0.0 else f"at most {percent_of(row.loss_ratio)} loss"
    return Tile(
        rate_text(row),
        f"frames/s of {row.frame_bytes:g} bytes, {loss}",
        f"theoretical limit {frames_per_second(row.theoretical_pps)} frames/s "
        f"({percent_of(row.of_theoretical_ratio)}); {named}; {format_bps(row.l1_bps)} on the wire{_watts(row)}; "
        f"{'; '.join(filter(None, (confirmation_text(row), worst_text(row), floor_text(row))))}",
    )


def _watts(row: ThroughputRow) -> str:
    """Write the power at the throughput with its scope, if it is known."""
    power = row.power
    return f"; {format_power(power.mean_w)} and {1e6 * power.packet_j:.4g} uJ a packet ({power.scope})" if power else ""


def _opening(result: ThroughputResult, benchmark: BenchmarkResult) -> tuple[Block, ...]:
    tiles = tuple(_tile(benchmark, row) for row in _headlines(result))
    return (Tiles(tiles),) if tiles else ()


def _closing(result: ThroughputResult, benchmark: BenchmarkResult) -> Iterator[Block]:
    setup = benchmark.setup
    protocols = " and ".join(dict.fromkeys(f"UDP over {stream.protocol}" for stream in setup.streams))
    sentences = (f"Protocol: {protocols}.", f"Stream format: {setup.frame_format}.", f"Media: {setup.medium}.")
    yield Listing(title="Conditions", entries=sentences)
    if result.advertised:
        entries = tuple(f"{text}." for text in result.advertised)
        yield Listing(title="Statement that sec. 26.1 allows to publish", entries=entries)
    searched = (f"Search: {result.search}.",) if result.search else ()
    if searched or benchmark.search_statements:
        yield Listing(title="Method of the search (RFC 9971)", entries=(*searched, *benchmark.search_statements))


def _answers(result: ThroughputResult) -> tuple[str, ...]:
    if not _headlines(result):
        return ("**No throughput was found**; the reasons are beneath the table.",)
    sentences = (f" {' '.join(_sentences(row))}" for row in _best(result.rows))
    limited = (f" {as_sentence(_AT_LEAST[row.limit])}" if row.limit in _AT_LEAST else "" for row in _best(result.rows))
    pairs = itertools.zip_longest(result.advertised, sentences, limited, fillvalue="")
    return tuple(f"Throughput: **{text}**.{limit}{words}" for text, words, limit in pairs if text)


def _sentences(row: ThroughputRow) -> Iterator[str]:
    yield from map(as_sentence, filter(None, (confirmation_text(row), worst_text(row), floor_text(row))))


def _caption(result: ThroughputResult) -> str:
    lengths = sorted({row.final_trial_s for row in result.rows if math.isfinite(row.final_trial_s)})
    final = f"Final trials took {' or '.join(map(time_text, lengths))}." if lengths else ""
    search = result.search and f"By {result.search}."
    limits = dict.fromkeys(row.limit for row in result.rows if rate_text(row).startswith("≥"))
    limited = [f"≥: {_AT_LEAST[limit]}." for limit in limits]
    return " ".join(
        filter(None, (search, final, *limited, *_unconfirmed(result), *_worst(result), *_floors(result), result.watts))
    )


def _floors(result: ThroughputResult) -> Iterator[str]:
    """Describe the loss of a wire without a device for each row that the answer does not name."""
    best, suffix = _best(result.rows), stream_suffix(result.rows)
    for row in result.rows:
        if row not in best and (row.floor_loss_ratio > 0.0 or row.floor_missed_loss_ratio > 0.0):
            yield f"{row.frame_bytes:g} B, {row.goal}{suffix(row)}: {floor_text(row)}."


def _worst(result: ThroughputResult) -> Iterator[str]:
    """Describe the worst trial of each row that the answer does not name."""
    best, suffix = _best(result.rows), stream_suffix(result.rows)
    for row in result.rows:
        if row not in best and row.worst_trial:
            yield f"{row.frame_bytes:g} B, {row.goal}{suffix(row)}: {worst_text(row)}."


def _unconfirmed(result: ThroughputResult) -> Iterator[str]:
    """Describe the lowered rates, and the reasons that rates are not confirmed."""
    rows = [row for row in result.rows if math.isfinite(row.searched_pps)]
    suffix = stream_suffix(rows)
    for row in rows:
        if row.confirmed == "lowered":
            subject = f"{row.frame_bytes:g} B, {row.goal}{suffix(row)}"
            yield f"{subject}: {rate_text(row)} frames/s, {confirmation_text(row)}."
    reasons = dict.fromkeys(row.confirmed_reason for row in rows if row.confirmed == "not run")
    yield from (f"Not confirmed: {reason}." for reason in reasons if reason)


def _columns(result: ThroughputResult) -> tuple[Column[ThroughputRow] | bool, ...]:
    repeated, metered = any(row.repeats_pps.repeats > 1 for row in result.rows), bool(result.watts)
    return (
        Column.text("Goal", lambda row: row.goal),
        rate_column("Throughput", _rate_shown),
        Column.text("Confirmed", _confirmed_word, wide=True),
        Column("Floor", "%", scaled(100.0, ".4g"), lambda row: row.floor_loss_ratio, wide=True),
        rate_column("Upper bound", lambda row: row.upper_pps),
        rate_column("Theoretical", lambda row: row.theoretical_pps),
        Column("Of it", "%", percent, lambda row: row.of_theoretical_ratio),
        Column("Frames", "Gbit/s", scaled(1e-9, ".3f"), lambda row: row.l2_bps, wide=True),
        Column("Wire", "Gbit/s", scaled(1e-9, ".3f"), lambda row: row.l1_bps, wide=True),
        repeated and Column("Searches", "", "d", lambda row: row.repeats_pps.repeats, wide=True),
        repeated and Column("sd", "", percent_of, _relative_sd, wide=True),
        Column("Trials", "", "d", lambda row: row.trials, wide=True),
        metered and Column("Power", "W", getter=lambda row: row.power.mean_w if row.power else math.nan),
        metered and Column("Packet", "uJ", getter=lambda row: 1e6 * row.power.packet_j if row.power else math.nan),
    )


def _rate_shown(row: ThroughputRow) -> str | float:
    text = rate_text(row)
    return text if text.startswith("≥") else row.throughput_pps


def _confirmed_word(row: ThroughputRow) -> str:
    words = {"yes": "yes", "lowered": f"from {format_pps(row.searched_pps)}", "not run": "no"}
    return words[row.confirmed] if math.isfinite(row.searched_pps) else ""


def _relative_sd(row: ThroughputRow) -> float:
    spread = row.repeats_pps
    return spread.sd / spread.mean if spread.mean else math.nan


PROCEDURE = Procedure(
    name="throughput",
    title="Throughput",
    section="26.1",
    documents="RFC 2544 sec. 26.1",
    lead="The greatest rate at which the router forwards every frame, for each frame size.",
    settings=ThroughputProfile,
    result=ThroughputResult,
    run=_run,
    stated=_stated,
    trials=_trials,
    deviations=_deviations,
    statements=search_statements,
    outcomes={"below": "not even the least rate"},
    columns=_columns,
    caption=_caption,
    explained="Rates count all ports together. Theoretical: the medium's maximum for the size (sec. 20). Upper bound: "
    "the least rate that failed, at the end of the search. Bit rates: of the frames, and with the 20 bytes that each "
    "takes on the wire besides. Floor: what a wire without a device lost at the rate in the same minutes.",
    answers=_answers,
    opening=_opening,
    figures=_figures,
    closing=_closing,
    rests_on_throughput=False,
    counts_frames=False,
    with_bursts=True,
)
