"""``routecast plan mapping``: which blocks on which engines of a network processor, which state in which memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.figure_file import refuse_no_figure_file, write_figure
from routecast.cli.out_folder import make_out_folder
from routecast.cli.tables import print_table

if TYPE_CHECKING:
    from routecast.plan.mapping.answer import MappingAnswer

__all__ = ["mapping"]

RESULTS = "Results"


def mapping(
    file: Annotated[Path, typer.Argument(metavar="FILE", help='A *.router.toml of builder = "network_processor".')],
    *,
    ring: Annotated[
        list[str] | None,
        typer.Option(
            "--ring",
            metavar="MEMORY",
            help='A memory that rings may be in, or "next neighbour"; may be repeated. Without it: that of the file, '
            "scratch and sram.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="STATE", help="A state that stays in its memory; may be repeated."),
    ] = None,
    keep_states: Annotated[bool, typer.Option("--keep-states", help="All states stay in their memories.")] = False,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", min=0.1, help="Search no longer.")] = 60.0,
    simulate: Annotated[
        bool, typer.Option("--simulate/--no-simulate", help="Check the mappings by simulation.")
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
            help="Write mapping.json, mapping.router.toml, engines.csv and engines.svg.",
            file_okay=False,
            rich_help_panel=RESULTS,
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            metavar="FILE",
            help="Write the load by engine as SVG.",
            dir_okay=False,
            rich_help_panel=RESULTS,
        ),
    ] = None,
) -> None:
    """Map the blocks of a router onto the engines of a network processor.

    Chooses which blocks share engines, how many engines each gets, where states and rings are kept, for the greatest
    throughput of the file's frames under control stores, threads and memories; of equals the fewest engines. An integer
    program finds it and says how far from the best it can be; simulation checks it beside the file's own organisation,
    blocks dealt out in turn, and all blocks on all engines.
    """
    from routecast.plan.mapping.answer import answer
    from routecast.plan.mapping.reading import read_mapping

    refuse_no_figure_file(figure)
    case = read_mapping(file, rings=ring or (), keep=keep or (), keep_all=keep_states)
    make_out_folder(out)
    with progress_bar(f"map {case.problem.name}") as progress:
        found = answer(case, seconds=seconds, simulate=simulate, progress=progress)
    for note in found.notes:
        remark(note)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)
    if out is not None:
        from routecast.report.mapping.write import write_mapping

        write_mapping(found, out)
        remark(f"Mapping: {out / 'mapping.router.toml'}")
    if figure is not None:
        from routecast.report.mapping.figures import engines_figure

        write_figure(engines_figure(found), figure)


def _print(found: MappingAnswer) -> None:
    from routecast.report.mapping.tables import (
        headline,
        mappings_table,
        memories_table,
        stages_table,
        troubles,
    )

    console = data()
    for number, line in enumerate(headline(found)):
        console.print(line, style="" if number else "bold", markup=False)
    console.print()
    for table in (mappings_table(found), stages_table(found), memories_table(found)):
        print_table(console, table)
    for line in troubles(found.others):
        console.print(line, markup=False)
