"""The integer program of a mapping: which blocks share engines, which memories hold states and rings.

A :class:`BlockGroup` is a set of blocks that run on the same engines. Consecutive blocks of a group form a stage,
which a thread runs to completion; rings carry frames between stages. A mapping selects groups so that each block is in
exactly one group, and gives each group a number of engines.

NP-Click's program (Plishker, Ravindran, Shah & Keutzer, Automated task allocation for network processors, NSDC 2004;
Shah, Plishker, Ravindran & Keutzer, NP-Click, IEEE Micro 24(5), 2004) assigns tasks to engines, with their states and
links, within the control stores, and minimises the makespan: the time that the most loaded engine needs for a frame.
This program fixes the makespan T instead. The constraints on replication, on the waits of threads and on memories are
linear for a fixed T only. With y for group g on r engines, z for state s in memory m, and u for ring k in memory o::

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

from routecast.plan._integer_program import TOLERANCE, IntegerProgram
from routecast.plan.mapping.model import Mapping, MappingProblem
from routecast.plan.network_processor.model import (
    InstructionRun,
    Link,
    Memory,
    Reference,
    Stage,
    occupancy_s,
    stage_steps,
)

__all__ = ["MappingProgram"]


Span = tuple[int, int]
"""First and last block of a stage, by number."""


@dataclass(frozen=True, slots=True)
class BlockGroup:
    """Blocks on the same engines, as stages; ``run_s`` is the engine time of each stage for a frame, s."""

    spans: tuple[Span, ...]
    threads: int
    run_s: tuple[float, ...]

    @property
    def blocks(self) -> tuple[int, ...]:
        """Numbers of the group's blocks."""
        return tuple(number for first, last in self.spans for number in range(first, last + 1))

    @property
    def work_s(self) -> float:
        """Engine time of all stages for a frame, s."""
        return sum(self.run_s)


@dataclass(frozen=True, slots=True)
class ReferenceCost:
    """The cost of a frame's references to a state in a memory: busy time of a channel and wait of the thread, s."""

    busy_s: float
    wait_s: float


def block_groups(problem: MappingProblem, *, limit_code: bool = True) -> list[BlockGroup]:
    """Return all groups whose code fits a control store; where registers spill, one group for each thread count."""
    engines, groups = problem.processor.engines, []
    spilling = engines.registers > 0 and any(
        block.registers > engines.registers // engines.threads for block in problem.blocks
    )
    thread_counts = sorted({engines.threads, *(1 << power for power in range(engines.threads.bit_length()))})
    for spans in _spans(len(problem.blocks), min(problem.max_stages, engines.threads)):
        words = sum(problem.blocks[n].code_words for first, last in spans for n in range(first, last + 1))
        if limit_code and engines.code_words and words > engines.code_words:
            continue
        for threads in thread_counts if spilling and len(spans) == 1 else [engines.threads]:
            if threads <= engines.threads:
                runs = tuple(_run_s(problem, span, threads) for span in spans)
                groups.append(BlockGroup(spans=spans, threads=threads, run_s=runs))
    return groups


def _spans(blocks: int, max_stages: int) -> Iterator[tuple[Span, ...]]:
    """Yield all sets of blocks that form at most ``max_stages`` stages: spans with a gap between them."""
    for stages in range(1, max_stages + 1):
        # Each span begins and ends, and the next begins at least one block later.
        for ends in combinations(range(blocks + stages), 2 * stages):
            spans = tuple((ends[2 * n] - n, ends[2 * n + 1] - 1 - n) for n in range(stages))
            has_gaps = all(before[1] + 1 < after[0] for before, after in pairwise(spans))
            if has_gaps and all(first <= last < blocks for first, last in spans):
                yield spans


def _run_s(problem: MappingProblem, span: Span, threads: int) -> float:
    first, last = span
    processor = problem.processor
    # The memory of a state or a ring changes waits, not instructions.
    ring = Link(put_cycles=problem.ring.put_cycles, get_cycles=problem.ring.get_cycles)
    block_steps, put_steps = stage_steps(
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
        for step in block_steps + put_steps
        if isinstance(step, InstructionRun)
    )
    return cycles / processor.engines.frequency_hz


def reference_costs(problem: MappingProblem) -> list[dict[tuple[str, str], ReferenceCost]]:
    """Return the cost of each block's references for a frame, by (state, memory)."""
    costs = []
    for block in problem.blocks:
        costs_of_block: dict[tuple[str, str], ReferenceCost] = {}
        for reference in block.references:
            for memory in problem.processor.memories:
                previous = costs_of_block.get((reference.state, memory.name), ReferenceCost(0.0, 0.0))
                added = _reference_cost(problem, reference, memory)
                costs_of_block[reference.state, memory.name] = ReferenceCost(
                    previous.busy_s + added.busy_s, previous.wait_s + added.wait_s
                )
        costs.append(costs_of_block)
    return costs


def _reference_cost(problem: MappingProblem, reference: Reference, memory: Memory) -> ReferenceCost:
    access_s = occupancy_s(memory, reference.access_bytes)
    busy_s = (reference.accesses + reference.accesses_per_byte * problem.frame_bytes) * access_s
    if busy_s <= 0.0:
        return ReferenceCost(0.0, 0.0)
    waits = float(reference.waits)
    if not reference.accesses_per_byte:
        waits = min(waits, reference.accesses)
    return ReferenceCost(busy_s, busy_s + waits * max(memory.latency_s - access_s, 0.0))


def ring_cost(problem: MappingProblem, name: str) -> ReferenceCost:
    """Return the cost of a put or get on a ring in the named memory; "" names the registers of the next engine."""
    if not name:
        return ReferenceCost(0.0, 0.0)
    memory = next(memory for memory in problem.processor.memories if memory.name == name)
    busy_s = occupancy_s(memory, problem.ring.access_bytes)
    return ReferenceCost(busy_s, max(memory.latency_s, busy_s))


_ROUNDING = TOLERANCE


@dataclass(frozen=True, slots=True)
class _Choice:
    """A group on a number of engines; ``threads`` are the columns of each stage's threads, empty for a single stage."""

    group: BlockGroup
    engines: int
    column: int
    threads: tuple[int, ...]


class MappingProgram:
    """The integer program of a problem; each call of ``find_mapping`` solves it for one throughput."""

    def __init__(self, problem: MappingProblem, *, limit_code: bool = True, limit_capacity: bool = True) -> None:
        self.problem = problem
        self.groups = block_groups(problem, limit_code=limit_code)
        self.programs_solved = 0
        self._costs = reference_costs(problem)
        self._limit_capacity = limit_capacity

    def find_mapping(self, target_pps: float, seconds: float, *, spare_ratio: float = 0.0) -> Mapping | None:
        """Return the mapping on the fewest engines that carries ``target_pps``; None if no mapping does.

        ``spare_ratio`` is the share of threads beyond those that the waits need. Raises Undecided after ``seconds``.
        """
        problem, makespan_s = self.problem, 1.0 / target_pps
        program = IntegerProgram(mip_rel_gap=0.0)
        self.programs_solved += 1
        memory_columns = self._add_states(program, makespan_s)
        if memory_columns is None:
            return None
        thread_makespan_s = makespan_s / (1.0 + spare_ratio)
        choices = self._add_choices(program, makespan_s, thread_makespan_s)
        covering: list[dict[int, float]] = [{} for _ in problem.blocks]
        for choice in choices:
            for block in choice.group.blocks:
                covering[block][choice.column] = 1.0
        if not all(covering):
            return None
        for entries in covering:
            program.add_row(entries, 1.0, 1.0)
        program.add_row(
            {choice.column: float(choice.engines) for choice in choices}, 0.0, float(problem.processor.engines.count)
        )
        ring_columns = self._add_rings(program, choices)
        self._limit_memories(program, memory_columns, ring_columns, makespan_s)
        self._limit_threads(program, choices, memory_columns, ring_columns, thread_makespan_s)
        solution = program.solve(seconds)
        return None if solution is None else self._mapping_of(solution.values, choices, memory_columns, ring_columns)

    def _add_states(self, program: IntegerProgram, makespan_s: float) -> dict[tuple[str, str], int] | None:
        """Add a column for each state in each memory; return None if a state fits into no memory."""
        memories, memory_columns = self.problem.processor.memories, {}
        for state in self.problem.states:
            allowed = [
                memory.name
                for memory in memories
                if (state.name in self.problem.movable or memory.name == state.memory)
                and not (self._limit_capacity and memory.capacity_bytes and state.size_bytes > memory.capacity_bytes)
            ]
            if not allowed:
                return None
            for name in allowed:
                memory_columns[state.name, name] = program.add_column()
            program.add_row({memory_columns[state.name, name]: 1.0 for name in allowed}, 1.0, 1.0)
        return memory_columns

    def _add_choices(self, program: IntegerProgram, makespan_s: float, thread_makespan_s: float) -> list[_Choice]:
        """Add a column for each group on each number of engines that can reach the makespan."""
        count, choices = self.problem.processor.engines.count, []
        hardware_threads = self.problem.processor.engines.threads
        for group in self.groups:
            min_engines = max(math.ceil(group.work_s / makespan_s * (1.0 - _ROUNDING)), 1)
            for engines in range(min_engines, count + 1):
                best_s, worst_s = self._thread_times_s(group)
                thread_time_s = engines * thread_makespan_s
                min_threads = sum(
                    max(math.ceil(thread_s / thread_time_s * (1.0 - _ROUNDING)), 1) for thread_s in best_s
                )
                if min_threads <= group.threads:
                    column = program.add_column(cost=float(engines))
                    thread_columns: tuple[int, ...] = ()
                    if len(group.spans) > 1:
                        thread_columns = tuple(program.add_column(float(hardware_threads)) for _ in group.spans)
                        program.add_row(
                            {**dict.fromkeys(thread_columns, 1.0), column: -float(hardware_threads)}, -math.inf, 0.0
                        )
                        for threads_column in thread_columns:
                            program.add_row({threads_column: 1.0, column: -1.0}, 0.0, math.inf)
                    choices.append(_Choice(group, engines, column, thread_columns))
                max_threads = sum(
                    max(math.ceil(thread_s / thread_time_s * (1.0 + _ROUNDING)), 1) for thread_s in worst_s
                )
                if max_threads <= group.threads:
                    # With so many engines the threads suffice in the worst case.
                    break
        return choices

    def _thread_times_s(self, group: BlockGroup) -> tuple[list[float], list[float]]:
        """Return the least and the greatest time that a frame holds a thread of each stage, s, over all memories."""
        ring_waits_s = [ring_cost(self.problem, name).wait_s for name in self.problem.rings]
        best_s, worst_s = [], []
        for (first, last), run_s in zip(group.spans, group.run_s, strict=True):
            ring_ends = (first > 0) + (last + 1 < len(self.problem.blocks))
            low_s, high_s = run_s + ring_ends * min(ring_waits_s), run_s + ring_ends * max(ring_waits_s)
            for block in range(first, last + 1):
                for state in {name for name, _ in self._costs[block]}:
                    waits_s = [cost.wait_s for (name, _), cost in self._costs[block].items() if name == state]
                    low_s, high_s = low_s + min(waits_s), high_s + max(waits_s)
            best_s.append(low_s)
            worst_s.append(high_s)
        return best_s, worst_s

    def _add_rings(self, program: IntegerProgram, choices: Sequence[_Choice]) -> list[dict[str, int]]:
        """Add a column for each ring between consecutive blocks in each memory."""
        ring_columns = []
        for block in range(len(self.problem.blocks) - 1):
            options = {name: program.add_column() for name in self.problem.rings}
            joining_columns = {
                choice.column: 1.0
                for choice in choices
                if any(first <= block < last for first, last in choice.group.spans)
            }
            program.add_row({**dict.fromkeys(options.values(), 1.0), **joining_columns}, 1.0, 1.0)
            # Where the file gives its ring no memory, rings are not modelled and registers may join any stages.
            if "" in options and (len(options) > 1 or self.problem.ring.memory):
                for side in (block, block + 1):
                    single_engine_columns = {
                        choice.column: -1.0
                        for choice in choices
                        if choice.engines == 1 and len(choice.group.spans) == 1 and side in choice.group.blocks
                    }
                    program.add_row({options[""]: 1.0, **single_engine_columns}, -math.inf, 0.0)
            ring_columns.append(options)
        return ring_columns

    def _limit_memories(
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
                        costs[state.name, memory.name].busy_s
                        for costs in self._costs
                        if (state.name, memory.name) in costs
                    )
                    size[column] = float(state.size_bytes)
            for options in ring_columns:
                if memory.name in options:
                    busy[options[memory.name]] = 2.0 * ring_cost(self.problem, memory.name).busy_s
                    size[options[memory.name]] = float(ring.frames * ring.access_bytes)
            if busy:
                # Entries relative to the memory's limits keep rounding errors below the tolerance.
                scale = 1.0 / (memory.channels * makespan_s)
                program.add_row({column: busy_s * scale for column, busy_s in busy.items()}, 0.0, 1.0 + _ROUNDING)
                if memory.capacity_bytes and self._limit_capacity:
                    parts = {column: size_bytes / memory.capacity_bytes for column, size_bytes in size.items()}
                    program.add_row(parts, 0.0, 1.0 + _ROUNDING)

    def _limit_threads(
        self,
        program: IntegerProgram,
        choices: Sequence[_Choice],
        memory_columns: dict[tuple[str, str], int],
        ring_columns: Sequence[dict[str, int]],
        thread_makespan_s: float,
    ) -> None:
        for choice in choices:
            _, worst_s = self._thread_times_s(choice.group)
            thread_time_s = choice.engines * thread_makespan_s
            for number, (span, run_s) in enumerate(zip(choice.group.spans, choice.group.run_s, strict=True)):
                if not choice.threads and worst_s[number] <= choice.group.threads * thread_time_s:
                    continue
                waits = self._wait_coefficients(span, memory_columns, ring_columns)
                entries = {column: wait_s / thread_time_s for column, wait_s in waits.items()}
                max_threads = worst_s[number] / thread_time_s
                run_threads = run_s / thread_time_s
                # The row binds only if the group is chosen: otherwise the right side allows the worst case.
                if choice.threads:
                    entries[choice.threads[number]] = -1.0
                    entries[choice.column] = max_threads
                    program.add_row(entries, -math.inf, max_threads - run_threads + _ROUNDING)
                else:
                    entries[choice.column] = max_threads - choice.group.threads
                    program.add_row(entries, -math.inf, max_threads - run_threads + _ROUNDING)

    def _wait_coefficients(
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

    def _mapping_of(
        self,
        values: Sequence[float],
        choices: Sequence[_Choice],
        memory_columns: dict[tuple[str, str], int],
        ring_columns: Sequence[dict[str, int]],
    ) -> Mapping:
        problem, hardware_threads = self.problem, self.problem.processor.engines.threads
        chosen = sorted(
            (choice for choice in choices if values[choice.column] > 0.5), key=lambda choice: choice.group.spans[0][0]
        )
        stages: list[tuple[int, Stage]] = []
        next_engine = 0
        for choice in chosen:
            engines = tuple(range(next_engine, next_engine + choice.engines))
            next_engine += choice.engines
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
                            threads=0 if threads == hardware_threads else threads,
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
