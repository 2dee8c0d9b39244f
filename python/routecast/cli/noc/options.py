"""Options that the commands of ``routecast noc`` share, and the files that they write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import remark
from routecast.errors import FileProblem, Problem

if TYPE_CHECKING:
    from routecast.report.noc.link_map import LinkMap

__all__ = [
    "AsJson",
    "ComparisonFolder",
    "FigureFile",
    "Loads",
    "MapFile",
    "NocFileArgument",
    "Routings",
    "Seed",
    "SimulatedRoutings",
    "refuse_no_map_file",
    "write_map",
]

CHANGES = "In the place of what the file says"
RESULTS = "Results"


def _policies(incomplete: str) -> list[str]:
    from routecast.noc.routing.policies import POLICIES

    return [name for name in POLICIES if name.startswith(incomplete)]


def _simulated(incomplete: str) -> list[str]:
    from typing import get_args

    from routecast.noc.file.fields import Simulated

    return [name for name in get_args(Simulated) if name.startswith(incomplete)]


NocFileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A *.noc.toml.")]
Loads = Annotated[
    str | None,
    typer.Option("--load", metavar="X[, Y]", help="Loads to answer for.", rich_help_panel=CHANGES),
]
Routings = Annotated[
    str | None,
    typer.Option(
        "--routing",
        metavar="NAME[, NAME]",
        help="Routings to compare.",
        rich_help_panel=CHANGES,
        autocompletion=_policies,
    ),
]
SimulatedRoutings = Annotated[
    str | None,
    typer.Option(
        "--routing",
        metavar="NAME[, NAME]",
        help="Routings or turn models to simulate.",
        rich_help_panel=CHANGES,
        autocompletion=_simulated,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", min=0, help="Seed of what is drawn.", rich_help_panel=CHANGES),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.", rich_help_panel=RESULTS)]
FigureFile = Annotated[
    Path | None,
    typer.Option("--figure", metavar="FILE.svg", help="Draw the answer.", dir_okay=False, rich_help_panel=RESULTS),
]
MapFile = Annotated[
    Path | None,
    typer.Option(
        "--map",
        metavar="FILE.svg",
        help="Draw the loads of the links on the grid.",
        dir_okay=False,
        rich_help_panel=RESULTS,
    ),
]
ComparisonFolder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Write report.html, the figures, compare.json, power.csv and links.csv.",
        file_okay=False,
        rich_help_panel=RESULTS,
    ),
]


def refuse_no_map_file(path: Path | None, option: str = "--map") -> None:
    """Refuse a path that no map can be written to, before work is spent on what it should show.

    Raises
    ------
    routecast.errors.FileProblem
        The name does not end in ``.svg``, is a folder's, or its folder is not there.
    """
    from routecast.cli.figure_file import refuse_no_figure_file

    try:
        refuse_no_figure_file(path)
    except FileProblem as problem:
        raise FileProblem(problem.subject, [Problem(option, one.message) for one in problem.problems]) from problem


def write_map(link_map: LinkMap, path: Path, option: str = "--map") -> None:
    """Write a map of links under its title as SVG.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be written.
    """
    from routecast.report.noc.link_map import draw_link_map

    try:
        path.write_text(draw_link_map(link_map, has_heading=True), encoding="utf-8")
    except OSError as problem:
        reason = problem.strerror or problem
        raise FileProblem(str(path), [Problem(option, f"cannot be written: {reason}")]) from problem
    remark(f"wrote {path}")
