"""What ``routecast function`` is asked to run for real, and the evaluator and load that do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from routecast.function.model import NetworkFunction
    from routecast.hardware.model import Hardware
    from routecast.load.frames import FrameMix
    from routecast.load.offered import OfferedLoad
    from routecast.load.popularity import Popularity
    from routecast.testbed.in_memory import InMemory

__all__ = ["Asked", "evaluator_of", "load_of"]

_ANY_RATE_PPS = 1e6
"""A saturated run has no rate; an offered load must have one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asks to be run.

    Parameters
    ----------
    function : NetworkFunction
    hardware : Hardware
        What the estimate is for.
    directions : tuple of str
        Names of its directions, each run by itself.
    frames : tuple of FrameMix
        Each run by itself.
    popularity : Popularity
    tables : mapping of str to int
        Entries by table; the others keep the function's own.
    cores : int
    duration_s : float
        Of each run.
    rate_pps : float or None
        Offered rate; None: as fast as it goes.
    seed : int
    refine : Path or None
        The hardware's file, to be corrected by what is measured; None: left alone.
    """

    function: NetworkFunction
    hardware: Hardware
    directions: tuple[str, ...]
    frames: tuple[FrameMix, ...]
    popularity: Popularity
    tables: Mapping[str, int] = field(default_factory=dict)
    cores: int = 1
    duration_s: float = 1.0
    rate_pps: float | None = None
    seed: int = 1
    refine: Path | None = None


def evaluator_of(asked: Asked, direction: str, progress: Callable[[float], object] | None = None) -> InMemory:
    """Return what runs a direction of the function.

    Raises
    ------
    routecast.errors.ModelProblem
        The function does not run for real.
    routecast.errors.EnvironmentProblem
        There are not the cores.
    """
    import os

    from routecast.errors import EnvironmentProblem, ModelProblem, Problem
    from routecast.function.catalogue import function_names, read_function
    from routecast.testbed.in_memory import InMemory

    function = asked.function
    if not function.runs_as:
        real = ", ".join(name for name in function_names() if read_function(name).runs_as)
        what = f"is an estimate only; those that run for real are {real}"
        raise ModelProblem(f"function {function.name!r}", [Problem("runs_as", what)])
    processors = sorted(os.sched_getaffinity(0))
    if asked.cores > len(processors):
        there = f"this process may use {len(processors)}"
        raise EnvironmentProblem(f"{asked.cores} cores are asked for, {there}: ask for fewer with --cores")
    return InMemory(
        function=function.runs_as,
        direction=direction,
        tables={table.name: asked.tables.get(table.name, table.entries) for table in function.tables},
        popularity=asked.popularity,
        cores=tuple(processors[: asked.cores]),
        saturate=asked.rate_pps is None,
        seed=asked.seed,
        progress=progress,
    )


def load_of(asked: Asked, direction: str, frames: FrameMix) -> OfferedLoad:
    """Return what is offered; frames that are too short for the direction's headers are as long as they must be."""
    from dataclasses import replace

    from routecast.load.offered import OfferedLoad

    least = next(one.smallest_frame_bytes for one in asked.function.directions if one.name == direction)
    frames = replace(frames, sequence_bytes=tuple(max(size, least) for size in frames.sequence_bytes))
    return OfferedLoad(rate_pps=asked.rate_pps or _ANY_RATE_PPS, frames=frames)
