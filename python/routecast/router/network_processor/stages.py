"""The stages that a router file asks for: those of an organisation by its name, or those that it lists."""

from __future__ import annotations

from routecast.errors import ModelProblem, Problem
from routecast.router.network_processor.catalogue import Preset
from routecast.router.network_processor.file_models import NetworkProcessorRouter
from routecast.router.network_processor.model import Link, Stage
from routecast.router.network_processor.organisation import parallel
from routecast.router.network_processor.overrides import link_over

__all__ = ["stages_of"]


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
            problems.append(
                Problem("parallel", "names no block that is present: name those that engines repeat")
            )
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
        problems.append(
            Problem(where, f"the stages need {needed} engines, but {preset.processor.name} has {count}")
        )
        return ()
    try:
        return parallel(
            names, repeated=repeated, count=router.engines, engines=engines, threads=threads, link=ring
        )
    except ModelProblem as problem:
        problems += problem.problems
        return ()


def _staged(
    router: NetworkProcessorRouter, ring: Link, names: list[str], problems: list[Problem]
) -> tuple[Stage, ...]:
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
                problems.append(
                    Problem(f"stage[{index}].engines", f"got {one.engines}: at least one is needed")
                )
                continue
            if one.engines > len(names) + (1 << 12):
                problems.append(
                    Problem(f"stage[{index}].engines", f"got {one.engines}: more than any processor has")
                )
                continue
            engines = tuple(next(free) for _ in range(one.engines))
        else:
            engines = tuple(one.engines)
        blocks = tuple(name for name in one.blocks if name not in absent)
        if blocks or not one.blocks:
            stages.append(
                Stage(blocks=blocks, engines=engines, threads=one.threads, link=link_over(ring, one.link))
            )
    return tuple(stages)
