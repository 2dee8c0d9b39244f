"""What a thread does for a frame in a stage: runs of instructions, and waits for memories between them.

::

    ring ─► get │ wait ring │ run parse │ wait dram │ run parse, lookup │ wait sram │ run lookup, put │ wait ring ─►

A block's instructions are spread evenly over the runs before, between and after its waits. References of a block to
the same memory are one step, as long as their waits together: where in a block a thread waits, and in how many pieces,
moves none of the bounds on throughput (:mod:`routecast.router.network_processor.expectation`), and fewer steps are
evaluated sooner.

Fractions are averages: 0.3 accesses with one wait cost each frame 0.3 of the access and 0.3 of the wait. Accesses with
no wait are issued ahead (prefetching, posted writes): they hold the thread only while the channel takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from routecast.router.network_processor.model import (
    Block,
    Link,
    Memory,
    NetworkProcessor,
    Reference,
    Stage,
    State,
)

__all__ = ["Run", "Step", "Wait", "block_cycles", "joined", "occupancy_s", "steps_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Instructions on the engine, ``cycles + cycles_per_byte·S`` of them for a frame of ``S`` bytes."""

    block: str
    cycles: float
    cycles_per_byte: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Accesses to a memory: a channel is busy with them, and then the thread waits for the rest of the latency.

    Parameters
    ----------
    block, memory : str
    busy_s : float
        That a channel is busy for a frame, whatever its size.
    busy_s_per_byte : float
        Besides, for each byte of the frame.
    rest_s : float
        What the thread waits beyond that, where nobody else uses the memory.
    """

    block: str
    memory: str
    busy_s: float
    busy_s_per_byte: float = 0.0
    rest_s: float = 0.0


Step = Run | Wait


def occupancy_s(memory: Memory, access_bytes: int) -> float:
    """Return how long one access keeps a channel of a memory busy."""
    return max(access_bytes, memory.least_bytes) / memory.bytes_per_s


def block_cycles(block: Block, processor: NetworkProcessor, active_threads: int) -> float:
    """Return the cycles of a block for a frame, with what it spills where threads have too few registers each."""
    engines = processor.engines
    if not engines.registers:
        return block.cycles
    missing = max(0.0, block.registers - engines.registers // max(active_threads, 1))
    return block.cycles + missing * engines.spill_cycles


def steps_of(
    stage: Stage,
    *,
    processor: NetworkProcessor,
    blocks: Mapping[str, Block],
    states: Mapping[str, State],
    active_threads: int,
    source: Link | None,
    target: Link | None,
    ratios: Mapping[str, float] | None = None,
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return what a thread of a stage does for a frame until its blocks are done, and how it hands the frame on.

    Parameters
    ----------
    stage : Stage
    processor : NetworkProcessor
    blocks, states : mapping
        By name.
    active_threads : int
        Of all stages on the engine, which share its registers.
    source : Link or None
        The ring that the frame comes by; None: the receive buffer, from which it costs nothing to take it.
    target : Link or None
        The ring that it goes on by; None: a port.
    ratios : mapping of str to float or None
        Cycles of blocks relative to their own (:attr:`Slice.cycles_ratio`).
    """
    memories = {memory.name: memory for memory in processor.memories}
    first, last = stage.blocks[0], stage.blocks[-1]
    steps: list[Step] = list(_ring(source, first, memories, getting=True)) if source is not None else []
    for name in stage.blocks:
        block = blocks[name]
        cycles = block_cycles(block, processor, active_threads) * (ratios or {}).get(name, 1.0)
        per_byte = block.cycles_per_byte * (ratios or {}).get(name, 1.0)
        waits = _waits(block, states, memories, processor)
        parts = len(waits) + 1
        run = Run(block=name, cycles=cycles / parts, cycles_per_byte=per_byte / parts)
        steps.append(run)
        for wait, switches in waits:
            steps += [wait, replace(run, cycles=run.cycles + switches)]
    put = list(_ring(target, last, memories, getting=False)) if target is not None else []
    return joined(steps), joined(put)


def _ring(link: Link, block: str, memories: Mapping[str, Memory], *, getting: bool) -> Iterator[Step]:
    cycles = link.get_cycles if getting else link.put_cycles
    if cycles:
        yield Run(block=block, cycles=cycles)
    if link.memory:
        memory = memories[link.memory]
        busy_s = occupancy_s(memory, link.access_bytes)
        yield Wait(block=block, memory=link.memory, busy_s=busy_s, rest_s=max(memory.latency_s - busy_s, 0.0))


def _waits(
    block: Block, states: Mapping[str, State], memories: Mapping[str, Memory], processor: NetworkProcessor
) -> list[tuple[Wait, float]]:
    """Return a block's waits, one for each memory in the order of its references, with the cycles of its switches."""
    found: dict[str, tuple[Wait, float]] = {}
    for reference in block.references:
        memory = memories[states[reference.state].memory]
        wait, times = _wait(block.name, reference, memory)
        if not wait.busy_s and not wait.busy_s_per_byte:
            continue
        switches = times * processor.engines.switch_cycles
        if memory.name in found:
            before, already = found[memory.name]
            wait = replace(
                before,
                busy_s=before.busy_s + wait.busy_s,
                busy_s_per_byte=before.busy_s_per_byte + wait.busy_s_per_byte,
                rest_s=before.rest_s + wait.rest_s,
            )
            switches += already
        found[memory.name] = (wait, switches)
    return list(found.values())


def _wait(block: str, reference: Reference, memory: Memory) -> tuple[Wait, float]:
    """Return one reference as a wait, and how often its thread waits for it.

    ``n`` accesses in ``w`` waits, each access busy for ``t`` of its latency ``L``, take ``w·L + (n − w)·t`` unloaded.
    """
    busy_s = occupancy_s(memory, reference.access_bytes)
    times = float(reference.waits)
    if not reference.accesses_per_byte:
        times = min(times, reference.accesses)
    return Wait(
        block=block,
        memory=memory.name,
        busy_s=reference.accesses * busy_s,
        busy_s_per_byte=reference.accesses_per_byte * busy_s,
        rest_s=times * max(memory.latency_s - busy_s, 0.0),
    ), times


def joined(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps with runs that follow each other made one, and runs of nothing left out."""
    made: list[Step] = []
    for step in steps:
        if isinstance(step, Run) and not step.cycles and not step.cycles_per_byte:
            continue
        before = made[-1] if made else None
        if isinstance(step, Run) and isinstance(before, Run):
            made[-1] = replace(
                before,
                cycles=before.cycles + step.cycles,
                cycles_per_byte=before.cycles_per_byte + step.cycles_per_byte,
            )
        else:
            made.append(step)
    return tuple(made)
