"""``routecast plan cluster``: the machines that need the least energy for a budget, and which are on when."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.figure_file import refuse_no_figure_file, write_figure
from routecast.cli.out_folder import make_out_folder
from routecast.cli.tables import print_table

if TYPE_CHECKING:
    from routecast.plan.cluster.answer import ClusterAnswer

__all__ = ["cluster"]

TRAFFIC = "In the place of what the file says of traffic"
RESULTS = "Results"


def _series(incomplete: str) -> list[str]:
    from routecast.load.series.reading import shipped_series

    return [name for name in shipped_series() if name.startswith(incomplete)]


def cluster(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A *.cluster.toml.")],
    *,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="PRICE", min=0.0, help="The most the machines may cost."),
    ] = None,
    spare: Annotated[
        int | None,
        typer.Option("--spare", metavar="N", min=0, help="Machines that may fail at any time (N+1: 1)."),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="FILE|NAME",
            help="Another series: CSV, Parquet, abilene, geant.",
            rich_help_panel=TRAFFIC,
            autocompletion=_series,
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option("--column", metavar="NAME|N", help="Its column of values.", rich_help_panel=TRAFFIC),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="UNIT",
            help='Unit of its values where the header has none: "Mbit/s", "bit per step".',
            rich_help_panel=TRAFFIC,
        ),
    ] = None,
    gaps: Annotated[
        str | None,
        typer.Option("--gaps", metavar="refuse|hold|interpolate|drop", help="Missing steps.", rich_help_panel=TRAFFIC),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option("--step", metavar="TIME", help="Length of a step of the plan.", rich_help_panel=TRAFFIC),
    ] = None,
    day: Annotated[
        str | None,
        typer.Option("--day", metavar='mean|"quantile Q"|all', help="Which day to plan for.", rich_help_panel=TRAFFIC),
    ] = None,
    peak: Annotated[
        str | None,
        typer.Option("--peak", metavar="RATE", help="Scale to this highest step.", rich_help_panel=TRAFFIC),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the plan as one JSON document.", rich_help_panel=RESULTS)
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write plan.json, schedule.csv and the figures.",
            file_okay=False,
            rich_help_panel=RESULTS,
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            metavar="FILE.svg",
            help="Draw the power over the day.",
            dir_okay=False,
            rich_help_panel=RESULTS,
        ),
    ] = None,
) -> None:
    """Plan a cluster of routers: which machines to buy, and which of them to have on when.

    The goal program (Li 2012, ch. 8) finds the fleet of least daily energy within the budget and proves how far it
    can be from the best. Beside it stand the usual designs, the bound that no fleet beats, and what algorithms that
    switch machines on and off make of it, over the day and over the whole trace. Ctrl-C ends the search with the best
    fleet until then.
    """
    from routecast.plan.cluster.answer import answer
    from routecast.plan.cluster.reading import TrafficChange, read_cluster
    from routecast.quantity import parse_bit_rate_bps, parse_duration_s

    refuse_no_figure_file(figure)
    case = read_cluster(
        file,
        budget=budget,
        spare=spare,
        change=TrafficChange(
            series=trace,
            column=column,
            unit=unit,
            gaps=gaps,
            step_s=parse_duration_s(step) if step else None,
            day=day,
            peak_bps=parse_bit_rate_bps(peak) if peak else None,
        ),
    )
    make_out_folder(out)
    with progress_bar(f"plan {case.name}") as progress:
        found = answer(case, progress=progress, keeps_interrupted=True)
    for note in (*case.day.notes, *found.notes):
        remark(note)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)
    if out is not None:
        from routecast.report.cluster.write import write_plan

        write_plan(found, out)
        remark(f"Plan: {out / 'plan.json'}")
    if figure is not None:
        from routecast.report.cluster.figures import power_figure

        write_figure(power_figure(found), figure)


def _print(found: ClusterAnswer) -> None:
    from routecast.load.series import DAY_S
    from routecast.report.cluster.tables import (
        designs_table,
        headline,
        plan_table,
        savings_table,
        trace_traffic,
    )

    console = data()
    case = found.case
    for number, line in enumerate(headline(found)):
        console.print(line, style="" if number else "bold", markup=False)
    console.print()
    print_table(console, designs_table(found))
    print_table(console, plan_table(found))
    if found.day_savings:
        print_table(
            console,
            savings_table(found.day_savings, case.days, name="day", title=f"Saving over the plan: {found.design.name}"),
        )
    if found.trace_savings and case.trace is not None:
        days = case.trace.duration_s / DAY_S
        title = f"Saving over {days:.0f} days in steps of {case.trace.step_s / 60.0:g} min"
        print_table(
            console,
            savings_table(found.trace_savings, days, name="trace", title=title, traffic=trace_traffic(found)),
        )
