"""Stand-ins for a router: one that forwards what it can, one that is disturbed, one whose tester fails."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from routecast.evaluate.trial import Bottleneck, Delay, Trial
from routecast.lab.benchmark import Profile, read_profile
from routecast.load import OfferedLoad

LINK_BPS = 10e9
LINE_PPS = LINK_BPS / (8 * 84)  # S1, 64-byte frames


@dataclass(slots=True)
class Fluid:
    """A queue of ``queue_frames`` before a server of ``capacity_pps``, fed evenly: what is beyond both is lost."""

    capacity_pps: float
    queue_frames: int = 0
    trials: list[tuple[float, float]] = field(default_factory=list)

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        self.trials.append((load.rate_pps, duration_s))
        offered = round(load.mean_pps(duration_s) * duration_s)
        spans = [*(step.at_s for step in load.steps), duration_s]
        rates = [load.rate_pps, *(step.rate_pps for step in load.steps)]
        held = lost = since_s = 0.0
        first_s = last_s = float("nan")
        for until_s, rate_pps in zip(spans, rates, strict=True):
            grown = held + (rate_pps - self.capacity_pps) * (until_s - since_s)
            if grown > self.queue_frames and rate_pps > self.capacity_pps:
                full_s = since_s + (self.queue_frames - held) / (rate_pps - self.capacity_pps)
                first_s, last_s = (full_s if math.isnan(first_s) else first_s), until_s
                lost += grown - self.queue_frames
            held = min(max(grown, 0.0), self.queue_frames)
            since_s = until_s
        dropped = int(lost + 1e-6)
        return self._made(load, duration_s, offered, dropped, first_s, last_s)

    def _made(
        self,
        load: OfferedLoad,
        duration_s: float,
        offered: int,
        dropped: int,
        first_s: float = float("nan"),
        last_s: float = float("nan"),
    ) -> Trial:
        forwarded = offered - dropped
        return Trial(
            evaluator="fake",
            duration_s=duration_s,
            intended_pps=load.mean_pps(duration_s),
            offered_pps=offered / duration_s,
            forwarded_pps=forwarded / duration_s,
            loss_ratio=dropped / offered if offered else 0.0,
            l1_bps=0.0,
            l2_bps=0.0,
            bottleneck=Bottleneck(name="fake", kind="pool", reason="it is one"),
            offered_frames=offered,
            forwarded_frames=forwarded,
            dropped_frames=dropped,
            in_flight_frames=0,
            latency=Delay(mean_s=2e-6, min_s=1e-6, p50_s=2e-6, p90_s=3e-6, p99_s=4e-6, p999_s=5e-6, max_s=6e-6),
            first_loss_s=first_s,
            last_loss_s=last_s,
        )


@dataclass(slots=True)
class Disturbed(Fluid):
    """A router on a machine with other work: now and then a stall loses frames that the router would have forwarded.

    Each trial stalls with probability ``chance_per_s`` per second, for ``stall_s``, at any rate.
    """

    chance_per_s: float = 0.3
    stall_s: float = 2e-3
    random: Random = field(default_factory=lambda: Random(1))

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        undisturbed = Fluid.trial(self, load, duration_s)
        if self.random.random() > self.chance_per_s * duration_s:
            return undisturbed
        assert undisturbed.offered_frames is not None
        assert undisturbed.dropped_frames is not None
        lost = min(undisturbed.dropped_frames + round(load.rate_pps * self.stall_s), undisturbed.offered_frames)
        return self._made(load, duration_s, undisturbed.offered_frames, lost)


@dataclass(slots=True)
class Faulty(Fluid):
    """A tester that fails: ``fails(rate_pps, number)`` says why the trial is invalid, or nothing."""

    fails: Callable[[float, int], str] = lambda rate_pps, number: ""
    reaches_pps: float = float("inf")

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        reached = replace(load, rate_pps=min(load.rate_pps, self.reaches_pps))
        trial = Fluid.trial(self, reached, duration_s)
        reason = self.fails(load.rate_pps, len(self.trials))
        if load.rate_pps > self.reaches_pps:
            reason = "the rate was not reached"
        return replace(trial, intended_pps=load.rate_pps, invalid=(reason,) if reason else ())


def profile_with(name: str = "quick", **tables: dict[str, object]) -> Profile:
    """Return a shipped profile with some values changed, by table."""
    profile = read_profile(name)
    for table, values in tables.items():
        profile = profile.changed(table, **values)
    return profile
