"""The mapping of the greatest throughput: the program asked for more and more, until there is no more."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

from routecast.errors import ModelProblem, RoutecastError
from routecast.plan.mapping.model import Mapping, MappingProblem
from routecast.plan.mapping.program import Program, Undecided
from routecast.quantity import format_pps, format_ratio
from routecast.quantity.schema import field, value
from routecast.router.network_processor.model import Stage

__all__ = ["Answered", "InfeasibleMapping", "Progress", "all_in_one", "map_processor", "round_robin"]


# Why no mapping fits.


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
        room = biggest if state.name in problem.movable else (memory.capacity_bytes if memory else 0) or float("inf")
        if state.size_bytes > room:
            where = "the largest memory" if state.name in problem.movable else f'"{state.memory}", where it is kept,'
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


# Mappings that need no program: everything on every engine, blocks dealt out in turn.


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


Progress = Callable[[int, int, str], None]
_EXACT = 1e-6
_SPARE = (0.1, 0.25, 0.5, 1.0)
_NEARLY = (1.0 - 1e-9, 0.97, 0.92)


@value
class Answered:
    """The best mapping that was found."""

    best: Mapping
    pps: float = field("What it carries at most: the least of its bounds")
    bound_pps: float = field("No mapping carries more, frames/s")
    programs: int = field("Integer programs that were solved")
    seconds: float
    spared: tuple[Mapping, ...] = field(
        "Others as good, or nearly, by their bounds, which have threads to spare: where the bounds of engines and"
        " threads lie close together none of the two is reached",
        default=(),
    )
    notes: tuple[str, ...] = ()

    @property
    def gap_ratio(self) -> float:
        """By how much a better mapping could be better."""
        return max(self.bound_pps / self.pps - 1.0, 0.0)

    @property
    def is_optimal(self) -> bool:
        """Whether there is no better mapping."""
        return self.gap_ratio <= 2.0 * _EXACT


def map_processor(problem: MappingProblem, *, seconds: float = 60.0, progress: Progress | None = None) -> Answered:
    """Return the mapping that carries most, and of those that do one with the fewest engines.

    The range between the best mapping known and the least rate that no mapping carries is halved until nothing is
    between; as a found mapping mostly carries more than was asked for, that takes few steps.

    Parameters
    ----------
    problem : MappingProblem
    seconds : float
        Search no longer; the answer then says how far from the best it can be.
    progress : callable or None
        Called with what is done, what there is to do, and words.

    Raises
    ------
    InfeasibleMapping
        There is none: with the reason.
    """
    began = time.monotonic()
    program = Program(problem)
    best = _begin(program, seconds)
    low, high = best.expectation().pps, _highest(problem)
    notes: list[str] = []
    target, gap = high * (1.0 - 1e-9), high / low - 1.0
    while high > low * (1.0 + _EXACT):
        left = seconds - (time.monotonic() - began)
        if progress is not None:
            halved = math.log(max(gap / max(high / low - 1.0, _EXACT), 1.0)) / math.log(max(gap / _EXACT, 2.0))
            progress(round(100 * halved), 100, f"{format_pps(low)}, at most {format_pps(high)}")
        try:
            if left <= 0.0:
                raise Undecided
            found = program.mapping(target, left)
        except Undecided:
            notes.append(
                f"the time was over after {seconds:g} s: a better mapping could carry up to "
                f"{format_ratio(high / low - 1.0)} more; give it longer with --seconds"
            )
            break
        if found is None:
            high = target
            target = math.sqrt(low * high)
        else:
            best, low = found, max(found.expectation().pps, target)
            # What was found is often the best already.
            target = min(low * (1.0 + _EXACT), high)
        if high <= low * (1.0 + _EXACT):
            break
    best = _fewest(program, best, low, seconds - (time.monotonic() - began))
    if progress is not None:
        progress(100, 100, format_pps(low))
    return Answered(
        best=best,
        pps=best.expectation().pps,
        bound_pps=max(high, low),
        programs=program.solved,
        seconds=time.monotonic() - began,
        spared=_spared(program, low, seconds - (time.monotonic() - began)),
        notes=tuple(notes),
    )


def _begin(program: Program, seconds: float) -> Mapping:
    """Return any mapping: everything on all engines, where that fits."""
    whole = replace(all_in_one(program.problem), name="optimum")
    try:
        whole.router()
    except ModelProblem:
        pass
    else:
        return whole
    try:
        found = program.mapping(_LEAST_PPS, seconds)
    except Undecided as problem:
        raise why_not(program.problem, "no mapping was found in the time given: give it longer") from problem
    if found is None:
        raise why_not(program.problem)
    return found


def _fewest(program: Program, best: Mapping, pps: float, seconds: float) -> Mapping:
    """Return a mapping as good on as few engines as can be."""
    try:
        found = program.mapping(pps * (1.0 - 1e-9), max(seconds, 1.0))
    except Undecided:
        return best
    return best if found is None else found


def _spared(program: Program, pps: float, seconds: float) -> tuple[Mapping, ...]:
    """Return mappings with threads to spare, on as few engines as that takes."""
    began = time.monotonic()
    found: list[Mapping] = []
    for spare in _SPARE:
        for part in _NEARLY:
            left = seconds - (time.monotonic() - began)
            try:
                one = program.mapping(pps * part, left, spare=spare) if left > 0.0 else None
            except Undecided:
                return tuple(found)
            if one is not None:
                found.append(one)
                break
    return tuple(found)


def _highest(problem: MappingProblem) -> float:
    """Return a rate that no mapping exceeds: all ports full, all engines busy with nothing but the blocks."""
    lines = next(limit.pps for limit in all_in_one(problem).expectation().limits if limit.kind == "lines")
    engines = problem.processor.engines
    cycles = sum(block.cycles + block.cycles_per_byte * problem.frame_bytes for block in problem.blocks)
    busy = engines.count * engines.frequency_hz / cycles if cycles > 0.0 else math.inf
    return min(lines, busy)
