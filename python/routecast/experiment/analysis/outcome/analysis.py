"""What the analysis of a designed experiment says, as values.

Everything is in the units of the analysed response: those of the response itself, or those of its logarithm or
reciprocal where it was transformed. Shares are 0..1. What does not exist is None: an interval without an estimate of
the noise, a share of a variation that is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from routecast.evaluate.plain import plain
from routecast.experiment.analysis.outcome.check import Residuals
from routecast.experiment.analysis.outcome.effect import AnovaRow, Effect, Lenth
from routecast.experiment.analysis.outcome.screening import Screening
from routecast.experiment.analysis.outcome.surface import Surface

__all__ = ["Analysis", "Cell", "Mean", "Means", "Missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of levels with what its runs answered.

    Parameters
    ----------
    row : int
        Of ``Design.coded``.
    coded : tuple of float
    labels : tuple of str
        Of the levels, one per factor.
    values : tuple of float
        Of the replications that answered, as analysed.
    mean : float or None
        None where none answered.
    predicted : float or None
        By the model.
    low, high : float or None
        Confidence interval of the predicted mean response.
    """

    row: int
    coded: tuple[float, ...]
    labels: tuple[str, ...]
    values: tuple[float, ...]
    mean: float | None
    predicted: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean response at a level of a factor, or at a pair of levels.

    Parameters
    ----------
    coded : tuple of float
    labels : tuple of str
        One or two.
    value : float
    count : int
        Runs behind it.
    low, high : float or None
    """

    coded: tuple[float, ...]
    labels: tuple[str, ...]
    value: float
    count: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """The points of a main-effect plot (one letter) or an interaction plot (two letters).

    Parameters
    ----------
    letters : tuple of str
    points : tuple of Mean
        In ascending order of the levels, the last factor's fastest.
    """

    letters: tuple[str, ...]
    points: tuple[Mean, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A run that the analysis does without.

    Parameters
    ----------
    run : int
        Position in ``Results.runs``.
    row, replication : int
    labels : tuple of str
        Of its levels, one per factor.
    why : str
    """

    run: int
    row: int
    replication: int
    labels: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Everything a report says about one response of an experiment.

    Parameters
    ----------
    response : str
    transform : {"none", "log", "reciprocal"}
        What was analysed instead of the response; "log" is the natural logarithm.
    confidence : float
        Level of the intervals and the verdicts, 0..1.
    count : int
        Runs that answered.
    mean : float or None
        q_0.
    mean_low, mean_high : float or None
    effects : tuple of Effect
        The largest share first.
    ssy, ss0, sst, sse : float
        Sum of squares of the responses, of the mean, of the variation about it (SSY - SS0), and of the errors.
    is_balanced : bool
        Whether the effects are orthogonal: each is what it would be alone, and the shares add up.
    error_df : int
        Degrees of freedom of the errors.
    s_e : float or None
        Standard deviation of the errors.
    error_share_ratio : float or None
        SSE over SST.
    r2_ratio, adjusted_r2_ratio, predicted_r2_ratio : float or None
        How much of the variation the model explains: as it is, with the number of its terms held against it, and for
        runs that it was not fitted to (PRESS).
    noise : str
        Where the estimate of the noise comes from, or why there is none.
    anova : tuple of AnovaRow
    lenth : Lenth or None
        Where there are no errors to compare with, and the evaluator has noise.
    residuals : Residuals or None
    cells : tuple of Cell
    means : tuple of Means
        Of each factor, then of each pair.
    surface : Surface or None
    screening : Screening or None
    missing : tuple of Missing
    unsteady : tuple of Missing
        Runs that are analysed although they are called not steady.
    not_told_apart : tuple of str
        Effects that these runs cannot separate, a sentence each.
    advice : tuple of str
        What to do next: a transform, more runs.
    notes : tuple of str
        What a reader must know before the numbers.
    """

    response: str
    transform: Literal["none", "log", "reciprocal"]
    confidence: float
    count: int
    mean: float | None
    mean_low: float | None = None
    mean_high: float | None = None
    effects: tuple[Effect, ...] = ()
    ssy: float = 0.0
    ss0: float = 0.0
    sst: float = 0.0
    sse: float = 0.0
    is_balanced: bool = True
    error_df: int = 0
    s_e: float | None = None
    error_share_ratio: float | None = None
    r2_ratio: float | None = None
    adjusted_r2_ratio: float | None = None
    predicted_r2_ratio: float | None = None
    noise: str = ""
    anova: tuple[AnovaRow, ...] = ()
    lenth: Lenth | None = None
    residuals: Residuals | None = None
    cells: tuple[Cell, ...] = ()
    means: tuple[Means, ...] = ()
    surface: Surface | None = None
    screening: Screening | None = None
    missing: tuple[Missing, ...] = ()
    unsteady: tuple[Missing, ...] = ()
    not_told_apart: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def effect(self, name: str) -> Effect:
        """Return the effect of that name.

        Raises
        ------
        KeyError
            The analysis has no such effect.
        """
        for effect in self.effects:
            if effect.name == name:
                return effect
        raise KeyError(f'no effect "{name}": there are {", ".join(one.name for one in self.effects)}')

    def to_json(self) -> object:
        """Return the analysis as dicts and lists."""
        return plain(self)
