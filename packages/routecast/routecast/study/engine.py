"""The engine of studies: it runs and resumes every kind, judges its criteria and writes its files.

::

    document ─► answer(run) ─► result ─► page ─► OUT/figures, report.html, summary.json
                   │ ▲
             tasks ▼ │ rows
                 ledger            OUT/results.parquet: finished work, also of a killed run
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from routecast.errors import FileProblem, Problem
from routecast.evaluate.executor import Submit, finished
from routecast.evaluate.ledger import Columns, Ledger, Row
from routecast.evaluate.result_folder import check_folder, versions
from routecast.progress import Progress
from routecast.quantity.whole_file import write_whole
from routecast.show.page import Page
from routecast.study.document import StudyDocument, StudyFile
from routecast.study.reading import KINDS, kind_of, part_of_kind
from routecast.study.result import Provenance, StudyResult, TerminalSummary, prior_knowledge_table

if TYPE_CHECKING:
    from routecast.calibration.router_file import RouterFile

__all__ = ["StudyRun", "StudyTask", "router_file_of", "run_study", "terminal_summary"]

Document = TypeVar("Document", bound=StudyDocument)


def run_study(
    file: StudyFile[Any], out: Path, *, on_progress: Progress | None = None, command: str = "", **options: Any
) -> Any:
    """Run a study and write its results, summary, figures and report to the folder ``out``.

    Parameters
    ----------
    file : StudyFile
    out : Path
        Made if missing. If a run of the same study was killed there, it continues.
    on_progress : callable, optional
    command : str
        Command that started the study, for the report; ``routecast study NAME`` if empty.
    **options
        Further arguments of the kind's ``answer``: ``workers``, the number of processes, by default that of the cores,
        which does not change the answer; ``bench``, where devices or functions are measured.

    Returns
    -------
    StudyResult
        Result of the study's kind.

    Raises
    ------
    routecast.errors.RoutecastError
        The folder belongs to another study, a table cannot be read, the points do not determine a calibration, or a
        router cannot be built.
    """
    study = file.study
    check_folder(out, "study", study.name)
    run = StudyRun(study=study, folder=file.folder, out=out, on_progress=on_progress, command=command)
    result: StudyResult[Any] = part_of_kind(kind_of(study), "run").answer(run, **options)
    run.report_step("report")
    page: Page = part_of_kind(kind_of(study), "views").page(result)
    _write(out, page, result)
    return result


def terminal_summary(result: StudyResult[Any]) -> TerminalSummary:
    """Return the summary of a result for a terminal."""
    summary: TerminalSummary = part_of_kind(kind_of(result.study), "views").terminal_summary(result)
    table = prior_knowledge_table(result.known())
    return replace(summary, tables=(*summary.tables, table)) if table.rows else summary


def router_file_of(file: StudyFile[Any], *, today: date) -> RouterFile:
    """Return the router that a study calibrates, as a router file.

    Raises FileProblem: studies of its kind calibrate no router.
    """
    run = part_of_kind(kind_of(file.study), "run")
    if not hasattr(run, "router_file_of"):
        kinds = ", ".join(f'"{kind}"' for kind in KINDS if hasattr(part_of_kind(kind, "run"), "router_file_of"))
        message = f'a study of the kind "{kind_of(file.study)}" calibrates no router; kinds that do: {kinds}'
        raise FileProblem(str(file.path), [Problem("--save-router", message)])
    router_file: RouterFile = run.router_file_of(file, today=today)
    return router_file


def _write(out: Path, page: Page, result: StudyResult[Any]) -> None:
    """Write figures and report, and last the summary, which marks the study as complete."""
    from routecast.show.drawing import draw
    from routecast.show.page import render_page

    (out / "figures").mkdir(parents=True, exist_ok=True)
    for figure in page.figures():
        write_whole(out / "figures" / f"{figure.name}.svg", draw(figure))
    write_whole(out / "report.html", render_page(page))
    write_whole(out / "summary.json", json.dumps(result.to_json(), indent=2, ensure_ascii=False) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTask:
    """A row of the ledger to compute; ``key`` is a hash of all conditions of its cells.

    ``cells`` are known before the task runs, ``call`` returns the others. A study that uses processes can pickle it.
    """

    key: str
    title: str
    call: Callable[[], Row]
    cells: Row = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class StudyRun(Generic[Document]):
    """A running study: its document, its folders, and its progress in steps."""

    study: Document
    folder: Path
    out: Path
    on_progress: Progress | None = None
    command: str = ""
    work: int = 1
    done: int = 0
    trials: int = 0
    resumed: int = 0
    started_s: float = field(default_factory=time.monotonic)

    def report_step(self, step: str) -> None:
        """Report the next step."""
        # An expected number of steps is a bound, which grows with what proves it too low.
        self.work = max(self.work, self.done)
        if self.on_progress:
            self.on_progress(self.done, self.work, step)

    def step(self, step: str) -> None:
        """Report the next step, and count it as done afterwards."""
        self.report_step(step)
        self.done += 1

    def ledger(self, columns: Columns) -> Ledger:
        """Return the table of finished work, as a context."""
        return Ledger(self.out, columns)

    def complete(
        self,
        ledger: Ledger,
        tasks: Iterable[StudyTask],
        *,
        submit: Submit | None = None,
        flush_each: bool = False,
        counts: bool = True,
    ) -> list[Row]:
        """Do the tasks that the ledger lacks, and return the rows of all tasks in order.

        ``submit``: starts a call in another process; without it the calls run here, one by one; ``flush_each``: whether
        each row goes to disk at once, for tasks that take long; ``counts``: whether the tasks are steps of the study,
        else they are parts of a step that the caller reports.
        """
        tasks = list(tasks)
        missing = {task.key: task for task in tasks if task.key not in ledger.rows}
        self.trials += len(tasks)
        self.resumed += len(tasks) - len(missing)

        def enter(task: StudyTask, answer: Row) -> None:
            ledger.add({"task": task.key, **task.cells, **answer})
            if flush_each:
                ledger.flush()

        if submit is None:
            for task in tasks:
                if counts:
                    self.step(task.title)
                if task.key not in ledger.rows:
                    enter(task, task.call())
        else:
            if counts and tasks:
                self.done += len(tasks) - len(missing)
                self.report_step(tasks[0].title)
            futures = {submit(task.call): task for task in missing.values()}
            for future in finished(futures):
                enter(futures[future], future.result())
                if counts:
                    self.done += 1
                    self.report_step(futures[future].title)
        return [ledger.rows[task.key] for task in tasks]

    def provenance(self, *, seed: int = 0) -> Provenance:
        """Return the provenance of the results until now; the seed is 0 where nothing is drawn at random."""
        return Provenance(
            versions=versions(),
            seed=seed,
            command=self.command or f"routecast study {self.study.name}",
            trials=self.trials,
            resumed_trials=self.resumed,
            elapsed_s=time.monotonic() - self.started_s,
        )
