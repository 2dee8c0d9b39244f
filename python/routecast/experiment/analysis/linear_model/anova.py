"""The table of the analysis of variance (Jain, sec. 20.5), with lack of fit where runs were repeated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.experiment.analysis.outcome import AnovaRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from routecast.experiment.analysis.linear_model.fit import Fit
    from routecast.experiment.analysis.outcome import Effect

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["anova_table", "pure_error", "told_from_noise"]


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
