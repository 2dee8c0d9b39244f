"""``routecast power day`` and ``optimise``: the watts of a router, and its setting with the fewest."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import (
    check_figure_file,
    data,
    print_json,
    print_notes,
    print_table,
    progress_bar,
    remark,
    write_figure,
)
from routecast.cli.options import AsJson, FigureFile, ModelLoadOptions, RouterFile, Seed, frames_option, grouped
from routecast.cli.power_models import EquipOption, PowerEvaluator, equipped, power_evaluator
from routecast.errors import CriterionFailed, QuantityProblem
from routecast.progress import Progress

if TYPE_CHECKING:
    from routecast.evaluate.targets import Target
    from routecast.load.offered import OfferedLoad
    from routecast.load.series import TrafficSeries
    from routecast.plan.power.day import WattsSource
    from routecast.plan.power.operating.day import Switching
    from routecast.plan.power.operating.optimise import Effort, TunableRouter

__all__ = ["optimise", "power_day_command"]


_profile_option = partial(typer.Option, rich_help_panel="Profile")
_day_option = partial(typer.Option, rich_help_panel="Day")
_IN_FRAMES = ("pps", "frames/s", "packets/s")


class GapsChoice(StrEnum):
    """What to do with missing steps."""

    REFUSE = "refuse"
    HOLD = "hold"
    INTERPOLATE = "interpolate"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOptions:
    """Options that make the traffic of one day from a series."""

    peak: Annotated[
        str | None,
        _day_option("--peak", metavar="RATE", help='Scale the day to this peak, e.g. "4 Gbit/s" or "3 Mpps".'),
    ] = None
    step: Annotated[str | None, _day_option("--step", metavar="TIME", help="Steps of the day.")] = None
    column: Annotated[str | None, _day_option("--column", help="Column of the series' values.")] = None
    unit: Annotated[str | None, _day_option("--unit", help='Of the values: "Mbit/s", "bit per step", …')] = None
    gaps: Annotated[GapsChoice | None, _day_option("--gaps", help="What to do with missing steps: refuse without.")] = (
        None
    )

    def set_options(self) -> list[str]:
        """Return the names of the options with a value."""
        return [f"--{field.name}" for field in fields(self) if getattr(self, field.name)]

    def day(self, series: str, *, frame_bytes: float | None = None, step: str | None = None) -> TrafficSeries:
        """Return a series as one day in steps; a longer one is averaged by time of day.

        ``series``: a file, a shipped series, or ``synthetic``; ``frame_bytes``: mean size of the frames that a peak in
        frames counts, FCS included; ``step``: the default of ``--step``, None for the step of the series. Raises
        RoutecastError: the series, the peak or the step is not valid.
        """
        from routecast.load.series import DAY_S
        from routecast.plan.series.reading import read_series
        from routecast.plan.series.shapes import mean_day, resampled, scaled_to_peak, synthetic_day, whole_step_of_day
        from routecast.quantity import parse_bit_rate_bps, parse_duration_s, parse_rate_pps

        peak_bps = None
        if self.peak is not None:
            peak_bps = (
                parse_rate_pps(self.peak) * 8.0 * frame_bytes
                if frame_bytes is not None and self.peak.strip().lower().endswith(_IN_FRAMES)
                else parse_bit_rate_bps(self.peak)
            )
        if series != "synthetic":
            traffic = read_series(
                series, column=self.column, unit=self.unit, gaps=(self.gaps or GapsChoice.REFUSE).value
            )
        elif peak_bps is None:
            raise QuantityProblem("", 'a synthetic day has no size of its own: give --peak, e.g. --peak "4 Gbit/s"')
        else:
            traffic = synthetic_day(mean_bps=peak_bps)
        step = self.step or step
        step_s = whole_step_of_day(traffic.step_s) if step is None else parse_duration_s(step)
        is_day = traffic.start is None and traffic.duration_s == DAY_S
        day = resampled(traffic, step_s) if is_day else mean_day(traffic, step_s)
        return day if peak_bps is None else scaled_to_peak(day, peak_bps)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerModelOptions:
    """The full load and the ports of a power model."""

    capacity: Annotated[
        str | None, typer.Option("--capacity", metavar="RATE", help="Of a power model: full load; the peak without.")
    ] = None
    equip: EquipOption = None

    def watts(self, file: Path, series: TrafficSeries, load: ModelLoadOptions) -> WattsSource:
        """Return the watts of a power model at the loads of a series.

        Raises RoutecastError: the file or an option is not valid.
        """
        from routecast.load.frames import FrameMix
        from routecast.plan.power.day import model_watts
        from routecast.power.files import read_power_model
        from routecast.quantity import parse_bit_rate_bps

        return model_watts(
            equipped(read_power_model(file), self.equip or []),
            FrameMix.parse(load.frame or "IMIX"),
            series.peak_bps if self.capacity is None else parse_bit_rate_bps(self.capacity),
            file=file.name,
            capacity_source="the peak of the profile, without --capacity" if self.capacity is None else "as given",
            ports_source="given" if self.equip else "the file says",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterOptions:
    """The trials that say the watts of a router."""

    evaluator: Annotated[PowerEvaluator, typer.Option("--evaluator", help="Who answers for a router.")] = (
        PowerEvaluator.SOLVE
    )
    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help="Length of a router's trials: 100 ms, or all of a trace."),
    ] = None
    seed: Seed = 1

    def watts(self, file: Path, series: TrafficSeries, load: ModelLoadOptions, *, on_progress: Progress) -> WattsSource:
        """Return the watts of a router at the loads of a series.

        Raises RoutecastError: the file or an option is not valid.
        """
        from routecast.plan.power.day import TrialWatts, router_watts
        from routecast.router.files import read_router_and_load

        model, default = read_router_and_load(file, frames=frames_option(load.frame))
        if default is None and not load.is_recording:
            load = replace(load, load="1 Mpps", frame=load.frame or "IMIX")
        offered = load.offered(default, ports=len(model.ports), seed=self.seed)
        trials = TrialWatts(
            evaluator=power_evaluator(self.evaluator, model, self.seed),
            load=offered,
            duration_s=_trial_s(self.duration, offered),
        )
        return router_watts(trials, series.l2_bps, evaluator=self.evaluator.value, on_progress=on_progress)


@grouped
def power_day_command(
    file: Annotated[
        Path, typer.Argument(metavar="ROUTER|MODEL.power.toml", help="A router file, or a power model.", dir_okay=False)
    ],
    *,
    profile: Annotated[
        str,
        _profile_option(
            "--profile", metavar="SERIES", help="A table, a monitoring tool's file, abilene, geant, or synthetic."
        ),
    ],
    of_day: DayOptions,
    load: ModelLoadOptions,
    of_model: PowerModelOptions,
    of_router: RouterOptions,
    price: Annotated[float | None, typer.Option("--price", min=0.0, help="Of a kWh, in any currency.")] = None,
    carbon: Annotated[float | None, typer.Option("--carbon", min=0.0, help="Grams of CO2 for a kWh.")] = None,
    figure: FigureFile = None,
    as_json: AsJson = False,
) -> None:
    """Energy and cost of a day: kWh, mean and peak watts, energy per TB, and what proportional power would take.

    A series longer than a day is averaged by time of day first. A router is asked by one trial for each load, or at
    20 loads with straight lines between them.
    """
    from routecast.plan.power._views import day_table, proportional_figure
    from routecast.plan.power.day import power_day
    from routecast.power.files import is_power_model

    check_figure_file(figure)
    is_router = not is_power_model(file)
    _refuse_other_kind(of_model, of_router, load, is_router=is_router)
    series = of_day.day(profile)
    with progress_bar("power day") as progress:
        source = (
            of_router.watts(file, series, load, on_progress=progress)
            if is_router
            else of_model.watts(file, series, load)
        )
        day = power_day(
            series, source.watts, scope=source.scope, source=source.source, price_per_kwh=price, carbon_g_per_kwh=carbon
        )
    day = replace(day, notes=(*day.notes, *source.notes))
    if figure is not None:
        write_figure(proportional_figure(day), figure)
    if as_json:
        print_json(day.to_json())
        return
    print_table(data(), day_table(day, price))
    print_notes(data(), day.notes)


def _refuse_other_kind(
    of_model: PowerModelOptions, of_router: RouterOptions, load: ModelLoadOptions, *, is_router: bool
) -> None:
    """Refuse options of a power model for a router, those of a router for a power model, and a single load."""
    if is_router and of_model.capacity is not None:
        raise QuantityProblem("", "--capacity is of a power model: a router's is what it can carry")
    if is_router and of_model.equip:
        raise QuantityProblem("", "--equip is of a power model of ports: a router's file names its ports itself")
    if not is_router and of_router.evaluator is not PowerEvaluator.SOLVE:
        raise QuantityProblem("", "--evaluator is of a router: a power model says its watts itself")
    if load.load is not None:
        raise QuantityProblem("", "--load is one load, --profile the loads of a day: --peak scales them")
    others = [option for option in load.set_options() if option != "--frame"]
    if not is_router and others:
        raise QuantityProblem("", f"{others[0]} is of a router: of the load a power model takes rates and --frame")


_search_option = partial(typer.Option, rich_help_panel="Search")


class SearchEvaluator(StrEnum):
    """Evaluators during the search."""

    SIMULATE = "simulate"
    SOLVE = "solve"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingOptions:
    """The targets that a setting must meet, and the settings of the file that are searched."""

    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="BOUND",
            help='Bounds to meet: "p99 < 100 us", "mean < 20 us", "loss < 0.01 %". May be repeated. '
            "Without one on loss, none may be lost.",
        ),
    ] = None
    pool: Annotated[str, typer.Option("--pool", help="Forwarding pool, if several have power states.")] = ""
    linger: Annotated[
        str,
        typer.Option(
            "--linger", metavar="TIMES", help='Times of polling on to try, e.g. "20 us, 200 us"; else from the file.'
        ),
    ] = ""

    def tunable(self, file: Path, frame: str | None) -> TunableRouter:
        """Return the router of a file with its settings; ``frame``: the frames of its load.

        Raises RoutecastError: the file or an option is not valid.
        """
        from routecast.plan.power.operating.optimise import tunable_router
        from routecast.quantity import parse_duration_s
        from routecast.quantity.bounded_file import read_text
        from routecast.quantity.toml_file import parse_toml

        lingers_s = [parse_duration_s(time) for time in self.linger.split(",") if time.strip()]
        return tunable_router(
            parse_toml(read_text(file, kind="router file"), str(file)),
            subject=str(file),
            folder=file.parent,
            pool=self.pool,
            lingers_s=lingers_s,
            frames=frames_option(frame),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The evaluation of settings during the search, and the final check."""

    evaluator: Annotated[SearchEvaluator, _search_option("--evaluator", help="Who answers during the search.")] = (
        SearchEvaluator.SIMULATE
    )
    duration: Annotated[
        str | None,
        _search_option(
            "--duration",
            metavar="TIME",
            help="Simulated time of a trial, 100 ms without, or all of a trace; the check's are four times as long.",
        ),
    ] = None
    seed: Seed = 1
    replications: Annotated[int, _search_option("--replications", min=0, help="Of the final check; 0: none.")] = 5
    every: Annotated[bool, _search_option("--all", help="Evaluate every setting, for the whole front.")] = False

    def effort(self, offered: OfferedLoad) -> Effort:
        """Return the effort of the search for a load; raise RoutecastError if the duration is not valid."""
        from routecast.plan.power.operating.optimise import Effort

        return Effort(
            evaluator=self.evaluator.value,
            duration_s=_trial_s(self.duration, offered),
            seed=self.seed,
            replications=self.replications,
            is_exhaustive=self.every,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchingOptions:
    """What a change of the setting costs."""

    switch_energy: Annotated[
        str, _day_option("--switch-energy", metavar="ENERGY", help='Of each change, e.g. "50 J".')
    ] = ""
    dwell: Annotated[str, _day_option("--dwell", metavar="TIME", help='Least time in a setting, e.g. "2 h".')] = ""

    def set_options(self) -> list[str]:
        """Return the names of the options with a value."""
        options = {"--switch-energy": self.switch_energy, "--dwell": self.dwell}
        return [option for option, text in options.items() if text]

    def switching(self) -> Switching:
        """Return the cost of a change; raise QuantityProblem if an option is not valid."""
        from routecast.plan.power.operating.day import Switching
        from routecast.quantity import parse_duration_s, parse_energy_j

        return Switching(
            energy_j=parse_energy_j(self.switch_energy) if self.switch_energy else 0.0,
            dwell_s=parse_duration_s(self.dwell) if self.dwell else 0.0,
        )


@grouped
def optimise(
    file: RouterFile,
    *,
    load: ModelLoadOptions,
    settings: SettingOptions,
    search: SearchOptions,
    day: Annotated[
        str | None,
        _day_option(
            "--day", metavar="SERIES", help="Plan a day: a series as of `power day`, abilene, geant, or synthetic."
        ),
    ] = None,
    of_day: DayOptions,
    switching: SwitchingOptions,
    figure: FigureFile = None,
    as_json: AsJson = False,
) -> None:
    """Find the cores, clock, C-states and activation that keep the targets with the fewest watts.

    Every setting that the file offers is bounded by closed form, the promising ones are evaluated, best bound first,
    and the winner is checked by longer simulations with other seeds. With `--day`, a switching plan over a day.
    """
    from routecast.evaluate.targets import parse_targets

    check_figure_file(figure)
    _check_day_options(day, load.load, of_day.set_options() + switching.set_options())
    targets = parse_targets(settings.target or [])
    machine = settings.tunable(file, load.frame)
    if day and load.load is None and machine.load is None and not load.is_recording:
        load = replace(load, load="1 Mpps")
    offered = load.offered(machine.load, ports=len(machine.model.ports), seed=search.seed)
    effort = search.effort(offered)
    with progress_bar("power optimise") as progress:
        if day is None:
            _one_load(machine, offered, targets, effort, figure, progress, as_json=as_json)
            return
        _whole_day(
            machine,
            offered,
            targets,
            effort,
            of_day.day(day, frame_bytes=offered.frames.mean_bytes, step="1 h"),
            switching.switching(),
            figure,
            progress,
            as_json=as_json,
        )


def _trial_s(duration: str | None, load: OfferedLoad) -> float:
    """Return the length of a trial; all of a trace is offered, whatever ``--duration`` says."""
    from routecast.quantity import parse_duration_s

    duration_s = parse_duration_s(duration or "100 ms")
    if duration is not None and load.arrivals.trace is not None:
        remark(f"--duration {duration} has no effect: each trial has all frames of the trace")
    return duration_s


def _check_day_options(day: str | None, load: str | None, day_options: list[str]) -> None:
    if day is None and day_options:
        option = day_options[0]
        raise QuantityProblem("", f"{option} is of a day: name its series with --day, or leave {option}")
    if day is not None and load is not None:
        raise QuantityProblem("", "--load is one load, --day the loads of a day: give one of them")


def _one_load(
    machine: TunableRouter,
    load: OfferedLoad,
    targets: tuple[Target, ...],
    effort: Effort,
    figure: Path | None,
    on_progress: Progress,
    *,
    as_json: bool,
) -> None:
    from routecast.plan.power._views import front_figure, has_front, point_tables
    from routecast.plan.power.operating.document import point_document, point_notes
    from routecast.plan.power.operating.optimise import describe_unmet_targets, operating_point

    result = operating_point(machine, load, targets, effort, on_progress=on_progress)
    if figure is not None and has_front(result):
        write_figure(front_figure(result, machine), figure)
    elif figure is not None:
        remark(f"{figure} is not written: of no setting are watts and latency known")
    if as_json:
        print_json(point_document(result, machine, load))
    elif result.best is not None:
        for table in point_tables(result, machine, load.rate_pps):
            print_table(data(), table)
        print_notes(data(), point_notes(result, machine))
    if not result.is_whole:
        best = "this is the best so far; it was not checked, and a better one may exist"
        remark(f"Interrupted: {best if result.best else 'no setting met the targets yet'}.")
        raise KeyboardInterrupt
    if result.best is None:
        raise CriterionFailed(describe_unmet_targets(result, load.rate_pps))


def _whole_day(
    machine: TunableRouter,
    load: OfferedLoad,
    targets: tuple[Target, ...],
    effort: Effort,
    series: TrafficSeries,
    switching: Switching,
    figure: Path | None,
    on_progress: Progress,
    *,
    as_json: bool,
) -> None:
    from routecast.plan.power._views import day_figure, plan_tables
    from routecast.plan.power.operating.document import day_document, day_notes
    from routecast.plan.power.operating.optimise import optimise_day

    frame_bits = 8.0 * load.frames.mean_bytes
    plan = optimise_day(
        machine,
        load,
        [l2_bps / frame_bits for l2_bps in series.l2_bps],
        targets,
        effort,
        step_s=series.step_s,
        switching=switching,
        on_progress=on_progress,
    )
    if figure is not None:
        write_figure(day_figure(plan, machine), figure)
    if as_json:
        print_json(day_document(plan, machine, series))
    else:
        for table in plan_tables(plan, machine, load):
            print_table(data(), table)
        print_notes(data(), day_notes(plan, machine, series))
    if not plan.is_whole:
        remark("Interrupted: this is the best plan so far; it was not checked, and a better one may exist.")
        raise KeyboardInterrupt
