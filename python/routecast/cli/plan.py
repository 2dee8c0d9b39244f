"""``routecast plan``: which machines to buy, and which of them to switch on when."""

from __future__ import annotations

import typer

from routecast.cli import plan_cluster

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Plan: which machines to buy, and which to switch on when.",
    rich_markup_mode="markdown",
)


@app.callback()
def plan() -> None:
    """Plan: which machines to buy, and which to switch on when."""


app.command("cluster")(plan_cluster.cluster)
