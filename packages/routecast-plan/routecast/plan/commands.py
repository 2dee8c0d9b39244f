"""The commands ``routecast plan cluster``, ``plan mapping`` and ``plan placement``."""

from __future__ import annotations

from dataclasses import dataclass
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
from routecast.cli.options import AsJson, grouped

if TYPE_CHECKING:
    from routecast.plan.cluster.answer import ClusterAnswer
    from routecast.plan.cluster.reading import TrafficChange
    from routecast.plan.mapping.answer import MappingAnswer
    from routecast.plan.placement.answer import PlacementAnswer
    from routecast.plan.placement.reading import PlacementCase

__all__ = ["cluster", "mapping", "placement"]


TRAFFIC = "Replace values of the table [traffic]"
RESULTS = "Results"


def _series(incomplete: str) -> list[str]:
    from routecast.plan.series.reading import shipped_series

    return [name for name in shipped_series() if name.startswith(incomplete)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficOptions:
    """Values of the table [traffic] of a cluster, in place of those of the file."""

    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="FILE|NAME",
            help="Series of traffic: a table, a monitoring tool's file, abilene, geant.",
            rich_help_panel=TRAFFIC,
            autocompletion=_series,
        ),
    ] = None
    column: Annotated[
        str | None, typer.Option("--column", metavar="NAME|N", help="Column of the values.", rich_help_panel=TRAFFIC)
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="UNIT",
            help='Unit of the values where the header has none: "Mbit/s", "bit per step".',
            rich_help_panel=TRAFFIC,
        ),
    ] = None
    gaps: Annotated[
        str | None,
        typer.Option(
            "--gaps",
            metavar="refuse|hold|interpolate|drop",
            help="Treatment of missing steps.",
            rich_help_panel=TRAFFIC,
        ),
    ] = None
    step: Annotated[
        str | None,
        typer.Option("--step", metavar="TIME", help="Length of a step of the plan.", rich_help_panel=TRAFFIC),
    ] = None
    day: Annotated[
        str | None,
        typer.Option("--day", metavar='mean|"quantile Q"|all', help="Which day to plan for.", rich_help_panel=TRAFFIC),
    ] = None
    peak: Annotated[
        str | None,
        typer.Option(
            "--peak", metavar="RATE", help="Scale so that the highest step has this rate.", rich_help_panel=TRAFFIC
        ),
    ] = None

    def change(self) -> TrafficChange:
        """Return the values to replace.

        Raises QuantityProblem: a step or a peak is not valid.
        """
        from routecast.plan.cluster.reading import TrafficChange
        from routecast.quantity import parse_bit_rate_bps, parse_duration_s

        return TrafficChange(
            series=self.trace,
            column=self.column,
            unit=self.unit,
            gaps=self.gaps,
            step_s=parse_duration_s(self.step) if self.step else None,
            day=self.day,
            peak_bps=parse_bit_rate_bps(self.peak) if self.peak else None,
        )


@grouped
def cluster(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A *.cluster.toml.")],
    *,
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="PRICE", min=0.0, help="Maximum price of all machines.")
    ] = None,
    spare: Annotated[
        int | None, typer.Option("--spare", metavar="N", min=0, help="Machines that may fail at any time (N+1: 1).")
    ] = None,
    traffic: TrafficOptions,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write plan.json, schedule.csv, the figures and report.html.",
            file_okay=False,
            rich_help_panel=RESULTS,
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure", metavar="FILE.svg", help="Draw the power over the day.", dir_okay=False, rich_help_panel=RESULTS
        ),
    ] = None,
) -> None:
    """Plan a cluster of routers: which machines to buy, and when to switch each of them on.

    The goal program (Li 2012, ch. 8) finds the fleet of least daily energy within the budget, with a proven distance
    to the optimum. The answer compares it with simpler designs and with a lower bound on the energy of any fleet. It
    also shows what algorithms that switch machines on and off save, over the day and over the whole trace. Ctrl-C ends
    the search with the best fleet so far.
    """
    from routecast.plan.cluster.answer import answer
    from routecast.plan.cluster.reading import read_cluster

    check_figure_file(figure)
    case = read_cluster(file, budget=budget, spare=spare, change=traffic.change())
    make_out_folder(out)
    with progress_bar(f"plan {case.name}") as progress:
        plan = answer(case, on_progress=progress, keeps_interrupted=True)
    for note in (*case.day.notes, *plan.notes):
        remark(note)
    if as_json:
        print_json(plan.to_json())
    else:
        _print_cluster(plan)
    if out is not None:
        from routecast.plan.cluster._views import write_plan

        write_plan(plan, out)
        remark(f"Plan: {out / 'report.html'}, {out / 'plan.json'}")
    if figure is not None:
        from routecast.plan.cluster._views import power_figure

        write_figure(power_figure(plan), figure)


def _print_cluster(plan: ClusterAnswer) -> None:
    from routecast.load.series import DAY_S
    from routecast.plan.cluster._views import designs_table, headline, plan_table, savings_table, trace_traffic

    console = data()
    case = plan.case
    for number, line in enumerate(headline(plan)):
        console.print(line, style="" if number else "bold", markup=False)
    console.print()
    print_table(console, designs_table(plan))
    print_table(console, plan_table(plan))
    if plan.day_savings:
        print_table(
            console,
            savings_table(plan.day_savings, case.days, name="day", title=f"Saving over the plan: {plan.design.name}"),
        )
    if plan.trace_savings and case.trace is not None:
        days = case.trace.duration_s / DAY_S
        title = f"Saving over {days:.0f} days in steps of {case.trace.step_s / 60.0:g} min"
        print_table(
            console, savings_table(plan.trace_savings, days, name="trace", title=title, traffic=trace_traffic(plan))
        )


def mapping(
    file: Annotated[Path, typer.Argument(metavar="FILE", help='A *.router.toml of builder = "network_processor".')],
    *,
    ring: Annotated[
        list[str] | None,
        typer.Option(
            "--ring",
            metavar="MEMORY",
            help='Memory allowed for rings, or "next neighbour"; may be repeated. Default: that of the file\'s ring, '
            "scratch and sram.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", metavar="STATE", help="State that keeps its memory; may be repeated.")
    ] = None,
    keep_states: Annotated[bool, typer.Option("--keep-states", help="All states keep their memories.")] = False,
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", min=0.1, help="Time limit of the search.")] = 60.0,
    simulate: Annotated[
        bool, typer.Option("--simulate/--no-simulate", help="Check the mappings by simulation.")
    ] = True,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write mapping.json, mapping.router.toml, engines.csv, engines.svg and report.html.",
            file_okay=False,
            rich_help_panel=RESULTS,
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure", metavar="FILE", help="Write the load by engine as SVG.", dir_okay=False, rich_help_panel=RESULTS
        ),
    ] = None,
) -> None:
    """Map the blocks of a router onto the engines of a network processor.

    Maximises the throughput of the file's frames, then minimises the number of engines. It chooses which blocks share
    engines, the number of engines of each group, and the memory of each state and ring, within the limits of control
    stores, threads and memories. An integer program finds the mapping and bounds its distance to the optimum.
    Simulation compares it with the organisation of the file, with blocks assigned in turn, and with all blocks on all
    engines.
    """
    from routecast.plan.mapping.answer import answer
    from routecast.plan.mapping.reading import read_mapping

    check_figure_file(figure)
    case = read_mapping(file, rings=ring or (), keep=keep or (), keep_all=keep_states)
    make_out_folder(out)
    with progress_bar(f"map {case.problem.name}") as progress:
        result = answer(case, seconds=seconds, simulate=simulate, on_progress=progress)
    for note in result.notes:
        remark(note)
    if as_json:
        print_json(result.to_json())
    else:
        _print_mapping(result)
    if out is not None:
        from routecast.plan.mapping._views import write_mapping

        write_mapping(result, out)
        remark(f"Mapping: {out / 'mapping.router.toml'}")
    if figure is not None:
        from routecast.plan.mapping._views import engines_figure

        write_figure(engines_figure(result), figure)


def _print_mapping(result: MappingAnswer) -> None:
    from routecast.plan.mapping._views import headline, mappings_table, memories_table, misfits, stages_table

    console = data()
    for number, line in enumerate(headline(result)):
        console.print(line, style="" if number else "bold", markup=False)
    console.print()
    for table in (mappings_table(result), stages_table(result), memories_table(result)):
        print_table(console, table)
    for line in misfits(result.others):
        console.print(line, markup=False)


def placement(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A *.placement.toml.")],
    *,
    frames: Annotated[
        list[str] | None,
        typer.Option("--frames", "--frame", metavar="SIZE", help="Frame size, instead of the file's; may be repeated."),
    ] = None,
    offered: Annotated[
        str | None,
        typer.Option("--offered", metavar="RATE", help='Offered load, instead of the file\'s: "2 Mpps", "10 Gbit/s".'),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="S", min=0.1, help="Time limit of the search for each frame size."),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate/--no-simulate", help="Check the best mappings by simulation.")
    ] = True,
    as_json: AsJson = False,
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

    Maximises the predicted throughput, or minimises servers, watts or price for a target, under contention, links and
    the rules of the file. The answer has a bound on its distance to the optimum, the elements that share cores with
    the cost of sharing, and the next best mappings. Simulation then compares the best mappings by prediction and
    selects the answer. Ctrl-C ends the search with the best mapping so far. The exit code is 1 if the answer misses the
    target or the latency.
    """
    from routecast.load.frames import FrameMix
    from routecast.load.offered import IntendedRate
    from routecast.plan.placement.reading import read_placement

    case = read_placement(
        file,
        frames=tuple(FrameMix.parse(text) for text in frames or ()),
        offered=IntendedRate.parse(offered) if offered else None,
        seconds=seconds,
    )
    make_out_folder(out)
    answers = _placements(case, simulate=simulate)
    if as_json:
        from routecast.plan.placement._views import answers_json

        print_json(answers_json(answers))
    else:
        for result in answers:
            _print_placement(result)
    if out is not None:
        from routecast.plan.placement._views import write_placement

        write_placement(answers, out)
        remark(f"Placement: {out / 'report.html'}")
    if any(result.met is False for result in answers):
        remark("The answer misses the target")
        raise typer.Exit(1)


def _placements(case: PlacementCase, *, simulate: bool) -> list[PlacementAnswer]:
    """Return the answer for each frame size, and print its notes as it is found."""
    from routecast.plan.placement.answer import answer

    answers = []
    for problem in case.problems:
        with progress_bar(f"place {case.name}, {problem.frames.name}") as progress:
            answers.append(answer(problem, on_progress=progress, simulate=simulate))
        for note in answers[-1].notes:
            remark(note)
    return answers


def _print_placement(result: PlacementAnswer) -> None:
    from routecast.plan.placement._views import elements_table, headline, links_table, mappings_table

    console = data()
    console.print(f"{result.problem.frames.name}", style="bold", markup=False)
    for line in headline(result):
        console.print(line, markup=False)
    console.print()
    print_table(console, mappings_table(result))
    print_table(console, elements_table(result))
    if result.links:
        print_table(console, links_table(result))
