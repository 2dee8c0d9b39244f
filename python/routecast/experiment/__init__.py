"""Designed experiments over any evaluator: factors, designs, runs that scale, effects."""

from routecast.experiment.model import (
    Answer,
    Design,
    Experiment,
    Factor,
    Level,
    Response,
    Results,
    Run,
)

__all__ = ["Answer", "Design", "Experiment", "Factor", "Level", "Response", "Results", "Run"]
