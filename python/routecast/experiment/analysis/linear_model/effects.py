"""The effects of a fitted model, with their shares, intervals and verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routecast.experiment.analysis.outcome import Effect, Lenth, LevelEffect

if TYPE_CHECKING:
    from routecast.experiment.analysis.linear_model.aliases import Estimable
    from routecast.experiment.analysis.linear_model.fit import Fit
    from routecast.experiment.analysis.linear_model.terms import Term

__all__ = ["effects_of"]


def effects_of(
    estimable: Estimable, fit: Fit, margins: Lenth | None, confidence: float
) -> tuple[Effect, ...]:
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
    return tuple(sorted(found, key=lambda effect: -effect.ss))


def _effect(
    term: Term,
    aliases: tuple[str, ...],
    fit: Fit,
    number: int,
    margins: Lenth | None,
    confidence: float,
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
        reach = (
            None if half_width is None else half_width * float(row @ fit.inverse[block, block] @ row) ** 0.5
        )
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
    value: float | None,
    share: float | None,
    p_value: float | None,
    margins: Lenth | None,
    confidence: float,
    fit: Fit,
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
