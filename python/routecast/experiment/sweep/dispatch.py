"""Many runs on many workers: what is finished stays, what is lost is run again, how many there are does not matter.

A run takes a millisecond or an hour. Short ones travel together: a worker is given several and answers as many as fit
in a tenth of a second; the rest comes back. So a message costs little, every answer is on disk within half a second,
and nobody has to say how long a run takes.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path

from routecast.errors import EnvironmentProblem
from routecast.experiment.executor.ctrl_c import ctrl_c_waits
from routecast.experiment.executor.workers import Workers, lost_errors, some_finished, width
from routecast.experiment.model import Answer, Run
from routecast.experiment.sweep.book import Book, open_book
from routecast.experiment.sweep.pace import Pace, remaining
from routecast.experiment.sweep.shards import WHOLE, Shard

__all__ = ["AnswerRun", "Progress", "sweep"]

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

_SHOWN = 5


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
        Such as :func:`~routecast.experiment.executor.open_executor` opens. Neither it nor its size has any influence
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
    with open_book(out, WHOLE if shard is None else shard.table) as book:
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
