"""RFC 2544 sec. 26.1: throughput, the fastest rate at which nothing is lost (RFC 1242 sec. 3.17)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from routecast.benchmark.profile import GoalProfile
from routecast.benchmark.result import Spread, Stream, ThroughputResult, ThroughputRow
from routecast.benchmark.search import Bounds, Probe, binary_search, mlr_search, verified
from routecast.benchmark.stage import Counts, InvalidTrial, Stage, counts_of
from routecast.evaluate.trial import Trial, TrialPower
from routecast.load.offered import WIRE_OVERHEAD_BYTES

__all__ = ["advertised", "find_ceiling", "result_of", "run"]

_CEILING_TRIAL_S = 0.2
_CEILING_MARGIN = 0.9
_CLEAR_LOSS = 0.1
_MOST_DOUBTS = 1
_CEILING_ATTEMPTS = 8
GREATEST = "greatest rate of the tester"
"""Purpose of the trials that find it."""


def run(stage: Stage) -> tuple[ThroughputRow, ...]:
    """Search for every goal of the profile; a row for each.

    The maximum rate of the search is that of the medium (sec. 20), or what the tester itself reaches where that is
    less.
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
    """Find the greatest rate that the tester reaches: the medium's, unless trials at it are invalid.

    Sets ``stage.most_pps`` and says so where it is less than the medium's maximum; the empty text otherwise. A tester
    that cannot fill the medium is a deviation from sec. 20, not a finding about the router.
    """
    first_s = min(goal.initial_trial for goal in stage.profile.throughput.goal)
    duration_s = min(first_s, _CEILING_TRIAL_S)
    is_second = False
    for _ in range(_CEILING_ATTEMPTS):
        try:
            stage.trial(stage.maximum_pps, duration_s, GREATEST, attempts=1)
        except InvalidTrial as problem:
            reached_pps = min(problem.trial.offered_pps, stage.maximum_pps)
            is_short = reached_pps < stage.maximum_pps * (1.0 - 1e-3)
            # A trial can be invalid for another reason, so one with all frames is run again first.
            if reached_pps > 0.0 and (is_short or is_second):
                stage.most_pps = reached_pps * _CEILING_MARGIN
            is_second = not is_short
        else:
            break
    if stage.most_pps >= stage.theoretical_pps:
        return ""
    return (
        f"{stage.stream.name}, {stage.frame_bytes} B: the tester reaches {stage.most_pps:,.0f} of "
        f"{stage.theoretical_pps:,.0f} frames/s, and offers no more"
    )


def result_of(rows: Sequence[ThroughputRow], streams: Sequence[Stream], medium: str, search: str) -> ThroughputResult:
    """Return the rows as one result, with the statements that may be advertised."""
    return ThroughputResult(rows=tuple(rows), advertised=tuple(advertised(rows, streams, medium)), search=search)


def advertised(rows: Sequence[ThroughputRow], streams: Sequence[Stream], medium: str) -> list[str]:
    """Return sec. 26.1's statement per stream without loss: rate in frames/s, size, theoretical limit, protocol."""
    texts = []
    for stream in streams:
        mine = [row for row in rows if row.stream == stream.name and row.loss_ratio == 0.0]
        known = [row for row in mine if math.isfinite(row.throughput_pps)]
        if not known:
            continue
        best = max(known, key=lambda row: row.throughput_pps)
        texts.append(
            f"{best.throughput_pps:,.0f} frames/s of {best.frame_bytes} bytes; the medium carries at most "
            f"{best.theoretical_pps:,.0f} frames/s of this size; {stream.name} (UDP) over {medium}"
        )
    return texts


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

    most_pps = stage.maximum_pps / ports
    least_pps = settings.least * stage.theoretical_pps / ports
    if settings.search == "mlrsearch":
        return mlr_search(probe_for(settings.goal), settings.goal, least_pps=least_pps, most_pps=most_pps)
    found: dict[str, Bounds] = {}
    greatest = _trial_at_most(stage)
    hint_pps, fails_at_most = math.nan, False
    if greatest is not None:
        hint_pps = greatest.forwarded_pps * (1.0 - settings.base.width) / ports
        fails_at_most = greatest.loss_ratio > max(_CLEAR_LOSS, settings.verify_below)
    # The goal that tolerates most first: the stricter one's result is near below it.
    for goal in sorted(settings.goal, key=lambda goal: -goal.loss_ratio):
        bounds = binary_search(
            probe_for([goal]),
            goal,
            least_pps=least_pps,
            most_pps=most_pps,
            hint_pps=hint_pps,
            fails_at_most=fails_at_most and goal.loss_ratio < 0.5 * _CLEAR_LOSS,
            doubts=min(settings.verify_losses, _MOST_DOUBTS),
        )
        found[goal.name] = bounds
        if math.isfinite(bounds.lower_pps):
            hint_pps = bounds.lower_pps * (1.0 - 2.0 * goal.width)
    return _consistent(settings.goal, tuple(found[goal.name] for goal in settings.goal))


def _consistent(goals: Sequence[GoalProfile], found: Sequence[Bounds]) -> tuple[Bounds, ...]:
    """Return the bounds so that a goal that tolerates more is not below one that tolerates less.

    A load that meets the stricter goal meets the other too, whatever a disturbed search has found for it before.
    """
    result = list(found)
    order = sorted(range(len(goals)), key=lambda place: goals[place].loss_ratio)
    for stricter, place in itertools.pairwise(order):
        strict, mine = result[stricter], result[place]
        if strict.lower_pps > mine.lower_pps:
            # No upper bound of the stricter goal (NaN): the maximum rate met it, so it met this one too.
            upper_pps = max(strict.upper_pps, mine.upper_pps)
            result[place] = replace(
                mine,
                lower_pps=strict.lower_pps,
                upper_pps=upper_pps,
                conditional_pps=strict.conditional_pps,
                outcome=strict.outcome,
            )
    return tuple(result)


def _trial_at_most(stage: Stage) -> Trial | None:
    """Return the valid trial at the greatest rate: what the router forwards of it is a good first guess."""
    for record in reversed(stage.records):
        mine = (record.stream, record.frame_bytes) == (stage.stream.name, stage.frame_bytes)
        if mine and record.purpose == GREATEST and record.trial.is_valid:
            return record.trial
    return None


def _row(stage: Stage, goal: GoalProfile, found: list[Bounds], trials: int) -> ThroughputRow:
    ports, size = stage.ports, stage.frame_bytes
    known = [bounds for bounds in found if math.isfinite(bounds.lower_pps) and not bounds.reason]
    spread = Spread.of(tuple(ports * bounds.lower_pps for bounds in known))
    last = known[-1] if known else found[-1]
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
        least = stage.profile.throughput.least * stage.theoretical_pps
        return replace(row, reason=f"the goal is missed even at the least rate of the search, {least:,.0f} frames/s")
    return row


def _power(stage: Stage, goal: GoalProfile, rate_pps: float) -> TrialPower | None:
    """Return the watts of the longest trial at a rate that met the goal; of equal ones the last."""
    found = [
        record.trial
        for record in stage.records
        if (record.procedure, record.stream, record.frame_bytes)
        == (stage.procedure, stage.stream.name, stage.frame_bytes)
        and record.trial.power is not None
        and record.trial.is_valid
        and math.isclose(record.rate_pps, rate_pps, rel_tol=1e-9)
        and counts_of(record.trial, record.trial.duration_s).loss_ratio <= goal.loss_ratio
    ]
    return max(reversed(found), key=lambda trial: trial.duration_s).power if found else None
