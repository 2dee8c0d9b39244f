"""``routecast workload``: what a packet takes in a kernel of a network processor."""

from routecast.cli.workload.command import workload

__all__ = ["workload"]
