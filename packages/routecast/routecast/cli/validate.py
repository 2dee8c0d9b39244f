"""``routecast validate``: calibrate from some rows of a file, predict the others."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import (
    check_output_file,
    data,
    print_csv,
    print_json,
    print_table,
    read_series_points,
    refuse_two_forms,
    remark,
    save_router,
    today,
)
from routecast.cli.options import AsCsv, AsJson, NoiseOption, RenameOption, ratio_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from routecast.calibration import Validation
    from routecast.calibration.advice import Advice
    from routecast.evaluate.points import Point

__all__ = ["next_measurement", "validate"]


def next_measurement(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Measured maximum throughputs.", dir_okay=False)],
    *,
    cores: Annotated[
        list[int] | None,
        typer.Option("--cores", min=1, max=4096, metavar="N", help="Number of cores to predict; may be repeated."),
    ] = None,
    frame: Annotated[
        list[str] | None,
        typer.Option(
            "--frame", "--frames", metavar="SIZE", help='Frames to predict, "1518 B" or IMIX; may be repeated.'
        ),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option("--goal", metavar="RATE", help='Rate whose least cores are predicted: "40 Gbit/s" or "20 Mpps".'),
    ] = None,
    latency: Annotated[
        str | None,
        typer.Option(
            "--latency",
            metavar="BOUND",
            help='Bound on the latency at the --goal, "p99 < 100 us": name the rows of latency that tell most of it.',
        ),
    ] = None,
    most_cores: Annotated[
        int | None,
        typer.Option(
            "--most-cores", min=1, max=4096, metavar="N", help="Largest number of cores that can be measured."
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=50, help="Measurements to name.")] = 3,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="RATIO", help='Required precision: "5%" is ±5 % with 95 % confidence.'),
    ] = None,
    rename: RenameOption = None,
    noise: NoiseOption = None,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Name the measurements that narrow the rates most, and how well the rates would be known after each.

    Rows with calibrate = true are known (without that column, all rows with a rate). The other rows are to be known,
    unless the options name others. Columns as for `validate`.
    """
    from routecast.calibration.advice import AdviceQuestion, advise
    from routecast.evaluate.targets import parse_targets
    from routecast.load.frames import FrameMix
    from routecast.load.offered import IntendedRate
    from routecast.quantity import parse_ratio

    refuse_two_forms(as_csv=as_csv, as_json=as_json)
    until_ratio = parse_ratio(until) if until else None
    question = AdviceQuestion(
        cores=tuple(cores or ()),
        frames=tuple(FrameMix.parse(size) for size in frame or ()),
        goal=IntendedRate.parse(goal) if goal else None,
        most_cores=most_cores,
        latency=parse_targets([latency])[0] if latency else None,
    )
    advice = advise(read_series_points(file, None, rename), question, n=count, noise_ratio=noise)
    if as_json:
        document: dict[str, object] = {"series": [entry.to_json() for entry in advice]}
        if until_ratio is not None and advice:
            document |= {"until_ratio": until_ratio, "is_enough": all(entry.is_enough(until_ratio) for entry in advice)}
        print_json(document)
    elif as_csv:
        documents = [entry.to_json() for entry in advice]
        print_csv({"series": entry["series"], **row} for entry in documents for row in entry["next"])
    else:
        _print_advice(advice, until_ratio)


def _print_advice(advice: Sequence[Advice], until_ratio: float | None) -> None:
    """Print the next measurements for each series, the precision of the targets, and whether it suffices."""
    from routecast.calibration.views import advice_table

    if any(entry.points for entry in advice):
        print_table(data(), advice_table(advice))
    for entry in advice:
        name = f"{entry.series}: " if len(advice) > 1 else ""
        if entry.answer:
            data().print(f"{name}{entry.answer}.", markup=False)
        for sentence in entry.latency.sentences if entry.latency else ():
            data().print(f"{name}{sentence[0].upper()}{sentence[1:]}.", markup=False)
        for warning in entry.warnings:
            data().print(f"{name}{warning}.", markup=False)
        if until_ratio is None:
            continue
        if not entry.is_in_reach:
            data().print(
                f"{name}So there is no number of cores to know: ask for less, or correct the table.", markup=False
            )
            continue
        precision = f"{name}The requested rates are known within ±{entry.half_width_ratio:.1%}"
        verdict = "enough, stop." if entry.is_enough(until_ratio) else "measure the first point and ask again."
        data().print(f"{precision}, required is ±{until_ratio:.1%}: {verdict}", markup=False)


def validate(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Measured maximum throughputs.", dir_okay=False)],
    *,
    router: Annotated[str, typer.Option("--router", help="Kind of router to calibrate.")] = "multicore",
    noise: NoiseOption = None,
    max_error: Annotated[
        float | None,
        ratio_option(
            "--max-mean-error",
            help="Leave with 1 if the mean absolute error is larger.",
            bounds={"zero_allowed": True, "beyond_one": True},
        ),
    ] = None,
    next_points: Annotated[
        int,
        typer.Option("--next", metavar="N", min=0, max=50, help="Name as many measurements to make next, as `next`."),
    ] = 0,
    save_router_to: Annotated[
        Path | None,
        typer.Option(
            "--save-router", metavar="FILE.toml", help="Write what was calibrated as a router file.", dir_okay=False
        ),
    ] = None,
    series: Annotated[
        str | None, typer.Option("--series", metavar="NAME", help="Only the rows of this series.")
    ] = None,
    rename: RenameOption = None,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE.html", help="Write a page.", dir_okay=False)
    ] = None,
) -> None:
    """Calibrate on the rows with calibrate = true, predict the others, print every error.

    Columns: cores, throughput; optional frame, flows, link, ports, nic_cap, shared_queue, transmit_ring, series,
    calibrate, repeat, standard_error. Units are in heads (throughput_mpps, link (Gbit/s)) or cells (1.9 Mpps). Without
    the column calibrate, all rows with a rate calibrate; rows without a rate are predicted. Repeated conditions show
    how well a measurement repeats. The file may also be .parquet.
    """
    from routecast.calibration import router_file_of
    from routecast.calibration import validate as run
    from routecast.calibration.advice import advise

    refuse_two_forms(as_csv=as_csv, as_json=as_json)
    points = read_series_points(file, series, rename)
    check_output_file(save_router_to, "--save-router")
    check_output_file(out, "--out", ".html")
    validation = run(points, router=router, noise_ratio=noise)
    router_file = None if save_router_to is None else router_file_of(validation, source=str(file), today=today())
    advice = advise(points, n=next_points, noise_ratio=noise) if next_points else ()
    if as_json:
        print_json({**validation.to_json(), **({"next": [entry.to_json() for entry in advice]} if advice else {})})
    elif as_csv:
        print_csv(validation.to_json()["rows"])
    else:
        _print_validation(validation, advice)
    if save_router_to is not None and router_file is not None:
        save_router(router_file, save_router_to)
    if out is not None:
        words = ["routecast", "validate", str(file), *(["--series", series] if series else [])]
        _write_page(validation, points, out, source=str(file), command=shlex.join(words))
    reached = validation.summary["mean_abs_error_ratio"]
    if max_error is not None and not reached <= max_error:
        error = "not known, because no held-out row has a rate" if math.isnan(reached) else f"{reached:.4g}"
        remark(f"Criterion missed: the mean absolute error is {error}, allowed is {max_error:.4g}")
        raise typer.Exit(1)


def _print_validation(validation: Validation, advice: Sequence[Advice]) -> None:
    """Print every error, the notes, and the measurements to make next."""
    from routecast.calibration.views import advice_table, validation_tables

    for table in validation_tables(validation):
        print_table(data(), table)
    for note in validation.notes:
        data().print(f"{note[0].upper()}{note[1:]}.", markup=False)
    for fact in validation.facts:
        data().print(f"Ask first: {fact.text}.", markup=False)
    if advice:
        print_table(data(), advice_table(advice))


def _write_page(validation: Validation, points: Sequence[Point], out: Path, *, source: str, command: str) -> None:
    """Write a page of the errors, with controls if the points are of one series."""
    from routecast.calibration.views import validation_page
    from routecast.explore.views import live_of_points
    from routecast.quantity.whole_file import write_whole
    from routecast.show.page import render_page

    has_one_series = len({point.series for point in points}) == 1
    live = live_of_points(points, noise_ratio=validation.noise_ratio)[0] if has_one_series else None
    page = validation_page(validation, points, live=live, source=source, command=command)
    write_whole(out, render_page(page))
    remark(f"wrote {out}")
