"""Bayesian model averaging: one weighted set of samples from the posteriors of several laws.

The weight of a law is its prior weight times its evidence (Hoeting, Madigan, Raftery and Volinsky 1999, Statistical
Science 14). A point prediction is the weighted average of the medians of the laws (quantile averaging: Lichtendahl,
Grushka-Cockayne and Winkler 2013, Management Science 59). The median of the mixture would jump from one law to another
where they disagree, its mean would follow the long tails of laws that the points leave open. Intervals are quantiles of
the mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["average_of_medians", "law_weights", "weighted_quantiles"]


def law_weights(log_evidence: Sequence[float], prior_weight: Sequence[float]) -> Floats:
    """Posterior weights of laws, summing up to 1."""
    scores = np.asarray(log_evidence, dtype=float) + np.log(np.asarray(prior_weight, dtype=float))
    weights = np.exp(scores - scores.max())
    normalised: Floats = weights / weights.sum()
    return normalised


def average_of_medians(samples: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """Weighted average over laws of the medians of the columns of their (J, n) samples, as (n,)."""
    average: Floats = np.average([np.median(each, axis=0) for each in samples], axis=0, weights=weights)
    return average


def weighted_quantiles(samples: Floats, weights: Floats, probabilities: Sequence[float]) -> Floats:
    """Quantiles of each column of (J, n) samples with (J,) weights, as (len(probabilities), n).

    Between samples the distribution function is interpolated at the middle of each sample's weight.
    """
    order = np.argsort(samples, axis=0)
    ranked = np.take_along_axis(samples, order, axis=0)
    share = weights[order]
    position = np.cumsum(share, axis=0) - 0.5 * share
    total = weights.sum()
    columns = [
        np.interp(np.asarray(probabilities) * total, position[:, column], ranked[:, column])
        for column in range(samples.shape[1])
    ]
    return np.stack(columns, axis=1) if columns else np.empty((len(probabilities), 0))
