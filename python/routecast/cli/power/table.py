"""``routecast power table``: the power benchmark's table of a router."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar
from routecast.cli.measure import DeviceOption, DeviceOptions, OwnNetworkOption, PowerOption
from routecast.cli.offered import FlowsOption, FrameOption
from routecast.cli.tables import print_table
from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from rich.console import Console

    from routecast.benchmark.power_table import PowerTable, PowerTableSettings
    from routecast.evaluate.protocol import Evaluator
    from routecast.router.model import RouterModel

__all__ = ["PowerEvaluator", "numbers", "power_evaluator", "power_table_command"]


class PowerEvaluator(StrEnum):
    """Evaluators that answer for a model."""

    SOLVE = "solve"
    SIMULATE = "simulate"


def power_table_command(
    router: Annotated[
        Path | None,
        typer.Argument(metavar="FILE.router.toml", help="The router, as a model.", dir_okay=False),
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
    dut: DeviceOption = None,
    dut_option: DeviceOptions = None,
    own_network: OwnNetworkOption = False,
    power: PowerOption = None,
    base_watts: Annotated[
        float | None,
        typer.Option("--base-watts", metavar="W", help="Base: what you measured by hand without transceivers."),
    ] = None,
    loads: Annotated[
        str, typer.Option("--loads", metavar="LIST", help="Loads of the EER, percent of the throughput.")
    ] = "100,30,0",
    weights: Annotated[
        str, typer.Option("--weights", metavar="LIST", help="Their weights, which sum up to 1.")
    ] = "0.1,0.8,0.1",
    frame: FrameOption = "IMIX",
    flows: FlowsOption = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration",
            metavar="TIME",
            help="Length of each line's trial: 1 s, and with a meter ten of its samples, if not given.",
        ),
    ] = None,
    stabilise: Annotated[
        str | None,
        typer.Option(
            "--stabilise",
            metavar="TIME",
            help="Trial before each, not counted: 0 s, and with a meter three of its samples, if not given.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all randomness.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as one JSON document.")] = False,
) -> None:
    """Watts when idle, at 1 frame/s, at 30 % and at full load, and the efficiency over them (EER, ECR, EPI).

    The procedure is that of draft-ietf-bmwg-powerbench-02. The router file must give its pools their power states; a
    real router on a test bed needs a power meter.
    """
    import math

    from routecast.benchmark.power_table import PowerTableSettings
    from routecast.quantity import parse_duration_s

    duration_s = parse_duration_s(duration) if duration else None
    stabilise_s = parse_duration_s(stabilise, zero_allowed=True) if stabilise else None
    settings = PowerTableSettings(
        load_ratios=_load_ratios(loads),
        weights=numbers("--weights", weights),
        measure_s=duration_s or 1.0,
        stabilise_s=stabilise_s or 0.0,
        base_w=math.nan if base_watts is None else base_watts,
    )
    wire = {"--testbed": testbed, "--dut": dut, "--dut-option": dut_option, "--power": power}
    given = [name for name, value in {**wire, "--i-own-this-network": own_network}.items() if value]
    if router is None and (testbed or dut):
        if evaluator is not None:
            text = f"--evaluator {evaluator.value} answers for a model; a test bed is measured: leave it out"
            raise QuantityProblem(evaluator.value, text)
        from routecast.cli.power.table_wire import measured_table

        table = measured_table(
            testbed or "namespaces",
            device=dut,
            options=dut_option or [],
            own_network=own_network,
            power=power,
            frame=frame or "IMIX",
            flows=flows,
            seed=seed,
            settings=settings,
            duration_s=duration_s,
            stabilise_s=stabilise_s,
        )
    elif router is None:
        text = "no router: give a FILE.router.toml, or --testbed namespaces --dut linux --power METER"
        raise QuantityProblem("", text)
    elif given:
        text = f"{given[0]} is for a real router, {router} is a model: leave one of them out"
        raise QuantityProblem(given[0], text)
    else:
        table = _predicted(router, evaluator or PowerEvaluator.SOLVE, frame, flows, seed, settings)
    if as_json:
        print_json(table.to_json())
        return
    _print(data(), table)


def _predicted(
    router: Path,
    evaluator: PowerEvaluator,
    frame: str | None,
    flows: int | None,
    seed: int,
    settings: PowerTableSettings,
) -> PowerTable:
    """Return the table of a model."""
    from routecast.benchmark.power_table import power_table
    from routecast.cli.offered import offered_load
    from routecast.load.offered import line_rate_pps
    from routecast.router.files import read_router_and_load

    model, default = read_router_and_load(router)
    load = offered_load(
        default,
        ports=len(model.ports),
        load=None if default else "1 Mpps",
        frame=frame,
        flows=flows,
        random_flows=False,
        arrivals=None,
        burst_frames=32.0,
        peak_ratio=4.0,
        seed=seed,
    )
    with progress_bar("power table") as progress:
        return power_table(
            power_evaluator(evaluator, model, seed),
            load,
            router=model.name,
            ports=len(model.ports),
            most_pps=sum(line_rate_pps(port.link_bps, load.frames.mean_bytes) for port in model.ports),
            settings=settings,
            report=lambda now: progress(0, 0, now),
        )


def power_evaluator(evaluator: PowerEvaluator, model: RouterModel, seed: int) -> Evaluator:
    """Return the evaluator of a model; the simulator's trials are counted whole, for they start at rest."""
    if evaluator is PowerEvaluator.SOLVE:
        from routecast.evaluate.solve import Solve

        return Solve(model=model)
    from routecast.evaluate.simulate import Simulate

    return Simulate(model, seed=seed, steady_state=False)


def _load_ratios(text: str) -> tuple[float, ...]:
    loads = numbers("--loads", text)
    for percent in loads:
        if not 0.0 <= percent <= 100.0:
            raise QuantityProblem(
                text, f"--loads: {percent:g} is outside 0 to 100: loads are percents of the throughput"
            )
    return tuple(percent / 100.0 for percent in loads)


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Read a list of numbers with commas between them.

    Raises
    ------
    routecast.errors.QuantityProblem
        An entry is no number.

    Examples
    --------
    >>> numbers("--loads", "100, 30,0")
    (100.0, 30.0, 0.0)
    """
    try:
        return tuple(float(entry) for entry in text.split(","))
    except ValueError:
        raise QuantityProblem(text, f"{option} {text[:60]!r} is no list of numbers such as 100,30,0") from None


def _print(console: Console, table: PowerTable) -> None:
    from routecast.power.metrics import METRICS
    from routecast.quantity import format_bps, format_duration, format_pps, format_ratio
    from routecast.report.tables import Column, Table

    print_table(
        console,
        Table(
            name="power",
            title=f"{table.router}, {table.frames}, {table.ports} ports: watts of the {table.scope}",
            caption="",
            columns=(
                Column(title="", align="left"),
                Column(title="Load", align="left"),
                Column(title="Forwarded", unit="Gbit/s"),
                Column(title="Power", unit="W"),
                Column(title="Packet", unit="uJ"),
                Column(title="Bit", unit="nJ"),
            ),
            rows=tuple(
                (row.name, row.state, row.l2_bps / 1e9, row.power_w, 1e6 * row.packet_j, 1e9 * row.bit_j)
                for row in table.rows
            ),
        ),
    )
    loads = "/".join(f"{100 * ratio:g}" for ratio in table.load_ratios)
    weights = "/".join(f"{weight:g}" for weight in table.weights)
    figures = (
        ("eer", f"{table.eer_bit_per_j / 1e9:.4g} {METRICS['eer'].unit}", f"{loads} % weighted {weights}"),
        (
            "eer_unweighted",
            f"{table.eer_unweighted_bit_per_j / 1e9:.4g} {METRICS['eer_unweighted'].unit}",
            "unweighted: not to be compared with the line above",
        ),
        ("ecr", f"{table.ecr_w_per_bps * 1e9:.4g} {METRICS['ecr'].unit}", ""),
        ("epi", format_ratio(table.proportionality_ratio), "100 % draws nothing when idle"),
    )
    print_table(
        console,
        Table(
            name="metrics",
            title="",
            caption="",
            columns=(Column(title="", align="left"), Column(title=""), Column(title="", align="left")),
            rows=tuple((METRICS[key].name, value, remark) for key, value, remark in figures),
        ),
    )
    lines = [
        f"Throughput without loss: {format_pps(table.throughput_pps)}, {format_bps(table.throughput_bps)}.",
        f"Stabilisation {format_duration(table.stabilise_s)}, measurement {format_duration(table.measure_s)}; "
        f"average: {table.averaging}.",
        f"Watts: {table.source} ({table.evaluator}).",
        *(f"Not measured: {row.name}, {row.not_measured}." for row in table.rows if row.not_measured),
        *(f"{METRICS[key].name}: {METRICS[key].formula}. {METRICS[key].source}." for key, _, _ in figures),
        *(f"Note: {note}" for note in table.notes),
    ]
    for line in lines:
        console.print(line, markup=False, style="dim")
