"""The effects of a fitted model, with their shares, intervals and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment.analysis.observations import label_of
from routecast.experiment.analysis.outcome import AnovaRow, Effect, Lenth, LevelEffect, Mean, Means

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from routecast.experiment.analysis.linear_model.fit import Fit
    from routecast.experiment.analysis.linear_model.terms import Estimable, Term
    from routecast.experiment.analysis.observations import Observations

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["anova_table", "effects_of", "lenth", "means_of", "pure_error", "told_from_noise"]


# Which effects stand out where no run is repeated: Lenth's pseudo standard error.
#
# R. V. Lenth, "Quick and easy analysis of unreplicated factorials", Technometrics 31(4), 1989, 469-473::
#
#     s_0 = 1.5 median |q|          PSE = 1.5 median of the |q| below 2.5 s_0
#     ME  = t(0.975; m/3) PSE       SME = t((1 + 0.95^(1/m)) / 2; m/3) PSE
#
# Most effects are taken to be nothing but noise: where more than about half are real the margins are too wide.


_FEWEST = 3


def lenth(values: Sequence[float], confidence: float) -> Lenth | None:
    """Return the margins for m effects; None where there are fewer than three, or most of them are zero."""
    import numpy as np
    from scipy.stats import t as student

    if len(values) < _FEWEST:
        return None
    sizes = np.abs(np.asarray(values, dtype=float))
    first = 1.5 * float(np.median(sizes))
    if first <= 1e-12 * float(sizes.max()):
        return None
    pse = 1.5 * float(np.median(sizes[sizes < 2.5 * first]))
    if pse <= 1e-12 * float(sizes.max()):
        return None
    df = len(sizes) / 3
    simultaneous = (1 + confidence ** (1 / len(sizes))) / 2
    return Lenth(
        pse=pse,
        df=df,
        margin=float(student.ppf(0.5 + confidence / 2, df)) * pse,
        simultaneous_margin=float(student.ppf(simultaneous, df)) * pse,
    )


# Mean responses at each level and each pair of levels: what main-effect and interaction plots show.


_MOST_LEVELS = 12
"""In a sample of ranges, a factor with more coded values than this has no levels."""
_MOST_POINTS = 400
"""Pairs with more combinations than this make no readable plot of interactions."""


def means_of(
    seen: Observations, s_e: float | None, error_df: int, confidence: float, *, is_sample: bool
) -> tuple[Means, ...]:
    """Return the means at the levels of each factor, then of each pair of factors.

    Parameters
    ----------
    seen : Observations
    s_e : float or None
        Standard deviation of the errors; without it the means have no intervals.
    error_df : int
    confidence : float
    is_sample : bool
        Whether the design is a sample of ranges.
    """
    half = 0.0
    if s_e is not None:
        from scipy.stats import t as student

        half = float(student.ppf(0.5 + confidence / 2, error_df)) * s_e
    coded = np.round(seen.design[seen.rows], 9)
    levels = [len(np.unique(column)) for column in coded.T]
    shown = [column for column, count in enumerate(levels) if not is_sample or count <= _MOST_LEVELS]
    pairs = [(a, b) for a, b in combinations(shown, 2) if levels[a] * levels[b] <= _MOST_POINTS]
    groups: list[tuple[int, ...]] = [*((column,) for column in shown), *pairs]
    return tuple(_means(seen, coded, group, half if s_e is not None else None) for group in groups)


def _means(seen: Observations, coded: Floats, columns: tuple[int, ...], half: float | None) -> Means:
    levels, index = np.unique(coded[:, list(columns)], axis=0, return_inverse=True)
    index = index.reshape(-1)
    counts = np.bincount(index)
    sums = np.bincount(index, weights=seen.y)
    points = []
    for level, count, total in zip(levels, counts, sums, strict=True):
        value = float(total / count)
        reach = None if half is None else half / float(count) ** 0.5
        points.append(
            Mean(
                coded=tuple(float(one) for one in level),
                labels=tuple(
                    label_of(seen.factors[column], float(one)) for column, one in zip(columns, level, strict=True)
                ),
                value=value,
                count=int(count),
                low=None if reach is None else value - reach,
                high=None if reach is None else value + reach,
            )
        )
    return Means(letters=tuple(seen.factors[column].letter for column in columns), points=tuple(points))


# The table of the analysis of variance (Jain, sec. 20.5), with lack of fit where runs were repeated.


def pure_error(points: Floats, y: Floats) -> tuple[float, int]:
    """Return the sum of squares of repeated runs about their means, and its degrees of freedom.

    Parameters
    ----------
    points : (n, k) array
        Coded levels of each run.
    y : (n,) array
    """
    from routecast.experiment.analysis.linear_model.fit import negligible_ss

    if len(y) == 0:
        return 0.0, 0
    _, index = np.unique(np.round(points, 9), axis=0, return_inverse=True)
    index = index.reshape(-1)
    counts = np.bincount(index)
    means = np.bincount(index, weights=y) / counts
    ss = float(np.sum((y - means[index]) ** 2))
    return (ss if ss > negligible_ss(y) else 0.0), len(y) - len(counts)


def told_from_noise(fit: Fit, points: Floats, y: Floats) -> Fit:
    """Return the fit, called exact where repeated runs all agreed: then nothing that it leaves over is noise.

    A simulation of frames at a constant rate answers the same for every seed. What a polynomial misses of it is no
    noise, and the degrees of freedom of its repeated centre would make it look small.

    Parameters
    ----------
    fit : Fit
    points : (n, k) array
        Coded levels of each run.
    y : (n,) array
    """
    ss, df = pure_error(points, y)
    return replace(fit, is_exact=True) if fit.sse > 0 and df > 0 and ss == 0.0 else fit


def anova_table(effects: Sequence[Effect], fit: Fit, points: Floats, y: Floats) -> tuple[AnovaRow, ...]:
    """Return the rows: each effect, the errors (split into lack of fit and pure error where both exist), the total."""
    from scipy.stats import f as fisher

    rows = []
    s_e = fit.s_e
    for effect in effects:
        if effect.df == 0:  # the runs do not tell it: it has no row
            continue
        ms = effect.ss / effect.df
        rows.append(
            AnovaRow(
                component=effect.name,
                df=effect.df,
                ss=effect.ss,
                ms=ms,
                f=None if s_e is None else ms / s_e**2,
                p_value=effect.p_value,
            )
        )
    if fit.error_df > 0:
        rows.append(AnovaRow(component="errors", df=fit.error_df, ss=fit.sse, ms=fit.sse / fit.error_df))
        pure_ss, pure_df = pure_error(points, y)
        lack_df, lack_ss = fit.error_df - pure_df, max(fit.sse - pure_ss, 0.0)
        if pure_df > 0 and lack_df > 0:
            f = lack_ss / lack_df / (pure_ss / pure_df) if pure_ss > 0 else None
            rows.append(
                AnovaRow(
                    component="lack of fit",
                    df=lack_df,
                    ss=lack_ss,
                    ms=lack_ss / lack_df,
                    f=f,
                    p_value=None if f is None else float(fisher.sf(f, lack_df, pure_df)),
                )
            )
            rows.append(AnovaRow(component="pure error", df=pure_df, ss=pure_ss, ms=pure_ss / pure_df))
    rows.append(AnovaRow(component="total", df=len(y) - 1, ss=fit.sst))
    return tuple(rows)


def effects_of(estimable: Estimable, fit: Fit, margins: Lenth | None, confidence: float) -> tuple[Effect, ...]:
    """Return the effects, the largest share of the variation first.

    Parameters
    ----------
    estimable : Estimable
        The terms of the fit, in its order.
    fit : Fit
    margins : Lenth or None
    confidence : float
    """
    found = [
        _effect(term, estimable.aliases.get(term.name, ()), fit, number, margins, confidence)
        for number, term in enumerate(estimable.terms)
    ]
    # Those that only rounding tells apart keep the order of the terms.
    return tuple(sorted(found, key=lambda effect: -float(f"{effect.ss:.9g}")))


def _effect(
    term: Term, aliases: tuple[str, ...], fit: Fit, number: int, margins: Lenth | None, confidence: float
) -> Effect:
    from scipy.stats import f as fisher
    from scipy.stats import t as student

    block = fit.blocks[number]
    df = block.stop - block.start
    varies = fit.sst > 0
    values = fit.coefficients[block] if varies else 0.0 * fit.coefficients[block]
    ss = fit.ss(number) if varies else 0.0
    share = ss / fit.sst if varies else None
    value = float(values[0]) if df == 1 and not term.levels and not term.is_partial else None
    s_e = fit.s_e
    half_width = float(student.ppf(0.5 + confidence / 2, fit.error_df)) * s_e if s_e is not None else None
    p_value = error = low = high = None
    if s_e is not None and half_width is not None and df > 0:
        p_value = float(fisher.sf(ss / df / s_e**2, df, fit.error_df))
        if value is not None:
            root = float(fit.inverse[block, block][0, 0]) ** 0.5
            error, low, high = s_e * root, value - half_width * root, value + half_width * root
    is_significant, verdict = _verdict(value, share, p_value, margins, confidence, fit)
    levels = []
    for label, row in term.levels:
        at = float(row @ values)
        reach = None if half_width is None else half_width * float(row @ fit.inverse[block, block] @ row) ** 0.5
        levels.append(
            LevelEffect(
                label=label,
                value=at,
                low=None if reach is None else at - reach,
                high=None if reach is None else at + reach,
            )
        )
    return Effect(
        name=term.name,
        label=term.label,
        letters=term.letters,
        value=value,
        df=df,
        ss=ss,
        share_ratio=share,
        standard_error=error,
        low=low,
        high=high,
        p_value=p_value,
        is_significant=is_significant,
        verdict=verdict,
        aliases=aliases,
        levels=tuple(levels),
    )


def _verdict(
    value: float | None, share: float | None, p_value: float | None, margins: Lenth | None, confidence: float, fit: Fit
) -> tuple[bool | None, str]:
    if share is None:
        return None, "nothing varies"
    if fit.is_exact:
        if fit.sse > 0:
            return None, "no noise to tell it from: the best fit of a model that leaves something over"
        return None, "exact: the evaluator has no noise"
    if p_value is not None:
        if p_value < 1 - confidence:
            return True, f"told from the noise (p {_p(p_value)})"
        return False, f"not told from the noise (p {_p(p_value)})"
    if fit.error_df > 0:
        return None, "exact: repeated runs answered the same"
    if margins is None or value is None:
        return None, "nothing to tell it from the noise by: no run is repeated"
    if abs(value) > margins.simultaneous_margin:
        return True, "stands out among all effects"
    if abs(value) > margins.margin:
        return True, "stands out, though among so many effects one may do so by chance"
    return False, "does not stand out from the rest"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.2g}"
