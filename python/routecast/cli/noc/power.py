"""``routecast noc power``: what the fabric burns with every routing and every allocation to planes."""

from __future__ import annotations

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.figure_file import refuse_no_figure_file, write_figure
from routecast.cli.noc.options import (
    AsJson,
    FigureFile,
    Loads,
    MapFile,
    NocFileArgument,
    Routings,
    Seed,
    refuse_no_map_file,
    write_map,
)
from routecast.cli.tables import print_table

__all__ = ["power"]


def power(
    file: NocFileArgument,
    *,
    load: Loads = None,
    routing: Routings = None,
    seed: Seed = None,
    as_json: AsJson = False,
    figure: FigureFile = None,
    link_map: MapFile = None,
) -> None:
    """Print the power of every routing, and of every allocation to planes, at each load.

    The most loaded link sets the clock and the voltage of its whole plane: power is hop flow over alpha squared (Li
    2012, eqs. 6.1-6.3 and 7.3). Beside it stand NoDVFS, XY at full voltage, and XY with scaling.
    """
    from routecast.noc.answer.power import power_answer
    from routecast.noc.file.reading import NocChange, read_noc
    from routecast.report.noc.tables import power_headline, power_table, watts_table

    refuse_no_figure_file(figure)
    refuse_no_map_file(link_map)
    change = NocChange(load=load, routings=routing, seed=seed)
    with progress_bar(f"read {file}") as progress:
        case = read_noc(file, change=change, progress=progress)
    with progress_bar(f"power of {case.name}") as progress:
        found = power_answer(case, progress=progress)
    for note in found.notes:
        remark(note)
    if as_json:
        print_json(found.to_json())
    else:
        console = data()
        for number, line in enumerate(power_headline(found)):
            console.print(line, style="" if number else "bold", markup=False)
        console.print()
        print_table(console, power_table(found))
        watts = watts_table(found)
        if watts is not None:
            print_table(console, watts)
    if figure is not None or link_map is not None:
        from routecast.report.noc.pictures import power_by_load, power_map

        if figure is not None:
            write_figure(power_by_load(found), figure)
        if link_map is not None:
            write_map(power_map(found, case.loads[-1]), link_map)
