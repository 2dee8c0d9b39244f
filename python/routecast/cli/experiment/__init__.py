"""``routecast experiment``: designed experiments."""

from routecast.cli.experiment.command import experiment

__all__ = ["experiment"]
