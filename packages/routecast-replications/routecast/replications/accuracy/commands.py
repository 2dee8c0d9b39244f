"""``routecast board``: predictions at published measurements that calibration has not seen."""

from __future__ import annotations

from typing import Annotated

import typer

from routecast.cli.console import data, print_json, print_table, progress_bar, remark
from routecast.cli.options import AsJson

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
    size: Annotated[
        bool, typer.Option("--size", help="Instead judge the counts of cores that `size` gives, a minute.")
    ] = False,
    latency: Annotated[
        bool,
        typer.Option("--latency", help="Instead predict published latencies at loads that were not given, a minute."),
    ] = False,
    weaknesses: Annotated[
        bool,
        typer.Option("--weaknesses", help="Print only where intervals miss their coverage or a single law is better."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Predict the held-out points of every shipped pack of measurements, beside naive baselines.

    Leaves with 1 if an error has grown beyond its record.
    """
    from routecast.replications.accuracy._views import board_remarks, board_tables, replay_table, weakness_table
    from routecast.replications.accuracy.board import run_board
    from routecast.replications.accuracy.replay import run_replay

    if replay:
        with progress_bar("replay") as progress:
            replayed = run_replay(replay, on_progress=progress)
        if as_json:
            print_json(replayed.to_json())
        else:
            print_table(data(), replay_table(replayed))
        return
    if size:
        _print_size_board(as_json=as_json)
        return
    if latency:
        _print_latency_board(only_weaknesses=weaknesses, as_json=as_json)
        return
    with progress_bar("board") as progress:
        result = run_board(progress)
    if as_json:
        print_json(result.to_json())
    elif weaknesses:
        print_table(data(), weakness_table(result))
    else:
        for table in (*board_tables(result), weakness_table(result)):
            print_table(data(), table)
        for text in board_remarks(result):
            data().print(text, markup=False)
    _leave_if_worse(bool(result.worse()))


def _leave_if_worse(is_worse: bool) -> None:
    """Leave with 1 if an error has grown."""
    if is_worse:
        remark("Criterion missed: errors have grown beyond their record")
        raise typer.Exit(1)


def _print_latency_board(*, only_weaknesses: bool, as_json: bool) -> None:
    from routecast.replications.accuracy._views import latency_board_tables, latency_remarks, weakness_table
    from routecast.replications.accuracy.latency import run_latency_board

    with progress_bar("board") as progress:
        result = run_latency_board(progress)
    if as_json:
        print_json(result.to_json())
    else:
        for table in (*(() if only_weaknesses else latency_board_tables(result)), weakness_table(result)):
            print_table(data(), table)
        for text in () if only_weaknesses else latency_remarks(result):
            data().print(text, markup=False)
    _leave_if_worse(bool(result.worse()))


def _print_size_board(*, as_json: bool) -> None:
    from routecast.replications.accuracy._views import size_board_table
    from routecast.replications.accuracy.sizing import run_size_board

    with progress_bar("board") as progress:
        sizes = run_size_board(progress)
    if as_json:
        print_json(sizes.to_json())
    else:
        print_table(data(), size_board_table(sizes))
