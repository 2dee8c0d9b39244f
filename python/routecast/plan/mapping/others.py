"""Mappings that need no program: everything on every engine, blocks dealt out in turn."""

from __future__ import annotations

from dataclasses import replace

from routecast.plan.mapping.model import Mapping, MappingProblem
from routecast.router.network_processor.model import Stage

__all__ = ["all_in_one", "round_robin"]


def all_in_one(problem: MappingProblem) -> Mapping:
    """Return every block on every engine, run to completion; states stay where they are."""
    stage = Stage(
        blocks=tuple(block.name for block in problem.blocks),
        engines=tuple(range(problem.processor.engines.count)),
        link=problem.ring,
    )
    return Mapping(name="all in one", problem=problem, stages=(stage,), states=problem.states)


def round_robin(problem: MappingProblem) -> Mapping:
    """Return blocks and engines dealt to each other in turn, a stage for each block; states stay where they are.

    Blocks that meet on an engine have equal parts of its threads.
    """
    count, hardware = problem.processor.engines.count, problem.processor.engines.threads
    blocks = len(problem.blocks)
    ring = replace(problem.ring, memory=next((name for name in problem.rings if name), problem.ring.memory))
    stages = []
    for number, block in enumerate(problem.blocks):
        if blocks <= count:
            engines, threads = tuple(range(number, count, blocks)), 0
        else:
            engine = number % count
            sharing = len(range(engine, blocks, count))
            engines, threads = (engine,), max(hardware // sharing, 1)
        stages.append(Stage(blocks=(block.name,), engines=engines, threads=threads, link=ring))
    return Mapping(name="round robin", problem=problem, stages=tuple(stages), states=problem.states)
