"""Learning of the priors of an unmeasured machine from the sources of the accuracy board.

Weights of laws and discrepancies from them are learnt by their marginal likelihood (empirical Bayes)::

    maximise  Σ_series v ln Σ_laws Σ_cells w_law p_cell Z(series | law, cell)  over w and the parameters of p

where a cell is a noise and a pair of scales of the discrepancy (``routecast.calibration.Scales``), Z the evidence of
all points of a series and of their repetitions, and v = min(1, 12/series of the source), so that no source dominates.
Expectation maximisation with a pseudo-observation of each law gives the weights of the laws; weak priors bound the
scales.

The hazards of unseen ceilings (:mod:`routecast.calibration.ceilings`) are learnt from every series and every K that
leaves measured counts beyond it: the rows up to K calibrate, and the hazard maximises the predictive likelihood of the
next count. Two hazards are learnt: of tables that state their links and cards, and of the same tables without that.

``python -m routecast.replications.accuracy.board --learn`` learns all of it from all sources and without each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from routecast.calibration import Scales, evidence_by_scales, fit
from routecast.calibration.ceilings import Hazards, with_ceilings
from routecast.calibration.priors import PRIORS, Priors
from routecast.evaluate.points import Point
from routecast.quantity.whole_file import write_whole
from routecast.replications.accuracy.packs import Pack, read_packs, table_points

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["learn", "learn_hazards", "likelihoods", "next_counts", "write_hazards", "write_priors"]

_HAZARDS = np.concatenate([[0.0], np.geomspace(0.01, 3.0, 40)])
_MIN_HAZARD = 0.02
"""A ceiling in fifty doublings: that no shipped table shows one does not exclude it."""
_MAX_SERIES = 12.0
_MIN_COUNTS = 2
_MAX_CALIBRATING_COUNTS = 4
_DENSITY_SD = 0.02
"""Least spread of a measurement in a predictive density, because draws are few."""
_ROUNDS, _STEPS = 4, 20
_CENTRE = np.array([-3.2, 0.2, -4.3, 0.0, -4.8, 0.0])
"""Weak prior of the parameters of the scales: means, and logarithms of standard deviations, of the smooth scale, the
rough one and the noise."""
_CENTRE_SD = np.array([1.5, 0.4, 1.5, 0.4, 1.5, 0.4])


def write_priors(path: Path = PRIORS) -> None:
    """Learn the priors from all sources, and from all but each, and write them."""
    from routecast.contention import LAWS

    evidence: dict[str, dict[str, Floats]] = {}
    for pack in read_packs():
        if pack.kind == "multicore":
            points, by_series = table_points(pack), evidence.setdefault(pack.file, {})
            for name in dict.fromkeys(point.series for point in points if point.series not in by_series):
                series = [point for point in points if point.series == name]
                by_series[name] = evidence_by_scales(series, list(LAWS.values()), noise_ratio=pack.noise_ratio)

    def learnt(without: str = "") -> dict[str, Any]:
        return _plain(
            learn([list(tables.values()) for file, tables in evidence.items() if file != without], list(LAWS))
        )

    document = {"all": learnt(), "without": {file: learnt(file) for file in evidence}}
    write_whole(path, json.dumps(document, indent=2) + "\n")
    write_hazards(path)


def write_hazards(path: Path = PRIORS) -> None:
    """Learn the hazards of unseen ceilings with the priors of a file, and write them there."""
    document = json.loads(path.read_text(encoding="utf-8"))
    priors = {
        file: Priors(laws=data["laws"], scales=Scales(**data["scales"])) for file, data in document["without"].items()
    }
    curves = likelihoods(read_packs(), priors)
    for file, data in (("", document["all"]), *document["without"].items()):
        data["hazards"] = {name: round(value, 4) for name, value in asdict(learn_hazards(curves, without=file)).items()}
    write_whole(path, json.dumps(document, indent=2) + "\n")


def learn(sources: Sequence[Sequence[Floats]], laws: Sequence[str]) -> Priors:
    """Learn priors from the (laws, noises, cells) evidence of each series of each source."""
    from scipy.optimize import minimize  # heavy

    table = np.array([evidence for series in sources for evidence in series])
    share = np.array([min(1.0, _MAX_SERIES / len(series)) for series in sources for _ in series])
    weights = np.full(len(laws), 1.0 / len(laws))
    centre = _CENTRE

    def cost(parameters: Floats) -> float:
        scores = (table + _cell_weights(parameters) + np.log(weights)[:, None, None]).reshape(len(table), -1)
        likelihood = float(share @ np.logaddexp.reduce(scores, axis=1))
        return 0.5 * float((((parameters - _CENTRE) / _CENTRE_SD) ** 2).sum()) - likelihood

    for _ in range(_ROUNDS):
        centre = minimize(cost, centre, method="Nelder-Mead", options={"maxfev": 4000}).x
        by_law = np.logaddexp.reduce(table + _cell_weights(centre), axis=(2, 3))
        for _ in range(_STEPS):
            scores = by_law + np.log(weights)
            parts = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
            weights = share @ parts + 1.0
            weights = weights / weights.sum()
    return Priors(laws=dict(zip(laws, map(float, weights * len(laws)), strict=True)), scales=_scales(centre))


def _scales(parameters: Floats) -> Scales:
    smooth_mean, smooth_sd, rough_mean, rough_sd, noise_mean, noise_sd = map(float, parameters)
    return Scales(
        smooth_mean=smooth_mean,
        smooth_sd=math.exp(smooth_sd),
        rough_mean=rough_mean,
        rough_sd=math.exp(rough_sd),
        noise_mean=noise_mean,
        noise_sd=math.exp(noise_sd),
    )


def _cell_weights(parameters: Floats) -> Floats:
    """Return the logarithm of the weight of each noise and pair of scales, (noises, cells)."""
    scales = _scales(parameters)
    weights: Floats = scales.noise_log_weights()[:, None] + scales.log_weights()
    return weights


def _plain(priors: Priors) -> dict[str, Any]:
    return {
        part: {key: round(value, 4) for key, value in values.items()}
        for part, values in (("laws", priors.laws), ("scales", asdict(priors.scales)))
    }


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
