"""``routecast power optimise``: the setting of a router with the fewest watts that keeps what is asked of it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.figure_file import refuse_no_figure_file, write_figure
from routecast.cli.offered import (
    ArrivalsOption,
    BurstOption,
    FlowsOption,
    FrameOption,
    LoadOption,
    PeakOption,
    RandomFlowsOption,
    offered_load,
)
from routecast.cli.power.day_profile import GapsChoice, day_profile
from routecast.cli.solve import RouterFile
from routecast.errors import CriterionFailed, QuantityProblem

if TYPE_CHECKING:
    from routecast.cli.console import Report
    from routecast.load.offered import OfferedLoad
    from routecast.load.series import TrafficSeries
    from routecast.plan.operating.day import Switching
    from routecast.plan.operating.optimise import Effort, Machine
    from routecast.plan.operating.targets import Target

__all__ = ["SearchEvaluator", "optimise"]

DAY = "Day"
SEARCH = "Search"


class SearchEvaluator(StrEnum):
    """Who answers during the search."""

    SIMULATE = "simulate"
    SOLVE = "solve"


def optimise(
    file: RouterFile,
    *,
    load: LoadOption = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="BOUND",
            help='What must be kept: "p99 < 100 us", "mean < 20 us", "loss < 0.01 %". May be repeated. '
            "Without one on loss, none may be lost.",
        ),
    ] = None,
    frame: FrameOption = None,
    flows: FlowsOption = None,
    random_flows: RandomFlowsOption = False,
    arrivals: ArrivalsOption = None,
    burst_frames: BurstOption = 32.0,
    peak_ratio: PeakOption = 4.0,
    pool: Annotated[str, typer.Option("--pool", help="Forwarding pool, if several have power states.")] = "",
    linger: Annotated[
        str,
        typer.Option(
            "--linger",
            metavar="TIMES",
            help='Times of polling on to try, e.g. "20 us, 200 us"; else from the file.',
        ),
    ] = "",
    evaluator: Annotated[
        SearchEvaluator,
        typer.Option("--evaluator", help="Who answers during the search.", rich_help_panel=SEARCH),
    ] = SearchEvaluator.SIMULATE,
    duration: Annotated[
        str,
        typer.Option(
            "--duration",
            metavar="TIME",
            help="Simulated time of a trial; the check's are four times as long.",
            rich_help_panel=SEARCH,
        ),
    ] = "100 ms",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all randomness.", rich_help_panel=SEARCH)] = 1,
    replications: Annotated[
        int,
        typer.Option("--replications", min=0, help="Of the final check; 0: none.", rich_help_panel=SEARCH),
    ] = 5,
    every: Annotated[
        bool,
        typer.Option("--all", help="Evaluate every setting, for the whole front.", rich_help_panel=SEARCH),
    ] = False,
    day: Annotated[
        str | None,
        typer.Option(
            "--day",
            metavar="SERIES",
            help="Plan a day: a CSV or Parquet series, abilene, geant, or synthetic.",
            rich_help_panel=DAY,
        ),
    ] = None,
    peak: Annotated[
        str | None,
        typer.Option(
            "--peak",
            metavar="RATE",
            help='Scale the day to this peak, e.g. "4 Gbit/s" or "3 Mpps".',
            rich_help_panel=DAY,
        ),
    ] = None,
    step: Annotated[
        str,
        typer.Option("--step", metavar="TIME", help="Steps of the day: 1 h without.", rich_help_panel=DAY),
    ] = "",
    column: Annotated[
        str | None, typer.Option("--column", help="Column of the series' values.", rich_help_panel=DAY)
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option("--unit", help='Of the values: "Mbit/s", "bit per step", …', rich_help_panel=DAY),
    ] = None,
    gaps: Annotated[
        GapsChoice | None,
        typer.Option("--gaps", help="What to do with missing steps: refuse without.", rich_help_panel=DAY),
    ] = None,
    switch_energy: Annotated[
        str,
        typer.Option("--switch-energy", metavar="ENERGY", help='Of each change, e.g. "50 J".', rich_help_panel=DAY),
    ] = "",
    dwell: Annotated[
        str,
        typer.Option("--dwell", metavar="TIME", help='Least time in a setting, e.g. "2 h".', rich_help_panel=DAY),
    ] = "",
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE.svg", help="Draw the front, or the day.", dir_okay=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as one JSON document.")] = False,
) -> None:
    """Find the cores, clock, C-states and activation that keep the targets with the fewest watts.

    Every setting that the file offers is bounded by closed form, the promising ones are evaluated, best bound first,
    and the winner is checked by longer simulations with other seeds. With `--day`, a switching plan over a day.
    """
    from routecast.plan.operating.optimise import Effort, machine_of
    from routecast.plan.operating.targets import parse_targets
    from routecast.quantity import parse_duration_s
    from routecast.quantity.bounded_file import read_text
    from routecast.quantity.toml_file import parse_toml

    refuse_no_figure_file(figure)
    of_a_day = {
        "--peak": peak,
        "--step": step,
        "--column": column,
        "--unit": unit,
        "--gaps": gaps,
        "--switch-energy": switch_energy,
        "--dwell": dwell,
    }
    _refuse_half_a_day(day, load, [option for option, given in of_a_day.items() if given])
    targets = parse_targets(target or [])
    lingers_s = [parse_duration_s(one) for one in linger.split(",") if one.strip()]
    document = parse_toml(read_text(file, kind="router file"), str(file))
    machine = machine_of(document, subject=str(file), folder=file.parent, pool=pool, lingers_s=lingers_s)
    offered = offered_load(
        machine.load,
        ports=len(machine.model.ports),
        load=load or ("1 Mpps" if day and machine.load is None else None),
        frame=frame,
        flows=flows,
        random_flows=random_flows,
        arrivals=arrivals,
        burst_frames=burst_frames,
        peak_ratio=peak_ratio,
        seed=seed,
    )
    effort = Effort(
        evaluator=evaluator.value,
        duration_s=parse_duration_s(duration),
        seed=seed,
        replications=replications,
        is_exhaustive=every,
    )
    with progress_bar("power optimise") as progress:
        if day is None:
            _one_load(machine, offered, targets, effort, figure, progress, as_json=as_json)
            return
        _whole_day(
            machine,
            offered,
            targets,
            effort,
            day_profile(
                day,
                peak=peak,
                step=step or "1 h",
                frame_bytes=offered.frames.mean_bytes,
                column=column,
                unit=unit,
                gaps=gaps or GapsChoice.REFUSE,
            ),
            _switching(switch_energy, dwell),
            figure,
            progress,
            as_json=as_json,
        )


def _refuse_half_a_day(day: str | None, load: str | None, given: list[str]) -> None:
    if day is None and given:
        raise QuantityProblem("", f"{given[0]} is of a day: name its series with --day, or leave {given[0]}")
    if day is not None and load is not None:
        raise QuantityProblem("", "--load is one load, --day the loads of a day: give one of them")


def _one_load(
    machine: Machine,
    load: OfferedLoad,
    targets: tuple[Target, ...],
    effort: Effort,
    figure: Path | None,
    progress: Report,
    *,
    as_json: bool,
) -> None:
    from routecast.cli.power.optimise_figures import front_figure, has_front
    from routecast.cli.power.optimise_tables import found_document, print_found
    from routecast.plan.operating.optimise import operating_point, why_none

    found = operating_point(machine, load, targets, effort, on_progress=progress)
    if figure is not None and has_front(found):
        write_figure(front_figure(found, machine), figure)
    elif figure is not None:
        remark(f"{figure} is not written: of no setting are watts and latency known")
    if as_json:
        print_json(found_document(found, machine, load))
    elif found.best is not None:
        print_found(data(), found, machine, load)
    if not found.is_whole:
        best = "this is the best so far; it was not checked, and a better one may exist"
        remark(f"Interrupted: {best if found.best else 'no setting met the targets yet'}.")
        raise KeyboardInterrupt
    if found.best is None:
        raise CriterionFailed(why_none(found, load.rate_pps))


def _whole_day(
    machine: Machine,
    load: OfferedLoad,
    targets: tuple[Target, ...],
    effort: Effort,
    series: TrafficSeries,
    switching: Switching,
    figure: Path | None,
    progress: Report,
    *,
    as_json: bool,
) -> None:
    from routecast.cli.power.optimise_figures import day_figure
    from routecast.cli.power.optimise_tables import day_document, print_day
    from routecast.plan.operating.optimise import optimise_day

    bits = 8.0 * load.frames.mean_bytes
    plan = optimise_day(
        machine,
        load,
        [rate / bits for rate in series.l2_bps],
        targets,
        effort,
        step_s=series.step_s,
        switching=switching,
        on_progress=progress,
    )
    if figure is not None:
        write_figure(day_figure(plan, machine), figure)
    if as_json:
        print_json(day_document(plan, machine, series))
    else:
        print_day(data(), plan, machine, series)
    if not plan.is_whole:
        remark("Interrupted: this is the best plan so far; it was not checked, and a better one may exist.")
        raise KeyboardInterrupt


def _switching(energy: str, dwell: str) -> Switching:
    from routecast.plan.operating.day import Switching
    from routecast.quantity import parse_duration_s, parse_energy_j

    return Switching(
        energy_j=parse_energy_j(energy) if energy else 0.0, dwell_s=parse_duration_s(dwell) if dwell else 0.0
    )
