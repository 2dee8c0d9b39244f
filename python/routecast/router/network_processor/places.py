"""Where in a router file a fault is that the builder found: it counts blocks that the file inherits, too."""

from __future__ import annotations

import re
from collections.abc import Sequence

from routecast.errors import Problem
from routecast.router.network_processor.file_models import NetworkProcessorRouter

__all__ = ["in_the_file"]

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
