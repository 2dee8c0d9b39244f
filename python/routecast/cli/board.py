"""``routecast board``: the accuracy board."""

from __future__ import annotations

from typing import Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.tables import print_table

__all__ = ["board"]


def board(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the board as one JSON document.")] = False,
) -> None:
    """Predict the held-out points of every shipped pack of measurements, beside naive baselines.

    Leaves with 1 if an error has grown beyond its record.
    """
    from routecast.calibrate.board import run_board
    from routecast.cli.validation import board_remarks, board_table

    with progress_bar("board") as progress:
        result = run_board(progress)
    if as_json:
        print_json(result.to_json())
    else:
        print_table(data(), board_table(result))
        data().print(
            f"{100.0 * result.coverage_ratio:.1f} % of all held-out points lie inside their 95 % interval."
        )
        for text in board_remarks(result):
            data().print(text, markup=False)
    if result.worse():
        remark("Criterion missed: errors have grown beyond their record")
        raise typer.Exit(1)
