"""The answer for a mapping: the optimum beside mappings that need no program, each predicted and simulated."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

from routecast.errors import ModelProblem, RoutecastError, TransientProblem
from routecast.evaluate.plain import plain
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load.offered import OfferedLoad, line_rate_pps
from routecast.plan._integer_program import Undecided
from routecast.plan.mapping._program import MappingProgram
from routecast.plan.mapping.model import NEXT_NEIGHBOUR, Mapping, MappingProblem, engine_loads, memory_loads
from routecast.plan.mapping.reading import MappingCase
from routecast.progress import Progress
from routecast.quantity import format_pps, format_ratio
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel
from routecast.router.network_processor.model import Stage

__all__ = [
    "InfeasibleMapping",
    "MappingAnswer",
    "MappingCheck",
    "MappingOptimum",
    "all_in_one",
    "answer",
    "map_processor",
    "round_robin",
]


_LEAST_PPS = 1e-3
_SECONDS = 10.0


class InfeasibleMapping(RoutecastError):
    """No mapping obeys all limits of the processor; each of ``reasons``, or all together, prevent it."""

    def __init__(self, name: str, reasons: tuple[str, ...]) -> None:
        super().__init__(name, reasons)
        self.name = name
        self.reasons = reasons

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: there is no mapping", *(f"  {reason}" for reason in self.reasons)])


def infeasible_mapping(problem: MappingProblem, otherwise: str = "") -> InfeasibleMapping:
    """Return why a problem has no mapping, by trying it without each kind of limit."""
    processor, reasons = problem.processor, []
    store = processor.engines.code_words
    for block in problem.blocks:
        if store and block.code_words > store:
            reasons.append(
                f'code store: "{block.name}" has {block.code_words} instructions, but an engine holds {store}: split it'
            )
    biggest = max((memory.capacity_bytes or float("inf") for memory in processor.memories), default=0.0)
    for state in problem.states:
        capacities = {memory.name: memory.capacity_bytes for memory in processor.memories}
        room = biggest if state.name in problem.movable else capacities.get(state.memory) or float("inf")
        if state.size_bytes > room:
            where = "the largest memory" if state.name in problem.movable else f'"{state.memory}", where it is kept,'
            reasons.append(
                f'memory: "{state.name}" has {state.size_bytes} bytes, but {where} holds {room:g}: make it smaller'
            )
    if not reasons and _is_feasible(problem, limit_code=False):
        words = sum(block.code_words for block in problem.blocks)
        reasons.append(
            f"code store: {len(problem.blocks)} blocks of {words} instructions do not fit into "
            f"{processor.engines.count} engines of {store}, at most {problem.most_stages} stages each: more engines or "
            "shorter programs are needed"
        )
    if not reasons and _is_feasible(problem, limit_capacity=False):
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


def _is_feasible(problem: MappingProblem, *, limit_code: bool = True, limit_capacity: bool = True) -> bool:
    program = MappingProgram(problem, limit_code=limit_code, limit_capacity=limit_capacity)
    try:
        return program.mapping(_LEAST_PPS, _SECONDS) is not None
    except Undecided:
        return False


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


_EXACT = 1e-6
_SPARE = (0.1, 0.25, 0.5, 1.0)
_NEARLY = (1.0 - 1e-9, 0.97, 0.92)


@value
class MappingOptimum:
    """The best mapping that the program finds."""

    best: Mapping
    pps: float = field("Maximum throughput: the least of its bounds")
    bound_pps: float = field("No mapping carries more, frames/s")
    programs: int = field("Integer programs that were solved")
    seconds: float
    with_spare_threads: tuple[Mapping, ...] = field(
        "Others that are as good, or nearly, by their bounds, and have spare threads: where the bounds of engines and"
        " threads are close, neither is reached",
        default=(),
    )
    notes: tuple[str, ...] = ()

    @property
    def gap_ratio(self) -> float:
        """Part by which a better mapping could carry more."""
        return max(self.bound_pps / self.pps - 1.0, 0.0)

    @property
    def is_optimal(self) -> bool:
        """Whether there is no better mapping."""
        return self.gap_ratio <= 2.0 * _EXACT


def map_processor(
    problem: MappingProblem, *, seconds: float = 60.0, on_progress: Progress | None = None
) -> MappingOptimum:
    """Return the mapping that carries most, and of those that do one with the fewest engines.

    The range between the best mapping's rate and the least rate that no mapping carries is bisected until it is closed.
    A mapping mostly carries more than the program requires of it, so that takes few steps.

    Parameters
    ----------
    problem : MappingProblem
    seconds : float
        Search no longer; the answer then says how far from the best it can be.
    on_progress : callable or None
        Called with the steps done, their number, and a text.

    Raises
    ------
    InfeasibleMapping
        There is none: with the reason.
    """
    began = time.monotonic()
    program = MappingProgram(problem)
    best = _first_mapping(program, seconds)
    low, high = best.expectation().pps, _highest(problem)
    notes: list[str] = []
    target, gap = high * (1.0 - 1e-9), high / low - 1.0
    while high > low * (1.0 + _EXACT):
        left = seconds - (time.monotonic() - began)
        if on_progress is not None:
            halved = math.log(max(gap / max(high / low - 1.0, _EXACT), 1.0)) / math.log(max(gap / _EXACT, 2.0))
            on_progress(round(100 * halved), 100, f"{format_pps(low)}, at most {format_pps(high)}")
        try:
            if left <= 0.0:
                raise Undecided
            mapping = program.mapping(target, left)
        except Undecided:
            notes.append(
                f"the time was over after {seconds:g} s: a better mapping could carry up to "
                f"{format_ratio(high / low - 1.0)} more; give it longer with --seconds"
            )
            break
        if mapping is None:
            high = target
            target = math.sqrt(low * high)
        else:
            best, low = mapping, max(mapping.expectation().pps, target)
            # It is often the best already.
            target = min(low * (1.0 + _EXACT), high)
        if high <= low * (1.0 + _EXACT):
            break
    best = _fewest(program, best, low, seconds - (time.monotonic() - began))
    if on_progress is not None:
        on_progress(100, 100, format_pps(low))
    return MappingOptimum(
        best=best,
        pps=best.expectation().pps,
        bound_pps=max(high, low),
        programs=program.solved,
        seconds=time.monotonic() - began,
        with_spare_threads=_with_spare_threads(program, low, seconds - (time.monotonic() - began)),
        notes=tuple(notes),
    )


def _first_mapping(program: MappingProgram, seconds: float) -> Mapping:
    """Return any mapping: everything on all engines, where that fits."""
    everything = replace(all_in_one(program.problem), name="optimum")
    try:
        everything.router()
    except ModelProblem:
        pass
    else:
        return everything
    try:
        mapping = program.mapping(_LEAST_PPS, seconds)
    except Undecided as problem:
        raise infeasible_mapping(program.problem, "no mapping was found in the time given: give it longer") from problem
    if mapping is None:
        raise infeasible_mapping(program.problem)
    return mapping


def _fewest(program: MappingProgram, best: Mapping, pps: float, seconds: float) -> Mapping:
    """Return a mapping as good on as few engines as possible."""
    try:
        mapping = program.mapping(pps * (1.0 - 1e-9), max(seconds, 1.0))
    except Undecided:
        return best
    return best if mapping is None else mapping


def _with_spare_threads(program: MappingProgram, pps: float, seconds: float) -> tuple[Mapping, ...]:
    """Return mappings with spare threads, each on as few engines as possible."""
    began = time.monotonic()
    mappings: list[Mapping] = []
    for spare in _SPARE:
        for part in _NEARLY:
            left = seconds - (time.monotonic() - began)
            try:
                mapping = program.mapping(pps * part, left, spare=spare) if left > 0.0 else None
            except Undecided:
                return tuple(mappings)
            if mapping is not None:
                mappings.append(mapping)
                break
    return tuple(mappings)


def _highest(problem: MappingProblem) -> float:
    """Return a rate that no mapping exceeds: all ports full, all engines busy with nothing but the blocks."""
    lines = next(limit.pps for limit in all_in_one(problem).expectation().limits if limit.kind == "lines")
    engines = problem.processor.engines
    cycles = sum(block.cycles + block.cycles_per_byte * problem.frame_bytes for block in problem.blocks)
    busy = engines.count * engines.frequency_hz / cycles if cycles > 0.0 else math.inf
    return min(lines, busy)


_FRAMES = 100_000
_LONGER = 3
_ALIKE = 0.005
DIFFERS = 0.05
"""A greater part between simulation and prediction is noted as a difference."""


@value
class MappingCheck:
    """A mapping and what it forwards when all ports are full."""

    mapping: Mapping
    predicted_pps: float = field("The least of its bounds: what the integer program counts with, frames/s")
    limit: str = field("Limiting resource")
    solved_pps: float | None = field("In closed form, threads' waits for each other included, frames/s", default=None)
    simulated_pps: float | None = field("Packet by packet, frames/s", default=None)
    trouble: str = field("Why the mapping does not fit the processor; empty where it does", default="")


@value
class MappingAnswer:
    """The best mapping of a router file, beside others."""

    optimum: MappingOptimum
    best: MappingCheck
    others: tuple[MappingCheck, ...] = field("Other mappings: that of the file, round robin, all in one")
    offered_pps: float = field("Load of the trials: line rate on all ports, frames/s")
    document: dict[str, Any] = field("Content of the router file")
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        mapping, pps = self.best.mapping, self.best.predicted_pps
        document = {
            "name": mapping.problem.name,
            "processor": mapping.problem.processor.name,
            "frame_bytes": mapping.problem.frame_bytes,
            "offered_pps": self.offered_pps,
            "bound_pps": self.optimum.bound_pps,
            "gap_ratio": self.optimum.gap_ratio,
            "programs": self.optimum.programs,
            "mappings": [_check_json(check) for check in (self.best, *self.others)],
            "engines": engine_loads(mapping, pps),
            "memories": memory_loads(mapping, pps),
            "notes": self.notes,
        }
        result = plain(document)
        assert isinstance(result, dict)
        return result


def answer(
    case: MappingCase, *, seconds: float = 60.0, simulate: bool = True, on_progress: Progress | None = None
) -> MappingAnswer:
    """Map a router, and compare what it then forwards with other mappings.

    Raises
    ------
    InfeasibleMapping
        There is no mapping.
    """
    problem = case.problem
    optimum = map_processor(problem, seconds=seconds, on_progress=on_progress)
    load = case.load
    full_pps = problem.processor.ports * line_rate_pps(problem.processor.link_bps, load.frames.mean_bytes)
    offered = load.at(full_pps)
    best = _most_forwarding(optimum, offered)
    own = (case.own,) if case.own is not None else ()
    mappings = (best, *own, round_robin(problem), all_in_one(problem))
    compared = []
    for number, mapping in enumerate(mappings):
        if on_progress is not None:
            on_progress(number, len(mappings), f"check {mapping.name}")
        compared.append(check(mapping, offered, simulate=simulate))
    notes, first = list(optimum.notes), compared[0]
    if case.trouble:
        notes.append(f"as in the file it is no router: {case.trouble}")
    forwarded = first.simulated_pps or first.solved_pps or 0.0
    if abs(forwarded / first.predicted_pps - 1.0) > DIFFERS:
        notes.append(
            "less is forwarded than the bounds allow: threads of an engine wait for each other where engines and "
            "threads limit alike"
        )
    better = [check.mapping.name for check in compared[1:] if (check.simulated_pps or 0.0) > 1.01 * forwarded]
    if better:
        notes.append(f"in simulation {' and '.join(better)} forwards more")
    return MappingAnswer(
        optimum=optimum,
        best=first,
        others=tuple(compared[1:]),
        offered_pps=full_pps,
        document=case.document,
        notes=tuple(notes),
    )


def _most_forwarding(optimum: MappingOptimum, offered: OfferedLoad) -> Mapping:
    """Return the mapping that forwards most in closed form, on the fewest engines where several do."""
    forwarded = [
        (Solve(model=mapping.router()).trial(offered, 1.0).forwarded_pps, mapping)
        for mapping in (optimum.best, *optimum.with_spare_threads)
    ]
    most = max(pps for pps, _ in forwarded)
    return min(
        (mapping for pps, mapping in forwarded if pps >= most * (1.0 - _ALIKE)), key=lambda mapping: mapping.engines
    )


def check(mapping: Mapping, offered: OfferedLoad, *, simulate: bool = True) -> MappingCheck:
    """Return what a mapping forwards of a load by its bounds, in closed form and in simulation."""
    try:
        router = mapping.router()
    except ModelProblem as problem:
        return MappingCheck(mapping=mapping, predicted_pps=0.0, limit="", trouble=problem.problems[0].message)
    expected = mapping.expectation()
    return MappingCheck(
        mapping=mapping,
        predicted_pps=expected.pps,
        limit=expected.limit.name,
        solved_pps=Solve(model=router).trial(offered, 1.0).forwarded_pps,
        simulated_pps=_simulated(router, offered) if simulate else None,
    )


def _simulated(router: RouterModel, offered: OfferedLoad) -> float:
    """Return the forwarded rate in simulation, as long as the transient needs."""
    duration_s = _FRAMES / offered.rate_pps
    for _ in range(_LONGER):
        try:
            return Simulate(model=router, seed=1).trial(offered, duration_s).forwarded_pps
        except TransientProblem as problem:
            duration_s = 1.2 * problem.needed_s
    # The rings fill ever more slowly: the rate while they fill is the answer.
    return Simulate(model=router, seed=1, steady_state=False).trial(offered, duration_s).forwarded_pps


def _check_json(check: MappingCheck) -> dict[str, Any]:
    mapping = check.mapping
    return {
        "name": mapping.name,
        "engines": mapping.engines,
        "predicted_pps": check.predicted_pps,
        "limit": check.limit,
        "solved_pps": check.solved_pps,
        "simulated_pps": check.simulated_pps,
        "trouble": check.trouble,
        "stages": [
            {
                "blocks": stage.blocks,
                "engines": stage.engines,
                "threads": stage.threads or mapping.problem.processor.engines.threads,
                "ring": None if not number else stage.link.memory or NEXT_NEIGHBOUR,
            }
            for number, stage in enumerate(mapping.stages)
        ],
        "states": {state.name: state.memory for state in mapping.states},
    }
