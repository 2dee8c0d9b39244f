"""Designed experiments over any evaluator: factors, designs, runs that scale, effects.

::

    file ─► factors, designs ─► runs ─► sweep (executor) ─► answers ─► analysis

What reads files and runs experiments is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from routecast.experiment.model import Answer, Design, Experiment, Factor, Level, Response, Results, Run

if TYPE_CHECKING:
    from routecast.experiment.file.reading import parse_experiment, read_experiment
    from routecast.experiment.run import join_experiment, run_experiment

__all__ = [
    "Answer",
    "Design",
    "Experiment",
    "Factor",
    "Level",
    "Response",
    "Results",
    "Run",
    "join_experiment",
    "parse_experiment",
    "read_experiment",
    "run_experiment",
]

_HOMES = {
    "join_experiment": "run",
    "parse_experiment": "file.reading",
    "read_experiment": "file.reading",
    "run_experiment": "run",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"routecast.experiment.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
