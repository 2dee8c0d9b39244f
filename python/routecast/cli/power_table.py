"""``routecast power table``: the power benchmark's table of a router."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar
from routecast.cli.offered import FlowsOption, FrameOption
from routecast.cli.solve import RouterFile
from routecast.cli.tables import print_table
from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from rich.console import Console

    from routecast.benchmark.power_result import PowerTable
    from routecast.evaluate.protocol import Evaluator
    from routecast.router.model import RouterModel

__all__ = ["PowerEvaluator", "numbers", "power_evaluator", "power_table_command"]


class PowerEvaluator(StrEnum):
    """Evaluators that answer for a model."""

    SOLVE = "solve"
    SIMULATE = "simulate"


def power_table_command(
    router: RouterFile,
    *,
    evaluator: Annotated[
        PowerEvaluator, typer.Option("--evaluator", help="Who answers: closed form or simulator.")
    ] = PowerEvaluator.SOLVE,
    loads: Annotated[
        str, typer.Option("--loads", metavar="LIST", help="Loads of the EER, percent of the throughput.")
    ] = "100,30,0",
    weights: Annotated[
        str, typer.Option("--weights", metavar="LIST", help="Their weights, which sum up to 1.")
    ] = "0.1,0.8,0.1",
    frame: FrameOption = "IMIX",
    flows: FlowsOption = None,
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="Length of each line's trial.")
    ] = "1 s",
    stabilise: Annotated[
        str, typer.Option("--stabilise", metavar="TIME", help="Trial before each, not counted.")
    ] = "0 s",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all randomness.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as one JSON document.")] = False,
) -> None:
    """Watts when idle, at 1 frame/s, at 30 % and at full load, and the efficiency over them (EER, ECR, EPI).

    The procedure is that of draft-ietf-bmwg-powerbench-02. The router file must give its pools their power states.
    """
    from routecast.benchmark.power_table import PowerTableSettings, power_table
    from routecast.cli.offered import offered_load
    from routecast.load.offered import line_rate_pps
    from routecast.quantity import parse_duration_s
    from routecast.router.files import read_router_and_load

    settings = PowerTableSettings(
        load_ratios=tuple(percent / 100.0 for percent in numbers("--loads", loads)),
        weights=numbers("--weights", weights),
        measure_s=parse_duration_s(duration),
        stabilise_s=parse_duration_s(stabilise, zero_allowed=True),
    )
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
        table = power_table(
            power_evaluator(evaluator, model, seed),
            load,
            router=model.name,
            ports=len(model.ports),
            most_pps=sum(line_rate_pps(port.link_bps, load.frames.mean_bytes) for port in model.ports),
            settings=settings,
            report=lambda now: progress(0, 0, now),
        )
    if as_json:
        print_json(table.to_json())
        return
    _print(data(), table)


def power_evaluator(evaluator: PowerEvaluator, model: RouterModel, seed: int) -> Evaluator:
    """Return the evaluator of a model; the simulator's trials are counted whole, for they start at rest."""
    if evaluator is PowerEvaluator.SOLVE:
        from routecast.evaluate.solve import Solve

        return Solve(model=model)
    from routecast.evaluate.simulate import Simulate

    return Simulate(model, seed=seed, steady_state=False)


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
        raise QuantityProblem(
            text, f"{option} {text[:60]!r} is no list of numbers such as 100,30,0"
        ) from None


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
