"""Priors of gathering, bursts, the knee and the ring, learnt from published latencies; each source weighs the same."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from routecast.calibration.latency import LatencyPrior, fit_curve
from routecast.replications.latency.tables import SOURCES, PublishedLatency, published_latencies

__all__ = ["learnt_document", "learnt_prior"]

_NAMES = ("gather", "burst", "knee", "ring")
_ROUNDS = 8
_LEAST_SPREAD = 0.1
_WIDE = {
    "body": LatencyPrior(
        gather=(math.log(16.0), 1.0),
        burst=(math.log(16.0), 1.0),
        knee=(math.log(0.95), 0.25),
        ring=(math.log(1024.0), 1.0),
    ),
    "tail": LatencyPrior(
        gather=(math.log(16.0), 1.0),
        burst=(math.log(16.0), 1.0),
        knee=(math.log(0.95), 0.35),
        ring=(math.log(1024.0), 1.0),
        noise=0.035,
    ),
}
"""Where learning begins, and one more source: half of a burst of 32 frames, rings of 512 to 4,096 descriptors."""


def learnt_prior(latencies: Sequence[PublishedLatency], kind: Literal["body", "tail"]) -> LatencyPrior:
    """Return the prior under which the routers of all sources are likely, each source with the same weight.

    Where it began counts as one more source: a few sources do not know how far others lie from them. For the same
    reason the spread over n sources is widened by the root of (n + 1) / (n - 1): that of a further one.

    Posterior means and variances of each router's logarithms under the prior so far give the next one's (as EM does).
    """
    prior, learnt = _WIDE[kind], {}
    routers_of = Counter(latency.source for latency in latencies)
    shares = np.array([1.0 / routers_of[latency.source] for latency in latencies])
    wide = _WIDE[kind]
    wide_means = np.array([*wide.means, wide.scale[0]])
    wide_variances = np.array([*wide.spreads, wide.scale[1]]) ** 2
    shares = np.append(shares, 1.0)
    shares /= shares.sum()
    for _ in range(_ROUNDS):
        moments = [_moments(latency, prior) for latency in latencies]
        means = np.array([*(mean for mean, _ in moments), wide_means])
        variances = np.array([*(variance for _, variance in moments), wide_variances])
        centre = shares @ means
        spread = np.maximum(np.sqrt(shares @ (variances + (means - centre) ** 2)), _LEAST_SPREAD)
        learnt = {name: (float(centre[n]), float(spread[n])) for n, name in enumerate((*_NAMES, "scale"))}
        prior = LatencyPrior(**learnt, noise=prior.noise)
    sources = len(routers_of) + 1
    further = math.sqrt((sources + 1.0) / (sources - 1.0))
    widened = {name: (mean, further * spread) for name, (mean, spread) in learnt.items()}
    return LatencyPrior(**widened, noise=prior.noise)


def _moments(latency: PublishedLatency, prior: LatencyPrior) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means and variances of the logarithms of a router's frames, and of its scale."""
    curve = fit_curve(latency.rows, prior, frame_s=latency.frame_s)
    unit = latency.frame_s / min(row.latency_s for row in latency.rows)
    logs = np.log(curve.parameters / np.array([unit, unit, 1.0, unit]))
    of_draws, of_scales = curve.weights.sum(axis=1), curve.weights.sum(axis=0)
    means = np.append(of_draws @ logs, of_scales @ np.log(curve.scales))
    squares = np.append(of_draws @ logs**2, of_scales @ np.log(curve.scales) ** 2)
    return means, np.maximum(squares - means**2, 0.0)


def learnt_document() -> dict[str, Any]:
    """Return the priors of all sources and without each, as ``data/calibration/latency.json`` has them."""
    document: dict[str, Any] = {"all": {}, "without": {source: {} for source in SOURCES}}
    kinds: tuple[Literal["body", "tail"], ...] = ("body", "tail")
    for kind in kinds:
        latencies = published_latencies(kind)
        document["all"][kind] = _plain(learnt_prior(latencies, kind))
        for source in SOURCES:
            others = [latency for latency in latencies if latency.source != source]
            document["without"][source][kind] = _plain(learnt_prior(others, kind))
    return document


def _plain(prior: LatencyPrior) -> dict[str, Any]:
    names = (*_NAMES, "scale")
    return {**{name: [round(number, 4) for number in getattr(prior, name)] for name in names}, "noise": prior.noise}
