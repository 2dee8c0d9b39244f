"""Designed experiments with any evaluator: factors, designs, runs on many workers, and the analysis of effects.

::

    file ─► factors, designs ─► runs ─► sweep (executor) ─► answers ─► analysis

Modules are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from routecast.lazy import lazy_names

if TYPE_CHECKING:
    from routecast.experiment.file import parse_experiment as parse_experiment
    from routecast.experiment.file import read_experiment as read_experiment
    from routecast.experiment.model import Answer as Answer
    from routecast.experiment.model import Design as Design
    from routecast.experiment.model import Experiment as Experiment
    from routecast.experiment.model import Factor as Factor
    from routecast.experiment.model import Level as Level
    from routecast.experiment.model import Response as Response
    from routecast.experiment.model import Results as Results
    from routecast.experiment.model import Run as Run
    from routecast.experiment.run import join_experiment as join_experiment
    from routecast.experiment.run import run_experiment as run_experiment

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "file": "parse_experiment read_experiment",
        "model": "Answer Design Experiment Factor Level Response Results Run",
        "run": "join_experiment run_experiment",
    },
)
