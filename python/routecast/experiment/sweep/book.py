"""Answers as they come in: in memory, and in a folder within half a second."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from routecast.errors import EnvironmentProblem
from routecast.evaluate.ledger import Ledger
from routecast.experiment.model import Answer, Run
from routecast.experiment.sweep.rows import COLUMNS, row_of
from routecast.experiment.sweep.shards import answers_on_disk

__all__ = ["Book", "open_book"]

WRITES_AFTER_S = 0.2
"""Answers wait for company this long before they are written."""


class Book:
    """Answers by the key of their run.

    Parameters
    ----------
    known : mapping of str to Answer
        What there is already.
    ledger : Ledger or None
        Where further ones are kept; None keeps them in memory only.
    folder : Path or None
        Of the ledger, for messages.
    """

    def __init__(
        self, known: Mapping[str, Answer], ledger: Ledger | None = None, folder: Path | None = None
    ) -> None:
        self._answers = dict(known)
        self._ledger = ledger
        self._folder = folder
        self._unwritten_since: float | None = None

    def __contains__(self, key: str) -> bool:
        return key in self._answers

    def __getitem__(self, key: str) -> Answer:
        return self._answers[key]

    def add(self, run: Run, answer: Answer) -> None:
        """Enter the answer of a run."""
        self._answers[run.key] = answer
        if self._ledger is not None:
            self._unwritten_since = self._unwritten_since or time.monotonic()
            with _told_if_full(self._folder):
                self._ledger.add(row_of(run, answer))

    def keep_up(self) -> None:
        """Write what has waited long enough; to be called several times a second."""
        since = self._unwritten_since
        if self._ledger is not None and since is not None and time.monotonic() - since >= WRITES_AFTER_S:
            with _told_if_full(self._folder):
                self._ledger.flush()
            self._unwritten_since = None


@contextmanager
def open_book(out: Path | None, table: str) -> Iterator[Book]:
    """Open the answers of a folder; leaving, in whatever way, writes all that came in.

    Parameters
    ----------
    out : Path or None
        Made if missing; without a folder answers are kept in memory.
    table : str
        Stem of the table that is written. What other tables of the folder hold is known too.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        The folder cannot be written, or something else is writing this table.
    routecast.errors.FileProblem
        A table cannot be read.
    """
    if out is None:
        yield Book({})
        return
    with ExitStack() as stack:
        with _told_if_full(out):
            out.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_alone(out, table))
            ledger = Ledger(out, COLUMNS, table=table, summary=None)
        stack.callback(_close, ledger, out)
        yield Book(answers_on_disk(out), ledger, out)


def _close(ledger: Ledger, out: Path) -> None:
    with _told_if_full(out):
        ledger.__exit__(None, None, None)


@contextmanager
def _told_if_full(out: Path | None) -> Iterator[None]:
    import polars

    try:
        yield
    except (OSError, polars.exceptions.PolarsError) as error:
        raise EnvironmentProblem(
            f"{out}: cannot be written: {error}; make room, then start the same command again: "
            "finished runs are kept"
        ) from error


@contextmanager
def _alone(out: Path, table: str) -> Iterator[None]:
    """Keep a second sweep off a table: both would number its parts alike.

    The lock ends with the process, however it ends. Where the file system has none, nobody is kept off.
    """
    path = out / f".{table}.lock"
    while True:
        file = path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            message = (
                f"{out}: another process is running this sweep: wait for its end, or give another folder"
            )
            raise EnvironmentProblem(message) from error
        except OSError:
            break
        # The one before may have removed its file between the two calls.
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            break
        file.close()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        file.close()
