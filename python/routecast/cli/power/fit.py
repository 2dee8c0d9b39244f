"""``routecast power fit``: a power model from measured samples, and how it does on those that it did not see."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, remark
from routecast.cli.figure_file import refuse_no_figure_file, write_figure

if TYPE_CHECKING:
    from routecast.errors import ModelProblem
    from routecast.power.fits import DeviceFit
    from routecast.power.load_fit import ErrorSummary, Parameter

__all__ = ["fit", "percents"]

_SHOWN_NOTES = 8


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
    """How a piecewise model runs between its points."""

    SMOOTH = "smooth"
    LINEAR = "linear"


class Form(StrEnum):
    """Form functions of the router's model."""

    PUBLISHED = "published"
    MONOTONE = "monotone"
    POLYNOMIAL = "polynomial"


def fit(
    samples: Annotated[Path, typer.Argument(metavar="SAMPLES", help="Measured watts.", dir_okay=False)],
    *,
    model: Annotated[
        Model | None, typer.Option("--model", help="The law; without it the columns of the file decide.")
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(
            "--points",
            "--calibrate",
            metavar="0,10,50,100",
            help="Loads in percent to fit; the others are predicted.",
        ),
    ] = None,
    device: Annotated[str | None, typer.Option("--device", help="One device of the file.")] = None,
    between: Annotated[
        Between, typer.Option("--between", help="piecewise: shape-preserving cubics, or straight lines.")
    ] = Between.SMOOTH,
    form: Annotated[Form, typer.Option("--form", help="router: the form function.")] = Form.PUBLISHED,
    cores: Annotated[
        int | None,
        typer.Option("--cores", min=1, help="router: cores of the machine, those that never forward too."),
    ] = None,
    scope: Annotated[str | None, typer.Option("--scope", help="What the watts cover: package, server, wall.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write the model: .toml, .json, or .yaml (NetPowerBench, ports)."),
    ] = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Draw samples and model: .svg.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Fit a power model to measured samples, and state its errors on samples that it was not fitted to.

    A row for each sample has power_w and load_ratio or rate_pps (and frequency_hz, cores, device); a row for each
    server has w_0, w_10, …, w_100; ports have class, plugged, enabled, up, passed_bps, passed_pps, or NetPowerBench's
    device, path, n, mean_w, or they are its power_data.yml.
    """
    from routecast.errors import FileProblem, FitProblem, Problem
    from routecast.power.csv_file import UNNAMED_DEVICE
    from routecast.power.files import file_suffix
    from routecast.power.fits import fit_file, model_for
    from routecast.power.load_fit import ErrorSummary

    if out is not None:
        file_suffix(out)
    refuse_no_figure_file(figure)
    chosen = model.value if model else model_for(samples)
    try:
        fits = fit_file(
            samples,
            chosen,
            points=None if points is None else percents(points),
            device=device,
            interpolation=between.value,
            form=form.value,
            cores=cores,
            scope=scope,
        )
    except FitProblem as problem:
        place = "" if problem.series == UNNAMED_DEVICE else problem.series
        raise FileProblem(str(samples), [Problem(place, problem.message)]) from problem
    unwritten: ModelProblem | None = None
    if out is not None:
        if len(fits) > 1:
            raise FitProblem("", f"the file has {len(fits)} devices: name one with --device to write its model")
        unwritten = _written(fits[0], out, samples)
    if figure is not None:
        from routecast.cli.power.fit_figure import fit_figure

        write_figure(fit_figure(chosen, fits), figure)
    together = ErrorSummary.of([error for one in fits for error in one.error_ratio])
    if as_json:
        print_json(
            {
                "model": chosen,
                "errors": _errors(together),
                "fitted_errors": _errors(ErrorSummary.of([error for one in fits for error in one.fitted_error_ratio])),
                "devices": {one.device: _document(one) for one in fits},
            }
        )
        if unwritten is not None:
            raise unwritten
        return
    from routecast.cli.power.fit_tables import error_table, parameter_table
    from routecast.cli.tables import print_table

    console = data()
    if len(fits) == 1:
        print_table(console, parameter_table(fits[0]))
    else:
        remark(f"{len(fits)} devices: --device NAME shows the parameters of one, --json of all")
    print_table(console, error_table(chosen, fits))
    notes = [f"{one.device}: {note}" for one in fits for note in one.notes]
    for note in notes if len(notes) <= _SHOWN_NOTES else ():
        remark(note)
    if len(notes) > _SHOWN_NOTES:
        remark(f"{len(notes)} notes on samples: --device NAME shows those of one, --json all")
    if unwritten is not None:
        raise unwritten


def _written(fit: DeviceFit, out: Path, samples: Path) -> ModelProblem | None:
    """Write a fitted model; return why not where it has no place in the format: the fit is to be shown all the same."""
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

    Raises
    ------
    routecast.errors.QuantityProblem
        One is no number from 0 to 100.
    """
    from routecast.errors import QuantityProblem

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


def _errors(summary: ErrorSummary) -> dict[str, object]:
    from routecast.evaluate.plain import plain

    return {
        "count": summary.count,
        "median_ratio": plain(summary.median_ratio),
        "p90_ratio": plain(summary.p90_ratio),
        "max_ratio": plain(summary.max_ratio),
    }


def _document(fit: DeviceFit) -> dict[str, object]:
    from routecast.power.files import power_model_document
    from routecast.power.load_fit import ErrorSummary

    return {
        "parameters": {name: _parameter(one) for name, one in fit.parameters.items()},
        "fitted_samples": fit.fitted,
        "left_out": fit.left_out,
        "errors": _errors(ErrorSummary.of(fit.error_ratio)),
        "fitted_errors": _errors(ErrorSummary.of(fit.fitted_error_ratio)),
        "notes": list(fit.notes),
        "model": power_model_document(fit.model, name=fit.device),
    }


def _parameter(parameter: Parameter) -> dict[str, object]:
    if math.isnan(parameter.low):
        return {"value": parameter.value, "low": None, "high": None}
    return {"value": parameter.value, "low": parameter.low, "high": parameter.high}
