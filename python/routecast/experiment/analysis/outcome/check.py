"""Residuals and what they say about the assumptions of an analysis, as values."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Check", "Residuals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One assumption of the analysis, tested on the residuals.

    Parameters
    ----------
    name : str
        ``"normal errors"``, ``"constant spread"``, ``"independent errors"``.
    method : str
        ``"Shapiro-Wilk"``, ``"Breusch-Pagan"``, ``"Levene"``, ``"Durbin-Watson"``.
    statistic : float or None
        None where there are too few residuals to look.
    p_value : float or None
    is_doubtful : bool or None
        Whether the residuals contradict the assumption at the level of confidence.
    verdict : str
        In plain words, with what to do.
    """

    name: str
    method: str
    statistic: float | None
    p_value: float | None
    is_doubtful: bool | None
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """What the model leaves unexplained, one entry for each run that answered, in run order.

    Parameters
    ----------
    runs : tuple of int
        Positions in ``Results.runs``.
    observed, predicted, residuals : tuple of float
    normal_scores : tuple of float
        Where each residual would lie on the normal quantile-quantile plot: Blom's quantiles (i - 3/8)/(n + 1/4).
    checks : tuple of Check
        Empty where the evaluator has no noise: what is left over is then no error.
    """

    runs: tuple[int, ...]
    observed: tuple[float, ...]
    predicted: tuple[float, ...]
    residuals: tuple[float, ...]
    normal_scores: tuple[float, ...]
    checks: tuple[Check, ...]
