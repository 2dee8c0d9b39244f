"""The commands of ``routecast hardware`` get their names; each stands in a file of its own."""

from __future__ import annotations

import typer

from routecast.cli.hardware import probe, show

__all__ = ["app"]

app = typer.Typer(
    name="hardware",
    no_args_is_help=True,
    help="Hosts and what elementary operations cost on them: list, show, probe this one.",
)

app.command("probe")(probe.probe)
app.command("list")(show.list_hardware)
app.command("show")(show.show)
