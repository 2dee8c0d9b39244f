"""Priors of an unmeasured machine from other machines: weights of laws, and discrepancies from them.

Both are learnt from the sources of measurements on the accuracy board by their marginal likelihood (empirical Bayes)::

    maximise  Σ_series v ln Σ_laws Σ_cells w_law p_cell Z(series | law, cell)  over w and the parameters of p

where a cell is a noise and a pair of scales of :mod:`routecast.calibration._discrepancy`, Z the evidence of all points
of a series and of their repetitions, and v = min(1, 12/series of the source), so that no source dominates. Expectation
maximisation with a pseudo-observation of each law gives the weights of the laws; weak priors bound the scales. The
board predicts a source with priors learnt without it (``data/packs/priors.json``; ``python -m
routecast.calibration.board --learn`` writes it).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from routecast.calibration._discrepancy import Scales
from routecast.calibration.ceilings import Hazards, learn_hazards, likelihoods
from routecast.calibration.packs import DATA, read_packs, table_points
from routecast.quantity.whole_file import write_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["PRIORS", "Priors", "learn", "read_priors", "sources", "write_hazards", "write_priors"]

PRIORS: Final = DATA / "packs" / "priors.json"

_MAX_SERIES = 12.0
_ROUNDS, _STEPS = 4, 20
_CENTRE = np.array([-3.2, 0.2, -4.3, 0.0, -4.8, 0.0])
"""Weak prior of the parameters of the scales: means, and logarithms of standard deviations, of the smooth scale, the
rough one and the noise."""
_CENTRE_SD = np.array([1.5, 0.4, 1.5, 0.4, 1.5, 0.4])


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors:
    """Prior weight of each law, prior scales of the discrepancy, and hazards of unseen ceilings."""

    laws: Mapping[str, float]
    scales: Scales
    hazards: Hazards = field(default_factory=Hazards)


def sources() -> tuple[str, ...]:
    """Return the tables from which the priors were learnt; each can be left out."""
    return tuple(json.loads(PRIORS.read_text(encoding="utf-8"))["without"])


@lru_cache
def read_priors(without: str = "") -> Priors:
    """Return the priors from all sources, or from all but one, named by its table in ``data/measured``.

    A table without priors of its own gives those of all sources.
    """
    document = json.loads(PRIORS.read_text(encoding="utf-8"))
    data = document["without"].get(without, document["all"])
    return Priors(laws=data["laws"], scales=Scales(**data["scales"]), hazards=Hazards(**data.get("hazards", {})))


def write_priors(path: Path = PRIORS) -> None:
    """Learn the priors from all sources, and from all but each, and write them."""
    from routecast.calibration._fit import evidence_by_scales
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
