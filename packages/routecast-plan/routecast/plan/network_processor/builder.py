"""A router on a network processor as task units over engines, hardware threads and memories.

::

    ring of a stage ─in turn─► thread of engine 3 ─► run ─► memory ─► rest of the latency ─► run ─► … ─► next ring
                               └ a window: as many frames as threads, from here to the last step of the stage ┘

An engine is a pool of one unit. Its threads take the unit in order of request, run after run, and leave it free while
they wait: this hides latency. A memory is a pool with a unit per channel. An access takes a unit for its bytes over the
bandwidth; the rest of its latency is a delay that occupies only the thread. A stage on several engines distributes its
frames in turn, an equal part to each engine. Threads that take frames in strict order keep them in order, so the
slowest engine delays the others.

Buffers of the chip count frames of one size, see ``frame_bytes``. Line cards, if the router has them, are before and
behind the stages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from routecast.errors import ModelProblem, Problem
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.plan.network_processor.check import problems_of, stage_threads
from routecast.plan.network_processor.model import (
    Block,
    InstructionRun,
    LineCard,
    NetworkProcessor,
    Slice,
    Stage,
    State,
    Step,
    joined,
    stage_steps,
)
from routecast.router.bounds import MAX_UNITS
from routecast.router.model import Need, Policy, Port, ResourcePool, Route, RouterModel, ServiceCost, TaskUnit

__all__ = ["flows_of_a_round", "network_processor", "stage_names"]


def line_ports(card: LineCard, processor: NetworkProcessor) -> list[Port]:
    """Return the lines to the outside, which end at the line cards.

    Line cards are before a network processor, with a crossbar between them (Heller 2006, sec. 2.3).

    ::

      port 0 ─► line card 0 ─► line card 0 to crossbar ─┐                         ┌─► ring of the first stage
      port 1 ─► line card 1 ─► line card 1 to crossbar ─┴─► crossbar in (a delay) ─┘        ⋮
      port 0 ◄── line card 0 out ◄──┬── crossbar out (a delay) ◄──┬── blade port 0 ◄── last stage, by the flow's egress
      port 1 ◄── line card 1 out ◄──┘                             └── blade port 1 ◄──

    Each port of the blade has its own line card at the other side of the switch. A crossbar that does not block takes
    time and no capacity; its ports carry frames at the rate of the blade's ports, with the 20 bytes of each frame (S1),
    once into the blade and once out of it. The lines to the outside belong to the line cards. Frames that leave the
    blade wait before the blade's ports, in the transmit buffer and the queues of the queue manager.
    """
    return [
        Port(
            name=f"port {number}",
            link_bps=card.line_bps(processor),
            tx_ring_frames=card.queue_frames,
            entry=_name(number),
        )
        for number in range(processor.ports)
    ]


def tasks_to_processor(card: LineCard, processor: NetworkProcessor, following: str) -> list[TaskUnit]:
    """Return the task units from the ports to the processor's ``following``, line cards first."""
    switched = [_crossbar("crossbar in", card, Route(to=(following,)))] if card.latency_s else []
    behind = switched[0].name if switched else following
    cards = [
        TaskUnit(
            name=_name(number),
            service=ServiceCost(per_packet_s=card.per_packet_s, per_byte_s=card.per_byte_s),
            queue_frames=card.queue_frames,
            route=Route(to=(f"{_name(number)} to crossbar",)),
        )
        for number in range(processor.ports)
    ]
    links = [
        TaskUnit(
            name=first.route.to[0],
            service=_wire_time(processor.link_bps),
            queue_frames=card.queue_frames,
            route=Route(to=(behind,)),
        )
        for first in cards
    ]
    return [*cards, *links, *switched]


def blade_ports(processor: NetworkProcessor, ring_frames: int, following: Route) -> tuple[Route, list[TaskUnit]]:
    """Return the route of frames that leave the last stage, and the processor's ports, each with a ring."""
    ports = [
        TaskUnit(
            name=f"blade port {number}",
            service=_wire_time(processor.link_bps),
            queue_frames=ring_frames,
            route=following,
        )
        for number in range(processor.ports)
    ]
    return Route(kind="by_egress", to=tuple(port.name for port in ports)), ports


def tasks_from_processor(card: LineCard, ports: Sequence[str]) -> tuple[Route, list[TaskUnit]]:
    """Return the route of frames that leave the blade, and the task units from there to the ports of their flows."""
    cards: list[TaskUnit] = []
    out = Route(kind="egress", to=tuple(ports))
    if card.out_per_packet_s or card.out_per_byte_s:
        cards = [
            TaskUnit(
                name=f"{_name(number)} out",
                service=ServiceCost(per_packet_s=card.out_per_packet_s, per_byte_s=card.out_per_byte_s),
                queue_frames=card.queue_frames,
                route=Route(to=(port,)),
            )
            for number, port in enumerate(ports)
        ]
        out = Route(kind="by_egress", to=tuple(card.name for card in cards))
    if not card.latency_s:
        return out, cards
    switched = _crossbar("crossbar out", card, out)
    return Route(to=(switched.name,)), [switched, *cards]


def _crossbar(name: str, card: LineCard, route: Route) -> TaskUnit:
    return TaskUnit(
        name=name,
        service=ServiceCost(per_packet_s=card.latency_s),
        queue_frames=card.queue_frames,
        parallel=MAX_UNITS,  # a delay: it serves all frames at once and limits nothing
        route=route,
    )


def _name(number: int) -> str:
    return f"line card {number}"


def _wire_time(rate_bps: float) -> ServiceCost:
    """Return the time of a frame at a bit rate, with the 20 bytes of preamble and gap."""
    byte_s = 8.0 / rate_bps
    return ServiceCost(per_packet_s=WIRE_OVERHEAD_BYTES * byte_s, per_byte_s=byte_s)


ENTRY = "slices"
"""Name of the task unit that separates the slices."""

_MAX_ENTRIES = 100
_SHORTEST_TURN_S = 10e-9


def pattern(slices: Sequence[Slice]) -> tuple[int, ...]:
    """Return a sequence of slice numbers in which each slice appears, evenly spread, by its share of the traffic.

    The number of entries is the least number up to 100 that represents all shares exactly, else 100 with the nearest
    parts.

    Examples
    --------
    >>> pattern([Slice(name="a", bandwidth_bps=1e9, share=0.75), Slice(name="b", bandwidth_bps=1e9, share=0.25)])
    (0, 0, 1, 0)
    """
    shares = [part.share for part in slices]
    exact = (
        parts
        for parts in range(1, _MAX_ENTRIES + 1)
        if all(abs(share * parts - round(share * parts)) < 1e-9 for share in shares)
    )
    parts = next(exact, _MAX_ENTRIES)
    given = [0.0] * len(shares)
    order = []
    for turn in range(1, parts + 1):
        shortfall = [share * turn - dealt_parts for share, dealt_parts in zip(shares, given, strict=True)]
        chosen = max(range(len(shares)), key=lambda number: shortfall[number])
        given[chosen] += 1.0
        order.append(chosen)
    return tuple(order)


def flows_of_a_round(slices: Sequence[Slice], ports: int) -> int:
    """Return the least number of flows with exact shares of the slices; its multiples are exact, too."""
    return len(pattern(slices)) * ports


def per_flow_route(slices: Sequence[Slice], ports: int, to: Sequence[str]) -> Route:
    """Return the route by which the flows of slice ``k`` go to ``to[k]``."""
    return Route(kind="per_flow", to=tuple(to[number] for number in pattern(slices) for _ in range(ports)))


def policers(slices: Sequence[Slice], ports: int, following: str, burst_frames: int) -> list[TaskUnit]:
    """Return the task units that separate slices and limit each to its bandwidth; the first is :data:`ENTRY`.

    Flows belong to slices (meta-routers) of a processor, and excess frames are dropped before they take time of others.

    ::

        ports ─► slices ─by flow─┬─► slice A ─by egress─► slice A to port 0 (bucket that leaks at A's bandwidth) ─► ring
                                 └─► slice B ─────────────────────────────────────────────────────────────────────► ring

    A flow belongs to one slice. Slices get flows in groups of one flow per port, so that every slice has traffic on
    every port; shares are exact where the number of flows is a multiple of :func:`flows_of_a_round`. The traffic of a
    policed slice beyond its bandwidth to a port overflows its bucket. Line cards do this when they validate frames
    (Heller 2006, sec. 2.3), so it takes no time of an engine. A bucket is a queue that is served at the provisioned
    rate: it delays a burst that a token bucket would let through.
    """
    names = [f"slice {part.name}" if part.policing == "policed" else following for part in slices]
    units = [TaskUnit(name=ENTRY, route=per_flow_route(slices, ports, names))]
    for part, name in zip(slices, names, strict=True):
        if part.policing != "policed":
            continue
        buckets = tuple(f"{name} to port {port}" for port in range(ports))
        units.append(TaskUnit(name=name, route=Route(kind="by_egress", to=buckets)))
        units += [
            TaskUnit(
                name=bucket,
                service=_wire_time(part.bandwidth_bps),
                queue_frames=burst_frames,
                route=Route(to=(following,)),
            )
            for bucket in buckets
        ]
    return units


def are_weighted(slices: Sequence[Slice]) -> bool:
    """Return whether slices have their own queues at the ports; a single weighted slice is enough."""
    return any(part.policing == "weighted" for part in slices)


def schedulers(
    slices: Sequence[Slice],
    ports: Sequence[str],
    link_bps: float,
    queue_frames: int,
    frame_bytes: float,
    following: Route | None = None,
) -> tuple[Route, list[TaskUnit], list[ResourcePool]]:
    """Return the task units from the last stage to the ports: a queue for each slice, in pools that serve by weight.

    ::

        last stage ─by flow─┬─► slice A out ─by egress─► slice A at port 0 ─┬─► port 0 (a pool whose weights are
                            └─► slice B out ───────────► slice B at port 0 ─┘           the bandwidths)

    The scheduler sends frames at the rate of the link, so they do not wait again in the port's own ring; their latency
    counts the time on the wire twice. With line cards this is correct: the scheduler is the blade's port, and the port
    of the line card follows.

    ``queue_frames``: queue of each slice at each port; ``frame_bytes``: size of the frame that is the longest turn of a
    slice; ``following``: route of the frames; None: to the port.
    """
    turn_s = max((frame_bytes + WIRE_OVERHEAD_BYTES) * 8.0 / link_bps, _SHORTEST_TURN_S)
    pools = [ResourcePool(name=f"{port} scheduler", policy=Policy(kind="fair", quantum_s=turn_s)) for port in ports]
    units: list[TaskUnit] = []
    for part in slices:
        queues = tuple(f"slice {part.name} at {port}" for port in ports)
        units.append(TaskUnit(name=f"slice {part.name} out", route=Route(kind="by_egress", to=queues)))
        units += [
            TaskUnit(
                name=queue,
                needs=(Need(pool=f"{port} scheduler"),),
                service=_wire_time(link_bps),
                queue_frames=max(queue_frames, 1),
                weight=part.bandwidth_bps,
                route=following or Route(to=(port,)),
            )
            for queue, port in zip(queues, ports, strict=True)
        ]
    out = per_flow_route(slices, len(ports), [f"slice {part.name} out" for part in slices])
    return out, units, pools


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
        In the order in which frames pass them. The last stage sends frames to the port that their flow leaves by.
    slices : sequence of Slice
        Meta-routers that share the processor; none: one router.
    line_card : LineCard or None
        The card before each port; None: the router's ports are those of the processor.
    frame_bytes : float
        Frame size by which the chip's receive and transmit buffers are counted in frames; at least one frame fits.
    port_queue_frames : int
        Frames that a queue manager keeps for each port in a memory, before the port's part of the transmit buffer.
        Weighted slices divide them.
    burst_frames : int
        Depth of the bucket of a policed slice, frames for each port.
    name : str

    Raises
    ------
    ModelProblem
        With all faults: blocks, states, stages, slices or line cards that do not fit each other or the processor.

    Examples
    --------
    >>> from routecast.plan.network_processor import Engines, Memory, Reference
    >>> chip = NetworkProcessor(
    ...     name="chip",
    ...     engines=Engines(count=2, threads=4, frequency_hz=1e9),
    ...     memories=(Memory(name="sram", latency_s=100e-9, bandwidth_bytes_per_s=1e9),),
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
    entry = ENTRY if slices else entries[0]
    lines = [Port(name=port, link_bps=processor.link_bps, tx_ring_frames=max(ring, 1), entry=entry) for port in ports]
    out, queues, serving = Route(kind="egress", to=ports), list[TaskUnit](), list[ResourcePool]()
    outer_route, outer_tasks = None, list[TaskUnit]()
    if line_card is not None:
        lines = line_ports(line_card, processor)
        tasks = [*tasks_to_processor(line_card, processor, entry), *tasks]
        outer_route, outer_tasks = tasks_from_processor(line_card, ports)
        out, queues = blade_ports(processor, max(ring, 1), outer_route)
    if are_weighted(slices):
        slice_frames = port_queue_frames // len(slices)
        out, queues, serving = schedulers(slices, ports, processor.link_bps, slice_frames, frame_bytes, outer_route)
    for index, stage in enumerate(stages):
        following = out if index + 1 == len(stages) else Route(to=(entries[index + 1],))
        frames = stage.link.frames
        if index == 0 and processor.receive_buffer_bytes:
            frames = max(int(processor.receive_buffer_bytes // frame_bytes), 1)
        tasks += assembly.stage(index, frames, following)
    return RouterModel(
        name=title, ports=tuple(lines), tasks=(*tasks, *queues, *outer_tasks), pools=(*assembly.pools(), *serving)
    )


def stage_names(stages: Sequence[Stage]) -> tuple[str, ...]:
    """Return the names of stages: their only block, or their first and last block."""
    return tuple(
        stage.blocks[0] if len(stage.blocks) == 1 else f"{stage.blocks[0]} to {stage.blocks[-1]}" for stage in stages
    )


def _entry(stage: Stage, name: str) -> str:
    """Return the entry of a stage: its ring, which distributes the frames, or the threads of its only engine."""
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
        """Return engines, their threads, and the memories in use."""
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
            # The engines divide the length of the ring; the first engines take the remainder.
            frames = (ring_frames + len(entries) - 1 - number) // len(entries)
            units += self._on_engine(index, engine, threads, max(frames, 1), following)
        return units

    def _on_engine(self, index: int, engine: int, threads: int, frames: int, following: Route) -> list[TaskUnit]:
        name = self._names[index]
        sharing = [number for number, stage in enumerate(self._stages) if engine in stage.engines]
        pool = f"engine {engine} threads" if len(sharing) == 1 else f"engine {engine} {name} threads"
        self._threads[pool] = threads
        chain = _Chain(f"engine {engine}", engine, threads, self._processor)
        chains, put = self._chains(index, engine)
        if len(chains) == 1 and chains[0] + put:
            tail = chain.tasks(joined([*chains[0], *put]), following)
            first = tail[:1]
            until, route = tail[-1].name, Route(to=(tail[0].name,))
            body = tail
        else:
            # Slices run different instructions in parallel branches and meet again, where they release the thread.
            tail = chain.tasks(put, following) or [TaskUnit(name=f"engine {engine}: {name} done", route=following)]
            body, first = [], []
            for part, steps in zip(self._slices, chains, strict=False):
                slice_chain = _Chain(f"engine {engine}: {part.name}", engine, threads, self._processor)
                slice_tasks = slice_chain.tasks(steps, Route(to=(tail[0].name,)))
                first.append(slice_tasks[0] if slice_tasks else tail[0])
                body += slice_tasks
            until = tail[-1].name
            targets = [task.name for task in first] or [tail[0].name]
            route = (
                per_flow_route(self._slices, self._processor.ports, targets)
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
            route=route,
        )
        return [entering, *body]

    def _chains(self, index: int, engine: int) -> tuple[list[tuple[Step, ...]], tuple[Step, ...]]:
        """Return the steps of a stage for each slice, or once where slices do not differ, and the last steps."""
        stage = self._stages[index]
        active = sum(stage_threads(stage, self._processor) for stage in self._stages if engine in stage.engines)
        differ = any(ratio != 1.0 for part in self._slices for ratio in _ratios_of(part.cycles_ratio, stage.blocks))
        ratios = [part.cycles_ratio for part in self._slices] if differ else [None]
        chains = []
        put: tuple[Step, ...] = ()
        for ratio in ratios:
            steps, put = stage_steps(
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
    """Builds and names the task units of successive steps on an engine."""

    def __init__(self, prefix: str, engine: int, threads: int, processor: NetworkProcessor) -> None:
        self._prefix = prefix
        self._engine = engine
        self._threads = threads
        self._channels = {memory.name: memory.channels for memory in processor.memories}
        self._label_counts: dict[str, int] = {}

    def tasks(self, steps: Sequence[Step], following: Route) -> list[TaskUnit]:
        """Return the task units of steps; the last task unit leads to the next stage."""
        tasks_of_steps = [task for step in steps for task in self._tasks_of_step(step)]
        return [
            replace(
                task,
                route=Route(to=(tasks_of_steps[number + 1].name,)) if number + 1 < len(tasks_of_steps) else following,
            )
            for number, task in enumerate(tasks_of_steps)
        ]

    def _tasks_of_step(self, step: Step) -> list[TaskUnit]:
        if isinstance(step, InstructionRun):
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
            parallel=MAX_UNITS,  # a delay: it serves all frames at once and limits nothing
        )
        return [access, rest]

    def _name(self, label: str) -> str:
        self._label_counts[label] = self._label_counts.get(label, 0) + 1
        suffix = f" {self._label_counts[label]}" if self._label_counts[label] > 1 else ""
        return f"{self._prefix}: {label}{suffix}"


def _ratios_of(ratios: Mapping[str, float], blocks: Sequence[str]) -> list[float]:
    return [ratios.get(block, 1.0) for block in blocks]
