"""Routers on network processors from what router files say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.load.frames import FrameMix
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.model import RouterModel
from routecast.router.network_processor.builder import flows_of_a_round, network_processor
from routecast.router.network_processor.catalogue import (
    Preset,
    block_over,
    link_over,
    memories_without_base,
    preset_from,
    state_over,
    twins,
)
from routecast.router.network_processor.file_models import BlockTable, NetworkProcessorRouter
from routecast.router.network_processor.model import Block, LineCard, Link, NetworkProcessor, Slice, Stage, State
from routecast.router.network_processor.organisation import parallel

__all__ = ["Parts", "in_the_file", "network_processor_from", "parts_of"]


# The stages that a router file asks for: those of an organisation by its name, or those that it lists.


def stages_of(
    router: NetworkProcessorRouter, preset: Preset, ring: Link, names: list[str], problems: list[Problem]
) -> tuple[Stage, ...]:
    """Return the stages of a router file; what is wrong is added to ``problems``.

    Parameters
    ----------
    router : NetworkProcessorRouter
    preset : Preset
        Of the file's processor.
    ring : Link
        Between stages that say nothing else.
    names : list of str
        Blocks that are present, in the order of the way.
    problems : list of Problem
    """
    if router.organisation == "staged":
        return _staged(router, ring, names, problems)
    return _organised(router, preset, ring, names, problems)


def _organised(
    router: NetworkProcessorRouter,
    preset: Preset,
    ring: Link,
    names: list[str],
    problems: list[Problem],
) -> tuple[Stage, ...]:
    """Return the stages of the pipelined or the parallel organisation."""
    if router.stage:
        problems.append(Problem("stage", f'is for organisation "staged", not "{router.organisation}"'))
    repeated: list[str] = []
    if router.organisation == "parallel":
        wanted = list(preset.parallel) if router.parallel is None else router.parallel
        gone = {table.name for table in router.block if not table.present}
        repeated = [name for name in wanted if name not in gone]
        if not repeated:
            problems.append(Problem("parallel", "names no block that is present: name those that engines repeat"))
        if router.engines < 1:
            problems.append(Problem("engines", f"got {router.engines}: at least one engine is needed"))
    elif {"engines", "threads", "parallel"} & router.model_fields_set:
        given = sorted({"engines", "threads", "parallel"} & router.model_fields_set)
        problems += [
            Problem(
                key,
                f'is for organisation "parallel"; pipelined: block[…].{key}'
                if key != "parallel"
                else 'is for organisation "parallel"',
            )
            for key in given
        ]
    engines: dict[str, int] = dict(preset.engines)
    threads: dict[str, int] = dict.fromkeys(repeated, router.threads)
    for index, table in enumerate(router.block):
        if table.engines is not None:
            engines[table.name] = table.engines
            if table.engines < 1:
                problems.append(
                    Problem(f"block[{index}].engines", f"got {table.engines}: at least one engine is needed")
                )
        if table.threads is not None:
            threads[table.name] = table.threads
        if table.name in repeated:
            problems += [
                Problem(
                    f"block[{index}].{key}",
                    f'is run by the engines of the parallel stage: give "{key}" of the router',
                )
                for key in ("engines", "threads")
                if getattr(table, key) is not None
            ]
    if problems:
        return ()
    needed = sum(engines.get(name, 1) for name in names if name not in repeated)
    needed += router.engines if repeated else 0
    count = preset.processor.engines.count
    if needed > count:
        where = "engines" if repeated else "block"
        problems.append(Problem(where, f"the stages need {needed} engines, but {preset.processor.name} has {count}"))
        return ()
    try:
        return parallel(names, repeated=repeated, count=router.engines, engines=engines, threads=threads, link=ring)
    except ModelProblem as problem:
        problems += problem.problems
        return ()


def _staged(router: NetworkProcessorRouter, ring: Link, names: list[str], problems: list[Problem]) -> tuple[Stage, ...]:
    """Return the stages that a file lists; engines that are counted get the numbers that are free."""
    if not router.stage:
        problems.append(Problem("stage", "is missing: organisation staged takes a [[stage]] for each stage"))
    absent = {table.name for table in router.block if not table.present}
    taken = {number for one in router.stage if not isinstance(one.engines, int) for number in one.engines}
    free = (number for number in range(1 << 30) if number not in taken)
    stages = []
    for index, one in enumerate(router.stage):
        if isinstance(one.engines, int):
            if one.engines < 1:
                problems.append(Problem(f"stage[{index}].engines", f"got {one.engines}: at least one is needed"))
                continue
            if one.engines > len(names) + (1 << 12):
                problems.append(Problem(f"stage[{index}].engines", f"got {one.engines}: more than any processor has"))
                continue
            engines = tuple(next(free) for _ in range(one.engines))
        else:
            engines = tuple(one.engines)
        blocks = tuple(name for name in one.blocks if name not in absent)
        if blocks or not one.blocks:
            stages.append(Stage(blocks=blocks, engines=engines, threads=one.threads, link=link_over(ring, one.link)))
    return tuple(stages)


# Where in a router file a fault is that the builder found: it counts blocks that the file inherits, too.


_ENTRY = re.compile(r"(?P<list>processor\.memory|block|state|stage)\[(?P<number>\d+)\](?P<rest>.*)")


def in_the_file(
    problem: Problem,
    router: NetworkProcessorRouter,
    *,
    memories: Sequence[str],
    blocks: Sequence[str],
    states: Sequence[str],
    stages: Sequence[Sequence[str]],
) -> Problem:
    """Return a fault that the builder found with the place that it has in the file.

    Parameters
    ----------
    problem : Problem
        Its place counts ``memories``, ``blocks``, ``states`` and ``stages``, in this order.
    router : NetworkProcessorRouter
        What the file says.
    memories, blocks, states : sequence of str
        Names.
    stages : sequence of sequence of str
        Blocks of each stage.
    """
    found = _ENTRY.fullmatch(problem.place)
    if not found:
        return problem
    number, rest = int(found["number"]), found["rest"]
    if found["list"] == "stage":
        return Problem(_stage_place(router, stages[number], number, rest), problem.message)
    given: Sequence[object]
    if found["list"] == "block":
        name, given = blocks[number], [table.name for table in router.block]
    elif found["list"] == "state":
        name, given = states[number], [table.name for table in router.state]
    else:
        name, given = memories[number], [table.name for table in router.processor.memory]
    entry = given.index(name) if name in given else name
    return Problem(f"{found['list']}[{entry}]{rest}", problem.message)


def _stage_place(router: NetworkProcessorRouter, blocks: Sequence[str], number: int, rest: str) -> str:
    if router.organisation == "staged":
        names = [stage for stage in router.stage if set(stage.blocks) & set(blocks)]
        return f"stage[{router.stage.index(names[0]) if names else number}]{rest}"
    if rest.startswith(".link"):
        return "ring" + rest.removeprefix(".link")
    key = rest.lstrip(".")
    if router.organisation == "parallel" and len(blocks) > 1:
        return key
    given = [table.name for table in router.block]
    entry = given.index(blocks[0]) if blocks and blocks[0] in given else blocks[0]
    return f"block[{entry}].{key}"


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
        block.name: _queue(by_name.get(block.name, _PLAIN), preset.queues.get(block.name, 0)) for block in running
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


def _flow_problems(router: NetworkProcessorRouter, slices: tuple[Slice, ...], ports: int) -> Iterator[Problem]:
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
                    Problem(f"{at}.after", f'"{table.name}" has its place already, on {preset.processor.name}')
                )
            blocks[place] = Block(name=table.name, cycles=0.0) if table.stub else block_over(blocks[place], table)
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
            problems.append(Problem(f"{at}.after", f'"{table.after}" is no block: {did_you_mean(table.after, names)}'))
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
