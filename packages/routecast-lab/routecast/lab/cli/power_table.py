"""``routecast power table``: the watts of a router on a test bed or of a model, by the power benchmark."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, print_table, progress_bar, remark
from routecast.cli.options import AsJson, FlowsOption, FrameOption, LoadOptions, Seed, frames_option, grouped
from routecast.cli.power_models import PowerEvaluator, power_evaluator
from routecast.errors import QuantityProblem
from routecast.lab.cli.bed_options import DeviceOptions, PowerOption
from routecast.quantity import parse_duration_s

if TYPE_CHECKING:
    from routecast.lab.power.table import PowerTable, PowerTableSettings

__all__ = ["power_table_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerTableOptions:
    """The lines of the table, and the trials that they rest on."""

    base_watts: Annotated[
        float | None,
        typer.Option("--base-watts", metavar="W", help="Base: what you measured by hand without transceivers."),
    ] = None
    loads: Annotated[
        str, typer.Option("--loads", metavar="LIST", help="Loads of the EER, percent of the throughput.")
    ] = "100,30,0"
    weights: Annotated[str, typer.Option("--weights", metavar="LIST", help="Their weights, which sum up to 1.")] = (
        "0.1,0.8,0.1"
    )
    frame: FrameOption = "IMIX"
    flows: FlowsOption = None
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration",
            metavar="TIME",
            help="Length of each line's trial: 1 s, and with a meter ten of its samples, if not given.",
        ),
    ] = None
    stabilise: Annotated[
        str | None,
        typer.Option(
            "--stabilise",
            metavar="TIME",
            help="Trial before each, not counted: 0 s, and with a meter three of its samples, if not given.",
        ),
    ] = None

    @property
    def duration_s(self) -> float | None:
        """Length of each line's trial, None if it is not given."""
        return parse_duration_s(self.duration) if self.duration else None

    @property
    def stabilise_s(self) -> float | None:
        """Length of the trial before each that does not count, None if it is not given."""
        return parse_duration_s(self.stabilise, zero_allowed=True) if self.stabilise else None

    def settings(self) -> PowerTableSettings:
        """Return the settings of the measurement.

        Raises RoutecastError: an option is not valid.
        """
        from routecast.lab.power.table import PowerTableSettings

        duration_s, stabilise_s = self.duration_s, self.stabilise_s
        return PowerTableSettings(
            load_ratios=_load_ratios(self.loads),
            weights=numbers("--weights", self.weights),
            measure_s=duration_s or 1.0,
            stabilise_s=stabilise_s or 0.0,
            base_w=math.nan if self.base_watts is None else self.base_watts,
        )


@grouped
def power_table_command(
    router: Annotated[
        Path | None, typer.Argument(metavar="FILE.router.toml", help="The router, as a model.", dir_okay=False)
    ] = None,
    *,
    evaluator: Annotated[
        PowerEvaluator | None,
        typer.Option("--evaluator", help="Who answers for a model: closed form (default) or simulator."),
    ] = None,
    testbed: Annotated[
        str | None,
        typer.Option(
            "--testbed",
            metavar="namespaces|FILE",
            help="A real router instead: a *.testbed.toml, or namespaces, a test bed on this machine alone.",
            rich_help_panel="Test bed",
        ),
    ] = None,
    device: DeviceOptions,
    power: PowerOption = None,
    options: PowerTableOptions,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Watts when idle, at 1 frame/s, at 30 % and at full load, and the efficiency over them (EER, ECR, EPI).

    The procedure is that of draft-ietf-bmwg-powerbench-02. The router file must give its pools their power states; a
    real router on a test bed needs a power meter.
    """
    from routecast.lab.power.table_views import power_table_notes, power_tables

    settings = options.settings()
    bed_values = {"--testbed": testbed, **device.values(), "--power": power}
    bed_options = [name for name, value in bed_values.items() if value]
    if router is None and (testbed or device.dut):
        if evaluator is not None:
            message = f"--evaluator {evaluator.value} answers for a model; a test bed is measured: leave it out"
            raise QuantityProblem(evaluator.value, message)
        table = _measured(testbed or "namespaces", device, power, options, seed)
    elif router is None:
        message = "no router: give a FILE.router.toml, or --testbed namespaces --dut linux --power METER"
        raise QuantityProblem("", message)
    elif bed_options:
        message = f"{bed_options[0]} is for a real router, {router} is a model: leave one of them out"
        raise QuantityProblem(bed_options[0], message)
    else:
        table = _predicted(router, evaluator or PowerEvaluator.SOLVE, options.frame, options.flows, seed, settings)
    if as_json:
        print_json(table.to_json())
        return
    for part in power_tables(table):
        print_table(data(), part)
    for line in power_table_notes(table):
        data().print(line, markup=False, style="dim")


def _measured(
    testbed: str, device: DeviceOptions, power: str | None, options: PowerTableOptions, seed: int
) -> PowerTable:
    from routecast.lab.power.wire import measured_table
    from routecast.load.flows import FlowSet
    from routecast.load.frames import FrameMix
    from routecast.load.offered import OfferedLoad

    flows = options.flows
    if flows is not None and flows % 2:
        raise QuantityProblem(str(flows), f"--flows {flows}: give an even number, half of them go each way")
    frames = FrameMix.parse(options.frame or "IMIX")
    with progress_bar("power table") as progress:
        return measured_table(
            testbed,
            bed=device.bed(),
            power=power,
            load=OfferedLoad(rate_pps=1.0, frames=frames, flows=FlowSet.crafted(flows or 2, ports=2)),
            seed=seed,
            settings=options.settings(),
            duration_s=options.duration_s,
            stabilise_s=options.stabilise_s,
            on_remark=remark,
            report=lambda text: progress(0, 0, text),
        )


def _predicted(
    router: Path,
    evaluator: PowerEvaluator,
    frame: str | None,
    flows: int | None,
    seed: int,
    settings: PowerTableSettings,
) -> PowerTable:
    from routecast.lab.power.table import power_table
    from routecast.load.arrivals import Arrivals
    from routecast.load.offered import line_rate_pps
    from routecast.router.files import read_router_and_load

    model, default = read_router_and_load(router, frames=frames_option(frame))
    options = LoadOptions(load=None if default else "1 Mpps", frame=frame, flows=flows)
    if default is not None and default.arrivals.trace is not None:
        remark("of the trace of the file the table takes the flows: its own loads are even, of the sizes of --frame")
        default = replace(default, arrivals=Arrivals.cbr(), frames=frames_option(frame) or default.frames)
    load = options.offered(default, ports=len(model.ports), seed=seed)
    with progress_bar("power table") as progress:
        return power_table(
            power_evaluator(evaluator, model, seed),
            load,
            router=model.name,
            ports=len(model.ports),
            max_pps=sum(line_rate_pps(port.link_bps, load.frames.mean_bytes) for port in model.ports),
            settings=settings,
            report=lambda text: progress(0, 0, text),
        )


def _load_ratios(text: str) -> tuple[float, ...]:
    loads = numbers("--loads", text.replace("%", ""))
    for percent in loads:
        if not 0.0 <= percent <= 100.0:
            raise QuantityProblem(
                text, f"--loads: {percent:g} is outside 0 to 100: loads are percents of the throughput"
            )
    return tuple(percent / 100.0 for percent in loads)


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Read a list of numbers, or of percentages, with commas between them.

    Raises QuantityProblem: an entry is no number.

    Examples
    --------
    >>> numbers("--loads", "100, 30,0"), numbers("--weights", "0.1, 80 %, 10%")
    ((100.0, 30.0, 0.0), (0.1, 0.8, 0.1))
    """
    try:
        return tuple(
            float(entry.removesuffix("%")) / (100.0 if entry.endswith("%") else 1.0)
            for entry in map(str.strip, text.split(","))
        )
    except ValueError:
        raise QuantityProblem(text, f"{option} {text[:60]!r} is no list of numbers such as 100,30,0") from None
