"""The problem of mapping blocks onto a network processor, a mapping, and the load of its engines and memories."""

from __future__ import annotations

from routecast.plan.network_processor import expectation, network_processor
from routecast.plan.network_processor.expectation import Expectation
from routecast.plan.network_processor.model import (
    Block,
    InstructionRun,
    Link,
    NetworkProcessor,
    Stage,
    State,
    stage_steps,
)
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel

__all__ = ["NEXT_NEIGHBOUR", "EngineLoad", "Mapping", "MappingProblem", "MemoryLoad", "engine_loads", "memory_loads"]


@value
class EngineLoad:
    """The load of one stage on one engine."""

    engine: int
    stage: str = field("Blocks of the stage")
    threads: int = field("Threads of the stage on the engine")
    busy_ratio: float = field("Share of the engine's time for the stage")
    threads_ratio: float = field("Share of the threads that hold a frame; waits for other threads are not counted")


@value
class MemoryLoad:
    """The content of a memory, and the share of time that its channels are busy."""

    memory: str
    holds: tuple[str, ...]
    busy_ratio: float


def engine_loads(mapping: Mapping, pps: float) -> tuple[EngineLoad, ...]:
    """Return the load of each stage on each engine at a throughput of ``pps`` frames/s, in the order of the engines."""
    loads = []
    for index, stage in enumerate(mapping.stages):
        run_s, wait_s, _ = _times(mapping, index)
        threads = stage.threads or mapping.problem.processor.engines.threads
        share = pps / len(stage.engines)
        loads += [
            EngineLoad(
                engine=engine,
                stage=", ".join(stage.blocks),
                threads=threads,
                busy_ratio=share * run_s,
                threads_ratio=share * (run_s + wait_s) / threads,
            )
            for engine in stage.engines
        ]
    return tuple(sorted(loads, key=lambda load: load.engine))


def memory_loads(mapping: Mapping, pps: float) -> tuple[MemoryLoad, ...]:
    """Return the load of each memory at a throughput of ``pps`` frames/s."""
    busy: dict[str, float] = {}
    for index in range(len(mapping.stages)):
        for memory, time_s in _times(mapping, index)[2].items():
            busy[memory] = busy.get(memory, 0.0) + time_s
    rings = [stage.link.memory for stage in mapping.stages[1:]]
    return tuple(
        MemoryLoad(
            memory=memory.name,
            holds=(
                *(state.name for state in mapping.states if state.memory == memory.name),
                *([f"{rings.count(memory.name)} rings"] if memory.name in rings else []),
            ),
            busy_ratio=pps * busy.get(memory.name, 0.0) / memory.channels,
        )
        for memory in mapping.problem.processor.memories
    )


def _times(mapping: Mapping, index: int) -> tuple[float, float, dict[str, float]]:
    """Return the times that a frame takes of the engine, of the thread while it waits, and of each memory, s."""
    problem, stages, stage = mapping.problem, mapping.stages, mapping.stages[index]
    hardware_threads = problem.processor.engines.threads
    active_threads = sum(
        other.threads or hardware_threads for other in stages if set(other.engines) & set(stage.engines)
    )
    block_steps, put_steps = stage_steps(
        stage,
        processor=problem.processor,
        blocks={block.name: block for block in problem.blocks},
        states={state.name: state for state in mapping.states},
        active_threads=active_threads,
        source=stage.link if index else None,
        target=stages[index + 1].link if index + 1 < len(stages) else None,
    )
    run_s = wait_s = 0.0
    memories: dict[str, float] = {}
    for step in block_steps + put_steps:
        if isinstance(step, InstructionRun):
            cycles = step.cycles + step.cycles_per_byte * problem.frame_bytes
            run_s += cycles / problem.processor.engines.frequency_hz
        else:
            busy_s = step.busy_s + step.busy_s_per_byte * problem.frame_bytes
            wait_s += busy_s + step.rest_s
            memories[step.memory] = memories.get(step.memory, 0.0) + busy_s
    return run_s, wait_s, memories


NEXT_NEIGHBOUR = "next neighbour"
"""Name of a ring in the registers between neighbouring engines (:attr:`Link.memory` is empty)."""


@value
class MappingProblem:
    """Blocks and states, and the processor that they share."""

    name: str
    processor: NetworkProcessor
    blocks: tuple[Block, ...] = field("Blocks in the order in which frames pass them")
    states: tuple[State, ...] = field("States with their present memories")
    ring: Link = field(
        "Ring between stages: cycles, length and handle size; the mapping chooses its memory", default_factory=Link
    )
    rings: tuple[str, ...] = field(
        'Memories allowed for rings; "" stands for the registers of the next engine, which join two stages of one '
        "engine each with neighbouring numbers",
        default=("",),
    )
    movable: frozenset[str] = field("States that may be moved to another memory", default=frozenset())
    frame_bytes: float = field("Frame size for which the search maximises throughput, B", default=64.0)
    max_stages: int = field("Maximum number of stages on an engine", default=2)
    port_queue_frames: int = field(
        "Frames that a queue manager keeps for each port; the mapping does not depend on it", default=0
    )


@value
class Mapping:
    """Stages with engines, threads and rings, and states with memories."""

    name: str = field('``"optimum"``, ``"round robin"``, …')
    problem: MappingProblem
    stages: tuple[Stage, ...] = field("Stages in the order in which frames pass them")
    states: tuple[State, ...]

    @property
    def engines(self) -> int:
        """Number of engines in use."""
        return len({number for stage in self.stages for number in stage.engines})

    def expectation(self) -> Expectation:
        """Return the upper bounds on the throughput: those of engines, threads, memories and ports."""
        return expectation(
            self.problem.processor, self.problem.blocks, self.states, self.stages, frame_bytes=self.problem.frame_bytes
        )

    def router(self) -> RouterModel:
        """Return the router of the mapping.

        Raises ModelProblem if the mapping does not fit the processor: an engine's code exceeds its control store,
        states exceed a memory, or the stages have more threads than the hardware.
        """
        return network_processor(
            self.problem.processor,
            self.problem.blocks,
            self.states,
            self.stages,
            frame_bytes=self.problem.frame_bytes,
            port_queue_frames=self.problem.port_queue_frames,
            name=f"{self.problem.name}, {self.name}",
        )
