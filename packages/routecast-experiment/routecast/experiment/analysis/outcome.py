"""The analysis of a designed experiment as values.

All numbers are in the unit of the analysed response, which is that of the response or of its logarithm or reciprocal.
Shares are 0..1. A value that does not exist is None, such as an interval without an estimate of the noise, or a share
of a variation of zero.
"""

from __future__ import annotations

from math import prod
from typing import Literal

from routecast.evaluate.plain import plain
from routecast.quantity.schema import field, value

__all__ = [
    "Analysis",
    "AnovaRow",
    "AssumptionCheck",
    "Cell",
    "Effect",
    "FactorImportance",
    "LackOfFit",
    "Lenth",
    "LevelEffect",
    "MarkedRun",
    "Mean",
    "Means",
    "Residuals",
    "Screening",
    "StationaryPoint",
    "Surface",
    "SurfaceTerm",
]


@value
class AssumptionCheck:
    """One assumption of the analysis, tested on the residuals."""

    name: str = field('``"normal errors"``, ``"constant spread"``, ``"independent errors"``')
    method: str = field('``"Shapiro-Wilk"``, ``"Breusch-Pagan"``, ``"Levene"``, ``"Durbin-Watson"``')
    statistic: float | None = field("Test statistic; None if there are too few residuals")
    p_value: float | None
    is_doubtful: bool | None = field("Whether the residuals contradict the assumption at the level of confidence")
    verdict: str = field("Verdict in words, with a remedy")


@value
class Residuals:
    """The residuals of the model, an entry for each run that answered, in run order."""

    runs: tuple[int, ...] = field("Positions in ``Results.runs``")
    observed: tuple[float, ...]
    predicted: tuple[float, ...]
    residuals: tuple[float, ...]
    normal_scores: tuple[float, ...] = field("Normal scores of the residuals: Blom's quantiles (i - 3/8)/(n + 1/4)")
    checks: tuple[AssumptionCheck, ...] = field(
        "Checks; empty if the evaluator has no noise, so that residuals are not errors"
    )


@value
class LevelEffect:
    """The distance of a level from the mean, for a factor with more than two levels: Jain's alpha_j (sec. 20.2)."""

    label: str = field('Label of the level, or of the levels of an interaction: ``"78 B, 4 threads"``')
    value: float
    low: float | None = field("Lower end of its confidence interval", default=None)
    high: float | None = field("Upper end of its confidence interval", default=None)


@value
class Effect:
    """The effect of a factor, of an interaction, or of curvature."""

    name: str = field('``"A"``, ``"AB"``, ``"A^2"``, ``"curvature"``')
    label: str = field('Label in the factors\' names: ``"packet size x queue manager"``')
    letters: tuple[str, ...] = field("Letters of its factors")
    value: float | None = field(
        "q_A: change of the response from coded level 0 to +1, half of the change from low to high; None for a factor "
        "with more than two levels, whose effects are in ``levels``"
    )
    df: int = field("Degrees of freedom")
    ss: float = field("Sum of squares: the variation that it explains, beyond all others if not orthogonal")
    share_ratio: float | None = field("``ss`` over SST, Jain's percentage of variation explained")
    standard_error: float | None = None
    low: float | None = field("Lower end of the confidence interval of ``value``", default=None)
    high: float | None = field("Upper end of the confidence interval of ``value``", default=None)
    p_value: float | None = field("P-value of the test that there is no effect", default=None)
    is_significant: bool | None = field(
        "Whether it exceeds the noise; None without an estimate of the noise", default=None
    )
    verdict: str = field("Verdict on the significance in words", default="")
    aliases: tuple[str, ...] = field(
        'Effects that these runs cannot distinguish from it, with their signs: ``("+CD", "-BCE")``', default=()
    )
    levels: tuple[LevelEffect, ...] = field("Effects of the levels of factors with more than two levels", default=())


@value
class AnovaRow:
    """A row of the table of the analysis of variance (Jain, table 20.4)."""

    component: str = field('``"A"``, …, ``"errors"``, ``"lack of fit"``, ``"pure error"``, ``"total"``')
    df: int
    ss: float
    ms: float | None = field("``ss / df``", default=None)
    f: float | None = field(
        "Mean square over that of the errors, for lack of fit over that of pure error", default=None
    )
    p_value: float | None = field("Probability of a greater ``f`` by chance", default=None)


@value
class Lenth:
    """Lenth's margins: the sizes above which effects stand out although no run is repeated.

    R. V. Lenth, "Quick and easy analysis of unreplicated factorials", Technometrics 31(4), 1989. In units of ``value``.
    """

    pse: float = field("Pseudo standard error: 1.5 times the median of the effects that do not stand out")
    df: float = field("Degrees of freedom, m/3 for m effects")
    margin: float = field("ME: size above which a single effect stands out")
    simultaneous_margin: float = field("SME: size above which an effect stands out among all m effects")


@value
class FactorImportance:
    """The importance of a factor; intervals are bootstrap percentiles."""

    letter: str
    name: str
    rank: int = field("Rank by importance, from 1")
    importance: float = field(
        "Number that decides the rank: ``total_ratio`` if known, else ``first_order_ratio``, else ``|srrc|``"
    )
    src: float | None = field("Standardised regression coefficient of the values, -1..1", default=None)
    srrc: float | None = field(
        "Standardised regression coefficient of the ranks, whose sign is the direction", default=None
    )
    srrc_low: float | None = None
    srrc_high: float | None = None
    first_order_ratio: float | None = field(
        "Sobol's S_i: the share of the variance that this factor explains alone", default=None
    )
    first_order_low: float | None = None
    first_order_high: float | None = None
    total_ratio: float | None = field(
        "Sobol's S_Ti: the share that this factor explains with all its interactions", default=None
    )
    total_low: float | None = None
    total_high: float | None = None


@value
class Screening:
    """The factors of an experiment, ranked by importance."""

    factors: tuple[FactorImportance, ...] = field("Factors, the most important first")
    method: str = field("Method of the shares, in words")
    quality_ratio: float | None = field(
        "Q2: the share of the variance of left-out runs that the fitted polynomial predicts", default=None
    )
    notes: tuple[str, ...] = ()


@value
class SurfaceTerm:
    """A term of the polynomial in coded levels."""

    name: str = field('``"1"``, ``"A"``, ``"AB"``, ``"A^2"``')
    powers: tuple[int, ...] = field("Powers of each factor")
    value: float
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


@value
class LackOfFit:
    """The test whether the surface misses the means of repeated runs by more than their noise."""

    df: int
    pure_df: int
    ss: float
    pure_ss: float
    f: float | None = field("F statistic; None if repeated runs are identical")
    p_value: float | None = field("Probability of a greater ``f`` by chance; None if repeated runs are identical")
    verdict: str


@value
class StationaryPoint:
    """The point where the gradient of the surface is zero, with the canonical analysis there."""

    coded: tuple[float, ...]
    response: float
    kind: Literal["maximum", "minimum", "saddle", "ridge"] = field(
        'Kind of the point; "ridge": the surface hardly curves in at least one direction'
    )
    eigenvalues: tuple[float, ...] = field(
        "Eigenvalues of the matrix of second-order terms, ascending: curvatures of the response along ``axes``"
    )
    axes: tuple[tuple[float, ...], ...] = field("Directions of the eigenvalues, in coded levels")
    is_inside: bool = field("Whether the point lies in the tried region")


@value
class Surface:
    """A response surface: a polynomial of first or second order in the coded levels."""

    order: int
    letters: tuple[str, ...]
    terms: tuple[SurfaceTerm, ...]
    r2_ratio: float | None
    adjusted_r2_ratio: float | None
    predicted_r2_ratio: float | None
    s_e: float | None
    error_df: int
    confidence: float
    inverse: tuple[tuple[float, ...], ...] = field(
        "(X'X)^-1, in the order of the terms, for the intervals of predictions"
    )
    lack_of_fit: LackOfFit | None = None
    stationary: StationaryPoint | None = field("Second order only", default=None)

    def at(self, coded: tuple[float, ...]) -> float:
        """Return the response that the surface predicts at coded levels."""
        return sum(term.value * value for term, value in zip(self.terms, self._row(coded), strict=True))

    def interval(self, coded: tuple[float, ...], *, of_a_new_run: bool = False) -> tuple[float, float] | None:
        """Return the confidence interval of the mean response, or of a new run, at coded levels; None without noise."""
        if self.s_e is None or self.error_df < 1:
            return None
        from scipy.stats import t as student

        row = self._row(coded)
        spread = sum(a * b * self.inverse[i][j] for i, a in enumerate(row) for j, b in enumerate(row)) + (
            1.0 if of_a_new_run else 0.0
        )
        half_width = float(student.ppf(0.5 + self.confidence / 2, self.error_df)) * self.s_e * spread**0.5
        centre = self.at(coded)
        return centre - half_width, centre + half_width

    def _row(self, coded: tuple[float, ...]) -> list[float]:
        return [prod(level**power for level, power in zip(coded, term.powers, strict=True)) for term in self.terms]


@value
class Cell:
    """A combination of levels with the answers of its runs and the model's prediction."""

    row: int = field("Row of ``Design.coded``")
    coded: tuple[float, ...]
    labels: tuple[str, ...] = field("Labels of the levels, one for each factor")
    values: tuple[float, ...] = field("Values of the replications that answered, as analysed")
    mean: float | None = field("Mean of the values; None if no run answered")
    predicted: float | None = field("Prediction of the model")
    low: float | None = field("Lower end of the confidence interval of the predicted mean response", default=None)
    high: float | None = field("Upper end of the confidence interval of the predicted mean response", default=None)


@value
class Mean:
    """The mean response at a level of a factor, or at a pair of levels."""

    coded: tuple[float, ...]
    labels: tuple[str, ...] = field("Label of the level, or labels of the pair")
    value: float
    count: int = field("Number of runs")
    low: float | None = None
    high: float | None = None


@value
class Means:
    """The points of a main-effect plot (one letter) or an interaction plot (two letters)."""

    letters: tuple[str, ...]
    points: tuple[Mean, ...] = field("Means in ascending order of the levels; the last factor changes fastest")


@value
class MarkedRun:
    """A run that the analysis leaves out, or that is not steady, with the reason."""

    run: int = field("Position in ``Results.runs``")
    row: int
    replication: int
    labels: tuple[str, ...] = field("Labels of its levels, one for each factor")
    why: str = field("Reason why it is left out or not steady")


@value
class Analysis:
    """The analysis of one response of an experiment."""

    response: str
    transform: Literal["none", "log", "reciprocal"] = field('Transform of the response; "log" is the natural logarithm')
    confidence: float = field("Level of the intervals and the verdicts, 0..1")
    count: int = field("Number of runs that answered")
    mean: float | None = field("Mean of the responses, q_0")
    mean_low: float | None = None
    mean_high: float | None = None
    effects: tuple[Effect, ...] = field("Effects, the largest share first", default=())
    ssy: float = field("Sum of squares of the responses", default=0.0)
    ss0: float = field("Sum of squares of the mean", default=0.0)
    sst: float = field("Sum of squares of the variation about the mean, SSY - SS0", default=0.0)
    sse: float = field("Sum of squares of the errors", default=0.0)
    is_balanced: bool = field("Whether the effects are orthogonal, so that their shares add up", default=True)
    error_df: int = field("Degrees of freedom of the errors", default=0)
    s_e: float | None = field("Standard deviation of the errors", default=None)
    error_share_ratio: float | None = field("Share of the errors in the variation, SSE over SST", default=None)
    r2_ratio: float | None = field("Share of the variation that the model explains", default=None)
    adjusted_r2_ratio: float | None = field(
        "Share of the variation that the model explains, adjusted for the number of terms", default=None
    )
    predicted_r2_ratio: float | None = field(
        "Share of the variation of left-out runs that the model explains (PRESS)", default=None
    )
    noise: str = field("Source of the estimate of the noise, or the reason why there is none", default="")
    anova: tuple[AnovaRow, ...] = ()
    lenth: Lenth | None = field(
        "Lenth's margins, if the evaluator has noise but no errors are left to estimate it", default=None
    )
    residuals: Residuals | None = None
    cells: tuple[Cell, ...] = ()
    means: tuple[Means, ...] = field("Means at the levels of each factor, then of each pair of factors", default=())
    surface: Surface | None = None
    screening: Screening | None = None
    missing: tuple[MarkedRun, ...] = ()
    unsteady: tuple[MarkedRun, ...] = field("Runs that are analysed although they are not steady", default=())
    not_told_apart: tuple[str, ...] = field("Sentences on the effects that these runs cannot separate", default=())
    advice: tuple[str, ...] = field("Advice on transforms and further runs", default=())
    notes: tuple[str, ...] = field("Remarks on the validity of the numbers", default=())

    def effect(self, name: str) -> Effect:
        """Return the effect of that name.

        Raises KeyError: the analysis has no such effect.
        """
        for effect in self.effects:
            if effect.name == name:
                return effect
        raise KeyError(f'there is no effect "{name}": there are {", ".join(effect.name for effect in self.effects)}')

    def to_json(self) -> object:
        """Return the analysis as dicts and lists."""
        return plain(self)
