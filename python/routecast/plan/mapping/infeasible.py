"""Why no mapping fits."""

from __future__ import annotations

from routecast.errors import RoutecastError
from routecast.plan.mapping.model import MappingProblem
from routecast.plan.mapping.program import Program, Undecided

__all__ = ["InfeasibleMapping", "why_not"]

_LEAST_PPS = 1e-3
_SECONDS = 10.0


class InfeasibleMapping(RoutecastError):
    """No mapping obeys all limits of the processor.

    Attributes
    ----------
    name : str
        What was to be mapped.
    reasons : tuple of str
        What stands in the way: each alone, or all together.
    """

    def __init__(self, name: str, reasons: tuple[str, ...]) -> None:
        super().__init__(name, reasons)
        self.name = name
        self.reasons = reasons

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: there is no mapping", *(f"  {one}" for one in self.reasons)])


def why_not(problem: MappingProblem, otherwise: str = "") -> InfeasibleMapping:
    """Find what keeps a problem from having any mapping, by leaving one kind of limit out after the other."""
    processor, reasons = problem.processor, []
    store = processor.engines.code_words
    for block in problem.blocks:
        if store and block.code_words > store:
            reasons.append(
                f'code store: "{block.name}" has {block.code_words} instructions, but an engine holds {store}: split it'
            )
    biggest = max((memory.capacity_bytes or float("inf") for memory in processor.memories), default=0.0)
    for state in problem.states:
        memory = next((one for one in processor.memories if one.name == state.memory), None)
        room = (
            biggest
            if state.name in problem.movable
            else (memory.capacity_bytes if memory else 0) or float("inf")
        )
        if state.size_bytes > room:
            where = (
                "the largest memory"
                if state.name in problem.movable
                else f'"{state.memory}", where it is kept,'
            )
            reasons.append(
                f'memory: "{state.name}" has {state.size_bytes} bytes, but {where} holds {room:g}: make it smaller'
            )
    if not reasons and _exists(problem, limit_code=False):
        words = sum(block.code_words for block in problem.blocks)
        reasons.append(
            f"code store: {len(problem.blocks)} blocks of {words} instructions do not fit into "
            f"{processor.engines.count} engines of {store}, at most {problem.most_stages} stages each: more engines or "
            "shorter programs are needed"
        )
    if not reasons and _exists(problem, limit_capacity=False):
        size = sum(state.size_bytes for state in problem.states)
        room = sum(memory.capacity_bytes for memory in processor.memories)
        reasons.append(
            f"memory: states of {size} bytes and rings of {problem.ring.frames * problem.ring.access_bytes} bytes each "
            f"do not fit into memories of {room} bytes in all: make them smaller, or let more states move"
        )
    if not reasons:
        reasons.append(
            otherwise
            or "threads: the stages that are needed are more than the engines' threads: fewer blocks, or more engines"
        )
    return InfeasibleMapping(problem.name, tuple(reasons))


def _exists(problem: MappingProblem, *, limit_code: bool = True, limit_capacity: bool = True) -> bool:
    program = Program(problem, limit_code=limit_code, limit_capacity=limit_capacity)
    try:
        return program.mapping(_LEAST_PPS, _SECONDS) is not None
    except Undecided:
        return False
