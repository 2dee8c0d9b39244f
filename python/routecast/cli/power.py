"""``routecast power``: power models, meters, metrics, and the operating point that needs the fewest watts.

Each command stands in a file of its own (``power_*.py``); here they get their names.
"""

from __future__ import annotations

import typer

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Watts: models, meters, metrics, and the operating point that needs the fewest.",
    rich_markup_mode="markdown",
)


@app.callback()
def power() -> None:
    """Watts: models, meters, metrics, and the operating point that needs the fewest."""
