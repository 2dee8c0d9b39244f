"""The commands of ``routecast noc`` get their names; each stands in a file of its own."""

from __future__ import annotations

import typer

from routecast.cli.noc import compare, optimum, power, simulate

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Networks on chip: power of routings and planes, the optimum, the fabric flit by flit.",
    rich_markup_mode="markdown",
)


@app.callback()
def noc() -> None:
    """Networks on chip: power of routings and planes, the optimum, the fabric flit by flit."""


app.command("power")(power.power)
app.command("optimum")(optimum.optimum)
app.command("simulate")(simulate.simulate)
app.command("compare")(compare.compare)
