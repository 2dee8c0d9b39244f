"""The analysis of designed experiments: effects, their shares and intervals, checks, screening, response surfaces.

Names are loaded on first use, because the analysis needs NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from routecast.lazy import lazy_names

if TYPE_CHECKING:
    from routecast.experiment.analysis.one_response import analyse as analyse
    from routecast.experiment.analysis.one_response import contrast_of_effects as contrast_of_effects
    from routecast.experiment.analysis.one_response import contrast_of_levels as contrast_of_levels
    from routecast.experiment.analysis.one_response import interval_of_further_runs as interval_of_further_runs
    from routecast.experiment.analysis.one_response import screen as screen
    from routecast.experiment.analysis.outcome import Analysis as Analysis
    from routecast.experiment.analysis.outcome import Effect as Effect

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "one_response": "analyse contrast_of_effects contrast_of_levels interval_of_further_runs screen",
        "outcome": "Analysis Effect",
    },
)
