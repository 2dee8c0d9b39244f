"""Rank the factors of an experiment by how much they matter.

Two-level and other factorial designs are ranked by the shares of the variation. A sample of ranges (Latin hypercube,
Sobol sequence) is ranked by Sobol's indices where a polynomial predicts left-out runs well enough, else by how far the
mean response moves over bins of each factor; standardised regression coefficients, of values and of ranks, say the
direction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment.analysis.observations import Observations
from routecast.experiment.analysis.outcome.screening import Screened, Screening
from routecast.experiment.analysis.screening.chaos import fit_chaos, indices, resampled_indices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["screen_factorial", "screen_sample"]

_RESAMPLES = 200
_GOOD_ENOUGH = 0.7
"""Q2 from which the indices of the polynomial are trusted; below it 30 % of the variance would be guesswork. Ours."""
_RUNS_PER_FACTOR = 3
_MANY_RUNS = 2000


def screen_factorial(
    seen: Observations, shares: dict[tuple[str, ...], float], *, has_aliases: bool
) -> Screening:
    """Rank by the shares of the variation: alone, and with all interactions that a factor is in.

    Parameters
    ----------
    seen : Observations
    shares : dict of tuple of str to float
        Share of each effect by its letters.
    has_aliases : bool
        Whether effects stand for others as well.
    """
    found = []
    for factor in seen.factors:
        alone = sum(share for letters, share in shares.items() if letters == (factor.letter,))
        total = sum(share for letters, share in shares.items() if factor.letter in letters)
        found.append((total, alone, factor))
    found.sort(key=lambda entry: -entry[0])
    return Screening(
        factors=tuple(
            Screened(
                letter=factor.letter,
                name=factor.name,
                rank=rank,
                importance=total,
                first_order_ratio=alone,
                total_ratio=total,
            )
            for rank, (total, alone, factor) in enumerate(found, start=1)
        ),
        method="shares of the variation among the runs of the design",
        notes=("each effect stands for its aliases as well: the ranks hold if those are small",)
        if has_aliases
        else (),
    )


def screen_sample(seen: Observations, *, confidence: float, seed: int) -> Screening | None:
    """Rank the factors of a sample; None where nothing varies or there are too few runs."""
    from scipy.stats import rankdata

    from routecast.experiment.analysis.linear_model.fit import negligible_ss

    coded, y = seen.design[seen.rows], seen.y
    moving = np.ptp(coded, axis=0) > 0 if len(y) else np.zeros(coded.shape[1], dtype=bool)
    if (
        len(y) < _RUNS_PER_FACTOR * (coded.shape[1] + 1)
        or not moving.any()
        or float(np.sum((y - y.mean()) ** 2)) <= negligible_ss(y)
    ):
        return None
    notes = [
        f"{factor.letter} ({factor.name}) has one level in all runs that answered"
        for factor, moves in zip(seen.factors, moving, strict=True)
        if not moves
    ]
    x = coded[:, moving]
    factors = [factor for factor, moves in zip(seen.factors, moving, strict=True) if moves]
    ranked_x, ranked_y = np.apply_along_axis(rankdata, 0, x), rankdata(y)
    src, srrc = _standardised(x, y), _standardised(ranked_x, ranked_y)
    srrc_low, srrc_high = _interval(_resampled(ranked_x, ranked_y, seed), confidence)
    chaos = fit_chaos(x, y, [factor.is_quantity for factor in factors])
    total: Floats | None = None
    if chaos is not None and chaos.quality_ratio >= _GOOD_ENOUGH:
        first, total = indices(chaos)
        again_first, again_total = resampled_indices(chaos, _RESAMPLES, seed)
        first_low, first_high = _interval(again_first, confidence)
        total_low, total_high = _interval(again_total, confidence)
        method = (
            f"Sobol indices by a polynomial of degree {chaos.degree} ({len(chaos.coefficients)} terms) that predicts "
            f"{chaos.quality_ratio:.1%} of the variance of left-out runs"
        )
        importance = total
    else:
        bins = _bins(len(y))
        first = np.array([_moved(x[:, column], y, bins) for column in range(x.shape[1])])
        random = np.random.default_rng(seed)
        again = []
        for _ in range(_RESAMPLES):
            drawn = random.integers(len(y), size=len(y))
            again.append([_moved(x[drawn, column], y[drawn], bins) for column in range(x.shape[1])])
        low, high = _interval(np.array(again), confidence)
        first_low, first_high = np.minimum(low, first), np.maximum(high, first)
        total_low = total_high = first
        method = f"first-order Sobol indices from the mean response over {bins} bins of each factor"
        why = "too few runs" if chaos is None else f"Q2 = {chaos.quality_ratio:.2f}"
        notes.append(f"no polynomial predicts left-out runs well enough ({why}): interactions stay unknown")
        importance = first
    order = np.argsort(-importance, kind="stable")
    screened = [
        Screened(
            letter=factors[column].letter,
            name=factors[column].name,
            rank=rank,
            importance=float(importance[column]),
            src=float(src[column]),
            srrc=float(srrc[column]),
            srrc_low=float(srrc_low[column]),
            srrc_high=float(srrc_high[column]),
            first_order_ratio=float(first[column]),
            first_order_low=float(first_low[column]),
            first_order_high=float(first_high[column]),
            total_ratio=None if total is None else float(total[column]),
            total_low=None if total is None else float(total_low[column]),
            total_high=None if total is None else float(total_high[column]),
        )
        for rank, column in enumerate(order, start=1)
    ]
    return Screening(
        factors=tuple(screened),
        method=method,
        quality_ratio=None if chaos is None else chaos.quality_ratio,
        notes=tuple(notes),
    )


def _standardised(x: Floats, y: Floats) -> Floats:
    """Return the coefficients of the regression of standardised y on standardised x."""
    moved = x - x.mean(axis=0)
    scale = np.sqrt(np.sum(moved**2, axis=0))
    scale[scale == 0] = 1.0
    centred = y - y.mean()
    size = float(np.linalg.norm(centred))
    scaled = moved / scale
    found = np.linalg.lstsq(scaled.T @ scaled, scaled.T @ (centred / (size or 1.0)), rcond=None)[0]
    return np.asarray(found, dtype=float)


def _resampled(x: Floats, y: Floats, seed: int) -> Floats:
    random = np.random.default_rng(seed)
    resamples = _RESAMPLES if len(y) <= _MANY_RUNS else _RESAMPLES // 2
    again = []
    for _ in range(resamples):
        drawn = random.integers(len(y), size=len(y))
        again.append(_standardised(x[drawn], y[drawn]))
    return np.array(again)


def _interval(again: Floats, confidence: float) -> tuple[Floats, Floats]:
    low, high = np.quantile(again, [0.5 - confidence / 2, 0.5 + confidence / 2], axis=0)
    return low, high


def _bins(count: int) -> int:
    return int(min(max(count**0.5 / 2, 3), 32))


def _moved(x: Floats, y: Floats, bins: int) -> float:
    """Return the share of the variance that the means over bins of x explain, less what chance explains."""
    values = np.unique(x)
    if len(values) <= bins:
        index = np.searchsorted(values, x)
    else:
        index = np.minimum(np.argsort(np.argsort(x, kind="stable"), kind="stable") * bins // len(x), bins - 1)
    counts = np.bincount(index).astype(float)
    means = np.bincount(index, weights=y) / np.maximum(counts, 1.0)
    groups = int(np.count_nonzero(counts))
    sst = float(np.sum((y - y.mean()) ** 2))
    between = float(np.sum(counts * (means - y.mean()) ** 2))
    if sst == 0 or len(y) <= groups:
        return 0.0
    chance = (groups - 1) * (sst - between) / (len(y) - groups)
    return max(between - chance, 0.0) / sst
