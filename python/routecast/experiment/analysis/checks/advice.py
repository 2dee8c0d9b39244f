"""What to do next: a transform of the response, more runs, runs in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from routecast.experiment.analysis.observations import Observations
    from routecast.experiment.analysis.outcome import Effect

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["box_cox", "run_advice", "transform_advice"]

_LARGE_RATIO = 10.0
"""Jain calls y_max/y_min large without a number (sec. 17.6, box 21.1); an order of magnitude is our reading."""

_FEWEST_ERRORS = 5
"""Fewer degrees of freedom let some power fit by chance."""
_TOO_LARGE_RATIO = 1e12
"""Beyond this no power but the logarithm is worth a look, and squares of the responses lose their digits."""

_NAMED = {-1.0: "the reciprocal", -0.5: "the reciprocal of the root", 0.0: "the logarithm", 0.5: "the root"}
_LEADING = 3
_SHORT_ALIAS = len("+AB")
"""Interactions of two factors are the aliases to worry about; of three and more they are rare (Jain, sec. 19.5)."""
_WORTH_TELLING = 0.1
_MOST_NAMED = 4
_GRID = np.linspace(-2.0, 2.0, 81)


def transform_advice(
    y: Floats, columns: Sequence[Floats], transform: str, error_df: int, confidence: float
) -> list[str]:
    """Say whether the response should be transformed.

    Parameters
    ----------
    y : (n,) array
        As analysed.
    columns : sequence of (n, df) arrays
        Of the model.
    transform : str
        What was done already.
    error_df : int
    confidence : float
    """
    if transform != "none" or len(y) == 0 or float(np.min(y)) <= 0:
        return []
    found = []
    ratio = float(np.max(y)) / float(np.min(y))
    if ratio >= _LARGE_RATIO:
        found.append(
            f"the largest response is {ratio:.3g} times the smallest: effects that multiply look like interactions "
            'here; analyse the logarithm as well (transform = "log")'
        )
    if error_df >= _FEWEST_ERRORS and ratio < _TOO_LARGE_RATIO:
        best, low, high = box_cox(y, columns, confidence)
        if not low <= 1.0 <= high:
            power = min(_NAMED, key=lambda named: (not low <= named <= high, abs(named - best)))
            if low <= power <= high:
                found.append(
                    f"by the method of Box and Cox the model fits {_NAMED[power]} of the response better than the "
                    f"response (power {best:.2g}, {confidence:.0%} interval {low:.2g} to {high:.2g})"
                )
    return found


def run_advice(seen: Observations, effects: Sequence[Effect], error_df: int, sst: float) -> list[str]:
    """Say which further runs would tell more.

    Parameters
    ----------
    seen : Observations
    effects : sequence of Effect
        The largest first.
    error_df : int
    sst : float
    """
    found = []
    if sst > 0 and error_df == 0 and not seen.is_exact and not seen.is_replicated:
        found.append(
            "run every combination at least twice (replications = 2): only then are there intervals that say what is "
            "noise"
        )
    for effect in effects[:_LEADING]:
        near = [alias for alias in effect.aliases if len(alias) <= _SHORT_ALIAS]
        if near and (effect.share_ratio or 0.0) >= _WORTH_TELLING:
            named = ", ".join(alias[1:] for alias in near[:_MOST_NAMED])
            more = ", …" if len(near) > _MOST_NAMED else ""
            mend = (
                "give what failed a level that answers"
                if seen.missing
                else "add the runs of another part of the full design to tell them apart"
            )
            found.append(f"{effect.name} explains much but may in truth be {named}{more}: {mend}")
    return found


def box_cox(y: Floats, columns: Sequence[Floats], confidence: float) -> tuple[float, float, float]:
    """Return the power of y that the model fits best, with its confidence interval, between -2 and 2.

    G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964: the power that maximises the
    profile likelihood -n/2 ln SSE of ``(y^p - 1) / (p g^(p-1))``, g being the geometric mean; the interval holds all
    powers whose likelihood is within half the quantile of chi-squared (1 df) of the best.
    """
    from scipy.stats import chi2

    model = np.hstack([np.ones((len(y), 1)), *columns])
    q, _ = np.linalg.qr(model)
    logs = np.log(y)
    geometric = float(logs.mean())
    scaled = np.exp(logs - geometric)
    likelihood = np.empty(len(_GRID))
    for position, power in enumerate(_GRID):
        moved = np.log(scaled) if abs(power) < 1e-9 else (scaled**power - 1) / power
        rest = moved - q @ (q.T @ moved)
        likelihood[position] = -0.5 * len(y) * np.log(max(float(rest @ rest), 1e-300))
    best = int(np.argmax(likelihood))
    inside = _GRID[likelihood >= likelihood[best] - 0.5 * float(chi2.ppf(confidence, 1))]
    return float(_GRID[best]), float(inside.min()), float(inside.max())
