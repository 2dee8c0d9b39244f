"""The files that ``--figure`` names: one SVG with its title."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from routecast.cli.console import remark
from routecast.errors import FileProblem, Problem

if TYPE_CHECKING:
    from routecast.report.figures import Figure

__all__ = ["refuse_no_figure_file", "write_figure"]


def refuse_no_figure_file(path: Path | None) -> None:
    """Refuse a path that no figure can be written to, before work is spent on what it should show.

    Raises
    ------
    routecast.errors.FileProblem
        The name does not end in ``.svg``, is a folder's, or its folder is not there.
    """
    if path is None:
        return
    problem = ""
    if path.suffix.lower() != ".svg":
        problem = f'ends in "{path.suffix}": a figure is an SVG file, such as {path.stem or "figure"}.svg'
    elif path.is_dir():
        problem = "is a folder: name a file in it"
    elif not path.parent.is_dir():
        problem = f"cannot be written: there is no folder {path.parent}"
    if problem:
        raise FileProblem(str(path), [Problem("--figure", problem)])


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure under its title as SVG.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be written.
    """
    from routecast.report.drawing import draw

    try:
        path.write_text(draw(figure, has_heading=True), encoding="utf-8")
    except OSError as problem:
        reason = problem.strerror or problem
        raise FileProblem(str(path), [Problem("--figure", f"cannot be written: {reason}")]) from problem
    remark(f"wrote {path}")
