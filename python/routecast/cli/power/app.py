"""The commands of ``routecast power`` get their names; each stands in a file of its own."""

from __future__ import annotations

import typer

from routecast.cli.power import day, fit, meters, optimise, show, table

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Watts: models, meters, metrics, and the operating point that needs the fewest.",
    rich_markup_mode="markdown",
)


@app.callback()
def power() -> None:
    """Watts: models, meters, metrics, and the operating point that needs the fewest."""


app.command("meters")(meters.meters)
app.command("read")(meters.read)
app.command("fit")(fit.fit)
app.command("show")(show.show)
app.command("table")(table.power_table_command)
app.command("day")(day.power_day_command)
app.command("optimise")(optimise.optimise)
