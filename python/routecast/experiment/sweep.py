"""Many runs: dealt out to workers, kept as they come in, taken up again, shared among jobs and joined.

::

    runs ─► dispatch ─► workers ─► book ─► OUT/runs.parquet
            shard i/n    pace: "2 min left"

Many runs on many workers: what is finished stays, what is lost is run again, how many there are does not matter.

A run takes a millisecond or an hour. Short ones travel together: a worker is given several and answers as many as fit
in a tenth of a second; the rest comes back. So a message costs little, every answer is on disk within half a second,
and nobody has to say how long a run takes.

The answer of a run as a row of a ledger.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from routecast.errors import EnvironmentProblem, QuantityProblem, RoutecastError
from routecast.evaluate.executor.workers import Workers, ctrl_c_waits, lost_errors, some_finished, width
from routecast.evaluate.ledger import Columns, Ledger, Row, read_rows
from routecast.experiment.model import Answer, Run

__all__ = [
    "COLUMNS",
    "AnswerRun",
    "Pace",
    "Progress",
    "Shard",
    "answer_of",
    "answers_on_disk",
    "join",
    "open_answers",
    "remaining",
    "row_of",
    "sweep",
]

COLUMNS: Columns = {
    "task": "text",
    "row": "whole",
    "replication": "whole",
    "values": "text",
    "problem": "text",
    "unsteady": "text",
    "bottleneck": "text",
}
"""One table for all experiments, whatever their responses: ``values`` is a JSON object."""


def row_of(run: Run, answer: Answer) -> Row:
    """Return the row of an answer."""
    return {
        "task": run.key,
        "row": run.row,
        "replication": run.replication,
        # As Python writes them, floats come back as they were, NaN and infinity too.
        "values": json.dumps(dict(answer.values)),
        "problem": answer.problem,
        "unsteady": answer.unsteady,
        "bottleneck": answer.bottleneck,
    }


def answer_of(row: Row) -> Answer:
    """Return the answer of a row."""
    return Answer(
        key=str(row["task"]),
        values=json.loads(str(row["values"])),
        problem=str(row["problem"]),
        unsteady=str(row["unsteady"]),
        bottleneck=str(row["bottleneck"]),
    )


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
        match = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", text)
        if not match:
            raise QuantityProblem(text, f'shard "{text}" is not written i/n: e.g. 2/8, the second of eight')
        return cls(int(match[1]), int(match[2]))

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

    Raises FileProblem: a table cannot be read.
    """
    matches = (_TABLE.fullmatch(path.name) for path in sorted(out.glob(f"{WHOLE}.*")))
    tables = dict.fromkeys(match[0].rpartition(".")[0] for match in matches if match)
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
        counts = {int(shard["count"]) for shard in _shards(out)}
        raise RoutecastError(f"{out}: {_told(missing, len(runs))}; {_remedy(runs, missing, counts)}")
    return tuple(answers[run.key] for run in runs)


def _shards(out: Path) -> list[re.Match[str]]:
    matches = (_TABLE.fullmatch(path.name) for path in out.glob(f"{WHOLE}.*"))
    return [match for match in matches if match and match["count"]]


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


WINDOW_S = 60.0
"""Runs of a design differ, as does what else the machine does: what is long past tells little."""

ESTIMATES_AFTER_S = 2.0
"""Before, the start of the workers would be taken for the pace."""


class Pace:
    """The pace of a sweep.

    ``clock``: seconds.

    Examples
    --------
    >>> clock = iter([0.0, 10.0]).__next__
    >>> pace = Pace(clock)
    >>> pace.left_s(0, 100), pace.left_s(20, 100)
    (None, 40.0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._past: deque[tuple[float, int]] = deque()

    def left_s(self, done: int, total: int) -> float | None:
        """Return how long what is left takes at the pace of the last minute; None while nobody knows.

        ``done``: how many runs are done now; ``total``: of how many.
        """
        now = self._clock()
        self._past.append((now, done))
        while len(self._past) > 2 and now - self._past[1][0] > WINDOW_S:
            self._past.popleft()
        then, before = self._past[0]
        if now - then < ESTIMATES_AFTER_S or done == before:
            return None
        return (total - done) * (now - then) / (done - before)


def remaining(time_s: float) -> str:
    """Write a time that is left for people.

    Examples
    --------
    >>> remaining(7.2), remaining(130), remaining(7500), remaining(3e5)
    ('8 s left', '3 min left', '2 h 5 min left', '3 d 12 h left')
    """
    seconds = int(-(-time_s // 1))
    if seconds < 60:
        return f"{seconds} s left"
    minutes = -(-seconds // 60)
    if minutes < 60:
        return f"{minutes} min left"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min left"
    hours = -(-seconds // 3600)
    return f"{hours // 24} d {hours % 24} h left"


WRITES_AFTER_S = 0.2
"""Answers wait for company this long before they are written."""


class Book:
    """Answers by the key of their run.

    ``known``: what there is already; ``ledger``: where further ones are kept; None keeps them in memory only;
    ``folder``: of the ledger, for messages.
    """

    def __init__(self, known: Mapping[str, Answer], ledger: Ledger | None = None, folder: Path | None = None) -> None:
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
            with _raise_if_full(self._folder):
                self._ledger.add(row_of(run, answer))

    def keep_up(self) -> None:
        """Write what has waited long enough; to be called several times a second."""
        since = self._unwritten_since
        if self._ledger is not None and since is not None and time.monotonic() - since >= WRITES_AFTER_S:
            with _raise_if_full(self._folder):
                self._ledger.flush()
            self._unwritten_since = None


@contextmanager
def open_answers(out: Path | None, table: str) -> Iterator[Book]:
    """Open the answers of a folder; leaving, in whatever way, writes all that came in.

    ``out``: made if missing; without a folder answers are kept in memory; ``table``: stem of the table that is written.
    What other tables of the folder hold is known too. Raises EnvironmentProblem: the folder cannot be written, or
    something else is writing this table; FileProblem: a table cannot be read.
    """
    if out is None:
        yield Book({})
        return
    with ExitStack() as stack:
        with _raise_if_full(out):
            out.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_alone(out, table))
            ledger = Ledger(out, COLUMNS, table=table, summary=None)
        stack.callback(_close, ledger, out)
        yield Book(answers_on_disk(out), ledger, out)


def _close(ledger: Ledger, out: Path) -> None:
    with _raise_if_full(out):
        ledger.__exit__(None, None, None)


@contextmanager
def _raise_if_full(out: Path | None) -> Iterator[None]:
    import polars

    try:
        yield
    except (OSError, polars.exceptions.PolarsError) as error:
        raise EnvironmentProblem(
            f"{out}: cannot be written: {error}; make room, then start the same command again: finished runs are kept"
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
            message = f"{out}: another process is running this sweep: wait for its end, or give another folder"
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


AnswerRun = Callable[[Run], Answer]
Progress = Callable[[int, int, str], None]

BATCH_S = 0.1
"""How long a worker answers before it reports."""

LOOKS_EVERY_S = 0.1
MOST_TOGETHER = 1000
AHEAD = 2
"""Tasks given out for each worker: one runs, one waits, so that no worker waits for us."""

MOST_LOSSES = 3
"""A run whose worker is lost is run again with others, then alone. Lost alone, it is what ends the workers."""

MOST_FALSE_STARTS = 3
"""How often all workers may end before any has answered anything."""

_FALSE_START = (
    f"the workers ended {MOST_FALSE_STARTS} times before any had answered anything: see what they said on stderr; they "
    "need memory and routecast, and a script of your own that starts processes does so under "
    'if __name__ == "__main__":'
)


def sweep(
    runs: Sequence[Run],
    answer: AnswerRun,
    *,
    executor: Executor,
    out: Path | None = None,
    progress: Progress | None = None,
    shard: Shard | None = None,
) -> tuple[Answer, ...]:
    """Answer runs, those that the folder has not answered yet.

    Parameters
    ----------
    runs : sequence of routecast.experiment.model.Run
        Known by their keys: the same key is run once.
    answer : callable
        Answers a run. It can be pickled, depends on nothing but the run, and may be called again for the same one.
    executor : concurrent.futures.Executor
        Such as :func:`~routecast.evaluate.executor.open_executor` opens. Neither it nor its size has any influence
        on what is returned.
    out : Path, optional
        Where answers are kept, and looked for; made if missing. Without it they are kept in memory.
    progress : callable, optional
        Told how many runs are done, of how many, and what is left.
    shard : Shard, optional
        Answer only its runs.

    Returns
    -------
    tuple of Answer
        In the order of the runs, those of the shard if there is one.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        Runs are lost again and again: which; or the folder cannot be written. What is finished is kept.
    routecast.errors.FileProblem
        What the folder holds cannot be read.
    Exception
        Whatever ``answer`` raises, with a note that names the run.
    """
    mine = tuple(runs) if shard is None else shard.of(runs)
    with open_answers(out, WHOLE if shard is None else shard.table) as book:
        once = {run.key: run for run in mine}
        missing = [run for key, run in once.items() if key not in book]
        if missing:
            _Sweep(missing, len(once), answer, executor, book, progress).run()
        elif progress:
            progress(len(once), len(once), "all there")
        return tuple(book[run.key] for run in mine)


def _answer_some(answer: AnswerRun, runs: Sequence[Run]) -> tuple[list[Answer], float]:
    """Answer the first runs, at least one, until a tenth of a second is over; return also how long it took."""
    started = time.perf_counter()
    answers: list[Answer] = []
    for run in runs:
        try:
            answers.append(answer(run))
        except Exception:
            if not answers:
                raise
            break  # it comes back as the first of its batch, so that we know which it is
        if time.perf_counter() - started >= BATCH_S:
            break
    return answers, time.perf_counter() - started


class _Sweep:
    """A sweep under way."""

    def __init__(
        self,
        runs: Sequence[Run],
        total: int,
        answer: AnswerRun,
        executor: Executor,
        book: Book,
        progress: Progress | None,
    ) -> None:
        self._waiting = deque(runs)
        self._alone: deque[Run] = deque()
        self._given: dict[Future[tuple[list[Answer], float]], list[Run]] = {}
        self._losses: Counter[str] = Counter()
        self._given_up: list[Run] = []
        self._false_starts = 0
        self._run_s: float | None = None
        self._answer = answer
        self._executor = executor
        self._lost = lost_errors(executor)
        self._book = book
        self._progress = progress
        self._pace = Pace()
        self._what = self._waiting[0].evaluator
        self._total = total
        self._done = total - len(self._waiting)

    def run(self) -> None:
        """Answer all."""
        self._tell()
        try:
            while self._waiting or self._alone or self._given:
                if isinstance(self._executor, Workers):
                    self._executor.check()
                self._give_out()
                finished, _ = some_finished(self._given, LOOKS_EVERY_S)
                lost = [runs for future in finished if (runs := self._take(future))]
                if lost:
                    self._lose([run for runs in lost for run in runs])
                self._book.keep_up()
                self._tell()
        except BaseException:
            with ctrl_c_waits():
                self._keep_finished()
            raise
        if self._given_up:
            raise EnvironmentProblem(self._why_given_up())

    def _give_out(self) -> None:
        """Give the workers something to do: batches, or one run that is suspected of ending them."""
        workers = width(self._executor)
        while self._waiting and len(self._given) < AHEAD * workers:
            size = self._batch(workers)
            self._submit([self._waiting.popleft() for _ in range(min(size, len(self._waiting)))])
        if self._alone and not self._given:
            self._submit([self._alone.popleft()])

    def _batch(self, workers: int) -> int:
        if self._run_s is None:
            return 1
        share = -(-len(self._waiting) // workers)
        return max(1, min(share, MOST_TOGETHER, int(BATCH_S / max(self._run_s, 1e-9))))

    def _submit(self, runs: list[Run]) -> None:
        try:
            future = self._executor.submit(_answer_some, self._answer, runs)
        except BrokenExecutor as error:
            message = "the executor lost its workers and cannot start them again; what is finished is kept"
            raise EnvironmentProblem(message) from error
        self._given[future] = runs

    def _take(self, future: Future[tuple[list[Answer], float]]) -> list[Run]:
        """Enter what a batch answered; return its runs if it was lost."""
        runs = self._given.pop(future)
        try:
            answers, took_s = future.result()
        except self._lost:
            return runs
        except BaseException as error:
            error.add_note(f"run {runs[0].key}: row {runs[0].row + 1}, replication {runs[0].replication + 1}")
            raise
        self._enter(runs, answers)
        self._run_s = took_s / len(answers)
        self._waiting.extendleft(reversed(runs[len(answers) :]))
        return []

    def _enter(self, runs: Sequence[Run], answers: Sequence[Answer]) -> None:
        for run, answer in zip(runs, answers, strict=False):
            self._book.add(run, answer)
        self._done += len(answers)

    def _lose(self, runs: Sequence[Run]) -> None:
        """Line lost runs up again: with others, then alone; give up what was lost alone."""
        if self._run_s is None:
            self._false_starts += 1
            if self._false_starts >= MOST_FALSE_STARTS:
                raise EnvironmentProblem(_FALSE_START)
        for run in reversed(runs):
            self._losses[run.key] += 1
            losses = self._losses[run.key]
            if losses >= MOST_LOSSES:
                self._given_up.append(run)
            elif losses == MOST_LOSSES - 1:
                self._alone.append(run)
            else:
                self._waiting.appendleft(run)

    def _keep_finished(self) -> None:
        """Enter what is finished though nobody has looked yet, and give up the rest."""
        for future, runs in self._given.items():
            if not future.cancel() and future.done() and future.exception() is None:
                self._enter(runs, future.result()[0])

    def _tell(self) -> None:
        if self._progress:
            left_s = self._pace.left_s(self._done, self._total)
            what = self._what if left_s is None else f"{self._what}, {remaining(left_s)}"
            self._progress(self._done, self._total, what)

    def _why_given_up(self) -> str:
        in_order = sorted(self._given_up, key=lambda run: (run.row, run.replication))
        named = ", ".join(f"row {run.row + 1} replication {run.replication + 1}" for run in in_order[:_SHOWN])
        more = f" and {len(self._given_up) - _SHOWN} more" if len(self._given_up) > _SHOWN else ""
        return (
            f"{len(self._given_up)} of {self._total} runs ended their worker {MOST_LOSSES} times, the last time "
            f"alone ({named}{more}), for want of memory as a rule; all others are finished and kept: start the same "
            "command again with less beside it, or leave these levels out"
        )
