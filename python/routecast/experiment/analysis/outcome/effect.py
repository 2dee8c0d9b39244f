"""An effect and how it is told from noise, as values."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AnovaRow", "Effect", "Lenth", "LevelEffect"]


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
