"""The integer program: which crews on how many engines, which state in which memory, which ring where.

NP-Click's program (Plishker, Ravindran, Shah & Keutzer, Automated task allocation for network processors, NSDC 2004;
Shah, Plishker, Ravindran & Keutzer, NP-Click, IEEE Micro 24(5), 2004) assigns tasks to engines, with their states and
links, under control stores, for the least makespan: the time that the most loaded engine needs for a frame. Here it is
asked the other way round, for a makespan T given: then replication over engines, the waits of threads and the choice of
memories are linear, which they are not together with an unknown T. For crew c on r engines, state s in memory m, ring k
by o::

    each block in one crew                    sum of y[c,r] over crews of the block         = 1
    engines enough                            sum of r·y[c,r]                              <= engines        (minimised)
    no engine works longer than T             y[c,r] only where work[c] <= r·T
    each state in one memory                  sum of z[s,m] over m                          = 1
    capacity                                  sum of size[s]·z[s,m] + rings there          <= capacity[m]
    bandwidth                                 sum of busy[s,m]·z[s,m] + 2·busy·u[k,m]      <= channels[m]·T
    a ring where two stages meet              sum of u[k,o] over o = 1 - crews that keep blocks k, k+1 together
    threads hide no more than there are       run + waits(z, u) <= t[c,stage]·r·T where y[c,r] = 1, sum of t <= threads
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import highspy
import numpy as np

from routecast.plan.mapping.model import Mapping, MappingProblem
from routecast.router.network_processor.model import InstructionRun, Link, Reference, Stage, occupancy_s, steps_of

__all__ = ["Program", "Undecided"]


# Crews: blocks that engines could run together, with what that costs.
#
# A *crew* is a set of blocks; each of its engines runs all of them. Blocks that follow each other are one stage, which
# a thread runs to completion; frames go between stages by rings. A mapping picks crews so that each block is in one,
# with
# a number of engines for each.


Span = tuple[int, int]
"""First and last block of a stage, by number."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Blocks on the same engines.

    Parameters
    ----------
    spans : tuple of Span
        Its stages.
    threads : int
        Active on each engine, over all stages.
    run_s : tuple of float
        By stage: seconds that an engine works for a frame, rings included.
    """

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
class Hold:
    """What a reference costs with its state in some memory, for a frame: busy time of a channel, wait of the thread."""

    busy_s: float
    wait_s: float


def crews_of(problem: MappingProblem, *, limit_code: bool = True) -> list[Crew]:
    """Return all crews whose programs fit into a control store, with several numbers of threads where that matters."""
    engines, found = problem.processor.engines, []
    spilling = engines.registers > 0 and any(
        block.registers > engines.registers // engines.threads for block in problem.blocks
    )
    some = sorted({engines.threads, *(1 << power for power in range(engines.threads.bit_length()))})
    for spans in _spans(len(problem.blocks), min(problem.most_stages, engines.threads)):
        words = sum(problem.blocks[n].code_words for first, last in spans for n in range(first, last + 1))
        if limit_code and engines.code_words and words > engines.code_words:
            continue
        for threads in some if spilling and len(spans) == 1 else [engines.threads]:
            if threads <= engines.threads:
                runs = tuple(_run_s(problem, span, threads) for span in spans)
                found.append(Crew(spans=spans, threads=threads, run_s=runs))
    return found


def _spans(blocks: int, most: int) -> Iterator[tuple[Span, ...]]:
    """Return all sets of blocks that are at most so many stages: spans with a gap between them."""
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
    # Where a state or a ring is changes waits, not instructions.
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


def holds_of(problem: MappingProblem) -> list[dict[tuple[str, str], Hold]]:
    """Return by block, state and memory what the block's references to the state cost a frame there."""
    found = []
    for block in problem.blocks:
        mine: dict[tuple[str, str], Hold] = {}
        for reference in block.references:
            for memory in problem.processor.memories:
                before = mine.get((reference.state, memory.name), Hold(0.0, 0.0))
                one = _hold(problem, reference, memory.name)
                mine[reference.state, memory.name] = Hold(before.busy_s + one.busy_s, before.wait_s + one.wait_s)
        found.append(mine)
    return found


def _hold(problem: MappingProblem, reference: Reference, name: str) -> Hold:
    memory = next(one for one in problem.processor.memories if one.name == name)
    each_s = occupancy_s(memory, reference.access_bytes)
    busy_s = (reference.accesses + reference.accesses_per_byte * problem.frame_bytes) * each_s
    if busy_s <= 0.0:
        return Hold(0.0, 0.0)
    times = float(reference.waits)
    if not reference.accesses_per_byte:
        times = min(times, reference.accesses)
    return Hold(busy_s, busy_s + times * max(memory.latency_s - each_s, 0.0))


def ring_busy_s(problem: MappingProblem, memory: str) -> float:
    """Return how long a put or a get keeps a channel busy."""
    if not memory:
        return 0.0
    one = next(one for one in problem.processor.memories if one.name == memory)
    return occupancy_s(one, problem.ring.access_bytes)


def ring_wait_s(problem: MappingProblem, memory: str) -> float:
    """Return how long a put or a get keeps a thread."""
    if not memory:
        return 0.0
    one = next(one for one in problem.processor.memories if one.name == memory)
    return max(one.latency_s, ring_busy_s(problem, memory))


_ROUNDING = 1e-9


class Undecided(Exception):
    """The time was over before there was an answer."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A crew on a number of engines; ``threads`` are the columns of each stage's threads where they are free."""

    crew: Crew
    engines: int
    column: int
    threads: tuple[int, ...]


class _Rows:
    """A program as it grows, column by column and row by row."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.upper: list[float] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def column(self, cost: float = 0.0, upper: float = 1.0) -> int:
        self.cost.append(cost)
        self.upper.append(upper)
        return len(self.cost) - 1

    def row(self, entries: dict[int, float], low: float, high: float) -> None:
        self.rows.append((entries, low, high))

    def solve(self, seconds: float) -> list[float] | None:
        """Return the values of all columns; None if there are none."""
        model = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy types all but its constructor
        model.silent()
        model.setOptionValue("threads", 1)
        model.setOptionValue("time_limit", max(seconds, 0.05))
        model.setOptionValue("mip_rel_gap", 0.0)
        model.setOptionValue("mip_feasibility_tolerance", _ROUNDING)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self.rows)
        lp.col_cost_ = np.array(self.cost)
        lp.col_lower_ = np.zeros(len(self.cost))
        lp.col_upper_ = np.array(self.upper)
        lp.row_lower_ = np.array([low for _, low, _ in self.rows])
        lp.row_upper_ = np.array([high for _, _, high in self.rows])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = lp.num_col_, lp.num_row_
        lp.a_matrix_.start_ = np.cumsum([0, *(len(entries) for entries, _, _ in self.rows)])
        lp.a_matrix_.index_ = np.array([column for entries, _, _ in self.rows for column in entries], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([value for entries, _, _ in self.rows for value in entries.values()])
        lp.integrality_ = [highspy.HighsVarType.kInteger] * lp.num_col_
        model.passModel(lp)
        model.run()
        status = model.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise Undecided
        return list(model.getSolution().col_value)


class Program:
    """The program of one problem, asked for one throughput after the other.

    Parameters
    ----------
    limit_code, limit_capacity : bool
        Whether control stores and memories hold only so much; without one of them it is told what the other asks for.
    """

    def __init__(self, problem: MappingProblem, *, limit_code: bool = True, limit_capacity: bool = True) -> None:
        self.problem = problem
        self.crews = crews_of(problem, limit_code=limit_code)
        self.solved = 0
        self._holds = holds_of(problem)
        self._limit_capacity = limit_capacity

    def mapping(self, target_pps: float, seconds: float, *, spare: float = 0.0) -> Mapping | None:
        """Return a mapping that carries a rate, on the fewest engines; None if there is none.

        Parameters
        ----------
        target_pps : float
        seconds : float
            Search no longer.
        spare : float
            How many more threads there must be than waits ask for, as a part of those.

        Raises
        ------
        Undecided
            The time was over.
        """
        problem, makespan_s = self.problem, 1.0 / target_pps
        rows = _Rows()
        self.solved += 1
        places = self._states(rows, makespan_s)
        if places is None:
            return None
        hidden_s = makespan_s / (1.0 + spare)
        choices = self._choices(rows, makespan_s, hidden_s)
        covering: list[dict[int, float]] = [{} for _ in problem.blocks]
        for one in choices:
            for block in one.crew.blocks:
                covering[block][one.column] = 1.0
        if not all(covering):
            return None
        for entries in covering:
            rows.row(entries, 1.0, 1.0)
        rows.row({one.column: float(one.engines) for one in choices}, 0.0, float(problem.processor.engines.count))
        links = self._links(rows, choices)
        self._memories(rows, places, links, makespan_s)
        self._threads(rows, choices, places, links, hidden_s)
        values = rows.solve(seconds)
        return None if values is None else self._mapping(values, choices, places, links)

    def _states(self, rows: _Rows, makespan_s: float) -> dict[tuple[str, str], int] | None:
        """Add the choice of a memory for each state."""
        memories, places = self.problem.processor.memories, {}
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
                places[state.name, name] = rows.column()
            rows.row({places[state.name, name]: 1.0 for name in free}, 1.0, 1.0)
        return places

    def _choices(self, rows: _Rows, makespan_s: float, hidden_s: float) -> list[_Choice]:
        """Add crews with the numbers of engines that could do."""
        count, choices = self.problem.processor.engines.count, []
        hardware = self.problem.processor.engines.threads
        for crew in self.crews:
            least = max(math.ceil(crew.work_s / makespan_s * (1.0 - _ROUNDING)), 1)
            for engines in range(least, count + 1):
                best, worst = self._held_s(crew)
                room_s = engines * hidden_s
                fewest = sum(max(math.ceil(one / room_s * (1.0 - _ROUNDING)), 1) for one in best)
                if fewest <= crew.threads:
                    column = rows.column(float(engines))
                    free: tuple[int, ...] = ()
                    if len(crew.spans) > 1:
                        free = tuple(rows.column(0.0, float(hardware)) for _ in crew.spans)
                        rows.row({**dict.fromkeys(free, 1.0), column: -float(hardware)}, -math.inf, 0.0)
                        for one in free:
                            rows.row({one: 1.0, column: -1.0}, 0.0, math.inf)
                    choices.append(_Choice(crew, engines, column, free))
                most = sum(max(math.ceil(one / room_s * (1.0 + _ROUNDING)), 1) for one in worst)
                if most <= crew.threads:
                    # More engines would help nobody.
                    break
        return choices

    def _held_s(self, crew: Crew) -> tuple[list[float], list[float]]:
        """Return how long a frame keeps a thread of each stage, at best and at worst."""
        rings = [ring_wait_s(self.problem, name) for name in self.problem.rings]
        best, worst = [], []
        for (first, last), run_s in zip(crew.spans, crew.run_s, strict=True):
            ends = (first > 0) + (last + 1 < len(self.problem.blocks))
            low, high = run_s + ends * min(rings), run_s + ends * max(rings)
            for block in range(first, last + 1):
                for state in {name for name, _ in self._holds[block]}:
                    waits = [hold.wait_s for (name, _), hold in self._holds[block].items() if name == state]
                    low, high = low + min(waits), high + max(waits)
            best.append(low)
            worst.append(high)
        return best, worst

    def _links(self, rows: _Rows, choices: Sequence[_Choice]) -> list[dict[str, int]]:
        """Add the choice of a ring between each block and the next one."""
        links = []
        for block in range(len(self.problem.blocks) - 1):
            options = {name: rows.column() for name in self.problem.rings}
            together = {
                one.column: 1.0 for one in choices if any(first <= block < last for first, last in one.crew.spans)
            }
            rows.row({**dict.fromkeys(options.values(), 1.0), **together}, 1.0, 1.0)
            if "" in options and len(options) > 1:
                for side in (block, block + 1):
                    near = {
                        one.column: -1.0
                        for one in choices
                        if one.engines == 1 and len(one.crew.spans) == 1 and side in one.crew.blocks
                    }
                    rows.row({options[""]: 1.0, **near}, -math.inf, 0.0)
            links.append(options)
        return links

    def _memories(
        self, rows: _Rows, places: dict[tuple[str, str], int], links: Sequence[dict[str, int]], makespan_s: float
    ) -> None:
        ring = self.problem.ring
        for memory in self.problem.processor.memories:
            busy: dict[int, float] = {}
            size: dict[int, float] = {}
            for state in self.problem.states:
                column = places.get((state.name, memory.name))
                if column is not None:
                    busy[column] = sum(
                        holds[state.name, memory.name].busy_s
                        for holds in self._holds
                        if (state.name, memory.name) in holds
                    )
                    size[column] = float(state.size_bytes)
            for options in links:
                if memory.name in options:
                    busy[options[memory.name]] = 2.0 * ring_busy_s(self.problem, memory.name)
                    size[options[memory.name]] = float(ring.frames * ring.access_bytes)
            if busy:
                # In parts of what the memory can do, lest rounding decide.
                scale = 1.0 / (memory.channels * makespan_s)
                rows.row({column: one * scale for column, one in busy.items()}, 0.0, 1.0 + _ROUNDING)
                if memory.capacity_bytes and self._limit_capacity:
                    parts = {column: one / memory.capacity_bytes for column, one in size.items()}
                    rows.row(parts, 0.0, 1.0 + _ROUNDING)

    def _threads(
        self,
        rows: _Rows,
        choices: Sequence[_Choice],
        places: dict[tuple[str, str], int],
        links: Sequence[dict[str, int]],
        hidden_s: float,
    ) -> None:
        for one in choices:
            _, worst = self._held_s(one.crew)
            room_s = one.engines * hidden_s
            for number, (span, run_s) in enumerate(zip(one.crew.spans, one.crew.run_s, strict=True)):
                if not one.threads and worst[number] <= one.crew.threads * room_s:
                    continue
                waits = self._waits(span, places, links)
                entries = {column: wait_s / room_s for column, wait_s in waits.items()}
                most = worst[number] / room_s
                run = run_s / room_s
                # The row holds only where the crew is chosen: else it may be as long as it is at worst.
                if one.threads:
                    entries[one.threads[number]] = -1.0
                    entries[one.column] = most
                    rows.row(entries, -math.inf, most - run + _ROUNDING)
                else:
                    entries[one.column] = most - one.crew.threads
                    rows.row(entries, -math.inf, most - run + _ROUNDING)

    def _waits(
        self, span: tuple[int, int], places: dict[tuple[str, str], int], links: Sequence[dict[str, int]]
    ) -> dict[int, float]:
        first, last = span
        waits: dict[int, float] = {}
        for block in range(first, last + 1):
            for (state, memory), hold in self._holds[block].items():
                column = places.get((state, memory))
                if column is not None:
                    waits[column] = waits.get(column, 0.0) + hold.wait_s
        for end in (first - 1, last):
            if 0 <= end < len(links):
                for name, column in links[end].items():
                    waits[column] = waits.get(column, 0.0) + ring_wait_s(self.problem, name)
        return waits

    def _mapping(
        self,
        values: Sequence[float],
        choices: Sequence[_Choice],
        places: dict[tuple[str, str], int],
        links: Sequence[dict[str, int]],
    ) -> Mapping:
        problem, hardware = self.problem, self.problem.processor.engines.threads
        chosen = sorted((one for one in choices if values[one.column] > 0.5), key=lambda one: one.crew.spans[0][0])
        stages: list[tuple[int, Stage]] = []
        free = 0
        for one in chosen:
            engines = tuple(range(free, free + one.engines))
            free += one.engines
            for number, (first, last) in enumerate(one.crew.spans):
                threads = round(values[one.threads[number]]) if one.threads else one.crew.threads
                ring = problem.ring
                if first:
                    memory = next(name for name, column in links[first - 1].items() if values[column] > 0.5)
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
        memories = {state: memory for (state, memory), column in places.items() if values[column] > 0.5}
        return Mapping(
            name="optimum",
            problem=problem,
            stages=tuple(stage for _, stage in sorted(stages, key=lambda pair: pair[0])),
            states=tuple(replace(state, memory=memories[state.name]) for state in problem.states),
        )
