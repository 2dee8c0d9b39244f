"""``routecast power show``: what a power model says, as watts over load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json
from routecast.cli.power.equip import EquipOption, equipped_as_said
from routecast.cli.power.fit import percents
from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from routecast.power.model import PowerModel
    from routecast.power.software_router import SoftwareRouterPower
    from routecast.report.tables import Table

__all__ = ["show"]

_LOADS = "0,10,20,30,40,50,60,70,80,90,100"


def show(
    model: Annotated[
        str,
        typer.Argument(
            metavar="FILE|form",
            help="A power model (.toml, .json, .yaml), form for the published function, or platforms for the paper's "
            "machines.",
        ),
    ] = "form",
    *,
    loads: Annotated[str, typer.Option("--loads", metavar="0,10,…", help="Loads in percent.")] = _LOADS,
    frame: Annotated[
        str | None,
        typer.Option("--frame", help='ports: frame size or mix, such as "512 B", for watts over load.'),
    ] = None,
    equip: EquipOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show a power model as watts over load; the form function beside the monotone one that lies nearest to it."""
    at = percents(loads)
    if model in {"form", "platforms"}:
        _refuse_frame(frame)
        _refuse_equip(equip)
    if model == "form":
        _show_form(at, as_json=as_json)
        return
    if model == "platforms":
        _show_platforms(as_json=as_json)
        return
    from routecast.cli.power.show_ports import show_ports
    from routecast.power.files import read_power_model
    from routecast.power.port import PortPower
    from routecast.power.software_router import SoftwareRouterPower

    found = equipped_as_said(read_power_model(model), equip or [])
    if isinstance(found, PortPower):
        show_ports(found, at, frame, as_json=as_json)
        return
    _refuse_frame(frame)
    if isinstance(found, SoftwareRouterPower):
        _show_router(found, at, as_json=as_json)
    else:
        _show_load(found, model, at, as_json=as_json)


def _refuse_frame(frame: str | None) -> None:
    if frame is not None:
        raise QuantityProblem("", "--frame is of a model of ports: the watts of the others rest on their load")


def _refuse_equip(equip: list[str] | None) -> None:
    if equip:
        raise QuantityProblem("", "--equip is of a model of ports: name its file")


def _show_form(loads: list[float], *, as_json: bool) -> None:
    from routecast.power.form import PUBLISHED_FORM, greatest_deviation
    from routecast.power.load_fit import monotone_of

    monotone = monotone_of()
    gap, place = greatest_deviation(PUBLISHED_FORM, monotone)
    if as_json:
        print_json(
            {
                "source": PUBLISHED_FORM.source,
                "coefficients": list(PUBLISHED_FORM.coefficients),
                "load_ratio": loads,
                "published": [PUBLISHED_FORM.at(t) for t in loads],
                "monotone": [monotone.at(t) for t in loads],
                "monotone_knots": list(monotone.knots),
                "monotone_coefficients": list(monotone.coefficients),
                "greatest_deviation": gap,
                "greatest_deviation_at": place,
            }
        )
        return
    from routecast.report.tables import Column, Table

    table = Table(
        name="form",
        title="Form function x(t) over normalised throughput t = r / r_max",
        caption=f"Published: {PUBLISHED_FORM.source}. Monotone: the cubic spline nearest to it that never falls and "
        f"stays within 0 and 1; it deviates by at most {gap:.4f}, at t = {place:.3f}.",
        columns=(
            Column(title="t", form=".3g"),
            Column(title="Published", form=".6f"),
            Column(title="Monotone", form=".6f"),
            Column(title="Difference", form="+.6f"),
        ),
        rows=tuple((t, PUBLISHED_FORM.at(t), monotone.at(t), monotone.at(t) - PUBLISHED_FORM.at(t)) for t in loads),
    )
    _print(table)


def _show_load(model: PowerModel, name: str, loads: list[float], *, as_json: bool) -> None:
    from routecast.power.model import OperatingPoint

    watts = [model.power_w(OperatingPoint(load_ratio=load)) for load in loads]
    if as_json:
        print_json({"scope": model.scope, "load_ratio": loads, "power_w": watts})
        return
    from routecast.report.tables import Column, Table

    rows = tuple((100 * load, power) for load, power in zip(loads, watts, strict=True))
    _print(
        Table(
            name="power",
            title=name,
            caption=f"{type(model).__name__}, scope {model.scope}.",
            columns=(Column(title="Load", unit="%", form=".3g"), Column(title="Power", unit="W", form=".5g")),
            rows=rows,
        )
    )


def _show_router(model: SoftwareRouterPower, loads: list[float], *, as_json: bool) -> None:
    from routecast.power.model import OperatingPoint

    shown = []
    for state in model.states:
        for cores in range(1, len(model.gains) + 1):
            most = cores * model.share_pps(cores, state.frequency_hz)
            for load in loads:
                point = OperatingPoint(load_ratio=load, frequency_hz=state.frequency_hz, cores=cores)
                shown.append((state.frequency_hz, cores, load, load * most, model.power_w(point)))
    if as_json:
        keys = ("frequency_hz", "cores", "load_ratio", "rate_pps", "power_w")
        print_json({"scope": model.scope, "points": [dict(zip(keys, row, strict=True)) for row in shown]})
        return
    from routecast.report.tables import Column, Table

    _print(
        Table(
            name="power",
            title="Power of the software router",
            caption=f"Equal load on the forwarding cores, of {model.cores} in the machine; scope {model.scope}.",
            columns=(
                Column(title="Clock", unit="GHz", form=".4g"),
                Column(title="Cores", form=".0f"),
                Column(title="Load", unit="%", form=".3g"),
                Column(title="Throughput", unit="kpps", form=".5g"),
                Column(title="Power", unit="W", form=".5g"),
            ),
            rows=tuple((hz / 1e9, cores, 100 * load, rate / 1e3, watts) for hz, cores, load, rate, watts in shown),
        )
    )


def _show_platforms(*, as_json: bool) -> None:
    from routecast.evaluate.plain import plain
    from routecast.power.platforms import read_platforms

    platforms = read_platforms()
    if as_json:
        print_json([plain(one) for one in platforms])
        return
    from routecast.report.tables import Column, Table

    rates = ("One core", "Never idle from", "Machine")
    _print(
        Table(
            name="platforms",
            title="Machines of paper 003, with what its text states",
            caption="Idle and active powers by clock are drawn in its figures and printed nowhere: measure your own "
            "machine, and fit them with `routecast power fit SAMPLES --model router`.",
            columns=(
                Column(title="Name", align="left"),
                Column(title="Processor", align="left"),
                Column(title="Cores", form=".0f"),
                Column(title="Clock", unit="GHz", form=".3g"),
                *(Column(title=title, unit="kpps", form=".4g") for title in rates),
                Column(title="2 cores", unit="x one", form=".3g"),
                Column(title="From", unit="W", form=".3g"),
                Column(title="To", unit="W", form=".3g"),
            ),
            rows=tuple(
                (
                    one.name,
                    one.cpu,
                    one.cores,
                    one.frequency_hz / 1e9,
                    *(
                        None if rate is None else rate / 1e3
                        for rate in (one.max_pps, one.idle_zero_pps, one.machine_pps)
                    ),
                    one.gain_of_two,
                    one.least_w,
                    one.greatest_w,
                )
                for one in platforms
            ),
        )
    )


def _print(table: Table) -> None:
    from routecast.cli.tables import print_table

    print_table(data(), table)
