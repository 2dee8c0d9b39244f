"""Values of router documents set so that stated facts are met, all at once.

The misses of the facts, each over its stated value, are made small by least squares over the logarithms of the values
(SciPy's trust region within the bounds); every trial runs only the experiments that the facts are read from. There may
be more facts than values: then they are met as well as they can be. A whole number is tried as the one next to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from routecast.errors import FitProblem
from routecast.study.experiments.document import Calibrates, ExperimentsStudy, Fact

__all__ = ["Calibrated", "Setting", "calibrate", "calibrating", "written"]

Setting = dict[str, dict[str, object]]
"""Calibrated values by path, for each router document."""

STEP = 0.02
"""Step of the differences, as the logarithm of a value: large enough to be seen through whole frames."""

Ask = Callable[[Sequence[Fact], Setting], list[float]]
"""Returns the values of facts with calibrated values in the router documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A value that was calibrated: paths, value, the fact that names it, and all the facts that it was fitted to."""

    paths: tuple[str, ...]
    value: float
    unit: str
    fact: str
    fitted_to: tuple[str, ...]


def calibrating(study: ExperimentsStudy) -> tuple[list[tuple[Fact, Calibrates]], list[tuple[Fact, float]]]:
    """Return the facts that set values with what they set, and all the facts that are fitted with their values."""
    sets = [(fact, fact.calibrates) for fact in study.fact if fact.calibrates is not None]
    fitted = [
        (fact, fact.value)
        for fact in study.fact
        if (fact.calibrates is not None or fact.fitted) and fact.value is not None
    ]
    return sets, fitted


def written(how: Calibrates, value: float) -> object:
    """Return a value as the router file wants it."""
    number: int | float = round(value) if how.whole else value
    return f"{number!r} {how.unit}" if how.unit else number


def calibrate(study: ExperimentsStudy, ask: Ask, tell: Callable[[str], None]) -> tuple[tuple[Calibrated, ...], Setting]:
    """Set the values that stated facts calibrate.

    Returns
    -------
    tuple of Calibrated, and the values by router document and path

    Raises
    ------
    routecast.errors.FitProblem
        No values within their bounds meet the facts.
    """
    sets, fitted = calibrating(study)
    setting: Setting = {name: {} for name in study.router}
    if not sets:
        return (), setting
    import numpy as np
    from numpy.typing import NDArray
    from scipy.optimize import least_squares

    facts = [fact for fact, _ in fitted]
    low = np.log([how.between[0] for _, how in sets])
    high = np.log([how.between[1] for _, how in sets])
    trials = 0

    def found_at(logs: Sequence[float]) -> list[float]:
        for (_, how), log in zip(sets, logs, strict=True):
            for name in how.routers or tuple(study.router):
                setting[name] |= dict.fromkeys(how.set, written(how, math.exp(log)))
        return ask(facts, setting)

    def misses(logs: NDArray[np.float64]) -> list[float]:
        nonlocal trials
        trials += 1
        tell(f"trial {trials} of the calibrated values")
        found = found_at(logs.tolist())
        if not all(math.isfinite(value) for value in found):
            what = "the calibrating experiments have runs without an answer: see their problems"
            raise FitProblem(study.name, what)
        return [value / stated - 1.0 for value, (_, stated) in zip(found, fitted, strict=True)]

    answer = least_squares(
        misses,
        (low + high) / 2.0,
        bounds=(low, high),
        diff_step=np.full(len(sets), STEP),
        xtol=1e-4,
        ftol=1e-6,
        gtol=1e-8,
        max_nfev=max(study.most_calibrations // (len(sets) + 1), 2),
    )
    found_at(answer.x.tolist())
    return tuple(
        Calibrated(
            paths=how.set,
            value=float(round(math.exp(log)) if how.whole else math.exp(log)),
            unit=how.unit,
            fact=fact.name,
            fitted_to=tuple(one.name for one in facts if one.fitted) or (fact.name,),
        )
        for (fact, how), log in zip(sets, answer.x, strict=True)
    ), setting
