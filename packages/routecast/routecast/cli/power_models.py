"""``routecast power fit`` and ``power show``: power models fitted to samples, and their watts over load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import check_figure_file, data, print_json, print_table, remark, write_figure
from routecast.cli.options import AsJson, RenameOption, grouped
from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from routecast.errors import ModelProblem
    from routecast.evaluate.protocol import Evaluator
    from routecast.power.fits import DeviceFit, FitModel
    from routecast.power.model import PowerModel
    from routecast.router.model import RouterModel

__all__ = ["EquipOption", "PowerEvaluator", "equipped", "fit", "percents", "power_evaluator", "show"]

_LOADS = "0,10,20,30,40,50,60,70,80,90,100"

_MAX_NOTES = 8


class Model(StrEnum):
    """Laws that can be fitted."""

    FORM = "form"
    MONOTONE = "monotone"
    POLYNOMIAL = "polynomial"
    LINEAR = "linear"
    PIECEWISE = "piecewise"
    PORT = "port"
    ROUTER = "router"


class Between(StrEnum):
    """Interpolation of a piecewise model between its points."""

    SMOOTH = "smooth"
    LINEAR = "linear"


class Form(StrEnum):
    """Form functions of the router's model."""

    PUBLISHED = "published"
    MONOTONE = "monotone"
    POLYNOMIAL = "polynomial"


class PowerEvaluator(StrEnum):
    """Evaluators of a model."""

    SOLVE = "solve"
    SIMULATE = "simulate"


def power_evaluator(evaluator: PowerEvaluator, model: RouterModel, seed: int) -> Evaluator:
    """Return the evaluator of a model; the simulator counts trials from their start, because they start at rest."""
    if evaluator is PowerEvaluator.SOLVE:
        from routecast.evaluate.solve import Solve

        return Solve(model=model)
    from routecast.evaluate.simulate import Simulate

    return Simulate(model, seed=seed, steady_state=False)


EquipOption = Annotated[
    list[str] | None,
    typer.Option(
        "--equip",
        metavar="CLASS=N",
        help='Of a model of ports: "QSFP/PCC/100G=32" are plugged in, enabled and up. May be repeated.',
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LawOptions:
    """The law that is fitted, and the samples that it is fitted to."""

    model: Annotated[
        Model | None, typer.Option("--model", help="The law; without it the columns of the file decide.")
    ] = None
    points: Annotated[
        str | None,
        typer.Option(
            "--points", "--calibrate", metavar="0,10,50,100", help="Loads in percent to fit; the others are predicted."
        ),
    ] = None
    device: Annotated[str | None, typer.Option("--device", help="One device of the file.")] = None
    between: Annotated[
        Between, typer.Option("--between", help="piecewise: shape-preserving cubics, or straight lines.")
    ] = Between.SMOOTH
    form: Annotated[Form, typer.Option("--form", help="router: the form function.")] = Form.PUBLISHED
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, help="router: cores of the machine, those that never forward too.")
    ] = None
    scope: Annotated[str | None, typer.Option("--scope", help="What the watts cover: package, server, wall.")] = None
    rename: RenameOption = None

    @property
    def names(self) -> dict[str, str]:
        """Names of columns for the heads that are called otherwise."""
        from routecast.quantity.table_file import parse_rename

        return parse_rename(self.rename or ())

    def fits(self, samples: Path, law: FitModel) -> Sequence[DeviceFit]:
        """Return the fit of a law to each device of the file.

        Raises FileProblem: the samples do not suffice for the law; RoutecastError: the file or an option is not valid.
        """
        from routecast.errors import FileProblem, FitProblem, Problem
        from routecast.power.csv_file import UNNAMED_DEVICE
        from routecast.power.fits import fit_file

        try:
            return fit_file(
                samples,
                law,
                points=None if self.points is None else percents(self.points),
                device=self.device,
                interpolation=self.between.value,
                form=self.form.value,
                cores=self.cores,
                scope=self.scope,
                rename=self.names,
            )
        except FitProblem as problem:
            device_name = "" if problem.series == UNNAMED_DEVICE else problem.series
            raise FileProblem(str(samples), [Problem(device_name, problem.message)]) from problem


@grouped
def fit(
    samples: Annotated[Path, typer.Argument(metavar="SAMPLES", help="Measured watts.", dir_okay=False)],
    *,
    law: LawOptions,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the model: .toml, .json, or .yaml (NetPowerBench, ports).")
    ] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Draw samples and model: .svg.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit a power model to measured samples, and state its errors on samples that it was not fitted to.

    A row for each sample has power_w and load_ratio or rate_pps (and frequency_hz, cores, device); a row for each
    server has w_0, w_10, …, w_100; ports have class, plugged, enabled, up, passed_bps, passed_pps, or NetPowerBench's
    device, path, n, mean_w, or they are its power_data.yml.
    """
    from routecast.errors import FitProblem
    from routecast.power.files import file_suffix
    from routecast.power.fits import error_document, model_for

    if out is not None:
        file_suffix(out)
    check_figure_file(figure)
    chosen = law.model.value if law.model else model_for(samples, rename=law.names)
    fits = law.fits(samples, chosen)
    unwritten: ModelProblem | None = None
    if out is not None:
        if len(fits) > 1:
            raise FitProblem("", f"the file has {len(fits)} devices: name one with --device to write its model")
        unwritten = _write_model(fits[0], out, samples)
    if figure is not None:
        from routecast.power.views import fit_figure

        write_figure(fit_figure(chosen, fits), figure)
    if as_json:
        print_json(
            {
                "model": chosen,
                "errors": error_document(error for device in fits for error in device.error_ratio),
                "fitted_errors": error_document(error for device in fits for error in device.fitted_error_ratio),
                "devices": {device.device: device.to_json() for device in fits},
            }
        )
    else:
        _print_fits(chosen, fits)
    if unwritten is not None:
        raise unwritten


def _print_fits(law: FitModel, fits: Sequence[DeviceFit]) -> None:
    """Print the parameters of a single fit, the errors of all, and their notes."""
    from routecast.power.views import error_table, parameter_table

    console = data()
    if len(fits) == 1:
        print_table(console, parameter_table(fits[0]))
    else:
        remark(f"{len(fits)} devices: --device NAME shows the parameters of one, --json of all")
    print_table(console, error_table(law, fits))
    notes = [f"{device.device}: {note}" for device in fits for note in device.notes]
    for note in notes if len(notes) <= _MAX_NOTES else ():
        remark(note)
    if len(notes) > _MAX_NOTES:
        remark(f"{len(notes)} notes on samples: --device NAME shows those of one, --json all")


def _write_model(fit: DeviceFit, out: Path, samples: Path) -> ModelProblem | None:
    """Write a fitted model; return the problem if the format cannot hold it, so that the fit is still printed."""
    from routecast.errors import ModelProblem
    from routecast.power.files import write_power_model

    try:
        write_power_model(fit.model, out, name=fit.device, source=f"fitted to {samples.name}")
    except ModelProblem as problem:
        return problem
    remark(f"wrote {out}")
    return None


def percents(text: str) -> list[float]:
    """Read loads in percent, such as ``0,10,50,100``, as shares 0..1.

    Raises QuantityProblem: a load is no number from 0 to 100.
    """
    loads = []
    for part in text.split(","):
        try:
            load = float(part.strip().removesuffix("%")) / 100.0
        except ValueError:
            load = math.nan
        if not 0.0 <= load <= 1.0:
            raise QuantityProblem(part, f'got "{part.strip()}": loads are percents, such as 0,10,50,100')
        loads.append(load)
    return sorted(set(loads))


def equipped(model: PowerModel, ports: list[str]) -> PowerModel:
    """Return a model with the given ports in place of its file's.

    Raises QuantityProblem: ports are given for another kind of model; ModelProblem: as
    :func:`routecast.power.port.equipped_with`.
    """
    if not ports:
        return model
    from routecast.power.port import PortPower, equipped_with

    if not isinstance(model, PortPower):
        raise QuantityProblem("", "--equip is for models of ports: the watts of the others rest on their load")
    return equipped_with(model, ports)


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
        typer.Option("--frame", "--frames", help='ports: frame size or mix, such as "512 B", for watts over load.'),
    ] = None,
    equip: EquipOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a power model as watts over load; the form function beside the monotone one that lies nearest to it."""
    from routecast.power.files import read_power_model
    from routecast.power.over_load import form_over_load, model_over_load, platforms_view

    load_ratios = percents(loads)
    if model in {"form", "platforms"}:
        for option, value in (("--frame", frame), ("--equip", equip)):
            if value:
                raise QuantityProblem("", f"{option} is for models of ports: name its file")
        view = form_over_load(load_ratios) if model == "form" else platforms_view()
    else:
        view = model_over_load(equipped(read_power_model(model), equip or []), model, load_ratios, frame)
    if as_json:
        print_json(view.document)
        return
    for table in view.tables:
        print_table(data(), table)
