"""Routers on network processors from what router files say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.load.frames import FrameMix
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.model import RouterModel
from routecast.router.network_processor.builder import network_processor
from routecast.router.network_processor.catalogue import Preset, preset_from
from routecast.router.network_processor.file_models import BlockTable, NetworkProcessorRouter
from routecast.router.network_processor.model import (
    Block,
    LineCard,
    NetworkProcessor,
    Slice,
    Stage,
    State,
)
from routecast.router.network_processor.overrides import block_over, link_over, state_over
from routecast.router.network_processor.places import in_the_file
from routecast.router.network_processor.slices import flows_of_a_round
from routecast.router.network_processor.stages import stages_of
from routecast.router.network_processor.table_faults import memories_without_base, twins

__all__ = ["Parts", "network_processor_from", "parts_of"]

_SMALLEST_BYTES = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What :func:`~routecast.router.network_processor.builder.network_processor` is called with.

    ``frame_bytes`` is the mean size of the file's load, 64 where it has none.
    """

    processor: NetworkProcessor
    blocks: tuple[Block, ...]
    states: tuple[State, ...]
    stages: tuple[Stage, ...]
    slices: tuple[Slice, ...] = ()
    line_card: LineCard | None = None
    frame_bytes: float = _SMALLEST_BYTES
    port_queue_frames: int = 0
    burst_frames: int = 64


def network_processor_from(
    router: NetworkProcessorRouter, name: str, folder: Path | None = None, frames: FrameMix | None = None
) -> RouterModel:
    """Build the router on a network processor that a file says.

    Parameters
    ----------
    router : NetworkProcessorRouter
    name : str
    folder : Path or None
        Where processors that are files are looked for.
    frames : FrameMix or None
        That buffers are counted in; None: those of the file's load.

    Raises
    ------
    routecast.errors.ModelProblem
        With all faults, their places those of the file.
    """
    parts = parts_of(router, folder)
    try:
        return network_processor(
            parts.processor,
            parts.blocks,
            parts.states,
            parts.stages,
            slices=parts.slices,
            line_card=parts.line_card,
            frame_bytes=parts.frame_bytes if frames is None else frames.mean_bytes,
            port_queue_frames=parts.port_queue_frames,
            burst_frames=parts.burst_frames,
            name=name,
        )
    except ModelProblem as problem:
        placed = [
            in_the_file(
                one,
                router,
                memories=[memory.name for memory in parts.processor.memories],
                blocks=[block.name for block in parts.blocks],
                states=[state.name for state in parts.states],
                stages=[stage.blocks for stage in parts.stages],
            )
            for one in problem.problems
        ]
        raise ModelProblem(problem.subject, list(dict.fromkeys(placed))) from problem


def parts_of(router: NetworkProcessorRouter, folder: Path | None = None) -> Parts:
    """Return the processor, blocks, states and stages that a file says, for those who map or bound them.

    Raises
    ------
    routecast.errors.ModelProblem
        As :func:`network_processor_from`.
    """
    subject = f"router {router.name!r}" if router.name else "router"
    try:
        preset = preset_from(router.processor, folder=folder)
    except FileProblem as problem:
        told = [
            Problem("processor", f"{problem.subject}: {one}" if problem.subject != "processor" else str(one))
            for one in problem.problems
        ]
        raise ModelProblem(subject, told) from problem
    problems = [
        *twins("processor.memory", router.processor.memory),
        *twins("state", router.state),
        *twins("block", router.block),
        *memories_without_base(router.processor, preset.processor),
    ]
    blocks = _blocks(router, preset, problems)
    by_name = {table.name: table for table in router.block}
    running = [block for block in blocks if by_name.get(block.name, _PLAIN).present]
    ring = link_over(preset.ring, router.ring)
    stages = stages_of(router, preset, ring, [block.name for block in running], problems)
    slices = tuple(
        Slice(
            name=one.name,
            bandwidth_bps=one.bandwidth,
            share=one.share,
            cycles_ratio=one.cycles_ratio,
            policing=one.policing,
        )
        for one in router.slice
    )
    problems += _flow_problems(router, slices, preset.processor.ports)
    if problems:
        raise ModelProblem(subject, problems)
    queues = {
        block.name: _queue(by_name.get(block.name, _PLAIN), preset.queues.get(block.name, 0))
        for block in running
    }
    return Parts(
        processor=preset.processor,
        blocks=tuple(running),
        states=_states(router, preset),
        stages=stages,
        slices=slices,
        line_card=_line_card(router),
        frame_bytes=router.load.frames.mean_bytes if router.load is not None else _SMALLEST_BYTES,
        port_queue_frames=sum(queues.values()),
        burst_frames=router.burst,
    )


_PLAIN = BlockTable(name="plain")


def _line_card(router: NetworkProcessorRouter) -> LineCard | None:
    card = router.line_card
    if card is None:
        return None
    return LineCard(
        per_packet_s=card.per_packet,
        per_byte_s=card.per_byte,
        out_per_packet_s=card.out_per_packet,
        out_per_byte_s=card.out_per_byte,
        latency_s=card.latency,
        queue_frames=card.queue,
        link_bps=card.link or 0.0,
    )


def _queue(table: BlockTable, frames: int) -> int:
    """Return the frames that a block keeps for each port: a stub keeps none."""
    if table.stub:
        return 0
    return frames if table.queue is None else table.queue


def _flow_problems(
    router: NetworkProcessorRouter, slices: tuple[Slice, ...], ports: int
) -> Iterator[Problem]:
    """Yield that the file's load has not as many flows as make the shares of slices come out."""
    if not slices or router.load is None or router.load.arrivals.kind == "trace":
        return
    count, of_a_round = router.load.flows.count, flows_of_a_round(slices, ports)
    if count % of_a_round:
        yield Problem(
            "load.flows.count",
            f"got {count}: flows belong to slices, {of_a_round} flows have the shares exactly; give a multiple of that",
        )


def _blocks(router: NetworkProcessorRouter, preset: Preset, problems: list[Problem]) -> list[Block]:
    """Return the blocks of the processor's router, with the file's in their places."""
    blocks = list(preset.blocks)
    for index, table in enumerate(router.block):
        at = f"block[{index}]"
        names = [block.name for block in blocks]
        if table.name in names:
            place = names.index(table.name)
            if table.after is not None:
                problems.append(
                    Problem(
                        f"{at}.after", f'"{table.name}" has its place already, on {preset.processor.name}'
                    )
                )
            blocks[place] = (
                Block(name=table.name, cycles=0.0) if table.stub else block_over(blocks[place], table)
            )
            continue
        if table.after is None:
            meant = did_you_mean(table.name, names)
            problems.append(
                Problem(
                    f"{at}.name",
                    f'"{table.name}" is no block on {preset.processor.name}: {meant} A block of your own says which '
                    "one it comes after",
                )
            )
            continue
        if table.after and table.after not in names:
            problems.append(
                Problem(f"{at}.after", f'"{table.after}" is no block: {did_you_mean(table.after, names)}')
            )
            continue
        if table.cycles is None and not table.stub:
            problems.append(Problem(f"{at}.cycles", "is missing: say what a frame costs"))
        place = names.index(table.after) + 1 if table.after else 0
        blocks.insert(place, block_over(Block(name=table.name, cycles=0.0), table))
    return blocks


def _states(router: NetworkProcessorRouter, preset: Preset) -> tuple[State, ...]:
    states = {state.name: state for state in preset.states}
    for table in router.state:
        states[table.name] = state_over(states.get(table.name, State(name=table.name, memory="")), table)
    return tuple(states.values())
