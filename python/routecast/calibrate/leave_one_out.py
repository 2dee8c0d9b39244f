"""How much the board owes to priors that were written with it in view.

The priors of the contention laws are the same for every machine. To see what a machine is worth that had no part in
them, this check leaves out one source of measurements at a time, learns the priors from all the points of the others,
and predicts the packs of the source that was left out. Learnt are the prior weights of the laws and one number that
moves the prior medians of all contentions (σ, α) up or down together, both by the marginal likelihood of the points::

    maximise  Σ_series ln Σ_laws w_law Z_law(series | shift)  over w and shift

The weights follow by expectation maximisation with one series of pseudo-observations shared by the laws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from routecast.calibrate.board import run_board
from routecast.calibrate.fit import law_evidence
from routecast.calibrate.laws import LAWS, Law
from routecast.calibrate.packs import Pack, read_packs, table_points
from routecast.calibrate.points import Point

__all__ = ["learn_priors", "leave_one_out"]

_SHIFTED = frozenset({"sigma", "alpha"})
_SHIFTS = (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5)
_SHIFT_SD = 1.0
_STEPS = 50


def leave_one_out() -> dict[str, Any]:
    """Errors of each pack with the shipped priors and with priors learnt from the other sources."""
    packs = [pack for pack in read_packs() if pack.kind == "multicore"]
    found: dict[str, Any] = {}
    for file in dict.fromkeys(pack.file for pack in packs):
        others = {pack.file: pack for pack in reversed(packs) if pack.file != file}
        catalogue = learn_priors([_series(pack) for pack in others.values()])
        own = [pack for pack in packs if pack.file == file]
        shipped, learnt = run_board(packs=own), run_board(packs=own, catalogue=catalogue)
        found[file] = {
            "learnt_from": sorted(others),
            "law_weights": {name: round(law.prior_weight, 3) for name, law in catalogue.items()},
            "contention_factor": math.exp(catalogue["serial"].shapes[0].mean - LAWS["serial"].shapes[0].mean),
            "packs": {
                ours.name: {"shipped": ours.summary, "learnt": theirs.summary}
                for ours, theirs in zip(shipped.packs, learnt.packs, strict=True)
            },
        }
    return found


def learn_priors(sources: Sequence[tuple[Sequence[Sequence[Point]], float]]) -> dict[str, Law]:
    """Learn a catalogue from sources: series of points, and the noise of the source.

    Parameters
    ----------
    sources : sequence of (series, noise_ratio)
    """
    best: tuple[float, dict[str, Law]] | None = None
    for shift in _SHIFTS:
        catalogue = {name: _shifted(law, shift) for name, law in LAWS.items()}
        evidence = np.array(
            [
                [float(law_evidence(law, points, noise_ratio=noise)[0]) for law in catalogue.values()]
                for series, noise in sources
                for points in series
            ]
        )
        weights = np.full(len(catalogue), 1.0 / len(catalogue))
        for _ in range(_STEPS):
            scores = evidence + np.log(weights)
            total = np.logaddexp.reduce(scores, axis=1)
            share = np.exp(scores - total[:, None]).sum(axis=0) + 1.0 / len(weights)
            weights = share / share.sum()
        score = float(total.sum()) - 0.5 * (shift / _SHIFT_SD) ** 2
        if best is None or score > best[0]:
            best = score, _weighted(catalogue, [float(each) for each in weights * len(weights)])
    assert best is not None
    return best[1]


def _series(pack: Pack) -> tuple[list[list[Point]], float]:
    points = table_points(pack)
    names = dict.fromkeys(point.series for point in points)
    return [[point for point in points if point.series == name] for name in names], pack.noise_ratio


def _shifted(law: Law, shift: float) -> Law:
    shapes = (
        replace(shape, mean=shape.mean + shift) if shape.name in _SHIFTED else shape for shape in law.shapes
    )
    return replace(law, shapes=tuple(shapes))


def _weighted(catalogue: Mapping[str, Law], weights: Sequence[float]) -> dict[str, Law]:
    return {
        name: replace(law, prior_weight=weight)
        for (name, law), weight in zip(catalogue.items(), weights, strict=True)
    }
