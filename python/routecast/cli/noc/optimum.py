"""``routecast noc optimum``: the least power that any splitting of the flows reaches."""

from __future__ import annotations

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.noc.options import (
    AsJson,
    FigureFile,
    Loads,
    NocFileArgument,
    Routings,
    Seed,
    refuse_no_map_file,
    write_map,
)
from routecast.cli.tables import print_table

__all__ = ["optimum"]


def optimum(
    file: NocFileArgument,
    *,
    load: Loads = None,
    routing: Routings = None,
    seed: Seed = None,
    as_json: AsJson = False,
    figure: FigureFile = None,
) -> None:
    """Find the least power of any splitting of flows over paths and planes, with a proven bound.

    Ideal power control (Li 2012, eqs. 6.4-6.6 and 7.7-7.12), exactly over the expansion factor. Beside it stands how
    far every routing and every allocation is from the bound. The figure maps the optimum's link loads at the highest
    load.
    """
    from routecast.noc.answer.optimum import optimum_answer
    from routecast.noc.file.reading import NocChange, read_noc
    from routecast.report.noc.tables import beside_table, optima_table, optimum_lines

    refuse_no_map_file(figure, "--figure")
    change = NocChange(load=load, routings=routing, seed=seed)
    with progress_bar(f"read {file}") as progress:
        case = read_noc(file, change=change, progress=progress)
    with progress_bar(f"optimum of {case.name}") as progress:
        found = optimum_answer(case, progress=progress)
    for note in found.power.notes:
        remark(note)
    highest = found.rows[-1]
    if as_json:
        print_json(found.to_json())
    else:
        console = data()
        print_table(console, optima_table(found))
        for line in optimum_lines(found, highest):
            console.print(line, markup=False)
        console.print()
        print_table(console, beside_table(found, highest))
    if figure is not None:
        from routecast.report.noc.pictures import optimum_map

        write_map(optimum_map(found, highest), figure, "--figure")
