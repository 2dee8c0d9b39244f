"""Finds the best mapping of a router file, and compares it with simple mappings by prediction and simulation."""

from __future__ import annotations

import math
import time
from contextlib import suppress
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
from routecast.plan.network_processor.model import Stage
from routecast.progress import Progress
from routecast.quantity import format_pps, format_ratio
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel

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


_MIN_PPS = 1e-3
_FEASIBILITY_S = 10.0


class InfeasibleMapping(RoutecastError):
    """No mapping meets the limits of the processor; ``reasons`` name the limits that prevent it."""

    def __init__(self, name: str, reasons: tuple[str, ...]) -> None:
        super().__init__(name, reasons)
        self.name = name
        self.reasons = reasons

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: no mapping exists", *(f"  {reason}" for reason in self.reasons)])


def infeasible_mapping(problem: MappingProblem, default_reason: str = "") -> InfeasibleMapping:
    """Return the error of a problem without mapping; it finds the reasons by dropping one kind of limit at a time."""
    processor, reasons = problem.processor, []
    store = processor.engines.code_words
    for block in problem.blocks:
        if store and block.code_words > store:
            reasons.append(
                f'code store: "{block.name}" has {block.code_words} instructions, but a control store holds {store}:'
                " split the block"
            )
    max_file_bytes = max((memory.capacity_bytes or float("inf") for memory in processor.memories), default=0.0)
    for state in problem.states:
        capacities = {memory.name: memory.capacity_bytes for memory in processor.memories}
        capacity_bytes = (
            max_file_bytes if state.name in problem.movable else capacities.get(state.memory) or float("inf")
        )
        if state.size_bytes > capacity_bytes:
            place = "the largest memory" if state.name in problem.movable else f'its memory "{state.memory}"'
            reasons.append(
                f'memory: "{state.name}" has {state.size_bytes} bytes, but {place} holds {capacity_bytes:g}:'
                " make the state smaller"
            )
    if not reasons and _is_feasible(problem, limit_code=False):
        words = sum(block.code_words for block in problem.blocks)
        reasons.append(
            f"code store: {len(problem.blocks)} blocks of {words} instructions do not fit into "
            f"{processor.engines.count} engines of {store}, at most {problem.max_stages} stages each: add engines or "
            "shorten the blocks"
        )
    if not reasons and _is_feasible(problem, limit_capacity=False):
        size = sum(state.size_bytes for state in problem.states)
        capacity_bytes = sum(memory.capacity_bytes for memory in processor.memories)
        reasons.append(
            f"memory: states of {size} bytes and rings of {problem.ring.frames * problem.ring.access_bytes} bytes each "
            f"do not fit into memories of {capacity_bytes} bytes in all: make them smaller, or let more states move"
        )
    if not reasons:
        reasons.append(
            default_reason
            or "threads: the blocks need more stages than the engines have threads: merge blocks, or add engines"
        )
    return InfeasibleMapping(problem.name, tuple(reasons))


def _is_feasible(problem: MappingProblem, *, limit_code: bool = True, limit_capacity: bool = True) -> bool:
    program = MappingProgram(problem, limit_code=limit_code, limit_capacity=limit_capacity)
    try:
        return program.find_mapping(_MIN_PPS, _FEASIBILITY_S) is not None
    except Undecided:
        return False


def all_in_one(problem: MappingProblem) -> Mapping:
    """Return the mapping of all blocks onto all engines as one stage; states keep their memories."""
    stage = Stage(
        blocks=tuple(block.name for block in problem.blocks),
        engines=tuple(range(problem.processor.engines.count)),
        link=problem.ring,
    )
    return Mapping(name="all in one", problem=problem, stages=(stage,), states=problem.states)


def round_robin(problem: MappingProblem) -> Mapping:
    """Return the mapping that assigns blocks to engines in turn, a stage for each block; states keep their memories.

    Blocks on the same engine get equal numbers of its threads.
    """
    count, hardware_threads = problem.processor.engines.count, problem.processor.engines.threads
    blocks = len(problem.blocks)
    ring = replace(problem.ring, memory=next((name for name in problem.rings if name), problem.ring.memory))
    stages = []
    for number, block in enumerate(problem.blocks):
        if blocks <= count:
            engines, threads = tuple(range(number, count, blocks)), 0
        else:
            engine = number % count
            sharing = len(range(engine, blocks, count))
            engines, threads = (engine,), max(hardware_threads // sharing, 1)
        stages.append(Stage(blocks=(block.name,), engines=engines, threads=threads, link=ring))
    return Mapping(name="round robin", problem=problem, stages=tuple(stages), states=problem.states)


_EXACT_RATIO = 1e-6
_SPARE_RATIOS = (0.1, 0.25, 0.5, 1.0)
_RATE_RATIOS = (1.0 - 1e-9, 0.97, 0.92)


@value
class MappingOptimum:
    """The best mapping that the integer program finds."""

    best: Mapping
    pps: float = field("Throughput of the best mapping: the least of its bounds, frames/s")
    bound_pps: float = field("Upper bound on the throughput of any mapping, frames/s")
    programs: int = field("Number of integer programs solved")
    seconds: float
    with_spare_threads: tuple[Mapping, ...] = field(
        "Mappings with spare threads whose bounds are equal or close to the best: threads wait for each other where the"
        " bounds of engines and threads are close, so the mapping of the best bound may forward less",
        default=(),
    )
    notes: tuple[str, ...] = ()

    @property
    def gap_ratio(self) -> float:
        """Greatest part by which another mapping can carry more: ``bound_pps / pps − 1``."""
        return max(self.bound_pps / self.pps - 1.0, 0.0)

    @property
    def is_optimal(self) -> bool:
        """Whether no other mapping carries more."""
        return self.gap_ratio <= 2.0 * _EXACT_RATIO


def map_processor(
    problem: MappingProblem, *, seconds: float = 60.0, on_progress: Progress | None = None
) -> MappingOptimum:
    """Return the mapping of greatest throughput, on the fewest engines among those that reach it.

    The search bisects the range between the best mapping's throughput and the least rate that no mapping carries. It
    takes few steps, because a mapping mostly carries more than the rate that the program requires.

    Parameters
    ----------
    problem : MappingProblem
    seconds : float
        Time limit of the search; if it ends early, ``gap_ratio`` bounds the distance to the optimum.
    on_progress : callable or None
        Called with the steps done, their number, and a text.

    Raises
    ------
    InfeasibleMapping
        No mapping exists; the error holds the reasons.
    """
    begin_s = time.monotonic()
    program = MappingProgram(problem)
    best = _first_mapping(program, seconds)
    low, high = best.expectation().pps, _max_pps(problem)
    notes: list[str] = []
    target, first_gap_ratio = high * (1.0 - 1e-9), high / low - 1.0
    while high > low * (1.0 + _EXACT_RATIO):
        left_s = seconds - (time.monotonic() - begin_s)
        if on_progress is not None:
            closed_ratio = math.log(max(first_gap_ratio / max(high / low - 1.0, _EXACT_RATIO), 1.0)) / math.log(
                max(first_gap_ratio / _EXACT_RATIO, 2.0)
            )
            on_progress(round(100 * closed_ratio), 100, f"{format_pps(low)}, at most {format_pps(high)}")
        try:
            if left_s <= 0.0:
                raise Undecided
            mapping = program.find_mapping(target, left_s)
        except Undecided:
            notes.append(
                f"the search reached its time limit of {seconds:g} s: another mapping may carry up to "
                f"{format_ratio(high / low - 1.0)} more; raise the limit with --seconds"
            )
            break
        if mapping is None:
            high = target
            target = math.sqrt(low * high)
        else:
            best, low = mapping, max(mapping.expectation().pps, target)
            # The mapping is often optimal already, so the next target is just above it.
            target = min(low * (1.0 + _EXACT_RATIO), high)
    best = _on_fewest_engines(program, best, low, seconds - (time.monotonic() - begin_s))
    if on_progress is not None:
        on_progress(100, 100, format_pps(low))
    return MappingOptimum(
        best=best,
        pps=best.expectation().pps,
        bound_pps=max(high, low),
        programs=program.programs_solved,
        seconds=time.monotonic() - begin_s,
        with_spare_threads=_with_spare_threads(program, low, seconds - (time.monotonic() - begin_s)),
        notes=tuple(notes),
    )


def _first_mapping(program: MappingProgram, seconds: float) -> Mapping:
    """Return a mapping to start from: all blocks on all engines where that fits."""
    with suppress(ModelProblem):
        mapping_of_all = replace(all_in_one(program.problem), name="optimum")
        mapping_of_all.router()
        return mapping_of_all
    try:
        mapping = program.find_mapping(_MIN_PPS, seconds)
    except Undecided as problem:
        raise infeasible_mapping(
            program.problem, "the search found no mapping in its time: raise --seconds"
        ) from problem
    if mapping is None:
        raise infeasible_mapping(program.problem)
    return mapping


def _on_fewest_engines(program: MappingProgram, best: Mapping, pps: float, seconds: float) -> Mapping:
    """Return a mapping on the fewest engines that carries ``pps``, or ``best`` if the time is over."""
    try:
        mapping = program.find_mapping(pps * (1.0 - 1e-9), max(seconds, 1.0))
    except Undecided:
        return best
    return best if mapping is None else mapping


def _with_spare_threads(program: MappingProgram, pps: float, seconds: float) -> tuple[Mapping, ...]:
    """Return a mapping on the fewest engines for each share of spare threads, at ``pps`` or slightly less."""
    begin_s = time.monotonic()
    mappings: list[Mapping] = []
    for spare_ratio in _SPARE_RATIOS:
        for rate_ratio in _RATE_RATIOS:
            left_s = seconds - (time.monotonic() - begin_s)
            try:
                mapping = (
                    program.find_mapping(pps * rate_ratio, left_s, spare_ratio=spare_ratio) if left_s > 0.0 else None
                )
            except Undecided:
                return tuple(mappings)
            if mapping is not None:
                mappings.append(mapping)
                break
    return tuple(mappings)


def _max_pps(problem: MappingProblem) -> float:
    """Return a throughput that no mapping exceeds, frames/s: all ports are full, or all engines only run the blocks."""
    lines = next(limit.pps for limit in all_in_one(problem).expectation().limits if limit.kind == "lines")
    engines = problem.processor.engines
    cycles = sum(block.cycles + block.cycles_per_byte * problem.frame_bytes for block in problem.blocks)
    busy = engines.count * engines.frequency_hz / cycles if cycles > 0.0 else math.inf
    return min(lines, busy)


_FRAMES = 100_000
_MAX_RUNS = 3
_TIE_RATIO = 0.005
MAX_DIFFERENCE_RATIO = 0.05
"""A note reports a forwarded rate that is below the prediction by a greater part."""


@value
class MappingCheck:
    """A mapping and its forwarded rates with all ports at line rate."""

    mapping: Mapping
    predicted_pps: float = field("Least of the bounds of the integer program, frames/s")
    limit: str = field("Limiting resource")
    solved_pps: float | None = field(
        "Forwarded in closed form, which includes waits of threads for each other, frames/s", default=None
    )
    simulated_pps: float | None = field("Forwarded in simulation, frames/s", default=None)
    trouble: str = field("Why the mapping does not fit the processor; empty where it does", default="")


@value
class MappingAnswer:
    """The best mapping of a router file, and other mappings for comparison."""

    optimum: MappingOptimum
    best: MappingCheck
    others: tuple[MappingCheck, ...] = field("Mappings for comparison: as in the file, round robin, all in one")
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
    """Find the best mapping of a router, and compare its forwarded rate with those of simple mappings.

    Raises
    ------
    InfeasibleMapping
        No mapping exists.
    """
    problem = case.problem
    optimum = map_processor(problem, seconds=seconds, on_progress=on_progress)
    load = case.load
    line_pps = problem.processor.ports * line_rate_pps(problem.processor.link_bps, load.frames.mean_bytes)
    offered = load.at(line_pps)
    best = _most_forwarding(optimum, offered)
    file_mappings = (case.file_mapping,) if case.file_mapping is not None else ()
    mappings = (best, *file_mappings, round_robin(problem), all_in_one(problem))
    compared = []
    for number, mapping in enumerate(mappings):
        if on_progress is not None:
            on_progress(number, len(mappings), f"check {mapping.name}")
        compared.append(check(mapping, offered, simulate=simulate))
    notes, best_check = list(optimum.notes), compared[0]
    if case.trouble:
        notes.append(f"the mapping of the file does not fit the processor: {case.trouble}")
    forwarded = best_check.simulated_pps or best_check.solved_pps or 0.0
    if 1.0 - forwarded / best_check.predicted_pps > MAX_DIFFERENCE_RATIO:
        notes.append(
            "the mapping forwards less than its bounds allow: threads of an engine wait for each other where the "
            "bounds of engines and of threads are close"
        )
    better = [check.mapping.name for check in compared[1:] if (check.simulated_pps or 0.0) > 1.01 * forwarded]
    if better:
        notes.append(f"in simulation {' and '.join(better)} forward{'s' if len(better) == 1 else ''} more")
    return MappingAnswer(
        optimum=optimum,
        best=best_check,
        others=tuple(compared[1:]),
        offered_pps=line_pps,
        document=case.document,
        notes=tuple(notes),
    )


def _most_forwarding(optimum: MappingOptimum, offered: OfferedLoad) -> Mapping:
    """Return the mapping that forwards most in closed form, on the fewest engines among equals."""
    forwarded = [
        (Solve(model=mapping.router()).trial(offered, 1.0).forwarded_pps, mapping)
        for mapping in (optimum.best, *optimum.with_spare_threads)
    ]
    max_pps = max(pps for pps, _ in forwarded)
    return min(
        (mapping for pps, mapping in forwarded if pps >= max_pps * (1.0 - _TIE_RATIO)),
        key=lambda mapping: mapping.engines,
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
    """Return the forwarded rate in simulation, frames/s; the duration grows until the transient is over."""
    duration_s = _FRAMES / offered.rate_pps
    for _ in range(_MAX_RUNS):
        try:
            return Simulate(model=router, seed=1).trial(offered, duration_s).forwarded_pps
        except TransientProblem as problem:
            duration_s = 1.2 * problem.needed_s
    # The rings do not reach a steady state: the rate while they fill is the answer.
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
