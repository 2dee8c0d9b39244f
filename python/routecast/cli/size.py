"""``routecast size``: how many cores a target needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routecast.cli.console import (
    data,
    points_of,
    print_json,
    print_table,
    refuse_no_figure_file,
    refuse_no_file,
    remark,
    write_figure,
)
from routecast.cli.options import AsJson, FigureFile

__all__ = ["size"]


def size(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Measured maximum throughputs.", dir_okay=False)],
    *,
    target: Annotated[
        str, typer.Option("--target", metavar="RATE", help='What has to be forwarded: "40 Gbit/s" or "20 Mpps".')
    ],
    frames: Annotated[
        str, typer.Option("--frames", metavar="SIZE", help='Its frames: "1518 B", IMIX, "7x64, 4x594, 1x1518".')
    ] = "64 B",
    cores: Annotated[
        str, typer.Option("--cores", metavar="COUNTS", help='Counts to choose from: "1..64" or "1,2,4,8".')
    ] = "1..64",
    confidence: Annotated[
        str, typer.Option("--confidence", metavar="RATIO", help="Probability that the target is met.")
    ] = "95%",
    loss: Annotated[
        float, typer.Option("--loss", metavar="RATIO", help="Share of the target that may be lost, 0 to 1.")
    ] = 0.0,
    noise: Annotated[float | None, typer.Option("--noise", metavar="RATIO", help="As `validate --noise`.")] = None,
    series: Annotated[
        str | None, typer.Option("--series", metavar="NAME", help="Only the rows of this series.")
    ] = None,
    figure: FigureFile = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.html", help="Write the answer as a page.", dir_okay=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how many cores a target needs, how sure that is, and what to measure to know it better.

    Rows with calibrate = true calibrate (all rows, without that column). Columns as for `validate`.
    """
    from routecast.calibration.fitted import MOST_CORES
    from routecast.plan.size import Target
    from routecast.plan.size import size as answer
    from routecast.plan.size.views import counts_table, next_said, probability_figure, size_page
    from routecast.quantity import parse_ratio
    from routecast.quantity.value_list import parse_counts
    from routecast.quantity.whole_file import write_whole

    refuse_no_figure_file(figure)
    refuse_no_file(out, "--out")
    wanted = Target.parse(target, frames, confidence_ratio=parse_ratio(confidence), loss_ratio=loss)
    counts = parse_counts(cores, most=MOST_CORES)
    points = points_of(file, series)
    names = tuple(dict.fromkeys(point.series for point in points))
    if figure is not None and len(names) > 1:
        raise typer.BadParameter(
            f"a figure shows one series, and these are {', '.join(names)}: choose one (--series)", param_hint="--figure"
        )
    answers = tuple(
        answer([point for point in points if point.series == name], wanted, counts=counts, noise_ratio=noise)
        for name in names
    )
    if as_json:
        print_json({"series": [each.to_json() for each in answers]})
    else:
        for each in answers:
            if len(answers) > 1:
                data().print(each.series, style="bold", markup=False)
            data().print(f"{each.answer}.", markup=False)
            data().print()
            print_table(data(), counts_table(each))
            for fact in each.facts:
                data().print(f"Ask first: {fact.text}.", markup=False)
            for text in next_said(each):
                data().print(f"Next: {text}.", markup=False)
            for text in each.remarks:
                data().print(f"{text[0].upper()}{text[1:]}.", markup=False)
    if figure is not None:
        write_figure(probability_figure(answers[0]), figure)
    if out is not None:
        from routecast.report.page import render_page

        write_whole(out, render_page(size_page(answers, source=str(file))))
        remark(f"wrote {out}")
