"""``routecast noc compare``: routings, allocations, the optimum and the flits side by side."""

from __future__ import annotations

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.figure_file import refuse_no_figure_file, write_figure
from routecast.cli.noc.options import (
    AsJson,
    ComparisonFolder,
    FigureFile,
    Loads,
    NocFileArgument,
    Routings,
    Seed,
)
from routecast.cli.out_folder import make_out_folder
from routecast.cli.tables import print_table

__all__ = ["compare"]


def compare(
    file: NocFileArgument,
    *,
    load: Loads = None,
    routing: Routings = None,
    seed: Seed = None,
    as_json: AsJson = False,
    figure: FigureFile = None,
    out: ComparisonFolder = None,
) -> None:
    """Compare everything: power of routings and allocations, their distance to the optimum, and latency.

    With a `[simulation]` section the fabric is simulated flit by flit too: does latency hold at these loads?
    """
    from routecast.noc.answer.compare import compare as compared
    from routecast.noc.file.reading import NocChange, read_noc
    from routecast.report.noc.simulation_tables import comparison_headline, simulation_table
    from routecast.report.noc.tables import (
        beside_table,
        optima_table,
        power_table,
        watts_table,
    )

    refuse_no_figure_file(figure)
    change = NocChange(load=load, routings=routing, seed=seed)
    with progress_bar(f"read {file}") as progress:
        case = read_noc(file, change=change, progress=progress)
    make_out_folder(out)
    with progress_bar(f"compare {case.name}") as progress:
        found = compared(case, progress=progress)
    for note in found.notes:
        remark(note)
    if as_json:
        print_json(found.to_json())
    else:
        console = data()
        for number, line in enumerate(comparison_headline(found)):
            console.print(line, style="" if number else "bold", markup=False)
        console.print()
        tables = [power_table(found.power), watts_table(found.power)]
        if found.highest is not None:
            tables += [optima_table(found.optimum), beside_table(found.optimum, found.highest)]
        if found.simulation is not None:
            tables.append(simulation_table(found.simulation))
        for table in tables:
            if table is not None:
                print_table(console, table)
    if figure is not None:
        from routecast.report.noc.pictures import power_by_load

        write_figure(power_by_load(found.power, found.optimum), figure)
    if out is not None:
        from routecast.report.noc.write import write_comparison

        remark(f"Report: {write_comparison(found, out)}")
