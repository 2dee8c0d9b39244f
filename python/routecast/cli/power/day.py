"""``routecast power day``: what a day's traffic takes in energy and money."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar
from routecast.cli.figure_file import refuse_no_figure_file, write_figure
from routecast.cli.offered import FrameOption
from routecast.cli.power.day_profile import GapsChoice, day_profile
from routecast.cli.power.equip import EquipOption, equipped_as_said
from routecast.cli.power.table import PowerEvaluator, power_evaluator
from routecast.cli.tables import print_table
from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from rich.console import Console

    from routecast.cli.console import Report
    from routecast.load.series import TrafficSeries
    from routecast.power.day import PowerDay, Watts
    from routecast.report.figures import Figure

__all__ = ["power_day_command"]

PROFILE = "Profile"


def power_day_command(
    file: Annotated[
        Path,
        typer.Argument(metavar="ROUTER|MODEL.power.toml", help="A router file, or a power model.", dir_okay=False),
    ],
    *,
    profile: Annotated[
        str,
        typer.Option(
            "--profile",
            metavar="SERIES",
            help="A CSV or Parquet series, abilene, geant, or synthetic.",
            rich_help_panel=PROFILE,
        ),
    ],
    peak: Annotated[
        str | None,
        typer.Option(
            "--peak",
            metavar="RATE",
            help='Scale the day to this peak, e.g. "8 Gbit/s".',
            rich_help_panel=PROFILE,
        ),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            "--step",
            metavar="TIME",
            help="Steps of the day; the series' own without.",
            rich_help_panel=PROFILE,
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option("--column", help="Column of the values.", rich_help_panel=PROFILE)
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option("--unit", help='Of the values: "Mbit/s", "bit per step", …', rich_help_panel=PROFILE),
    ] = None,
    gaps: Annotated[
        GapsChoice, typer.Option("--gaps", help="What to do with missing steps.", rich_help_panel=PROFILE)
    ] = GapsChoice.REFUSE,
    capacity: Annotated[
        str | None,
        typer.Option("--capacity", metavar="RATE", help="Of a power model: full load; the peak without."),
    ] = None,
    equip: EquipOption = None,
    frame: FrameOption = None,
    evaluator: Annotated[
        PowerEvaluator, typer.Option("--evaluator", help="Who answers for a router.")
    ] = PowerEvaluator.SOLVE,
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="Length of a router's trials.")
    ] = "100 ms",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all randomness.")] = 1,
    price: Annotated[float | None, typer.Option("--price", min=0.0, help="Of a kWh, in any currency.")] = None,
    carbon: Annotated[float | None, typer.Option("--carbon", min=0.0, help="Grams of CO2 for a kWh.")] = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="FILE.svg", help="Draw watts over the day.", dir_okay=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the day as one JSON document.")] = False,
) -> None:
    """Energy and cost of a day: kWh, mean and peak watts, energy per TB, and what proportional power would take.

    A series longer than a day is averaged by time of day first. A router is asked by one trial for each load, or at
    20 loads with straight lines between them.
    """
    from routecast.power.day import power_day
    from routecast.power.files import is_power_model

    refuse_no_figure_file(figure)
    is_router = not is_power_model(file)
    if is_router and capacity is not None:
        raise QuantityProblem("", "--capacity is of a power model: a router's is what it can carry")
    if is_router and equip:
        raise QuantityProblem("", "--equip is of a power model of ports: a router's file names its ports itself")
    if not is_router and evaluator is not PowerEvaluator.SOLVE:
        raise QuantityProblem("", "--evaluator is of a router: a power model says its watts itself")
    series = day_profile(profile, peak=peak, step=step, column=column, unit=unit, gaps=gaps)
    with progress_bar("power day") as progress:
        watts, scope, source, notes = (
            _of_router(file, series, frame, evaluator, duration, seed, progress)
            if is_router
            else _of_model(file, series, frame, capacity, equip or [])
        )
        day = power_day(series, watts, scope=scope, source=source, price_per_kwh=price, carbon_g_per_kwh=carbon)
    day = replace(day, notes=(*day.notes, *notes))
    if figure is not None:
        write_figure(_day_figure(day), figure)
    if as_json:
        print_json(day.to_json())
        return
    _print(data(), day, price)


def _of_router(
    file: Path,
    series: TrafficSeries,
    frame: str | None,
    evaluator: PowerEvaluator,
    duration: str,
    seed: int,
    progress: Report,
) -> tuple[Watts, str, str, list[str]]:
    from routecast.cli.offered import offered_load
    from routecast.power.day import PowerCurve, TrialWatts
    from routecast.quantity import format_bps, format_ratio, parse_duration_s
    from routecast.router.files import read_router_and_load

    model, default = read_router_and_load(file)
    load = offered_load(
        default,
        ports=len(model.ports),
        load=None if default else "1 Mpps",
        frame=frame or (None if default else "IMIX"),
        flows=None,
        random_flows=False,
        arrivals=None,
        burst_frames=32.0,
        peak_ratio=4.0,
        seed=seed,
    )
    trials = TrialWatts(
        evaluator=power_evaluator(evaluator, model, seed), load=load, duration_s=parse_duration_s(duration)
    )
    curve = PowerCurve.through(trials, series.l2_bps, progress=progress)
    notes = [f"frames of {load.frames.name}, {evaluator.value}"]
    if curve.is_interpolated:
        notes.append(f"trials at {len(curve.l2_bps)} loads, straight lines between them")
    if trials.lost:
        at_bps, ratio = max(trials.lost, key=lambda lost: lost[1])
        notes.append(
            f"the router does not carry this day: at {format_bps(at_bps)} it loses {format_ratio(ratio)}; "
            "the watts are those of what it does"
        )
    return curve.at, trials.scope, trials.source, notes


def _of_model(
    file: Path, series: TrafficSeries, frame: str | None, capacity: str | None, equip: list[str]
) -> tuple[Watts, str, str, list[str]]:
    from routecast.load.frames import FrameMix
    from routecast.power.day import ModelWatts
    from routecast.power.files import read_power_model
    from routecast.power.port import PortPower
    from routecast.quantity import format_bps, parse_bit_rate_bps

    model = equipped_as_said(read_power_model(file), equip)
    frames = FrameMix.parse(frame or "IMIX")
    capacity_bps = series.peak_bps if capacity is None else parse_bit_rate_bps(capacity)
    watts = ModelWatts(model=model, frame_bytes=frames.mean_bytes, capacity_bps=capacity_bps)
    taken = "the peak of the profile, for lack of --capacity" if capacity is None else "as given"
    notes = [
        f"full load, where the model asks for a share of it, is {format_bps(capacity_bps)}: {taken}",
        f"packets of {frames.name}",
    ]
    if isinstance(model, PortPower):
        up = ", ".join(f"{ports.up} x {name}" for name, ports in model.equipped.items() if ports.up)
        notes.append(f"ports that are up: {up}, as {'given' if equip else 'the file says'}")
    return watts, model.scope, f"power model {file.name}", notes


def _day_figure(day: PowerDay) -> Figure:
    from routecast.report.figures import Axis, Figure, Line, palette

    hours = tuple((index + 0.5) * day.step_s / 3600.0 for index in range(len(day.power_w)))
    peak_bps = max(day.l2_bps)
    at_peak_w = day.power_w[day.l2_bps.index(peak_bps)]
    blue, orange = palette(2, ordered=False)
    return Figure(
        name="power-day",
        title=f"{day.profile}: power over the day, {day.source}",
        caption="",
        x=Axis(title="hour of the day", low=0.0, high=24.0, ticks=(0.0, 6.0, 12.0, 18.0, 24.0)),
        y=Axis(title=f"power of the {day.scope} (W)", low=0.0),
        marks=(
            Line(name="power", x=hours, y=day.power_w, colour=blue),
            Line(
                name="if proportional to traffic",
                x=hours,
                y=tuple(at_peak_w * rate / peak_bps for rate in day.l2_bps),
                colour=orange,
                dashed=True,
            ),
        ),
    )


def _print(console: Console, day: PowerDay, price: float | None) -> None:
    from routecast.quantity import format_bps, format_energy, format_power
    from routecast.report.tables import Column, Table

    rows = [
        ("energy", f"{format_energy(day.energy_j)} a day"),
        (
            "mean power",
            f"{format_power(day.mean_w)}, {format_power(day.least_w)} to {format_power(day.peak_w)}",
        ),
        ("traffic", f"{day.traffic_bits / 8e12:.4g} TB a day, at most {format_bps(max(day.l2_bps))}"),
        ("energy per TB", format_energy(day.energy_per_terabyte_j)),
        ("if proportional", f"{format_energy(day.proportional_j)} a day"),
    ]
    if day.cost is not None:
        rows.append(("cost", f"{day.cost:.4g} a day, {365 * day.cost:.4g} a year at {price:g} a kWh"))
    if day.carbon_g is not None:
        rows.append(("carbon", f"{day.carbon_g / 1e3:.4g} kg CO2 a day"))
    print_table(
        console,
        Table(
            name="day",
            title=f"{day.profile}: watts of the {day.scope}, {day.source}",
            caption="",
            columns=(Column(title="", align="left"), Column(title="", align="left")),
            rows=tuple(rows),
        ),
    )
    for note in day.notes:
        console.print(f"Note: {note}", markup=False, style="dim")
