"""The integer program: which blocks share engines, on how many engines, which state in which memory, which ring where.

A :class:`BlockGroup` is a set of blocks; each of its engines runs all of them. Blocks that follow each other are one
stage, which a thread runs to completion; rings carry frames between stages. A mapping picks groups so that each block
is in one, with a number of engines for each.

NP-Click's program (Plishker, Ravindran, Shah & Keutzer, Automated task allocation for network processors, NSDC 2004;
Shah, Plishker, Ravindran & Keutzer, NP-Click, IEEE Micro 24(5), 2004) assigns tasks to engines, with their states and
links, under control stores, for the least makespan: the time that the most loaded engine needs for a frame. This
program takes a makespan T as given instead: then replication over engines, the waits of threads and the choice of
memories are linear, which they are not together with an unknown T. For group g on r engines, state s in memory m, and
ring k by o::

    each block in one group                   sum of y[g,r] over groups of the block        = 1
    enough engines                            sum of r·y[g,r]                              <= engines        (minimised)
    no engine works longer than T             y[g,r] only where work[g] <= r·T
    each state in one memory                  sum of z[s,m] over m                          = 1
    capacity                                  sum of size[s]·z[s,m] + rings there          <= capacity[m]
    bandwidth                                 sum of busy[s,m]·z[s,m] + 2·busy·u[k,m]      <= channels[m]·T
    a ring where two stages meet              sum of u[k,o] over o = 1 - groups that keep blocks k, k+1 together
    threads hide no more than there are       run + waits(z, u) <= t[g,stage]·r·T where y[g,r] = 1, sum of t <= threads
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from routecast.plan._integer_program import IntegerProgram
from routecast.plan.mapping.model import Mapping, MappingProblem
from routecast.router.network_processor.model import (
    InstructionRun,
    Link,
    Memory,
    Reference,
    Stage,
    occupancy_s,
    steps_of,
)

__all__ = ["MappingProgram"]


Span = tuple[int, int]
"""First and last block of a stage, by number."""


@dataclass(frozen=True, slots=True)
class BlockGroup:
    """Blocks on the same engines: stages, active threads of each engine, and engine time for a frame by stage, s."""

    spans: tuple[Span, ...]
    threads: int
    run_s: tuple[float, ...]

    @property
    def blocks(self) -> tuple[int, ...]:
        """Numbers of its blocks."""
        return tuple(number for first, last in self.spans for number in range(first, last + 1))

    @property
    def work_s(self) -> float:
        """Seconds of an engine for each frame."""
        return sum(self.run_s)


@dataclass(frozen=True, slots=True)
class ReferenceCost:
    """The cost of references for a frame, with their state in some memory: busy time of a channel, thread's wait."""

    busy_s: float
    wait_s: float


def block_groups(problem: MappingProblem, *, limit_code: bool = True) -> list[BlockGroup]:
    """Return all groups whose code fits into a control store, with several numbers of threads where that matters."""
    engines, groups = problem.processor.engines, []
    spilling = engines.registers > 0 and any(
        block.registers > engines.registers // engines.threads for block in problem.blocks
    )
    thread_counts = sorted({engines.threads, *(1 << power for power in range(engines.threads.bit_length()))})
    for spans in _spans(len(problem.blocks), min(problem.most_stages, engines.threads)):
        words = sum(problem.blocks[n].code_words for first, last in spans for n in range(first, last + 1))
        if limit_code and engines.code_words and words > engines.code_words:
            continue
        for threads in thread_counts if spilling and len(spans) == 1 else [engines.threads]:
            if threads <= engines.threads:
                runs = tuple(_run_s(problem, span, threads) for span in spans)
                groups.append(BlockGroup(spans=spans, threads=threads, run_s=runs))
    return groups


def _spans(blocks: int, most: int) -> Iterator[tuple[Span, ...]]:
    """Yield all sets of blocks that form at most ``most`` stages: spans with a gap between them."""
    for stages in range(1, most + 1):
        # Each span begins and ends, and the next begins at least one block later.
        for ends in combinations(range(blocks + stages), 2 * stages):
            spans = tuple((ends[2 * n] - n, ends[2 * n + 1] - 1 - n) for n in range(stages))
            apart = all(before[1] + 1 < after[0] for before, after in pairwise(spans))
            if apart and all(first <= last < blocks for first, last in spans):
                yield spans


def _run_s(problem: MappingProblem, span: Span, threads: int) -> float:
    first, last = span
    processor = problem.processor
    # The memory of a state or a ring changes waits, not instructions.
    ring = Link(put_cycles=problem.ring.put_cycles, get_cycles=problem.ring.get_cycles)
    own, put = steps_of(
        Stage(blocks=tuple(block.name for block in problem.blocks[first : last + 1]), engines=(0,)),
        processor=processor,
        blocks={block.name: block for block in problem.blocks},
        states={state.name: state for state in problem.states},
        active_threads=threads,
        source=ring if first else None,
        target=ring if last + 1 < len(problem.blocks) else None,
    )
    cycles = sum(
        step.cycles + step.cycles_per_byte * problem.frame_bytes
        for step in own + put
        if isinstance(step, InstructionRun)
    )
    return cycles / processor.engines.frequency_hz


def reference_costs(problem: MappingProblem) -> list[dict[tuple[str, str], ReferenceCost]]:
    """Return the cost of each block's references for a frame, by state and memory."""
    costs = []
    for block in problem.blocks:
        own: dict[tuple[str, str], ReferenceCost] = {}
        for reference in block.references:
            for memory in problem.processor.memories:
                before = own.get((reference.state, memory.name), ReferenceCost(0.0, 0.0))
                more = _reference_cost(problem, reference, memory)
                own[reference.state, memory.name] = ReferenceCost(
                    before.busy_s + more.busy_s, before.wait_s + more.wait_s
                )
        costs.append(own)
    return costs


def _reference_cost(problem: MappingProblem, reference: Reference, memory: Memory) -> ReferenceCost:
    access_s = occupancy_s(memory, reference.access_bytes)
    busy_s = (reference.accesses + reference.accesses_per_byte * problem.frame_bytes) * access_s
    if busy_s <= 0.0:
        return ReferenceCost(0.0, 0.0)
    times = float(reference.waits)
    if not reference.accesses_per_byte:
        times = min(times, reference.accesses)
    return ReferenceCost(busy_s, busy_s + times * max(memory.latency_s - access_s, 0.0))


def ring_cost(problem: MappingProblem, name: str) -> ReferenceCost:
    """Return the cost of a put or a get of a ring in a memory, or of the registers of the next engine."""
    if not name:
        return ReferenceCost(0.0, 0.0)
    memory = next(memory for memory in problem.processor.memories if memory.name == name)
    busy_s = occupancy_s(memory, problem.ring.access_bytes)
    return ReferenceCost(busy_s, max(memory.latency_s, busy_s))


_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class _Choice:
    """A group on a number of engines; ``threads`` are the columns of each stage's threads, if they are free."""

    group: BlockGroup
    engines: int
    column: int
    threads: tuple[int, ...]


class MappingProgram:
    """The program of one problem, for one throughput after the other; control stores and memories may be unlimited."""

    def __init__(self, problem: MappingProblem, *, limit_code: bool = True, limit_capacity: bool = True) -> None:
        self.problem = problem
        self.groups = block_groups(problem, limit_code=limit_code)
        self.solved = 0
        self._costs = reference_costs(problem)
        self._limit_capacity = limit_capacity

    def mapping(self, target_pps: float, seconds: float, *, spare: float = 0.0) -> Mapping | None:
        """Return a mapping that carries a rate, on the fewest engines; None if there is none.

        ``spare`` is the part of more threads than the waits need. Raises Undecided after ``seconds``.
        """
        problem, makespan_s = self.problem, 1.0 / target_pps
        program = IntegerProgram(mip_rel_gap=0.0, mip_feasibility_tolerance=_ROUNDING)
        self.solved += 1
        memory_columns = self._states(program, makespan_s)
        if memory_columns is None:
            return None
        hidden_s = makespan_s / (1.0 + spare)
        choices = self._choices(program, makespan_s, hidden_s)
        covering: list[dict[int, float]] = [{} for _ in problem.blocks]
        for choice in choices:
            for block in choice.group.blocks:
                covering[block][choice.column] = 1.0
        if not all(covering):
            return None
        for entries in covering:
            program.row(entries, 1.0, 1.0)
        program.row(
            {choice.column: float(choice.engines) for choice in choices}, 0.0, float(problem.processor.engines.count)
        )
        ring_columns = self._links(program, choices)
        self._memories(program, memory_columns, ring_columns, makespan_s)
        self._threads(program, choices, memory_columns, ring_columns, hidden_s)
        solution = program.solve(seconds)
        return None if solution is None else self._mapping(solution.values, choices, memory_columns, ring_columns)

    def _states(self, program: IntegerProgram, makespan_s: float) -> dict[tuple[str, str], int] | None:
        """Add the choice of a memory for each state."""
        memories, memory_columns = self.problem.processor.memories, {}
        for state in self.problem.states:
            free = [
                memory.name
                for memory in memories
                if (state.name in self.problem.movable or memory.name == state.memory)
                and not (self._limit_capacity and memory.capacity_bytes and state.size_bytes > memory.capacity_bytes)
            ]
            if not free:
                return None
            for name in free:
                memory_columns[state.name, name] = program.column()
            program.row({memory_columns[state.name, name]: 1.0 for name in free}, 1.0, 1.0)
        return memory_columns

    def _choices(self, program: IntegerProgram, makespan_s: float, hidden_s: float) -> list[_Choice]:
        """Add groups with the numbers of engines that could suffice."""
        count, choices = self.problem.processor.engines.count, []
        hardware = self.problem.processor.engines.threads
        for group in self.groups:
            least = max(math.ceil(group.work_s / makespan_s * (1.0 - _ROUNDING)), 1)
            for engines in range(least, count + 1):
                best, worst = self._thread_s(group)
                room_s = engines * hidden_s
                fewest = sum(max(math.ceil(thread_s / room_s * (1.0 - _ROUNDING)), 1) for thread_s in best)
                if fewest <= group.threads:
                    column = program.column(cost=float(engines))
                    free: tuple[int, ...] = ()
                    if len(group.spans) > 1:
                        free = tuple(program.column(float(hardware)) for _ in group.spans)
                        program.row({**dict.fromkeys(free, 1.0), column: -float(hardware)}, -math.inf, 0.0)
                        for threads_column in free:
                            program.row({threads_column: 1.0, column: -1.0}, 0.0, math.inf)
                    choices.append(_Choice(group, engines, column, free))
                most = sum(max(math.ceil(thread_s / room_s * (1.0 + _ROUNDING)), 1) for thread_s in worst)
                if most <= group.threads:
                    # More engines bring no more.
                    break
        return choices

    def _thread_s(self, group: BlockGroup) -> tuple[list[float], list[float]]:
        """Return the time that a frame holds a thread of each stage, at best and at worst."""
        rings = [ring_cost(self.problem, name).wait_s for name in self.problem.rings]
        best, worst = [], []
        for (first, last), run_s in zip(group.spans, group.run_s, strict=True):
            ends = (first > 0) + (last + 1 < len(self.problem.blocks))
            low, high = run_s + ends * min(rings), run_s + ends * max(rings)
            for block in range(first, last + 1):
                for state in {name for name, _ in self._costs[block]}:
                    waits = [cost.wait_s for (name, _), cost in self._costs[block].items() if name == state]
                    low, high = low + min(waits), high + max(waits)
            best.append(low)
            worst.append(high)
        return best, worst

    def _links(self, program: IntegerProgram, choices: Sequence[_Choice]) -> list[dict[str, int]]:
        """Add the choice of a ring between each block and the next."""
        ring_columns = []
        for block in range(len(self.problem.blocks) - 1):
            options = {name: program.column() for name in self.problem.rings}
            together = {
                choice.column: 1.0
                for choice in choices
                if any(first <= block < last for first, last in choice.group.spans)
            }
            program.row({**dict.fromkeys(options.values(), 1.0), **together}, 1.0, 1.0)
            if "" in options and len(options) > 1:
                for side in (block, block + 1):
                    near = {
                        choice.column: -1.0
                        for choice in choices
                        if choice.engines == 1 and len(choice.group.spans) == 1 and side in choice.group.blocks
                    }
                    program.row({options[""]: 1.0, **near}, -math.inf, 0.0)
            ring_columns.append(options)
        return ring_columns

    def _memories(
        self,
        program: IntegerProgram,
        memory_columns: dict[tuple[str, str], int],
        ring_columns: Sequence[dict[str, int]],
        makespan_s: float,
    ) -> None:
        ring = self.problem.ring
        for memory in self.problem.processor.memories:
            busy: dict[int, float] = {}
            size: dict[int, float] = {}
            for state in self.problem.states:
                column = memory_columns.get((state.name, memory.name))
                if column is not None:
                    busy[column] = sum(
                        holds[state.name, memory.name].busy_s
                        for holds in self._costs
                        if (state.name, memory.name) in holds
                    )
                    size[column] = float(state.size_bytes)
            for options in ring_columns:
                if memory.name in options:
                    busy[options[memory.name]] = 2.0 * ring_cost(self.problem, memory.name).busy_s
                    size[options[memory.name]] = float(ring.frames * ring.access_bytes)
            if busy:
                # Parts of the memory's limits keep rounding from deciding.
                scale = 1.0 / (memory.channels * makespan_s)
                program.row({column: busy_s * scale for column, busy_s in busy.items()}, 0.0, 1.0 + _ROUNDING)
                if memory.capacity_bytes and self._limit_capacity:
                    parts = {column: size_bytes / memory.capacity_bytes for column, size_bytes in size.items()}
                    program.row(parts, 0.0, 1.0 + _ROUNDING)

    def _threads(
        self,
        program: IntegerProgram,
        choices: Sequence[_Choice],
        memory_columns: dict[tuple[str, str], int],
        ring_columns: Sequence[dict[str, int]],
        hidden_s: float,
    ) -> None:
        for choice in choices:
            _, worst = self._thread_s(choice.group)
            room_s = choice.engines * hidden_s
            for number, (span, run_s) in enumerate(zip(choice.group.spans, choice.group.run_s, strict=True)):
                if not choice.threads and worst[number] <= choice.group.threads * room_s:
                    continue
                waits = self._waits(span, memory_columns, ring_columns)
                entries = {column: wait_s / room_s for column, wait_s in waits.items()}
                most = worst[number] / room_s
                run = run_s / room_s
                # The row binds only if the group is chosen: otherwise the right side allows the worst case.
                if choice.threads:
                    entries[choice.threads[number]] = -1.0
                    entries[choice.column] = most
                    program.row(entries, -math.inf, most - run + _ROUNDING)
                else:
                    entries[choice.column] = most - choice.group.threads
                    program.row(entries, -math.inf, most - run + _ROUNDING)

    def _waits(
        self, span: tuple[int, int], memory_columns: dict[tuple[str, str], int], ring_columns: Sequence[dict[str, int]]
    ) -> dict[int, float]:
        first, last = span
        waits: dict[int, float] = {}
        for block in range(first, last + 1):
            for (state, memory), cost in self._costs[block].items():
                column = memory_columns.get((state, memory))
                if column is not None:
                    waits[column] = waits.get(column, 0.0) + cost.wait_s
        for end in (first - 1, last):
            if 0 <= end < len(ring_columns):
                for name, column in ring_columns[end].items():
                    waits[column] = waits.get(column, 0.0) + ring_cost(self.problem, name).wait_s
        return waits

    def _mapping(
        self,
        values: Sequence[float],
        choices: Sequence[_Choice],
        memory_columns: dict[tuple[str, str], int],
        ring_columns: Sequence[dict[str, int]],
    ) -> Mapping:
        problem, hardware = self.problem, self.problem.processor.engines.threads
        chosen = sorted(
            (choice for choice in choices if values[choice.column] > 0.5), key=lambda choice: choice.group.spans[0][0]
        )
        stages: list[tuple[int, Stage]] = []
        free = 0
        for choice in chosen:
            engines = tuple(range(free, free + choice.engines))
            free += choice.engines
            for number, (first, last) in enumerate(choice.group.spans):
                threads = round(values[choice.threads[number]]) if choice.threads else choice.group.threads
                ring = problem.ring
                if first:
                    memory = next(name for name, column in ring_columns[first - 1].items() if values[column] > 0.5)
                    ring = replace(ring, memory=memory)
                stages.append(
                    (
                        first,
                        Stage(
                            blocks=tuple(block.name for block in problem.blocks[first : last + 1]),
                            engines=engines,
                            threads=0 if threads == hardware else threads,
                            link=ring,
                        ),
                    )
                )
        memories = {state: memory for (state, memory), column in memory_columns.items() if values[column] > 0.5}
        return Mapping(
            name="optimum",
            problem=problem,
            stages=tuple(stage for _, stage in sorted(stages, key=lambda pair: pair[0])),
            states=tuple(replace(state, memory=memories[state.name]) for state in problem.states),
        )
