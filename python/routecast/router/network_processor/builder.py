"""A router on a network processor as task units over engines, hardware threads and memories.

::

    ring of a stage ─in turn─► thread of engine 3 ─► run ─► memory ─► rest of the latency ─► run ─► … ─► next ring
                               └ a window: as many frames as threads, from here to the last step of the stage ┘

An engine is a pool of one unit that its threads take in order of asking, run after run, and that is free while they
wait: that is how threads hide latency. A memory is a pool of as many units as channels; an access takes one for its
bytes over the bandwidth, and the rest of its latency is a delay that occupies nothing but the thread. A stage on
several engines deals its frames out in turn, an equal part to each: threads that take frames in strict order keep them
in order, and the slowest engine then holds the others up.

Buffers of the chip count frames of one size: see ``frame_bytes``. Line cards stand around all that, where there are any
(:mod:`routecast.router.network_processor.line_cards`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from routecast.errors import ModelProblem, Problem
from routecast.router.check_numbers import MAX_UNITS
from routecast.router.model import (
    Need,
    Port,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    TaskUnit,
)
from routecast.router.network_processor.check import problems_of, stage_threads
from routecast.router.network_processor.line_cards import blade_ports, line_ports, way_in, way_out
from routecast.router.network_processor.model import Block, LineCard, NetworkProcessor, Slice, Stage, State
from routecast.router.network_processor.slices import ENTRY, are_weighted, dealt_out, policers, schedulers
from routecast.router.network_processor.steps import Run, Step, joined, steps_of

__all__ = ["network_processor", "stage_names"]


def network_processor(
    processor: NetworkProcessor,
    blocks: Sequence[Block],
    states: Sequence[State],
    stages: Sequence[Stage],
    *,
    slices: Sequence[Slice] = (),
    line_card: LineCard | None = None,
    frame_bytes: float = 64.0,
    port_queue_frames: int = 0,
    burst_frames: int = 64,
    name: str = "",
) -> RouterModel:
    """Build a router of stages of blocks on the engines of a network processor.

    Parameters
    ----------
    processor : NetworkProcessor
    blocks : sequence of Block
        All of them run, each in one stage.
    states : sequence of State
    stages : sequence of Stage
        In the order of the way. Frames go from the last one to the port that their flow leaves by.
    slices : sequence of Slice
        Meta-routers that share the processor; none: one router.
    line_card : LineCard or None
        What stands before each port; None: the ports are the processor's own.
    frame_bytes : float
        Size of the frames that the chip's receive and transmit buffers are counted in; at least one frame fits.
    port_queue_frames : int
        Frames that a queue manager keeps for each port in a memory, before the port's part of the transmit buffer.
        Slices that are weighted divide them.
    burst_frames : int
        Depth of the bucket of a slice that is policed, frames for each port.
    name : str

    Raises
    ------
    ModelProblem
        Blocks, states, stages, slices and line cards do not fit each other or the processor; all faults at once.

    Examples
    --------
    >>> from routecast.router.network_processor import Engines, Memory, Reference
    >>> chip = NetworkProcessor(
    ...     name="chip",
    ...     engines=Engines(count=2, threads=4, frequency_hz=1e9),
    ...     memories=(Memory(name="sram", latency_s=100e-9, bytes_per_s=1e9),),
    ...     ports=2,
    ...     link_bps=1e9,
    ... )
    >>> lookup = Block(name="lookup", cycles=50, references=(Reference(state="routes"),))
    >>> router = network_processor(
    ...     chip, [lookup], [State(name="routes", memory="sram")], [Stage(blocks=("lookup",), engines=(0,))]
    ... )
    >>> print(*(task.name for task in router.tasks), sep="; ")
    engine 0: lookup thread; engine 0: lookup; engine 0: lookup, sram; engine 0: lookup, sram wait; engine 0: lookup 2
    """
    title = name or f"router on {processor.name}"
    problems = problems_of(processor, blocks, states, stages, slices, line_card)
    if not (math.isfinite(frame_bytes) and frame_bytes > 0.0):
        problems.append(Problem("frame_bytes", f"got {frame_bytes}: a finite number > 0"))
    if problems:
        raise ModelProblem(f"router {title!r}", problems)
    names = stage_names(stages)
    entries = [_entry(stage, names[index]) for index, stage in enumerate(stages)]
    ports = tuple(f"port {number}" for number in range(processor.ports))
    assembly = _Assembly(processor, blocks, states, stages, slices, names)
    ring = int(processor.transmit_buffer_bytes // (processor.ports * frame_bytes)) + port_queue_frames
    tasks = policers(slices, processor.ports, entries[0], burst_frames) if slices else []
    door = ENTRY if slices else entries[0]
    lines = [
        Port(name=port, link_bps=processor.link_bps, tx_ring_frames=max(ring, 1), entry=door)
        for port in ports
    ]
    out, queues, serving = Route(kind="egress", to=ports), list[TaskUnit](), list[ResourcePool]()
    beyond, outward = None, list[TaskUnit]()
    if line_card is not None:
        lines = line_ports(line_card, processor)
        tasks = [*way_in(line_card, processor, door), *tasks]
        beyond, outward = way_out(line_card, ports)
        out, queues = blade_ports(processor, max(ring, 1), beyond)
    if are_weighted(slices):
        each_frames = port_queue_frames // len(slices)
        out, queues, serving = schedulers(slices, ports, processor.link_bps, each_frames, frame_bytes, beyond)
    for index, stage in enumerate(stages):
        following = out if index + 1 == len(stages) else Route(to=(entries[index + 1],))
        frames = stage.link.frames
        if index == 0 and processor.receive_buffer_bytes:
            frames = max(int(processor.receive_buffer_bytes // frame_bytes), 1)
        tasks += assembly.stage(index, frames, following)
    return RouterModel(
        name=title,
        ports=tuple(lines),
        tasks=(*tasks, *queues, *outward),
        pools=(*assembly.pools(), *serving),
    )


def stage_names(stages: Sequence[Stage]) -> tuple[str, ...]:
    """Return how stages are called: by their block, or by their first and last."""
    return tuple(
        stage.blocks[0] if len(stage.blocks) == 1 else f"{stage.blocks[0]} to {stage.blocks[-1]}"
        for stage in stages
    )


def _entry(stage: Stage, name: str) -> str:
    """Return where frames come to a stage: its ring, which deals them out, or the threads of its only engine."""
    return f"{name} ring" if len(stage.engines) > 1 else _threads_task(name, stage.engines[0])


def _threads_task(stage: str, engine: int) -> str:
    return f"engine {engine}: {stage} thread"


class _Assembly:
    """Task units of the stages, and the pools that they need."""

    def __init__(
        self,
        processor: NetworkProcessor,
        blocks: Sequence[Block],
        states: Sequence[State],
        stages: Sequence[Stage],
        slices: Sequence[Slice],
        names: Sequence[str],
    ) -> None:
        self._processor = processor
        self._blocks = {block.name: block for block in blocks}
        self._states = {state.name: state for state in states}
        self._stages = stages
        self._slices = slices
        self._names = names
        self._threads: dict[str, int] = {}
        self._memories: set[str] = set()

    def pools(self) -> list[ResourcePool]:
        """Return engines, their threads, and the memories that anybody uses."""
        engines = sorted({number for stage in self._stages for number in stage.engines})
        pools = [
            ResourcePool(name=f"engine {number}", frequency_hz=self._processor.engines.frequency_hz)
            for number in engines
        ]
        pools += [ResourcePool(name=pool, units=units) for pool, units in self._threads.items()]
        return pools + [
            ResourcePool(name=memory.name, units=memory.channels)
            for memory in self._processor.memories
            if memory.name in self._memories
        ]

    def stage(self, index: int, ring_frames: int, following: Route) -> list[TaskUnit]:
        """Return the task units of one stage, on all its engines."""
        stage, name = self._stages[index], self._names[index]
        units: list[TaskUnit] = []
        threads = stage_threads(stage, self._processor)
        entries = [_threads_task(name, engine) for engine in stage.engines]
        if len(entries) > 1:
            units.append(TaskUnit(name=f"{name} ring", route=Route(kind="round_robin", to=tuple(entries))))
        for number, engine in enumerate(stage.engines):
            # A ring has its length once: its engines divide it, the first ones take what is left over.
            frames = (ring_frames + len(entries) - 1 - number) // len(entries)
            units += self._on_engine(index, engine, threads, max(frames, 1), following)
        return units

    def _on_engine(
        self, index: int, engine: int, threads: int, frames: int, following: Route
    ) -> list[TaskUnit]:
        name = self._names[index]
        sharing = [number for number, stage in enumerate(self._stages) if engine in stage.engines]
        pool = f"engine {engine} threads" if len(sharing) == 1 else f"engine {engine} {name} threads"
        self._threads[pool] = threads
        own = _Chain(f"engine {engine}", engine, threads, self._processor)
        chains, put = self._chains(index, engine)
        if len(chains) == 1 and chains[0] + put:
            tail = own.tasks(joined([*chains[0], *put]), following)
            first = tail[:1]
            until, way = tail[-1].name, Route(to=(tail[0].name,))
            body = tail
        else:
            # Slices run other instructions side by side and meet again, where the thread is given back.
            tail = own.tasks(put, following) or [
                TaskUnit(name=f"engine {engine}: {name} done", route=following)
            ]
            body, first = [], []
            for one, steps in zip(self._slices, chains, strict=False):
                apart = _Chain(f"engine {engine}: {one.name}", engine, threads, self._processor)
                mine = apart.tasks(steps, Route(to=(tail[0].name,)))
                first.append(mine[0] if mine else tail[0])
                body += mine
            until = tail[-1].name
            targets = [task.name for task in first] or [tail[0].name]
            way = (
                dealt_out(self._slices, self._processor.ports, targets)
                if len(targets) > 1
                else Route(to=(targets[0],))
            )
            body += tail
        self._memories |= {need.pool for task in body for need in task.needs if ", " in task.name}
        entering = TaskUnit(
            name=_threads_task(name, engine),
            needs=(Need(pool=pool, until=until),),
            queue_frames=frames,
            request="frame",
            route=way,
        )
        return [entering, *body]

    def _chains(self, index: int, engine: int) -> tuple[list[tuple[Step, ...]], tuple[Step, ...]]:
        """Return the steps of a stage for each slice, or once where slices do not differ in it, and its last ones."""
        stage = self._stages[index]
        active = sum(stage_threads(one, self._processor) for one in self._stages if engine in one.engines)
        differ = any(ratio != 1.0 for one in self._slices for ratio in _of(one.cycles_ratio, stage.blocks))
        ratios = [one.cycles_ratio for one in self._slices] if differ else [None]
        chains = []
        put: tuple[Step, ...] = ()
        for ratio in ratios:
            steps, put = steps_of(
                stage,
                processor=self._processor,
                blocks=self._blocks,
                states=self._states,
                active_threads=active,
                source=stage.link if index else None,
                target=self._stages[index + 1].link if index + 1 < len(self._stages) else None,
                ratios=ratio,
            )
            chains.append(steps)
        return chains, put


class _Chain:
    """Names and makes the task units of steps that follow each other on one engine."""

    def __init__(self, prefix: str, engine: int, threads: int, processor: NetworkProcessor) -> None:
        self._prefix = prefix
        self._engine = engine
        self._threads = threads
        self._channels = {memory.name: memory.channels for memory in processor.memories}
        self._taken: dict[str, int] = {}

    def tasks(self, steps: Sequence[Step], following: Route) -> list[TaskUnit]:
        """Return task units for steps; the last one leads on."""
        made = [task for step in steps for task in self._made(step)]
        return [
            replace(task, route=Route(to=(made[number + 1].name,)) if number + 1 < len(made) else following)
            for number, task in enumerate(made)
        ]

    def _made(self, step: Step) -> list[TaskUnit]:
        if isinstance(step, Run):
            return [
                TaskUnit(
                    name=self._name(step.block),
                    needs=(Need(pool=f"engine {self._engine}"),),
                    service=ServiceCost(per_packet_cycles=step.cycles, per_byte_cycles=step.cycles_per_byte),
                    queue_frames=self._threads,
                    request="frame",
                )
            ]
        access = TaskUnit(
            name=self._name(f"{step.block}, {step.memory}"),
            needs=(Need(pool=step.memory),),
            service=ServiceCost(per_packet_s=step.busy_s, per_byte_s=step.busy_s_per_byte),
            queue_frames=self._threads,
            request="frame",
        )
        if not step.rest_s:
            return [access]
        rest = TaskUnit(
            name=f"{access.name} wait",
            service=ServiceCost(per_packet_s=step.rest_s),
            queue_frames=self._threads,
            parallel=MAX_UNITS,  # a delay: it serves all at once and limits nothing
        )
        return [access, rest]

    def _name(self, what: str) -> str:
        self._taken[what] = self._taken.get(what, 0) + 1
        again = f" {self._taken[what]}" if self._taken[what] > 1 else ""
        return f"{self._prefix}: {what}{again}"


def _of(ratios: Mapping[str, float], blocks: Sequence[str]) -> list[float]:
    return [ratios.get(block, 1.0) for block in blocks]
