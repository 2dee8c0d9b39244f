"""``routecast plan placement``: which functions to put on which servers and cores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.out_folder import make_out_folder
from routecast.cli.tables import print_table

if TYPE_CHECKING:
    from routecast.plan.placement.answer import PlacementAnswer

__all__ = ["placement"]

RESULTS = "Results"


def placement(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A *.placement.toml.")],
    *,
    frames: Annotated[
        list[str] | None,
        typer.Option("--frames", metavar="SIZE", help="Other frame sizes than the file's; may be repeated."),
    ] = None,
    offered: Annotated[
        str | None, typer.Option("--offered", metavar="RATE", help="Another load than the file's.")
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="S", min=0.1, help="Search no longer, for each frame size."),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate/--no-simulate", help="Check the best mappings by simulation.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer as one JSON document.", rich_help_panel=RESULTS)
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write placement.json, elements.csv, the figures and report.html.",
            file_okay=False,
            rich_help_panel=RESULTS,
        ),
    ] = None,
) -> None:
    """Place load balancers, routers and other functions on servers and cores.

    Maximises the predicted throughput, or needs the fewest servers or watts for a target; with contention, links and
    your rules. It says how far from the best the answer can be, which elements share a core and what that costs, what
    the next best mapping would give. The best few mappings are simulated too: one that is better there is the answer.
    Ctrl-C ends the search with the best so far. The exit code is 1 if the target or the latency is not met.
    """
    from routecast.load.frames import FrameMix
    from routecast.plan.placement.answer import answer
    from routecast.plan.placement.reading import read_placement
    from routecast.quantity import parse_rate_pps

    case = read_placement(
        file,
        frames=tuple(FrameMix.parse(text) for text in frames or ()),
        offered_pps=parse_rate_pps(offered) if offered else None,
        seconds=seconds,
    )
    make_out_folder(out)
    found = []
    for problem in case.problems:
        with progress_bar(f"place {case.name}, {problem.frames.name}") as progress:
            found.append(answer(problem, progress=progress, simulate=simulate))
        for note in found[-1].notes:
            remark(note)
    if as_json:
        from routecast.report.placement.write import answers_json

        print_json(answers_json(found))
    else:
        for one in found:
            _print(one)
    if out is not None:
        from routecast.report.placement.write import write_placement

        write_placement(found, out)
        remark(f"Placement: {out / 'report.html'}")
    if any(one.met is False for one in found):
        remark("The target is not met")
        raise typer.Exit(1)


def _print(found: PlacementAnswer) -> None:
    from routecast.report.placement.tables import elements_table, links_table, mappings_table
    from routecast.report.placement.words import headline

    console = data()
    console.print(f"{found.problem.frames.name}", style="bold", markup=False)
    for line in headline(found):
        console.print(line, markup=False)
    console.print()
    print_table(console, mappings_table(found))
    print_table(console, elements_table(found))
    if found.links:
        print_table(console, links_table(found))
