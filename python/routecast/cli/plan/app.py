"""The commands of ``routecast plan`` get their names; each stands in a file of its own."""

from __future__ import annotations

import typer

from routecast.cli.plan import cluster, mapping, placement

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Plan: which machines to buy, which to switch on when, what to put where.",
    rich_markup_mode="markdown",
)


@app.callback()
def plan() -> None:
    """Plan: which machines to buy, which to switch on when, what to put where."""


app.command("cluster")(cluster.cluster)
app.command("mapping")(mapping.mapping)
app.command("placement")(placement.placement)
