"""``routecast noc``: networks on chip."""

from routecast.cli.noc.app import app

__all__ = ["app"]
