"""``routecast hardware``: the hosts that routecast knows, and this one."""

from routecast.cli.hardware.app import app

__all__ = ["app"]
