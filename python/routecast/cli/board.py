"""``routecast board``: the accuracy board."""

from __future__ import annotations

from typing import Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.tables import print_table

__all__ = ["board"]


def board(
    *,
    replay: Annotated[
        int,
        typer.Option(
            "--replay",
            metavar="STARTS",
            min=0,
            help="Instead count the points that `next` needs, from so many starts (200: a quarter of an hour).",
        ),
    ] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the board as one JSON document.")] = False,
) -> None:
    """Predict the held-out points of every shipped pack of measurements, beside naive baselines.

    Leaves with 1 if an error has grown beyond its record.
    """
    from routecast.calibrate.board import run_board
    from routecast.calibrate.replay import run_replay
    from routecast.cli.validation import board_remarks, board_tables, replay_table

    if replay:
        with progress_bar("replay") as progress:
            replayed = run_replay(replay, progress=progress)
        if as_json:
            print_json(replayed.to_json())
        else:
            print_table(data(), replay_table(replayed))
        return
    with progress_bar("board") as progress:
        result = run_board(progress)
    if as_json:
        print_json(result.to_json())
    else:
        for table in board_tables(result):
            print_table(data(), table)
        for text in board_remarks(result):
            data().print(text, markup=False)
    if result.worse():
        remark("Criterion missed: errors have grown beyond their record")
        raise typer.Exit(1)
