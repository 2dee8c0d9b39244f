"""The analysis of designed experiments: effects, their shares and intervals, checks, screening, response surfaces.

Names are loaded when they are first used, because the analysis needs NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routecast.experiment.analysis.contrasts import (
        contrast_of_effects,
        contrast_of_levels,
        interval_of_further_runs,
    )
    from routecast.experiment.analysis.one_response import analyse, screen
    from routecast.experiment.analysis.outcome import Analysis, Effect

__all__ = [
    "Analysis",
    "Effect",
    "analyse",
    "contrast_of_effects",
    "contrast_of_levels",
    "interval_of_further_runs",
    "screen",
]

_HOMES = {
    "Analysis": "outcome",
    "Effect": "outcome",
    "analyse": "one_response",
    "contrast_of_effects": "contrasts",
    "contrast_of_levels": "contrasts",
    "interval_of_further_runs": "contrasts",
    "screen": "one_response",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"routecast.experiment.analysis.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
