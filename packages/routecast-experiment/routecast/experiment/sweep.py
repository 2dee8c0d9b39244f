"""Sweeps run many runs on many workers, keep finished runs, repeat lost runs, and join shards.

::

    runs ─► sweep ─► workers ─► answers ─► OUT/runs.parquet
            shard i/n    pace: "2 min left"

A run takes between a millisecond and an hour. Short runs are sent in batches: a worker gets a batch, answers as many
runs as fit in a tenth of a second, and returns the rest. Messages are therefore few, every answer is on disk within
half a second, and the sweep needs no estimate of the time of a run.
"""

from __future__ import annotations

import fcntl
import json
import math
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
from routecast.progress import Progress

__all__ = [
    "COLUMNS",
    "AnswerRun",
    "Pace",
    "Shard",
    "answer_of",
    "answers_on_disk",
    "answers_to_keep",
    "format_remaining",
    "join",
    "open_answers",
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
"""Columns of the ledger, which are the same for all responses: ``values`` is a JSON object."""


def row_of(run: Run, answer: Answer) -> Row:
    """Return the row of the ledger for the answer of a run."""
    return {
        "task": run.key,
        "row": run.row,
        "replication": run.replication,
        # JSON as Python writes it keeps all floats exactly, also NaN and infinity.
        "values": json.dumps(dict(answer.values)),
        "problem": answer.problem,
        "unsteady": answer.unsteady,
        "bottleneck": answer.bottleneck,
    }


def answer_of(row: Row) -> Answer:
    """Return the answer in a row of the ledger."""
    return Answer(
        key=str(row["task"]),
        values=json.loads(str(row["values"])),
        problem=str(row["problem"]),
        unsteady=str(row["unsteady"]),
        bottleneck=str(row["bottleneck"]),
    )


UNSHARDED = "runs"
"""Stem of the table of a sweep without shards."""

_TABLE = re.compile(r"runs(\.(?P<number>\d+)-of-(?P<count>\d+))?\.(parquet|parts)")

_MAX_NAMED = 5
"""Number of runs that a message names."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several equal parts of a sweep, each of which a job runs.

    Parameters
    ----------
    number : int
        1, 2, …, ``count``.
    count : int
        Number of shards.

    Raises
    ------
    routecast.errors.QuantityProblem
        ``number`` is out of range.
    """

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            allowed = f"1/{self.count} to {self.count}/{self.count}" if self.count > 0 else "1/1"
            message = f"there is no shard {self}: shards are numbered from 1, {allowed}"
            raise QuantityProblem(str(self), message)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the shard of a text such as ``"2/8"``.

        Raises
        ------
        routecast.errors.QuantityProblem
            The text has another form, or there is no such shard.

        Examples
        --------
        >>> Shard.parse("2/8")
        Shard(number=2, count=8)
        """
        match = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", text)
        if not match:
            raise QuantityProblem(text, f'got shard "{text}": write I/N, such as 2/8 for the second of eight')
        return cls(int(match[1]), int(match[2]))

    @property
    def table(self) -> str:
        """Stem of the files of the shard's table."""
        return f"{UNSHARDED}.{self.number}-of-{self.count}"

    def of(self, runs: Sequence[Run]) -> tuple[Run, ...]:
        """Return the runs of the shard, in their order.

        Shards take runs in turn, in the order of the keys. Their sizes differ by one at most, and no factor correlates
        with them: in the order of a 2^k design, the second of two shards would get the high level of the first factor,
        and perhaps all long runs.
        """
        keys = sorted({run.key for run in runs})
        shard_keys = set(keys[self.number - 1 :: self.count])
        return tuple(run for run in runs if run.key in shard_keys)


def answers_on_disk(out: Path) -> Mapping[str, Answer]:
    """Return the answers in all tables of a folder, also those of running shards, by the key of the run.

    Raises FileProblem: a table cannot be read.
    """
    matches = (_TABLE.fullmatch(path.name) for path in sorted(out.glob(f"{UNSHARDED}.*")))
    tables = dict.fromkeys(match[0].rpartition(".")[0] for match in matches if match)
    rows = (row for table in tables for row in read_rows(out, COLUMNS, table=table))
    return {str(row["task"]): answer_of(row) for row in rows}


def answers_to_keep(out: Path) -> Mapping[str, Answer]:
    """Return the answers on disk; none if every run failed, for then what failed may be mended by now.

    Raises FileProblem: a table cannot be read.
    """
    answers = answers_on_disk(out)
    return answers if any(answer.values for answer in answers.values()) else {}


def join(runs: Sequence[Run], out: Path) -> tuple[Answer, ...]:
    """Return the answers of all runs from the tables of their shards.

    Parameters
    ----------
    runs : sequence of routecast.experiment.model.Run
        All runs of the experiment.
    out : Path
        Folder to which the shards wrote.

    Returns
    -------
    tuple of Answer
        In the order of the runs.

    Raises
    ------
    routecast.errors.RoutecastError
        Runs are missing; the message lists them and the shards to start again.
    routecast.errors.FileProblem
        A table cannot be read.
    """
    answers = answers_on_disk(out)
    missing = [run for run in runs if run.key not in answers]
    if missing:
        described = f"{len(missing)} of {len(runs)} runs are missing ({_describe_runs(missing)})"
        raise RoutecastError(f"{out}: {described}; {_remedy(runs, missing, out)}")
    return tuple(answers[run.key] for run in runs)


def _describe_runs(runs: Sequence[Run]) -> str:
    described = ", ".join(f"row {run.row + 1} replication {run.replication + 1}" for run in runs[:_MAX_NAMED])
    return described + (f" and {len(runs) - _MAX_NAMED} more" if len(runs) > _MAX_NAMED else "")


def _remedy(runs: Sequence[Run], missing: Sequence[Run], out: Path) -> str:
    matches = (_TABLE.fullmatch(path.name) for path in out.glob(f"{UNSHARDED}.*"))
    counts = {int(match["count"]) for match in matches if match and match["count"]}
    if len(counts) != 1:
        return "start the experiment with the same folder and without --join: it runs the missing runs"
    count = counts.pop()
    keys = {run.key for run in missing}
    shards = [Shard(number, count) for number in range(1, count + 1)]
    incomplete = [str(shard) for shard in shards if any(run.key in keys for run in shard.of(runs))]
    return f"start these again with the same folder: --shard {', '.join(incomplete)}; or run all without --shard"


WINDOW_S = 60.0
"""Span over which the pace is taken; runs and the load of the machine vary."""

ESTIMATES_AFTER_S = 2.0
"""Time until the first estimate; earlier the start of the workers would distort the pace."""


class Pace:
    """The pace of a sweep, and the time that it needs for the remaining runs.

    ``clock``: returns the current time, s.

    Examples
    --------
    >>> clock = iter([0.0, 10.0]).__next__
    >>> pace = Pace(clock)
    >>> pace.remaining_s(0, 100), pace.remaining_s(20, 100)
    (None, 40.0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._past: deque[tuple[float, int]] = deque()

    def remaining_s(self, done: int, total: int) -> float | None:
        """Return the time for the remaining runs at the pace of the last minute, s; None while the pace is unknown.

        ``done``: number of finished runs; ``total``: number of all runs.
        """
        now = self._clock()
        self._past.append((now, done))
        while len(self._past) > 2 and now - self._past[1][0] > WINDOW_S:
            self._past.popleft()
        past_s, past_done = self._past[0]
        if now - past_s < ESTIMATES_AFTER_S or done == past_done:
            return None
        return (total - done) * (now - past_s) / (done - past_done)


def format_remaining(time_s: float) -> str:
    """Return a remaining time as text.

    Examples
    --------
    >>> format_remaining(7.2), format_remaining(130), format_remaining(7500), format_remaining(3e5)
    ('8 s left', '3 min left', '2 h 5 min left', '3 d 12 h left')
    """
    seconds = math.ceil(time_s)
    if seconds < 60:
        return f"{seconds} s left"
    minutes, hours = math.ceil(seconds / 60), math.ceil(seconds / 3600)
    if minutes < 60:
        return f"{minutes} min left"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min left"
    return f"{hours // 24} d {hours % 24} h left"


WRITES_AFTER_S = 0.2
"""Longest wait of an answer for others that are written with it."""


class AnswerStore(dict[str, Answer]):
    """Answers by the key of their run.

    ``existing``: answers of earlier runs; ``ledger``: keeps further answers; None: they stay in memory; ``folder``:
    folder of the ledger, for messages.
    """

    def __init__(
        self, existing: Mapping[str, Answer], ledger: Ledger | None = None, folder: Path | None = None
    ) -> None:
        super().__init__(existing)
        self._ledger = ledger
        self._folder = folder
        self._unwritten_since: float | None = None

    def add(self, run: Run, answer: Answer) -> None:
        """Add the answer of a run."""
        self[run.key] = answer
        if self._ledger is not None:
            self._unwritten_since = self._unwritten_since or time.monotonic()
            with _raise_if_full(self._folder):
                self._ledger.add(row_of(run, answer))

    def write_if_due(self) -> None:
        """Write the answers that have waited long enough; the sweep calls this several times a second."""
        since = self._unwritten_since
        if self._ledger is not None and since is not None and time.monotonic() - since >= WRITES_AFTER_S:
            with _raise_if_full(self._folder):
                self._ledger.flush()
            self._unwritten_since = None


@contextmanager
def open_answers(out: Path | None, table: str) -> Iterator[AnswerStore]:
    """Open the answers of a folder, and write all new answers at the end, even if the block fails.

    The answers include those of all other tables of the folder. ``out``: folder, made if missing; None: answers stay in
    memory; ``table``: stem of the written table. Raises EnvironmentProblem: the folder cannot be written, or another
    process is writing this table; FileProblem: a table cannot be read.
    """
    if out is None:
        yield AnswerStore({})
        return
    with ExitStack() as stack:
        with _raise_if_full(out):
            out.mkdir(parents=True, exist_ok=True)
            stack.enter_context(_locked(out, table))
            ledger = Ledger(out, COLUMNS, table=table, summary=None)
        stack.callback(_close, ledger, out)
        yield AnswerStore(answers_to_keep(out), ledger, out)


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
            f"{out}: cannot be written: {error}; make room, then start the same command again; finished runs are kept"
        ) from error


@contextmanager
def _locked(out: Path, table: str) -> Iterator[None]:
    """Refuse a second sweep of the same table, because both would number its parts alike.

    The lock ends with the process. On a file system without locks a second sweep is not refused.
    """
    path = out / f".{table}.lock"
    while True:
        file = path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            message = f"{out}: another process runs this sweep: wait for its end, or give another folder"
            raise EnvironmentProblem(message) from error
        except OSError:
            break
        # The previous process may have removed its file between the two calls.
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            break
        file.close()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        file.close()


AnswerRun = Callable[[Run], Answer]
BATCH_S = 0.1
"""Time for which a worker answers runs before it returns them."""

POLLS_EVERY_S = 0.1
MAX_BATCH_RUNS = 1000
TASKS_PER_WORKER = 2
"""Tasks submitted for each worker; while one runs another waits, so that no worker is idle."""

MAX_LOSSES = 3
"""A run whose worker is lost is run again with others, then alone; after the last loss it is the cause."""

MAX_FALSE_STARTS = 3
"""Number of times that all workers may end before the first answer."""

_FALSE_START = (
    f"the workers ended {MAX_FALSE_STARTS} times before the first answer: read their messages on stderr. Workers need "
    "memory and routecast; a script that starts processes must do so under "
    'if __name__ == "__main__":'
)


def sweep(
    runs: Sequence[Run],
    answer: AnswerRun,
    *,
    executor: Executor,
    out: Path | None = None,
    on_progress: Progress | None = None,
    shard: Shard | None = None,
) -> tuple[Answer, ...]:
    """Answer the runs that the folder has not answered yet.

    Parameters
    ----------
    runs : sequence of routecast.experiment.model.Run
        Runs; of several runs with the same key only one is computed.
    answer : callable
        Returns the answer of a run. It can be pickled, depends only on the run, and may be called again for the same
        run.
    executor : concurrent.futures.Executor
        For example from :func:`~routecast.evaluate.executor.open_executor`. It does not affect the results.
    out : Path, optional
        Folder of the answers, made if missing. Without a folder answers stay in memory.
    on_progress : callable, optional
        Called with the number of finished runs, the number of all runs, and a text about the remaining runs.
    shard : Shard, optional
        Answer only the runs of this shard.

    Returns
    -------
    tuple of Answer
        Answers in the order of the runs, of the shard's runs if a shard is given.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        Some runs end their workers again and again (the message names them), or the folder cannot be written. Finished
        runs are kept in the folder.
    routecast.errors.FileProblem
        A table of the folder cannot be read.
    Exception
        ``answer`` raised it; a note names the run.
    """
    selected = tuple(runs) if shard is None else shard.of(runs)
    with open_answers(out, UNSHARDED if shard is None else shard.table) as answers:
        distinct = {run.key: run for run in selected}
        missing = [run for key, run in distinct.items() if key not in answers]
        if missing:
            _Sweep(missing, len(distinct), answer, executor, answers, on_progress).run()
        elif on_progress:
            on_progress(len(distinct), len(distinct), "answered before")
        return tuple(answers[run.key] for run in selected)


def _answer_batch(answer: AnswerRun, runs: Sequence[Run]) -> tuple[list[Answer], float]:
    """Answer runs for a tenth of a second, at least the first; return the answers and the time taken, s."""
    started = time.perf_counter()
    answers: list[Answer] = []
    for run in runs:
        try:
            answers.append(answer(run))
        except Exception:
            if not answers:
                raise
            break  # the run returns as the first of its next batch, so that the error can name it
        if time.perf_counter() - started >= BATCH_S:
            break
    return answers, time.perf_counter() - started


class _Sweep:
    """A running sweep: its waiting, submitted and lost runs."""

    def __init__(
        self,
        runs: Sequence[Run],
        total: int,
        answer: AnswerRun,
        executor: Executor,
        answers: AnswerStore,
        on_progress: Progress | None,
    ) -> None:
        self._waiting = deque(runs)
        self._suspects: deque[Run] = deque()
        self._submitted: dict[Future[tuple[list[Answer], float]], list[Run]] = {}
        self._losses: Counter[str] = Counter()
        self._lost_for_good: list[Run] = []
        self._false_starts = 0
        self._run_s: float | None = None
        self._answer = answer
        self._executor = executor
        self._lost_errors = lost_errors(executor)
        self._answers = answers
        self._on_progress = on_progress
        self._pace = Pace()
        self._evaluator = self._waiting[0].evaluator
        self._total = total
        self._done = total - len(self._waiting)

    def run(self) -> None:
        """Answer all runs."""
        self._report()
        try:
            while self._waiting or self._suspects or self._submitted:
                if isinstance(self._executor, Workers):
                    self._executor.check()
                self._submit_batches()
                finished, _ = some_finished(self._submitted, POLLS_EVERY_S)
                lost = [run for future in finished for run in self._collect(future)]
                if lost:
                    self._requeue(lost)
                self._answers.write_if_due()
                self._report()
        except BaseException:
            with ctrl_c_waits():
                self._keep_finished()
            raise
        if self._lost_for_good:
            raise EnvironmentProblem(self._describe_lost())

    def _submit_batches(self) -> None:
        """Submit batches, or alone a run that may have ended its worker."""
        workers = width(self._executor)
        while self._waiting and len(self._submitted) < TASKS_PER_WORKER * workers:
            size = min(self._batch_size(workers), len(self._waiting))
            self._submit([self._waiting.popleft() for _ in range(size)])
        if self._suspects and not self._submitted:
            self._submit([self._suspects.popleft()])

    def _batch_size(self, workers: int) -> int:
        if self._run_s is None:
            return 1
        share = -(-len(self._waiting) // workers)
        return max(1, min(share, MAX_BATCH_RUNS, int(BATCH_S / max(self._run_s, 1e-9))))

    def _submit(self, runs: list[Run]) -> None:
        try:
            future = self._executor.submit(_answer_batch, self._answer, runs)
        except BrokenExecutor as error:
            message = "the executor lost its workers and cannot start others; finished runs are kept"
            raise EnvironmentProblem(message) from error
        self._submitted[future] = runs

    def _collect(self, future: Future[tuple[list[Answer], float]]) -> list[Run]:
        """Add the answers of a batch; return its runs if it was lost."""
        runs = self._submitted.pop(future)
        try:
            answers, took_s = future.result()
        except self._lost_errors:
            return runs
        except BaseException as error:
            error.add_note(f"run {runs[0].key}: row {runs[0].row + 1}, replication {runs[0].replication + 1}")
            raise
        self._add_answers(runs, answers)
        self._run_s = took_s / len(answers)
        self._waiting.extendleft(reversed(runs[len(answers) :]))
        return []

    def _add_answers(self, runs: Sequence[Run], answers: Sequence[Answer]) -> None:
        for run, answer in zip(runs, answers, strict=False):
            self._answers.add(run, answer)
        self._done += len(answers)

    def _requeue(self, runs: Sequence[Run]) -> None:
        """Queue lost runs again, first with others, then alone; runs that were lost alone fail."""
        if self._run_s is None:
            self._false_starts += 1
            if self._false_starts >= MAX_FALSE_STARTS:
                raise EnvironmentProblem(_FALSE_START)
        for run in reversed(runs):
            self._losses[run.key] += 1
            losses = self._losses[run.key]
            if losses >= MAX_LOSSES:
                self._lost_for_good.append(run)
            elif losses == MAX_LOSSES - 1:
                self._suspects.append(run)
            else:
                self._waiting.appendleft(run)

    def _keep_finished(self) -> None:
        """Add the answers of finished batches that were not collected yet; cancel the others."""
        for future, runs in self._submitted.items():
            if not future.cancel() and future.done() and future.exception() is None:
                self._add_answers(runs, future.result()[0])

    def _report(self) -> None:
        if self._on_progress:
            remaining_s = self._pace.remaining_s(self._done, self._total)
            text = self._evaluator if remaining_s is None else f"{self._evaluator}, {format_remaining(remaining_s)}"
            self._on_progress(self._done, self._total, text)

    def _describe_lost(self) -> str:
        in_order = sorted(self._lost_for_good, key=lambda run: (run.row, run.replication))
        return (
            f"{len(self._lost_for_good)} of {self._total} runs ended their worker {MAX_LOSSES} times, the last time "
            f"alone ({_describe_runs(in_order)}), usually because memory is short. All other runs are finished and "
            "kept: free memory and start the same command again, or leave these levels out"
        )
