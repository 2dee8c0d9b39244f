"""``routecast validate``: calibrate from some rows of a file, predict the others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routecast.cli.console import data, print_json, remark
from routecast.cli.tables import print_table

__all__ = ["validate"]


def validate(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Measured maximum throughputs.", dir_okay=False)],
    *,
    router: Annotated[str, typer.Option("--router", help="Kind of router to calibrate.")] = "multicore",
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise",
            metavar="RATIO",
            help="Standard deviation of a measured rate over the rate; else from repeated or published ones.",
        ),
    ] = None,
    max_error: Annotated[
        float | None,
        typer.Option("--max-mean-error", metavar="RATIO", help="Leave with 1 if the mean absolute error is larger."),
    ] = None,
    next_points: Annotated[
        int,
        typer.Option("--next", metavar="N", min=0, max=50, help="Name as many measurements to make next, as `next`."),
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print rows and summary as one JSON document.")] = False,
) -> None:
    """Calibrate on the rows with calibrate = true, predict the others, print every error.

    Columns: cores, frame_bytes, throughput_pps; optional flows, link_bps, ports, nic_cap_pps, shared_queue,
    transmit_ring, series, calibrate, repeat, standard_error_ratio. Without calibrate all rows do. Rows that repeat a
    set of conditions tell how well a measurement repeats.
    """
    from routecast.calibrate.advice import advise
    from routecast.calibrate.points import read_points
    from routecast.calibrate.validate import validate as run
    from routecast.cli.validation import advice_table, validation_tables

    points = read_points(file)
    validation = run(points, router=router, noise_ratio=noise)
    advice = advise(points, n=next_points, noise_ratio=noise) if next_points else ()
    if as_json:
        print_json({**validation.to_json(), **({"next": [each.to_json() for each in advice]} if advice else {})})
    else:
        for table in validation_tables(validation):
            print_table(data(), table)
        for note in validation.notes:
            data().print(f"{note[0].upper()}{note[1:]}.", markup=False)
        if advice:
            print_table(data(), advice_table(advice))
    reached = validation.summary["mean_abs_error_ratio"]
    if max_error is not None and not reached <= max_error:
        remark(f"Criterion missed: the mean absolute error is {reached:.4g}, allowed is {max_error:.4g}")
        raise typer.Exit(1)
