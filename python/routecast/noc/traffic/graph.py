"""An application as a task graph: who sends how much to whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["Flow", "TaskGraph"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What one task sends to another."""

    source: str
    target: str
    rate_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGraph:
    """Tasks (cores) and the flows between them.

    Parameters
    ----------
    name : str
    tasks : tuple of str
        Their names, each once.
    flows : tuple of Flow
        At most one from a task to another.
    source : tuple of str
        Where the figures are from.
    notes : tuple of str
        What the sources disagree on and what was chosen.
    grid : tuple of tuple of str
        Rows of task names as they stand on the routers, ``""`` for a free tile; empty where no mapping is stated.

    Raises
    ------
    routecast.errors.ModelProblem
        A task or flow named twice, a flow of an unknown task or to itself, a rate that is none.
    """

    name: str
    tasks: tuple[str, ...]
    flows: tuple[Flow, ...]
    source: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    grid: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        problems = [
            Problem(f"tasks[{i}]", f'"{task}" is named twice: every task has a name of its own')
            for i, task in enumerate(self.tasks)
            if task in self.tasks[:i]
        ]
        seen: set[tuple[str, str]] = set()
        for i, flow in enumerate(self.flows):
            place = f"flow[{i}]"
            problems += [
                Problem(place, f'task "{task}" is not known: {did_you_mean(task, self.tasks)}')
                for task in (flow.source, flow.target)
                if task not in self.tasks
            ]
            if flow.source == flow.target:
                problems.append(
                    Problem(place, f'"{flow.source}" sends to itself: a flow leads to another task')
                )
            if (flow.source, flow.target) in seen:
                problems.append(
                    Problem(place, f'"{flow.source}" to "{flow.target}" stands twice: add the rates')
                )
            if not 0 < flow.rate_bytes_per_s < float("inf"):
                problems.append(
                    Problem(
                        place,
                        f"rate {flow.rate_bytes_per_s:g} B/s: a rate is more than 0; leave idle flows out",
                    )
                )
            seen.add((flow.source, flow.target))
        if not self.flows:
            problems.append(Problem("flow", "there is none: at least one task sends to another"))
        if problems:
            raise ModelProblem(f'task graph "{self.name}"', problems)

    @property
    def rates_bytes_per_s(self) -> NDArray[np.float64]:
        """Rates between tasks, shape (tasks, tasks), in bytes per second."""
        number = {task: i for i, task in enumerate(self.tasks)}
        rates = np.zeros((len(self.tasks), len(self.tasks)))
        for flow in self.flows:
            rates[number[flow.source], number[flow.target]] = flow.rate_bytes_per_s
        return rates
