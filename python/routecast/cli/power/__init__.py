"""``routecast power``: power models, meters, metrics, and the operating point that needs the fewest watts."""

from routecast.cli.power.app import app

__all__ = ["app"]
