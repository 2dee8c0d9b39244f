"""What other routers' latencies say of one that has few rows: gathering, bursts, the knee and the ring.

They are learnt from published measurements (``benches/latency.py --learn``), of all sources and without each, so that a
source can be predicted by what has not seen it (``data/calibration/latency.json``).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

from routecast.evaluate.points import RateKind

__all__ = ["LATENCY_PRIORS", "STATISTICS", "LatencyPrior", "Statistic", "prior_of"]

Statistic = Literal["p50", "mean", "p95", "p99"]
STATISTICS: Final[tuple[Statistic, ...]] = ("p50", "mean", "p95", "p99")
"""Statistics that are predicted. A greatest latency and p99.9 are not: nothing beats the nearest row there."""

LATENCY_PRIORS: Final = Path(str(files("routecast") / "data" / "calibration" / "latency.json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyPrior:
    """Normal distributions of logarithms: mean and standard deviation of each.

    ``gather``: frames that are gathered before a burst is worked on; ``burst``: frames of a burst that wait behind each
    other; ``knee``: load at the knee, inverse, relative to the capacity; ``ring``: frames in front of one in overload.
    ``scale``: standard deviation of what the law leaves over the load; ``noise``: of repeated rows.
    """

    gather: tuple[float, float]
    burst: tuple[float, float]
    knee: tuple[float, float]
    ring: tuple[float, float]
    scale: tuple[float, float] = (math.log(0.18), 1.0)
    noise: float = 0.044

    @property
    def means(self) -> tuple[float, ...]:
        """Means of the logarithms of gather, burst, knee and ring."""
        return tuple(mean for mean, _ in (self.gather, self.burst, self.knee, self.ring))

    @property
    def spreads(self) -> tuple[float, ...]:
        """Standard deviations of the logarithms of gather, burst, knee and ring."""
        return tuple(spread for _, spread in (self.gather, self.burst, self.knee, self.ring))


_KNEE_IN_OVERLOAD: Final = (0.0, 0.1)
"""A rate that was forwarded in overload is the capacity itself; the tail leaves earlier, where bursts exceed it."""


@lru_cache
def prior_of(statistic: Statistic, without: str = "", *, rate_kind: RateKind = "") -> LatencyPrior:
    """Return the prior of a statistic from all sources, or from all but one.

    A source that taught nothing gives the prior of all. ``rate_kind``: what the loads are shares of.
    """
    document = json.loads(LATENCY_PRIORS.read_text(encoding="utf-8"))
    kind = "body" if statistic in {"p50", "mean"} else "tail"
    learnt = document["without"].get(without, document["all"])[kind]
    prior = LatencyPrior(
        **{name: tuple(learnt[name]) for name in ("gather", "burst", "knee", "ring", "scale")}, noise=learnt["noise"]
    )
    return replace(prior, knee=_KNEE_IN_OVERLOAD) if rate_kind == "overload" and kind == "body" else prior
