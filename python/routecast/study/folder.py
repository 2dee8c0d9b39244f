"""The folder of a study's results: whose it is, how it was made, figures, report, summary."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from routecast.evaluate.result_folder import check_folder, versions
from routecast.quantity.whole_file import write_whole
from routecast.report.page import Page
from routecast.study.result import Made

__all__ = ["Making", "begin", "write_results"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """A study under way."""

    command: str
    started_s: float

    def made(self, *, seed: int = 0, trials: int = 0, resumed: int = 0) -> Made:
        """Return how the study was made, with the time that it took until now.

        Parameters
        ----------
        seed : int
            0 where nothing is drawn.
        trials, resumed : int
            Those that it needed, and how many of them an earlier run had left in the folder.
        """
        return Made(
            versions=versions(),
            seed=seed,
            command=self.command,
            trials=trials,
            resumed_trials=resumed,
            elapsed_s=time.monotonic() - self.started_s,
        )


def begin(name: str, out: Path, command: str) -> Making:
    """Begin a study, or go on with it.

    Parameters
    ----------
    name : str
        Of the study.
    out : Path
        Folder of its results; it need not be there.
    command : str
        How it was started; the plain command if empty.

    Raises
    ------
    routecast.errors.FileProblem
        The folder belongs to another study.
    """
    check_folder(out, "study", name)
    return Making(command=command or f"routecast study {name}", started_s=time.monotonic())


def write_results(out: Path, page: Page, summary: Mapping[str, object]) -> None:
    """Write figures, report and, last, the summary that says that the study is complete."""
    from routecast.report.drawing import draw
    from routecast.report.page import render_page

    folder = out / "figures"
    folder.mkdir(exist_ok=True)
    for figure in page.figures():
        write_whole(folder / f"{figure.name}.svg", draw(figure))
    write_whole(out / "report.html", render_page(page))
    write_whole(out / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
