"""Searches: the greatest rate that meets a goal (MLRsearch, binary search), and the longest burst without loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from routecast.lab.benchmark.settings import GoalProfile
from routecast.lab.benchmark.stage import Counts, InvalidTrial
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from MLRsearch import MeasurementResult

__all__ = ["Bounds", "Burst", "Probe", "binary_search", "longest_burst", "mlr_search", "verified"]


Probe = Callable[[float, float, str], Counts]
"""``probe(per_port_pps, duration_s, purpose)`` offers a load for a time and counts the frames of all ports."""

Outcome = Literal["found", "maximum", "below", "undetermined"]

_MAX_TRIALS = 200
_NO_TIME_LIMIT_S = 1e9


@value
class Bounds:
    """The end of a search for one goal, per port."""

    lower_pps: float = field("Greatest load known to meet the goal; NaN if there is none.", default=math.nan)
    upper_pps: float = field("Least load known to miss the goal; NaN if there is none.", default=math.nan)
    conditional_pps: float = field(
        'Forwarded rate at the lower bound (RFC 9971 sec. 4.8 "conditional throughput").', default=math.nan
    )
    outcome: Outcome = field("See :class:`routecast.lab.benchmark.procedures.throughput.ThroughputRow`.")
    reason: str = field("Reason of a missing result.", default="")
    raised_from_pps: float = field(
        "Result of the search, if the bound was raised to that of a stricter goal; NaN otherwise.", default=math.nan
    )


def verified(
    probe: Probe, *, repeats: int, below_ratio: float, enough_ratio: float = 0.0, slice_s: float = 0.0
) -> Probe:
    """Return a probe that verifies losses, and cuts long trials into slices.

    Loss verification (ETSI GS NFV-TST009 clause 12.3.3; RFC 9004 sec. 6) repeats a trial with a little loss. A software
    router on a machine with other work sometimes loses frames because of the machine. Where most trials of a rate have
    no loss, the loss of the others counts as such a disturbance. The median decides, so a single lucky trial does not.
    This is a deviation from RFC 2544 sec. 26.1, where every loss counts.

    ``repeats``: max(r), repetitions of a trial with loss. The median of all ``1 + repeats`` counts, the greater of the
    two in the middle of an even number, so that most trials lose no more; ``below_ratio``: z: a greater loss is the
    router's at once; ``enough_ratio``: a loss up to this ratio, which the strictest goal tolerates, needs no
    repetition; ``slice_s``: longest single trial; 0 never slices. A sliced trial's counts are the sums over its slices,
    each verified.
    """

    def once(load_pps: float, duration_s: float, purpose: str) -> Counts:
        first = probe(load_pps, duration_s, purpose)
        if first.loss_ratio <= enough_ratio or first.loss_ratio > below_ratio:
            return first
        trials = [first]
        middle = (1 + repeats) // 2
        for _ in range(repeats):
            trials.append(probe(load_pps, duration_s, f"{purpose}, verification"))
            if sum(counts.loss_ratio <= enough_ratio for counts in trials) > middle:
                break  # a majority has no loss already
        return sorted(trials, key=lambda counts: counts.loss_ratio)[middle]

    def sliced(load_pps: float, duration_s: float, purpose: str) -> Counts:
        pieces = max(math.ceil(duration_s / slice_s - 1e-9), 1) if slice_s > 0.0 else 1
        parts = [once(load_pps, duration_s / pieces, purpose) for _ in range(pieces)]
        return Counts(
            offered=sum(part.offered for part in parts),
            lost=sum(part.lost for part in parts),
            unsent=sum(part.unsent for part in parts),
        )

    return sliced


def binary_search(
    probe: Probe,
    goal: GoalProfile,
    *,
    min_pps: float,
    max_pps: float,
    hint_pps: float = math.nan,
    misses_at_max: bool = False,
    meets_at_min: bool = False,
    doubts: int = 0,
) -> Bounds:
    """Halve the interval between a load that meets the goal and one that misses it, as RFC 2544 sec. 26.1 suggests.

    Trials have the goal's initial length until the interval is narrow, then its final one: RFC 2544 sec. 24 allows
    shorter trials in a search and wants the last determination at full length. A lower bound that fails at full length
    is a new upper bound, and the search continues below it.

    ``goal``: its loss ratio, width and trial lengths count; exceed ratio and duration sum belong to MLRsearch;
    ``min_pps`` and ``max_pps``: ends of the search, per port; ``hint_pps``: a load near the expected result: the
    search starts there and continues in growing steps until it has an interval to halve; NaN for none;
    ``misses_at_max``: the greatest load is known to miss the goal, and is not tried; ``meets_at_min``: the least load
    is known to meet the goal, and is not tried; ``doubts``: how often the upper bound is tried once more at the end: on
    a disturbed machine a load can miss the goal for reasons of the machine, and a search that trusts each miss ends too
    low. A load that meets the goal after all is the new lower bound, and the search continues above it.
    """
    search = _Search(probe=probe, goal=goal, min_pps=min_pps, max_pps=max_pps)
    if meets_at_min:
        search.lower = min_pps
    try:
        return search.run(hint_pps, misses_at_max=misses_at_max, doubts=doubts)
    except InvalidTrial as problem:
        return Bounds(lower_pps=search.lower, upper_pps=search.upper, outcome="undetermined", reason=str(problem))


class _Search:
    def __init__(self, *, probe: Probe, goal: GoalProfile, min_pps: float, max_pps: float) -> None:
        self.probe, self.goal = probe, goal
        self.min_pps, self.max_pps = min_pps, max_pps
        self.lower = self.upper = math.nan
        self.missed: list[float] = []
        self.at_lower: Counts | None = None
        self.trials = 0

    def run(self, hint_pps: float, *, misses_at_max: bool, doubts: int) -> Bounds:
        length_s = self.goal.initial_trial
        if misses_at_max:
            self.upper = self.max_pps
        elif self._meets(self.max_pps, length_s) and (
            length_s == self.goal.final_trial or self._meets(self.max_pps, self.goal.final_trial)
        ):
            return self._bounds("maximum")
        self._open(length_s, hint_pps)
        self._narrow(length_s)
        for _ in range(doubts):
            if not (self.min_pps < self.upper < self.max_pps and self._meets(self.upper, length_s)):
                break
            self.upper = min((load for load in self.missed if load > self.lower), default=self.max_pps)
            self._climb(length_s)
            self._narrow(length_s)
        # The last determination has the full length (sec. 24).
        is_short = length_s < self.goal.final_trial and not math.isnan(self.lower)
        if is_short and not self._meets(self.lower, self.goal.final_trial):
            self.lower = math.nan
            self._descend()
            self._narrow(self.goal.final_trial)
        return self._bounds("below" if math.isnan(self.lower) else "found")

    def _open(self, length_s: float, hint_pps: float) -> None:
        """Go up or down from a hint, in growing steps, until both bounds are known."""
        if not self.min_pps < hint_pps < self.upper:
            return
        step = 2.0 * self.goal.width
        if self._meets(hint_pps, length_s):
            self._climb(length_s)
            return
        while self.upper * (1.0 - step) > self.min_pps and not self._meets(self.upper * (1.0 - step), length_s):
            step = min(2.0 * step, 0.5)

    def _climb(self, length_s: float) -> None:
        """Go up from the lower bound in growing steps until a load misses the goal."""
        step = 2.0 * self.goal.width
        while self.lower * (1.0 + step) < self.upper and self._meets(self.lower * (1.0 + step), length_s):
            step = min(2.0 * step, 1.0)

    def _narrow(self, length_s: float) -> None:
        """Halve the interval until it is as narrow as the goal's width."""
        while self.trials < _MAX_TRIALS:
            low = 0.0 if math.isnan(self.lower) else self.lower
            if self.upper - low <= self.goal.width * self.upper or self.upper <= self.min_pps:
                return
            self._meets(max(0.5 * (low + self.upper), self.min_pps), length_s)

    def _descend(self) -> None:
        """Go down from a lower bound that failed at full length in growing steps until a load meets the goal."""
        width = self.goal.width
        while math.isnan(self.lower) and self.upper > self.min_pps and self.trials < _MAX_TRIALS:
            self._meets(max(self.upper * (1.0 - width), self.min_pps), self.goal.final_trial)
            width = min(2.0 * width, 0.5)

    def _meets(self, load_pps: float, length_s: float) -> bool:
        self.trials += 1
        counts = self.probe(load_pps, length_s, f"search {self.trials}, {self.goal.name}")
        if counts.loss_ratio <= self.goal.loss_ratio:
            self.lower, self.at_lower = load_pps, counts
            return True
        self.upper = load_pps
        self.missed.append(load_pps)
        return False

    def _bounds(self, outcome: Outcome) -> Bounds:
        conditional_pps = self.lower * (1.0 - self.at_lower.loss_ratio) if self.at_lower else math.nan
        return Bounds(lower_pps=self.lower, upper_pps=self.upper, conditional_pps=conditional_pps, outcome=outcome)


def mlr_search(probe: Probe, goals: Sequence[GoalProfile], *, min_pps: float, max_pps: float) -> tuple[Bounds, ...]:
    """Search for all goals at once: MLRsearch (RFC 9971) by its reference library, over any evaluator.

    Conversions, which RFC 9971 wants stated: the library's load is that of **one port**, its counts are of **all
    ports** together; the ratio of loss is the same either way. Frames that the tester could not send count as lost. The
    library limits its own time by the wall clock; this limit is far beyond any run, since the profile decides the
    length of a search. There is no warm-up trial: the stage before has sent at the maximum rate already.

    ``min_pps`` and ``max_pps``: ends of the search, per port. The result is in the order of the goals.
    """
    from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch

    probes = 0

    class Measurer(AbstractMeasurer):  # type: ignore[misc]  # the library has no types
        def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
            nonlocal probes
            probes += 1
            counts = probe(intended_load, intended_duration, f"search {probes}, MLRsearch")
            return MeasurementResult(
                intended_duration=intended_duration,
                intended_load=intended_load,
                offered_count=counts.offered,
                loss_count=counts.lost,
                intended_count=counts.offered + counts.unsent,
            )

    search_goals = [_search_goal(goal) for goal in goals]
    config = Config(
        goals=list(dict.fromkeys(search_goals)),
        min_load=min_pps,
        max_load=max_pps,
        search_duration_max=_NO_TIME_LIMIT_S,
        warmup_duration=None,
    )
    try:
        # The journal has every trial, so the library's own log is dropped.
        results = MultipleLossRatioSearch(config=config).search(measurer=Measurer(), debug=lambda text: None)
    except InvalidTrial as problem:
        return (Bounds(outcome="undetermined", reason=str(problem)),) * len(goals)
    return tuple(_bounds(results[goal]) for goal in search_goals)


def _search_goal(goal: GoalProfile) -> Any:
    from MLRsearch import SearchGoal

    return SearchGoal(
        loss_ratio=goal.loss_ratio,
        exceed_ratio=goal.exceed_ratio,
        relative_width=goal.width,
        initial_trial_duration=goal.initial_trial,
        final_trial_duration=goal.final_trial,
        duration_sum=goal.duration_sum,
        preceding_targets=goal.preceding_targets,
        fail_fast=False,
    )


def _bounds(result: Any) -> Bounds:
    lower, upper = result.relevant_lower_bound, result.relevant_upper_bound
    upper_pps = math.nan if upper is None else float(upper)
    if lower is None:
        return Bounds(upper_pps=upper_pps, outcome="below")
    return Bounds(
        lower_pps=float(lower),
        upper_pps=upper_pps,
        conditional_pps=float(result.conditional_throughput),
        outcome="maximum" if upper is None else "found",
    )


@value
class Burst:
    """Longest burst without loss."""

    frames: int = field("Frames of all ports; 0 if even the shortest burst lost some.")
    outcome: Literal["found", "limit"] = field("``limit``: the longest burst that may be sent lost nothing.")
    trials: int


def longest_burst(
    send: Callable[[int, str], Counts],
    *,
    max_frames: int,
    width_ratio: float,
    verify_losses: int,
    verify_below: float,
    hint_frames: int = 0,
) -> Burst:
    """Search for the longest burst without loss: binary search of TST009 with loss verification (RFC 9004 sec. 6).

    ``send``: ``send(frames, purpose)`` sends a burst and counts it; ``max_frames``: upper limit: the burst's longest
    send time at the maximum rate; ``width_ratio``: least step, over the burst; at least one frame; ``verify_losses``
    and ``verify_below``: loss verification, see :func:`verified`; ``hint_frames``: a burst near the expected result,
    tried first; 0 for none.
    """
    trials = 0

    def holds(frames: int) -> bool:
        nonlocal trials
        for attempt in range(1 + verify_losses):
            trials += 1
            purpose = f"burst of {frames:,}" + (", verification" if attempt else "")
            counts = send(frames, purpose)
            if counts.lost == 0:
                return True
            if counts.loss_ratio > verify_below:
                return False
        return False

    lower, upper = 0, max_frames + 1
    # From a hint outwards in growing steps; without one, halving from the limit.
    if 0 < hint_frames <= max_frames:
        lower, upper = _around(holds, hint_frames, max_frames, width_ratio)
    elif holds(max_frames):
        return Burst(frames=max_frames, outcome="limit", trials=trials)
    else:
        upper = max_frames
    while upper - lower > max(round(width_ratio * upper), 1):
        # Bursts differ by orders of magnitude, so the middle is the geometric one.
        middle = max(round((max(lower, 1) * upper) ** 0.5), lower + 1)
        if middle >= upper:
            break
        if holds(middle):
            lower = middle
        else:
            upper = middle
    return Burst(frames=lower, outcome="limit" if lower == max_frames else "found", trials=trials)


def _around(holds: Callable[[int], bool], hint: int, max_frames: int, width_ratio: float) -> tuple[int, int]:
    """Return a burst that holds and one that does not, near a good hint."""
    step = 1.0 + 2.0 * width_ratio
    if holds(hint):
        lower = hint
        while lower < max_frames:
            frames = min(max(round(lower * step), lower + 1), max_frames)
            if not holds(frames):
                return lower, frames
            lower, step = frames, step * step
        return lower, max_frames + 1
    upper = hint
    while upper > 1:
        frames = min(max(round(upper / step), 1), upper - 1)
        if holds(frames):
            return frames, upper
        upper, step = frames, step * step
    return 0, upper
