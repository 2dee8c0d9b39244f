"""Checks of the blocks, states, stages and slices on a network processor; all faults are reported together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from routecast.errors import Problem
from routecast.plan.network_processor.model import Block, LineCard, NetworkProcessor, Slice, Stage, State
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import faults_in, field_faults

__all__ = ["parts_problems", "problems_of", "stage_threads"]

Add = Callable[[str, str], None]

_SHARES_SUM_TO = 1e-6


def stage_threads(stage: Stage, processor: NetworkProcessor) -> int:
    """Return the active threads of a stage on each of its engines."""
    return stage.threads or processor.engines.threads


def problems_of(
    processor: NetworkProcessor,
    blocks: Sequence[Block],
    states: Sequence[State],
    stages: Sequence[Stage],
    slices: Sequence[Slice],
    line_card: LineCard | None = None,
) -> list[Problem]:
    """Return the problems of a router on a network processor."""
    problems = parts_problems(processor, blocks, states)
    faults = faults_in("stage", stages) + faults_in("slice", slices)
    faults += field_faults(line_card, "line_card") if line_card is not None else []
    problems += faults

    def add(place: str, message: str) -> None:
        problems.append(Problem(place, message))

    if faults or field_faults(processor) or any(map(field_faults, (*blocks, *states))):
        return problems
    memories = {memory.name: memory for memory in processor.memories}
    _check_stages(processor, {block.name: block for block in blocks}, stages, memories, add)
    _check_engines(processor, {block.name: block for block in blocks}, stages, add)
    _check_capacities(processor, states, stages, add)
    _check_slices(slices, [block.name for block in blocks], add)
    return problems


def parts_problems(processor: NetworkProcessor, blocks: Sequence[Block], states: Sequence[State]) -> list[Problem]:
    """Return the problems of the parts, independent of the stages."""
    problems = field_faults(processor, "processor") + faults_in("state", states) + faults_in("block", blocks)

    def add(place: str, message: str) -> None:
        problems.append(Problem(place, message))

    for index, memory in enumerate(processor.memories):
        if memory.name.startswith("engine "):
            message = f'got "{memory.name}": names that begin with "engine" are those of engines'
            add(f"processor.memory[{index}].name", message)
    _check_unique("processor.memory", [memory.name for memory in processor.memories], add)
    _check_states(states, {memory.name: memory for memory in processor.memories}, add)
    _check_blocks(blocks, [state.name for state in states], add)
    return problems


def _check_states(states: Sequence[State], memories: Mapping[str, object], add: Add) -> None:
    _check_unique("state", [state.name for state in states], add)
    for index, state in enumerate(states):
        if state.memory not in memories:
            add(f"state[{index}].memory", f'"{state.memory}" is no memory: {did_you_mean(state.memory, memories)}')


def _check_capacities(processor: NetworkProcessor, states: Sequence[State], stages: Sequence[Stage], add: Add) -> None:
    """Check that memories have room for their states and rings."""
    links = [stage.link for stage in stages[1:]]  # the first stage has the receive buffer instead
    for memory in processor.memories:
        states_bytes = sum(state.size_bytes for state in states if state.memory == memory.name)
        rings_bytes = sum(link.frames * link.access_bytes for link in links if link.memory == memory.name)
        if memory.capacity_bytes and states_bytes + rings_bytes > memory.capacity_bytes:
            used_text = f"{states_bytes:,} bytes of states" + (f" and {rings_bytes:,} of rings" if rings_bytes else "")
            usage = f"{used_text} in {memory.capacity_bytes:,} bytes"
            add(
                "state" if states_bytes else "stage[1].link.memory",
                f'"{memory.name}" is too small: {usage}; move one or make it smaller',
            )


def _check_blocks(blocks: Sequence[Block], states: Collection[str], add: Add) -> None:
    _check_unique("block", [block.name for block in blocks], add)
    for index, block in enumerate(blocks):
        at = f"block[{index}]"
        for number, reference in enumerate(block.references):
            here = f"{at}.references[{number}]"
            if reference.state not in states:
                suggestion = did_you_mean(reference.state, states)
                add(f"{here}.state", f'"{reference.state}" is no state: {suggestion}')


def _check_stages(
    processor: NetworkProcessor,
    blocks: Mapping[str, Block],
    stages: Sequence[Stage],
    memories: Mapping[str, object],
    add: Add,
) -> None:
    if not stages:
        add("stage", "is missing: give stages that together run all blocks")
    placed: dict[str, str] = {}
    for index, stage in enumerate(stages):
        at = f"stage[{index}]"
        if not stage.blocks:
            add(f"{at}.blocks", "is empty: name the blocks that its threads run")
        for number, name in enumerate(stage.blocks):
            if name not in blocks:
                add(f"{at}.blocks[{number}]", f'"{name}" is no block: {did_you_mean(name, blocks)}')
            elif name in placed:
                add(f"{at}.blocks[{number}]", f'"{name}" is already in {placed[name]}: a block belongs to one stage')
            placed.setdefault(name, at)
        if not stage.engines:
            add(f"{at}.engines", "is empty: name the engines that run it, numbered from 0")
        _check_unique(f"{at}.engines", [str(engine) for engine in stage.engines], add)
        for number, engine in enumerate(stage.engines):
            if not 0 <= engine < processor.engines.count:
                available = f"{processor.name} has {processor.engines.count}, numbered from 0"
                add(f"{at}.engines[{number}]", f"got {engine}: {available}")
        if stage.threads > processor.engines.threads:
            available = f"an engine of {processor.name} has {processor.engines.threads}"
            add(f"{at}.threads", f"got {stage.threads}: {available}")
        link = stage.link
        if link.memory and link.memory not in memories:
            add(f"{at}.link.memory", f'"{link.memory}" is no memory: {did_you_mean(link.memory, memories)}')
    for name in blocks:
        if name not in placed:
            add("stage", f'no stage runs "{name}": add it to the blocks of one, or leave the block out')


def _check_engines(processor: NetworkProcessor, blocks: Mapping[str, Block], stages: Sequence[Stage], add: Add) -> None:
    """Check that the threads of an engine's stages fit its contexts, and their programs its control store."""
    engines = processor.engines
    for engine in sorted({number for stage in stages for number in stage.engines}):
        here = [index for index, stage in enumerate(stages) if engine in stage.engines]
        threads = sum(stage_threads(stages[index], processor) for index in here)
        if threads > engines.threads and len(here) > 1:
            sum_text = " + ".join(str(stage_threads(stages[index], processor)) for index in here)
            add(
                f"stage[{here[-1]}].threads",
                f"engine {engine} then runs {sum_text} = {threads} threads, but has {engines.threads}: say how many "
                "each stage may use, or give it engines of its own",
            )
        words = sum(blocks[name].code_words for index in here for name in stages[index].blocks if name in blocks)
        if engines.code_words and words > engines.code_words:
            add(
                f"stage[{here[-1]}].engines",
                f"the programs on engine {engine} have {words} instructions, but its control store holds "
                f"{engines.code_words}: move a block to another engine",
            )


def _check_slices(slices: Sequence[Slice], blocks: Collection[str], add: Add) -> None:
    _check_unique("slice", [part.name for part in slices], add)
    for index, part in enumerate(slices):
        at = f"slice[{index}]"
        for name in part.cycles_ratio:
            if name not in blocks:
                add(f"{at}.cycles_ratio.{name}", f'"{name}" is no block: {did_you_mean(name, blocks)}')
    total = math.fsum(part.share for part in slices)
    if slices and abs(total - 1.0) > _SHARES_SUM_TO:
        add("slice", f"shares add up to {total:g}: they are shares of all the traffic and add up to 1")


def _check_unique(place: str, names: Iterable[str], add: Add) -> None:
    counted = Counter(names)
    for name, times in counted.items():
        if not name.strip():
            add(f"{place}.name", "is empty: give it a name")
        elif times > 1:
            add(place, f'"{name}" is given {times} times: names must differ')
