"""The runs of an experiment, each with the document of its levels, its seed, and its key.

The key is a hash of everything that decides the answer. Runs that must have the same answer (replications of a closed
form, centre points of a solved design) have the same key, so that they are computed once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from routecast.errors import FileProblem
from routecast.experiment._factors import level_at
from routecast.experiment.model import Experiment, FileValue, Level, Run
from routecast.quantity.bounded_file import open_file
from routecast.version import VERSION

__all__ = ["documents", "levels_of_row", "runs_of", "wire_order", "wire_positions"]


def wire_order(seed: int, count: int) -> list[int]:
    """Return the positions of an experiment's ``count`` runs in the order in which they are measured on the wire.

    The order is random, so that a drift of the machine does not look like the effect of a factor (Montgomery, Design
    and Analysis of Experiments, 8th ed., sec. 1.3). The experiment's seed determines it, so that the analysis can
    compute it.
    """
    return Random(seed).sample(range(count), count)


def wire_positions(seed: int, count: int) -> list[int]:
    """Return the position of each run in the order on the wire, from 0: the inverse of :func:`wire_order`."""
    return sorted(range(count), key=wire_order(seed, count).__getitem__)


_FILE_NAME = re.compile(r".{1,255}\.[A-Za-z]\w{0,7}")
"""A text that may name a file; its ending is not part of a number."""


def runs_of(experiment: Experiment) -> tuple[Run, ...]:
    """Return the runs of an experiment in the order of the rows of the design, each row's replications together.

    The seed of a run depends only on the experiment's seed, the row and the replication, as ``SeedSequence.spawn``
    makes it, so that more replications do not change the existing runs.
    """
    is_random = experiment.evaluator != "solve"
    shared = {
        "version": VERSION,
        "evaluator": experiment.evaluator,
        "duration_s": experiment.duration_s,
        "is_steadied": experiment.is_steadied,
        "responses": [(response.name, response.of, response.read_at_s) for response in experiment.responses],
    }
    shared_hash = hashlib.sha256(_canonical_json(shared))
    folder = Path(experiment.folder) if experiment.folder else Path()
    runs = []
    for row, document in enumerate(documents(experiment, range(len(experiment.design.coded)))):
        row_hash = shared_hash.copy()
        row_hash.update(_canonical_json(document))
        for digest in _file_digests(document, folder):
            row_hash.update(digest)
        for replication in range(experiment.design.replications):
            seed = _seed(experiment, row, replication) if is_random else experiment.seed
            run_hash = row_hash.copy()
            if is_random:
                run_hash.update(seed.to_bytes(8, "little"))
            runs.append(
                Run(
                    key=run_hash.hexdigest()[:32],
                    row=row,
                    replication=replication,
                    document=document,
                    evaluator=experiment.evaluator,
                    duration_s=experiment.duration_s,
                    seed=seed,
                    is_steadied=experiment.is_steadied,
                    responses=experiment.responses,
                    folder=experiment.folder,
                )
            )
    return tuple(runs)


def documents(experiment: Experiment, rows: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Yield the router or test bed document with the levels of each of these rows of the design."""
    from routecast.router.variants import vary

    document = dict(experiment.document)
    table = _file_table(experiment)
    levels_by_factor = [{level.coded: level for level in factor.levels} for factor in experiment.factors]
    for row in rows:
        overrides: dict[str, FileValue] = {}
        coded_row = experiment.design.coded[row]
        for factor, levels, coded in zip(experiment.factors, levels_by_factor, coded_row, strict=True):
            if coded not in levels:
                levels[coded] = level_at(factor, coded)
            overrides |= levels[coded].overrides
        yield vary(document, overrides, table=table)


def levels_of_row(experiment: Experiment, row: int) -> tuple[Level, ...]:
    """Return the level of each factor in a row of the design."""
    coded_row = experiment.design.coded[row]
    return tuple(level_at(factor, coded) for factor, coded in zip(experiment.factors, coded_row, strict=True))


def _file_table(experiment: Experiment) -> Any:
    if experiment.evaluator == "measure":
        from routecast.experiment.answer import table_of_testbed

        return table_of_testbed(experiment.document)
    from routecast.router.files import router_table

    return router_table(experiment.document)


def _seed(experiment: Experiment, row: int, replication: int) -> int:
    import numpy as np

    spawn_key = (replication,) if experiment.has_common_seeds else (replication, row)
    state = np.random.SeedSequence(experiment.seed, spawn_key=spawn_key).generate_state(1, np.uint64)
    return int(state[0]) >> 1


def _canonical_json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()


def _file_digests(document: Mapping[str, Any], folder: Path) -> Iterator[bytes]:
    """Yield the hash of each file that a document names, such as a trace of arrivals, because it decides the answer."""
    for text in _texts(document):
        if _FILE_NAME.fullmatch(text) and (digest := _digest(str(folder), text)):
            yield digest


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for entry in value.values():
            yield from _texts(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _texts(entry)


@lru_cache(maxsize=1024)
def _digest(folder: str, name: str) -> bytes:
    path = Path(folder) / name
    try:
        with open_file(path, kind="file of an experiment") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except FileProblem:
        return b""
