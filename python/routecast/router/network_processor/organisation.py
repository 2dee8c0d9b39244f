"""Organisations: which blocks share a stage, and which engines run it.

*Pipelined*: a stage for every block. *Parallel*: some blocks that follow each other are one stage, which each of
several engines runs to completion; the others are stages of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.network_processor.model import Link, Stage

__all__ = ["parallel", "pipelined"]


def pipelined(
    blocks: Sequence[str],
    *,
    engines: Mapping[str, int] | None = None,
    threads: Mapping[str, int] | None = None,
    link: Link | None = None,
) -> tuple[Stage, ...]:
    """Return a stage for every block, on engines numbered from 0 in the order of the way.

    Parameters
    ----------
    blocks : sequence of str
    engines, threads : mapping of str to int or None
        Engines of a block's stage and active threads on each; where a block is not named, one engine and all threads.
    link : Link or None
        Between stages.

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
    """Return stages of which one is on ``count`` engines that each run the ``repeated`` blocks to completion.

    Parameters
    ----------
    blocks : sequence of str
        In the order of the way.
    repeated : sequence of str
        Blocks that follow each other; all of ``blocks`` for run-to-completion.
    count : int
        Engines that run them.
    engines, threads, link
        As for :func:`pipelined`; the threads of the repeated stage are those of its first block.

    Raises
    ------
    ModelProblem
        A repeated block is not there, or they do not follow each other.

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
        told = ", ".join(f'"{name}"' for name in blocks[places[0] : places[-1] + 1] if name not in repeated)
        what = f"its blocks must follow each other: {told} stands between them; list it too, or place it elsewhere"
        problems.append(Problem("parallel", what))
    if problems:
        raise ModelProblem("stages", problems)
    groups: list[tuple[str, ...]] = []
    for name in blocks:
        if name in repeated and groups and groups[-1][0] in repeated:
            groups[-1] += (name,)
        else:
            groups.append((name,))
    stages = []
    free = 0
    for group in groups:
        wanted = count if group[0] in repeated else (engines or {}).get(group[0], 1)
        stages.append(
            Stage(
                blocks=group,
                engines=tuple(range(free, free + wanted)),
                threads=(threads or {}).get(group[0], 0),
                link=link or Link(),
            )
        )
        free += wanted
    return tuple(stages)
