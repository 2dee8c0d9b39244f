"""Routers on network processors from router files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.load.frames import FrameMix
from routecast.plan.network_processor.builder import flows_of_a_round, network_processor
from routecast.plan.network_processor.catalogue import (
    BlockOverride,
    LinkOverride,
    Preset,
    ProcessorOrName,
    StateOverride,
    by_name,
    memories_without_base,
    preset_from,
    repeated_names,
)
from routecast.plan.network_processor.model import (
    MAX_ENGINES,
    MAX_THREADS,
    Block,
    LineCard,
    Link,
    Memory,
    NetworkProcessor,
    Slice,
    Stage,
    State,
)
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Count, FrameCount
from routecast.quantity.schema import field, merged, value
from routecast.router.bounds import MAX_FRAMES
from routecast.router.load_table import LoadTable
from routecast.router.model import RouterModel

__all__ = ["NetworkProcessorRouter", "Parts", "parallel", "parts_of", "pipelined", "place_in_file"]


def pipelined(
    blocks: Sequence[str],
    *,
    engines: Mapping[str, int] | None = None,
    threads: Mapping[str, int] | None = None,
    link: Link | None = None,
) -> tuple[Stage, ...]:
    """Return a stage for every block, on engines numbered from 0 in the order of the path.

    An organisation decides which blocks share a stage and which engines run it. *Pipelined*: a stage for every block.
    *Parallel*: some successive blocks form one stage, which each of several engines runs to completion; every other
    block is a stage.

    Parameters
    ----------
    blocks : sequence of str
    engines, threads : mapping of str to int or None
        Engines of a block's stage and active threads on each, by block; default: one engine and all threads.
    link : Link or None
        Link between stages.

    Examples
    --------
    >>> [stage.engines for stage in pipelined(["parse", "lookup"], engines={"parse": 2})]
    [(0, 1), (2,)]
    """
    return parallel(blocks, repeated=(), count=0, engines=engines, threads=threads, link=link)


def parallel(
    blocks: Sequence[str],
    *,
    repeated: Sequence[str],
    count: int,
    engines: Mapping[str, int] | None = None,
    threads: Mapping[str, int] | None = None,
    link: Link | None = None,
) -> tuple[Stage, ...]:
    """Return stages where ``count`` engines each run the ``repeated`` blocks to completion.

    Parameters
    ----------
    blocks : sequence of str
        All blocks in the order of the path.
    repeated : sequence of str
        Successive blocks; all of ``blocks`` for run-to-completion.
    count : int
        Number of engines that run them.
    engines, threads, link
        As for :func:`pipelined`; the threads of the repeated stage are those of its first block.

    Raises
    ------
    ModelProblem
        A repeated block is unknown, or the repeated blocks do not follow each other.

    Examples
    --------
    >>> [stage.blocks for stage in parallel(["receive", "parse", "lookup"], repeated=["parse", "lookup"], count=4)]
    [('receive',), ('parse', 'lookup')]
    """
    problems = [
        Problem(f"parallel[{index}]", f'"{name}" is no block: {did_you_mean(name, blocks)}')
        for index, name in enumerate(repeated)
        if name not in blocks
    ]
    places = [index for index, name in enumerate(blocks) if name in repeated]
    if not problems and places and places != list(range(places[0], places[-1] + 1)):
        names = ", ".join(f'"{name}"' for name in blocks[places[0] : places[-1] + 1] if name not in repeated)
        message = f"its blocks must follow each other: {names} stands between them; list it too, or place it elsewhere"
        problems.append(Problem("parallel", message))
    if problems:
        raise ModelProblem("stages", problems)
    groups: list[tuple[str, ...]] = []
    for name in blocks:
        if name in repeated and groups and groups[-1][0] in repeated:
            groups[-1] += (name,)
        else:
            groups.append((name,))
    stages = []
    first_engine = 0
    for group in groups:
        engine_count = count if group[0] in repeated else (engines or {}).get(group[0], 1)
        stages.append(
            Stage(
                blocks=group,
                engines=tuple(range(first_engine, first_engine + engine_count)),
                threads=(threads or {}).get(group[0], 0),
                link=link or Link(),
            )
        )
        first_engine += engine_count
    return tuple(stages)


@value
class StageTable(Stage):
    """Blocks that a thread runs in sequence, on some engines; for the organisation "staged"."""

    name: str = field("Name of the stage in paths; none: its number", default="")
    engines: Count | list[Count] = field(  # type: ignore[assignment]  # counted, or by their numbers
        "Number of its own engines, or the list of its engines, which stages may share", default=1
    )
    link: LinkOverride = field(  # type: ignore[assignment]  # over the router's ring
        "Link from the stage before it, where it differs", default_factory=dict
    )


@value
class NetworkProcessorRouter:
    """A router on a network processor: the processor and the organisation of its engines."""

    name: str = field("Name of the router; without it the file's", default="")
    processor: ProcessorOrName = field(
        "Name of a processor that ships, a *.processor.toml file, or a table over a base"
    )
    organisation: Literal["pipelined", "parallel", "staged"] = field(
        "A stage for every block; engines that each run several blocks; or the stages of [[stage]]", default="pipelined"
    )
    engines: Count | None = field(
        "Parallel: number of engines that run the blocks of parallel to completion; none: one",
        default=None,
        ge=1,
        le=MAX_ENGINES,
    )
    threads: Count | None = field(
        "Parallel: active threads on each of these engines; 0 or none: all", default=None, ge=0, le=MAX_THREADS
    )
    parallel: tuple[str, ...] | None = field(
        "Parallel: blocks that each of those engines runs; none: the processor's", default=None
    )
    ring: LinkOverride = field("Ring between stages, where it differs", default_factory=dict)
    state: tuple[StateOverride, ...] = field("States of the processor's blocks, or further ones", default=())
    block: tuple[BlockOverride, ...] = field("Blocks of the processor's router, or further ones", default=())
    stage: tuple[StageTable, ...] = field("Staged: the stages with their blocks and engines", default=())
    slice: tuple[Slice, ...] = field("Meta-routers that share the processor; none: one", default=())
    line_card: LineCard | None = field("Line card before each port of the processor", default=None)
    burst_frames: FrameCount = field("Burst of a policed slice to a port, frames", default=64, le=MAX_FRAMES)
    load: LoadTable | None = field("Load to evaluate with by default", default=None)

    def model_in(self, folder: Path | None, frames: FrameMix | None) -> RouterModel:
        """Return the router; buffers are counted in ``frames``, by default in the frames of the file's load.

        Raises ModelProblem: with all faults, their places those of the file.
        """
        parts = parts_of(self, folder)
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
                name=self.name,
            )
        except ModelProblem as problem:
            placed = [place_in_file(fault, self, parts, parts.stages) for fault in problem.problems]
            raise ModelProblem(problem.subject, list(dict.fromkeys(placed))) from problem


def _organised(
    router: NetworkProcessorRouter, preset: Preset, ring: Link, names: list[str], problems: list[Problem]
) -> tuple[Stage, ...]:
    """Return the stages of the pipelined or the parallel organisation, and add their faults to ``problems``."""
    if router.stage:
        problems.append(Problem("stage", f'is for organisation "staged", not "{router.organisation}"'))
    repeated: list[str] = []
    count = 1 if router.engines is None else router.engines
    if router.organisation == "parallel":
        blocks_to_repeat = preset.parallel if router.parallel is None else router.parallel
        absent = _absent(router)
        repeated = [name for name in blocks_to_repeat if name not in absent]
        if not repeated:
            problems.append(Problem("parallel", "names no block that is present: name those that engines repeat"))
        if count < 1:
            problems.append(Problem("engines", f"got {count}: at least one engine is needed"))
    else:
        problems += [
            Problem(key, 'is for organisation "parallel"' + f"; pipelined: block[…].{key}" * (key != "parallel"))
            for key in ("engines", "parallel", "threads")
            if getattr(router, key) is not None
        ]
    engines: dict[str, int] = dict(preset.engines)
    threads: dict[str, int] = dict.fromkeys(repeated, router.threads or 0)
    for index, table in enumerate(router.block):
        name = table["name"]
        if "engines" in table:
            engines[name] = table["engines"]
            if engines[name] < 1:
                message = f"got {engines[name]}: at least one engine is needed"
                problems.append(Problem(f"block[{index}].engines", message))
        if "threads" in table:
            threads[name] = table["threads"]
        if name in repeated:
            problems += [
                Problem(
                    f"block[{index}].{key}", f'is run by the engines of the parallel stage: give "{key}" of the router'
                )
                for key in ("engines", "threads")
                if key in table
            ]
    if problems:
        return ()
    needed = sum(engines.get(name, 1) for name in names if name not in repeated)
    needed += count if repeated else 0
    available = preset.processor.engines.count
    if needed > available:
        where = "engines" if repeated else "block"
        problems.append(
            Problem(where, f"the stages need {needed} engines, but {preset.processor.name} has {available}")
        )
        return ()
    try:
        return parallel(names, repeated=repeated, count=count, engines=engines, threads=threads, link=ring)
    except ModelProblem as problem:
        problems += problem.problems
        return ()


def _staged(router: NetworkProcessorRouter, ring: Link, names: list[str], problems: list[Problem]) -> tuple[Stage, ...]:
    """Return the stages that a file lists; a stage with a number of engines gets the first free engines."""
    if not router.stage:
        problems.append(Problem("stage", "is missing: organisation staged takes a [[stage]] for each stage"))
    absent = _absent(router)
    taken = {number for stage in router.stage if not isinstance(stage.engines, int) for number in stage.engines}
    free = (number for number in range(1 << 30) if number not in taken)
    stages = []
    for index, stage in enumerate(router.stage):
        if isinstance(stage.engines, int):
            if stage.engines < 1:
                problems.append(Problem(f"stage[{index}].engines", f"got {stage.engines}: at least one is needed"))
                continue
            if stage.engines > len(names) + (1 << 12):
                problems.append(Problem(f"stage[{index}].engines", f"got {stage.engines}: more than any processor has"))
                continue
            engines = tuple(next(free) for _ in range(stage.engines))
        else:
            engines = tuple(stage.engines)
        blocks = tuple(name for name in stage.blocks if name not in absent)
        if blocks or not stage.blocks:
            stages.append(Stage(blocks=blocks, engines=engines, threads=stage.threads, link=merged(ring, stage.link)))
    return tuple(stages)


def _absent(router: NetworkProcessorRouter) -> set[str]:
    return {table["name"] for table in router.block if not table.get("present", True)}


_ENTRY = re.compile(r"(?P<list>processor\.memory|block|state|stage)\[(?P<number>\d+)\](?P<rest>.*)")


def place_in_file(problem: Problem, router: NetworkProcessorRouter, parts: Parts, stages: Sequence[Stage]) -> Problem:
    """Return a fault of the builder with its place in the file.

    ``problem``: its place has numbers of memories, blocks and states of ``parts``, and of ``stages``; ``router``:
    content of the file.
    """
    match = _ENTRY.fullmatch(problem.place)
    if not match:
        return problem
    number, rest = int(match["number"]), match["rest"]
    if match["list"] == "stage":
        return Problem(_stage_place(router, stages[number].blocks, number, rest), problem.message)
    entries: Sequence[Block | Memory | State]
    if match["list"] == "block":
        entries, tables = parts.blocks, router.block
    elif match["list"] == "state":
        entries, tables = parts.states, router.state
    else:
        entries, tables = parts.processor.memories, router.processor.get("memories", ())
    name, names_in_file = entries[number].name, [table["name"] for table in tables]
    entry = names_in_file.index(name) if name in names_in_file else name
    return Problem(f"{match['list']}[{entry}]{rest}", problem.message)


def _stage_place(router: NetworkProcessorRouter, blocks: Sequence[str], number: int, rest: str) -> str:
    if router.organisation == "staged":
        names = [stage for stage in router.stage if set(stage.blocks) & set(blocks)]
        return f"stage[{router.stage.index(names[0]) if names else number}]{rest}"
    if rest.startswith(".link"):
        return "ring" + rest.removeprefix(".link")
    key = rest.lstrip(".")
    if router.organisation == "parallel" and len(blocks) > 1:
        return key
    names_in_file = [table["name"] for table in router.block]
    entry = names_in_file.index(blocks[0]) if blocks and blocks[0] in names_in_file else blocks[0]
    return f"block[{entry}].{key}"


_SMALLEST_BYTES = 64.0


@value
class Parts:
    """The arguments of :func:`~routecast.plan.network_processor.builder.network_processor`."""

    processor: NetworkProcessor
    blocks: tuple[Block, ...]
    states: tuple[State, ...]
    stages: tuple[Stage, ...]
    slices: tuple[Slice, ...]
    line_card: LineCard | None
    frame_bytes: float = field("Mean size of the file's load, 64 where it has none, B")
    port_queue_frames: int
    burst_frames: int


def parts_of(router: NetworkProcessorRouter, folder: Path | None = None) -> Parts:
    """Return the processor, blocks, states and stages of a file, to map them or to bound their throughput.

    Raises ModelProblem: with all faults, their places those of the file.
    """
    subject = f"router {router.name!r}" if router.name else "router"
    try:
        preset = preset_from(router.processor, folder=folder)
    except FileProblem as problem:
        reasons = [
            Problem("processor", f"{problem.subject}: {fault}" if problem.subject != "processor" else str(fault))
            for fault in problem.problems
        ]
        raise ModelProblem(subject, reasons) from problem
    memories = router.processor.get("memories", ())
    problems = [
        *repeated_names("processor.memory", memories),
        *repeated_names("state", router.state),
        *repeated_names("block", router.block),
        *memories_without_base(memories, preset.processor),
    ]
    blocks = _blocks(router, preset, problems)
    tables = {table["name"]: table for table in router.block}
    running = [block for block in blocks if tables.get(block.name, {}).get("present", True)]
    ring = merged(preset.ring, router.ring)
    names = [block.name for block in running]
    if router.organisation == "staged":
        stages = _staged(router, ring, names, problems)
    else:
        stages = _organised(router, preset, ring, names, problems)
    problems += _flow_problems(router, preset.processor.ports)
    if problems:
        raise ModelProblem(subject, problems)
    queues = {block.name: _queue(tables.get(block.name, {}), preset.queues.get(block.name, 0)) for block in running}
    return Parts(
        processor=preset.processor,
        blocks=tuple(running),
        states=by_name(preset.states, router.state, State(name="", memory="")),
        stages=stages,
        slices=router.slice,
        line_card=router.line_card,
        frame_bytes=router.load.frames.mean_bytes if router.load is not None else _SMALLEST_BYTES,
        port_queue_frames=sum(queues.values()),
        burst_frames=router.burst_frames,
    )


def _queue(table: Mapping[str, Any], frames: int) -> int:
    """Return the number of frames that a block queues for each port; a stub queues no frames."""
    return 0 if table.get("stub") else int(table.get("queue_frames", frames))


def _flow_problems(router: NetworkProcessorRouter, ports: int) -> Iterator[Problem]:
    """Yield a problem if the load's number of flows does not divide into the shares of the slices."""
    if not router.slice or router.load is None or router.load.arrivals.kind == "trace":
        return
    count, of_a_round = router.load.flows.count, flows_of_a_round(router.slice, ports)
    if count % of_a_round:
        yield Problem(
            "load.flows.count",
            f"got {count}: flows belong to slices, {of_a_round} flows have the shares exactly; give a multiple of that",
        )


def _blocks(router: NetworkProcessorRouter, preset: Preset, problems: list[Problem]) -> list[Block]:
    """Return the blocks of the processor's router with the changes and additions of the file."""
    blocks = list(preset.blocks)
    for index, table in enumerate(router.block):
        at, name, after = f"block[{index}]", table["name"], table.get("after")
        names = [block.name for block in blocks]
        stub = table.get("stub", False)
        if name in names:
            place = names.index(name)
            if after is not None:
                problems.append(
                    Problem(f"{at}.after", f'"{name}" already has its place on {preset.processor.name}: leave it out')
                )
            blocks[place] = Block(name=name, cycles=0.0) if stub else merged(blocks[place], table)
            continue
        if after is None:
            message = f'"{name}" is no block on {preset.processor.name}: {did_you_mean(name, names)} '
            message += 'A new block names with "after" the block that it follows'
            problems.append(Problem(f"{at}.name", message))
            continue
        if after and after not in names:
            problems.append(Problem(f"{at}.after", f'"{after}" is no block: {did_you_mean(after, names)}'))
            continue
        if "cycles" not in table and not stub:
            problems.append(Problem(f"{at}.cycles", "is missing: say what a frame costs"))
        blocks.insert(names.index(after) + 1 if after else 0, merged(Block(name=name, cycles=0.0), table))
    return blocks
