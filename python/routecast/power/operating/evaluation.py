"""How candidates are evaluated: by closed form or by simulation, all with the same random numbers."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Sequence

from routecast.errors import RoutecastError, TransientProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.power.operating.candidates import Candidate
from routecast.power.operating.targets import Target
from routecast.quantity.schema import field, value

__all__ = ["Check", "Checked", "Evaluate", "Simulating", "solving"]

Evaluate = Callable[[Candidate, OfferedLoad], Trial | None]
"""Answers for a candidate at a load; None where no steady state was reached."""

_LONGEST = 8.0


class StoppedError(RoutecastError):
    """A simulation was told to stop; nobody waits for its result."""


def solving(candidate: Candidate, load: OfferedLoad) -> Trial | None:
    """Answer by closed form."""
    return Solve(model=candidate.model).trial(load, 1.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Simulating:
    """Answers by simulation, each candidate with the same seed: the same frames at the same instants (S8).

    Common random numbers make differences between settings stand out from the noise that all of them share.

    Parameters
    ----------
    duration_s : float
        Simulated time. A trial whose transient takes longer is run again, for up to eight times as long.
    seed : int
    stop : threading.Event
        Set to make running simulations end.
    """

    duration_s: float
    seed: int = 1
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)

    def __call__(self, candidate: Candidate, load: OfferedLoad) -> Trial | None:
        """Simulate a candidate."""
        duration_s = self.duration_s
        for _ in range(3):
            try:
                simulator = Simulate(candidate.model, seed=self.seed, on_progress=self._listen)
                return simulator.trial(load, duration_s)
            except TransientProblem as problem:
                longest_s = _LONGEST * self.duration_s
                if duration_s >= longest_s:
                    return None
                duration_s = min(max(1.2 * problem.needed_s, 2.0 * duration_s), longest_s)
        return None

    def _listen(self, _share: float) -> None:
        if self.stop.is_set():
            raise StoppedError("the simulation was told to stop")

    def noise_ratio(self, load: OfferedLoad) -> float:
        """Return how much less work than on average one of these trials may bring (four standard deviations).

        Half of the trial may be its transient. Counts of Poisson arrivals vary as their mean, those of bursts as that
        times the length of a burst; a trace may have any shape.
        """
        frames = max(load.rate_pps * self.duration_s / 2.0, 1.0)
        kind = load.arrivals.kind
        if kind == "trace":
            return 0.5
        dispersion = {"cbr": 0.0, "poisson": 1.0}.get(kind, 2.0 * load.arrivals.burst_frames)
        # Service times and sizes vary too, by no more than exponential ones in what routers do.
        return min(0.005 + 4.0 * math.sqrt((dispersion + 1.0) / frames), 1.0)


@value
class Checked:
    """A candidate looked at again, with other random numbers and for longer."""

    power_w: tuple[float, float, float] = field("Mean of the replications and its 95 % interval, W")
    values: tuple[tuple[float, float, float], ...] = field("The same for each target's quantity")
    is_met: bool = field("Whether every target is met up to the upper end of its interval")
    replications: int
    duration_s: float = field("Of each, s")


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """The last word on a setting: independent replications, longer than those of the search.

    The search takes the best of many noisy trials, so its winner's own trial flatters it. New seeds do not, and the
    percentile of each replication gives an interval, which a single trial does not have.

    Parameters
    ----------
    duration_s : float
    seeds : tuple of int
        At least two.
    stop : threading.Event
    """

    duration_s: float
    seeds: tuple[int, ...]
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)

    def runs(self) -> tuple[Simulating, ...]:
        """Return the replications to be run."""
        return tuple(Simulating(self.duration_s, seed, self.stop) for seed in self.seeds)

    def verdict(self, trials: Sequence[Trial | None], targets: Sequence[Target]) -> Checked:
        """Return what the trials of :meth:`runs` say."""
        known = [trial for trial in trials if trial is not None]
        powers = [trial.power.mean_w for trial in known if trial.power is not None]
        values = tuple(_interval([target.value(trial) for trial in known]) for target in targets)
        is_met = len(known) == len(trials) and all(
            target.is_kept_by(high) for target, (_, _, high) in zip(targets, values, strict=True)
        )
        return Checked(
            power_w=_interval(powers),
            values=values,
            is_met=is_met,
            replications=len(trials),
            duration_s=self.duration_s,
        )


def _interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval by Student's t; not below 0, as no quantity here is."""
    if not values or any(math.isnan(value) for value in values):
        return (math.nan, math.nan, math.nan)
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return (mean, mean, mean)
    from scipy.stats import t as student

    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = float(student.ppf(0.975, count - 1)) * math.sqrt(variance / count)
    return (mean, max(mean - half, 0.0), mean + half)
