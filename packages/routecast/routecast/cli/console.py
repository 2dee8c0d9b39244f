"""Output: data to stdout, progress and errors to stderr."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from routecast.errors import FileProblem, Problem, QuantityProblem
from routecast.progress import Progress, ShareProgress

if TYPE_CHECKING:
    from rich.console import Console

    from routecast.calibration.router_file import RouterFile
    from routecast.evaluate.points import Point, PointTable
    from routecast.evaluate.trial import Trial
    from routecast.show.figures import Figure
    from routecast.show.tables import Table

__all__ = [
    "check_figure_file",
    "check_output_file",
    "data",
    "make_out_folder",
    "print_csv",
    "print_json",
    "print_notes",
    "print_plain_table",
    "print_table",
    "print_table_to_stderr",
    "print_trial",
    "progress_bar",
    "read_series_points",
    "refuse_two_forms",
    "remark",
    "save_router",
    "share_bar",
    "today",
    "write_figure",
]


def print_table(console: Console, table: Table) -> None:
    """Print a table between its title and its caption, and an empty line."""
    from routecast.show.tables import terminal_table

    if table.title:
        console.print(table.title, style="bold", markup=False)
    console.print(terminal_table(table))
    if table.caption:
        plain = table.caption.replace("**", "").replace("`", "").replace("Shaded rows", "▸ rows")
        console.print(plain, style="dim", markup=False)
    console.print()


def print_trial(console: Console, trial: Trial) -> None:
    """Print a trial as tables, its bottleneck in words, and its notes."""
    from routecast.evaluate.views import trial_tables

    for table in trial_tables(trial):
        print_table(console, table)
    console.print(f"Bottleneck: {trial.bottleneck.words}.", markup=False)
    for reason in trial.invalid:
        console.print(f"Invalid, no result: {reason}", markup=False, style="bold red")
    print_notes(console, trial.notes)


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print notes, a line each."""
    for note in notes:
        console.print(f"Note: {note}", markup=False, style="dim")


LINE_EVERY_S = 30.0
"""Time between lines of progress where stderr is no terminal, as in a batch job."""
SILENT_S = 0.7
"""Shorter work shows no bar."""


def data() -> Console:
    """Return the console on stdout, with colour only on a terminal without NO_COLOR.

    Without a terminal, lines are not padded, and are wrapped only if COLUMNS gives a width.
    """
    return _console(sys.stdout)


_UNWRAPPED_COLUMNS = 100_000


def _console(file: TextIO) -> Console:
    from rich.console import Console

    console = Console(file=file, highlight=False)
    if console.is_terminal:
        return console
    width = None if os.environ.get("COLUMNS", "").isdigit() else _UNWRAPPED_COLUMNS
    return Console(file=cast("TextIO", _Unpadded(file)), highlight=False, width=width)


class _Unpadded:
    """A file that receives lines without blanks at their ends."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(re.sub(" +$", "", text, flags=re.MULTILINE) if text.endswith("\n") else text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def print_table_to_stderr(table: Table) -> None:
    """Print a table to stderr, such as a plan."""
    print_table(_console(sys.stderr), table)


def remark(text: str) -> None:
    """Print one line of remarks to stderr."""
    sys.stderr.write(f"{_styled(text, _DIM, sys.stderr)}\n")
    sys.stderr.flush()


_BOLD, _DIM = 1, 2
"""Styles of a terminal (ECMA-48, SGR)."""


def _styled(text: str, style: int, file: TextIO) -> str:
    """Return a text in a style, if the file is a terminal that shows styles, without an import of rich."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown") or not file.isatty()
    return text if is_plain or not text else f"\x1b[{style}m{text}\x1b[0m"


def print_plain_table(table: Table) -> None:
    """Print a table to stdout as :func:`print_table` does, without an import of rich; long lines are not wrapped."""
    from routecast.show.tables import plain_lines

    heads, rows = plain_lines(table)
    bold = partial(_styled, style=_BOLD, file=sys.stdout)
    lines = [*map(bold, [table.title] if table.title else []), *map(bold, heads)]
    lines += [bold(row) if number in table.strong else row for number, row in enumerate(rows)]
    sys.stdout.write("\n".join([*lines, *([table.caption] if table.caption else []), "", ""]))


def print_json(document: object) -> None:
    """Print one JSON document to stdout."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def print_csv(rows: Iterable[Mapping[str, object]]) -> None:
    """Print rows of plain data as CSV to stdout, in the units of their keys."""
    from routecast.show.tables import csv_of

    sys.stdout.write(csv_of(rows))


def refuse_two_forms(*, as_csv: bool, as_json: bool) -> None:
    """Refuse to print the same data in two forms.

    Raises QuantityProblem: both forms are requested.
    """
    if as_csv and as_json:
        raise QuantityProblem("", "--csv and --json are two forms of the same data: give one of them")


@contextmanager
def progress_bar(description: str) -> Iterator[Progress]:
    """Show progress on stderr: a bar on a terminal if the work takes long enough, otherwise a line at times."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(description, total=None, visible=False)
        start = reported_s = time.monotonic()

        def report(done: int, total: int, step: str = "") -> None:
            nonlocal reported_s
            total = max(total, done)
            if not console.is_terminal and time.monotonic() - reported_s >= LINE_EVERY_S:
                reported_s = time.monotonic()
                remark(f"{description}: {done:,} of {total:,}{f'; {step}' if step else ''}")
            is_visible = time.monotonic() - start > SILENT_S
            progress.update(task, completed=done, total=total, description=step or description, visible=is_visible)

        # Show the bar also of work that reports nothing for a long time.
        timer = threading.Timer(SILENT_S, lambda: progress.update(task, visible=True))
        timer.daemon = True
        if console.is_terminal:
            timer.start()
        try:
            yield report
        finally:
            timer.cancel()


@contextmanager
def share_bar(description: str) -> Iterator[ShareProgress]:
    """Show the finished share of the work, 0..1, as a bar of 100 steps."""
    with progress_bar(description) as report:
        yield lambda share: report(round(100.0 * share), 100, "")


_OUTPUT_KINDS = {
    ".svg": "a figure is an SVG file",
    ".html": "a page is an HTML file",
    ".json": "what is kept is a JSON file",
}


def check_figure_file(path: Path | None) -> None:
    """Check the path of a figure before the work on it begins.

    Raises FileProblem: as :func:`check_output_file`.
    """
    check_output_file(path, "--figure", ".svg")


def check_output_file(path: Path | None, option: str, suffix: str = "") -> None:
    """Check the path of an output file before the work on it begins.

    Raises FileProblem: the name does not end in ``suffix`` or names a folder, or its folder does not exist.
    """
    if path is None:
        return
    if suffix and path.suffix.lower() != suffix:
        message = f'ends in "{path.suffix}": {_OUTPUT_KINDS[suffix]}, such as {path.stem or "answer"}{suffix}'
        raise FileProblem(str(path), [Problem(option, message)])
    if path.is_dir():
        raise FileProblem(str(path), [Problem(option, "is a folder: name a file in it")])
    if not path.parent.is_dir():
        raise FileProblem(str(path), [Problem(option, f"cannot be written: there is no folder {path.parent}")])


def today() -> date:
    """Return the local date."""
    return datetime.now().astimezone().date()


def read_series_points(path: Path, series: str | None = None, rename: Sequence[str] | None = None) -> tuple[Point, ...]:
    """Read a table of measured points or of trials, or one series of it, and print its assumptions to stderr."""
    from routecast.evaluate.points import of_series

    table = read_measured_table(path, rename, on_remark=remark)
    for text in table.remarks:
        remark(text)
    return of_series(table.points, series)


def read_measured_table(
    path: Path, rename: Sequence[str] | None = None, *, on_remark: Callable[[str], None] = lambda text: None
) -> PointTable:
    """Read a table of measured points, or of trials where the lab is installed.

    ``rename``: texts of ``--rename``; ``on_remark``: called with what a table of trials leaves open.
    """
    from routecast.evaluate.point_table import read_table
    from routecast.quantity.table_file import parse_rename
    from routecast.wings import find_part

    names = parse_rename(rename or ())
    reader = find_part("a table of measurements")
    table: PointTable = reader(path, rename=names, on_remark=on_remark) if reader else read_table(path, rename=names)
    return table


def save_router(file: RouterFile, path: Path) -> None:
    """Write a calibrated router to a file, and print to stderr what the file cannot hold."""
    from routecast.quantity.whole_file import write_whole

    write_whole(path, file.text)
    for warning in file.warnings:
        remark(f"Not in {path}: {warning}")
    remark(f"wrote {path}")


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure under its title as SVG.

    Raises FileProblem: the file cannot be written.
    """
    from routecast.quantity.whole_file import write_whole
    from routecast.show.drawing import draw

    try:
        write_whole(path, draw(figure, has_heading=True))
    except OSError as problem:
        reason = problem.strerror or problem
        raise FileProblem(str(path), [Problem("--figure", f"cannot be written: {reason}")]) from problem
    remark(f"wrote {path}")


def make_out_folder(path: Path | None) -> None:
    """Make a folder before the work on its content begins, because some systems show only then whether it can be made.

    Raises FileProblem: the folder cannot be made, or is not writable.
    """
    if path is None:
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        message = f"cannot be made: {reason}; name a folder that can be written to"
        raise FileProblem(str(path), [Problem("--out", message)]) from problem
    if not os.access(path, os.W_OK | os.X_OK):
        message = "is not writable: name another folder, or change its permissions"
        raise FileProblem(str(path), [Problem("--out", message)])
