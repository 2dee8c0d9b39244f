"""Crews: blocks that engines could run together, with what that costs.

A *crew* is a set of blocks; each of its engines runs all of them. Blocks that follow each other are one stage, which
a thread runs to completion; frames go between stages by rings. A mapping picks crews so that each block is in one, with
a number of engines for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from routecast.plan.mapping.model import MappingProblem
from routecast.router.network_processor.model import Link, Reference, Stage
from routecast.router.network_processor.steps import Run, occupancy_s, steps_of

__all__ = ["Crew", "Hold", "crews_of", "holds_of", "ring_busy_s", "ring_wait_s"]

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
        if isinstance(step, Run)
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
                mine[reference.state, memory.name] = Hold(
                    before.busy_s + one.busy_s, before.wait_s + one.wait_s
                )
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
