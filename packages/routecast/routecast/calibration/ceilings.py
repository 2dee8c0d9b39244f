"""Ceilings that no measured row shows: the chance that something but the cores limits beyond the most measured cores.

Beyond the most measured cores a link, a card, a bus, the memory or the tester may be full, though the measured rates
still grow. Such a ceiling comes with a constant rate per doubling of the cores (a constant hazard over log2 of the
cores; Cox and Oakes 1984, sec. 2.3), and holds the rate that the cores have there::

    P(a ceiling between K and k cores) = 1 - exp(-h·log2(k/K))

    rate  ▲        ╭─ the law
          │     . ┌──────── a ceiling between K and k
          │   .
          └───K────────k──► cores

The hazard h is learnt from the shipped tables: for every series and every K that leaves measured counts beyond it, the
rows up to K calibrate, and h maximises the predictive likelihood of the next count. The laws of contention know knees,
too: h is what the tables show beyond them. Two hazards are learnt: of tables that state their links and cards, and of
the same tables without that. Each source of the board is judged by hazards that are learnt without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibration.packs import Pack, table_points
from routecast.evaluate.points import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from routecast.calibration.priors import Priors

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["Hazards", "learn_hazards", "likelihoods", "next_counts", "with_ceilings"]

_GOLDEN = 0.6180339887498949
_HAZARDS = np.concatenate([[0.0], np.geomspace(0.01, 3.0, 40)])
_MIN_HAZARD = 0.02
"""A ceiling in fifty doublings: that no shipped table shows one does not exclude it."""
_MAX_SERIES = 12.0
_MIN_COUNTS = 2
_MAX_CALIBRATING_COUNTS = 4
_DENSITY_SD = 0.02
"""Least spread of a measurement in a predictive density, because draws are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazards:
    """Ceilings per doubling of the cores, of tables that state their links and of others."""

    stated: float = 0.0
    unstated: float = 0.0

    def of(self, points: Sequence[Point]) -> float:
        """Return the hazard for the points of one series."""
        return self.stated if all(point.link_bps is not None for point in points) else self.unstated


def with_ceilings(at_most: Floats, beyond: Floats, doublings: Floats, hazard: float) -> Floats:
    """Return draws of the logarithm of rates beyond the most measured cores, (S, n), with unseen ceilings.

    ``at_most``, ``beyond``: draws at the most measured cores and at the asked ones, (S, n); ``doublings``: between
    them, (n,). A draw has its ceiling at the same number of cores at every column. Between the two numbers of cores the
    rate is taken to be a power of the cores.
    """
    if hazard <= 0.0:
        return beyond
    uniform = (0.5 + _GOLDEN * np.arange(len(beyond))) % 1.0
    place = -np.log1p(-uniform)[:, None] / hazard
    share = np.minimum(place / np.maximum(doublings, 1e-9), 1.0)
    limited: Floats = at_most + np.maximum(beyond - at_most, 0.0) * share
    return np.where(beyond > at_most, limited, beyond)


def next_counts(points: Sequence[Point]) -> Iterator[tuple[list[Point], list[Point]]]:
    """Yield calibrating rows on up to K cores and the rows of the next number of cores, for every K of a series."""
    counts = sorted({point.working_cores for point in points})
    for index in range(_MIN_COUNTS - 1, len(counts) - 1):
        chosen = counts[max(0, index + 1 - _MAX_CALIBRATING_COUNTS) : index + 1]
        chosen = sorted({counts[0], *chosen[-(_MAX_CALIBRATING_COUNTS - 1) :]})
        calibrating = [point for point in points if point.working_cores in chosen]
        frames = {(point.frame_bytes, point.frame_mix) for point in calibrating}
        after = [point for point in points if point.working_cores == counts[index + 1]]
        after = [point for point in after if (point.frame_bytes, point.frame_mix) in frames]
        if after:
            yield calibrating, after


def likelihoods(packs: Sequence[Pack], priors: Mapping[str, Priors]) -> dict[str, dict[str, Floats]]:
    """Return the predictive likelihood of each source over a grid of hazards; ``priors``: those without each source."""
    tables = {pack.file: pack for pack in packs if pack.kind == "multicore"}
    return {file: _likelihoods(pack, priors[file]) for file, pack in tables.items()}


def learn_hazards(curves: Mapping[str, Mapping[str, Floats]], *, without: str = "") -> Hazards:
    """Return the most likely hazards of :func:`likelihoods`, without one source."""
    hazards = {}
    for kind in ("stated", "unstated"):
        total = np.sum([by_kind[kind] for file, by_kind in curves.items() if file != without], axis=0)
        hazards[kind] = max(float(_HAZARDS[int(np.argmax(total))]), _MIN_HAZARD)
    return Hazards(**hazards)


def _likelihoods(pack: Pack, priors: Priors) -> dict[str, Floats]:
    """Return the logarithm of the predictive likelihood of a source over the hazards, with and without stated links."""
    points = table_points(pack)
    names = list(dict.fromkeys(point.series for point in points))
    share = min(1.0, _MAX_SERIES / len(names))
    curves = {kind: np.zeros(len(_HAZARDS)) for kind in ("stated", "unstated")}
    for name in names:
        series = [point for point in points if point.series == name]
        bare = [replace(point, link_bps=None, nic_cap_pps=None) for point in series]
        for kind, rows in (("stated", series), ("unstated", bare)):
            if kind == "stated" and any(point.link_bps is None for point in rows):
                continue
            if kind == "unstated" and any(point.flows is not None for point in rows):
                continue
            steps = [_log_densities(pack, priors, *step) for step in next_counts(rows)]
            if steps:
                curves[kind] += share * np.mean(steps, axis=0)
    return curves


def _log_densities(pack: Pack, priors: Priors, calibrating: Sequence[Point], after: Sequence[Point]) -> Floats:
    """Return the mean logarithm of the density of the rates after K cores, for each hazard."""
    from routecast.calibration._fit import fit

    fitted = fit(calibrating, noise_ratio=pack.noise_ratio, priors=replace(priors, hazards=Hazards()))
    most = max(point.working_cores for point in calibrating)
    at_most = [replace(point, cores=most, flows=point.flows and min(point.flows, most)) for point in after]
    draws, weights = fitted.log_rate_draws([*at_most, *after])
    before, beyond = draws[:, : len(after)], draws[:, len(after) :]
    doublings = np.array([math.log2(point.working_cores / most) for point in after])
    logs = np.log([point.throughput_pps for point in after])
    sd = max(fitted.noise_ratio, _DENSITY_SD)
    densities = []
    for hazard in _HAZARDS:
        limited = with_ceilings(before, beyond, doublings, float(hazard))
        kernel = np.exp(-0.5 * ((limited - logs) / sd) ** 2) / (sd * math.sqrt(2.0 * math.pi))
        densities.append(float(np.mean(np.log(weights @ kernel + 1e-4))))
    return np.array(densities)
