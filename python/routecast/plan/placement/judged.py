"""The best few mappings by prediction, judged by simulation: the closed form compares thousands, and can be wrong.

It knows work and waiting for cores. It does not know what bursts, full queues, and threads that wait for their turn
cost. So the best of its mappings, each in all ways of pinning, are simulated, with the same seeds. One that is surely
better takes the place of the first, and the proof that the first is best is then said to be of the prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from routecast.errors import RoutecastError
from routecast.plan.placement.check import Checked, Trials
from routecast.plan.placement.finder import Finder, Ranked
from routecast.plan.placement.whole import Placement

__all__ = ["BETTER", "CANDIDATES", "Judged", "judged"]

CANDIDATES = 5
"""Mappings that are simulated."""
BETTER = 0.02
"""A simulated figure is better than another if it is so by this part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What simulation says of the best mappings by prediction.

    Parameters
    ----------
    best : Ranked
    first : Ranked
        The best by prediction.
    others : tuple of Ranked
        The next best by prediction.
    tried : int
        Mappings, each way of pinning one.
    met : bool or None
        Whether target and latency are held; None if nothing is asked or known.
    least_latency_s : float
        Of all that were tried.
    is_interrupted : bool
    """

    best: Ranked
    first: Ranked
    others: tuple[Ranked, ...]
    tried: int
    met: bool | None
    least_latency_s: float = math.nan
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class _Way:
    """A mapping pinned in one way; the empty choice is the one of the prediction."""

    number: int
    choice: str
    placement: Placement


def judged(
    finder: Finder, first: Ranked, others: Sequence[Ranked], shown: int, say: Callable[[str], None]
) -> Judged:
    """Simulate mappings, the best by prediction first; look at ``shown`` of the others in any case."""
    return _Judge(finder, [first, *others], say).judged(shown)


class _Judge:
    def __init__(self, finder: Finder, ranked: list[Ranked], say: Callable[[str], None]) -> None:
        self.finder, self.goal, self.ranked, self._say = finder, finder.problem.goal, ranked, say
        self.trials = Trials(finder.problem)
        self.is_lossless = self.goal.objective == "throughput" and self.goal.throughput == "lossless"
        self.rate_pps = finder.rate_pps
        self.near_pps = ranked[0].prediction.lossless_pps
        self.latencies_s: list[float] = []

    def judged(self, shown: int) -> Judged:
        """Return the verdict; after an interruption, what it is until then."""
        first = _Way(0, "", self.ranked[0].placement)
        best, tried, met, is_interrupted = first, 1, None, False
        ranked = dict(enumerate(self.ranked[: 1 + shown]))
        try:
            self._say("simulates the best mapping")
            met = self._holds(first)
            for way in self._ways():
                if met and self.goal.objective != "throughput":
                    break  # They come by their cost: no other is cheaper.
                tried += 1
                self._say(f"simulates mapping {tried}")
                holds = self._holds(way)
                if holds is not False and (met is False or self._is_better(way, best)):
                    best, met = way, holds
            self._say("simulates the next best mappings")
            for number, one in list(ranked.items()):
                ranked[number] = self._checked(one)
        except KeyboardInterrupt:
            is_interrupted = True
        except RoutecastError as found:
            ranked[0] = self._unchecked(self.ranked[0], str(found).splitlines()[0])
            best, met = first, None
        chosen = ranked[best.number] if best.number in ranked else self.ranked[best.number]
        if best.choice:
            chosen = self.finder.pinned(chosen, best.choice, best.placement)
        if best != first:
            chosen = self._checked(chosen)
        return Judged(
            best=chosen,
            first=ranked[0],
            others=tuple(one for number, one in ranked.items() if number and number != best.number),
            tried=tried,
            met=met,
            least_latency_s=min(self.latencies_s, default=math.nan),
            is_interrupted=is_interrupted,
        )

    def _ways(self) -> Iterator[_Way]:
        """Yield all but the first: its mapping in other ways, then each of the others in all its ways."""
        for number, one in enumerate(self.ranked):
            if number:
                yield _Way(number, "", one.placement)
            for choice, placement in self.finder.ways(one):
                yield _Way(number, choice, placement)

    def _holds(self, way: _Way) -> bool | None:
        """Return whether target and latency are held; None if nothing is asked."""
        is_target = self.goal.objective != "throughput"
        if not is_target and self.goal.latency_s is None:
            return None
        seen = self.trials.at(way.placement, self.rate_pps)
        if math.isfinite(seen.latency_s):
            self.latencies_s.append(seen.latency_s)
        if is_target and seen.loss_ratio > BETTER:
            return False
        # Where no frame came through there is no latency to hold.
        return self.goal.latency_s is None or seen.latency_s <= self.goal.latency_s

    def _is_better(self, way: _Way, best: _Way) -> bool:
        if self.goal.objective != "throughput":
            return False
        if not self.is_lossless:
            now, before = (self.trials.at(one.placement, self.rate_pps) for one in (way, best))
            return now.forwarded_pps > (1.0 + BETTER) * before.forwarded_pps
        carried_pps = self._lossless_pps(best.placement)
        # One trial rules out most; near the limit the loss goes up and down with the load, so the figures decide.
        if carried_pps > 0.0 and not self.trials.carries(way.placement, carried_pps * (1.0 + BETTER)):
            return False
        return self._lossless_pps(way.placement) > carried_pps * (1.0 + BETTER)

    def _lossless_pps(self, placement: Placement) -> float:
        """Return what is carried without loss, looked for from the prediction of the first on."""
        return self.trials.lossless_pps(placement, self.near_pps)

    def _checked(self, one: Ranked) -> Ranked:
        seen = self.trials.at(one.placement, self.rate_pps)
        lossless = self.is_lossless
        check = Checked(
            rate="lossless" if lossless else "forwarded",
            predicted_pps=one.prediction.lossless_pps if lossless else one.prediction.forwarded_pps,
            simulated_pps=self._lossless_pps(one.placement) if lossless else seen.forwarded_pps,
            offered_pps=self.rate_pps,
            forwarded_pps=seen.forwarded_pps,
            latency_s=seen.latency_s,
        )
        return replace(one, check=check)

    def _unchecked(self, one: Ranked, trouble: str) -> Ranked:
        lossless = self.is_lossless
        predicted_pps = one.prediction.lossless_pps if lossless else one.prediction.forwarded_pps
        check = Checked(
            rate="lossless" if lossless else "forwarded",
            predicted_pps=predicted_pps,
            simulated_pps=math.nan,
            offered_pps=self.rate_pps,
            seeds=(),
            trouble=trouble,
        )
        return replace(one, check=check)
