"""``routecast benchmark``: benchmarking procedures of the IETF."""

from routecast.cli.benchmark.app import app

__all__ = ["app"]
