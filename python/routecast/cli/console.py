"""Where output goes: data to stdout, progress and errors to stderr."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["Report", "data", "print_json", "progress_bar", "remark"]

LINE_EVERY_S = 30.0
"""Where stderr is no terminal (the log of a batch job), progress is a line now and then."""
SILENT_S = 0.7
"""Work that ends sooner shows no bar: one that flashes by tells nothing."""

Report = Callable[[int, int, str], None]
"""Progress as everybody reports it: how much is done, of how much, what it is."""


def data() -> Console:
    """Return the console on stdout; it has colour only on a terminal, and none under NO_COLOR."""
    return Console(file=sys.stdout, highlight=False, soft_wrap=False)


def remark(text: str) -> None:
    """Print one line of remarks to stderr."""
    Console(stderr=True, highlight=False).print(text, markup=False, style="dim", soft_wrap=True)


def print_json(document: object) -> None:
    """Print one JSON document to stdout."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextmanager
def progress_bar(what: str) -> Iterator[Report]:
    """Show on stderr how far the body is: a bar on a terminal, if the work is worth one; elsewhere a line at times."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None, visible=False)
        start = told = time.monotonic()

        def report(done: int, total: int, now: str = "") -> None:
            nonlocal told
            if not console.is_terminal and time.monotonic() - told >= LINE_EVERY_S:
                told = time.monotonic()
                remark(f"{what}: {done:,} of {total:,}{f'; {now}' if now else ''}")
            progress.update(
                task,
                completed=done,
                total=total,
                description=now or what,
                visible=time.monotonic() - start > SILENT_S,
            )

        # Work that reports nothing for long shows its bar all the same.
        late = threading.Timer(SILENT_S, lambda: progress.update(task, visible=True))
        late.daemon = True
        if console.is_terminal:
            late.start()
        try:
            yield report
        finally:
            late.cancel()
