"""``routecast function``: what a network function costs on a host, estimated or run for real."""

from routecast.cli.function.command import function

__all__ = ["function"]
