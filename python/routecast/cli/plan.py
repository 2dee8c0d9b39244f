"""``routecast plan``: which machines to buy, which to switch on when, what to put where."""

from __future__ import annotations

import typer

from routecast.cli import plan_cluster, plan_mapping, plan_placement

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Plan: which machines to buy, which to switch on when, what to put where.",
    rich_markup_mode="markdown",
)


@app.callback()
def plan() -> None:
    """Plan: which machines to buy, which to switch on when, what to put where."""


app.command("cluster")(plan_cluster.cluster)
app.command("mapping")(plan_mapping.mapping)
app.command("placement")(plan_placement.placement)
