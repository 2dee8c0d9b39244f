"""A sweep in parts: which runs are whose, and the parts' answers together again.

::

    OUT/runs.parquet          what a whole sweep has finished
    OUT/runs.2-of-8.parquet   what its second part of eight has
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from routecast.errors import QuantityProblem, RoutecastError
from routecast.evaluate.ledger import read_rows
from routecast.experiment.model import Answer, Run
from routecast.experiment.sweep.rows import COLUMNS, answer_of

__all__ = ["WHOLE", "Shard", "answers_on_disk", "join"]

WHOLE = "runs"
"""Stem of the table of a sweep that is not in shards."""

_TABLE = re.compile(r"runs(\.(?P<number>\d+)-of-(?P<count>\d+))?\.(parquet|parts)")

_SHOWN = 5
"""Missing runs that a message names."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several like parts of a sweep, each run by a job of its own.

    Parameters
    ----------
    number : int
        1, 2, …, ``count``.
    count : int

    Raises
    ------
    routecast.errors.QuantityProblem
        There is no such part.
    """

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            allowed = f"1/{self.count} to {self.count}/{self.count}" if self.count > 0 else "1/1"
            message = f"no shard {self}: shards are counted from 1, {allowed}"
            raise QuantityProblem(str(self), message)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``"2/8"``.

        Raises
        ------
        routecast.errors.QuantityProblem
            It is not written so, or there is no such part.

        Examples
        --------
        >>> Shard.parse("2/8")
        Shard(number=2, count=8)
        """
        found = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", text)
        if not found:
            raise QuantityProblem(text, f'shard "{text}" is not written i/n: e.g. 2/8, the second of eight')
        return cls(int(found[1]), int(found[2]))

    @property
    def table(self) -> str:
        """Stem of its table's files."""
        return f"{WHOLE}.{self.number}-of-{self.count}"

    def of(self, runs: Sequence[Run]) -> tuple[Run, ...]:
        """Return its runs, in their order.

        Runs are dealt out like cards, after they were sorted by their key. Sizes differ by one at most, and no factor
        falls in step with the shards: dealt in the order of a 2^k design, the second shard of two would get the high
        level of the first factor, and perhaps all the long runs.
        """
        keys = sorted({run.key for run in runs})
        mine = set(keys[self.number - 1 :: self.count])
        return tuple(run for run in runs if run.key in mine)


def answers_on_disk(out: Path) -> Mapping[str, Answer]:
    """Return what all tables of a folder hold, those of shards that are running included, by the key of the run.

    Raises
    ------
    routecast.errors.FileProblem
        A table cannot be read.
    """
    found = (_TABLE.fullmatch(path.name) for path in sorted(out.glob(f"{WHOLE}.*")))
    tables = dict.fromkeys(match[0].rpartition(".")[0] for match in found if match)
    rows = (row for table in tables for row in read_rows(out, COLUMNS, table=table))
    return {str(row["task"]): answer_of(row) for row in rows}


def join(runs: Sequence[Run], out: Path) -> tuple[Answer, ...]:
    """Return the answers of all runs from the tables of their shards.

    Parameters
    ----------
    runs : sequence of routecast.experiment.model.Run
        All of the experiment.
    out : Path
        The folder that the shards wrote to.

    Returns
    -------
    tuple of Answer
        In the order of the runs.

    Raises
    ------
    routecast.errors.RoutecastError
        Runs are missing: which, and which shards have to be started again.
    routecast.errors.FileProblem
        A table cannot be read.
    """
    answers = answers_on_disk(out)
    missing = [run for run in runs if run.key not in answers]
    if missing:
        counts = {int(found["count"]) for found in _shards(out)}
        raise RoutecastError(f"{out}: {_told(missing, len(runs))}; {_remedy(runs, missing, counts)}")
    return tuple(answers[run.key] for run in runs)


def _shards(out: Path) -> list[re.Match[str]]:
    found = (_TABLE.fullmatch(path.name) for path in out.glob(f"{WHOLE}.*"))
    return [match for match in found if match and match["count"]]


def _told(missing: Sequence[Run], total: int) -> str:
    named = ", ".join(f"row {run.row + 1} replication {run.replication + 1}" for run in missing[:_SHOWN])
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    return f"{len(missing)} of {total} runs are missing ({named}{more})"


def _remedy(runs: Sequence[Run], missing: Sequence[Run], counts: set[int]) -> str:
    if len(counts) != 1:
        return "start the experiment with the same folder and without --join: it runs what is missing"
    count = counts.pop()
    keys = {run.key for run in missing}
    shards = [Shard(number, count) for number in range(1, count + 1)]
    wanted = [str(shard) for shard in shards if any(run.key in keys for run in shard.of(runs))]
    return f"start these again with the same folder: --shard {', '.join(wanted)}; or run all without --shard"
