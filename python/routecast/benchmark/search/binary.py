"""Plain binary search, as RFC 2544 sec. 26.1 suggests it and most testers do it."""

from __future__ import annotations

import math

from routecast.benchmark.search.bounds import Bounds, Probe
from routecast.benchmark.settings import GoalProfile
from routecast.benchmark.stage import Counts, InvalidTrial

__all__ = ["binary_search"]

_MOST_TRIALS = 200


def binary_search(
    probe: Probe,
    goal: GoalProfile,
    *,
    least_pps: float,
    most_pps: float,
    hint_pps: float = math.nan,
    fails_at_most: bool = False,
    doubts: int = 0,
) -> Bounds:
    """Halve the interval between a load that meets the goal and one that misses it until it is narrow enough.

    Trials have the goal's initial length until the interval is narrow, then its final one: RFC 2544 sec. 24 allows
    shorter trials in a search and wants the last determination at full length. A lower bound that fails at full length
    is a new upper bound, and the search goes on below it.

    Parameters
    ----------
    probe : Probe
    goal : GoalProfile
        Its loss ratio, width and trial lengths count; exceed ratio and duration sum belong to MLRsearch.
    least_pps, most_pps : float
        Ends of the search, per port.
    hint_pps : float
        A load that is expected to be near the result: the search opens there and goes on in growing steps until it has
        an interval to halve. NaN for none.
    fails_at_most : bool
        The greatest load is known to miss the goal by far, and is not tried.
    doubts : int
        How often the upper bound is tried once more at the end: on a disturbed machine a load can miss the goal for
        reasons of the machine, and a search that believes each miss ends too low. A load that meets it after all is the
        new lower bound, and the search goes on above it.
    """
    search = _Search(probe=probe, goal=goal, least_pps=least_pps, most_pps=most_pps)
    try:
        return search.run(hint_pps, fails_at_most=fails_at_most, doubts=doubts)
    except InvalidTrial as problem:
        return Bounds(
            lower_pps=search.lower,
            upper_pps=search.upper,
            conditional_pps=math.nan,
            outcome="undetermined",
            reason=str(problem),
        )


class _Search:
    def __init__(self, *, probe: Probe, goal: GoalProfile, least_pps: float, most_pps: float) -> None:
        self.probe, self.goal = probe, goal
        self.least, self.most = least_pps, most_pps
        self.lower = self.upper = math.nan
        self.missed: list[float] = []
        self.at_lower: Counts | None = None
        self.trials = 0

    def run(self, hint_pps: float, *, fails_at_most: bool, doubts: int) -> Bounds:
        length = self.goal.initial_trial
        if fails_at_most:
            self.upper = self.most
        elif self._meets(self.most, length) and (
            length == self.goal.final_trial or self._meets(self.most, self.goal.final_trial)
        ):
            return self._bounds("maximum")
        self._open(length, hint_pps)
        self._narrow(length)
        for _ in range(doubts):
            if not (self.least < self.upper < self.most and self._meets(self.upper, length)):
                break
            self.upper = min((load for load in self.missed if load > self.lower), default=self.most)
            self._climb(length)
            self._narrow(length)
        # The last determination has the full length (sec. 24).
        while length < self.goal.final_trial and self.lower == self.lower:
            if self._meets(self.lower, self.goal.final_trial):
                break
            self.lower = math.nan
            self._descend()
            self._narrow(self.goal.final_trial)
            length = self.goal.final_trial
        if self.lower != self.lower:
            return self._bounds("below")
        return self._bounds("found")

    def _open(self, length: float, hint_pps: float) -> None:
        """From a hint, go up or down in growing steps until both bounds are there."""
        if not self.least < hint_pps < self.upper:
            return
        step = 2.0 * self.goal.width
        if self._meets(hint_pps, length):
            self._climb(length)
            return
        while self.upper * (1.0 - step) > self.least and not self._meets(self.upper * (1.0 - step), length):
            step = min(2.0 * step, 0.5)

    def _climb(self, length: float) -> None:
        """From the lower bound, go up in growing steps until a load misses the goal."""
        step = 2.0 * self.goal.width
        while self.lower * (1.0 + step) < self.upper and self._meets(self.lower * (1.0 + step), length):
            step = min(2.0 * step, 1.0)

    def _narrow(self, length: float) -> None:
        """Halve until the bounds are as near as the goal's width."""
        while self.trials < _MOST_TRIALS:
            low = self.lower if self.lower == self.lower else 0.0
            if self.upper - low <= self.goal.width * self.upper:
                return
            if self.upper <= self.least:
                return
            self._meets(max(0.5 * (low + self.upper), self.least), length)

    def _descend(self) -> None:
        """From a lower bound that failed at full length, go down in growing steps until one holds."""
        width = self.goal.width
        while self.lower != self.lower and self.upper > self.least and self.trials < _MOST_TRIALS:
            self._meets(max(self.upper * (1.0 - width), self.least), self.goal.final_trial)
            width = min(2.0 * width, 0.5)

    def _meets(self, load_pps: float, length: float) -> bool:
        self.trials += 1
        counts = self.probe(load_pps, length, f"search {self.trials}, {self.goal.name}")
        if counts.loss_ratio <= self.goal.loss_ratio:
            self.lower, self.at_lower = load_pps, counts
            return True
        self.upper = load_pps
        self.missed.append(load_pps)
        return False

    def _bounds(self, outcome: str) -> Bounds:
        assert outcome in {"found", "maximum", "below"}
        loss = self.at_lower.loss_ratio if self.at_lower else math.nan
        return Bounds(
            lower_pps=self.lower,
            upper_pps=self.upper,
            conditional_pps=self.lower * (1.0 - loss),
            outcome="found" if outcome == "found" else "maximum" if outcome == "maximum" else "below",
        )
