"""The commands of ``routecast benchmark`` get their names; each stands in a file of its own."""

from __future__ import annotations

import typer

from routecast.cli.benchmark import rfc2544

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="The procedures of RFC 2544, on a test bed or on a model.")

app.command("rfc2544")(rfc2544.rfc2544)
