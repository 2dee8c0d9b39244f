"""``routecast day``: every frame of a day, at the loads of a traffic series."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import (
    check_figure_file,
    check_output_file,
    data,
    print_csv,
    print_json,
    print_notes,
    print_table,
    progress_bar,
    refuse_two_forms,
    remark,
    write_figure,
)
from routecast.cli.device import GraphicsOptions
from routecast.cli.options import AsCsv, AsJson, FigureFile, ModelLoadOptions, RouterFile, Seed, frames_option, grouped
from routecast.errors import QuantityProblem
from routecast.plan.power.commands import DayOptions

if TYPE_CHECKING:
    from routecast.load.offered import OfferedLoad
    from routecast.load.series import TrafficSeries
    from routecast.plan.day.simulated import DayStep, SimulatedDay
    from routecast.router.model import RouterModel

__all__ = ["day"]


@grouped
def day(
    file: RouterFile,
    *,
    profile: Annotated[
        str,
        typer.Option(
            "--profile", metavar="SERIES", help="A table, a monitoring tool's file, abilene, geant, or synthetic."
        ),
    ],
    of_day: DayOptions,
    load: ModelLoadOptions,
    each: Annotated[
        str | None, typer.Option("--each", metavar="TIME", help="Simulated time of each step; all of it without.")
    ] = None,
    seed: Seed = 1,
    where: GraphicsOptions,
    keep: Annotated[
        Path | None,
        typer.Option(
            "--keep", metavar="FILE.json", help="Keep finished steps there; with the same file the day goes on."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.html", help="Write the day as a page.", dir_okay=False)
    ] = None,
    figure: FigureFile = None,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Every frame of a day: loss, latency and watts of each step of a traffic series, and the worst minute.

    The day is one trajectory: each step begins with the frames that the last one left in the router. Arrivals are
    Poisson at the rate of the step; the router has to be one that lanes run. Ctrl-C ends the day after the steps that
    are finished, and --keep lets it go on from there.
    """
    from routecast.plan.day.simulated import simulated_day
    from routecast.plan.day.views import day_facts, day_figure, step_rows, step_table
    from routecast.quantity import parse_duration_s

    refuse_two_forms(as_csv=as_csv, as_json=as_json)
    check_figure_file(figure)
    check_output_file(out, "--out", ".html")
    check_output_file(keep, "--keep", ".json")
    model, offered = _router_and_load(file, load, seed)
    series = of_day.day(profile, frame_bytes=offered.frames.mean_bytes)
    each_s = None if each is None else parse_duration_s(each)
    where.check("lanes")
    given_up: Counter[str] = Counter()
    steps, is_whole = _steps(
        model, offered, series, each_s=each_s, keep=keep, seed=seed, where=where, given_up=given_up
    )
    if not steps:
        remark("Interrupted: no step was finished.")
        raise KeyboardInterrupt
    result = simulated_day(model, offered, series, steps, each_s=each_s, given_up=given_up)
    if figure is not None:
        write_figure(day_figure(result), figure)
    if out is not None:
        _write_page(result, out, file)
    if as_json:
        print_json(result.to_json())
    elif as_csv:
        print_csv(step_rows(result))
    else:
        print_table(data(), day_facts(result))
        print_table(data(), step_table(result))
        print_notes(data(), result.notes)
    if not is_whole:
        goes_on = f"the same command goes on from {keep}" if keep else "give --keep FILE.json to go on from there"
        remark(f"Interrupted after {len(steps)} of {result.step_count} steps: {goes_on}.")
        raise KeyboardInterrupt


def _router_and_load(file: Path, load: ModelLoadOptions, seed: int) -> tuple[RouterModel, OfferedLoad]:
    """Return the router and its frames, flows and arrivals, which are Poisson unless they are given."""
    from routecast.load.arrivals import Arrivals
    from routecast.router.files import read_router_and_load

    if load.load is not None:
        raise QuantityProblem("", "--load is one load, --profile the loads of a day: --peak scales them")
    model, default = read_router_and_load(file, frames=frames_option(load.frame))
    if default is None:
        load = replace(load, load="1 Mpps", frame=load.frame or "IMIX")
    offered = load.offered(default, ports=len(model.ports), seed=seed)
    return model, offered if load.arrivals else replace(offered, arrivals=Arrivals.poisson())


def _steps(
    model: RouterModel,
    offered: OfferedLoad,
    series: TrafficSeries,
    *,
    each_s: float | None,
    keep: Path | None,
    seed: int,
    where: GraphicsOptions,
    given_up: Counter[str],
) -> tuple[list[DayStep], bool]:
    """Return the finished steps of a day, and whether they are all; count why a device was given up."""
    from routecast.evaluate.simulate import Simulate
    from routecast.plan.day.simulated import day_load, day_steps

    steps: list[DayStep] = []
    count = len(series.l2_bps)
    with progress_bar("day") as progress:

        def on_share(share: float) -> None:
            progress(round(100.0 * (len(steps) + share)), 100 * count, f"step {len(steps) + 1} of {count}")

        load = day_load(offered, series, each_s=each_s)
        step_s = each_s or series.step_s
        simulate = where.on_device(Simulate(model, seed=seed, on_progress=on_share), load, step_s)
        try:
            for step in day_steps(
                simulate, load, series, each_s=each_s, kept=keep, on_given_up=lambda why: given_up.update([why])
            ):
                steps.append(step)
        except KeyboardInterrupt:
            return steps, False
    return steps, True


def _write_page(result: SimulatedDay, out: Path, file: Path) -> None:
    from routecast.plan.day.views import day_page
    from routecast.quantity.whole_file import write_whole
    from routecast.show.page import render_page

    write_whole(out, render_page(day_page(result, source=file.name)))
    remark(f"wrote {out}")
