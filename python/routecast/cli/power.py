"""``routecast power``: power models, meters, metrics, and the operating point that needs the fewest watts.

Each command stands in a file of its own (``power_*.py``); here they get their names.
"""

from __future__ import annotations

import typer

from routecast.cli import power_day, power_fit, power_meters, power_optimise, power_show, power_table

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Watts: models, meters, metrics, and the operating point that needs the fewest.",
    rich_markup_mode="markdown",
)


@app.callback()
def power() -> None:
    """Watts: models, meters, metrics, and the operating point that needs the fewest."""


app.command("meters")(power_meters.meters)
app.command("read")(power_meters.read)
app.command("fit")(power_fit.fit)
app.command("show")(power_show.show)
app.command("table")(power_table.power_table_command)
app.command("day")(power_day.power_day_command)
app.command("optimise")(power_optimise.optimise)
