"""``routecast noc simulate``: the fabric flit by flit."""

from __future__ import annotations

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.figure_file import refuse_no_figure_file, write_figure
from routecast.cli.noc.options import (
    AsJson,
    FigureFile,
    Loads,
    MapFile,
    NocFileArgument,
    Seed,
    SimulatedRoutings,
    refuse_no_map_file,
    write_map,
)
from routecast.cli.tables import print_table

__all__ = ["simulate"]


def simulate(
    file: NocFileArgument,
    *,
    load: Loads = None,
    routing: SimulatedRoutings = None,
    seed: Seed = None,
    as_json: AsJson = False,
    figure: FigureFile = None,
    link_map: MapFile = None,
) -> None:
    """Simulate the fabric flit by flit, from `[simulation]` of the file: latency, throughput, link loads, power.

    A load over saturation is simulated and said to be one: its latency is unbounded. A routing that can deadlock is
    refused with the cycle. Power stands beside what the flow level says.
    """
    from routecast.noc.answer.simulate import simulation_answer
    from routecast.noc.file.reading import NocChange, read_noc
    from routecast.report.noc.simulation_tables import simulation_headline, simulation_table

    refuse_no_figure_file(figure)
    refuse_no_map_file(link_map)
    change = NocChange(load=load, simulated=routing, seed=seed)
    with progress_bar(f"read {file}") as progress:
        case = read_noc(file, change=change, progress=progress)
    with progress_bar(f"simulate {case.name}") as progress:
        found = simulation_answer(case, progress=progress)
    for note in found.notes:
        remark(note)
    if as_json:
        print_json(found.to_json())
    else:
        console = data()
        for number, line in enumerate(simulation_headline(found)):
            console.print(line, style="" if number else "bold", markup=False)
        console.print()
        print_table(console, simulation_table(found))
    if figure is not None or link_map is not None:
        from routecast.report.noc.pictures import latency_by_load, simulation_map

        if figure is not None:
            write_figure(latency_by_load(found), figure)
        if link_map is not None:
            write_map(simulation_map(found), link_map)
