"""The maximum throughput of a router on a network processor in closed form: asymptotic bounds of a closed network.

Symbols, for a stage on an engine: ``C`` is the instructions' time for a frame, ``W`` the waits of a frame in unloaded
memories, ``T`` the number of threads, ``share`` the share of the frames, one over the number of the stage's engines.

* engine: the shares of its stages times ``C`` fill its time, ``X ≤ 1 / Σ share·C``;
* threads: a frame occupies a thread for at least ``C + W``, ``X ≤ T / (share·(C + W))``;
* memory: ``X ≤ channels / (busy time of all accesses of a frame)``;
* lines: ``X ≤ ports · R / (8·(S + 20))``, those of line cards and those of the processor to their crossbar;
* line cards: ``X ≤ ports / (time of a line card for a frame)``, in each direction.

The least bound is an upper bound of the throughput (Lazowska et al., Quantitative System Performance, 1984, ch. 5:
asymptotic bounds). Deterministic work reaches it where the other bounds are far away: with ``T ≥ (C + W)/C`` threads
the engine never idles, and the latency is hidden.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from routecast.load.offered import line_rate_pps
from routecast.plan.network_processor.builder import stage_names
from routecast.plan.network_processor.check import stage_threads
from routecast.plan.network_processor.model import (
    Block,
    InstructionRun,
    LineCard,
    NetworkProcessor,
    Stage,
    State,
    Step,
    stage_steps,
)

__all__ = ["Expectation", "ResourceLimit", "expectation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimit:
    """Frames per second that one resource can carry if nothing else limits; ``name`` is that of its pool."""

    name: str
    kind: Literal["engine", "threads", "memory", "lines", "line cards"]
    pps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """All limits, the least first."""

    limits: tuple[ResourceLimit, ...]

    @property
    def pps(self) -> float:
        """Upper bound of the throughput, frames/s."""
        return self.limits[0].pps

    @property
    def limit(self) -> ResourceLimit:
        """The limiting resource."""
        return self.limits[0]


def expectation(
    processor: NetworkProcessor,
    blocks: Sequence[Block],
    states: Sequence[State],
    stages: Sequence[Stage],
    *,
    line_card: LineCard | None = None,
    frame_bytes: float = 64.0,
) -> Expectation:
    """Return the bounds on throughput for frames of one size that leave evenly by all ports.

    The arguments are those of :func:`~routecast.plan.network_processor.builder.network_processor`, without slices,
    and must be free of contradictions.
    """
    blocks_by_name = {block.name: block for block in blocks}
    states_by_name = {state.name: state for state in states}
    names = stage_names(stages)
    engine_s: dict[int, float] = {}
    memory_s: dict[str, float] = {}
    limits = list(_outside(processor, line_card, frame_bytes))
    for index, stage in enumerate(stages):
        threads = stage_threads(stage, processor)
        share = 1.0 / len(stage.engines)
        for engine in stage.engines:
            sharing = [stage for stage in stages if engine in stage.engines]
            steps, put = stage_steps(
                stage,
                processor=processor,
                blocks=blocks_by_name,
                states=states_by_name,
                active_threads=sum(stage_threads(stage, processor) for stage in sharing),
                source=stage.link if index else None,
                target=stages[index + 1].link if index + 1 < len(stages) else None,
            )
            runs_s, waits_s = _times(steps + put, processor, frame_bytes, memory_s, share)
            engine_s[engine] = engine_s.get(engine, 0.0) + share * runs_s
            name = f"engine {engine} threads" if len(sharing) == 1 else f"engine {engine} {names[index]} threads"
            occupied_s = share * (runs_s + waits_s)
            limits.append(ResourceLimit(name=name, kind="threads", pps=_rate(threads, occupied_s)))
    limits += [
        ResourceLimit(name=f"engine {engine}", kind="engine", pps=_rate(1, busy_s))
        for engine, busy_s in engine_s.items()
    ]
    limits += [
        ResourceLimit(name=memory.name, kind="memory", pps=_rate(memory.channels, memory_s[memory.name]))
        for memory in processor.memories
        if memory.name in memory_s
    ]
    return Expectation(limits=tuple(sorted(limits, key=lambda limit: limit.pps)))


def _outside(processor: NetworkProcessor, card: LineCard | None, frame_bytes: float) -> Iterator[ResourceLimit]:
    """Yield the limits of lines, and of line cards if the router has them."""
    own_pps = processor.ports * line_rate_pps(processor.link_bps, frame_bytes)
    if card is None:
        yield ResourceLimit(name="ports", kind="lines", pps=own_pps)
        return
    outside_pps = processor.ports * line_rate_pps(card.line_bps(processor), frame_bytes)
    yield ResourceLimit(name="ports", kind="lines", pps=outside_pps)
    yield ResourceLimit(name="blade ports", kind="lines", pps=own_pps)
    in_s = card.per_packet_s + card.per_byte_s * frame_bytes
    out_s = card.out_per_packet_s + card.out_per_byte_s * frame_bytes
    yield ResourceLimit(name="line cards", kind="line cards", pps=_rate(processor.ports, in_s))
    yield ResourceLimit(name="line cards out", kind="line cards", pps=_rate(processor.ports, out_s))


def _rate(units: int, busy_s: float) -> float:
    return units / busy_s if busy_s > 0.0 else float("inf")


def _times(
    steps: Sequence[Step], processor: NetworkProcessor, frame_bytes: float, memory_s: dict[str, float], share: float
) -> tuple[float, float]:
    """Return the time of runs and of waits, and add the busy time of memories to ``memory_s``."""
    runs_s = waits_s = 0.0
    for step in steps:
        if isinstance(step, InstructionRun):
            cycles = step.cycles + step.cycles_per_byte * frame_bytes
            runs_s += cycles / processor.engines.frequency_hz
        else:
            busy_s = step.busy_s + step.busy_s_per_byte * frame_bytes
            waits_s += busy_s + step.rest_s
            memory_s[step.memory] = memory_s.get(step.memory, 0.0) + share * busy_s
    return runs_s, waits_s
