"""``routecast board``: the accuracy board."""

from __future__ import annotations

from typing import Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar
from routecast.cli.tables import terminal_table

__all__ = ["board"]


def board(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the board as one JSON document.")] = False,
) -> None:
    """Predict the held-out points of every shipped pack of measurements, beside naive baselines."""
    from routecast.calibrate.board import run_board  # noqa: PLC0415 - heavy
    from routecast.cli.validation import board_table  # noqa: PLC0415

    with progress_bar("board") as progress:
        result = run_board(progress=progress)
    if as_json:
        print_json(result.to_json())
    else:
        data().print(terminal_table(board_table(result)))
        data().print(f"{result.coverage_ratio:.1%} of all held-out points lie inside their 95 % interval.")
