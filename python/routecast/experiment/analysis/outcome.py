"""What the analysis of a designed experiment says, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from routecast.evaluate.plain import plain

__all__ = [
    "Analysis",
    "AnovaRow",
    "Cell",
    "Check",
    "Effect",
    "LackOfFit",
    "Lenth",
    "LevelEffect",
    "Mean",
    "Means",
    "Missing",
    "Residuals",
    "Screened",
    "Screening",
    "Stationary",
    "Surface",
    "SurfaceTerm",
]


# Residuals and what they say about the assumptions of an analysis, as values.


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


# An effect and how it is told from noise, as values.


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelEffect:
    """How far one level of a factor with many levels lies from the mean: Jain's alpha_j (sec. 20.2).

    Parameters
    ----------
    label : str
        Of the level, or of the levels of an interaction: ``"78 B, 4 threads"``.
    value : float
    low, high : float or None
        Its confidence interval.
    """

    label: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One effect: a factor's own or an interaction's.

    Parameters
    ----------
    name : str
        ``"A"``, ``"AB"``, ``"A^2"``, ``"curvature"``.
    label : str
        In the factors' names: ``"packet size x queue manager"``.
    letters : tuple of str
        The factors in it.
    value : float or None
        q_A: what the response gains when the coded level goes from 0 to +1, half of what it gains from low to high.
        None for a factor with more than two levels, whose effects are in ``levels``.
    df : int
        Degrees of freedom.
    ss : float
        Sum of squares: the variation that it explains (given all others, where they are not orthogonal).
    share_ratio : float or None
        ``ss`` over SST, Jain's percentage of variation explained.
    standard_error : float or None
    low, high : float or None
        Confidence interval of ``value``.
    p_value : float or None
        Of the test that there is no effect.
    is_significant : bool or None
        Whether it is told from noise; None where there is no noise to tell it from.
    verdict : str
        The same in plain words.
    aliases : tuple of str
        Effects that these runs cannot tell from it, with their signs: ``("+CD", "-BCE")``.
    levels : tuple of LevelEffect
        For factors with more than two levels.
    """

    name: str
    label: str
    letters: tuple[str, ...]
    value: float | None
    df: int
    ss: float
    share_ratio: float | None
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    is_significant: bool | None = None
    verdict: str = ""
    aliases: tuple[str, ...] = ()
    levels: tuple[LevelEffect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnovaRow:
    """A row of the table of the analysis of variance (Jain, table 20.4).

    Parameters
    ----------
    component : str
        ``"A"``, …, ``"errors"``, ``"lack of fit"``, ``"pure error"``, ``"total"``.
    df : int
    ss : float
    ms : float or None
        ``ss / df``.
    f, p_value : float or None
        Against the errors (lack of fit: against pure error).
    """

    component: str
    df: int
    ss: float
    ms: float | None = None
    f: float | None = None
    p_value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lenth:
    """How large an effect must be to stand out where no run is repeated.

    R. V. Lenth, "Quick and easy analysis of unreplicated factorials", Technometrics 31(4), 1989. In units of ``value``.

    Parameters
    ----------
    pse : float
        Pseudo standard error: 1.5 times the median of the effects that are not themselves outstanding.
    df : float
        m/3 for m effects.
    margin : float
        ME: an effect beyond it stands out, were it the only one looked at.
    simultaneous_margin : float
        SME: an effect beyond it stands out among all m.
    """

    pse: float
    df: float
    margin: float
    simultaneous_margin: float


# Which factors matter, as values.


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """How much one factor matters; intervals are bootstrap percentiles.

    Parameters
    ----------
    letter, name : str
    rank : int
        1 matters most.
    importance : float
        What the rank goes by: ``total_ratio`` where there is one, else ``first_order_ratio``, else ``|srrc|``.
    src, srrc : float or None
        Standardised regression coefficient of the values, and of their ranks: -1..1, the sign says the direction.
    srrc_low, srrc_high : float or None
    first_order_ratio : float or None
        Sobol's S_i: the share of the variance that this factor explains alone.
    first_order_low, first_order_high : float or None
    total_ratio : float or None
        Sobol's S_Ti: the share that it has a part in, with its interactions.
    total_low, total_high : float or None
    """

    letter: str
    name: str
    rank: int
    importance: float
    src: float | None = None
    srrc: float | None = None
    srrc_low: float | None = None
    srrc_high: float | None = None
    first_order_ratio: float | None = None
    first_order_low: float | None = None
    first_order_high: float | None = None
    total_ratio: float | None = None
    total_low: float | None = None
    total_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """Factors by how much they matter.

    Parameters
    ----------
    factors : tuple of Screened
        The most important first.
    method : str
        How the shares were found, in words.
    quality_ratio : float or None
        Q2: the share of the variance of left-out runs that the model behind the indices predicts.
    notes : tuple of str
    """

    factors: tuple[Screened, ...]
    method: str
    quality_ratio: float | None = None
    notes: tuple[str, ...] = ()


# A response surface, as values.


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceTerm:
    """A term of the polynomial in coded levels.

    Parameters
    ----------
    name : str
        ``"1"``, ``"A"``, ``"AB"``, ``"A^2"``.
    powers : tuple of int
        Of each factor.
    value : float
    standard_error, low, high, p_value : float or None
    """

    name: str
    powers: tuple[int, ...]
    value: float
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LackOfFit:
    """Whether the surface misses the means of repeated runs by more than their noise.

    Parameters
    ----------
    df, pure_df : int
    ss, pure_ss : float
    f, p_value : float or None
        None where the repetitions are identical.
    verdict : str
    """

    df: int
    pure_df: int
    ss: float
    pure_ss: float
    f: float | None
    p_value: float | None
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stationary:
    """Where the surface is flat, and what it is there: the canonical analysis.

    Parameters
    ----------
    coded : tuple of float
    response : float
    kind : {"maximum", "minimum", "saddle", "ridge"}
        "ridge": it hardly bends along at least one direction.
    eigenvalues : tuple of float
        Of the matrix of second-order terms, ascending: how fast the response bends along each axis.
    axes : tuple of tuple of float
        The directions that belong to them, in coded levels.
    is_inside : bool
        Whether it lies in the region that was tried.
    """

    coded: tuple[float, ...]
    response: float
    kind: Literal["maximum", "minimum", "saddle", "ridge"]
    eigenvalues: tuple[float, ...]
    axes: tuple[tuple[float, ...], ...]
    is_inside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A polynomial of first or second order in the coded levels.

    Parameters
    ----------
    order : int
    letters : tuple of str
    terms : tuple of SurfaceTerm
    r2_ratio, adjusted_r2_ratio, predicted_r2_ratio : float or None
    s_e : float or None
    error_df : int
    confidence : float
    inverse : tuple of tuple of float
        (X'X)^-1, in the order of the terms: what intervals of predictions need.
    lack_of_fit : LackOfFit or None
    stationary : Stationary or None
        Second order only.
    """

    order: int
    letters: tuple[str, ...]
    terms: tuple[SurfaceTerm, ...]
    r2_ratio: float | None
    adjusted_r2_ratio: float | None
    predicted_r2_ratio: float | None
    s_e: float | None
    error_df: int
    confidence: float
    inverse: tuple[tuple[float, ...], ...]
    lack_of_fit: LackOfFit | None = None
    stationary: Stationary | None = None

    def at(self, coded: tuple[float, ...]) -> float:
        """Return the response that the surface predicts at coded levels."""
        return sum(term.value * value for term, value in zip(self.terms, self._row(coded), strict=True))

    def interval(self, coded: tuple[float, ...], *, of_a_new_run: bool = False) -> tuple[float, float] | None:
        """Return the confidence interval of the mean response there, or of one more run; None without noise."""
        if self.s_e is None or self.error_df < 1:
            return None
        from scipy.stats import t as student

        row = self._row(coded)
        spread = sum(a * b * self.inverse[i][j] for i, a in enumerate(row) for j, b in enumerate(row)) + (
            1.0 if of_a_new_run else 0.0
        )
        half = float(student.ppf(0.5 + self.confidence / 2, self.error_df)) * self.s_e * spread**0.5
        centre = self.at(coded)
        return centre - half, centre + half

    def _row(self, coded: tuple[float, ...]) -> list[float]:
        row = []
        for term in self.terms:
            value = 1.0
            for level, power in zip(coded, term.powers, strict=True):
                value *= level**power
            row.append(value)
        return row


# What the analysis of a designed experiment says, as values.
#
# Everything is in the units of the analysed response: those of the response itself, or those of its logarithm or
# reciprocal where it was transformed. Shares are 0..1. What does not exist is None: an interval without an estimate of
# the noise, a share of a variation that is zero.


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
