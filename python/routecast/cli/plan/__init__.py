"""``routecast plan``: which machines to buy, which to switch on when, what to put where."""

from routecast.cli.plan.app import app

__all__ = ["app"]
