"""RFC 2544 sec. 26.1: throughput, the fastest rate at which nothing is lost (RFC 1242 sec. 3.17)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from routecast.benchmark.procedures.procedure import Deviation, Procedure, Spread, rfc2544, span
from routecast.benchmark.search import Bounds, Probe, binary_search, mlr_search, verified
from routecast.benchmark.settings import GoalProfile, Repeats, Share, Table
from routecast.benchmark.stage import Counts, InvalidTrial, Stage, counts_of
from routecast.benchmark.streams import Stream
from routecast.evaluate.trial import Trial, TrialPower
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Span

if TYPE_CHECKING:
    from routecast.benchmark.plan import Plan
    from routecast.benchmark.profile import Profile

__all__ = ["THROUGHPUT", "ThroughputProfile", "ThroughputResult", "ThroughputRow"]


class ThroughputProfile(Table):
    """``[throughput]``: sec. 26.1."""

    search: Literal["mlrsearch", "binary"] = Field(
        default="mlrsearch", description="MLRsearch (RFC 9971) or plain binary search."
    )
    goal: Annotated[tuple[GoalProfile, ...], Field(min_length=1)]
    base_goal: str = Field(
        default="", description="The goal whose result the other procedures use; the first if not given."
    )
    repeats: Repeats = Field(default=1, description="How often the whole search is run; the mean is given.")
    verify_losses: Annotated[int, Field(ge=0, le=20, strict=True)] = Field(
        default=0,
        description="How often a trial with loss is run again, the best counts: loss verification, max(r) of TST009.",
    )
    verify_below: Share = Field(default=0.1, description="Greater loss is not verified: z of TST009.")
    slice: Span = Field(
        default=0.0, description="Longest single trial; longer ones are run in slices. 0: never sliced."
    )
    least: Share = Field(default=0.001, description="Least rate of the search, over the maximum rate.")

    @model_validator(mode="after")
    def _known_base(self) -> ThroughputProfile:
        names = [goal.name for goal in self.goal]
        if self.base_goal and self.base_goal not in names:
            message = f"base_goal {self.base_goal!r} is no goal: {did_you_mean(self.base_goal, names)}"
            raise PydanticCustomError("goal", "{message}", {"message": message})
        return self

    @property
    def base(self) -> GoalProfile:
        """The goal whose result the other procedures use."""
        return next((goal for goal in self.goal if goal.name == self.base_goal), self.goal[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputRow:
    """Sec. 26.1 for one stream, frame size and goal.

    Parameters
    ----------
    goal : str
        ``"RFC 2544"`` (no loss), ``"PDR 0.5 %"``, ``"TST009"``.
    loss_ratio : float
        Loss that the goal tolerates.
    throughput_pps : float
        Greatest rate that meets the goal, all ports together: the lower bound of the search; NaN if none was found.
        For a goal with loss it is the offered rate; ``conditional_pps`` is what was forwarded of it (RFC 9971
        "conditional throughput").
    theoretical_pps : float
        Sec. 20, all sending ports together.
    lower_pps, upper_pps : float
        Bounds at the end of the search; no upper bound (NaN) where the maximum rate itself met the goal.
    resolution_ratio : float
        Width at which the search stops, relative to the upper bound.
    outcome : {"found", "maximum", "below", "undetermined"}
        ``maximum``: the medium's maximum rate met the goal. ``below``: not even the least rate did. ``undetermined``:
        trials stayed invalid, ``reason`` says why.
    repeats_pps : Spread
        The results of all searches, where the search was repeated; ``throughput_pps`` is their mean.
    final_trial_s : float
        Length of the trials that decided.
    trials : int
        How many trials it took.
    power : TrialPower or None
        Watts in the longest and last valid trial at the throughput that met the goal; None where nothing was metered
        and the model has no power states.
    """

    stream: str
    frame_bytes: int
    goal: str
    loss_ratio: float
    throughput_pps: float
    per_port_pps: float
    conditional_pps: float
    theoretical_pps: float
    lower_pps: float
    upper_pps: float
    resolution_ratio: float
    l1_bps: float
    l2_bps: float
    outcome: Literal["found", "maximum", "below", "undetermined"]
    reason: str = ""
    search: str = ""
    repeats_pps: Spread = field(default_factory=lambda: Spread.of(()))
    final_trial_s: float = float("nan")
    trials: int = 0
    power: TrialPower | None = None

    @property
    def of_theoretical_ratio(self) -> float:
        """Throughput over the theoretical maximum."""
        return self.throughput_pps / self.theoretical_pps


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputResult:
    """Sec. 26.1. ``advertised`` is the single statement that the section allows to publish, per stream type."""

    rows: tuple[ThroughputRow, ...]
    advertised: tuple[str, ...] = ()
    search: str = ""
    section: str = "RFC 2544 sec. 26.1"

    @property
    def watts(self) -> str:
        """What the rows' watts cover and where they come from, in words; empty where there are none."""
        seen = dict.fromkeys((row.power.scope, row.power.source) for row in self.rows if row.power)
        covered = " and ".join(f"the {scope} ({source})" for scope, source in seen)
        return f"Power: of {covered}, in a trial at the throughput." if covered else ""


_CEILING_TRIAL_S = 0.2
_CEILING_MARGIN = 0.9
_CLEAR_LOSS = 0.1
_MOST_DOUBTS = 1
_CEILING_ATTEMPTS = 8
GREATEST = "greatest rate of the tester"
"""Purpose of the trials that find it."""


def _run(stage: Stage, throughput_pps: float) -> tuple[ThroughputRow, ...]:
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


def _result(rows: Sequence[ThroughputRow], plan: Plan, medium: str) -> ThroughputResult:
    """Return the rows as one result, with the statements that may be advertised."""
    search = "MLRsearch (RFC 9971)" if plan.profile.throughput.search == "mlrsearch" else "binary search"
    return ThroughputResult(rows=tuple(rows), advertised=tuple(advertised(rows, plan.streams, medium)), search=search)


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


def _trials(profile: Profile) -> tuple[int, float]:
    settings = profile.throughput
    verification = 1.0 + 0.5 * settings.verify_losses
    trials, seconds = 1.0, 0.5
    for goal in settings.goal:
        more, length = _mlr(goal) if settings.search == "mlrsearch" else _binary(goal)
        trials += settings.repeats * verification * more
        seconds += settings.repeats * verification * length
    return math.ceil(trials), seconds


def _binary(goal: GoalProfile) -> tuple[float, float]:
    steps = math.log2(1.0 / goal.width) + 1.0
    final = 0.0 if goal.final_trial == goal.initial_trial else 1.5
    return steps + final, steps * goal.initial_trial + final * goal.final_trial


def _mlr(goal: GoalProfile) -> tuple[float, float]:
    # Seen with the reference library on routers with and without noise: both bounds need their duration sum,
    # the rest is short trials on the way there.
    way = 12.0
    at_ends = 2.5 * goal.duration_sum / goal.final_trial
    return way + at_ends, way * goal.initial_trial + at_ends * goal.final_trial


def _deviations(profile: Profile) -> Iterator[Deviation]:
    settings = profile.throughput
    lossless = [goal for goal in settings.goal if goal.loss_ratio == 0.0 and goal.exceed_ratio == 0.0]
    if not lossless:
        done = "goals with loss or with trials that may exceed it (RFC 9971), not RFC 1242's throughput"
        yield rfc2544("26.1", "MUST", "the fastest rate at which no frame of a trial is lost", done)
    if settings.verify_losses:
        done = f"a trial with loss is run again up to {settings.verify_losses} times, the best counts"
        yield rfc2544("26.1", "MUST", "a trial with loss lowers the rate", done)
    for goal in lossless:
        if goal.final_trial < 60.0:
            yield rfc2544("24", "SHOULD", "final trials of at least 60 s", f"{span(goal.final_trial)} ({goal.name})")
    if settings.slice:
        yield rfc2544("24", "SHOULD", "trials in one piece", f"slices of {span(settings.slice)}")


THROUGHPUT = Procedure(
    name="throughput",
    section="26.1",
    settings=ThroughputProfile,
    run=_run,
    result_of=_result,
    trials=_trials,
    deviations=_deviations,
    rests_on_throughput=False,
    counts_frames=False,
    with_bursts=True,
)
