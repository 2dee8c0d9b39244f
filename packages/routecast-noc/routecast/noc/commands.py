"""``routecast noc``: networks on chip."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import (
    check_figure_file,
    data,
    make_out_folder,
    print_json,
    print_table,
    progress_bar,
    remark,
    write_figure,
)
from routecast.cli.options import AsJson
from routecast.errors import FileProblem, Problem

if TYPE_CHECKING:
    from routecast.noc._views.link_map import LinkMap
    from routecast.noc.answer.optimum import OptimumAnswer
    from routecast.noc.answer.power import PowerAnswer
    from routecast.noc.answer.simulate import NocComparison, SimulationAnswer
    from routecast.noc.file import NocCase
    from routecast.show.tables import Table

__all__ = ["compare", "optimum", "power", "simulate"]


CHANGES = "Instead of the file's values"
RESULTS = "Results"


def _policies(incomplete: str) -> list[str]:
    from routecast.noc.routing.policies import POLICIES

    return [name for name in POLICIES if name.startswith(incomplete)]


def _simulated_policies(incomplete: str) -> list[str]:
    from routecast.noc.file import SIMULATED_POLICIES

    return [name for name in SIMULATED_POLICIES if name.startswith(incomplete)]


NocFileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A *.noc.toml.")]
Loads = Annotated[
    str | None, typer.Option("--load", metavar="X[, Y]", help="Loads to answer for.", rich_help_panel=CHANGES)
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
        autocompletion=_simulated_policies,
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", min=0, help="Seed of all random draws.", rich_help_panel=CHANGES)
]
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
    """Refuse a path that no map can be written to, before the answer is computed.

    Raises FileProblem: the name does not end in ``.svg``, it names a folder, or its folder does not exist.
    """
    try:
        check_figure_file(path)
    except FileProblem as problem:
        raise FileProblem(problem.subject, [Problem(option, fault.message) for fault in problem.problems]) from problem


def write_map(link_map: LinkMap, path: Path, option: str = "--map") -> None:
    """Write a map of links under its title as SVG.

    Raises FileProblem: the file cannot be written.
    """
    from routecast.noc._views.link_map import draw_link_map
    from routecast.quantity.whole_file import write_whole

    try:
        write_whole(path, draw_link_map(link_map, has_heading=True))
    except OSError as problem:
        reason = problem.strerror or problem
        raise FileProblem(str(path), [Problem(option, f"cannot be written: {reason}")]) from problem
    remark(f"wrote {path}")


def _read(file: Path, load: str | None, seed: int | None, **routings: str | None) -> NocCase:
    from routecast.noc.file import NocChange, read_noc

    with progress_bar(f"read {file}") as progress:
        return read_noc(file, change=NocChange(load=load, seed=seed, **routings), on_progress=progress)


def _print_answer(
    answer: PowerAnswer | OptimumAnswer | SimulationAnswer | NocComparison,
    parts: Callable[[], Iterable[str | Table | None]],
    *,
    as_json: bool,
) -> None:
    """Print an answer as JSON, or its lines and tables with the first line in bold."""
    for note in answer.notes:
        remark(note)
    if as_json:
        print_json(answer.to_json())
        return
    console = data()
    for number, part in enumerate(parts()):
        if isinstance(part, str):
            console.print(part, style="" if number else "bold", markup=False)
        elif part is not None:
            print_table(console, part)


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

    With a `[simulation]` section it also simulates the fabric flit by flit, to show whether latency holds.
    """
    from routecast.noc._views import tables
    from routecast.noc.answer.simulate import compare as comparison_of

    check_figure_file(figure)
    case = _read(file, load, seed, routings=routing)
    make_out_folder(out)
    with progress_bar(f"compare {case.name}") as progress:
        comparison = comparison_of(case, on_progress=progress)

    def parts() -> Iterable[str | Table | None]:
        yield from (*tables.comparison_headline(comparison), "")
        yield from (tables.power_table(comparison.power), tables.watts_table(comparison.power))
        if comparison.highest is not None:
            yield tables.optima_table(comparison.optimum)
            yield tables.distance_table(comparison.optimum, comparison.highest)
        if comparison.simulation is not None:
            yield tables.simulation_table(comparison.simulation)

    _print_answer(comparison, parts, as_json=as_json)
    if figure is not None:
        from routecast.noc._views.pictures import power_by_load

        write_figure(power_by_load(comparison.power, comparison.optimum), figure)
    if out is not None:
        from routecast.noc._views.write import write_comparison

        remark(f"Report: {write_comparison(comparison, out)}")


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

    Solves ideal power control (Li 2012, eqs. 6.4-6.6 and 7.7-7.12) exactly over the expansion factor, and prints how
    far every routing and every allocation is from the bound. The figure maps the optimum's link loads at the highest
    load.
    """
    from routecast.noc._views import tables
    from routecast.noc.answer.optimum import optimum_answer

    refuse_no_map_file(figure, "--figure")
    case = _read(file, load, seed, routings=routing)
    with progress_bar(f"optimum of {case.name}") as progress:
        answer = optimum_answer(case, on_progress=progress)
    highest = answer.rows[-1]

    def parts() -> Iterable[str | Table]:
        yield tables.optima_table(answer)
        yield from (*tables.optimum_lines(answer, highest), "")
        yield tables.distance_table(answer, highest)

    _print_answer(answer, parts, as_json=as_json)
    if figure is not None:
        from routecast.noc._views.pictures import optimum_map

        write_map(optimum_map(answer, highest), figure, "--figure")


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
    2012, eqs. 6.1-6.3 and 7.3). The table compares it with NoDVFS (XY at full voltage) and with scaled XY.
    """
    from routecast.noc._views import tables
    from routecast.noc.answer.power import power_answer

    check_figure_file(figure)
    refuse_no_map_file(link_map)
    case = _read(file, load, seed, routings=routing)
    with progress_bar(f"power of {case.name}") as progress:
        answer = power_answer(case, on_progress=progress)
    _print_answer(
        answer,
        lambda: (*tables.power_headline(answer), "", tables.power_table(answer), tables.watts_table(answer)),
        as_json=as_json,
    )
    if figure is not None or link_map is not None:
        from routecast.noc._views.pictures import power_by_load, power_map

        if figure is not None:
            write_figure(power_by_load(answer), figure)
        if link_map is not None:
            write_map(power_map(answer, case.loads[-1]), link_map)


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

    A load above saturation is simulated and reported as saturated: its latency is unbounded. A routing that can
    deadlock is refused, and the message names the cycle. The table compares power with that of the flow level.
    """
    from routecast.noc._views import tables
    from routecast.noc.answer.simulate import simulation_answer

    check_figure_file(figure)
    refuse_no_map_file(link_map)
    case = _read(file, load, seed, simulated=routing)
    with progress_bar(f"simulate {case.name}") as progress:
        answer = simulation_answer(case, on_progress=progress)
    _print_answer(
        answer, lambda: (*tables.simulation_headline(answer), "", tables.simulation_table(answer)), as_json=as_json
    )
    if figure is not None or link_map is not None:
        from routecast.noc._views.pictures import latency_by_load, simulation_map

        if figure is not None:
            write_figure(latency_by_load(answer), figure)
        if link_map is not None:
            write_map(simulation_map(answer), link_map)
